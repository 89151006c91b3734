import { ALL_APPS } from '../../apps/app-scope.ts'
import { Fault } from '../../shared/fault.ts'
import type { Log } from '../../shared/log.ts'
import type { Store } from '../../store/store.ts'
import { changed } from '../http/audit.ts'
import { digestOf } from '../../store/engine/sealed.ts'
import { clientNetwork } from '../../wire/ip-address.ts'
import { Refusal } from '../http/refusal.ts'
import type { MinuteThrottle } from './minute-throttle.ts'

/** The parts of the management plane that counting failures needs. */
interface FailureCounting {
  readonly failureThrottle: MinuteThrottle
  readonly store: Store
  readonly log: Log
  nowMs(): number
}

/** Throttles an address after too many failures. A valid credential from the same address still works. */
export async function refusalAfterFailure(
  refusal: Refusal,
  address: string,
  requestId: string,
  { failureThrottle, store, log, nowMs }: FailureCounting,
): Promise<Refusal> {
  const throttled = failureThrottle.count(address, nowMs())
  if (throttled.kind === 'may') return refusal
  if (throttled.isFirst) {
    const entry = {
      action: 'throttleAuthentication',
      subject: null,
      apps: ALL_APPS,
      detail: { reason: refusal.code },
    } as const
    const anonymous = { id: 'anonymous', address, requestId }
    try {
      if (await isFirstOfAll(store, address, throttled.retryAfterS * 1000, nowMs()))
        await changed(store, anonymous, entry, nowMs(), async () => undefined)
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      log.warn('could not write the audit log', { error })
    }
  }
  const detail = 'too many invalid credentials from this address; valid ones are still accepted'
  return new Refusal('rate_limited', detail, { headers: { 'Retry-After': String(throttled.retryAfterS) } })
}

/** Two processes can reach the limit at the same time, because neither knows the other's latest count. */
async function isFirstOfAll(store: Store, address: string, leftMs: number, nowMs: number): Promise<boolean> {
  const key = `throttled:${digestOf('network', clientNetwork(address))}`
  return (await store.rateLimits.add(key, 1, leftMs, nowMs)).points === 1
}
