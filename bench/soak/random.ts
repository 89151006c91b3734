/** Chance that a seed determines, so that a run can be repeated as far as the machine allows. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, but not, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, both ends included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!
  }

  /** Each as often as its weight says. */
  weighted<T>(list: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.next() * list.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, value] of list) {
      left -= weight
      if (left < 0) return value
    }
    return list[0]![1]
  }
}
