import { createServer, type Server } from 'node:http'
import Koa from 'koa'
import { METRICS_TYPE } from '../metrics.ts'

/** What the management plane asks the rest of the process. */
export interface ManageContext {
  /** Why no traffic should come here now, in words for an operator; none when it may. */
  unready(): readonly string[]
  /** In the text form that Prometheus reads. */
  metrics(): Promise<string>
  /** A bug of ours, met while answering. */
  failed(error: Error): void
}

/** The management plane's HTTP side: probes and metrics until the API joins them. */
export function createManageServer(context: ManageContext): Server {
  const app = new Koa()
  app.on('error', (error: Error) => context.failed(error))
  app.use(problems)
  app.use(async (ctx) => {
    // As sent: Koa's own `path` throws on what is no URL, and reads some other things as paths.
    const resource = RESOURCES.get(ctx.url.split('?', 1)[0]!)
    if (resource === undefined) return problem(ctx, 404, 'not-found', 'There is nothing at this address.')
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('Allow', 'GET, HEAD')
      return problem(ctx, 405, 'method-not-allowed', 'This can only be read.')
    }
    await resource(ctx, context)
  })
  return createServer(LIMITS, app.callback())
}

type Resource = (ctx: Koa.Context, context: ManageContext) => void | Promise<void>

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

/** What goes wrong in here is told to the log in full and to the caller not at all. */
async function problems(ctx: Koa.Context, next: Koa.Next): Promise<void> {
  ctx.set('Cache-Control', 'no-store')
  ctx.set('X-Content-Type-Options', 'nosniff')
  try {
    await next()
  } catch (error) {
    problem(ctx, 500, 'internal', 'This is a bug in Gatehouse; its log says more.')
    ctx.app.emit('error', error instanceof Error ? error : new Error(String(error)))
  }
}

/** RFC 9457. */
function problem(ctx: Koa.Context, status: number, code: string, detail: string): void {
  ctx.status = status
  ctx.body = { type: 'about:blank', title: ctx.message, status, detail, code }
  ctx.type = 'application/problem+json'
}

/** Probes and scrapers are few and quick; anything else is in the wrong place. */
const LIMITS = {
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  keepAliveTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
}
