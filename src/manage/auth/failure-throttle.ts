import ipaddr from 'ipaddr.js'
import { LRUCache } from 'lru-cache'

export type Throttled =
  | { readonly kind: 'may' }
  /** `isFirst`: it begins with this one. */
  | { readonly kind: 'throttled'; readonly retryAfterS: number; readonly isFirst: boolean }

/** Counts failed authentication by address, a minute at a time. Nobody who succeeds is asked for it. */
export class FailureThrottle {
  readonly #failuresMax: number
  readonly #minutes = new LRUCache<string, Minute>({ max: ADDRESSES_MAX })

  constructor(failuresPerMinute: number) {
    this.#failuresMax = failuresPerMinute
  }

  failed(address: string, nowMs: number): Throttled {
    const who = networkOf(address)
    const known = this.#minutes.get(who)
    const minute =
      known !== undefined && nowMs - known.startMs < MINUTE_MS ? known : { startMs: nowMs, failures: 0 }
    minute.failures++
    this.#minutes.set(who, minute)
    if (minute.failures <= this.#failuresMax) return { kind: 'may' }
    const retryAfterS = Math.max(1, Math.ceil((minute.startMs + MINUTE_MS - nowMs) / 1000))
    return { kind: 'throttled', retryAfterS, isFirst: minute.failures === this.#failuresMax + 1 }
  }
}

interface Minute {
  readonly startMs: number
  failures: number
}

/** Who has an address of IPv6 has 2^64 of them. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}

const MINUTE_MS = 60_000
/** Some MiB at most; who fails from more of them at once is forgotten in the order they came. */
const ADDRESSES_MAX = 20_000
