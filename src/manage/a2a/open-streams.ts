/** How many streams are open: in all, and each principal's, so that nobody takes all there are. */
export class OpenStreams {
  readonly #max: number
  readonly #ofOneMax: number
  readonly #of = new Map<string, number>()
  #all = 0

  constructor(max: number, ofOneMax: number) {
    this.#max = max
    this.#ofOneMax = ofOneMax
  }

  get size(): number {
    return this.#all
  }

  /** To be called when it ends, however often. `null`: there are as many as there may be. */
  open(principal: string): (() => void) | null {
    const own = this.#of.get(principal) ?? 0
    if (this.#all >= this.#max || own >= this.#ofOneMax) return null
    this.#all++
    this.#of.set(principal, own + 1)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      this.#all--
      const left = this.#of.get(principal)! - 1
      if (left === 0) this.#of.delete(principal)
      else this.#of.set(principal, left)
    }
  }
}
