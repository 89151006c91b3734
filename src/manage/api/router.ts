import Router from '@koa/router'
import type Koa from 'koa'
import { mayDo, type Principal } from '../auth/principal.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../refusal.ts'
import { readBody } from './body.ts'
import type { AnyOperation, Call } from './operation.ts'
import { pointerToZero, validated } from './validate.ts'

/** What the middleware before has found out about a request. */
export interface RequestState {
  requestId: string
  principal: Principal
}

export type RequestContext = Koa.ParameterizedContext<RequestState>

/** Every operation of the table at its path, behind `prefix`; what matches none is left to the next. */
export function routesOf(
  operations: readonly AnyOperation[],
  prefix: string,
  management: Management,
): Koa.Middleware<RequestState> {
  const router = new Router<RequestState>({ prefix, strict: true, sensitive: true })
  for (const operation of operations) {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, ':$1')
    const handler = (ctx: RequestContext & { params: Record<string, string> }) =>
      serve(ctx, operation, management)
    router.register(path, operation.method === 'GET' ? ['GET', 'HEAD'] : [operation.method], handler)
  }
  const routes = router.routes()
  return async (ctx, next) => {
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
  ctx: RequestContext & { params: Record<string, string> },
  operation: AnyOperation,
  management: Management,
): Promise<void> {
  const { principal, requestId } = ctx.state
  if (!mayDo(principal, operation.scopes)) throw insufficient(operation)
  const params: unknown = named(operation, ctx.params)
  const subject: unknown = await operation.find({ params, principal }, management)
  if (subject === null) throw notThere()
  const query: unknown = validated(operation.query, queryOf(ctx), 'query')
  const body: unknown =
    operation.body === null
      ? null
      : validated(operation.body, await readBody(ctx, operation.bodyBytesMax), 'body')
  const call: Call<unknown, unknown, unknown, unknown> = {
    ...{ params, query, body, subject, principal, requestId },
    address: ctx.req.socket.remoteAddress ?? '',
    target: ctx.url,
    ifMatch: ctx.get('If-Match') || null,
  }
  const answer = await operation.run(call, management)
  ctx.set({ ...answer.headers })
  ctx.status = operation.status
  ctx.body = answer.body
}

/** What cannot be the name of anything names nothing. */
function named(operation: AnyOperation, params: Record<string, string>): unknown {
  const result = operation.params.safeParse(params)
  if (!result.success || pointerToZero(params) !== null) throw notThere()
  return result.data
}

/** A name that comes twice is a list, which no parameter takes. */
function queryOf(ctx: RequestContext): Record<string, unknown> {
  const query: Record<string, unknown> = Object.create(null)
  for (const [name, value] of new URLSearchParams(ctx.querystring))
    query[name] = name in query ? [query[name], value].flat() : value
  return query
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
