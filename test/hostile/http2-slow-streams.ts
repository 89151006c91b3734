import { once } from 'node:events'
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { getRequest, headers, PREFACE, settings, windowUpdate } from '../proxy/http2-frames.ts'
import { dialHttp2, type Http2Peer } from './http2-peer.ts'
import type { Victim } from './victim.ts'

/** Of one client. */
export const STREAMS = 125
/** The app sends an answer in so many parts, and a client takes half a part at a time. */
export const PARTS = 4
export const PART_BYTES = 2_048
export const WINDOW_BYTES = PART_BYTES / 2

/** An app that begins no answer before it is told to, and then sends all of them part by part. */
export class SlowApp {
  readonly url: string
  readonly #answers: [path: string, answer: ServerResponse][] = []

  private constructor(url: string) {
    this.url = url
  }

  static async start(t: Test): Promise<SlowApp> {
    const server = createServer()
    server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 })
    await once(server, 'listening')
    const app = new SlowApp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    server.on('request', (request, response) => app.#answers.push([request.url!, response]))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return app
  }

  get waiting(): number {
    return this.#answers.length
  }

  sendPart(part: number): void {
    for (const [path, answer] of this.#answers) {
      answer.write(partOf(path, part))
      if (part === PARTS) answer.end()
    }
  }
}

/** A client with many streams, each of which takes a few bytes at a time. */
export class SlowClient {
  readonly #peer: Http2Peer
  readonly #paths: string[]
  readonly #had = new Map<number, number>()
  #seen = 0
  #ended = 0

  private constructor(peer: Http2Peer, index: number) {
    this.#peer = peer
    this.#paths = Array.from({ length: STREAMS }, (_, number) => `/slow/${index}/${number}`)
  }

  static async dial(t: Test, victim: Victim, index: number): Promise<SlowClient> {
    const isTls = index % 2 === 0
    const peer = await dialHttp2(isTls ? victim.port : victim.plainPort, { isTls })
    t.teardown(() => peer.socket.destroy())
    peer.write(PREFACE, settings([INITIAL_WINDOW, WINDOW_BYTES]), windowUpdate(0x7fff_0000))
    return new SlowClient(peer, index)
  }

  ask(): void {
    const heads = this.#paths.map((path, number) => headers(streamOf(number), getRequest({ ':path': path })))
    this.#peer.write(...heads)
  }

  openWindows(): void {
    this.#peer.write(...this.#paths.map((_, number) => windowUpdate(WINDOW_BYTES, streamOf(number))))
  }

  /** Whether every stream has got so many bytes, and none has got more. */
  has(bytes: number): boolean {
    this.#count()
    assert.equal(this.#peer.isClosed, false)
    const counts = [...this.#had.values()]
    assert.ok(counts.every((count) => count <= bytes))
    return counts.length === STREAMS && counts.every((count) => count === bytes)
  }

  get isDone(): boolean {
    this.#count()
    return this.#ended === STREAMS
  }

  /** The paths of which the answer is not as it has to be. */
  wrong(): string[] {
    return this.#paths.filter((path, number) => {
      const stream = streamOf(number)
      const whole = Array.from({ length: PARTS }, (_, index) => partOf(path, index + 1))
      return this.#peer.statusOf(stream) !== 200 || !this.#peer.bodyOf(stream).equals(Buffer.concat(whole))
    })
  }

  /** Reads the frames that have come since the last call. */
  #count(): void {
    const { frames } = this.#peer
    for (; this.#seen < frames.length; this.#seen++) {
      const { type, flags, stream, payload } = frames[this.#seen]!
      if (type !== 0) continue
      this.#had.set(stream, (this.#had.get(stream) ?? 0) + payload.length)
      if (flags & 1) this.#ended++
    }
  }
}

function partOf(path: string, part: number): Buffer {
  return Buffer.alloc(PART_BYTES, `${path}:${part};`)
}

function streamOf(number: number): number {
  return 2 * number + 1
}

const INITIAL_WINDOW = 4
