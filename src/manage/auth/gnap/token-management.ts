import type { GnapTokenRecord } from '../../../store/people/gnap-tokens.ts'
import type { RequestContext } from '../../http/router.ts'
import type { AuthContext } from '../context.ts'
import { hashOfKey, looksLikeSecret } from '../api-keys.ts'
import { GnapError } from './gnap-error.ts'
import { keyKept, MANAGE_PREFIX } from './gnap-tokens.ts'
import { type GnapAnswer, RENEWABLE_MS } from './grants.ts'
import { gnapTokenIn } from './presented.ts'
import { readOptionalBody, signedBy } from './signed-request.ts'
import { hashesOf, newTokenSecrets, tokenAnswer } from './token-answer.ts'

/** RFC 9635 §6: the client rotates or revokes an access token. `null`: revoked. */
export async function manageToken(
  ctx: RequestContext,
  id: string,
  management: AuthContext,
): Promise<GnapAnswer | null> {
  const { store, gnap, nowMs } = management
  const secret = gnapTokenIn(ctx.get('Authorization'))
  const hash = hashOfKey(secret)
  const token = looksLikeSecret(secret, MANAGE_PREFIX) ? await store.gnapTokens.managed(id, hash) : null
  if (token === null) throw new GnapError('invalid_client', 'unknown management token')
  // A bearer token too is managed with the key that requested it.
  const body = await signedBy(ctx, keyKept(token.jwk), management, () => readOptionalBody(ctx))
  if (ctx.method === 'DELETE') {
    await store.gnapTokens.revoke(id, nowMs())
    gnap.tokens.forget()
    return null
  }
  if (typeof body === 'object' && body !== null && 'key' in body)
    throw token.isBearer
      ? new GnapError('invalid_rotation', 'a bearer token has no key')
      : new GnapError('key_rotation_not_supported', 'the key of a token cannot be changed')
  return renewed(token, hash, management)
}

async function renewed(token: GnapTokenRecord, hash: string, management: AuthContext): Promise<GnapAnswer> {
  const { store, gnap, trust, publicUrl, nowMs } = management
  const { thumbprint, isApproved, approved, revokedAtMs } = token
  if (revokedAtMs !== null || token.endsAtMs <= nowMs()) throw notRenewed()
  if (!isApproved && (await trust.scopesOfKey(thumbprint)) === null) throw notRenewed()
  if (isApproved && (await gnap.tokens.worthOf(approved)) === 'none') throw notRenewed()
  const expiresAtMs = nowMs() + gnap.settings.tokenTtlS * 1000
  const next: GnapTokenRecord = {
    ...token,
    expiresAtMs: isApproved ? Math.min(expiresAtMs, token.endsAtMs) : expiresAtMs,
    // Renewal does not extend the lifetime of an approval.
    endsAtMs: isApproved ? token.endsAtMs : expiresAtMs + RENEWABLE_MS,
  }
  const secrets = newTokenSecrets()
  if (!(await store.gnapTokens.rotate(next, hash, hashesOf(secrets)))) throw notRenewed()
  gnap.tokens.forget()
  return { access_token: tokenAnswer(next, secrets, publicUrl, nowMs()) }
}

function notRenewed(): GnapError {
  return new GnapError('invalid_rotation', 'this token has ended: request a new one')
}
