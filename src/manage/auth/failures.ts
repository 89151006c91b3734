import { Fault } from '../../fault.ts'
import type { Log } from '../../log.ts'
import type { Store } from '../../store/store.ts'
import { changed } from '../audit.ts'
import { Refusal } from '../refusal.ts'
import type { MinuteThrottle } from './minute-throttle.ts'

/** What counting failures needs of the management plane. */
export interface FailureCounting {
  readonly failureThrottle: MinuteThrottle
  readonly store: Store
  readonly log: Log
  nowMs(): number
}

/** Who guesses is told to wait; a good credential from the same address is as good as before. */
export async function refusalAfterFailure(
  refusal: Refusal,
  address: string,
  requestId: string,
  { failureThrottle, store, log, nowMs }: FailureCounting,
): Promise<Refusal> {
  const throttled = failureThrottle.count(address, nowMs())
  if (throttled.kind === 'may') return refusal
  if (throttled.isFirst) {
    const entry = { action: 'throttleAuthentication', subject: null, detail: { reason: refusal.code } }
    const nobody = { id: 'anonymous', address, requestId }
    await changed(store, nobody, entry, nowMs(), async () => undefined).catch((error: unknown) => {
      if (!(error instanceof Fault)) throw error
      log.warn('the audit log could not be written', { error })
    })
  }
  const detail = 'too many credentials from this address were refused; one that is good is taken at any time'
  return new Refusal('rate_limited', detail, { headers: { 'Retry-After': String(throttled.retryAfterS) } })
}
