import type { RequestContext } from '../http/router.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../http/refusal.ts'
import { agentNow, isSignedByAgent } from './agent-signature.ts'
import { authenticated } from './authenticate.ts'
import { goodGnapToken, presentedToken } from './gnap/presented.ts'
import { goodToken } from './oauth/presented.ts'
import type { Resource } from '../http/access/resources.ts'
import { mayDo, type Principal, type Scope } from '../http/access/principal.ts'

/** How long somebody is answered: until they leave, their time is up, or they may not be here any more. */
export interface StreamLife {
  /** Aborted when nothing more is to be said. */
  readonly over: AbortSignal
  /** Aborted when they have left by themselves. */
  readonly left: AbortSignal
}

/** Of who was let in. Throws a Refusal where too many are answered already. `scopes`: one of these is needed. */
export function beginStream(
  ctx: RequestContext,
  management: Management,
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

/** What cannot be found out now changes nothing. */
async function stillMay(
  ctx: RequestContext,
  management: Management,
  scopes: readonly Scope[],
  resource: Resource,
): Promise<boolean> {
  try {
    return mayDo(await principalNow(ctx, management, resource), scopes)
  } catch (error) {
    // Whose credential is refused is told to wait, too, where many have been: a good one never is.
    return !(error instanceof Refusal) || error.status >= 500
  }
}

/** Who was let in, as they are now. A proof, and a signature, is good for one time only, and is not asked for again. */
async function principalNow(
  ctx: RequestContext,
  management: Management,
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
/** As soon as the API knows it. */
const WATCH_MS = 1_000
/** Who wants to listen for longer asks anew, and shows who they are anew. */
const STREAM_MS_MAX = 600_000
