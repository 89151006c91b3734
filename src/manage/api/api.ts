import type Koa from 'koa'
import { admit } from '../auth/admission.ts'
import type { ApiContext } from './context.ts'
import { VERSIONS } from './operations.ts'
import { type RequestState, routesOf } from '../http/router.ts'
import { streamer } from './streamer.ts'

/**
 * The API, under the prefix of each version. The checks run in this order: authentication (401), rate limit
 * (429), path and method (404, 405), scopes (403), resource (404), query and body (400).
 */
export function api(management: ApiContext): Koa.Middleware<RequestState> {
  const versions = VERSIONS.map(({ operations, prefix }) => ({
    prefix,
    routes: routesOf(operations, prefix, management, streamer(management)),
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
