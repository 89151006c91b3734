import type { SignatureUse } from './inquiry.ts'

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
  readonly #listed: Shelf
  /** Of their own: with keys that he makes himself, nobody pushes out those of others who are known. */
  readonly #strangers: Shelf
  /** Of keys that are forgotten. */
  #floorS = Number.NEGATIVE_INFINITY

  constructor(limits: ReplayLimits = LIMITS) {
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
    const isAtListed = isListed || this.#listed.has(thumbprint)
    const shelf = isAtListed ? this.#listed : this.#strangers
    const before = shelf.take(thumbprint) ?? (isAtListed ? this.#strangers.take(thumbprint) : null)
    const key = before ?? { uses: new Map(), floorS: this.#floorS }
    this.#floorS = Math.max(this.#floorS, shelf.put(thumbprint, key, nowMs))
    const known = key.uses.get(id)
    if (known !== undefined) return holder !== null && known.holder === holder
    if (createdS <= key.floorS) return null
    shelf.makeRoom(key, nowMs)
    // To make room may have raised its own floor.
    if (createdS <= key.floorS) return null
    shelf.add(key, id, { holder, createdS, goodUntilMs })
    return true
  }
}

class Shelf {
  size = 0
  floorsRaised = 0
  readonly #limits: ReplayLimits
  /** That used last at the end. */
  readonly #keys = new Map<string, KeyUses>()

  constructor(limits: ReplayLimits) {
    this.#limits = limits
  }

  has(thumbprint: string): boolean {
    return this.#keys.has(thumbprint)
  }

  take(thumbprint: string): KeyUses | null {
    const key = this.#keys.get(thumbprint)
    if (key === undefined) return null
    this.#keys.delete(thumbprint)
    this.size -= key.uses.size
    return key
  }

  /** Says up to when nothing can be told of the key that had to make room. */
  put(thumbprint: string, key: KeyUses, nowMs: number): number {
    this.#keys.set(thumbprint, key)
    this.size += key.uses.size
    return this.#keys.size > this.#limits.keysMax ? this.#forgetOldestKey(nowMs) : Number.NEGATIVE_INFINITY
  }

  add(key: KeyUses, id: string, use: Use): void {
    key.uses.set(id, use)
    this.size++
  }

  makeRoom(key: KeyUses, nowMs: number): void {
    const { usesMax, usesPerKeyMax } = this.#limits
    this.#dropOver(key, nowMs)
    if (key.uses.size >= usesPerKeyMax) this.#forget(key, Math.ceil(usesPerKeyMax / PART), nowMs)
    if (this.size < usesMax) return
    for (const each of this.#keys.values()) this.#dropOver(each, nowMs)
    while (this.size >= usesMax) {
      const largest = [...this.#keys.values()].reduce((one, other) =>
        other.uses.size > one.uses.size ? other : one,
      )
      this.#forget(largest, Math.ceil(largest.uses.size / PART), nowMs)
    }
  }

  #forgetOldestKey(nowMs: number): number {
    const [thumbprint, { uses, floorS }] = this.#keys.entries().next().value!
    this.#keys.delete(thumbprint)
    this.size -= uses.size
    let highestS = floorS
    for (const { createdS, goodUntilMs } of uses.values())
      if (goodUntilMs > nowMs && createdS > highestS) highestS = createdS
    if (highestS > floorS) this.floorsRaised++
    return highestS
  }

  /** Those whose time is over, from the oldest on: of one signer they mostly end in the order in which they came. */
  #dropOver({ uses }: KeyUses, nowMs: number): void {
    for (const [id, { goodUntilMs }] of uses) {
      if (goodUntilMs > nowMs) return
      uses.delete(id)
      this.size--
    }
  }

  /** As many of its oldest. */
  #forget(key: KeyUses, count: number, nowMs: number): void {
    let left = count
    for (const [id, { createdS, goodUntilMs }] of key.uses) {
      if (left-- === 0) break
      key.uses.delete(id)
      this.size--
      if (goodUntilMs <= nowMs || createdS <= key.floorS) continue
      key.floorS = createdS
      this.floorsRaised++
    }
  }
}

interface KeyUses {
  readonly uses: Map<string, Use>
  /** Of what was signed up to then nobody can tell. */
  floorS: number
}

interface Use {
  readonly holder: string | null
  readonly createdS: number
  readonly goodUntilMs: number
}

/** Some 50 MB at most, in the one process that has it. */
const LIMITS: ReplayLimits = { usesMax: 131_072, usesPerKeyMax: 65_536, keysMax: 4_096 }
/** What is forgotten at once, so that not each use makes room for itself. */
const PART = 16
