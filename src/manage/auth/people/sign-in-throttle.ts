import type { RateLimitStore } from '../../../store/traffic/rate-limits.ts'
import { digestOf } from '../../../store/engine/sealed.ts'
import { clientNetwork } from '../../../wire/ip-address.ts'

export type MayTry =
  /** `isFirst`: the first attempt of its kind in the window. Only this one gets an audit entry if it fails. */
  | { readonly kind: 'may'; readonly isFirst: boolean }
  /** `isFirst`: throttling begins with this attempt. */
  | Throttled

export interface Throttled {
  readonly kind: 'throttled'
  readonly retryAfterS: number
  readonly isFirst: boolean
}

/** What an attempt to sign in is counted by. */
export interface Attempted {
  readonly account: string
  readonly address: string
  /** The id of a device that the account has signed in on; `null`: unknown device. */
  readonly device: string | null
}

/** A count that attempts are added to. `isKind`: its first attempt is the first of its kind. */
interface Limit {
  readonly key: string
  readonly most: number
  readonly isKind: boolean
}

/**
 * Bounds attempts to sign in, counted in the database: for all processes together, and across restarts. An attempt is
 * counted before it is made, so that many at once are no more than many in turn; a successful one is taken back.
 *
 * Attempts from an unknown device are bounded per account and network, per account (guesses from many networks), and per
 * network (guesses at many accounts). Attempts from a known device are bounded by themselves: guesses from elsewhere lock
 * nobody out of a browser in which they have signed in.
 */
export class SignInThrottle {
  readonly #counts: RateLimitStore
  readonly #nowMs: () => number

  constructor(counts: RateLimitStore, nowMs: () => number) {
    this.#counts = counts
    this.#nowMs = nowMs
  }

  /** An attempt with a password. */
  begin(attempted: Attempted): Promise<MayTry> {
    return this.#begin(passwordLimits(attempted))
  }

  succeeded(attempted: Attempted): Promise<void> {
    return this.#takeBack(passwordLimits(attempted))
  }

  /** A signed-in person confirms their password. Attempts to sign in do not count: they are by others. */
  beginConfirming(account: string, address: string): Promise<MayTry> {
    return this.#begin(confirmLimits(account, address))
  }

  confirmed(account: string, address: string): Promise<void> {
    return this.#takeBack(confirmLimits(account, address))
  }

  /** A sign-in by an OpenID provider, which is asked about it. */
  beginOutside(address: string): Promise<MayTry> {
    return this.#begin(outsideLimits(address))
  }

  succeededOutside(address: string): Promise<void> {
    return this.#takeBack(outsideLimits(address))
  }

  /** A passkey that was refused. One cannot be guessed, so that a good one is taken however many were refused before. */
  failedPasskey(address: string): Promise<MayTry> {
    return this.#begin([limitOf('passkey', [clientNetwork(address)], PASSKEY_FAILURES_MAX, true)])
  }

  async #begin(limits: readonly Limit[]): Promise<MayTry> {
    let isFirst = false
    for (const { key, most, isKind } of limits) {
      const { points, endsAtMs } = await this.#counts.add(key, 1, WINDOW_MS, this.#nowMs())
      // The limits behind this one are not counted: guesses from one network use up nothing of other networks.
      if (points > most) {
        const retryAfterS = Math.max(1, Math.ceil((endsAtMs - this.#nowMs()) / 1000))
        return { kind: 'throttled', retryAfterS, isFirst: points === most + 1 }
      }
      if (isKind) isFirst = points === 1
    }
    return { kind: 'may', isFirst }
  }

  async #takeBack(limits: readonly Limit[]): Promise<void> {
    for (const { key } of limits) await this.#counts.add(key, -1, WINDOW_MS, this.#nowMs())
  }
}

function passwordLimits({ account, address, device }: Attempted): readonly Limit[] {
  if (device !== null) return [limitOf('device and account', [device, account], TRIES_MAX, true)]
  const network = clientNetwork(address)
  return [
    limitOf('network and account', [network, account], TRIES_MAX, true),
    limitOf('account', [account], ACCOUNT_TRIES_MAX, false),
    limitOf('network', [network], NETWORK_TRIES_MAX, false),
  ]
}

function confirmLimits(account: string, address: string): readonly Limit[] {
  return [
    limitOf('confirm: network and account', [clientNetwork(address), account], TRIES_MAX, true),
    limitOf('confirm: account', [account], ACCOUNT_TRIES_MAX, false),
  ]
}

function outsideLimits(address: string): readonly Limit[] {
  return [limitOf('outside', [clientNetwork(address)], OUTSIDE_TRIES_MAX, true)]
}

/** Keys are digests: people type passwords into the place of the address. */
function limitOf(kind: string, parts: readonly string[], most: number, isKind: boolean): Limit {
  return { key: `sign-in:${digestOf(kind, ...parts)}`, most, isKind }
}

const WINDOW_MS = 600_000
const TRIES_MAX = 10
/** Guesses from many networks: whoever wants to reach it needs ten of them. */
const ACCOUNT_TRIES_MAX = 100
/** Guesses at many accounts. Many people may share an address, and everybody does behind a proxy that is not listed. */
const NETWORK_TRIES_MAX = 100
const OUTSIDE_TRIES_MAX = 30
const PASSKEY_FAILURES_MAX = 30
