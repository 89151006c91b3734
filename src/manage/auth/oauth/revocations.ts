import { MinuteThrottle } from '../minute-throttle.ts'
import { OAuthError } from './answer.ts'

/**
 * Each access token that is revoked is remembered until it would have been over, by every process: so many a minute, of one
 * client and of all. What is not revoked is over by itself within ten minutes.
 */
export class Revocations {
  readonly #ofClient = new MinuteThrottle(OF_CLIENT_PER_MINUTE)
  readonly #ofAll = new MinuteThrottle(OF_ALL_PER_MINUTE)

  /** One more. Throws an OAuthError where that is too many. */
  count(client: string, nowMs: number): void {
    const ofClient = this.#ofClient.count(client, nowMs)
    // Who is refused already takes nothing from the others.
    const throttled = ofClient.kind === 'throttled' ? ofClient : this.#ofAll.count(ALL, nowMs)
    if (throttled.kind === 'may') return
    throw new OAuthError(429, 'temporarily_unavailable', 'too many tokens were revoked: wait a moment', {
      'Retry-After': String(throttled.retryAfterS),
    })
  }
}

const ALL = ''
const OF_CLIENT_PER_MINUTE = 600
/** Some ten megabytes, for twelve minutes. */
const OF_ALL_PER_MINUTE = 6_000
