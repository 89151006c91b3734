import type { ClientConnection } from '../connection/connection.ts'
import { cutOff } from '../connection/cut-off.ts'

/**
 * A client of HTTP/1 may leave its answer in its socket, and with it all that waits behind: our memory, and a connection to
 * the app. Node (24.21) also forgets connections that were reset while TLS had something to write: it neither reads nor
 * writes there again, and says nothing. Both end here. (HTTP/2 has answers of its own: see http2-server.ts.)
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
      // What has become another protocol may be as slow as it likes.
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

/** How much of what it was given has left the process, and since when. */
interface Taken {
  readonly bytes: number
  readonly sinceMs: number
}

/** As often within its time an answer is looked at. */
const LOOKS = 4
