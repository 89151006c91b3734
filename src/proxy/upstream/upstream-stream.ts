import type { UpstreamRequest } from './upstream-request.ts'

/** Why an upstream gave no whole answer. */
export type UpstreamFailure =
  | 'refused'
  | 'unreachable'
  | 'tls'
  | 'connect-timeout'
  | 'head-timeout'
  | 'idle-timeout'
  | 'reset'
  | 'bad-response'
  | 'bad-request'
  | 'overloaded'
  | 'closing'

/**
 * Whether the same request may be sent once more: `safe` when the app cannot have seen it, `idempotent` when it may
 * have, on a connection that had died of age or took no more, and not a byte of an answer came.
 */
export type Retry = 'safe' | 'idempotent' | 'never'

/** One request under way at an upstream, the same for HTTP/1 and HTTP/2. */
export interface UpstreamStream {
  /** A part of the body; `false` asks to wait for `writable`. */
  write(chunk: Uint8Array): boolean
  end(trailers: readonly string[]): void
  /** Goes on with the answer after `received` said to wait. */
  resume(): void
  /** Lets go of it, at any time: nothing more is called. */
  cancel(): void
}

/** Whoever waits for the answer. After `completed` or `failed` nothing more is called. */
export interface Receiver {
  readonly request: UpstreamRequest
  /** All of the request's body has come from the client. */
  readonly isBodyWhole: boolean
  /** The request's head is on its way; now its body, if it has one. */
  opened(stream: UpstreamStream, isReused: boolean): void
  writable(): void
  informed(status: number, headers: readonly string[]): void
  /** As `Exchange.answer` wants it. */
  answered(status: number, reason: string | null, headers: readonly string[], bodyLength: number | null): void
  /** The bytes are gone when it returns; `false` asks to wait for `resume`. */
  received(bytes: Uint8Array): boolean
  completed(trailers: readonly string[]): void
  failed(failure: UpstreamFailure, retry: Retry): void
}
