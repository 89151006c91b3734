import { LRUCache } from 'lru-cache'
import type { SignatureUse } from '../keys/inquiry.ts'
import { KeyUses } from './key-uses.ts'

/** Of keys of agents that are listed, and of those of strangers, each. */
export interface ReplayLimits {
  readonly usesMax: number
  /** Of one key: nobody pushes out what others have used. */
  readonly usesPerKeyMax: number
  readonly keysMax: number
}

/**
 * Which signatures were used, so that none is used twice. What has to be forgotten before its time leaves a floor behind:
 * of that key, of nothing that was signed before can be told any more whether it was used. So memory is bounded, a replay
 * is never taken, and who signs each request when he sends it is not touched.
 */
export class ReplayMemory {
  readonly #floorOf: (thumbprint: string) => number
  readonly #listed: Shelf
  /** Of their own: with keys that he makes himself, nobody pushes out those of others who are known. */
  readonly #strangers: Shelf

  /** `floorOf`: up to when a key's signatures may have been accepted by a process before this one. */
  constructor(floorOf: (thumbprint: string) => number = NO_FLOOR, limits: ReplayLimits = LIMITS) {
    this.#floorOf = floorOf
    this.#listed = new Shelf(limits)
    this.#strangers = new Shelf(limits)
  }

  get size(): number {
    return this.#listed.size + this.#strangers.size
  }

  /** How often something was forgotten before its time. */
  get floorsRaised(): number {
    return this.#listed.floorsRaised + this.#strangers.floorsRaised
  }

  /** Whether it may be used, and takes note of it. `null`: it is over, or nobody can tell. */
  claim(use: SignatureUse, nowMs: number): boolean | null {
    const { id, thumbprint, holder, createdS, goodUntilMs, isListed } = use
    if (goodUntilMs <= nowMs) return null
    const isAtListed = isListed || this.#listed.of(thumbprint) !== undefined
    const shelf = isAtListed ? this.#listed : this.#strangers
    const key = shelf.of(thumbprint) ?? shelf.put(thumbprint, this.#newcomer(thumbprint, isAtListed), nowMs)
    const known = key.holderOf(id)
    if (known !== undefined) return holder !== null && known === holder
    if (createdS <= key.floorS) return null
    shelf.makeRoom(key, nowMs)
    // To make room may have raised its own floor.
    if (createdS <= key.floorS) return null
    shelf.add(key, use)
    return true
  }

  /** Of a key that was forgotten, or that a process before this one may have seen, the older uses are unknown. */
  #newcomer(thumbprint: string, isAtListed: boolean): KeyUses {
    const stranger = isAtListed ? this.#strangers.take(thumbprint) : undefined
    if (stranger !== undefined) return stranger
    return new KeyUses(Math.max(this.#listed.floorS, this.#strangers.floorS, this.#floorOf(thumbprint)))
  }
}

class Shelf {
  size = 0
  floorsRaised = 0
  /** Of keys that are forgotten. */
  floorS = Number.NEGATIVE_INFINITY
  readonly #limits: ReplayLimits
  readonly #keys: LRUCache<string, KeyUses>
  #nowMs = 0

  constructor(limits: ReplayLimits) {
    this.#limits = limits
    const dispose = (key: KeyUses, _: string, reason: LRUCache.DisposeReason) => {
      if (reason === 'evict') this.#forgotten(key)
    }
    this.#keys = new LRUCache({ max: limits.keysMax, dispose })
  }

  of(thumbprint: string): KeyUses | undefined {
    return this.#keys.get(thumbprint)
  }

  /** It is somebody else's then. */
  take(thumbprint: string): KeyUses | undefined {
    const key = this.#keys.get(thumbprint)
    this.#keys.delete(thumbprint)
    this.size -= key?.size ?? 0
    return key
  }

  put(thumbprint: string, key: KeyUses, nowMs: number): KeyUses {
    this.#nowMs = nowMs
    this.#keys.set(thumbprint, key)
    this.size += key.size
    return key
  }

  add(key: KeyUses, use: SignatureUse): void {
    key.add(use, Math.ceil(this.#limits.usesPerKeyMax / PARTS))
    this.size++
  }

  makeRoom(key: KeyUses, nowMs: number): void {
    const { usesMax, usesPerKeyMax } = this.#limits
    this.size -= key.dropOver(nowMs)
    while (key.size >= usesPerKeyMax) this.#forget(key, nowMs)
    if (this.size < usesMax) return
    for (const each of this.#keys.values()) this.size -= each.dropOver(nowMs)
    while (this.size >= usesMax) this.#forget(this.#largest()!, nowMs)
  }

  #forget(key: KeyUses, nowMs: number): void {
    const { size, floorS } = key
    key.forgetOldest(nowMs)
    this.size -= size - key.size
    if (key.floorS > floorS) this.floorsRaised++
  }

  #largest(): KeyUses | null {
    let largest: KeyUses | null = null
    for (const each of this.#keys.values()) if (largest === null || each.size > largest.size) largest = each
    return largest
  }

  #forgotten(key: KeyUses): void {
    const before = key.floorS
    this.size -= key.size
    while (key.size > 0) key.forgetOldest(this.#nowMs)
    if (key.floorS > before) this.floorsRaised++
    this.floorS = Math.max(this.floorS, key.floorS)
  }
}

const NO_FLOOR = () => Number.NEGATIVE_INFINITY
/** Some 35 MB at most, in the one process that has it. */
const LIMITS: ReplayLimits = { usesMax: 131_072, usesPerKeyMax: 65_536, keysMax: 4_096 }
/** What is forgotten of a key at once, at most. */
const PARTS = 16
