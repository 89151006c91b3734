import type { KeyRecord } from '../../store/people/keys.ts'
import type { RequestContext } from '../http/router.ts'
import { addHeaders } from '../http/front/head.ts'
import type { AuthContext } from './context.ts'
import { type ProblemCode, Refusal } from '../http/refusal.ts'
import { agentBehind, isSignedByAgent } from './agent-signature.ts'
import { KEY_PREFIX, principalOf } from './api-keys.ts'
import { BOOTSTRAP } from './bootstrap-key.ts'
import { challenge } from '../http/access/challenge.ts'
import { refusalAfterFailure } from './failures.ts'
import { presentedToken, principalWithGnap } from './gnap/presented.ts'
import { looksLikeJwt } from './oauth/access-tokens.ts'
import { principalWithToken } from './oauth/presented.ts'
import type { Resource } from '../http/access/resources.ts'
import type { Principal } from '../http/access/principal.ts'

/**
 * Authenticates the caller before any other check (RFC 6750). Synchronous for a cached API key. `resource`:
 * the audience an access token must have.
 */
export function authenticated(
  ctx: RequestContext,
  management: AuthContext,
  resource: Resource = 'v1',
): Promise<Principal> | Principal {
  return remembered(ctx, management) ?? foundOut(ctx, management, resource)
}

/** `null`: not decided by the cache; the full check must run, also to find the reason for a refusal. */
function remembered({ req }: RequestContext, { apiKeys, nowMs }: AuthContext): Principal | null {
  const { authorization } = req.headers
  if (authorization === undefined || !authorization.startsWith(BEARER_KEY)) return null
  const now = nowMs()
  const key = apiKeys.remembered(authorization.slice(BEARER_LENGTH), now)
  if (key === null || key.revokedAtMs !== null || hasExpired(key, now)) return null
  apiKeys.used(key, now)
  return principalOf(key)
}

async function foundOut(
  ctx: RequestContext,
  management: AuthContext,
  resource: Resource,
): Promise<Principal> {
  const { req, state } = ctx
  const { apiKeys, bootstrapKey, oauth, publicUrl, nowMs } = management
  const refuseAgent = (detail: string) =>
    refuse('invalid_token', detail, challenge(publicUrl, 'invalid_token', resource))
  try {
    if (isSignedByAgent(ctx)) return await agentBehind(ctx, management, refuseAgent)
    const header = req.headers.authorization ?? ''
    const gnap = presentedToken(header)
    if (gnap !== null) return await principalWithGnap(ctx, gnap, management)
    const { scheme, token } = credentialIn(header, publicUrl, resource)
    if (scheme === 'bearer' && bootstrapKey?.isThis(token)) return BOOTSTRAP
    if (scheme === 'dpop' || looksLikeJwt(token)) {
      const { method = '', url = '', headers } = req
      const proof = String(headers['dpop'] ?? '')
      // Sent on errors too: the client needs the nonce for its next proof.
      if (scheme === 'dpop' && oauth.nonces !== null)
        addHeaders(state.head, { 'DPoP-Nonce': await oauth.nonces.next() })
      const presented = { scheme, token, proof, method, path: url.split('?', 1)[0]!, resource }
      return await principalWithToken(presented, management)
    }
    const key = valid(await apiKeys.find(token, nowMs()), publicUrl, nowMs())
    apiKeys.used(key, nowMs())
    return principalOf(key)
  } catch (error) {
    if (!GUESSES.has((error as Refusal).code)) throw error
    throw await refusalAfterFailure(error as Refusal, state.address, state.requestId, management)
  }
}

function credentialIn(
  header: string,
  publicUrl: string,
  resource: Resource,
): { readonly scheme: 'bearer' | 'dpop'; readonly token: string } {
  if (header === '') {
    const detail = 'send Authorization: Bearer with an API key or a token'
    throw refuse('missing_token', detail, challenge(publicUrl, '', resource))
  }
  const [, scheme = '', token = ''] = CREDENTIAL.exec(header) ?? []
  if (token === '') {
    const detail = 'unsupported kind of token'
    throw refuse('invalid_token', detail, challenge(publicUrl, 'invalid_token', resource))
  }
  return { scheme: scheme.length === DPOP.length ? DPOP : 'bearer', token }
}

function valid(key: KeyRecord | null, publicUrl: string, nowMs: number): KeyRecord {
  if (key === null || key.revokedAtMs !== null)
    throw refuse('invalid_token', 'invalid API key', challenge(publicUrl, 'invalid_token'))
  if (hasExpired(key, nowMs))
    throw refuse('expired_token', 'this API key has expired', challenge(publicUrl, 'invalid_token'))
  return key
}

function hasExpired({ expiresAtMs }: KeyRecord, nowMs: number): boolean {
  return expiresAtMs !== null && expiresAtMs <= nowMs
}

function refuse(code: ProblemCode, detail: string, challenge: string): Refusal {
  return new Refusal(code, detail, { headers: { 'WWW-Authenticate': challenge } })
}

/**
 * The scheme is case-insensitive (RFC 9110 §11.1). Accepts tokens of RFC 6750 §2.1 and, for the bootstrap
 * key, any other text.
 */
const CREDENTIAL = /^(bearer|dpop) +(\S.*)$/i
const DPOP = 'dpop'
/** The spelling that nearly all clients use. */
const BEARER_KEY = `Bearer ${KEY_PREFIX}`
const BEARER_LENGTH = 'Bearer '.length
/** A request without a credential is not counted as a guess. */
const GUESSES: ReadonlySet<unknown> = new Set<ProblemCode>(['invalid_token', 'expired_token'])
