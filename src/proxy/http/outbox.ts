/** Sends a text at once. */
export interface Sender {
  send(text: string): void
}

/** A request that may be cancelled before this event loop turn ends. */
export interface Arrival {
  begin(): unknown
}

/**
 * Collects texts and sends them together at the end of the event loop turn. A write to a sleeping process has
 * to wake it, which costs as much as the write itself; of several writes in a row only the first pays that.
 * Arrivals begin just before, so that their texts leave with the rest.
 */
class Outbox {
  #arrivals: Arrival[] = []
  #senders: Sender[] = []
  #texts: string[] = []
  #turn = 0
  #isExpected = false

  /** The number of this event loop turn. It changes after each emptying. */
  get turn(): number {
    this.#expect()
    return this.#turn
  }

  put(sender: Sender, text: string): void {
    this.#expect()
    this.#senders.push(sender)
    this.#texts.push(text)
  }

  beforehand(arrival: Arrival): void {
    this.#expect()
    this.#arrivals.push(arrival)
  }

  #expect(): void {
    if (this.#isExpected) return
    this.#isExpected = true
    this.#turn++
    setImmediate(this.#empty)
  }

  readonly #empty = (): void => {
    // What begins here may add texts, and must not schedule another turn for them.
    for (const arrival of this.#arrivals) arrival.begin()
    this.#arrivals = []
    const senders = this.#senders
    const texts = this.#texts
    this.#senders = []
    this.#texts = []
    this.#isExpected = false
    for (let i = 0; i < senders.length; i++) senders[i]!.send(texts[i]!)
  }
}

export const OUTBOX = new Outbox()
