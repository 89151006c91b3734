import type Koa from 'koa'
import { Fault } from '../../fault.ts'
import type { RequestContext, RequestState } from '../api/router.ts'
import { changed } from '../audit.ts'
import type { Management } from '../management.ts'
import { type ProblemCode, Refusal } from '../refusal.ts'
import { agentBehind, isSignedByAgent } from './agent-signature.ts'
import { principalOf } from './api-keys.ts'
import { BOOTSTRAP } from './bootstrap-key.ts'
import { presentedToken, principalWithGnap } from './gnap/presented.ts'
import type { Principal } from './principal.ts'

/** Finds out who calls, before anything else is said (RFC 6750). */
export function authentication(management: Management): Koa.Middleware<RequestState> {
  return async (ctx, next) => {
    const address = ctx.req.socket.remoteAddress ?? ''
    try {
      ctx.state.principal = await principalBehind(ctx, management)
    } catch (error) {
      throw GUESSES.has((error as Refusal).code)
        ? await afterFailure(error as Refusal, address, ctx.state.requestId, management)
        : error
    }
    return next()
  }
}

async function principalBehind(ctx: RequestContext, management: Management): Promise<Principal> {
  const header = ctx.get('Authorization')
  const { apiKeys, bootstrapKey, publicUrl, nowMs } = management
  const refuse = (code: ProblemCode, detail: string, error: string) =>
    new Refusal(code, detail, { headers: { 'WWW-Authenticate': challenge(publicUrl, error) } })
  if (isSignedByAgent(ctx))
    return agentBehind(ctx, management, (detail) => refuse('invalid_token', detail, 'invalid_token'))
  if (header === '') throw refuse('missing_token', 'send Authorization: Bearer and an API key or a token', '')
  const gnap = presentedToken(header)
  if (gnap !== null) return principalWithGnap(ctx, gnap, management)
  const token = BEARER.exec(header)?.[1]
  if (token === undefined) throw refuse('invalid_token', 'this is no Bearer token', 'invalid_token')
  if (bootstrapKey?.isThis(token)) return BOOTSTRAP
  const key = await apiKeys.find(token, nowMs())
  if (key === null || key.revokedAtMs !== null)
    throw refuse('invalid_token', 'this key is not known here', 'invalid_token')
  if (key.expiresAtMs !== null && key.expiresAtMs <= nowMs())
    throw refuse('expired_token', 'this key has expired', 'invalid_token')
  apiKeys.used(key, nowMs())
  return principalOf(key)
}

/** Who guesses is told to wait; a good credential from the same address is as good as before. */
async function afterFailure(
  refusal: Refusal,
  address: string,
  requestId: string,
  { failureThrottle, store, log, nowMs }: Management,
): Promise<Refusal> {
  const throttled = failureThrottle.failed(address, nowMs())
  if (throttled.kind === 'may') return refusal
  if (throttled.isFirst) {
    const entry = { action: 'throttleAuthentication', subject: null, detail: { reason: refusal.code } }
    const nobody = { id: 'anonymous', address, requestId }
    await changed(store, nobody, entry, nowMs(), async () => undefined).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      log.warn('the audit log could not be written', { error })
    })
  }
  const detail = 'too many credentials from this address were refused; one that is good is taken at any time'
  return new Refusal('rate_limited', detail, { headers: { 'Retry-After': String(throttled.retryAfterS) } })
}

function challenge(publicUrl: string, error: string): string {
  const metadata = `resource_metadata="${publicUrl}/.well-known/oauth-protected-resource"`
  return `Bearer realm="gatehouse", ${error === '' ? '' : `error="${error}", `}${metadata}`
}

/** The scheme in any case (RFC 9110 §11.1). Tokens of RFC 6750 §2.1 and, for the bootstrap key, any other text. */
const BEARER = /^bearer +(\S.*)$/i
/** Who sends no credential does not guess. */
const GUESSES: ReadonlySet<unknown> = new Set<ProblemCode>(['invalid_token', 'expired_token'])
