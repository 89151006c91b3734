import { setTimeout as wait } from 'node:timers/promises'

/** The rest of who works on what a database has for it: until there is something here, or may be from elsewhere. */
export class Doze {
  readonly #pollMs: number
  readonly #closing: AbortSignal
  #wake: () => void = () => undefined
  #woken: Promise<void> = Promise.resolve()

  /** `closing`: from then on nobody rests. */
  constructor(pollMs: number, closing: AbortSignal) {
    this.#pollMs = pollMs
    this.#closing = closing
    this.#sleepAgain()
  }

  /** To be taken before looking for work: what comes while it is looked for is not slept through. */
  get woken(): Promise<void> {
    return this.#woken
  }

  wake(): void {
    this.#wake()
    this.#sleepAgain()
  }

  async pause(woken: Promise<void>): Promise<void> {
    if (this.#closing.aborted) return
    const rest = new AbortController()
    const asleep = wait(this.#pollMs, undefined, { ref: false, signal: rest.signal }).catch(() => undefined)
    await Promise.race([woken, asleep])
    rest.abort()
  }

  #sleepAgain(): void {
    this.#woken = new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
