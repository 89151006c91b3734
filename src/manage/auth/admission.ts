import type { RequestContext } from '../http/router.ts'
import { addHeaders } from '../http/front/head.ts'
import type { AuthContext } from './context.ts'
import { Refusal } from '../http/refusal.ts'
import { authenticated } from './authenticate.ts'
import type { Quota } from '../limits/rate-limits.ts'
import type { Resource } from '../http/access/resources.ts'
import type { Principal } from '../http/access/principal.ts'

/**
 * Authenticates the caller and counts the request against its limits. Synchronous if nothing has to be awaited.
 * Throws, or rejects with, a Refusal: 401 unauthenticated, 429 over the limit.
 */
export function admit(
  ctx: RequestContext,
  management: AuthContext,
  resource: Resource = 'v1',
): Promise<void> | void {
  const found = authenticated(ctx, management, resource)
  return found instanceof Promise
    ? found.then((principal) => counted(ctx, principal, management))
    : counted(ctx, found, management)
}

function counted(ctx: RequestContext, principal: Principal, management: AuthContext): Promise<void> | void {
  ctx.state.principal = principal
  const counting = management.rateLimits.count(principal)
  return counting instanceof Promise
    ? counting.then((quota) => sayQuota(ctx, quota))
    : sayQuota(ctx, counting)
}

function sayQuota({ state }: RequestContext, { isExceeded, what, retryAfterSeconds, headers }: Quota): void {
  addHeaders(state.head, headers)
  if (isExceeded)
    throw new Refusal(
      'rate_limited',
      `the quota of ${what} is used up: try again in ${retryAfterSeconds} s`,
      {
        headers: { 'Retry-After': String(retryAfterSeconds) },
      },
    )
}
