import { CONNECTION_WINDOW_BYTES, type Http2Body, STREAM_WINDOW_BYTES } from './body.ts'
import type { Outflow } from './outflow.ts'

/** How much the client may send: the windows of one connection and of its uploads (RFC 9113 §6.9). */
export class Inflow {
  readonly #outflow: Outflow
  /** For all streams together, and what was taken of it that the client does not know of yet. */
  #window: number = CONNECTION_WINDOW_BYTES
  #owed = 0

  constructor(outflow: Outflow) {
    this.#outflow = outflow
  }

  /** DATA has begun. `false`: it is more than the client may send. */
  came(bytes: number): boolean {
    this.#window -= bytes
    return this.#window >= 0
  }

  /** These bytes are kept no longer: the client may send as many again, on other streams. */
  free(bytes: number): void {
    this.#owed += bytes
    if (this.#owed < CONNECTION_WINDOW_BYTES / 2) return
    this.#outflow.windowUpdate(0, this.#owed)
    this.#window += this.#owed
    this.#owed = 0
  }

  /** The same for its own stream, too. */
  grant(stream: number, body: Http2Body, bytes: number): void {
    if (bytes === 0) return
    this.free(bytes)
    body.owed += bytes
    if (body.isWhole || body.owed < STREAM_WINDOW_BYTES / 2) return
    this.#outflow.windowUpdate(stream, body.owed)
    body.window += body.owed
    body.owed = 0
  }

  /** The reader of a body has taken everything. */
  took(stream: number, body: Http2Body): void {
    const { held } = body
    body.held = 0
    this.grant(stream, body, held)
  }
}
