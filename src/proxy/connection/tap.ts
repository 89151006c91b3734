import type { TLSSocket } from 'node:tls'
import type { Http2Said } from '../../fingerprint/http2.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import type { Connection } from './connection.ts'

/** Observes what clients send, for a recording. Normal traffic has no tap and pays nothing for it. */
export interface Tap {
  /**
   * `records` are the TLS records as received, at least up to the end of the hello. Valid during the call.
   */
  opened(connection: Connection, records: Uint8Array): void
  secured(connection: Connection, socket: TLSSocket): void
  /** `null`: the client sent more than any real client does. */
  http2(connection: Connection, said: Http2Said | null): void
  /** `bodyLength` is the announced length in bytes, `null` for a body of unknown length. */
  request(connection: Connection, head: RequestHead, bodyLength: number | null): void
  closed(connection: Connection): void
}
