import { hasAllOf } from '../../apps/app-scope.ts'
import type { RequestContext } from '../http/router.ts'
import type { AuthContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'
import { agentNow, isSignedByAgent } from './agent-signature.ts'
import { authenticated } from './authenticate.ts'
import { goodGnapToken, presentedToken } from './gnap/presented.ts'
import { goodToken } from './oauth/presented.ts'
import type { Resource } from '../http/access/resources.ts'
import { mayDo, type Principal, type Scope } from '../http/access/principal.ts'

/** The lifetime of a stream: until the client disconnects, its time is up, or it loses access. */
interface StreamLife {
  /** Aborted when the stream must end for any reason. */
  readonly over: AbortSignal
  /** Aborted when the client disconnects first. */
  readonly left: AbortSignal
}

/**
 * Starts a stream for an authenticated caller. Throws a Refusal if too many streams are open. `scopes`: the
 * caller needs one of these.
 */
export function beginStream(
  ctx: RequestContext,
  management: AuthContext,
  scopes: readonly Scope[],
  resource: Resource = 'v1',
): StreamLife {
  const { principal } = ctx.state
  const leave = management.streams.enter(principal.id)
  const left = new AbortController()
  const over = new AbortController()
  const end = () => over.abort()
  const endsInMs = Math.min(STREAM_MS_MAX, (principal.expiresAtMs ?? Infinity) - management.nowMs())
  const timer = setTimeout(end, endsInMs).unref()
  const look = async () => {
    if (!(await stillMay(ctx, management, scopes, resource))) end()
  }
  const watch = setInterval(() => void look(), WATCH_MS).unref()
  ctx.res.once('close', () => {
    clearTimeout(timer)
    clearInterval(watch)
    leave()
    if (!over.signal.aborted) left.abort()
    end()
  })
  return { over: over.signal, left: left.signal }
}

/** If the check itself fails, the stream continues. */
async function stillMay(
  ctx: RequestContext,
  management: AuthContext,
  scopes: readonly Scope[],
  resource: Resource,
): Promise<boolean> {
  try {
    const now = await principalNow(ctx, management, resource)
    return mayDo(now, scopes) && hasAllOf(now.apps, ctx.state.principal.apps)
  } catch (error) {
    // A 429 ends the stream too: a valid credential is never throttled.
    return !(error instanceof Refusal) || error.status >= 500
  }
}

/** The caller's current access. Proofs and signatures are single-use, so they are not checked again. */
async function principalNow(
  ctx: RequestContext,
  management: AuthContext,
  resource: Resource,
): Promise<Principal> {
  if (isSignedByAgent(ctx)) return agentNow(ctx.state.principal, management)
  const { authorization = '' } = ctx.req.headers
  const gnap = presentedToken(authorization)
  if (gnap !== null) return (await goodGnapToken(gnap, management)).principal
  const token = DPOP.exec(authorization)?.[1]
  if (token === undefined) return authenticated(ctx, management, resource)
  return (await goodToken({ scheme: 'dpop', token, resource }, management)).principal
}

const DPOP = /^dpop +(\S+)$/i
/** The same delay after which the API refuses a revoked credential. */
const WATCH_MS = 1_000
/** After this the client must connect and authenticate again. */
const STREAM_MS_MAX = 600_000
