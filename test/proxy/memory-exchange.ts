import { EventEmitter, once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import type { ReceivedHead } from '../../src/proxy/connection/received-head.ts'
import { hasOddNames } from '../../src/wire/header-name.ts'

export interface MemoryRequest {
  readonly method?: string
  readonly target?: string
  readonly rawHeaders?: readonly string[]
  readonly body?: Uint8Array | Readable
  readonly bodyLength?: number | null
  readonly expectsContinue?: boolean
  readonly acceptsTrailers?: boolean
  readonly trailers?: readonly string[]
}

/** An Exchange whose client is the test. What it is given is copied at once, as the contract has it. */
export class MemoryExchange extends EventEmitter implements Exchange {
  readonly connection = CONNECTION
  readonly head: ReceivedHead
  readonly authority = 'app.example.test'
  readonly body: Readable
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers: boolean
  readonly trailers: readonly string[]
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null

  readonly informs: { readonly status: number; readonly headers: readonly string[] }[] = []
  status = 0
  headers: readonly string[] = []
  length: number | null = null
  readonly chunks: Buffer[] = []
  endTrailers: readonly string[] | null = null
  isAborted = false
  /** While set, the client takes nothing: `write` says to wait. */
  isSlow = false
  /** What was done that the contract forbids. */
  readonly wrongs: string[] = []

  constructor(request: MemoryRequest = {}) {
    super()
    const { body, bodyLength } = request
    this.head = {
      method: request.method ?? 'GET',
      target: request.target ?? '/',
      version: '11',
      rawHeaders: request.rawHeaders ?? [],
      hasOddNames: hasOddNames(request.rawHeaders ?? []),
    }
    this.bodyLength = bodyLength !== undefined ? bodyLength : body instanceof Uint8Array ? body.length : 0
    this.body = body instanceof Readable ? body : streamOf(body ?? Buffer.alloc(0))
    this.expectsContinue = request.expectsContinue ?? false
    this.acceptsTrailers = request.acceptsTrailers ?? false
    this.trailers = request.trailers ?? []
  }

  get answered(): boolean {
    return this.status !== 0
  }

  get isBodyWhole(): boolean {
    return !('writableEnded' in this.body) || this.body.writableEnded === true
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('latin1')
  }

  inform(status: number, headers: readonly string[]): void {
    if (this.answered) this.wrongs.push('inform after answer')
    this.informs.push({ status, headers })
    this.emit('informed')
  }

  answer(status: number, headers: readonly string[], bodyLength: number | null): void {
    if (this.answered || this.isAborted) this.wrongs.push('answer twice')
    this.status = status
    this.headers = headers
    this.length = bodyLength
    this.emit('answered')
  }

  write(chunk: Uint8Array): boolean {
    if (!this.answered || this.endTrailers !== null || this.isAborted) this.wrongs.push('write out of turn')
    this.chunks.push(Buffer.from(chunk))
    this.emit('written')
    return !this.isSlow
  }

  end(trailers: readonly string[]): void {
    if (!this.answered || this.endTrailers !== null || this.isAborted) this.wrongs.push('end out of turn')
    this.endTrailers = trailers
    this.emit('ended')
  }

  abort(): void {
    if (this.endTrailers !== null) this.wrongs.push('abort after end')
    this.isAborted = true
    this.emit('aborted')
  }

  /** The client takes bytes again. */
  drain(): void {
    this.isSlow = false
    this.onDrain?.()
  }

  /** The client goes away. */
  leave(): void {
    const tell = this.onGone
    this.onGone = null
    tell?.()
    this.body.destroy()
  }

  async until(event: 'informed' | 'answered' | 'written' | 'ended' | 'aborted'): Promise<void> {
    await once(this, event)
  }
}

/** A body the test writes as it goes. */
export function openBody(): PassThrough {
  return new PassThrough()
}

function streamOf(bytes: Uint8Array): Readable {
  let at = 0
  return new Readable({
    read(size) {
      const piece = bytes.subarray(at, at + size)
      at += piece.length
      this.push(piece.length === 0 ? null : piece)
    },
  })
}

const CONNECTION: Connection = {
  id: 1,
  address: '192.0.2.1',
  port: 50_000,
  peerAddress: '192.0.2.1',
  localPort: 8443,
  localAddress: '127.0.0.1',
  protocol: 'h1',
  isTls: true,
  serverName: 'app.example.test',
  print: {
    ja4: null,
    unresumed: null,
    pageWeight: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
    noHello: 'malformed',
    ja4Source: null,
  },
  conduct: new Conduct(),
  introduction: null,
  admittedAuthority: null,
  isTrusted: false,
  isJa4Hop: false,
}
