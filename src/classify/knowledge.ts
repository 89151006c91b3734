import { buildSignatureIndex, type IndexedSignature } from './index-builder.ts'
import { HeaderIndex } from './header-index.ts'
import { HeaderOrders } from './header-orders.ts'
import { SignatureIndex } from './signature-index.ts'
import type { Software } from './software.ts'
import { StackIndex } from './stack.ts'
import { UserAgentIndex } from './user-agent.ts'
import type { Weights } from './weights.ts'

/** Everything that requests are judged by, compiled; never changed, but for what it remembers of what it has read. */
export interface Knowledge {
  readonly list: readonly Software[]
  readonly userAgents: UserAgentIndex
  readonly headers: HeaderIndex
  readonly orders: HeaderOrders
  readonly fingerprints: SignatureIndex
  readonly stacks: StackIndex
  readonly weights: Weights
}

/** `seed`: see buildSignatureIndex. */
export function compileKnowledge(
  list: readonly Software[],
  weights: Weights,
  seed: readonly [number, number],
): Knowledge {
  const fingerprints = SignatureIndex.open(buildSignatureIndex(fingerprintsOf(list), seed).buffer)
  return {
    list,
    userAgents: new UserAgentIndex(list),
    headers: new HeaderIndex(list),
    orders: new HeaderOrders(list),
    fingerprints,
    stacks: new StackIndex(list, fingerprints),
    weights,
  }
}

function* fingerprintsOf(list: readonly Software[]): Generator<IndexedSignature> {
  for (const [software, { signatures }] of list.entries()) {
    for (const signature of signatures) {
      const { type, observations } = signature
      if (type === 'user-agent' || type === 'header' || type === 'header-order') continue
      yield { type, value: signature.value, software, observations }
    }
  }
}
