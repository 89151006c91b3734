import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { test } from 'tap'
import {
  data,
  fieldBlock,
  type Frame,
  frame,
  framesOf,
  headers,
  PREFACE,
  settings,
  windowUpdate,
} from './http2-frames.ts'
import { answerOf, ask, assertClean, closed, groupOf, type Upstream, upstream } from './upstream-fixture.ts'
import { timeBox } from '../time-box.ts'

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY] = [0, 1, 3, 4, 6, 7]
const [WINDOW_UPDATE, CONTINUATION] = [8, 9]
const [HEADER_TABLE_SIZE, ENABLE_PUSH, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE] = [1, 2, 4, 5]
const [END_STREAM, ACK, END_HEADERS, PADDED] = [1, 1, 4, 8]
const STREAM_WINDOW = 262_144
const OK = (stream: number, ...more: readonly string[]) =>
  headers(stream, [':status', '200', ...more], { hasEnded: false })

/** What an app says when a frame has come. */
type Reply = (frame: Frame, socket: Socket) => void

interface HandApp {
  readonly server: Upstream
  readonly url: string
  /** All frames that came, of all connections. */
  readonly frames: Frame[]
}

async function handApp(reply: Reply, opening: Buffer = settings()): Promise<HandApp> {
  const frames: Frame[] = []
  const server = await upstream((socket) => {
    let unread: Buffer = Buffer.alloc(0)
    let isGreeted = false
    socket.write(opening)
    socket.on('data', (bytes) => {
      unread = Buffer.concat([unread, bytes])
      if (!isGreeted && unread.length < PREFACE.length) return
      if (!isGreeted) unread = unread.subarray(PREFACE.length)
      isGreeted = true
      for (const found of framesOf(unread)) {
        unread = unread.subarray(9 + found.payload.length)
        frames.push(found)
        if (!socket.destroyed) reply(found, socket)
      }
    })
  })
  return { server, url: server.url.replace('http', 'h2c'), frames }
}

/** Says these frames to each request, once it is whole. */
function toWhole(say: (stream: number, socket: Socket) => readonly Buffer[]): Reply {
  return ({ type, flags, stream }, socket) => {
    const isWhole = (type === HEADERS || type === DATA) && (flags & END_STREAM) !== 0
    if (isWhole) socket.write(Buffer.concat(say(stream, socket)))
  }
}

