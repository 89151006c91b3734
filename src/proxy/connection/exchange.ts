import type { Readable } from 'node:stream'
import type { Connection } from './connection.ts'
import type { ReceivedHead } from './received-head.ts'

/**
 * One request and the answer to it, the same for HTTP/1 and HTTP/2. Whoever holds it answers exactly once, or aborts.
 * All headers are flat lists (name, value, …), and hop-by-hop fields never pass through here in either direction.
 */
export interface Exchange {
  readonly connection: Connection
  readonly head: ReceivedHead
  /** Host or :authority as sent; `null` without one (HTTP/1.0). */
  readonly authority: string | null
  /** The request's body; ends at once when there is none. Not read, it holds the client back. */
  readonly body: Readable
  /** All of it has come, read or not. */
  readonly isBodyWhole: boolean
  /** Bytes announced; 0 is no body at all, `null` a body of unknown length. */
  readonly bodyLength: number | null
  /** The client waits for a 100 before it sends the body (`Expect: 100-continue`). */
  readonly expectsContinue: boolean
  /** The client accepts trailers (`TE: trailers`; always in HTTP/2). */
  readonly acceptsTrailers: boolean
  /** Trailers of the request that may come behind a body, complete once `body` has ended. Not all may reach the app. */
  readonly trailers: readonly string[]
  /** A final answer has begun. */
  readonly answered: boolean
  /** Called once when the client goes away before its answer is complete. */
  onGone: (() => void) | null

  /** An interim answer: 100, 103. Dropped where the client's protocol has none. */
  inform(status: number, headers: readonly string[]): void
  /**
   * Begins the final answer. `bodyLength` as above, and 0 for HEAD, 204 and 304 whatever their Content-Length says; the
   * header list is complete but for framing (Content-Length stands in it where it is known; Transfer-Encoding never).
   * `reason` is what HTTP/1 says beside the status, in place of the usual words.
   */
  answer(status: number, headers: readonly string[], bodyLength: number | null, reason?: string | null): void
  /** Part of the answer's body; `false` asks to wait for `onDrain`. The bytes are copied or written before it returns. */
  write(chunk: Uint8Array): boolean
  onDrain: (() => void) | null
  end(trailers: readonly string[]): void
  /** Breaks the answer off, so that the client can tell it is not whole. */
  abort(): void
}
