import { Duplex, type Readable } from 'node:stream'
import type { UpgradeStream } from '../../connection/upgrade.ts'
import type { OwnHttp2Exchange } from './exchange.ts'

/** The bytes of a tunnel, which are DATA in both directions. */
export class TunnelStream extends Duplex implements UpgradeStream {
  readonly #tunnel: OwnHttp2Exchange
  readonly #body: Readable
  #onRoom: (() => void) | null = null
  #idle: NodeJS.Timeout | null = null

  constructor(tunnel: OwnHttp2Exchange) {
    // Bytes wait in the body, which joins small pieces and holds the client back.
    super({ readableHighWaterMark: 1 })
    this.#tunnel = tunnel
    this.#body = tunnel.body
    tunnel.onGone = () => this.destroy()
    tunnel.onDrain = () => this.#hasRoom()
    this.#body.on('data', (bytes: Buffer) => this.#came(bytes)).once('end', () => this.push(null))
  }

  setTimeout(ms: number, onIdle: () => void): void {
    this.#idle = setTimeout(onIdle, ms)
  }

  destroySoon(): void {
    if (this.destroyed) return
    this.end(() => this.destroy())
  }

  override _read(): void {
    this.#body.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#idle?.refresh()
    if (this.#tunnel.write(chunk)) done()
    else this.#onRoom = done
  }

  /** Small pieces that were held back together become one frame. */
  override _writev(chunks: { readonly chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'latin1', done)
  }

  override _final(done: () => void): void {
    this.#tunnel.end([])
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    if (this.#idle !== null) clearTimeout(this.#idle)
    this.#tunnel.cancel()
    this.#body.destroy()
    done(error)
  }

  #came(bytes: Buffer): void {
    this.#idle?.refresh()
    // The app's socket may keep a small piece for long, which must not keep the chunk in which it came.
    const isSmall = bytes.length * SHARE_MIN < bytes.buffer.byteLength
    if (!this.push(isSmall ? Buffer.from(bytes) : bytes)) this.#body.pause()
  }

  #hasRoom(): void {
    this.#idle?.refresh()
    const done = this.#onRoom
    this.#onRoom = null
    done?.()
  }
}

const SHARE_MIN = 4
