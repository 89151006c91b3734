import { MinuteThrottle, type SharedCounts } from '../minute-throttle.ts'
import { OAuthError } from './answer.ts'

/**
 * Whoever begins to ask for a code leaves a record that is kept for ten minutes, be it a client or anybody with its id: so
 * many a minute, from one network and from all.
 */
export class Beginnings {
  readonly #fromNetwork = new MinuteThrottle(FROM_NETWORK_PER_MINUTE)
  readonly #fromAll = new MinuteThrottle(FROM_ALL_PER_MINUTE)

  /** One more. Throws an OAuthError where that is too many. */
  count(address: string, nowMs: number): void {
    const fromNetwork = this.#fromNetwork.count(address, nowMs)
    // Who is refused already takes nothing from the others.
    const throttled = fromNetwork.kind === 'throttled' ? fromNetwork : this.#fromAll.count(ALL, nowMs)
    if (throttled.kind === 'may') return
    const whence = throttled === fromNetwork ? 'from this address' : 'by everybody together'
    throw new OAuthError(429, 'temporarily_unavailable', `too much was asked for ${whence}: wait a moment`, {
      'Retry-After': String(throttled.retryAfterS),
    })
  }

  async share(counts: SharedCounts, nowMs: number): Promise<void> {
    await this.#fromNetwork.share(counts, 'oauth from', nowMs)
    await this.#fromAll.share(counts, 'oauth from all', nowMs)
  }
}

const ALL = ''
/** An office behind one address has fewer. */
const FROM_NETWORK_PER_MINUTE = 120
/** Twelve thousand records at most, of some kilobytes each. */
const FROM_ALL_PER_MINUTE = 1_200
