import type { SignatureUse } from './inquiry.ts'

export interface ReplayLimits {
  /** Of all keys together. */
  readonly usesMax: number
  /** Of one key: nobody pushes out what others have used. */
  readonly usesPerKeyMax: number
  readonly keysMax: number
}

/**
 * Which signatures were used, so that none is used twice. What has to be forgotten before its time leaves a floor behind:
 * of that key, nothing that was signed before is taken any more. So memory is bounded, a replay is never taken, and who
 * signs each request when he sends it is not touched.
 */
export class ReplayMemory {
  readonly #limits: ReplayLimits
  /** By key, that used last at the end. */
  readonly #keys = new Map<string, KeyUses>()
  #size = 0
  /** Of keys that are forgotten. */
  #floorS = Number.NEGATIVE_INFINITY
  #floorsRaised = 0

  constructor(limits: ReplayLimits = LIMITS) {
    this.#limits = limits
  }

  get size(): number {
    return this.#size
  }

  /** How often something was forgotten before its time. */
  get floorsRaised(): number {
    return this.#floorsRaised
  }

  /** Whether it may be used, and takes note of it. */
  claim({ id, thumbprint, holder, createdS, goodUntilMs }: SignatureUse, nowMs: number): boolean {
    if (goodUntilMs <= nowMs) return false
    const key = this.#keyOf(thumbprint, nowMs)
    const known = key.uses.get(id)
    if (known !== undefined) return holder !== null && known.holder === holder
    if (createdS <= key.floorS) return false
    this.#makeRoom(key, nowMs)
    // To make room may have raised its own floor.
    if (createdS <= key.floorS) return false
    key.uses.set(id, { holder, createdS, goodUntilMs })
    this.#size++
    return true
  }

  #keyOf(thumbprint: string, nowMs: number): KeyUses {
    const known = this.#keys.get(thumbprint)
    const key = known ?? { uses: new Map(), floorS: this.#floorS }
    this.#keys.delete(thumbprint)
    this.#keys.set(thumbprint, key)
    if (known === undefined && this.#keys.size > this.#limits.keysMax) this.#forgetKey(nowMs)
    return key
  }

  /** That which was used longest ago. */
  #forgetKey(nowMs: number): void {
    const [thumbprint, { uses, floorS }] = this.#keys.entries().next().value!
    this.#keys.delete(thumbprint)
    this.#size -= uses.size
    let highestS = floorS
    for (const { createdS, goodUntilMs } of uses.values())
      if (goodUntilMs > nowMs && createdS > highestS) highestS = createdS
    if (highestS <= this.#floorS) return
    this.#floorS = highestS
    this.#floorsRaised++
  }

  #makeRoom(key: KeyUses, nowMs: number): void {
    const { usesMax, usesPerKeyMax } = this.#limits
    this.#dropOver(key, nowMs)
    if (key.uses.size >= usesPerKeyMax) this.#forget(key, Math.ceil(usesPerKeyMax / PART), nowMs)
    if (this.#size < usesMax) return
    for (const each of this.#keys.values()) this.#dropOver(each, nowMs)
    if (this.#size < usesMax) return
    const largest = [...this.#keys.values()].reduce((one, other) =>
      other.uses.size > one.uses.size ? other : one,
    )
    this.#forget(largest, Math.ceil(largest.uses.size / PART), nowMs)
  }

  /** Those whose time is over, from the oldest on: of one signer they mostly end in the order in which they came. */
  #dropOver({ uses }: KeyUses, nowMs: number): void {
    for (const [id, { goodUntilMs }] of uses) {
      if (goodUntilMs > nowMs) return
      uses.delete(id)
      this.#size--
    }
  }

  /** As many of its oldest. */
  #forget(key: KeyUses, count: number, nowMs: number): void {
    let left = count
    for (const [id, { createdS, goodUntilMs }] of key.uses) {
      if (left-- === 0) break
      key.uses.delete(id)
      this.#size--
      if (goodUntilMs <= nowMs || createdS <= key.floorS) continue
      key.floorS = createdS
      this.#floorsRaised++
    }
  }
}

interface KeyUses {
  readonly uses: Map<string, Use>
  /** What was signed up to then is not taken. */
  floorS: number
}

interface Use {
  readonly holder: string | null
  readonly createdS: number
  readonly goodUntilMs: number
}

/** Some 50 MB at most, in the one process that has it. */
const LIMITS: ReplayLimits = { usesMax: 262_144, usesPerKeyMax: 131_072, keysMax: 4_096 }
/** What is forgotten at once, so that not each use makes room for itself. */
const PART = 16
