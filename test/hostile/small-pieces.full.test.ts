import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { dialPlain, dialTls, startFront } from '../proxy/front.ts'
import { data, frame, getRequest, headers, PREFACE, settings, windowUpdate } from '../proxy/http2-frames.ts'
import { type Gate, startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { dialHttp2 } from './http2-peer.ts'
import { pattern, SealingClient, TurnMeter } from './small-pieces.ts'

const PIECES = 30_000
const BODY = pattern(PIECES)
/** A write for so many pieces, at least. */
const JOINED_MIN = 50
/** On a busy machine it takes a client a while to seal its records. */
const PATIENT = { bodyIdleTimeoutMs: 100_000, keepAliveTimeoutMs: 100_000 }
const POST = 'POST / HTTP/1.1\r\nHost: a.example.test\r\n'

/** One burst with a body in pieces of one byte. What it resolves to is told once the app has all of it. */
interface Burst {
  readonly name: string
  /** Pieces that may come in one turn of the event loop; without a limit it is all of them in one to three turns. */
  readonly perTurnMax: number
  readonly upstream?: 'http' | 'h2c'
  readonly fastLane?: boolean
  send(t: Test, gate: Gate): Promise<unknown>
}

/** Two portions, read and gone on with, of which the app may read those of two turns in one of its own. */
const PORTIONED = 2_000
/** What one read has in it is not taken apart, and the first read of a body is not counted; again of two turns. */
const RECORDS = 4_000
const FRAMES = 7_000
/** In the clear a read is of 64 KiB and not of 16. */
const CLEAR_FRAMES = 20_000

const BURSTS: readonly Burst[] = [
  ...[false, true].flatMap((isTls): Burst[] => [
    {
      name: `chunks of HTTP/1.1 ${isTls ? 'over TLS' : 'in the clear'}`,
      perTurnMax: PORTIONED,
      send: async (t, gate) => {
        const peer = isTls ? await dialTls(gate.secure.port) : await dialPlain(gate.plain.port)
        t.teardown(() => peer.socket.destroy())
        peer.write(Buffer.concat([Buffer.from(`${POST}Transfer-Encoding: chunked\r\n\r\n`), chunks(BODY)]))
        return peer.hears('\r\n\r\ndone')
      },
    },
    {
      name: `DATA frames of HTTP/2 ${isTls ? 'over TLS' : 'in the clear'}`,
      perTurnMax: isTls ? FRAMES : CLEAR_FRAMES,
      send: (t, gate) => sendFrames(t, gate, isTls, (byte) => data(1, byte, false)),
    },
  ]),
  {
    name: 'padded DATA frames',
    perTurnMax: FRAMES,
    send: (t, gate) =>
      sendFrames(t, gate, true, (byte) =>
        frame(0, 8, 1, Buffer.concat([Buffer.of(2), byte, Buffer.alloc(2)])),
      ),
  },
  {
    name: 'DATA frames for an app of HTTP/2',
    perTurnMax: FRAMES,
    upstream: 'h2c',
    send: (t, gate) => sendFrames(t, gate, true, (byte) => data(1, byte, false)),
  },
  ...[true, false].map(
    (fastLane): Burst => ({
      name: `TLS records, ${fastLane ? 'with the fast lane' : 'without it'}`,
      perTurnMax: RECORDS,
      fastLane,
      send: async (t, gate) => {
        const client = await SealingClient.dial(gate.secure.port)
        t.teardown(() => client.close())
        client.stream.write(`${POST}Content-Length: ${PIECES}\r\n\r\n`)
        await client.seal(BODY)
        const answered = once(client.stream, 'data')
        client.send()
        return answered
      },
    }),
  ),
  {
    name: 'TLS records of an upgraded connection',
    perTurnMax: RECORDS,
    send: async (t, gate) => {
      const client = await SealingClient.dial(gate.secure.port)
      t.teardown(() => client.close())
      client.stream.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: bytes\r\n\r\n')
      await once(client.stream, 'data')
      await client.seal(BODY)
      client.send()
    },
  },
]

for (const { name, perTurnMax, upstream = 'http', fastLane = true, send } of BURSTS)
  test(`a burst of ${PIECES} pieces of one byte: ${name}`, { timeout: 120_000 }, async (t) => {
    const meter = new TurnMeter()
    const url = await startApp(t, upstream, meter)
    const gate = await startGate(t, {
      upstreams: [settingsFor([url])],
      options: { fastLane },
      limits: PATIENT,
    })
    await send(t, gate)
    while (meter.bytes.length < PIECES) await turn()
    t.comment(`${meter.came.length} reads, at most ${meter.busiest} bytes in each of ${meter.turns} turns`)
    assert.ok(meter.bytes.equals(BODY), 'every byte has come, in order')
    assert.ok(meter.came.length < PIECES / JOINED_MIN, `${meter.came.length} reads of the app`)
    assert.ok(meter.busiest <= perTurnMax, `${meter.busiest} pieces in one turn`)
  })

test('ten connections with chunks of one byte take turns', { timeout: 60_000 }, async (t) => {
  const meter = new TurnMeter()
  const url = await startApp(t, 'http', meter)
  const gate = await startGate(t, { upstreams: [settingsFor([url])] })
  const peers = await Promise.all(Array.from({ length: 10 }, () => dialTls(gate.secure.port)))
  t.teardown(() => {
    for (const { socket } of peers) socket.destroy()
  })
  const burst = Buffer.concat([
    Buffer.from(`${POST}Transfer-Encoding: chunked\r\n\r\n`),
    chunks(BODY.subarray(0, PIECES / 3)),
  ])
  for (const peer of peers) peer.write(burst)
  await Promise.all(peers.map((peer) => peer.hears('\r\n\r\ndone')))
  assert.equal(meter.bytes.length, (10 * PIECES) / 3)
  const perTurn = meter.bytes.length / meter.turns
  t.comment(`${Math.round(perTurn)} bytes in a turn`)
  assert.ok(perTurn < 1_000, `${perTurn} bytes in a turn`)
})

for (const upstream of ['http', 'h2c'] as const)
  for (const by of ['HTTP/1.1', 'HTTP/2'] as const)
    test(`an answer of ${PIECES} pieces of one byte from an app of ${upstream}, over ${by}`, async (t) => {
      const url = await startApp(t, upstream, new TurnMeter())
      const gate = await startGate(t, { upstreams: [settingsFor([url])] })
      const meter = new TurnMeter()
      if (by === 'HTTP/1.1') {
        const answer = await new Promise<IncomingMessage>((resolve) =>
          http.get({ port: gate.plain.port, path: '/pieces', agent: false }, resolve),
        )
        for await (const bytes of answer) meter.add(bytes)
      } else {
        const session = http2.connect(`http://127.0.0.1:${gate.plain.port}`)
        t.teardown(() => session.destroy())
        for await (const bytes of session.request({ ':path': '/pieces' })) meter.add(bytes)
      }
      t.comment(`${meter.came.length} pieces`)
      assert.ok(meter.bytes.equals(BODY), 'every byte has come, in order')
      assert.ok(meter.came.length < PIECES / JOINED_MIN, `${meter.came.length} pieces for the client`)
    })

test('small pieces are not held back for others', async (t) => {
  const meter = new TurnMeter()
  const url = await startApp(t, 'http', meter)
  const gate = await startGate(t, { upstreams: [settingsFor([url])] })
  const peer = await dialTls(gate.secure.port)
  t.teardown(() => peer.socket.destroy())
  peer.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`)
  let wanted = ''
  for (let round = 0; round < 20; round++) {
    peer.write('1\r\na\r\n1\r\nb\r\n1\r\nc\r\n')
    wanted += 'abc'
    while (meter.bytes.length < wanted.length) await turn()
    assert.equal(meter.bytes.toString(), wanted)
  }
})

for (const way of ['chunks', 'TLS records'] as const)
  test(`a body in tiny ${way} that the app does not read is not read on`, { timeout: 120_000 }, async (t) => {
    const asked = Promise.withResolvers<Exchange>()
    const front = await startFront({ request: asked.resolve, limits: PATIENT })
    t.teardown(() => front.close())
    const more = 80_000
    if (way === 'chunks') {
      const peer = await dialTls(front.port)
      t.teardown(() => peer.socket.destroy())
      peer.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`)
      peer.write(chunks(pattern(more)))
    } else {
      const client = await SealingClient.dial(front.port)
      t.teardown(() => client.close())
      client.stream.write(`${POST}Content-Length: ${more}\r\n\r\n`)
      await client.seal(pattern(more), 4)
      client.send()
    }
    const { body, isBodyWhole } = await asked.promise
    let held = -1
    for (let same = 0; same < 200; same = body.readableLength === held ? same + 1 : 0) {
      held = body.readableLength
      await turn()
    }
    assert.equal(isBodyWhole, false)
    assert.ok(held <= body.readableHighWaterMark + 4_096, `${held} bytes are held`)
    const came: Buffer[] = []
    body.on('data', (bytes: Buffer) => came.push(bytes))
    await once(body, 'end')
    assert.ok(Buffer.concat(came).equals(pattern(more)), 'the rest comes once it is read')
  })

