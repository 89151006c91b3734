/** Runs work at the first nudge at once. Nudges that follow closely share one more run. */
export class Spaced {
  readonly #work: () => void
  #timer: NodeJS.Timeout | null = null
  /** There was a nudge while the timer runs. */
  #isNudged = false

  constructor(work: () => void) {
    this.#work = work
  }

  nudge(): void {
    this.#isNudged = true
    if (this.#timer !== null) return
    this.#isNudged = false
    this.#work()
    this.#timer = setTimeout(() => {
      this.#timer = null
      if (this.#isNudged) this.nudge()
    }, NUDGED_WITHIN_MS).unref()
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}

const NUDGED_WITHIN_MS = 250
