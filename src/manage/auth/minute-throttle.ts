import { LateCache } from '../../shared/late-cache.ts'
import { digestOf } from '../../store/engine/sealed.ts'
import { clientNetwork } from '../../wire/ip-address.ts'

type ThrottleResult =
  | { readonly kind: 'may' }
  /** `isFirst`: this call is the first one over the limit. */
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly isFirst: boolean }

/** Counters that several processes share. */
export interface SharedCounts {
  /** Resolves to the totals over all processes, in the order of `counts`. */
  addAll(
    counts: readonly { readonly key: string; readonly points: number; readonly windowMs: number }[],
    nowMs: number,
  ): Promise<readonly { readonly points: number; readonly endsAtMs: number }[]>
}

/**
 * Counts events per network and minute, such as failed authentication or requests that write state. `share`,
 * called about once a second, adds the counts of other processes.
 */
export class MinuteThrottle {
  readonly #countMax: number
  readonly #minutes = new LateCache<Minute>({ max: ADDRESSES_MAX })
  readonly #unshared = new Set<string>()

  constructor(perMinute: number) {
    this.#countMax = perMinute
  }

  count(address: string, nowMs: number): ThrottleResult {
    const who = clientNetwork(address)
    const minute = this.#minuteOf(who, nowMs)
    minute.count++
    minute.unshared++
    if (this.#unshared.size < ADDRESSES_MAX) this.#unshared.add(who)
    if (minute.count <= this.#countMax) return { kind: 'may' }
    const isFirst = !minute.isSaid
    minute.isSaid = true
    const retryAfterS = Math.max(1, Math.ceil((minute.startMs + MINUTE_MS - nowMs) / 1000))
    return { kind: 'throttled', retryAfterS, isFirst }
  }

  /** `name`: separates these counts from those of other throttles. */
  async share(counts: SharedCounts, name: string, nowMs: number): Promise<void> {
    const some = [...this.#unshared].slice(0, SHARED_AT_ONCE)
    const told = some.flatMap((who) => {
      const minute = this.#minutes.get(who)
      return minute === undefined || nowMs - minute.startMs >= MINUTE_MS ? [] : [{ who, minute }]
    })
    const own = told.map(({ who, minute }) => ({
      key: `${name}:${digestOf('network', who)}`,
      points: minute.unshared,
      windowMs: MINUTE_MS,
    }))
    const all = own.length === 0 ? [] : await counts.addAll(own, nowMs)
    for (const who of some) this.#unshared.delete(who)
    for (const [index, { minute }] of told.entries()) {
      const { points, endsAtMs } = all[index]!
      minute.unshared -= own[index]!.points
      minute.count = points + minute.unshared
      minute.startMs = endsAtMs - MINUTE_MS
      if (minute.unshared > 0) this.#unshared.add(told[index]!.who)
      // If the others were over the limit without our counts, the process that crossed it has reported it.
      if (points - own[index]!.points > this.#countMax) minute.isSaid = true
    }
  }

  #minuteOf(who: string, nowMs: number): Minute {
    const known = this.#minutes.get(who)
    if (known !== undefined && nowMs - known.startMs < MINUTE_MS) return known
    const minute = { startMs: nowMs, count: 0, unshared: 0, isSaid: false }
    this.#minutes.set(who, minute)
    return minute
  }
}

interface Minute {
  startMs: number
  count: number
  /** The part of `count` that other processes do not know yet. */
  unshared: number
  /** Whether `isFirst` was already returned for this minute. */
  isSaid: boolean
}

const MINUTE_MS = 60_000
/** At most a few MiB. Beyond this, the least recently used networks are dropped. */
const ADDRESSES_MAX = 20_000
/** Limit for one statement; the rest follows a second later. */
const SHARED_AT_ONCE = 512