async function sendFrames(t: Test, gate: Gate, isTls: boolean, frameOf: (byte: Buffer) => Buffer) {
  const peer = await dialHttp2(isTls ? gate.secure.port : gate.plain.port, { isTls })
  t.teardown(() => peer.socket.destroy())
  const frames = Array.from(BODY, (byte) => frameOf(Buffer.of(byte)))
  const request = headers(1, getRequest({ ':method': 'POST' }), { hasEnded: false })
  peer.write(PREFACE, settings(), windowUpdate(1_000_000), request, ...frames, data(1, ''))
  await peer.until(() => peer.isAnswered(1))
  assert.equal(peer.statusOf(1), 200)
}

/** Of one byte each. */
function chunks(bytes: Buffer): Buffer {
  const text = bytes.toString('latin1')
  return Buffer.from(`${text.replaceAll(/[a-z]/g, '1\r\n$&\r\n')}0\r\n\r\n`, 'latin1')
}

/** Notes what it reads, and answers `done`; to `/pieces`, with a body in pieces of one byte. */
async function startApp(t: Test, protocol: 'http' | 'h2c', meter: TurnMeter): Promise<string> {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === '/pieces') return answerInPieces(response)
    request.on('data', (bytes: Buffer) => meter.add(bytes))
    request.on('end', () => response.end('done'))
  }
  const app = protocol === 'http' ? http.createServer(answer) : http2.createServer(answer as never)
  app.on('upgrade', (_request: IncomingMessage, socket: Socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: bytes\r\n\r\n')
    socket.on('error', () => undefined).on('data', (bytes: Buffer) => meter.add(bytes))
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    if ('closeAllConnections' in app) app.closeAllConnections()
    app.close()
  })
  return `${protocol}://127.0.0.1:${(app.address() as AddressInfo).port}`
}

function answerInPieces(response: ServerResponse): void {
  if (response.socket === null || response instanceof http2.Http2ServerResponse) {
    for (let index = 0; index < PIECES; index++) response.write(BODY.subarray(index, index + 1))
    return void response.end()
  }
  response.socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
  response.socket.write(chunks(BODY))
}
