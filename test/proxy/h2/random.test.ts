import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { test } from 'tap'
import type { Exchange } from '../../../src/proxy/connection/exchange.ts'
import { dialHttp2, type Http2Peer } from '../../hostile/http2-peer.ts'
import { type Front, startFront } from '../front.ts'
import { PREFACE } from '../http2-frames.ts'
import { until } from '../../until.ts'
import { faultsOf } from './judge.ts'
import {
  type ConversationPlan,
  conversation,
  isReset,
  type RequestPlan,
  scriptOf,
  streamOf,
} from './random-conversation.ts'

const RUNS = Number(process.env['H2_RUNS'] ?? 100)

test('HTTP/2: any requests, cut and mixed anyhow: each has its own answer, and the server keeps the rules', async (t) => {
  let plans: readonly RequestPlan[] = []
  const received = new Map<number, Received>()
  const front = await startFront({ tls: null, request: (exchange) => serve(exchange, plans, received) })
  t.teardown(() => front.close())
  const property = fc.asyncProperty(conversation, async (plan) => {
    plans = plan.requests
    received.clear()
    await converse(front, plan, received)
    await until(() => front.listener.counts.streams === 0 && front.listener.counts.connections === 0)
  })
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
})

/** What was read of a request. */
interface Received {
  readonly fields: readonly string[]
  bodyBytes: number
  isWhole: boolean
  trailers: readonly string[]
}

async function converse(
  front: Front,
  plan: ConversationPlan,
  received: ReadonlyMap<number, Received>,
): Promise<void> {
  const { frames, allowed } = scriptOf(plan)
  const peer = await dialHttp2(front.port, { isTls: false })
  try {
    const bytes = Buffer.concat([PREFACE, ...frames])
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const end = at + plan.cuts[turn % plan.cuts.length]!
      peer.write(bytes.subarray(at, end))
      at = end
      if (turn % 3 === 0) await setImmediate()
    }
    for (const [index, request] of plan.requests.entries()) {
      const stream = streamOf(index)
      if (isReset(request)) continue
      await peer.until(() => peer.isAnswered(stream) || peer.resetOf(stream) !== null || peer.goaway !== null)
      assertAnswer(peer, request, stream)
      assertReceived(request, received.get(index))
    }
    assert.ok(await peer.isRead(), `GOAWAY of ${peer.goaway}`)
    assert.deepEqual([faultsOf(peer.frames, allowed), peer.goaway], [[], null])
  } finally {
    peer.socket.destroy()
  }
}

function assertAnswer(peer: Http2Peer, { method, answer }: RequestPlan, stream: number): void {
  const title = `stream ${stream}`
  const heads = peer.headsOf(stream)
  const status = heads.map(([, value]) => value)
  const final = heads[answer.interim ? 1 : 0]
  assert.deepEqual(
    status.slice(0, answer.interim ? 2 : 1),
    answer.interim ? ['103', String(answer.status)] : [String(answer.status)],
    title,
  )
  const wanted = answer.fields.map((text, index) => (index % 2 === 0 ? text.toLowerCase() : text))
  const found = final!.filter((_, index) => {
    const name = final![index - (index % 2)]!
    return ['x-one', 'x-two', 'content-type', 'server'].includes(name)
  })
  assert.deepEqual(found, wanted, title)
  const body = method === 'HEAD' ? Buffer.alloc(0) : bodyOf(answer.pieces)
  assert.ok(
    peer.bodyOf(stream).equals(body),
    `${title}: ${peer.bodyOf(stream).length} of ${body.length} bytes`,
  )
  const trailers = method === 'HEAD' || answer.hasLength ? [] : answer.trailers
  if (trailers.length > 0) assert.deepEqual(heads.at(-1), trailers, title)
}

function assertReceived(request: RequestPlan, found: Received | undefined): void {
  assert.ok(found !== undefined)
  const sent = request.fields.filter((_, index) => request.fields[index - (index % 2)] !== 'cookie')
  const heard = found.fields.filter((_, index) => {
    const name = found.fields[index - (index % 2)]!
    return !name.startsWith(':') && name !== 'content-length' && name !== 'cookie'
  })
  assert.deepEqual(heard, sent)
  if (request.answer.isEarly) return
  assert.equal(found.isWhole, true)
  assert.equal(
    found.bodyBytes,
    (request.body ?? []).reduce((sum, size) => sum + size, 0),
  )
  assert.deepEqual(found.trailers, request.body === null ? [] : request.trailers)
}

function bodyOf(pieces: readonly number[]): Buffer {
  return Buffer.concat(pieces.map((size, index) => Buffer.alloc(size, index + 1)))
}

function serve(exchange: Exchange, plans: readonly RequestPlan[], received: Map<number, Received>): void {
  const index = Number(exchange.head.target.slice(1))
  const { answer } = plans[index]!
  const found: Received = { fields: exchange.head.rawHeaders, bodyBytes: 0, isWhole: false, trailers: [] }
  received.set(index, found)
  const { body } = exchange
  body.on('data', (chunk: Buffer) => (found.bodyBytes += chunk.length))
  body.on('error', () => undefined)
  const ended = () => {
    found.isWhole = true
    found.trailers = exchange.trailers
    if (!answer.isEarly) reply(exchange, plans[index]!)
  }
  // A body of no bytes may have ended before.
  if (body.readableEnded) ended()
  else body.on('end', ended)
  if (answer.isEarly) reply(exchange, plans[index]!)
}

function reply(exchange: Exchange, { method, answer }: RequestPlan): void {
  const body = bodyOf(answer.pieces)
  if (answer.interim) exchange.inform(103, ['Link', '</a>'])
  const length = answer.hasLength ? ['Content-Length', String(body.length)] : []
  const isBodyless = method === 'HEAD'
  exchange.answer(
    answer.status,
    [...answer.fields, ...length],
    isBodyless ? 0 : answer.hasLength ? body.length : null,
  )
  if (!isBodyless)
    for (const [index, size] of answer.pieces.entries())
      if (size > 0) exchange.write(Buffer.alloc(size, index + 1))
  exchange.end(isBodyless ? [] : [...answer.trailers])
}
