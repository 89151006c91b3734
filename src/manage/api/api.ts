import type Koa from 'koa'
import { admit } from '../auth/admission.ts'
import type { ApiContext } from './context.ts'
import { VERSIONS } from './operations.ts'
import { type RequestState, routesOf, type SayStream, type SendFile } from '../http/router.ts'
import { Readable } from 'node:stream'
import type { Principal, Scope } from '../http/access/principal.ts'
import { beginStream } from '../auth/stream-life.ts'
import { addHeaders } from '../http/front/head.ts'
import { sayEvents, sayEventStream } from '../events/event-stream.ts'
import { sightOf } from '../intake/personal-data.ts'
import { Refusal } from '../http/refusal.ts'

/**
 * The API, under the prefix of each version. The checks run in this order: authentication (401), rate limit
 * (429), path and method (404, 405), scopes (403), resource (404), query and body (400).
 */
export function api(management: ApiContext): Koa.Middleware<RequestState> {
  const senders = { sayStream: streamer(management), sendFile: fileSender(management) }
  const versions = VERSIONS.map(({ operations, prefix }) => ({
    prefix,
    routes: routesOf(operations, prefix, management, senders),
  }))
  return (ctx, next) => {
    const routed = () => {
      const version = versions.find(({ prefix }) => ctx.req.url!.startsWith(prefix))
      return version === undefined ? next() : version.routes(ctx, next)
    }
    const admitting = admit(ctx, management)
    return admitting instanceof Promise ? admitting.then(routed) : routed()
  }
}

/**
 * Answers as Server-Sent Events if `Accept` prefers them. A client that accepts anything gets JSON, because
 * JSON ends.
 */
function streamer(management: ApiContext): SayStream<ApiContext> {
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

/** Sends a file as fast as the client reads it. It ends early like a stream, and then breaks the connection. */
function fileSender(management: ApiContext): SendFile<ApiContext> {
  return (ctx, { scopes }, { name, type, parts }) => {
    addHeaders(ctx.state.head, {
      'Cache-Control': 'no-store, no-transform',
      'Content-Disposition': `attachment; filename="${name}"`,
    })
    const file =
      ctx.method === 'HEAD'
        ? []
        : parts(beginStream(ctx, management, lastingScopes(ctx.state.principal, scopes)).over)
    const body = Readable.from(file, { objectMode: false })
    body.once('error', () => ctx.res.destroy())
    ctx.status = 200
    ctx.body = body
    ctx.set('Content-Type', TEXT_TYPE.test(type) ? `${type}; charset=utf-8` : type)
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
/** A type of text that does not say how it is encoded. */
const TEXT_TYPE = /^text\/|json$/
