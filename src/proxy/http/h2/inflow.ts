import type { Outflow } from './outflow.ts'

/** How much the other side may send ahead, in bytes. */
export interface Windows {
  readonly stream: number
  readonly connection: number
}

/** What one stream receives. */
export interface Receiving {
  /** What the other side may send before it has to wait for us. */
  window: number
  /** Bytes that its reader has not taken. */
  held: number
  /** Bytes that its reader has taken and that the other side does not know of yet. */
  owed: number
  /** Nothing more comes. */
  readonly isWhole: boolean
}

/** How much the other side may send: the windows of one connection and of its streams (RFC 9113 §6.9). */
export class Inflow {
  readonly #outflow: Outflow
  readonly #windows: Windows
  /** For all streams together, and what was taken of it that the other side does not know of yet. */
  #window: number
  #owed = 0

  constructor(outflow: Outflow, windows: Windows) {
    this.#outflow = outflow
    this.#windows = windows
    this.#window = windows.connection
  }

  /** DATA has begun. `false`: it is more than the other side may send. */
  came(bytes: number): boolean {
    this.#window -= bytes
    return this.#window >= 0
  }

  /** These bytes are kept no longer: the other side may send as many again, on other streams. */
  free(bytes: number): void {
    this.#owed += bytes
    if (this.#owed < this.#windows.connection / 2) return
    this.#outflow.windowUpdate(0, this.#owed)
    this.#window += this.#owed
    this.#owed = 0
  }

  /** The same for its own stream, too. */
  grant(stream: number, body: Receiving, bytes: number): void {
    if (bytes === 0) return
    this.free(bytes)
    body.owed += bytes
    if (body.isWhole || body.owed < this.#windows.stream / 2) return
    this.#outflow.windowUpdate(stream, body.owed)
    body.window += body.owed
    body.owed = 0
  }

  /** The reader of a body has taken everything. */
  took(stream: number, body: Receiving): void {
    const { held } = body
    body.held = 0
    this.grant(stream, body, held)
  }
}
