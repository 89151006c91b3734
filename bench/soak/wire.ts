import type { TLSSocket } from 'node:tls'

/** Reads a connection byte by byte; unread bytes stay in the kernel. */
export class Wire {
  readonly #socket: TLSSocket
  #held: Buffer = Buffer.alloc(0)
  #wake: (() => void) | null = null
  #isOver = false

  constructor(socket: TLSSocket) {
    this.#socket = socket
    const wake = () => this.#wake?.()
    const over = () => {
      this.#isOver = true
      wake()
    }
    socket.on('readable', wake).on('end', over).on('close', over).on('error', over)
  }

  /** What came and has not been asked for. */
  get surplus(): Buffer {
    return this.#held
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Up to and with the mark; `null` when the connection ends before that. */
  async until(mark: string, max: number): Promise<string | null> {
    for (;;) {
      const at = this.#held.indexOf(mark)
      if (at !== -1) return this.#take(at + mark.length).toString('latin1')
      if (this.#held.length > max || !(await this.#more())) return null
    }
  }

  /** Some bytes, no more than `max`; `null` at the end. */
  async some(max: number): Promise<Buffer | null> {
    if (this.#held.length === 0 && !(await this.#more())) return null
    return this.#take(Math.min(max, this.#held.length))
  }

  /** Whether the connection ends, and nothing comes before that. */
  async endsClean(): Promise<boolean> {
    return this.#held.length === 0 && !(await this.#more())
  }

  #take(length: number): Buffer {
    const bytes = this.#held.subarray(0, length)
    this.#held = this.#held.subarray(length)
    return bytes
  }

  async #more(): Promise<boolean> {
    for (;;) {
      const piece = this.#socket.read() as Buffer | null
      if (piece !== null) {
        this.#held = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece])
        return true
      }
      if (this.#isOver) return false
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}
