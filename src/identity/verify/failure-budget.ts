import { LateCache } from '../../shared/late-cache.ts'

export interface BudgetLimits {
  readonly perAddress: number
  readonly perKey: number
  readonly inAll: number
  /** For an address that has recently sent a valid signature. */
  readonly perProvenAddress: number
  /** For signatures that fail before verification, in total. */
  readonly readInAll: number
}

/**
 * Limits how many invalid signatures are processed per second: per address, per key and in total. Above a
 * limit, room comes back evenly, not once a second: a burst at the start of each second would delay other
 * requests. An address and key pair that recently had a valid signature is still verified.
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

  /** Before anything is parsed. `address`: for IPv6 the /64. */
  mayRead(address: string, nowMs: number): boolean {
    const { perAddress, perProvenAddress, inAll, readInAll } = this.#limits
    const failures = this.#failures.get(address)
    const isRoom = hasRoom(this.#all, inAll, nowMs) && hasRoom(this.#read, readInAll, nowMs)
    if (isRoom && hasRoom(failures, perAddress, nowMs)) return true
    return this.#proven.has(address) && hasRoom(failures, perProvenAddress, nowMs)
  }

  /** Before a signature is verified, or before it is parsed if the key is known by then. */
  mayCheck(address: string, thumbprint: string, nowMs: number): boolean {
    const { perKey, inAll } = this.#limits
    if (hasRoom(this.#all, inAll, nowMs) && hasRoom(this.#failures.get(thumbprint), perKey, nowMs))
      return true
    return this.#proven.has(pairOf(address, thumbprint))
  }

  /** `thumbprint`: the key used for verification; `null`: verification was not reached. */
  failed(address: string, thumbprint: string | null, nowMs: number): void {
    const { perAddress, perProvenAddress, perKey, inAll, readInAll } = this.#limits
    this.#add(address, this.#proven.has(address) ? perProvenAddress : perAddress, nowMs)
    if (thumbprint === null) return add(this.#read, readInAll, nowMs)
    this.#add(thumbprint, perKey, nowMs)
    add(this.#all, inAll, nowMs)
    // Otherwise the owner of one key could have as many invalid signatures verified as they have addresses.
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

/** A leaky counter: the count decays over time. */
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

/** If the clock jumps, the count decays by the whole difference. */
function countOf({ atMs, count }: Level, perSecond: number, nowMs: number): number {
  return Math.max(0, count - (Math.abs(nowMs - atMs) * perSecond) / SECOND_MS)
}

function pairOf(address: string, thumbprint: string): string {
  return `${address} ${thumbprint}`
}

const SECOND_MS = 1_000
/**
 * Verifying takes about 25 to 70 µs, with P-384 450 µs: at most 2 % of a worker, or 10 % with P-384. Parsing
 * takes about 40 µs, at most 400 µs.
 */
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
