import { createHash } from 'node:crypto'
import { calculateJwkThumbprint, EmbeddedJWK, errors, type JWTPayload, jwtVerify } from 'jose'
import { digestOf } from '../../../store/engine/sealed.ts'
import type { Store } from '../../../store/store.ts'
import { SIGNATURES } from './routes.ts'

/** The request that a proof came with. */
interface ProvenRequest {
  readonly method: string
  /** Without the query. Never built from the Host header. */
  readonly url: string
  readonly accessToken: string
  /** The thumbprint of the key the token is bound to. */
  readonly jkt: string
  /** Whether a nonce is one of ours. `null`: proofs need no nonce. */
  readonly isGoodNonce: ((nonce: unknown) => Promise<boolean>) | null
}

/** The problem if the proof is valid except for its nonce. */
export const NONCE_MISSING = 'the proof needs the nonce from the header DPoP-Nonce'

/**
 * Verifies a DPoP proof for this request (RFC 9449 §4.3) and refuses replays. Returns the problem, or `null`.
 */
export async function dpopProblem(
  proof: string,
  request: ProvenRequest,
  store: Store,
  nowMs: number,
): Promise<string | null> {
  if (proof.length > LENGTH_MAX) return 'the proof is too long'
  const verified = await verify(proof, nowMs)
  if (verified === null) return 'the proof is not signed correctly'
  const problem = claimProblem(verified.payload, request, nowMs)
  if (problem !== null) return problem
  if (verified.thumbprint !== request.jkt) return 'the proof and the token have different keys'
  if (request.isGoodNonce !== null && !(await request.isGoodNonce(verified.payload['nonce'])))
    return NONCE_MISSING
  const isFirst = await store.oauthRecords.putOnce(
    {
      id: digestOf('proof', verified.thumbprint, verified.payload.jti!),
      kind: 'Proof',
      sealed: '',
      grantId: null,
      uid: null,
      userCode: null,
      clientId: null,
      personId: null,
      expiresAtMs: nowMs + 2 * WINDOW_MS,
    },
    nowMs,
  )
  return isFirst ? null : 'the proof was already used'
}

async function verify(
  proof: string,
  nowMs: number,
): Promise<{ payload: JWTPayload; thumbprint: string } | null> {
  try {
    const options = { algorithms: [...SIGNATURES], typ: 'dpop+jwt', currentDate: new Date(nowMs) }
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, options)
    return { payload, thumbprint: await calculateJwkThumbprint(protectedHeader.jwk!) }
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException)
      return null
    throw error
  }
}

function claimProblem(
  { jti, iat, ...claims }: JWTPayload,
  request: ProvenRequest,
  nowMs: number,
): string | null {
  if (typeof jti !== 'string' || jti === '' || jti.length > JTI_LENGTH_MAX) return 'the proof has no jti'
  if (typeof iat !== 'number' || Math.abs(iat * 1000 - nowMs) > WINDOW_MS)
    return 'the proof is too old or from the future (iat)'
  if (claims['htm'] !== request.method) return 'the proof is for another method'
  if (withoutQuery(claims['htu']) !== withoutQuery(request.url)) return 'the proof is for another URL'
  const hash = createHash('sha256').update(request.accessToken).digest('base64url')
  return claims['ath'] === hash ? null : 'the proof is not for this token'
}

/** Normalizes the URL (RFC 3986 §6.2.2 and §6.2.3). */
function withoutQuery(url: unknown): string | null {
  const parsed = typeof url === 'string' ? URL.parse(url) : null
  return parsed === null ? null : parsed.origin + parsed.pathname
}

const LENGTH_MAX = 8_192
const JTI_LENGTH_MAX = 256
/** The same window as in the authorization server. */
const WINDOW_MS = 300_000
