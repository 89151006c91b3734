/** One event of an event stream (WHATWG HTML, server-sent events). */
export interface StreamEvent {
  /** `message` if the event has no `event` field. */
  readonly event: string
  readonly data: string
  /** The id of this event or of the last event that had one. Empty if no event had one yet. */
  readonly id: string
}

/** Parses an event stream from pieces of any size. */
export class EventStreamReader {
  readonly #lengthMax: number
  #held = ''
  #event = ''
  #data: string[] = []
  #dataLength = 0
  #id = ''

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax
  }

  /**
   * The events that end in this piece. `null` if an event exceeds the limit; the stream is unreadable from
   * there on.
   */
  read(piece: string): readonly StreamEvent[] | null {
    const lines = (this.#held + piece).split(/\r\n|\n|\r(?!$)/)
    this.#held = lines.pop()!
    const events: StreamEvent[] = []
    for (const line of lines) {
      if (line === '') this.#end(events)
      else this.#take(line)
    }
    return this.#held.length + this.#dataLength > this.#lengthMax ? null : events
  }

  #take(line: string): void {
    const colon = line.indexOf(':')
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (field === 'data') {
      this.#data.push(value)
      this.#dataLength += value.length
    } else if (field === 'event') this.#event = value
    else if (field === 'id' && !value.includes('\0')) this.#id = value
  }

  #end(events: StreamEvent[]): void {
    const event = this.#event === '' ? 'message' : this.#event
    if (this.#data.length > 0) events.push({ event, data: this.#data.join('\n'), id: this.#id })
    this.#event = ''
    this.#data = []
    this.#dataLength = 0
  }
}
