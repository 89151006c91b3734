import assert from 'node:assert/strict'
import http2 from 'node:http2'
import type { Socket } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'tap'
import { type Frame, frame, framesOf, headers, PREFACE, settings, windowUpdate } from './http2-frames.ts'
import {
  type Asking,
  answerOf,
  ask,
  assertClean,
  closed,
  groupOf,
  type Upstream,
  upstream,
} from './upstream-fixture.ts'

const PIECE = 16_384
/** RFC 9113 §6.9.2: only a WINDOW_UPDATE changes it. */
const CONNECTION_WINDOW = 65_535
const INITIAL_WINDOW_SIZE = 4
const DATA = 0
const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const PING = 6
const ACK = 1
const END_STREAM = 1

/** An app that speaks HTTP/2 by hand, and lets a body come when the test says so. */
interface HandApp {
  readonly server: Upstream
  /** What is left of the windows it has given, by stream; 0 is the connection. */
  readonly windows: Map<number, number>
  /** Bytes of body that came, by stream. */
  readonly taken: Map<number, number>
  readonly resets: Set<number>
  give(stream: number, bytes: number): void
  answer(stream: number): void
  /** Of each stream whose request has come whole. */
  onWhole: (stream: number) => void
}

async function handApp(streamWindow: number, connectionMore = 0): Promise<HandApp> {
  let socket: Socket | null = null
  const server = await upstream((accepted) => {
    socket = accepted
    let unread: Buffer = Buffer.alloc(0)
    let isGreeted = false
    accepted.write(settings([INITIAL_WINDOW_SIZE, streamWindow]))
    if (connectionMore > 0) accepted.write(windowUpdate(connectionMore))
    accepted.on('data', (bytes) => {
      unread = Buffer.concat([unread, bytes])
      if (!isGreeted && unread.length < PREFACE.length) return
      if (!isGreeted) unread = unread.subarray(PREFACE.length)
      isGreeted = true
      const frames = framesOf(unread)
      for (const found of frames) came(found)
      unread = unread.subarray(frames.reduce((sum, { payload }) => sum + 9 + payload.length, 0))
    })
  })
  const came = ({ type, flags, stream, payload }: Frame) => {
    if (type === SETTINGS && (flags & ACK) === 0) socket?.write(frame(SETTINGS, ACK, 0))
    if (type === PING && (flags & ACK) === 0) socket?.write(frame(PING, ACK, 0, payload))
    if (type === RST_STREAM) app.resets.add(stream)
    if (type === HEADERS && !app.windows.has(stream)) app.windows.set(stream, streamWindow)
    if (type === DATA) {
      app.taken.set(stream, (app.taken.get(stream) ?? 0) + payload.length)
      for (const id of [0, stream]) app.windows.set(id, app.windows.get(id)! - payload.length)
    }
    if ((type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0) app.onWhole(stream)
  }
  const app: HandApp = {
    server,
    windows: new Map([[0, CONNECTION_WINDOW + connectionMore]]),
    taken: new Map(),
    resets: new Set(),
    give: (stream, bytes) => {
      app.windows.set(stream, app.windows.get(stream)! + bytes)
      socket?.write(windowUpdate(bytes, stream))
    },
    answer: (stream) => void socket?.write(headers(stream, [':status', '204'])),
    onWhole: () => {},
  }
  return app
}

/** In pieces as TLS hands them over. */
function upload(group: ReturnType<typeof groupOf>, pieces: number): Asking {
  const body = Readable.from(Array.from({ length: pieces }, () => Buffer.alloc(PIECE, 'x')))
  return ask(group, { method: 'POST', body, bodyLength: pieces * PIECE })
}

function assertLate(asking: Asking): void {
  const [outcome] = asking.outcomes
  assert.equal(outcome?.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'head-timeout 504')
  assertClean(asking)
}

test('HTTP/2: an app that takes a body slowly gets all of it', async () => {
  const app = await handApp(PIECE)
  app.onWhole = app.answer
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 700 })
  const asking = upload(group, 30)
  const start = performance.now()
  const drip = setInterval(() => {
    const [stream] = app.taken.keys()
    if (stream !== undefined) for (const id of [0, stream]) app.give(id, PIECE)
  }, 60)
  assert.equal((await asking.outcome).kind, 'answered')
  clearInterval(drip)
  assert.ok(performance.now() - start > 1400)
  assert.deepEqual([...app.taken.values()], [30 * PIECE])
  await closed(group, app.server)
})

test("HTTP/2: uploads that wait for each other in the connection's window are not late", async () => {
  const app = await handApp(1_000_000)
  app.onWhole = app.answer
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 500 })
  const askings = Array.from({ length: 40 }, () => upload(group, 3))
  const drip = setInterval(() => app.give(0, 3 * PIECE), 60)
  for (const asking of askings) {
    assert.equal((await asking.outcome).kind, 'answered')
    assertClean(asking)
  }
  clearInterval(drip)
  assert.equal(app.taken.size, 40)
  for (const bytes of app.taken.values()) assert.equal(bytes, 3 * PIECE)
  await closed(group, app.server)
})

