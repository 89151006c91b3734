import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import Koa from 'koa'
import { METRICS_TYPE } from '../metrics.ts'
import type { RequestState } from './api/router.ts'
import { problems } from './problem.ts'
import { Refusal } from './refusal.ts'

/** What the management plane asks the rest of the process. */
export interface ManageContext {
  /** Why no traffic should come here now, in words for an operator; none when it may. */
  unready(): readonly string[]
  /** In the text form that Prometheus reads. */
  metrics(): Promise<string>
  /** A bug of ours, met while answering. */
  failed(error: Error): void
  /** Answers below /v1; there is none where only the data plane runs. */
  readonly api?: Koa.Middleware<RequestState>
}

/** The management plane's HTTP side. */
export function createManageServer(context: ManageContext): Server {
  const app = new Koa<RequestState>()
  app.on('error', (error: Error) => context.failed(error))
  app.use(async (ctx, next) => {
    ctx.state.requestId = requestIdOf(ctx.get('X-Request-Id'))
    ctx.set(EVERYWHERE)
    ctx.set('X-Request-Id', ctx.state.requestId)
    return next()
  })
  app.use(problems(context.failed))
  app.use(async (ctx, next) => {
    // As sent: Koa's own `path` throws on what is no URL, and reads some other things as paths.
    const path = ctx.url.split('?', 1)[0]!
    if (context.api !== undefined && (path === '/v1' || path.startsWith('/v1/')))
      return context.api(ctx, next)
    const resource = RESOURCES.get(path)
    if (resource === undefined) throw new Refusal('not_found', 'there is nothing at this address')
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new Refusal('method_not_allowed', 'this can only be read', { headers: { Allow: 'GET, HEAD' } })
    await resource(ctx, context)
  })
  return createServer(LIMITS, app.callback())
}

type Resource = (ctx: Koa.ParameterizedContext<RequestState>, context: ManageContext) => void | Promise<void>

/** The process runs, whatever it is able to do: who restarts it for less makes things worse. */
const live: Resource = (ctx) => {
  ctx.body = { status: 'live' }
}

const ready: Resource = (ctx, context) => {
  const reasons = context.unready()
  ctx.status = reasons.length === 0 ? 200 : 503
  ctx.body = { status: reasons.length === 0 ? 'ready' : 'not-ready', reasons }
}

const metrics: Resource = async (ctx, context) => {
  ctx.body = await context.metrics()
  ctx.set('Content-Type', METRICS_TYPE)
}

const RESOURCES: ReadonlyMap<string, Resource> = new Map([
  ['/health/live', live],
  ['/health/ready', ready],
  ['/metrics', metrics],
])

/** The caller's own, where it is a sane one. */
function requestIdOf(given: string): string {
  return SANE_ID.test(given) ? given : randomUUID()
}

const EVERYWHERE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
const SANE_ID = /^[\w.:=-]{1,128}$/
/** Probes and scrapers are few and quick; anything else is in the wrong place. */
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
}
