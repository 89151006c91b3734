import type { RateLimitStore } from '../../../store/rate-limits.ts'
import { digestOf } from '../../../store/sealed.ts'
import { networkOf } from '../minute-throttle.ts'

export type MayTry =
  /** `isFirst`: in its window, of who tries this account from there. */
  | { readonly kind: 'may'; readonly isFirst: boolean }
  /** `isFirst`: it begins with this one. */
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly isFirst: boolean }

/**
 * How often passwords may be tried, counted in the database: by all processes together, and over a restart. Each try
 * counts before it is made, so that many at once are no more than many after each other; one that is right is taken back.
 */
export class SignInThrottle {
  readonly #counts: RateLimitStore
  readonly #nowMs: () => number

  constructor(counts: RateLimitStore, nowMs: () => number) {
    this.#counts = counts
    this.#nowMs = nowMs
  }

  /** `email`: `null` where nobody says who they are before it is shown. */
  async begin(email: string | null, address: string): Promise<MayTry> {
    let isFirst = false
    for (const { key, most } of limitsOf(email, address)) {
      const { points, endsAtMs } = await this.#counts.add(key, 1, WINDOW_MS, this.#nowMs())
      // Those after it are not counted: an address that guesses does not lock others out of the account.
      if (points > most) {
        const retryAfterS = Math.max(1, Math.ceil((endsAtMs - this.#nowMs()) / 1000))
        return { kind: 'throttled', retryAfterS, isFirst: points === most + 1 }
      }
      if (most === TRIES_MAX) isFirst = points === 1
    }
    return { kind: 'may', isFirst }
  }

  async succeeded(email: string | null, address: string): Promise<void> {
    for (const { key } of limitsOf(email, address)) await this.#counts.add(key, -1, WINDOW_MS, this.#nowMs())
  }
}

/** By digests: whose mail it is stands elsewhere, and what is typed into its place by mistake nowhere. */
function limitsOf(email: string | null, address: string) {
  const network = networkOf(address)
  const ofNetwork = { key: `sign-in:${digestOf('network', network)}`, most: NETWORK_TRIES_MAX }
  if (email === null) return [ofNetwork]
  return [
    ofNetwork,
    { key: `sign-in:${digestOf('network and account', network, email)}`, most: TRIES_MAX },
    // Who wants to lock somebody out for the rest of the window needs ten networks.
    { key: `sign-in:${digestOf('account', email)}`, most: ACCOUNT_TRIES_MAX },
  ]
}

const WINDOW_MS = 600_000
const TRIES_MAX = 10
/** Several people may be behind one address. */
const NETWORK_TRIES_MAX = 30
const ACCOUNT_TRIES_MAX = 100
