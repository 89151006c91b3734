import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { Test } from 'tap'
import { type AnswerPlan, bytesOf, type ServerCase } from './server-cases.ts'

/** What the app got of a case. */
export interface Got {
  readonly line: string
  readonly rawHeaders: readonly string[]
  /** `null` before its end. */
  body: string | null
  rawTrailers: readonly string[]
  /** Whether the client left before the answer was complete. */
  hasLeft: boolean
}

/** An app that answers each case as it is planned, and keeps what it got. */
export class CaseApp {
  readonly url: string
  readonly #heard = new Map<number, Hearing>()

  private constructor(url: string) {
    this.url = url
  }

  static async start(t: Test): Promise<CaseApp> {
    const server = createServer({ keepAliveTimeout: 60_000, maxHeaderSize: 200_000 })
    server.maxHeadersCount = 0
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const app = new CaseApp(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const serve = (request: IncomingMessage, response: ServerResponse) => void app.#serve(request, response)
    server.on('request', serve)
    server.on('checkContinue', (request, response) => {
      response.writeContinue()
      serve(request, response)
    })
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return app
  }

  /** Call it before the case begins. */
  expect(plan: ServerCase): Hearing {
    const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>()
    const { promise: over, resolve: onOver } = Promise.withResolvers<void>()
    const hearing: Hearing = { plan, got: null, asked, onAsked, over, onOver }
    this.#heard.set(plan.seed, hearing)
    return hearing
  }

  forget({ seed }: ServerCase): void {
    this.#heard.delete(seed)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const hearing = this.#heard.get(Number(/case=(\d+)/.exec(request.url!)?.[1]))
    if (hearing === undefined) return void response.writeHead(500).end()
    const { method, url, rawHeaders } = request
    const got: Got = {
      ...{ line: `${method} ${url}`, rawHeaders, body: null, rawTrailers: [], hasLeft: false },
    }
    hearing.got = got
    const hash = createHash('sha256')
    let length = 0
    const whole = new Promise<void>((resolve) => {
      request.on('data', (bytes: Buffer) => {
        hash.update(bytes)
        length += bytes.length
      })
      request.on('end', () => {
        got.body = `${length} ${hash.digest('hex')}`
        got.rawTrailers = request.rawTrailers
        resolve()
      })
      request.on('error', () => undefined)
      response.on('close', () => {
        got.hasLeft = !response.writableFinished
        hearing.onOver()
        resolve()
      })
    })
    hearing.onAsked()
    const { plan } = hearing
    if (plan.request.reset === 'asked') return
    if (!plan.answer.isEarly) await whole
    if (!response.closed) await answer(plan.answer, request, response)
  }
}

/** What the app has of one case. */
export interface Hearing {
  readonly plan: ServerCase
  got: Got | null
  /** The app has its head. */
  readonly asked: Promise<void>
  onAsked(): void
  /** The answer has ended, or the client has left. */
  readonly over: Promise<void>
  onOver(): void
}

async function answer(plan: AnswerPlan, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { status, framing, interim, isSlow, end } = plan
  // An answer has its socket late where the one before on its connection is still being finished.
  for (const number of interim)
    request.socket.write(`HTTP/1.1 ${number} Interim\r\nLink: </${number}>\r\n\r\n`)
  const isBodyless = status === 204 || status === 304 || request.method === 'HEAD'
  const pieces = bytesOf(plan.pieces)
  const length = pieces.reduce((sum, { byteLength }) => sum + byteLength, 0)
  // More than there is, unless it comes to its end.
  const framed = framing === 'length' ? ['Content-Length', `${end === 'whole' ? length : length + 9}`] : []
  if (framing === 'close') {
    response.shouldKeepAlive = false
    response.useChunkedEncodingByDefault = false
  }
  response.writeHead(status, [...plan.fields, ...framed])
  if (isBodyless) return void response.end()
  for (const [index, piece] of pieces.entries()) {
    if (end === 'broken' && index === pieces.length - 1) break
    response.write(piece)
    if (isSlow) await setImmediate()
  }
  if (end === 'broken') {
    // Not before the head has left.
    await new Promise((resolve) => response.write('x', resolve))
    return void response.socket?.destroySoon()
  }
  if (end === 'silent') return
  const { trailers } = plan
  if (trailers.length > 0)
    response.addTrailers(
      trailers.flatMap((name, i) => (i % 2 === 0 ? [[name, trailers[i + 1]!]] : [])) as never,
    )
  response.end()
}
