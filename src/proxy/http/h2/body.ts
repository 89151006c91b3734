import { FedBody } from '../fed-body.ts'

/** The body of an HTTP/2 request, with the bytes that the client may still send. */
export class Http2Body extends FedBody {
  /** What the client may send before it has to wait for us. */
  window: number = STREAM_WINDOW_BYTES
  /** Bytes received so far. */
  received = 0
  /** Bytes that its reader has not taken. */
  held = 0
  /** Bytes that its reader has taken and that the client does not know of yet. */
  owed = 0

  /** Its reader has fallen behind: the client is held back. */
  get isFull(): boolean {
    return this.held > 0
  }
}

/** How much one upload may send ahead, and how much of it we buffer while its app does not read. */
export const STREAM_WINDOW_BYTES = 262_144
/** The same for all uploads of a connection. The default of 64 KiB is too small for long distances. */
export const CONNECTION_WINDOW_BYTES = 1_048_576
/** How much of a body is read and dropped after its request was answered. */
export const DROPPED_BYTES_MAX = 16_777_216
