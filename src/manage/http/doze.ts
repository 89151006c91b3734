import { setTimeout as wait } from 'node:timers/promises'

/**
 * The pause of a worker between two looks for work in the database. It ends when this process adds work, or
 * after `pollMs`, because another process may have added some.
 */
export class Doze {
  readonly #pollMs: number
  readonly #closing: AbortSignal
  #wake: () => void = () => undefined
  #woken: Promise<void> = Promise.resolve()

  /** A pause that begins after `closing` aborts ends at once. */
  constructor(pollMs: number, closing: AbortSignal) {
    this.#pollMs = pollMs
    this.#closing = closing
    this.#sleepAgain()
  }

  /**
   * Take this before looking for work: then work that arrives during the search ends the next pause at once.
   */
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
