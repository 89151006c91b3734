/** Who can send a text at once. */
export interface Sender {
  send(text: string): void
}

/**
 * Texts that leave together at the end of this turn of the event loop. A write to somebody who sleeps has to wake him,
 * which costs as much as the write; of several one after the other only the first does.
 */
class Outbox {
  #senders: Sender[] = []
  #texts: string[] = []

  put(sender: Sender, text: string): void {
    if (this.#senders.length === 0) setImmediate(this.#empty)
    this.#senders.push(sender)
    this.#texts.push(text)
  }

  readonly #empty = (): void => {
    const senders = this.#senders
    const texts = this.#texts
    this.#senders = []
    this.#texts = []
    for (let i = 0; i < senders.length; i++) senders[i]!.send(texts[i]!)
  }
}

export const OUTBOX = new Outbox()
