import Router from '@koa/router'
import type Koa from 'koa'
import { mayDo, type Principal } from '../auth/principal.ts'
import type { Management } from '../management.ts'
import { withoutCodings } from '../front/entity-tags.ts'
import { invalid, Refusal } from '../refusal.ts'
import { type CheckBody, readBody, readNoBody } from './body.ts'
import { Idempotency } from './idempotency.ts'
import type { AnyOperation, Call } from './operation.ts'
import { pointerToZero, validated } from './validate.ts'

/** What the middleware before has found out about a request. */
export interface RequestState {
  requestId: string
  principal: Principal
  /** What is counted: the id of an operation; `probe`, `document`, `gnap`, `preflight`; `none`. */
  operation: string
  /** The code of the problem that it is answered with. */
  problem?: string
  /** The same for everybody. */
  isPublic?: boolean
  /** Left by who knows how the body was signed, for who reads it. */
  checkBody?: CheckBody
}

export type RequestContext = Koa.ParameterizedContext<RequestState>
type RoutedContext = RequestContext & { params: Record<string, string> }

/** Every operation of the table at its path, behind `prefix`; what matches none is left to the next. */
export function routesOf(
  operations: readonly AnyOperation[],
  prefix: string,
  management: Management,
): Koa.Middleware<RequestState> {
  const router = new Router<RequestState>({ prefix, strict: true, sensitive: true })
  const idempotency = new Idempotency(management)
  for (const operation of operations) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const handler = (ctx: RoutedContext) => serve(ctx, operation, management, idempotency)
    router.register(path, operation.method === 'GET' ? ['GET', 'HEAD'] : [operation.method], handler)
  }
  const routes = router.routes()
  // Most requests are for a path without a name in it, which is found at once.
  const fixed = new Map(
    operations
      .filter(({ path }) => !path.includes('{'))
      .map((operation) => [`${operation.method} ${prefix}${operation.path}`, operation]),
  )
  return async (ctx, next) => {
    const found = fixed.get(`${ctx.method} ${ctx.path}`)
    if (found !== undefined) {
      return serve(Object.assign(ctx, { params: NO_PARAMS }), found, management, idempotency)
    }
    const { pathAndMethod, path } = router.match(ctx.path, ctx.method)
    if (pathAndMethod.length > 0) return routes(ctx as never, next)
    if (path.length === 0) return next()
    const allowed = new Set(path.flatMap(({ methods }) => methods))
    throw new Refusal('method_not_allowed', `this takes ${[...allowed].join(', ')}`, {
      headers: { Allow: [...allowed].join(', ') },
    })
  }
}

/** The life of a request to the API, from where it is known who asks. */
async function serve(
  ctx: RoutedContext,
  operation: AnyOperation,
  management: Management,
  idempotency: Idempotency,
): Promise<void> {
  ctx.state.operation = operation.id
  const { principal, requestId } = ctx.state
  if (!mayDo(principal, operation.scopes)) throw insufficient(operation)
  const params: unknown = ctx.params === NO_PARAMS ? NO_PARAMS : named(operation, ctx.params)
  const subject: unknown = await operation.find({ params, principal }, management)
  if (subject === null) throw notThere()
  const query: unknown = validated(operation.query, queryOf(ctx), 'query')
  const sent = operation.body === null ? await readNoBody(ctx) : await readBody(ctx, operation.bodyBytesMax)
  const body: unknown = operation.body === null ? null : validated(operation.body, sent, 'body')
  const call: Call<unknown, unknown, unknown, unknown> = {
    ...{ params, query, body, subject, principal, requestId },
    address: ctx.req.socket.remoteAddress ?? '',
    target: ctx.url,
    ifMatch: withoutCodings(ctx.get('If-Match')) || null,
  }
  const run = async () => {
    const answer = await operation.run(call, management)
    return { status: operation.status, headers: answer.headers ?? {}, body: answer.body as unknown }
  }
  const key = operation.isIdempotent ? ctx.headers['idempotency-key'] : undefined
  const asked = { principal: principal.id, method: ctx.method, target: ctx.url, body: sent }
  const answer = key === undefined ? await run() : await idempotency.once(String(key), asked, run)
  ctx.set({ ...answer.headers })
  ctx.status = answer.status
  ctx.body = answer.body
}

/** What cannot be the name of anything names nothing. */
function named(operation: AnyOperation, params: Record<string, string>): unknown {
  const result = operation.params.safeParse(params)
  if (!result.success || pointerToZero(params) !== null) throw notThere()
  return result.data
}

/** Strictly: what a lenient reader makes of a damaged query is not what was meant. */
function queryOf(ctx: RequestContext): Record<string, unknown> {
  const text = ctx.querystring
  if (text === '') return NO_QUERY
  if (!isWellEncoded(text.replaceAll('+', ' ')))
    throw new Refusal('invalid_request', 'the query is not percent-encoded UTF-8')
  const query: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in query) throw invalid([{ pointer: `/${name}`, detail: 'is given more than once' }])
    query[name] = value
  }
  return query
}

function isWellEncoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function insufficient({ scopes }: AnyOperation): Refusal {
  const needed = scopes.join(' or ')
  return new Refusal('insufficient_scope', `this needs the scope ${needed}`, {
    headers: { 'WWW-Authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` },
  })
}

function notThere(): Refusal {
  return new Refusal('not_found', 'there is nothing of this name')
}

const NO_QUERY: Record<string, unknown> = Object.freeze({})
const NO_PARAMS: Record<string, string> = Object.freeze({})
