import { randomUUID } from 'node:crypto'
import Koa from 'koa'
import { type MetricsType, metricsTypeFor } from '../shared/metrics.ts'
import type { UnreadyReason } from '../plane/readiness.ts'
import type { RequestContext, RequestState } from './http/router.ts'
import { pathIn } from './http/front/address.ts'
import { ClientAddresses } from './http/front/client-address.ts'
import { putHead } from './http/front/head.ts'
import { isSent, represent } from './http/front/representation.ts'
import type { ProxyHeaderFault } from './http/front/proxy-header.ts'
import {
  createFrontServer,
  HEADERS_MAX,
  type ManageServer,
  type ServerSettings,
} from './http/front/server.ts'
import { STABILITY_HEADER, stabilityOf } from './http/front/stability.ts'
import type { FinishedRequest } from './http/front/traffic.ts'
import { sayProblem } from './http/problem.ts'
import { Refusal } from './http/refusal.ts'

/** What the management plane needs from the rest of the process. */
export interface ManageContext {
  /** Why this process should receive no requests now; empty if it may. */
  unready(): readonly UnreadyReason[]
  /** In the text format of Prometheus. */
  metrics(type: MetricsType): Promise<string>
  /** Reports a bug that occurred while answering. */
  failed(error: Error): void
  /** A request has ended. */
  answered?(visit: FinishedRequest): void
  /** A connection was closed because of its PROXY header. */
  refusedProxyHeader?(fault: ProxyHeaderFault): void
  /** Answers everything except probes and metrics, or calls `next`. Missing if only the data plane runs. */
  readonly api?: Koa.Middleware<RequestState>
}

export interface FrontSettings extends ServerSettings {
  /** The origins whose pages may use the API: `https://console.example`. */
  readonly corsOrigins: readonly string[]
}

export const FRONT_DEFAULTS: FrontSettings = {
  requestTimeoutMs: 30_000,
  connectionsMax: 1_000,
  hasTls: false,
  corsOrigins: [],
  trustedProxies: [],
  proxyProtocol: 'off',
}

/** The HTTP side of the management plane. */
export function createManageServer(context: ManageContext, settings = FRONT_DEFAULTS): ManageServer {
  const app = new Koa<RequestState>()
  // A client that disconnects during an answer is not an error.
  app.on('error', (error: NodeJS.ErrnoException) => GONE.has(error.code ?? '') || context.failed(error))
  const isPreflight = cors(settings.corsOrigins)
  const addresses = new ClientAddresses(settings.trustedProxies)
  const links = {
    addresses,
    refusedProxyHeader: (fault: ProxyHeaderFault) => context.refusedProxyHeader?.(fault),
  }
  // One function instead of a chain: each link costs a closure, a promise and a turn of the queue per
  // request.
  const answered = async (ctx: RequestContext): Promise<boolean> => {
    ctx.state.address = addresses.of(ctx.req)
    begin(ctx, context)
    if (isPreflight(ctx)) {
      putHead(ctx)
      return false
    }
    // After this tick, the bytes that came with the head have been read. Most bodies are complete then and
    // need no more waiting.
    await null
    try {
      const answering = answer(ctx, context)
      if (answering instanceof Promise) await answering
      if (isSent(ctx)) return true
      await represent(ctx)
    } catch (error) {
      putHead(ctx)
      sayProblem(ctx, error, context.failed)
    }
    return false
  }
  return createFrontServer(settings, links, (req, res) => {
    const ctx = app.createContext<RequestState>(req, res)
    res.statusCode = 404
    answered(ctx).then(
      (isSent) => (isSent ? undefined : sendByKoa(app, ctx, null)),
      (error: unknown) => sendByKoa(app, ctx, error),
    )
  })
}

/** Hands the response to Koa only when Koa sends it: Koa adds listeners to every response that it handles. */
function sendByKoa(app: Koa<RequestState>, ctx: RequestContext, error: unknown): Promise<void> {
  const { statusCode } = ctx.res
  return (app as unknown as KoaSending).handleRequest(ctx, async () => {
    ctx.res.statusCode = statusCode
    if (error !== null) throw error
  })
}

/** The part of Koa without a public type. Sends what `answer` leaves in the context, or its error. */
interface KoaSending {
  handleRequest(ctx: RequestContext, answer: () => Promise<void>): Promise<void>
}

function begin(ctx: RequestContext, context: ManageContext): void {
  const { req, res, state } = ctx
  state.requestId = requestIdOf(req.headers['x-request-id'])
  state.operation = 'none'
  state.head = [...EVERYWHERE, 'X-Request-Id', state.requestId]
  const stability = stabilityOf(req.url!)
  if (stability !== null) state.head.push(STABILITY_HEADER, stability)
  const startMs = performance.now()
  res.on('close', () => context.answered?.(visitOf(ctx, performance.now() - startMs)))
}

function answer(ctx: RequestContext, context: ManageContext): void | Promise<void> {
  checkHead(ctx)
  const resource = RESOURCES.get(pathOf(ctx))
  if (resource === undefined) return context.api === undefined ? nowhere() : context.api(ctx, nowhere)
  ctx.state.operation = 'probe'
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
    throw new Refusal('method_not_allowed', 'this can only be read', { headers: { Allow: 'GET, HEAD' } })
  return resource(ctx, context)
}

