import type Koa from 'koa'
import { admit } from '../auth/admission.ts'
import type { Management } from '../management.ts'
import { VERSIONS } from './operations.ts'
import { type RequestState, routesOf } from '../http/router.ts'
import { streamer } from './streamer.ts'

/**
 * The API, behind the prefix of each version. The order in which things are said: who are you (401), not so fast (429),
 * there is no such path (404, 405), you may not (403), it is not there (404), that is not how to ask (400).
 */
export function api(management: Management): Koa.Middleware<RequestState> {
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
