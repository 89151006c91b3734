import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'

export type Throttled =
  | { readonly kind: 'may' }
  /** `isFirst`: it begins with this one. */
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly isFirst: boolean }

/** Counts what comes from an address, a minute at a time: failed authentication, what leaves something behind. */
export class MinuteThrottle {
  readonly #countMax: number
  readonly #minutes = new LRUCache<string, Minute>({ max: ADDRESSES_MAX })

  constructor(perMinute: number) {
    this.#countMax = perMinute
  }

  count(address: string, nowMs: number): Throttled {
    const who = networkOf(address)
    const known = this.#minutes.get(who)
    const minute =
      known !== undefined && nowMs - known.startMs < MINUTE_MS ? known : { startMs: nowMs, count: 0 }
    minute.count++
    this.#minutes.set(who, minute)
    if (minute.count <= this.#countMax) return { kind: 'may' }
    const retryAfterS = Math.max(1, Math.ceil((minute.startMs + MINUTE_MS - nowMs) / 1000))
    return { kind: 'throttled', retryAfterS, isFirst: minute.count === this.#countMax + 1 }
  }
}

interface Minute {
  readonly startMs: number
  count: number
}

/** Who has an address of IPv6 has 2^64 of them. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

const MINUTE_MS = 60_000
/** Some MiB at most; of more of them at once those are forgotten that came first. */
const ADDRESSES_MAX = 20_000