async function said(app: HandApp, isMeant: (frame: Frame) => boolean): Promise<Frame> {
  for (;;) {
    const found = app.frames.find(isMeant)
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

async function reasonOf(group: ReturnType<typeof groupOf>): Promise<string> {
  const asking = ask(group)
  const outcome = await asking.outcome
  assertClean(asking)
  return 'reason' in outcome ? outcome.reason : outcome.kind
}

test('an answer is the same wherever its bytes are cut', async () => {
  const whole = Buffer.concat([
    headers(1, [':status', '103', 'link', '</a>'], { hasEnded: false }),
    OK(1, 'a', 'b'),
    data(1, 'one', false),
    frame(DATA, PADDED, 1, Buffer.from('\x04two\0\0\0\0', 'latin1')),
    headers(1, ['x-end', 'yes']),
  ])
  for (let at = 1; at < whole.length; at++) {
    const app = await handApp(({ type }, socket) => {
      if (type !== HEADERS) return
      socket.write(whole.subarray(0, at), () => setImmediate(() => socket.write(whole.subarray(at))))
    })
    const group = groupOf([app.url])
    const { informs, status, headers, text, endTrailers } = await answerOf(group, { acceptsTrailers: true })
    assert.deepEqual(
      [informs, status, headers, text, endTrailers],
      [[{ status: 103, headers: ['link', '</a>'] }], ...[200, ['a', 'b'], 'onetwo', ['x-end', 'yes']]],
      `cut at ${at}`,
    )
    await closed(group, app.server)
  }
})

test('an answer that is cut off at any byte is broken off or failed', async () => {
  const whole = Buffer.concat([OK(1, 'a', 'b'), data(1, 'one', false), headers(1, ['x-end', 'yes'])])
  for (let at = 0; at < whole.length; at++) {
    const app = await handApp(({ type }, socket) => {
      if (type === HEADERS) socket.end(whole.subarray(0, at))
    })
    const group = groupOf([app.url])
    const asking = ask(group)
    const { kind } = await asking.outcome
    assert.ok(kind === 'failed' || kind === 'broken-off', `cut at ${at}: ${kind}`)
    assertClean(asking)
    await closed(group, app.server)
  }
})

test('rules of the connection that an app may break', async () => {
  const broken: Readonly<Record<string, (stream: number) => readonly Buffer[]>> = {
    'DATA on a stream that we have not begun': (n) => [data(n + 2, 'x')],
    'a reset of a stream that we have not begun': (n) => [frame(RST_STREAM, 0, n + 2, Buffer.alloc(4))],
    'a window for a stream that we have not begun': (n) => [windowUpdate(1, n + 2)],
    'an answer on an even stream': () => [OK(2)],
    'a frame that is too long': (n) => [frame(DATA, 0, n, Buffer.alloc(16_385))],
    'a window of the connection that grows by nothing': () => [windowUpdate(0)],
    'a window of the connection that is too large': () => [windowUpdate(0x7fff_ffff)],
    'a header block with something in between': (n) => [
      headers(n, [':status', '200'], { hasEnded: false, isWhole: false }),
      frame(PING, 0, 0, Buffer.alloc(8)),
    ],
    'a CONTINUATION that continues nothing': (n) => [OK(n), frame(CONTINUATION, END_HEADERS, n)],
    'more CONTINUATION than any head needs': (n) => [
      headers(n, [':status', '200'], { hasEnded: false, isWhole: false }),
      ...Array.from({ length: 20 }, () => frame(CONTINUATION, 0, n)),
    ],
    'padding that is longer than its frame': (n) => [OK(n), frame(DATA, PADDED, n, Buffer.of(9, 0))],
    'a promise': (n) => [frame(5, END_HEADERS, n, Buffer.of(0, 0, 0, 2))],
    'pushes to us': () => [settings([ENABLE_PUSH, 1])],
    'a window of streams that is too large': () => [settings([INITIAL_WINDOW_SIZE, 0x8000_0000])],
    'frames that are too small': () => [settings([MAX_FRAME_SIZE, 100])],
    'SETTINGS of a broken size': () => [frame(4, 0, 0, Buffer.alloc(5))],
    'PINGs without end': () => Array.from({ length: 5000 }, () => frame(PING, 0, 0, Buffer.alloc(8))),
    'empty DATA without end': (n) => [OK(n), ...Array.from({ length: 5000 }, () => data(n, '', false))],
    'SETTINGS without end': () => Array.from({ length: 5000 }, () => settings()),
  }
  for (const [name, say] of Object.entries(broken)) {
    let isFirst = true
    const app = await handApp(
      toWhole((stream) => {
        if (!isFirst) return [OK(stream), data(stream, 'ok')]
        isFirst = false
        return say(stream)
      }),
    )
    const group = groupOf([app.url], { headTimeoutMs: 2000 })
    assert.equal(await reasonOf(group), 'bad-response', name)
    assert.equal((await answerOf(group)).text, 'ok', `${name}: the next connection`)
    assert.notEqual((await said(app, ({ type }) => type === GOAWAY)).payload.readUInt32BE(4), 0, name)
    await closed(group, app.server)
  }
})

test('rules of a stream that an app may break, at the cost of that stream alone', async () => {
  const broken: Readonly<Record<string, (stream: number) => readonly Buffer[]>> = {
    'a window that grows by nothing': (n) => [windowUpdate(0, n)],
    'a window that is too large': (n) => [windowUpdate(0x7fff_ffff, n)],
    'more than the window of the stream': (n) => [
      OK(n),
      ...Array.from({ length: 17 }, () => data(n, Buffer.alloc(16_384), false)),
    ],
    'a head that is too long': (n) => [
      headers(n, [':status', '200', ...Array.from({ length: 600 }, () => ['a', 'b']).flat()]),
    ],
    'a field of the connection': (n) => [OK(n, 'transfer-encoding', 'chunked')],
    'a line end in a value': (n) => [OK(n, 'a', 'b\r\nc: d')],
    'a status twice': (n) => [OK(n, ':status', '200')],
    'trailers with a status': (n) => [OK(n), headers(n, [':status', '200'])],
  }
  for (const [name, say] of Object.entries(broken)) {
    const app = await handApp(
      toWhole((stream) => (stream === 3 ? say(stream) : [OK(stream), data(stream, 'ok')])),
    )
    const group = groupOf([app.url])
    await answerOf(group)
    const asking = ask(group, { target: '/broken' })
    asking.exchange.isSlow = true
    const outcome = await asking.outcome
    assert.equal('reason' in outcome && outcome.reason, 'bad-response', name)
    assert.equal((await answerOf(group)).text, 'ok', name)
    const { payload } = await said(app, ({ type, stream }) => type === RST_STREAM && stream === 3)
    assert.equal(payload.readUInt32BE(0), 1, `${name}: PROTOCOL_ERROR`)
    assert.equal(app.server.accepted, 1, name)
    await closed(group, app.server)
  }
})

test('an answer that is here stays, whatever its connection does then', async () => {
  const body = Buffer.alloc(200_000, 'x')
  const pieces = Array.from({ length: 13 }, (_, index) => body.subarray(index * 16_384, (index + 1) * 16_384))
  for (const end of [
    (_: number, socket: Socket) => void socket.end(),
    (stream: number, socket: Socket) => void socket.write(frame(RST_STREAM, 0, stream, Buffer.alloc(4))),
    (stream: number, socket: Socket) =>
      void socket.write(frame(RST_STREAM, 0, stream, Buffer.of(0, 0, 0, 8))),
  ]) {
    const app = await handApp(
      toWhole((stream, socket) => {
        setTimeout(end, 50, stream, socket)
        return [OK(stream), ...pieces.map((piece, index) => data(stream, piece, index === 12))]
      }),
    )
    const group = groupOf([app.url])
    const asking = ask(group)
    asking.exchange.isSlow = true
    await asking.exchange.until('written')
    await new Promise((resolve) => setTimeout(resolve, 150))
    assert.deepEqual(asking.outcomes, [])
    asking.exchange.drain()
    assert.equal((await asking.outcome).kind, 'answered')
    assert.deepEqual(Buffer.concat(asking.exchange.chunks), body)
    assertClean(asking)
    await closed(group, app.server)
  }
})

test('a slow client gets no more than a window ahead, and then the rest', async () => {
  let sent = 0
  const app = await handApp(({ type, stream, payload }, socket) => {
    if (type === HEADERS) socket.write(OK(stream))
    let room = type === HEADERS ? STREAM_WINDOW : 0
    if (type === WINDOW_UPDATE && stream !== 0) room = payload.readUInt32BE(0)
    for (; room > 0 && sent < 1_000_000; room -= 10_000) {
      const length = Math.min(10_000, room, 1_000_000 - sent)
      sent += length
      socket.write(data(stream, Buffer.alloc(length, 'x'), sent === 1_000_000))
    }
  })
  const group = groupOf([app.url])
  const asking = ask(group)
  asking.exchange.isSlow = true
  await asking.exchange.until('written')
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.ok(sent <= STREAM_WINDOW, `${sent} bytes were taken from the app`)
  asking.exchange.drain()
  assert.equal((await asking.outcome).kind, 'answered')
  assert.equal(Buffer.concat(asking.exchange.chunks).length, 1_000_000)
  await closed(group, app.server)
})

test('a window that SETTINGS change holds for what is under way', async () => {
  const taken = new Map<number, number>()
  const app = await handApp(
    ({ type, flags, stream, payload }, socket) => {
      if (type === DATA) taken.set(stream, (taken.get(stream) ?? 0) + payload.length)
      if (type === DATA && taken.get(stream) === 100)
        socket.write(settings([INITIAL_WINDOW_SIZE, 40], [HEADER_TABLE_SIZE, 0]))
      // It was 100, of which all is used: 40 is 60 below nothing, and 61 is one byte.
      if (type === SETTINGS && (flags & ACK) !== 0 && taken.get(stream) === undefined)
        setTimeout(() => socket.write(windowUpdate(61, 1)), 50)
      if (type === DATA && taken.get(stream) === 101) socket.write(settings([INITIAL_WINDOW_SIZE, 10_000]))
      if (type === DATA && (flags & END_STREAM) !== 0) socket.write(headers(stream, [':status', '204']))
    },
    settings([INITIAL_WINDOW_SIZE, 100]),
  )
  const group = groupOf([app.url])
  const body = Readable.from([Buffer.alloc(1000, 'x')])
  const asking = ask(group, { method: 'POST', body, bodyLength: 1000 })
  assert.equal((await asking.outcome).kind, 'answered')
  assert.deepEqual([...taken], [[1, 1000]])
  const sizes = app.frames.filter(({ type }) => type === DATA).map(({ payload }) => payload.length)
  assert.deepEqual(sizes.slice(0, 2), [100, 1])
  assert.equal((await answerOf(group, { method: 'POST', body: Buffer.from('y'), bodyLength: 1 })).status, 204)
  await closed(group, app.server)
})

test('windows that SETTINGS raise and lower in turn hold for 100 uploads at once', async () => {
  const initials = [3_000, 0, 20_000, 1, 65_535, 700, 0, 9_000, 40_000]
  const bodies = Array.from({ length: 100 }, (_, index) => Buffer.alloc(2_000 + 300 * index, index))
  const windows = new Map<number, number>()
  const taken = new Map<number, Buffer[]>()
  const excesses: string[] = []
  let connectionWindow = 65_535
  let [initial, acknowledged] = [initials[0]!, 0]
  const app = await handApp(
    ({ type, flags, stream, payload }, socket) => {
      if (type === HEADERS) windows.set(stream, initial)
      // An app counts with new windows from the acknowledgement on.
      if (type === SETTINGS && (flags & ACK) !== 0) {
        const next = initials[acknowledged++ % initials.length]!
        for (const [each, window] of windows) windows.set(each, window + next - initial)
        initial = next
        const change = settings([INITIAL_WINDOW_SIZE, initials[acknowledged % initials.length]!])
        if (acknowledged < 60) setTimeout(() => socket.write(change), 2)
        else
          for (const [each, window] of windows) {
            windows.set(each, window + 100_000)
            socket.write(windowUpdate(100_000, each))
          }
      }
      if (type !== DATA) return
      windows.set(stream, windows.get(stream)! - payload.length)
      connectionWindow -= payload.length
      if (payload.length > 0 && (windows.get(stream)! < 0 || connectionWindow < 0))
        excesses.push(`stream ${stream}: ${windows.get(stream)}, connection: ${connectionWindow}`)
      taken.set(stream, [...(taken.get(stream) ?? []), payload])
      if (payload.length > 0) socket.write(windowUpdate(payload.length))
      connectionWindow += payload.length
      if ((flags & END_STREAM) !== 0) socket.write(headers(stream, [':status', '204']))
    },
    settings([INITIAL_WINDOW_SIZE, initials[0]!]),
  )
  const group = groupOf([app.url])
  const askings = bodies.map((body) =>
    ask(group, { method: 'POST', body: Readable.from([body]), bodyLength: body.length }),
  )
  for (const { outcome } of askings) assert.equal((await outcome).kind, 'answered')
  assert.deepEqual(excesses, [])
  assert.equal(app.server.accepted, 1)
  const texts = (buffers: readonly Buffer[]) => buffers.map((each) => each.toString('latin1')).sort()
  assert.deepEqual(texts([...taken.values()].map((parts) => Buffer.concat(parts))), texts(bodies))
  await closed(group, app.server)
})

test('trailers that come while the client has no room follow the rest of the answer', async () => {
  const app = await handApp(
    toWhole((stream) => [OK(stream), data(stream, 'one', false), data(stream, 'two', false)]),
  )
  const group = groupOf([app.url])
  const asking = ask(group, { acceptsTrailers: true })
  asking.exchange.isSlow = true
  await asking.exchange.until('written')
  for (const socket of app.server.sockets) socket.write(headers(1, ['x-end', 'yes']))
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepEqual(asking.outcomes, [])
  asking.exchange.drain()
  assert.equal((await asking.outcome).kind, 'answered')
  assert.equal(Buffer.concat(asking.exchange.chunks).toString(), 'onetwo')
  assert.deepEqual(asking.exchange.endTrailers, ['x-end', 'yes'])
  await closed(group, app.server)
})

test('a stream that was cancelled does not upset what follows: not the table, not the window', async () => {
  const app = await handApp(({ type, flags, stream }, socket) => {
    if (type !== HEADERS || (flags & END_STREAM) === 0) return
    if (stream > 1) return void socket.write(Buffer.concat([INDEXED(stream), data(stream, 'ok')]))
    socket.write(headers(stream, [':status', '103'], { hasEnded: false }))
    // The reset has not arrived yet.
    setTimeout(() => socket.write(Buffer.concat([LEARNT(stream), data(stream, Buffer.alloc(9000))])), 50)
  })
  const group = groupOf([app.url])
  const asking = ask(group, { target: '/gone' })
  await asking.exchange.until('informed')
  asking.exchange.leave()
  assert.equal((await asking.outcome).kind, 'client-gone')
  await new Promise((resolve) => setTimeout(resolve, 150))
  const { headers: fields, text } = await answerOf(group)
  assert.deepEqual([fields, text], [['x-learnt', 'yes'], 'ok'])
  assert.equal(app.server.accepted, 1)
  await closed(group, app.server)
})

test('a GOAWAY lets those that the app has not seen go elsewhere, at once', async () => {
  const app = await handApp(({ type, stream }, socket) => {
    if (type !== HEADERS) return
    if (app.server.accepted > 1) socket.write(Buffer.concat([OK(stream), data(stream, 'second')]))
    else if (stream === 3) socket.write(frame(GOAWAY, 0, 0, Buffer.of(0, 0, 0, 1, 0, 0, 0, 0)))
  })
  const group = groupOf([app.url])
  const first = ask(group, { method: 'POST' })
  await said(app, ({ type }) => type === HEADERS)
  // POST, which is sent twice only if the app cannot have seen it.
  const second = await answerOf(group, { method: 'POST' })
  assert.equal(second.text, 'second')
  assert.deepEqual(first.outcomes, [])
  first.exchange.leave()
  await first.outcome
  await closed(group, app.server)
})

test('a connection with half a header block takes no other request', async () => {
  let isFirst = true
  const app = await handApp(
    toWhole((stream) => {
      if (!isFirst) return [OK(stream), data(stream, 'ok')]
      isFirst = false
      return [data(stream, 'too early', false), frame(HEADERS, 0, stream)]
    }),
  )
  const group = groupOf([app.url], { idleTimeoutMs: 100 })
  assert.equal(await reasonOf(group), 'bad-response')
  assert.equal((await answerOf(group)).text, 'ok')
  await closed(group, app.server)
})

test('whatever frames an app says, a request has one outcome, and the next one is served', async () => {
  const anyFrame = fc
    .record({
      type: fc.nat(10),
      flags: fc.constantFrom(0, 1, 4, 5, 8, 0x20, 0x2d),
      stream: fc.constantFrom(0, 1, 1, 1, 2, 3),
      payload: fc.oneof(
        fc.uint8Array({ maxLength: 20 }),
        fc.constantFrom([':status', '200'], [':status', '103'], ['content-length', '3']).map(fieldBlock),
      ),
    })
    .map(({ type, flags, stream, payload }) => frame(type, flags, stream, payload))
  const property = fc.asyncProperty(
    fc.array(anyFrame, { maxLength: 12 }),
    fc.boolean(),
    async (frames, ends) => {
      let isFirst = true
      const app = await handApp(
        toWhole((stream, socket) => {
          if (!isFirst) return [OK(stream), data(stream, 'ok')]
          isFirst = false
          if (ends) setImmediate(() => socket.end())
          return frames
        }),
      )
      const group = groupOf([app.url], { headTimeoutMs: 100, idleTimeoutMs: 100 })
      const asking = ask(group)
      await asking.outcome
      assertClean(asking)
      assert.equal((await answerOf(group)).status, 200)
      await closed(group, app.server)
    },
  )
  await fc.assert(property, { ...timeBox(10_000, 5_000), timeout: 5000 })
})

/** Adds a field to the table, and refers to it (RFC 7541 §6.2.1 and §6.1). */
const FIELD = Buffer.concat([Buffer.of(0x40, 8), Buffer.from('x-learnt'), Buffer.of(3), Buffer.from('yes')])
const LEARNT = (stream: number) =>
  frame(HEADERS, END_HEADERS, stream, Buffer.concat([Buffer.of(0x88), FIELD]))
const INDEXED = (stream: number) => frame(HEADERS, END_HEADERS, stream, Buffer.of(0x88, 0x80 | 62))
