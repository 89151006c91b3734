import { isDigestOf, readContentDigest } from '../../../identity/signature/content-digest.ts'
import {
  type HttpSignature,
  replayIdOf,
  type SignatureFault,
  verifyRequest,
} from '../../../identity/verify/http-signature.ts'
import type { SignatureKey } from '../../../identity/signature/signature-key.ts'
import type { Store } from '../../../store/store.ts'
import { hasBody } from '../../http/body.ts'
import type { RequestContext } from '../../http/router.ts'
import { Refusal } from '../../http/refusal.ts'

/** The parts of the management plane that a key proof needs. */
export interface ProofFacts {
  readonly publicUrl: string
  readonly store: Store
  nowMs(): number
}

/**
 * Makes the body reader compare the body with `Content-Digest` and call `refuse` if they differ. Returns the
 * error found so far, or `null`.
 */
export function expectSignedBody(
  ctx: RequestContext,
  refuse = (detail: string) => new Refusal('invalid_token', detail),
): string | null {
  const digest = readContentDigest(ctx.req.rawHeaders)
  if (!hasBody(ctx)) {
    // An intermediary may have removed the body.
    return digest === null || isDigestOf(digest, NO_BYTES) ? null : OTHER_BODY
  }
  if (digest === null) return 'a body needs a Content-Digest with sha-256 or sha-512'
  ctx.state.checkBody = (bytes) => {
    if (!isDigestOf(digest, bytes)) throw refuse(OTHER_BODY)
  }
  return null
}

/**
 * Checks that the request is signed with this key as RFC 9635 §7.3.1 requires and is not a replay. Returns
 * the error, or `null`.
 */
export async function proofFault(
  ctx: RequestContext,
  key: SignatureKey,
  facts: ProofFacts,
): Promise<string | null> {
  const signature = signatureBy(ctx, key, facts)
  return typeof signature === 'string' ? signature : replayFault(signature, key, facts)
}

/** Like `proofFault`, without the replay check. A string is an error. */
export function signatureBy(
  ctx: RequestContext,
  key: SignatureKey,
  { publicUrl: base, nowMs }: ProofFacts,
): HttpSignature | string {
  const covers = [['@method'], ['@target-uri']]
  if (ctx.get('Authorization') !== '') covers.push(['authorization'])
  if (hasBody(ctx)) covers.push(['content-digest'])
  const request = { method: ctx.method, base, target: ctx.url, rawHeaders: ctx.req.rawHeaders }
  const verification = verifyRequest(request, { ...POLICY, covers }, key, nowMs())
  return verification.kind === 'verified' ? verification.signature : SIGNATURE_FAULTS[verification.fault]
}

/** Checks that the signature is used for the first time, and marks it as used. */
export async function replayFault(
  signature: HttpSignature,
  key: SignatureKey,
  { store }: ProofFacts,
): Promise<string | null> {
  const isFirst = await store.replays.isFirst(replayIdOf(signature, key), signature.goodUntilMs)
  return isFirst ? null : 'this signature or its nonce was already used'
}

const NO_BYTES = Buffer.alloc(0)
const OTHER_BODY = 'the body does not match Content-Digest'
/** A request takes seconds to arrive; clocks can differ by a minute. */
const POLICY = { tag: 'gnap', needsExpiry: false, fieldLengthMax: 8_192, ageMaxS: 120, skewS: 60 } as const
export const SIGNATURE_FAULTS: Readonly<Record<SignatureFault, string>> = {
  unsigned: 'the request is not signed (RFC 9421)',
  malformed: 'Signature-Input and Signature are not a valid signature',
  'too-large': 'the signatures are too many or too large',
  'other-tag': 'no signature has tag="gnap"',
  'no-created': 'the signature has no created parameter',
  'no-expires': 'the signature has no expires parameter',
  'created-in-future': 'the signature was created in the future',
  'too-old': 'the signature was created too long ago',
  expired: 'the signature has expired',
  'lives-too-long': 'the lifetime of the signature is too long',
  'not-covered':
    'the signature must cover @method, @target-uri, content-digest if there is a body, and authorization if it is sent',
  'no-component': 'the signature covers a component that is unknown or not in the request',
  'other-key': 'no signature has a keyid that is the kid or the RFC 7638 thumbprint of the key',
  'other-algorithm': 'the algorithm of the signature is not that of the key',
  wrong: 'the signature does not match this request and this key',
}
