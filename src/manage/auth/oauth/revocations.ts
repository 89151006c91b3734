import { MinuteThrottle } from '../minute-throttle.ts'
import { OAuthError } from './answer.ts'

/**
 * Limits revocations per minute, per client and in total: every process stores each revoked token until it
 * would have expired. A token that is not revoked expires within ten minutes.
 */
export class Revocations {
  readonly #ofClient = new MinuteThrottle(OF_CLIENT_PER_MINUTE)
  readonly #ofAll = new MinuteThrottle(OF_ALL_PER_MINUTE)

  /** Counts one revocation. Throws an OAuthError if a limit is exceeded. */
  count(client: string, nowMs: number): void {
    const ofClient = this.#ofClient.count(client, nowMs)
    // A request refused for its client does not count towards the total.
    const throttled = ofClient.kind === 'throttled' ? ofClient : this.#ofAll.count(ALL, nowMs)
    if (throttled.kind === 'may') return
    throw new OAuthError(429, 'temporarily_unavailable', 'too many tokens were revoked: try again later', {
      'Retry-After': String(throttled.retryAfterS),
    })
  }
}

const ALL = ''
const OF_CLIENT_PER_MINUTE = 600
/** About 10 MB, for twelve minutes. */
const OF_ALL_PER_MINUTE = 6_000
