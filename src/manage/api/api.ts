import type Koa from 'koa'
import { authenticated } from '../auth/authenticate.ts'
import { addHeaders } from '../front/head.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../refusal.ts'
import { VERSIONS } from './operations.ts'
import { type RequestState, routesOf } from './router.ts'

/**
 * The API, behind the prefix of each version. The order in which things are said: who are you (401), not so fast (429),
 * there is no such path (404, 405), you may not (403), it is not there (404), that is not how to ask (400).
 */
export function api(management: Management): Koa.Middleware<RequestState> {
  const versions = VERSIONS.map(({ operations, prefix }) => ({
    prefix,
    routes: routesOf(operations, prefix, management),
  }))
  return async (ctx, next) => {
    const principal = await authenticated(ctx, management)
    ctx.state.principal = principal
    const { isExceeded, retryAfterSeconds, headers } = await management.rateLimits.count(principal)
    addHeaders(ctx.state.head, headers)
    if (isExceeded)
      throw new Refusal('rate_limited', `this plan has no requests left for ${retryAfterSeconds} s`, {
        headers: { 'Retry-After': String(retryAfterSeconds) },
      })
    const version = versions.find(({ prefix }) => ctx.req.url!.startsWith(prefix))
    await (version === undefined ? next() : version.routes(ctx, next))
  }
}