async function nowhere(): Promise<never> {
  throw new Refusal('not_found', 'there is nothing at this address')
}

type FrontResource = (ctx: RequestContext, context: ManageContext) => void | Promise<void>

/** Live as long as the process runs. If liveness depended on more, restarts would make an outage worse. */
const live: FrontResource = (ctx) => {
  ctx.body = { status: 'live' }
}

const ready: FrontResource = (ctx, context) => {
  const reasons = context.unready()
  ctx.status = reasons.length === 0 ? 200 : 503
  ctx.body = { status: reasons.length === 0 ? 'ready' : 'not-ready', reasons }
}

const metrics: FrontResource = async (ctx, context) => {
  const type = metricsTypeFor(ctx.get('Accept'))
  ctx.body = await context.metrics(type)
  ctx.set('Content-Type', type)
  ctx.vary('Accept')
}

const RESOURCES: ReadonlyMap<string, FrontResource> = new Map([
  ['/health/live', live],
  ['/health/ready', ready],
  // The default names of Kubernetes and load balancers.
  ['/healthz', live],
  ['/livez', live],
  ['/readyz', ready],
  ['/metrics', metrics],
])

const HOST = 'host'

/** Rejects requests with a head that is invalid for every resource. */
function checkHead(ctx: RequestContext): void {
  const { rawHeaders, headers, httpVersion } = ctx.req
  // With two Host headers, a proxy in front may have read the other one (RFC 9112 §3.2).
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === HOST.length && rawHeaders[i]!.toLowerCase() === HOST) hosts++
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1'))
    throw new Refusal('invalid_request', 'a request has one Host header', { headers: CLOSE })
  // Node drops the headers above its limit, and these may be the ones that the previous hop added.
  if (rawHeaders.length > HEADERS_MAX * 2)
    throw new Refusal('header_too_large', `a request may have ${HEADERS_MAX} headers`, { headers: CLOSE })
  if (!headers.expect) return
  if (headers.expect.toLowerCase() !== '100-continue')
    throw new Refusal('expectation_failed', 'only 100-continue can be expected', { headers: CLOSE })
  // A client that is refused without a 100 may or may not send the body, so the next bytes are ambiguous.
  ctx.set(CLOSE)
}

/** The path as sent. Koa's own `path` throws on invalid URLs and accepts some other input as paths. */
function pathOf({ req }: RequestContext): string {
  const url = req.url!
  if (url.length > URL_LENGTH_MAX)
    throw new Refusal('uri_too_long', `an address may have ${URL_LENGTH_MAX} characters`)
  return pathIn(url)
}

function visitOf({ req, res, state }: RequestContext, durationMs: number): FinishedRequest {
  const { operation, problem, principal, requestId, address } = state
  return {
    method: req.method!,
    path: pathIn(req.url!).slice(0, URL_LENGTH_MAX),
    operation,
    status: res.statusCode,
    problem: problem ?? null,
    durationMs,
    isComplete: res.writableFinished,
    principal: (principal as typeof principal | undefined)?.id ?? null,
    address,
    requestId,
  }
}

/** The caller's request id if it is valid, else a new one. */
function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID()
}

const EVERYWHERE = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'] as const
const CLOSE = { Connection: 'close' }
const SANE_ID = /^[\w.:=-]{1,128}$/
/** Of the request target. The longest useful one is a list of fingerprints to look up. */
const URL_LENGTH_MAX = 8_192
const GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ECANCELED'])

/**
 * Lets pages of these origins use the API. Cookies grant no access to it, so credentials are never allowed.
 * Any other origin learns only that it is not on the list. Returns `true` if the request was a preflight,
 * which is then answered.
 */
function cors(origins: readonly string[]): (ctx: RequestContext) => boolean {
  const allowed = new Set(origins)
  return (ctx) => {
    if (allowed.size === 0) return false
    ctx.vary('Origin')
    const origin = ctx.get('Origin')
    if (!allowed.has(origin)) return false
    ctx.set('Access-Control-Allow-Origin', origin)
    if (ctx.method !== 'OPTIONS' || ctx.get('Access-Control-Request-Method') === '') {
      ctx.set('Access-Control-Expose-Headers', EXPOSED)
      return false
    }
    ctx.set({
      'Access-Control-Allow-Methods': METHODS,
      'Access-Control-Allow-Headers': ASKED,
      'Access-Control-Max-Age': String(PREFLIGHT_S),
    })
    ctx.status = 204
    ctx.state.operation = 'preflight'
    return true
  }
}

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE'
const ASKED =
  'Authorization, Content-Type, Content-Encoding, DPoP, Idempotency-Key, If-Match, If-None-Match, X-Request-Id, Content-Digest, Signature, Signature-Input, Signature-Agent, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, A2A-Version, A2A-Extensions'
const EXPOSED = [
  ...['ETag', 'Link', 'Location', 'RateLimit', 'RateLimit-Policy', 'Retry-After', 'X-Request-Id'],
  ...['Idempotency-Replayed', 'WWW-Authenticate', 'X-API-Stability', 'Mcp-Session-Id', 'DPoP-Nonce'],
].join(', ')
/** Chromium caches a preflight for at most two hours. */
const PREFLIGHT_S = 7_200
