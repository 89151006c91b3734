import { mixed } from '../../wire/network-hash.ts'
import { REQUEST_KIND, type SeenRequest } from './seen-request.ts'

/**
 * One slot for each recent visitor: a network with a program on a site. The memory is fixed. An address has one
 * bucket, so a client without many addresses can only push out the visitors of its own bucket.
 */
export class Visitors {
  readonly slots: number
  /** The fields of all slots, one after the other: two slots are one line of the processor's cache. */
  readonly words: Uint32Array
  /** How many slots have a cohort, by its low bits: an upper bound, because some of them may be old. */
  readonly sizes = new Uint32Array(SIZES)
  /** For `crowdsIn`: where the words of the previous visitor of the same crowd begin. */
  readonly before: Int32Array
  /** 0: the slot is free. */
  readonly #keys: Uint32Array
  /** The program and the site of each slot. */
  readonly #origins: Uint32Array
  readonly #buckets: number
  #baseMs = 0

  constructor(slots = SLOTS) {
    this.slots = slots
    this.#buckets = slots / WAYS
    this.words = new Uint32Array(slots * WORDS)
    this.before = new Int32Array(slots)
    this.#keys = new Uint32Array(slots)
    this.#origins = new Uint32Array(slots * 2)
  }

  get bytes(): number {
    return [this.words, this.before, this.#keys, this.#origins, this.sizes].reduce(
      (sum, { byteLength }) => sum + byteLength,
      0,
    )
  }

  /** The program and the site of the visitor whose words begin there. */
  originAt(at: number): { readonly program: number; readonly host: number } {
    const place = (at / WORDS) * 2
    return { program: this.#origins[place]!, host: this.#origins[place + 1]! }
  }

  /** The clock of the slots, which counts from the first request. */
  tickOf(atMs: number): number {
    if (this.#baseMs === 0) this.#baseMs = atMs - TICK_MS
    return Math.max(1, Math.floor((atMs - this.#baseMs) / TICK_MS))
  }

  /** Counts the request. Returns where the words of its visitor begin; -1: it counts for none. */
  note({ network, host, program, order, kind, target, atMs }: SeenRequest): number {
    if (kind === REQUEST_KIND.other) return -1
    const { words } = this
    const tick = this.tickOf(atMs)
    const key = mixed(program ^ Math.imul(host, 0x9e3779b1) ^ Math.imul(network, 0x85ebca77)) || 1
    const at = this.#find(key, network, tick)
    if (tick > words[at + LAST_TICK]!) words[at + LAST_TICK] = tick
    if (kind === REQUEST_KIND.part) {
      words[at + STATE]! |= HAS_PARTS
      return at
    }
    if (words[at + COHORT] === 0) {
      const cohort = cohortOf(host, program, order)
      words[at + COHORT] = cohort
      this.sizes[cohort & (SIZES - 1)]!++
      this.#origins[(at / WORDS) * 2] = program
      this.#origins[(at / WORDS) * 2 + 1] = host
      words[at + FIRST_TICK] = tick
      words[at + FIRST_TARGET] = target
    }
    if (kind === REQUEST_KIND.followed) words[at + STATE]! |= HAS_FOLLOWED
    else {
      words[at + PAGES]! |= 1 << (mixed(target) & 31)
      words[at + LAST_TARGET] = target
    }
    return at
  }

  /** Frees the slots of the network. */
  forget(network: number): void {
    const from = (network % this.#buckets) * WAYS
    for (let slot = from; slot < from + WAYS; slot++)
      if (this.#keys[slot] !== 0 && this.words[slot * WORDS + NETWORK] === network) this.#begin(slot, 0, 0)
  }

  #find(key: number, network: number, tick: number): number {
    const keys = this.#keys
    const from = (network % this.#buckets) * WAYS
    for (let slot = from; slot < from + WAYS; slot++) {
      if (keys[slot] !== key || this.words[slot * WORDS + NETWORK] !== network) continue
      // A visitor that was away for long begins anew.
      if (tick > this.words[slot * WORDS + LAST_TICK]! + AWAY_TICKS) this.#begin(slot, key, network)
      return slot * WORDS
    }
    let oldest = from
    for (let slot = from; slot < from + WAYS; slot++) {
      if (keys[slot] === 0) {
        oldest = slot
        break
      }
      if (this.words[slot * WORDS + LAST_TICK]! < this.words[oldest * WORDS + LAST_TICK]!) oldest = slot
    }
    this.#begin(oldest, key, network)
    return oldest * WORDS
  }

  #begin(slot: number, key: number, network: number): void {
    const cohort = this.words[slot * WORDS + COHORT]!
    if (cohort !== 0) this.sizes[cohort & (SIZES - 1)]!--
    this.#keys[slot] = key
    this.words.fill(0, slot * WORDS, (slot + 1) * WORDS)
    this.words[slot * WORDS + NETWORK] = network
  }
}

/** Never 0. */
export function cohortOf(host: number, program: number, order: number): number {
  return mixed(mixed(program ^ Math.imul(host, 0x9e3779b1)) ^ order) || 1
}

/** The number of different pages that nothing led to, at most LEVELS. */
export function levelOf(pages: number): number {
  let level = 0
  for (let left = pages; left !== 0 && level < LEVELS; left &= left - 1) level++
  return level
}

// The words of a slot.
export const NETWORK = 0
/** The cohort of its first page; 0: it requested no page yet. */
export const COHORT = 1
/** Each different page that nothing led to sets one of 32 bits. */
export const PAGES = 2
export const FIRST_TARGET = 3
export const LAST_TARGET = 4
/** Of its first page. */
export const FIRST_TICK = 5
/** Of its last request. */
export const LAST_TICK = 6
export const STATE = 7
export const WORDS = 8

export const HAS_PARTS = 1
export const HAS_FOLLOWED = 2
export const LEVELS = 4
export const SIZES = 65_536
const TICK_MS = 128
/** 48 bytes each: 3.1 MB, and 0.3 MB for `sizes`. */
const SLOTS = 65_536
const WAYS = 8
/** 30 minutes. */
export const AWAY_TICKS = Math.round(1_800_000 / TICK_MS)
