import { AddressLists } from './address-lists.ts'
import type { IndexedSignature } from './index/index-builder.ts'
import { HeaderIndex } from './index/header-index.ts'
import { HeaderOrders } from './header-orders.ts'
import { Identities } from './identities.ts'
import { OwnerIndex } from './owners.ts'
import type { SignatureIndex } from './index/signature-index.ts'
import type { Software } from './software.ts'
import { SoftwareNames } from './software-names.ts'
import { StackIndex } from './stack.ts'
import { UserAgentIndex } from './user-agent.ts'
import type { Weights } from './weights.ts'

/** Everything that requests are classified with, compiled. Never changed, except for its caches. */
export interface Knowledge {
  readonly list: readonly Software[]
  /** For names in policies and filters. */
  readonly names: SoftwareNames
  readonly userAgents: UserAgentIndex
  readonly headers: HeaderIndex
  readonly orders: HeaderOrders
  readonly fingerprints: SignatureIndex
  readonly stacks: StackIndex
  readonly owners: OwnerIndex
  readonly addresses: AddressLists
  readonly identities: Identities
  readonly weights: Weights
}

/** `fingerprints` is the index of all fingerprints in the list. */
export function compileKnowledge(
  list: readonly Software[],
  weights: Weights,
  fingerprints: SignatureIndex,
): Knowledge {
  const compiling = compilingKnowledge(list, weights, fingerprints)
  for (;;) {
    const step = compiling.next()
    if (step.done) return step.value
  }
}

/** The same, yielding in between. */
export function* compilingKnowledge(
  list: readonly Software[],
  weights: Weights,
  fingerprints: SignatureIndex,
): Generator<undefined, Knowledge> {
  const userAgents = yield* UserAgentIndex.compiling(list)
  yield
  const headers = new HeaderIndex(list)
  yield
  const orders = new HeaderOrders(list)
  yield
  const stacks = new StackIndex(list, fingerprints)
  yield
  const addresses = yield* AddressLists.compiling(list)
  yield
  const names = yield* SoftwareNames.compiling(list)
  yield
  return {
    list,
    names,
    userAgents,
    headers,
    orders,
    fingerprints,
    stacks,
    owners: new OwnerIndex(list, fingerprints),
    addresses,
    identities: new Identities(list, fingerprints),
    weights,
  }
}

/** Yields the fingerprints with the number of their Software in the list. */
export function* fingerprintsOf(list: readonly Software[]): Generator<IndexedSignature> {
  for (const [software, { signatures }] of list.entries()) {
    for (const signature of signatures) {
      const { type, observations } = signature
      if (type === 'user-agent' || type === 'header' || type === 'header-order') continue
      yield { type, value: signature.value, software, observations }
    }
  }
}
