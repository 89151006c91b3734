import type { RateLimitStore } from '../../../store/traffic/rate-limits.ts'
import { digestOf } from '../../../store/engine/sealed.ts'
import { clientNetwork } from '../../../wire/ip-address.ts'

type MayTry =
  /** `isFirst`: the first attempt of its kind in the window. Only this one is audited if it fails. */
  | { readonly kind: 'may'; readonly isFirst: boolean }
  /** `isFirst`: throttling begins with this attempt. */
  | Throttled

export interface Throttled {
  readonly kind: 'throttled'
  readonly retryAfterS: number
  readonly isFirst: boolean
}

/** The keys by which an attempt is counted. */
interface Attempted {
  readonly account: string
  readonly address: string
  /** The id of a device that the account has signed in on; `null`: unknown device. */
  readonly device: string | null
}

/** A counter for attempts. `isKind`: its first attempt counts as the first of its kind. */
interface Limit {
  readonly key: string
  readonly most: number
  readonly isKind: boolean
}

/**
 * Limits sign-in attempts. The counts are in the database: shared by all processes and kept across restarts.
 * An attempt is counted before it runs, so concurrent attempts gain nothing; a successful one is taken back.
 * Attempts from unknown devices count per network and account, per account, and per network. Those from a
 * known device count apart, so guesses from elsewhere never lock it out.
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

  /**
   * A signed-in person confirms their password. Counted apart from sign-in attempts, which can be by others.
   */
  beginConfirming(account: string, address: string): Promise<MayTry> {
    return this.#begin(confirmLimits(account, address))
  }

  confirmed(account: string, address: string): Promise<void> {
    return this.#takeBack(confirmLimits(account, address))
  }

  /** A sign-in through an OpenID provider. */
  beginOutside(address: string): Promise<MayTry> {
    return this.#begin(outsideLimits(address))
  }

  succeededOutside(address: string): Promise<void> {
    return this.#takeBack(outsideLimits(address))
  }

  /**
   * Counts a refused passkey. Passkeys cannot be guessed, so a valid one is accepted after any number of
   * failures.
   */
  failedPasskey(address: string): Promise<MayTry> {
    return this.#begin([limitOf('passkey', [clientNetwork(address)], PASSKEY_FAILURES_MAX, true)])
  }

  async #begin(limits: readonly Limit[]): Promise<MayTry> {
    let isFirst = false
    for (const { key, most, isKind } of limits) {
      const { points, endsAtMs } = await this.#counts.add(key, 1, WINDOW_MS, this.#nowMs())
      // Do not count the later limits: guesses from one network must not use up those of others.
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

/** Keys are digests, because people type passwords into the email field by mistake. */
function limitOf(kind: string, parts: readonly string[], most: number, isKind: boolean): Limit {
  return { key: `sign-in:${digestOf(kind, ...parts)}`, most, isKind }
}

const WINDOW_MS = 600_000
const TRIES_MAX = 10
/** Guesses from many networks: it takes ten networks to reach it. */
const ACCOUNT_TRIES_MAX = 100
/** Guesses at many accounts. Many people can share an address, and all do behind an unlisted proxy. */
const NETWORK_TRIES_MAX = 100
const OUTSIDE_TRIES_MAX = 30
const PASSKEY_FAILURES_MAX = 30
