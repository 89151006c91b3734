import { LRUCache } from 'lru-cache'

export interface BudgetLimits {
  readonly perAddress: number
  readonly perKey: number
  readonly inAll: number
  /** Of an address that has lately signed well. */
  readonly perProvenAddress: number
  /** Of those that are read in vain and come to no check, in all. */
  readonly readInAll: number
}

/**
 * How many signatures that do not hold are looked at in a second: of an address, by a key, in all. Whoever sends more
 * is not looked at until the second is over; who has signed well with that key from that address lately still is.
 */
export class FailureBudget {
  readonly #limits: BudgetLimits
  readonly #failures = new LRUCache<string, Second>({ max: COUNTED_MAX })
  readonly #proven = new LRUCache<string, true>({ max: PROVEN_MAX, ttl: PROVEN_MS, ttlResolution: 1_000 })
  readonly #all: Second = { startMs: 0, count: 0 }
  readonly #read: Second = { startMs: 0, count: 0 }

  constructor(limits: BudgetLimits = LIMITS) {
    this.#limits = limits
  }

  /** Before anything is read of it. `address`: as it is counted, of IPv6 the /64. */
  mayRead(address: string, nowMs: number): boolean {
    const { perAddress, perProvenAddress, inAll, readInAll } = this.#limits
    const count = countOf(this.#failures.get(address), nowMs)
    const isRoom = countOf(this.#all, nowMs) < inAll && countOf(this.#read, nowMs) < readInAll
    if (count < perAddress && isRoom) return true
    return count < perProvenAddress && this.#proven.has(address)
  }

  /** Before its signature is checked, or read where it says the key at once. */
  mayCheck(address: string, thumbprint: string, nowMs: number): boolean {
    const { perKey, inAll } = this.#limits
    if (countOf(this.#all, nowMs) < inAll && countOf(this.#failures.get(thumbprint), nowMs) < perKey)
      return true
    return this.#proven.has(pairOf(address, thumbprint))
  }

  /** `thumbprint`: of the key by which it was checked; `null` where it did not come to that. */
  failed(address: string, thumbprint: string | null, nowMs: number): void {
    this.#add(address, nowMs)
    if (thumbprint === null) return add(this.#read, nowMs)
    this.#add(thumbprint, nowMs)
    add(this.#all, nowMs)
    // Whoever has a key of his own could else have as many wrong ones looked at as he has addresses.
    this.#proven.delete(pairOf(address, thumbprint))
  }

  proven(address: string, thumbprint: string): void {
    this.#proven.set(address, true)
    this.#proven.set(pairOf(address, thumbprint), true)
  }

  #add(key: string, nowMs: number): void {
    const known = this.#failures.get(key)
    if (known !== undefined) add(known, nowMs)
    else this.#failures.set(key, { startMs: nowMs, count: 1 })
  }
}

interface Second {
  startMs: number
  count: number
}

function countOf(second: Second | undefined, nowMs: number): number {
  return second === undefined || Math.abs(nowMs - second.startMs) >= SECOND_MS ? 0 : second.count
}

function add(second: Second, nowMs: number): void {
  if (Math.abs(nowMs - second.startMs) >= SECOND_MS) {
    second.startMs = nowMs
    second.count = 0
  }
  second.count++
}

function pairOf(address: string, thumbprint: string): string {
  return `${address} ${thumbprint}`
}

const SECOND_MS = 1_000
/** A check takes some 25 to 70 µs, with P-384 450: all together a fiftieth of a worker, or with P-384 a tenth, at most. */
/** To read one takes some 40 µs, and 400 at most. */
const LIMITS: BudgetLimits = {
  perAddress: 20,
  perKey: 100,
  inAll: 200,
  perProvenAddress: 200,
  readInAll: 1_000,
}
const COUNTED_MAX = 20_000
const PROVEN_MAX = 20_000
const PROVEN_MS = 600_000
