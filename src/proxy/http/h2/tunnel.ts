import { CANCEL } from '../../../wire/h2/frame.ts'
import type { ClientConnection } from '../../connection/connection.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import type { Upgrade } from '../../connection/upgrade.ts'
import { Http2Body } from './body.ts'
import { OwnHttp2Exchange } from './exchange.ts'
import { TunnelStream } from './tunnel-stream.ts'

class TunnelBody extends Http2Body {
  onWhole: (() => unknown) | null = null

  override finish(): void {
    super.finish()
    this.onWhole?.()
  }
}

/** An extended CONNECT (RFC 8441): once it is answered with 200, its DATA belong to another protocol. */
export class Http2Tunnel extends OwnHttp2Exchange {
  static override readonly Body = TunnelBody
  /** Both sides may be as slow as they like. */
  isOpen = false

  override begin(): void {
    if (this.isOver) return
    const { incoming } = this
    // A client that ends its side before an answer no longer wants it. To the app this is like a reset.
    if (incoming instanceof TunnelBody)
      incoming.onWhole = () => this.answered || this.turns.faulty(this.stream, CANCEL)
    if (incoming?.isWhole) this.turns.faulty(this.stream, CANCEL)
    else this.turns.upgrade(new Http2Upgrade(this))
  }

  override unreadSince(nowMs: number): number {
    return this.isOpen ? nowMs : super.unreadSince(nowMs)
  }
}

/** A tunnel, as the code for upgrades of HTTP/1.1 sees it. */
export class Http2Upgrade implements Upgrade {
  readonly connection: ClientConnection
  readonly requestHead: ReceivedHead
  readonly authority: string | null
  readonly protocol = 'websocket'
  readonly isKeyless = true
  readonly stream: TunnelStream
  readonly #tunnel: Http2Tunnel

  constructor(tunnel: Http2Tunnel) {
    this.connection = tunnel.connection
    this.requestHead = tunnel.head
    this.authority = tunnel.authority
    this.stream = new TunnelStream(tunnel)
    this.#tunnel = tunnel
  }

  agree(headers: readonly string[]): void {
    const sent: string[] = []
    for (let i = 0; i < headers.length; i += 2)
      if (!HANDSHAKE.test(headers[i]!)) sent.push(headers[i]!, headers[i + 1]!)
    this.#tunnel.isOpen = true
    this.#tunnel.answer(200, sent, null)
  }

  answer(status: number, headers: readonly string[]): void {
    this.#tunnel.answer(status, headers, null)
  }

  finish(): void {
    this.stream.destroySoon()
  }

  cutOff(): void {
    this.#tunnel.abort()
    this.stream.destroy()
  }
}

/** Fields that a 200 to CONNECT must not have (RFC 9110 §9.3.6), or that only HTTP/1.1 needs (RFC 8441 §5). */
const HANDSHAKE = /^(?:sec-websocket-accept|content-length)$/i
