import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { Answer, fieldsOf } from './answer.ts'
import { FORGED } from './app-view.ts'
import { FORGED_NAMES } from './client-h1.ts'
import { Pattern } from './pattern.ts'
import { encodePlan, type Plan, pathOf } from './plan.ts'
import type { Random } from './random.ts'

/** A session of HTTP/2; several requests may be under way. */
export class H2Client {
  readonly #session: ClientHttp2Session
  readonly #random: Random
  readonly #closeSession: () => void
  /** The server accepts no more requests. */
  isGoingAway = false

  constructor(socket: TLSSocket, random: Random) {
    this.#random = random
    this.#session = connect('https://soak.example.test', { createConnection: () => socket })
    this.#closeSession = this.#session.close.bind(this.#session)
    // Node (24.21) calls it at a GOAWAY, and then may stop reading while streams are under way; see upstream-h2.ts.
    this.#session.close = () => undefined
    this.#session.on('error', () => undefined)
    this.#session.on('goaway', () => {
      this.isGoingAway = true
    })
  }

  get isUsable(): boolean {
    return !this.isGoingAway && !this.#session.closed && !this.#session.destroyed
  }

  /** Of a session that does not get on. */
  get state(): string {
    if (this.#session.destroyed) return 'destroyed'
    const { remoteWindowSize, localWindowSize, outboundQueueSize } = this.#session.state
    const windows = `may send ${remoteWindowSize} and take ${localWindowSize} bytes`
    return `${windows}, ${outboundQueueSize} frames to send${this.isGoingAway ? ', going away' : ''}`
  }

  async exchange(plan: Plan): Promise<{ answer: Answer; hasLeft: boolean }> {
    const answer = new Answer(plan)
    if (!this.isUsable) return { answer, hasLeft: false }
    const stream = this.#session.request(headersOf(plan), {
      endStream: plan.upload === 0,
      // Else Node would end a request before it resets it, which would then be whole.
      waitForTrailers: plan.upload > 0,
    })
    const exchange = new H2Exchange(plan, answer, stream, this.#random)
    await exchange.run()
    return { answer, hasLeft: exchange.hasLeft }
  }

  /** Resolves when nothing is left of it. */
  async close(): Promise<void> {
    if (this.#session.destroyed) return
    const closed = new Promise<void>((resolve) => this.#session.once('close', () => resolve()))
    this.#closeSession()
    await closed
  }
}

class H2Exchange {
  hasLeft = false
  readonly #plan: Plan
  readonly #answer: Answer
  readonly #stream: ClientHttp2Stream
  readonly #random: Random

  constructor(plan: Plan, answer: Answer, stream: ClientHttp2Stream, random: Random) {
    this.#plan = plan
    this.#answer = answer
    this.#stream = stream
    this.#random = random
  }

  async run(): Promise<void> {
    const stream = this.#stream
    const answer = this.#answer
    stream.on('error', () => undefined) // its close says what counts
    stream.on('response', (_headers, _flags, raw) => {
      answer.head(statusOf(raw), fieldsOf(raw))
      // Not before: what came in one read with the head would be heard of before it.
      stream.on('data', (bytes: Buffer) => this.#received(bytes))
    })
    stream.on('trailers', (_headers, _flags, raw) => {
      answer.trailers = fieldsOf(raw)
    })
    stream.on('wantTrailers', () => {
      if (stream.closed || stream.destroyed) return
      stream.sendTrailers(this.#plan.hasTrailers ? { 'x-soak-trailer': this.#plan.id } : {})
    })
    let hasEnded = false
    let isAborted = false
    stream.on('end', () => {
      // Node says so, too, of what was under way when its connection went.
      hasEnded = stream.session !== undefined && !stream.session.destroyed
    })
    stream.on('aborted', () => {
      isAborted = true
    })
    const closed = new Promise<void>((resolve) => stream.once('close', resolve))
    if (this.#plan.upload > 0) void this.#send()
    await closed
    answer.isWhole =
      hasEnded && !isAborted && answer.status > 0 && stream.rstCode === constants.NGHTTP2_NO_ERROR
  }

  #received(bytes: Buffer): void {
    const { leaves, size, readsSlowly } = this.#plan
    const stream = this.#stream
    if (this.hasLeft) return
    this.#answer.body(bytes)
    if (leaves === 'in-answer' && this.#answer.isFromApp && this.#answer.bytes >= size / 3)
      return this.#leave()
    if (!readsSlowly) return
    stream.pause()
    setTimeout(() => stream.resume(), SLOW_MS)
  }

  async #send(): Promise<void> {
    const { id, upload, pieceMax, pauseMs, leaves } = this.#plan
    const pattern = new Pattern(`up ${id}`)
    const end = leaves === 'in-request' ? this.#random.between(0, upload - 1) : upload
    for (let left = end; left > 0; ) {
      const piece = pattern.next(Math.min(left, this.#random.between(1, pieceMax)))
      left -= piece.length
      if (!(await this.#write(piece))) return
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    if (leaves === 'in-request') this.#leave()
    else this.#stream.end()
  }

  #write(bytes: Uint8Array): Promise<boolean> | boolean {
    const stream = this.#stream
    if (!stream.writable || stream.destroyed || stream.closed) return false
    if (stream.write(bytes)) return true
    return new Promise((resolve) => {
      const go = () => {
        stream.off('drain', go).off('close', go)
        resolve(!stream.destroyed)
      }
      stream.on('drain', go).on('close', go)
    })
  }

  #leave(): void {
    this.hasLeft = true
    this.#stream.close(constants.NGHTTP2_CANCEL)
  }
}

function headersOf(plan: Plan): Record<string, string> {
  const { method, upload, uploadIsChunked, hasTrailers, forges } = plan
  return {
    ':method': method,
    ':path': pathOf(plan),
    cookie: 'a=1; b=2',
    'x-soak-plan': encodePlan(plan),
    ...(hasTrailers && { te: 'trailers' }),
    ...(upload > 0 && !uploadIsChunked && { 'content-length': String(upload) }),
    ...(forges && Object.fromEntries(FORGED_NAMES.map((name) => [name.toLowerCase(), FORGED]))),
  }
}

function statusOf(raw: readonly string[]): number {
  return Number(raw[raw.indexOf(':status') + 1])
}

const SLOW_MS = 5
