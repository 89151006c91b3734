import type { Readable } from 'node:stream'
import type { Connection } from './connection.ts'
import type { ReceivedHead } from './received-head.ts'

/**
 * One request and its answer, the same for HTTP/1 and HTTP/2. The holder answers exactly once or aborts. All
 * headers are flat lists (name, value, …). Hop-by-hop fields never pass through here in either direction.
 */
export interface Exchange {
  readonly connection: Connection
  readonly head: ReceivedHead
  /** Host or :authority as sent. `null` if the client sent none (HTTP/1.0). */
  readonly authority: string | null
  /** The request body; it ends at once if the request has no body. If it is not read, the client is held back. */
  readonly body: Readable
  /** Whether the whole body has arrived, read or not. */
  readonly isBodyWhole: boolean
  /** The announced length in bytes. 0: no body. `null`: unknown length. */
  readonly bodyLength: number | null
  /** The client waits for a 100 before it sends the body (`Expect: 100-continue`). */
  readonly expectsContinue: boolean
  /** The client accepts trailers (`TE: trailers`; always in HTTP/2). */
  readonly acceptsTrailers: boolean
  /** Request trailers after the body, complete once `body` has ended. The app may not get all of them. */
  readonly trailers: readonly string[]
  /** Whether a final answer has begun. */
  readonly answered: boolean
  /** Called once if the client disconnects before its answer is complete. */
  onGone: (() => void) | null

  /** Sends an interim answer: 100 or 103. Dropped if the client's protocol does not support them. */
  inform(status: number, headers: readonly string[]): void
  /**
   * Begins the final answer. `bodyLength` is as above, and 0 for HEAD, 204 and 304 whatever their
   * Content-Length is. The list has all headers except framing: Content-Length if known, never
   * Transfer-Encoding. `reason` replaces the usual reason phrase of HTTP/1. `neverIndexed`: see ReceivedHead.
   */
  answer(
    status: number,
    headers: readonly string[],
    bodyLength: number | null,
    reason?: string | null,
    neverIndexed?: readonly string[],
  ): void
  /**
   * Sends a part of the answer's body. `false`: wait for `onDrain`. The bytes are copied or written before it
   * returns.
   */
  write(chunk: Uint8Array): boolean
  onDrain: (() => void) | null
  end(trailers: readonly string[]): void
  /** Breaks the answer off, so that the client sees that it is incomplete. */
  abort(): void
}
