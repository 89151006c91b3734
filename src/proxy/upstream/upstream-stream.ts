import type { UpstreamRequest } from './upstream-request.ts'

/** Why an upstream gave no complete answer. */
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
 * Whether the request may be sent again. `safe`: the app cannot have seen it. `idempotent`: the app may have
 * seen it, but no byte of an answer came, on a reused connection that closed or took no more requests.
 */
export type Retry = 'safe' | 'idempotent' | 'never'

/** One request at an upstream, the same for HTTP/1 and HTTP/2. */
export interface UpstreamStream {
  /** Sends a part of the body. `false`: wait for `writable`. */
  write(chunk: Uint8Array): boolean
  end(trailers: readonly string[]): void
  /** Continues the answer after `received` returned `false`. */
  resume(): void
  /** Cancels the request at any time. No callback follows. */
  cancel(): void
}

/** Receives the answer. After `completed` or `failed` no call follows. */
export interface Receiver {
  readonly request: UpstreamRequest
  /** Whether the whole request body has arrived from the client. */
  readonly isBodyWhole: boolean
  /** The request's head is being sent. Its body may follow. */
  opened(stream: UpstreamStream, isReused: boolean): void
  writable(): void
  informed(status: number, headers: readonly string[]): void
  /** Arguments as in `Exchange.answer`. */
  answered(
    status: number,
    reason: string | null,
    headers: readonly string[],
    bodyLength: number | null,
    neverIndexed?: readonly string[],
  ): void
  /** The bytes are valid during the call. `false`: it will call `resume`. */
  received(bytes: Uint8Array): boolean
  completed(trailers: readonly string[]): void
  failed(failure: UpstreamFailure, retry: Retry): void
}
