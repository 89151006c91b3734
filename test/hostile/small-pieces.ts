import { once } from 'node:events'
import net from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import tls from 'node:tls'

/** Bytes of which each differs from its neighbors, so that a lost, repeated or moved byte shows. */
export function pattern(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => 97 + ((index * 7 + (index >> 8)) % 26)))
}

/** Counts what comes, and how much of it in the busiest turn of the event loop of this process. */
export class TurnMeter {
  readonly came: Buffer[] = []
  /** Bytes that came in the busiest turn, and how many turns had any. */
  busiest = 0
  turns = 0
  #inThisTurn = 0

  add(bytes: Buffer): void {
    this.came.push(bytes)
    if (this.#inThisTurn === 0) {
      this.turns++
      setImmediate(() => (this.#inThisTurn = 0))
    }
    this.#inThisTurn += bytes.length
    this.busiest = Math.max(this.busiest, this.#inThisTurn)
  }

  get bytes(): Buffer {
    return Buffer.concat(this.came)
  }
}

/** A TLS client that seals its records beforehand, one for each write, and sends all of them at once. */
export class SealingClient {
  readonly stream: tls.TLSSocket
  readonly #transport: SealedTransport

  private constructor(stream: tls.TLSSocket, transport: SealedTransport) {
    this.stream = stream
    this.#transport = transport
  }

  static async dial(port: number): Promise<SealingClient> {
    const transport = new SealedTransport(port)
    const stream = tls.connect({ socket: transport, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
    stream.on('error', () => undefined)
    await once(stream, 'secureConnect')
    return new SealingClient(stream, transport)
  }

  /** So many of the bytes in each record. */
  async seal(bytes: Buffer, inRecord = 1): Promise<void> {
    this.#transport.isHolding = true
    for (let index = 0; index < bytes.length; index += inRecord) {
      this.stream.write(bytes.subarray(index, index + inRecord))
      while (this.stream.writableLength > 0) await turn()
    }
  }

  send(): void {
    this.#transport.send()
  }

  close(): void {
    this.stream.destroy()
    this.#transport.destroy()
  }
}

class SealedTransport extends Duplex {
  isHolding = false
  readonly #socket: net.Socket
  readonly #held: Buffer[] = []

  constructor(port: number) {
    super()
    this.#socket = net.connect(port, '127.0.0.1')
    this.#socket.on('error', () => undefined).on('data', (bytes) => this.push(bytes))
  }

  send(): void {
    this.#socket.write(Buffer.concat(this.#held))
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.isHolding) this.#held.push(chunk)
    else this.#socket.write(chunk)
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
