import assert from 'node:assert/strict'
import http2 from 'node:http2'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { Random } from '../fuzz/mutate.ts'
import { answerText, type Front, startFront } from '../proxy/front.ts'
import { conversation, scriptOf } from '../proxy/h2/random-conversation.ts'
import { type Frame, framesOf, PREFACE } from '../proxy/http2-frames.ts'
import { type Reading, wrongIn } from './http2-differences.ts'
import { mutateFrames } from './http2-mutations.ts'
import { dialHttp2, type Http2Peer } from './http2-peer.ts'

/** `H2_FUZZ_SECONDS=1200 H2_FUZZ_SEED=7 npx tap --timeout=2000 …` runs longer, on other frames. */
const SECONDS = Number(process.env['H2_FUZZ_SECONDS'] ?? 20)
const SEED = Number(process.env['H2_FUZZ_SEED'] ?? 1)
const PAIRS = 6

test('HTTP/2: what nghttp2 refuses is refused, and what both accept is read the same', {
  timeout: 7_200_000,
}, async (t) => {
  const seeds = [...(await recorded(t)), ...made()]
  const random = new Random(SEED)
  const endMs = Date.now() + SECONDS * 1000
  let inputs = 0
  let refused = 0
  const work = async (): Promise<void> => {
    const [own, node] = [await startReader(t, 'own'), await startReader(t, 'node')]
    while (Date.now() < endMs) {
      const bytes = mutateFrames(random.of(seeds), seeds, random)
      const wrong = await compare(bytes, own, node)
      inputs++
      if (own.reading().end !== null) refused++
      assert.equal(wrong, null, `${wrong}: ${bytes.toString('hex')}`)
      own.end()
      node.end()
    }
  }
  await Promise.all(Array.from({ length: PAIRS }, work))
  t.comment(`${inputs} inputs, ${refused} of them ended the connection`)
  assert.ok(refused > inputs / 20 && refused < inputs * 0.9)
})

/** `null` as soon as they agree; what is wrong if they never do. */
async function compare(bytes: Buffer, own: Reader, node: Reader): Promise<string | null> {
  await Promise.all([own.send(bytes), node.send(bytes)])
  for (let wait = 1; ; wait *= 2) {
    // What a server does in its next turns belongs to it.
    await sleep(wait)
    const wrong = wrongIn(bytes, own.reading(), node.reading())
    if (wrong === null || wait > LATE_MS) return wrong
  }
}

interface Reader {
  /** Until it has read them, or has closed the connection. */
  send(bytes: Buffer): Promise<void>
  reading(): Reading
  end(): void
}

async function startReader(t: Test, server: 'own' | 'node'): Promise<Reader> {
  let requests: string[] = []
  const front = await startFront({
    ...{ tls: null, options: { http2: server }, limits: { h2ResetBurst: 1_000 } },
    request: (exchange) => tell(exchange, (text) => requests.push(text)),
  })
  t.teardown(() => front.close())
  let peer: Http2Peer
  let isLate = false
  return {
    async send(bytes) {
      requests = []
      peer = await dialHttp2(front.port, { isTls: false })
      peer.write(PREFACE, bytes)
      isLate = false
      const read = peer.isRead().catch(() => (isLate = true))
      await Promise.race([read, peer.until(() => (peer.goaway ?? 0) !== 0).catch(() => undefined)])
    },
    reading: () => readingOf(peer, requests, isLate),
    end: () => peer.socket.destroy(),
  }
}

function readingOf(peer: Http2Peer, requests: readonly string[], isLate: boolean): Reading {
  const resets = new Map<number, number>()
  const statuses = new Map<number, number>()
  for (const { type, stream, payload } of peer.frames) {
    if (type === 3) resets.set(stream, payload.readUInt32BE(0))
    const status = type === 1 ? peer.statusOf(stream) : null
    if (status !== null) statuses.set(stream, status)
  }
  const isOver = peer.isClosed || isLate || (peer.goaway ?? 0) !== 0
  return { end: isOver ? (peer.goaway ?? -1) : null, resets, statuses, requests: [...requests].sort() }
}

function tell(exchange: Exchange, read: (text: string) => void): void {
  const { head, authority, body } = exchange
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  body.on('error', () => undefined)
  const ended = () => {
    const bytes = Buffer.concat(chunks).toString('base64')
    read(JSON.stringify([head.method, head.target, authority, head.rawHeaders, bytes, exchange.trailers]))
    answerText(exchange, 'ok')
  }
  if (body.readableEnded) ended()
  else body.on('end', ended)
}

function made(): Frame[][] {
  return fc.sample(conversation, { numRuns: 300, seed: SEED }).map((plan) => {
    const { frames } = scriptOf({ ...plan, requests: plan.requests.slice(0, 3) })
    return framesOf(Buffer.concat(frames)).filter(({ payload }) => payload.length < 2000)
  })
}

/** What node:http2 says as a client. */
async function recorded(t: Test): Promise<Frame[][]> {
  const front = await startFront({ tls: null })
  t.teardown(() => front.close())
  const all: Frame[][] = []
  for (let count = 1; count <= 4; count++) all.push(await record(front, count))
  return all
}

async function record(front: Front, count: number): Promise<Frame[]> {
  const chunks: Buffer[] = []
  const relay = net.createServer((socket) => {
    const onward = net.connect(front.port, '127.0.0.1')
    socket
      .on('data', (bytes: Buffer) => chunks.push(bytes))
      .pipe(onward)
      .pipe(socket)
  })
  await once(relay.listen(0, '127.0.0.1'), 'listening')
  const session = http2.connect(`http://127.0.0.1:${(relay.address() as net.AddressInfo).port}`)
  for (let i = 0; i < count; i++) {
    const stream = session.request(
      { ':method': i % 2 ? 'POST' : 'GET', ':path': `/${i}`, cookie: ['a=1', 'b=2'], 'user-agent': 'a b' },
      { waitForTrailers: i > 2, endStream: i % 2 === 0 },
    )
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
    if (i % 2) stream.end('hello')
    await once(stream.resume(), 'end')
  }
  session.close()
  await once(session, 'close')
  relay.close()
  return framesOf(Buffer.concat(chunks).subarray(PREFACE.length))
}

const LATE_MS = 500
