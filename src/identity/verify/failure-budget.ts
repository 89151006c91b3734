import { LateCache } from '../fetch/late-cache.ts'

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
 * How many signatures that do not hold are looked at in a second: of an address, by a key, in all. Of whoever sends more,
 * one is looked at whenever room has come back for it, which it does evenly: all that a second has room for at its
 * beginning would be what the slowest of the others wait for. Who has signed well with that key from that address lately
 * still is looked at.
 */
export class FailureBudget {
  readonly #limits: BudgetLimits
  readonly #failures = new LateCache<Level>({ max: COUNTED_MAX })
  readonly #proven = new LateCache<true>({ max: PROVEN_MAX, ttl: PROVEN_MS, ttlResolution: 1_000 })
  readonly #all: Level = { atMs: 0, count: 0 }
  readonly #read: Level = { atMs: 0, count: 0 }

  constructor(limits: BudgetLimits = LIMITS) {
    this.#limits = limits
  }

  /** Before anything is read of it. `address`: as it is counted, of IPv6 the /64. */
  mayRead(address: string, nowMs: number): boolean {
    const { perAddress, perProvenAddress, inAll, readInAll } = this.#limits
    const failures = this.#failures.get(address)
    const isRoom = hasRoom(this.#all, inAll, nowMs) && hasRoom(this.#read, readInAll, nowMs)
    if (isRoom && hasRoom(failures, perAddress, nowMs)) return true
    return this.#proven.has(address) && hasRoom(failures, perProvenAddress, nowMs)
  }

  /** Before its signature is checked, or read where it says the key at once. */
  mayCheck(address: string, thumbprint: string, nowMs: number): boolean {
    const { perKey, inAll } = this.#limits
    if (hasRoom(this.#all, inAll, nowMs) && hasRoom(this.#failures.get(thumbprint), perKey, nowMs))
      return true
    return this.#proven.has(pairOf(address, thumbprint))
  }

  /** `thumbprint`: of the key by which it was checked; `null` where it did not come to that. */
  failed(address: string, thumbprint: string | null, nowMs: number): void {
    const { perAddress, perProvenAddress, perKey, inAll, readInAll } = this.#limits
    this.#add(address, this.#proven.has(address) ? perProvenAddress : perAddress, nowMs)
    if (thumbprint === null) return add(this.#read, readInAll, nowMs)
    this.#add(thumbprint, perKey, nowMs)
    add(this.#all, inAll, nowMs)
    // Whoever has a key of his own could else have as many wrong ones looked at as he has addresses.
    this.#proven.delete(pairOf(address, thumbprint))
  }

  proven(address: string, thumbprint: string): void {
    this.#proven.set(address, true)
    this.#proven.set(pairOf(address, thumbprint), true)
  }

  #add(key: string, perSecond: number, nowMs: number): void {
    const known = this.#failures.get(key)
    if (known !== undefined) add(known, perSecond, nowMs)
    else this.#failures.set(key, { atMs: nowMs, count: 1 })
  }
}

/** What was counted, less what has been forgotten since. */
interface Level {
  atMs: number
  count: number
}

function hasRoom(level: Level | undefined, perSecond: number, nowMs: number): boolean {
  return level === undefined || countOf(level, perSecond, nowMs) <= perSecond - 1
}

function add(level: Level, perSecond: number, nowMs: number): void {
  level.count = countOf(level, perSecond, nowMs) + 1
  level.atMs = nowMs
}

/** A clock that was moved has all forgotten. */
function countOf({ atMs, count }: Level, perSecond: number, nowMs: number): number {
  return Math.max(0, count - (Math.abs(nowMs - atMs) * perSecond) / SECOND_MS)
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
