import type { SignatureKey } from '../../../identity/signature/signature-key.ts'
import { hasBody, readBody } from '../../http/body.ts'
import type { RequestContext } from '../../http/router.ts'
import { GnapError } from './gnap-error.ts'
import { expectSignedBody, type ProofFacts, replayFault, signatureBy } from './proof.ts'

/**
 * Returns the result of `read` after the signature with this key and the body digest are verified. `check`
 * throws if the request cannot succeed; it runs before the nonce is stored, so such a request writes nothing.
 */
export async function signedBy<Result>(
  ctx: RequestContext,
  key: SignatureKey | ((result: Result) => Promise<SignatureKey>),
  facts: ProofFacts,
  read: () => Promise<Result>,
  check: (result: Result) => void = () => undefined,
): Promise<Result> {
  const wrong = expectSignedBody(ctx)
  if (wrong !== null) throw new GnapError('invalid_client', wrong)
  const result = await read()
  const own = typeof key === 'function' ? await key(result) : key
  const signature = signatureBy(ctx, own, facts)
  if (typeof signature === 'string') throw new GnapError('invalid_client', signature)
  check(result)
  const fault = await replayFault(signature, own, facts)
  if (fault !== null) throw new GnapError('invalid_client', fault)
  return result
}

/** `null`: no body. */
export async function readOptionalBody(ctx: RequestContext): Promise<unknown> {
  return hasBody(ctx) ? readBody(ctx, BODY_BYTES_MAX) : null
}

/** Ten tokens with every possible right take about 10 kB. */
export const BODY_BYTES_MAX = 65_536
