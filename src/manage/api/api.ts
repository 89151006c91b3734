import type Koa from 'koa'
import { authentication } from '../auth/authenticate.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../refusal.ts'
import { VERSIONS } from './operations.ts'
import { type RequestState, routesOf } from './router.ts'

/**
 * The API, behind the prefix of each version. The order in which things are said: who are you (401), not so fast (429),
 * there is no such path (404, 405), you may not (403), it is not there (404), that is not how to ask (400).
 */
export function api(management: Management): Koa.Middleware<RequestState> {
  const authenticate = authentication(management)
  const versions = VERSIONS.map(({ operations, prefix }) => ({
    prefix,
    routes: routesOf(operations, prefix, management),
  }))
  return (ctx) =>
    authenticate(ctx, async () => {
      const { isExceeded, retryAfterSeconds, headers } = await management.rateLimits.count(
        ctx.state.principal,
      )
      ctx.set(headers)
      if (isExceeded)
        throw new Refusal('rate_limited', `this plan has no requests left for ${retryAfterSeconds} s`, {
          headers: { 'Retry-After': String(retryAfterSeconds) },
        })
      const version = versions.find(({ prefix }) => ctx.url.startsWith(prefix))
      await (version === undefined ? nowhere() : version.routes(ctx, nowhere))
    })
}

async function nowhere(): Promise<never> {
  throw new Refusal('not_found', 'there is nothing at this address')
}
