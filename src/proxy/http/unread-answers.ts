import type { ClientConnection } from '../connection/connection.ts'
import { cutOff } from '../connection/cut-off.ts'

/**
 * Closes HTTP/1 connections whose client does not read its answer, which ties up our memory and an app
 * connection. It also closes those that Node (24.21) loses track of, because they were reset while TLS had
 * data to write: Node neither reads nor writes there again and reports no error. HTTP/2 has its own check in
 * http2-server.ts.
 */
export class UnreadAnswers {
  readonly #connections: Iterable<ClientConnection>
  readonly #timeoutMs: number
  readonly #seen = new WeakMap<ClientConnection, Taken>()
  readonly #timer: NodeJS.Timeout

  readonly #timedOut: () => void

  constructor(connections: Iterable<ClientConnection>, timeoutMs: number, timedOut: () => void) {
    this.#connections = connections
    this.#timedOut = timedOut
    this.#timeoutMs = timeoutMs
    this.#timer = setInterval(() => this.#look(), timeoutMs / LOOKS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const nowMs = performance.now()
    for (const connection of this.#connections) {
      const { stage, stream, raw } = connection
      // A connection that switched protocols may be as slow as it likes.
      if (stage !== 'h1' || stream.writableLength === 0) continue
      const bytes = stream.bytesWritten - stream.writableLength
      const seen = this.#seen.get(connection)
      if (seen === undefined || seen.bytes !== bytes) this.#seen.set(connection, { bytes, sinceMs: nowMs })
      else if (nowMs - seen.sinceMs >= this.#timeoutMs) {
        this.#timedOut()
        cutOff(stream)
        raw.destroy()
      }
    }
  }
}

/** How many bytes have left the process, and since when that number is unchanged. */
interface Taken {
  readonly bytes: number
  readonly sinceMs: number
}

/** Number of checks per timeout. */
const LOOKS = 4
