import type { RequestContext } from '../api/router.ts'
import { addHeaders } from '../front/head.ts'
import type { Management } from '../management.ts'
import { Refusal } from '../refusal.ts'
import { authenticated } from './authenticate.ts'
import type { Resource } from './oauth/resources.ts'

/** Finds out who calls, and counts it. Throws a Refusal: who are you (401), not so fast (429). */
export async function admit(
  ctx: RequestContext,
  management: Management,
  resource: Resource = 'v1',
): Promise<void> {
  const principal = await authenticated(ctx, management, resource)
  ctx.state.principal = principal
  const { isExceeded, retryAfterSeconds, headers } = await management.rateLimits.count(principal)
  addHeaders(ctx.state.head, headers)
  if (isExceeded)
    throw new Refusal('rate_limited', `this plan has no requests left for ${retryAfterSeconds} s`, {
      headers: { 'Retry-After': String(retryAfterSeconds) },
    })
}