test('HTTP/2: an upload that does not move is late, and others on the connection go on', async () => {
  const app = await handApp(PIECE, 10_000_000)
  app.onWhole = app.answer
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 700 })
  const stuck = upload(group, 4)
  const going = upload(group, 30)
  const drip = setInterval(() => app.windows.has(3) && app.give(3, PIECE), 60)
  const start = performance.now()
  await stuck.outcome
  assert.ok(performance.now() - start >= 700)
  assertLate(stuck)
  assert.equal((await going.outcome).kind, 'answered')
  clearInterval(drip)
  assert.deepEqual([...app.resets], [1])
  assert.deepEqual(
    [...app.taken],
    [
      [1, PIECE],
      [3, 30 * PIECE],
    ],
  )
  await closed(group, app.server)
})

test('HTTP/2: uploads of which none moves are late', async () => {
  const app = await handApp(1_000_000)
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 300 })
  const askings = Array.from({ length: 5 }, () => upload(group, 3))
  for (const asking of askings) {
    await asking.outcome
    assertLate(asking)
  }
  assert.equal(app.windows.get(0), 0)
  await closed(group, app.server)
})

test('HTTP/2: the time for an answer begins when the last of the body has left', async () => {
  const app = await handApp(PIECE)
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 600 })
  let wholeMs = 0
  app.onWhole = () => {
    wholeMs = performance.now()
  }
  const asking = upload(group, 3)
  setTimeout(() => app.give(1, 2 * PIECE), 300)
  // The end has no bytes, but nghttp2 lets it wait for room, too.
  setTimeout(() => app.give(1, 1), 700)
  await asking.outcome
  assertLate(asking)
  assert.ok(wholeMs > 0)
  assert.ok(performance.now() - wholeMs > 500, `${performance.now() - wholeMs} ms`)
  await closed(group, app.server)
})

test('HTTP/2: requests without a body, or which wait for a 100, count from their head', async () => {
  const app = await handApp(PIECE)
  const group = groupOf([app.server.url.replace('http', 'h2c')], { headTimeoutMs: 200 })
  const expecting = { method: 'POST', body: new PassThrough(), bodyLength: 5, expectsContinue: true }
  for (const asking of [ask(group), ask(group, expecting)]) {
    await asking.outcome
    assertLate(asking)
  }
  await closed(group, app.server)
})

test('HTTP/2: an upload goes where others do not fill the window', async () => {
  const answerer = http2.createServer().on('stream', (stream) => {
    stream.on('end', () => stream.respond({ ':status': 204 }, { endStream: true })).resume()
  })
  const server = await upstream((socket, index) => {
    // The first takes as much as its window is at the start, and no more.
    if (index === 0) socket.resume().write(settings([INITIAL_WINDOW_SIZE, 1_000_000]))
    else answerer.emit('connection', socket)
  })
  const group = groupOf([server.url.replace('http', 'h2c')], { headTimeoutMs: 60_000 })
  const stuck = [upload(group, 5)]
  while (server.accepted < 2) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    stuck.push(upload(group, 1))
  }
  assert.ok(stuck.length < 100, 'not only because it has no more streams')
  // The new connection takes them from when its SETTINGS have come.
  while (stuck.at(-1)!.outcomes.length === 0) {
    await new Promise((resolve) => setTimeout(resolve, 10))
    stuck.push(upload(group, 1))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await Promise.all(Array.from({ length: 20 }, () => upload(group, 10).outcome))
  assert.deepEqual(stuck[0]!.outcomes, [])
  for (const { exchange } of stuck) exchange.leave()
  await closed(group, server)
})

test('HTTP/2: a connection opened for uploads that none came to is closed when it has been idle', async () => {
  const server = await upstream((socket) => socket.resume().write(settings()))
  const group = groupOf([server.url.replace('http', 'h2c')], { headTimeoutMs: 60_000, keepAliveMs: 100 })
  const stuck = [upload(group, 5)]
  // Until the sweep has seen it wait, and the next upload has had the pool open a connection.
  while (group.status[0]!.connections < 2) {
    stuck.push(upload(group, 1))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  while (server.accepted < 2) await new Promise((resolve) => setTimeout(resolve, 10))
  while (server.sockets.size > 1) await new Promise((resolve) => setTimeout(resolve, 10))
  for (const { exchange } of stuck) exchange.leave()
  await closed(group, server)
})

test('HTTP/1.1: an app that takes a body slowly gets all of it', async () => {
  const length = 24 * 1024 * 1024
  let taken = 0
  const server = await upstream((socket) => {
    socket.on('data', (bytes) => {
      taken += bytes.length
      // What the kernel holds has left for Node: only the first half is read slowly.
      if (taken < length / 2) {
        socket.pause()
        setTimeout(() => socket.resume(), 10)
      } else if (taken >= length) socket.write('HTTP/1.1 204 No Content\r\n\r\n')
    })
  })
  const group = groupOf([server.url], { headTimeoutMs: 700 })
  const body = Readable.from(Array.from({ length: length / PIECE }, () => Buffer.alloc(PIECE, 'x')))
  const start = performance.now()
  await answerOf(group, { method: 'POST', body, bodyLength: length })
  assert.ok(performance.now() - start > 700)
  await closed(group, server)
})
