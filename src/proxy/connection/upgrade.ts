import type { Duplex } from 'node:stream'
import type { Connection } from './connection.ts'
import type { ReceivedHead } from './received-head.ts'

/** A request to go on in another protocol: an HTTP/1.1 upgrade, or an extended CONNECT of HTTP/2 (RFC 8441). */
export interface Upgrade {
  readonly connection: Connection
  readonly requestHead: ReceivedHead
  readonly authority: string | null
  /** The value of the Upgrade header for the app. */
  readonly protocol: string
  /** An extended CONNECT has no WebSocket key. The proxy sends one to the app and checks the answer to it. */
  readonly isKeyless: boolean
  /**
   * What the client sends after its request, and what it gets. If it ends or closes before an answer, the client no
   * longer wants one.
   */
  readonly stream: UpgradeStream
  /** The app has switched protocols. `headers` are those of its 101. */
  agree(headers: readonly string[]): void
  /** Begins another final answer, whose body is then written to `stream`. `reason` is for HTTP/1. */
  answer(status: number, headers: readonly string[], reason: string | null): void
  /** The body of that answer is complete. */
  finish(): void
  /** Breaks that answer off, so that the client sees that it is incomplete. */
  cutOff(): void
}

export interface UpgradeStream extends Duplex {
  /** Calls back once nothing has passed for so long. */
  setTimeout(ms: number, onIdle: () => void): unknown
  /** Destroys the stream once everything written has been sent. */
  destroySoon(): void
}
