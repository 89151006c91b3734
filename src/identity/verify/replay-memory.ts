import { LRUCache } from 'lru-cache'
import type { SignatureUse } from '../keys/inquiry.ts'
import { KeyUses } from './key-uses.ts'

/** Limits that apply once to keys of listed agents and once to keys of strangers. */
export interface ReplayLimits {
  readonly usesMax: number
  /** For one key, so that it cannot push out the uses of other keys. */
  readonly usesPerKeyMax: number
  readonly keysMax: number
}

/**
 * Remembers used signatures so that none is accepted twice. Dropping a use early raises the floor of its key:
 * an older signature of that key is then refused as possibly used. So memory is bounded and a replay is never
 * accepted. A signer that signs each request just before sending it is not affected.
 */
export class ReplayMemory {
  readonly #floorOf: (thumbprint: string) => number
  readonly #listed: Shelf
  /** Separate, so that a stranger with many self-made keys cannot push out the keys of known agents. */
  readonly #strangers: Shelf

  /** `floorOf`: up to when a previous process may have accepted signatures of a key. */
  constructor(floorOf: (thumbprint: string) => number = NO_FLOOR, limits: ReplayLimits = LIMITS) {
    this.#floorOf = floorOf
    this.#listed = new Shelf(limits)
    this.#strangers = new Shelf(limits)
  }

  get size(): number {
    return this.#listed.size + this.#strangers.size
  }

  /** How often a use was dropped before it expired. */
  get floorsRaised(): number {
    return this.#listed.floorsRaised + this.#strangers.floorsRaised
  }

  /** Whether the signature may be used; records the use. `null`: expired or unknown. */
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
    // Making room may have raised the floor of this key.
    if (createdS <= key.floorS) return null
    shelf.add(key, use)
    return true
  }

  /** Older uses of a key are unknown if the key was dropped or a previous process may have seen it. */
  #newcomer(thumbprint: string, isAtListed: boolean): KeyUses {
    const stranger = isAtListed ? this.#strangers.take(thumbprint) : undefined
    if (stranger !== undefined) return stranger
    return new KeyUses(Math.max(this.#listed.floorS, this.#strangers.floorS, this.#floorOf(thumbprint)))
  }
}

class Shelf {
  size = 0
  floorsRaised = 0
  /** The floor of dropped keys. */
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

  /** Removes the key; the caller takes it over. */
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
/** At most about 35 MB, in the parent process only. */
const LIMITS: ReplayLimits = { usesMax: 131_072, usesPerKeyMax: 65_536, keysMax: 4_096 }
/** At most this share of a key's uses is dropped at once. */
const PARTS = 16
