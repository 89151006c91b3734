import type { TLSSocket } from 'node:tls'
import type { Http2Said } from '../../fingerprint/http2.ts'
import type { RequestHead } from '../../wire/request-head.ts'
import type { Connection } from './connection.ts'

/** Watches what clients send, for a recording. Traffic has none, and is not slower for it. */
export interface Tap {
  /** `records`: of TLS, as they came, up to the end of the hello or further. Valid during the call. */
  opened(connection: Connection, records: Uint8Array): void
  secured(connection: Connection, socket: TLSSocket): void
  /** `null`: more than any client says. */
  http2(connection: Connection, said: Http2Said | null): void
  /** `bodyLength`: bytes announced, `null` when none are and there is a body. */
  request(connection: Connection, head: RequestHead, bodyLength: number | null): void
  closed(connection: Connection): void
}
