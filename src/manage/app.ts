import { randomUUID } from 'node:crypto'
import Koa from 'koa'
import { METRICS_TYPE } from '../metrics.ts'
import type { RequestState } from './api/router.ts'
import { cors } from './front/cors.ts'
import { representations } from './front/representation.ts'
import { createFrontServer, type ManageServer, type ServerSettings } from './front/server.ts'
import { STABILITY_HEADER, stabilityOf } from './front/stability.ts'
import type { Visit } from './front/traffic.ts'
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
  /** A request has come to its end. */
  answered?(visit: Visit): void
  /** Answers what is no probe, or leaves it to the next; there is none where only the data plane runs. */
  readonly api?: Koa.Middleware<RequestState>
}

export interface FrontSettings extends ServerSettings {
  /** Pages of which origins may use the API: `https://console.example`. */
  readonly corsOrigins: readonly string[]
}

export const FRONT_DEFAULTS: FrontSettings = {
  requestTimeoutMs: 30_000,
  connectionsMax: 1_000,
  hasTls: false,
  corsOrigins: [],
}

/** The management plane's HTTP side. */
export function createManageServer(context: ManageContext, settings = FRONT_DEFAULTS): ManageServer {
  const app = new Koa<RequestState>()
  // Whoever goes away in the middle of an answer is no failure of ours.
  app.on('error', (error: NodeJS.ErrnoException) => GONE.has(error.code ?? '') || context.failed(error))
  app.use(async (ctx, next) => {
    ctx.state.requestId = requestIdOf(ctx.get('X-Request-Id'))
    ctx.state.operation = 'none'
    ctx.set(EVERYWHERE)
    ctx.set('X-Request-Id', ctx.state.requestId)
    const stability = stabilityOf(ctx.url)
    if (stability !== null) ctx.set(STABILITY_HEADER, stability)
    const startMs = performance.now()
    ctx.res.once('close', () => context.answered?.(visitOf(ctx, performance.now() - startMs)))
    return next()
  })
  app.use(cors(settings.corsOrigins))
  app.use(problems(context.failed))
  app.use(representations())
  app.use(async (ctx, next) => {
    checkHead(ctx)
    const path = pathOf(ctx)
    const resource = RESOURCES.get(path)
    if (resource === undefined) return context.api === undefined ? next() : context.api(ctx, next)
    ctx.state.operation = 'probe'
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new Refusal('method_not_allowed', 'this can only be read', { headers: { Allow: 'GET, HEAD' } })
    await resource(ctx, context)
  })
  app.use(() => {
    throw new Refusal('not_found', 'there is nothing at this address')
  })
  return createFrontServer(settings, app.callback())
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

const HOST = 'host'

/** What no request may have, whatever it asks for. */
function checkHead(ctx: Koa.ParameterizedContext): void {
  const { rawHeaders, httpVersion } = ctx.req
  // Of two hosts, somebody in front of us may have read the other one (RFC 9112 §3.2).
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === HOST.length && rawHeaders[i]!.toLowerCase() === HOST) hosts++
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1'))
    throw new Refusal('invalid_request', 'a request has one Host header', { headers: CLOSE })
  const expected = ctx.get('Expect').toLowerCase()
  if (expected === '') return
  if (expected !== '100-continue')
    throw new Refusal('expectation_failed', 'only 100-continue can be expected', { headers: CLOSE })
  // Who is refused without a 100 may or may not send the body: what comes next could be either.
  ctx.set(CLOSE)
}

/** As sent: Koa's own `path` throws on what is no URL, and reads some other things as paths. */
function pathOf(ctx: Koa.ParameterizedContext): string {
  if (ctx.url.length > URL_LENGTH_MAX)
    throw new Refusal('uri_too_long', `an address may have ${URL_LENGTH_MAX} characters`)
  return ctx.url.split('?', 1)[0]!
}

function visitOf(ctx: Koa.ParameterizedContext<RequestState>, durationMs: number): Visit {
  const { operation, problem, principal, requestId } = ctx.state
  return {
    ...{ method: ctx.method, path: ctx.url.split('?', 1)[0]!.slice(0, URL_LENGTH_MAX), operation },
    ...{ status: ctx.res.statusCode, problem: problem ?? null, durationMs, requestId },
    isComplete: ctx.res.writableFinished,
    principal: (principal as typeof principal | undefined)?.id ?? null,
    address: ctx.req.socket.remoteAddress ?? '',
  }
}

/** The caller's own, where it is a sane one. */
function requestIdOf(given: string): string {
  return SANE_ID.test(given) ? given : randomUUID()
}

const EVERYWHERE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
const CLOSE = { Connection: 'close' }
const SANE_ID = /^[\w.:=-]{1,128}$/
/** Of the target; the longest that is of any use is a list of fingerprints to look up. */
const URL_LENGTH_MAX = 8_192
const GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECANCELED'])
