import type { Http2Said } from '../../../fingerprint/http2.ts'
import type { Beat, Swept } from '../../connection/beat.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { Upgrade } from '../../connection/upgrade.ts'
import type { Http2Handlers, Http2Limits } from '../http2-server.ts'

export interface OwnHttp2Limits extends Http2Limits {
  readonly headerTimeoutMs: number
}

export interface OwnHttp2Handlers extends Http2Handlers {
  upgrade(upgrade: Upgrade): void
}

/** What all connections of one HTTP/2 server share. */
export interface Http2Context {
  readonly limits: OwnHttp2Limits
  readonly handlers: OwnHttp2Handlers
  readonly beat: Beat
  /** No further tunnel may begin. */
  readonly hasEndedTunnels: boolean
  /** Called with what a client said before its first request. */
  opened(connection: ClientConnection, said: Http2Said | null): void
  /** The connection has closed. */
  left(session: Swept): void
}
