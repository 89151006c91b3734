import type { Http2Said } from '../../../fingerprint/http2.ts'
import type { Beat, Swept } from '../../connection/beat.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { Http2Handlers, Http2Limits } from '../http2-server.ts'

export interface OwnHttp2Limits extends Http2Limits {
  readonly headerTimeoutMs: number
}

/** What all connections of one HTTP/2 server share. */
export interface Http2Context {
  readonly limits: OwnHttp2Limits
  readonly handlers: Http2Handlers
  readonly beat: Beat
  /** Called with what a client said before its first request. */
  opened(connection: ClientConnection, said: Http2Said | null): void
  /** The connection has closed. */
  left(session: Swept): void
}
