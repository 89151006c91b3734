import type Koa from 'koa'
import type { RequestState } from '../api/router.ts'
import type { Management } from '../management.ts'
import { type ProblemCode, Refusal } from '../refusal.ts'
import { principalOf } from './api-keys.ts'
import type { Principal } from './principal.ts'

/** Finds out who calls, before anything else is said (RFC 6750). */
export function authentication(management: Management): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    ctx.state.principal = await principalBehind(ctx.get('Authorization'), management)
    return next()
  }
}

async function principalBehind(
  header: string,
  { apiKeys, publicUrl, nowMs }: Management,
): Promise<Principal> {
  const refuse = (code: ProblemCode, detail: string, error: string) =>
    new Refusal(code, detail, { headers: { 'WWW-Authenticate': challenge(publicUrl, error) } })
  if (header === '') throw refuse('missing_token', 'send Authorization: Bearer and an API key or a token', '')
  const token = BEARER.exec(header)?.[1]
  if (token === undefined) throw refuse('invalid_token', 'this is no Bearer token', 'invalid_token')
  const key = await apiKeys.find(token, nowMs())
  if (key === null || key.revokedAtMs !== null)
    throw refuse('invalid_token', 'this key is not known here', 'invalid_token')
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs())
    throw refuse('expired_token', 'this key has expired', 'invalid_token')
  return principalOf(key)
}

function challenge(publicUrl: string, error: string): string {
  const metadata = `resource_metadata="${publicUrl}/.well-known/oauth-protected-resource"`
  return `Bearer realm="gatehouse", ${error === '' ? '' : `error="${error}", `}${metadata}`
}

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
const BEARER = /^bearer +([\w.~+/-]+=*)$/i
