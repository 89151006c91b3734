/** How evenly pages come in: the last of them weigh most. */
export class Evenness {
  #count = 0
  #lastMs = 0
  #mean = 0
  #square = 0

  note(atMs: number): void {
    const gapMs = Math.max(0, atMs - this.#lastMs)
    this.#lastMs = atMs
    if (this.#count++ === 0) return
    const part = Math.max(1 / this.#count, NEWEST)
    this.#mean += (gapMs - this.#mean) * part
    this.#square += (gapMs * gapMs - this.#square) * part
  }

  /**
   * The standard deviation of the gaps in relation to their mean: 1 for people who know nothing of each other,
   * near 0 for a clock. `null`: too few pages.
   */
  get variation(): number | null {
    if (this.#count < COUNT_MIN || this.#mean === 0) return null
    return Math.sqrt(Math.max(0, this.#square - this.#mean * this.#mean)) / this.#mean
  }

  get isEven(): boolean {
    const { variation } = this
    return variation !== null && variation < VARIATION_MAX
  }
}

const NEWEST = 1 / 64
const COUNT_MIN = 32
const VARIATION_MAX = 0.5
