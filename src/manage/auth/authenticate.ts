import type Koa from 'koa'
import type { RequestContext, RequestState } from '../api/router.ts'
import type { Management } from '../management.ts'
import { type ProblemCode, Refusal } from '../refusal.ts'
import { agentBehind, isSignedByAgent } from './agent-signature.ts'
import { principalOf } from './api-keys.ts'
import { BOOTSTRAP } from './bootstrap-key.ts'
import { challenge } from './challenge.ts'
import { refusalAfterFailure } from './failures.ts'
import { presentedToken, principalWithGnap } from './gnap/presented.ts'
import { looksLikeJwt } from './oauth/access-tokens.ts'
import { type Presented, principalWithToken } from './oauth/presented.ts'
import type { Resource } from './oauth/resources.ts'
import type { Principal } from './principal.ts'

/** Finds out who calls, before anything else is said (RFC 6750). `resource`: what their token has to be for. */
export function authentication(
  management: Management,
  resource: Resource = 'v1',
): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    const address = ctx.req.socket.remoteAddress ?? ''
    try {
      ctx.state.principal = await principalBehind(ctx, management, resource)
    } catch (error) {
      throw GUESSES.has((error as Refusal).code)
        ? await refusalAfterFailure(error as Refusal, address, ctx.state.requestId, management)
        : error
    }
    return next()
  }
}

async function principalBehind(
  ctx: RequestContext,
  management: Management,
  resource: Resource,
): Promise<Principal> {
  const header = ctx.get('Authorization')
  const { apiKeys, bootstrapKey, publicUrl, nowMs } = management
  const refuse = (code: ProblemCode, detail: string, error: string) =>
    new Refusal(code, detail, { headers: { 'WWW-Authenticate': challenge(publicUrl, error, resource) } })
  if (isSignedByAgent(ctx))
    return agentBehind(ctx, management, (detail) => refuse('invalid_token', detail, 'invalid_token'))
  if (header === '') throw refuse('missing_token', 'send Authorization: Bearer and an API key or a token', '')
  const gnap = presentedToken(header)
  if (gnap !== null) return principalWithGnap(ctx, gnap, management)
  const [, scheme = '', token = ''] = CREDENTIAL.exec(header) ?? []
  const isDpop = scheme.length === DPOP.length
  if (token === '')
    throw refuse('invalid_token', 'this is no token of a kind that is known here', 'invalid_token')
  if (!isDpop && bootstrapKey?.isThis(token)) return BOOTSTRAP
  if (isDpop || looksLikeJwt(token))
    return principalWithToken(presentedIn(ctx, isDpop ? 'dpop' : 'bearer', token, resource), management)
  const key = await apiKeys.find(token, nowMs())
  if (key === null || key.revokedAtMs !== null)
    throw refuse('invalid_token', 'this key is not known here', 'invalid_token')
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs())
    throw refuse('expired_token', 'this key has expired', 'invalid_token')
  apiKeys.used(key, nowMs())
  return principalOf(key)
}

function presentedIn(
  ctx: RequestContext,
  scheme: 'bearer' | 'dpop',
  token: string,
  resource: Resource,
): Presented {
  const [path, proof] = [ctx.url.split('?', 1)[0]!, ctx.get('DPoP')]
  return { scheme, token, proof, method: ctx.method, path, resource }
}

/** The scheme in any case (RFC 9110 §11.1). Tokens of RFC 6750 §2.1 and, for the bootstrap key, any other text. */
const CREDENTIAL = /^(bearer|dpop) +(\S.*)$/i
const DPOP = 'dpop'
/** Who sends no credential does not guess. */
const GUESSES: ReadonlySet<unknown> = new Set<ProblemCode>(['invalid_token', 'expired_token'])
