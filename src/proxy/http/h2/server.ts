import type { Http2Said } from '../../../fingerprint/http2.ts'
import { Beat } from '../../connection/beat.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { Http2Context, OwnHttp2Handlers, OwnHttp2Limits } from './context.ts'
import { Http2Session } from './session.ts'

/** HTTP/2 on accepted sockets, read and written by ourselves. */
export class OwnHttp2Server implements Http2Context {
  readonly limits: OwnHttp2Limits
  readonly handlers: OwnHttp2Handlers
  readonly beat = new Beat()
  /** Called with what a client said before its first request. */
  readonly opened: (connection: ClientConnection, said: Http2Said | null) => void
  readonly #sessions = new Set<Http2Session>()
  hasEndedTunnels = false
  #isDraining = false

  constructor(
    limits: OwnHttp2Limits,
    handlers: OwnHttp2Handlers,
    opened: (connection: ClientConnection, said: Http2Said | null) => void,
  ) {
    this.limits = limits
    this.handlers = handlers
    this.opened = opened
  }

  get streamCount(): number {
    let count = 0
    for (const session of this.#sessions) count += session.streams.open.size
    return count
  }

  accept(connection: ClientConnection): void {
    connection.stage = 'h2'
    connection.protocol = 'h2'
    const session = new Http2Session(connection, this)
    this.#sessions.add(session)
    this.beat.join(session)
    if (this.#isDraining) session.drain()
  }

  /** The connection has closed. */
  left(session: Http2Session): void {
    this.#sessions.delete(session)
    this.beat.leave(session)
  }

  /** A drain has given WebSockets their time. */
  endTunnels(): void {
    this.hasEndedTunnels = true
    for (const session of this.#sessions) session.streams.endTunnels()
  }

  drain(): void {
    this.#isDraining = true
    for (const session of this.#sessions) session.drain()
  }
}
