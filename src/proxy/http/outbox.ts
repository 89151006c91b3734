/** Who can send a text at once. */
export interface Sender {
  send(text: string): void
}

/** What has come, and may be taken back before this turn of the event loop has ended. */
export interface Arrival {
  begin(): unknown
}

/**
 * Texts that leave together at the end of this turn of the event loop. A write to somebody who sleeps has to wake him,
 * which costs as much as the write; of several one after the other only the first does. Just before, what has come
 * begins, so that what it has to say leaves with the rest.
 */
class Outbox {
  #arrivals: Arrival[] = []
  #senders: Sender[] = []
  #texts: string[] = []
  #turn = 0
  #isExpected = false

  /** The number of this turn of the event loop: the same until the outbox is emptied, and another one afterwards. */
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
    // What begins puts more into it, which is not to set another turn.
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
