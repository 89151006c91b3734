import { ALL_APPS } from '../../../apps/app-scope.ts'
import { Refusal } from '../refusal.ts'
import type { Principal } from './principal.ts'

/**
 * What an operation gives to a principal that is limited to some apps.
 *
 * - `shared`: the same as to every other. The answer depends on no traffic.
 * - `filtered`: only objects of its apps. All others do not exist for it.
 * - `own`: only objects that the principal made itself.
 * - `organisation`: nothing. The operation is about the whole installation.
 */
export type Reach = 'shared' | 'filtered' | 'own' | 'organisation'

export function isInReach({ apps }: Principal, reach: Reach): boolean {
  return apps === ALL_APPS || reach !== 'organisation'
}

/** Throws a Refusal before any object is looked up, so that it is the same for every object. */
export function checkReach(principal: Principal, { reach }: { readonly reach: Reach }): void {
  if (!isInReach(principal, reach))
    throw new Refusal('needs_all_apps', 'this is about all apps, and these credentials are limited to some')
}
