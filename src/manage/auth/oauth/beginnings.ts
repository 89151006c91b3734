import { MinuteThrottle, type SharedCounts } from '../minute-throttle.ts'
import { OAuthError } from './answer.ts'

/**
 * Limits authorization requests per minute, per network and in total. Each one stores a record for ten
 * minutes, and knowing a client id is enough to send one.
 */
export class Beginnings {
  readonly #fromNetwork = new MinuteThrottle(FROM_NETWORK_PER_MINUTE)
  readonly #fromAll = new MinuteThrottle(FROM_ALL_PER_MINUTE)

  /** Counts one request. Throws an OAuthError if a limit is exceeded. */
  count(address: string, nowMs: number): void {
    const fromNetwork = this.#fromNetwork.count(address, nowMs)
    // A request refused for its network does not count towards the total.
    const throttled = fromNetwork.kind === 'throttled' ? fromNetwork : this.#fromAll.count(ALL, nowMs)
    if (throttled.kind === 'may') return
    const whence = throttled === fromNetwork ? 'from this address' : 'from all addresses'
    throw new OAuthError(429, 'temporarily_unavailable', `too many requests ${whence}: try again later`, {
      'Retry-After': String(throttled.retryAfterS),
    })
  }

  async share(counts: SharedCounts, nowMs: number): Promise<void> {
    await this.#fromNetwork.share(counts, 'oauth from', nowMs)
    await this.#fromAll.share(counts, 'oauth from all', nowMs)
  }
}

const ALL = ''
/** More than an office behind one address needs. */
const FROM_NETWORK_PER_MINUTE = 120
/** At most 12,000 records, a few kB each. */
const FROM_ALL_PER_MINUTE = 1_200
