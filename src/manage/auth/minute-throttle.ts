import { LRUCache } from 'lru-cache'
import { digestOf } from '../../store/engine/sealed.ts'
import { clientNetwork } from '../../wire/ip-address.ts'

export type Throttled =
  | { readonly kind: 'may' }
  /** `isFirst`: it begins with this one. */
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly isFirst: boolean }

/** Where several processes count together. */
export interface SharedCounts {
  /** Resolves to what all have counted, in the order of what is given. */
  addAll(
    counts: readonly { readonly key: string; readonly points: number }[],
    windowMs: number,
    nowMs: number,
  ): Promise<readonly { readonly points: number; readonly endsAtMs: number }[]>
}

/**
 * Counts what comes from an address, a minute at a time: failed authentication, what leaves something behind. With
 * `share`, each second or so, what other processes have counted counts too.
 */
export class MinuteThrottle {
  readonly #countMax: number
  readonly #minutes = new LRUCache<string, Minute>({ max: ADDRESSES_MAX })
  readonly #unshared = new Set<string>()

  constructor(perMinute: number) {
    this.#countMax = perMinute
  }

  count(address: string, nowMs: number): Throttled {
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

  /** `name`: of what is counted, among all that is. */
  async share(counts: SharedCounts, name: string, nowMs: number): Promise<void> {
    const some = [...this.#unshared].slice(0, SHARED_AT_ONCE).sort()
    const told = some.flatMap((who) => {
      const minute = this.#minutes.get(who)
      return minute === undefined || nowMs - minute.startMs >= MINUTE_MS ? [] : [{ who, minute }]
    })
    const own = told.map(({ who, minute }) => ({
      key: `${name}:${digestOf('network', who)}`,
      points: minute.unshared,
    }))
    const all = own.length === 0 ? [] : await counts.addAll(own, MINUTE_MS, nowMs)
    for (const who of some) this.#unshared.delete(who)
    for (const [index, { minute }] of told.entries()) {
      const { points, endsAtMs } = all[index]!
      minute.unshared -= own[index]!.points
      minute.count = points + minute.unshared
      minute.startMs = endsAtMs - MINUTE_MS
      if (minute.unshared > 0) this.#unshared.add(told[index]!.who)
      // Whoever has counted the one that was too many says so.
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
  /** Of these, what other processes do not know. */
  unshared: number
  /** That it is too many. */
  isSaid: boolean
}

const MINUTE_MS = 60_000
/** Some MiB at most; of more of them at once those are forgotten that came first. */
const ADDRESSES_MAX = 20_000
/** In one statement; the others have their turn a second later. */
const SHARED_AT_ONCE = 512
