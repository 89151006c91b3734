import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import type { Test } from 'tap'
import { DATA, GOAWAY, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE } from '../../hostile/http2-peer.ts'
import { testCa, testLeaf } from '../test-certificates.ts'

/** Passes bytes on between a client and a server, and notes the frames of their last streams. */
export class FrameLog {
  port = 0
  /** The frames of streams of which the client had received more than it had read. */
  readonly stalls: string[] = []
  /** By the port of the client. */
  readonly #books = new Map<number, Book>()

  /** Over TLS the client speaks TLS with this relay, and this relay with the server. */
  static async start(t: Test, port: number, isTls: boolean): Promise<FrameLog> {
    const log = new FrameLog()
    const identity = isTls ? await testLeaf(await testCa(), ['a.example.test']) : null
    const serve = (client: net.Socket) => log.#pass(client, port, isTls)
    const server =
      identity === null
        ? net.createServer(serve)
        : tls.createServer({ key: identity.key, cert: identity.certificate, ALPNProtocols: ['h2'] }, serve)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    log.port = (server.address() as net.AddressInfo).port
    t.teardown(() => server.close())
    return log
  }

  /** What was said on a stream of the connection that came from this port. */
  textOf(clientPort: number, stream: number): string {
    return this.#books.get(clientPort)?.textOf(stream) ?? 'no frames'
  }

  /**
   * Whether the client has been sent more of a stream than it has read: its end, or bytes that its own window still
   * counts as free.
   */
  isAhead(clientPort: number, stream: number, clientWindow: number): boolean {
    return this.#books.get(clientPort)?.isAhead(stream, clientWindow) ?? false
  }

  #pass(client: net.Socket, port: number, isTls: boolean): void {
    const book = new Book(client)
    const from = client.remotePort!
    this.#books.set(from, book)
    const to = { port, host: '127.0.0.1' }
    const server = isTls
      ? tls.connect({ ...to, rejectUnauthorized: false, servername: 'a.example.test', ALPNProtocols: ['h2'] })
      : net.connect(to)
    const asks = new Cutter(PREFACE_BYTES, (frame) => book.note('client', frame))
    const answers = new Cutter(0, (frame) => book.note('server', frame))
    client.on('data', (bytes: Buffer) => asks.push(bytes)).pipe(server)
    server.on('data', (bytes: Buffer) => answers.push(bytes)).pipe(client)
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroySoon())
    }
    client.on('close', () => this.#books.delete(from))
  }
}

type Side = 'client' | 'server'

interface Noted {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly length: number
  /** The first bytes of its payload, behind its header. */
  readonly bytes: Buffer
}

/** What one side has done with one stream, or with the connection as stream 0. */
class Account {
  sent = 0
  granted = 0
  isEnded = false
  reset: number | null = null
  readonly frames: string[] = []
}

/** The accounts of one connection. */
class Book {
  readonly #accounts = new Map<number, Record<Side, Account>>()
  readonly #window = { client: 65_535, server: 65_535 }
  readonly #client: net.Socket

  constructor(client: net.Socket) {
    this.#client = client
  }

  note(side: Side, { type, flags, stream, length, bytes }: Noted): void {
    const accounts = this.#accountsOf(stream)
    const account = accounts[side]
    account.frames.push(`${NAMES[type] ?? type}/${flags}:${length}`)
    if (account.frames.length > FRAMES_MAX) account.frames.splice(0, FRAMES_MAX / 2)
    switch (type) {
      case DATA:
        account.sent += length
        this.#accountsOf(0)[side].sent += length
        break
      case RST_STREAM:
        account.reset = bytes.readUInt32BE(0)
        break
      case WINDOW_UPDATE:
        accounts[side === 'client' ? 'server' : 'client'].granted += bytes.readUInt32BE(0)
        break
      case SETTINGS:
        for (let at = 0; at + 6 <= bytes.length; at += 6)
          if (bytes.readUInt16BE(at) === 4)
            this.#window[side === 'client' ? 'server' : 'client'] = bytes.readUInt32BE(at + 2)
        break
    }
    if ((type === DATA || type === HEADERS) && (flags & 1) !== 0) account.isEnded = true
  }

  isAhead(stream: number, clientWindow: number): boolean {
    const { isEnded, reset } = this.#accountsOf(stream).server
    return isEnded || reset !== null || this.#windowLeft(stream, 'server') < clientWindow
  }

  textOf(stream: number): string {
    const held = `the relay holds ${this.#client.writableLength} bytes for the client`
    const lines = [0, stream].flatMap((number) =>
      (['client', 'server'] as const).map((side) => {
        const account = this.#accountsOf(number)[side]
        const left = this.#windowLeft(number, side)
        const end = account.reset === null ? account.isEnded : `reset ${account.reset}`
        const frames = account.frames.slice(-FRAMES_SHOWN).join(' ')
        return `${side} on ${number}: ended ${end}, sent ${account.sent}, may send ${left}: ${frames}`
      }),
    )
    return [held, ...lines].join('\n')
  }

  #windowLeft(stream: number, side: Side): number {
    const { granted, sent } = this.#accountsOf(stream)[side]
    return (stream === 0 ? 65_535 : this.#window[side]) + granted - sent
  }

  #accountsOf(stream: number): Record<Side, Account> {
    let accounts = this.#accounts.get(stream)
    if (accounts === undefined) {
      accounts = { client: new Account(), server: new Account() }
      this.#accounts.set(stream, accounts)
      if (this.#accounts.size > STREAMS_MAX) {
        const oldest = [...this.#accounts.keys()].find((number) => number !== 0)!
        this.#accounts.delete(oldest)
      }
    }
    return accounts
  }
}

/** Cuts what is passed on into frames, of which it keeps the first bytes only. */
class Cutter {
  #skip: number
  #head: Buffer = Buffer.alloc(0)
  readonly #tell: (frame: Noted) => void

  constructor(prefaceBytes: number, tell: (frame: Noted) => void) {
    this.#skip = prefaceBytes
    this.#tell = tell
  }

  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      const skipped = Math.min(this.#skip, chunk.length - at)
      this.#skip -= skipped
      at += skipped
      if (at === chunk.length) return
      const wanted = this.#wanted() - this.#head.length
      const taken = chunk.subarray(at, at + wanted)
      this.#head = Buffer.concat([this.#head, taken])
      at += taken.length
      if (this.#head.length < 9 || this.#head.length < this.#wanted()) continue
      const head = this.#head
      const length = head.readUIntBE(0, 3)
      const stream = head.readUInt32BE(5) & 0x7fff_ffff
      this.#skip = length - (head.length - 9)
      this.#head = Buffer.alloc(0)
      this.#tell({ type: head[3]!, flags: head[4]!, stream, length, bytes: head.subarray(9) })
    }
  }

  /** The header, and of a short frame its payload. */
  #wanted(): number {
    if (this.#head.length < 9) return 9
    const length = this.#head.readUIntBE(0, 3)
    return SHORT.has(this.#head[3]!) ? 9 + Math.min(length, 60) : 9
  }
}

const NAMES = ['DATA', 'HEADERS', 'PRIORITY', 'RST', 'SETTINGS', 'PUSH', 'PING', 'GOAWAY', 'WINDOW', 'CONT']
const SHORT: ReadonlySet<number> = new Set([RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE])
const PREFACE_BYTES = 24
const STREAMS_MAX = 200
const FRAMES_MAX = 400
const FRAMES_SHOWN = 40
