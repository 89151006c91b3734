import { Readable } from 'node:stream'
import type { Principal, Scope } from '../http/access/principal.ts'
import { beginStream } from '../auth/stream-life.ts'
import { sayEvents, sayEventStream } from '../events/event-stream.ts'
import type { ApiContext } from './context.ts'
import { sightOf } from '../intake/personal-data.ts'
import { Refusal } from '../http/refusal.ts'
import type { SayStream } from '../http/router.ts'

/**
 * Answers as Server-Sent Events if `Accept` prefers them. A client that accepts anything gets JSON, because
 * JSON ends.
 */
export function streamer(management: ApiContext): SayStream<ApiContext> {
  return async (ctx, { stream, scopes }, call) => {
    if (stream === null) return false
    ctx.vary('Accept')
    const type = ctx.accepts(JSON_TYPE, EVENTS)
    if (type === false)
      throw new Refusal(
        'not_acceptable',
        `only ${EVENTS} and ${JSON_TYPE} are available: send one of them as Accept`,
      )
    if (type === JSON_TYPE) return false
    const events = await stream.begin(call, management)
    if (ctx.method === 'HEAD') sayEventStream(ctx, Readable.from([]))
    else sayEvents(ctx, events(beginStream(ctx, management, lastingScopes(call.principal, scopes)).over))
    return true
  }
}

/**
 * The scopes that the principal must keep while the stream is open. What a stream shows is fixed when it
 * begins, so a principal that loses the scope `admin` has to begin a new one.
 */
function lastingScopes(principal: Principal, scopes: readonly Scope[]): readonly Scope[] {
  return sightOf(principal) === 'full' ? ['admin'] : scopes
}

const EVENTS = 'text/event-stream'
const JSON_TYPE = 'application/json'
