import assert from 'node:assert/strict'
import type net from 'node:net'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { test } from 'tap'
import type { UpstreamGroup } from '../../src/proxy/upstream/upstream.ts'
import {
  type Asking,
  ask,
  assertClean,
  closed,
  eachHead,
  groupOf,
  HEADERS,
  type Upstream,
  upstream,
} from './upstream-fixture.ts'

/** One request and its answer, and who breaks it off where. */
interface Plan {
  readonly method: string
  readonly request: readonly Uint8Array[]
  readonly hasLength: boolean
  readonly requestTrailers: readonly string[]
  readonly response: readonly Uint8Array[]
  readonly framing: 'length' | 'chunked' | 'until-close'
  readonly trailers: readonly string[]
  /** Where the bytes of the response are cut. */
  readonly cuts: readonly number[]
  /** The upstream drops the connection after so many bytes; `null`: it does not. */
  readonly upstreamBreaksAt: number | null
  /** The client goes after so many calls of `write`; -1: as soon as it has asked. */
  readonly clientLeavesAt: number | null
}

/** What the upstream has read of a request. */
interface Received {
  body: string
  trailers: string
}

const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 3000, size: 'max' }), { maxLength: 6 })
const trailers = fc.constantFrom([], ['X-Sum', 'abc'], ['X-A', '1', 'X-B', '', 'X-A', '2'])
const plan: fc.Arbitrary<Plan> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT'),
  request: pieces,
  hasLength: fc.boolean(),
  requestTrailers: trailers,
  response: pieces,
  framing: fc.constantFrom('length', 'chunked', 'until-close'),
  trailers,
  cuts: fc.array(fc.integer({ min: 1, max: 2000 }), { minLength: 1, maxLength: 8 }),
  upstreamBreaksAt: fc.option(fc.nat(4000), { freq: 3 }),
  clientLeavesAt: fc.option(fc.integer({ min: -1, max: 5 }), { freq: 3 }),
})

test('any bodies, cut anyhow and broken off anywhere: the same bytes, or the right outcome', async () => {
  const property = fc.asyncProperty(
    fc.array(plan, { minLength: 1, maxLength: 8 }),
    fc.integer({ min: 1, max: 4 }),
    async (plans, connectionsMax) => {
      const received = plans.map((): Received => ({ body: '', trailers: '' }))
      const server = await upstream((socket) => serve(socket, plans, received))
      const group = groupOf([server.url], { connectionsMax })
      await Promise.all(plans.map((plan, index) => run(group, plan, index, received[index]!)))
      await closed(group, server)
    },
  )
  await fc.assert(property, { numRuns: 100 })
})

test('thousands of requests, with aborts on either side, leave nothing behind', async () => {
  const intervals = countIntervals()
  const server = await upstream((socket) => {
    eachHead(socket, (head) => {
      if (head.includes('/reset')) socket.resetAndDestroy()
      else if (head.includes('/half')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
      else socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  })
  const group = groupOf([server.url], { connectionsMax: 16, connectionsIdleMax: 8 })
  await load(group, 2000)
  const before = heapUsed()
  await load(group, 4000)
  const grown = heapUsed() - before
  assert.ok(grown < 1_000_000, `the heap has grown by ${grown} bytes`)
  const { connections, idle, waiting } = group.status[0]!
  assert.ok(connections <= 8 && connections === idle && waiting === 0)
  await closed(group, server)
  assert.equal(intervals.running(), 0)
  intervals.restore()
  assertNoSockets(server)
})

async function run(group: UpstreamGroup, plan: Plan, index: number, received: Received): Promise<void> {
  const body = new PassThrough()
  const content = Buffer.concat(plan.request)
  const isBodyless = content.length === 0 && plan.hasLength
  const asking = ask(
    group,
    {
      method: plan.method,
      target: `/${index}`,
      body,
      bodyLength: plan.hasLength ? content.length : null,
      trailers: plan.requestTrailers,
      acceptsTrailers: true,
    },
    HEADERS,
  )
  leaveAsPlanned(asking, plan)
  for (const piece of plan.request) {
    if (!body.destroyed) body.write(piece)
    await new Promise(setImmediate)
  }
  if (!body.destroyed) body.end()
  const outcome = await asking.outcome
  assertClean(asking)

  const { exchange } = asking
  const response = Buffer.concat(plan.response).toString('latin1')
  assert.ok(response.startsWith(exchange.text), 'what has come is what was sent')
  if (outcome.kind === 'answered') {
    assert.equal(exchange.text, response)
    assert.deepEqual(exchange.endTrailers, plan.framing === 'chunked' ? plan.trailers : [])
    assert.equal(received.body, content.toString('latin1'))
    const hasTrailers = !isBodyless && !plan.hasLength
    assert.equal(received.trailers, hasTrailers ? lines(plan.requestTrailers) : '')
  } else if (outcome.kind === 'client-gone') assert.notEqual(plan.clientLeavesAt, null)
  else {
    assert.notEqual(plan.upstreamBreaksAt, null, JSON.stringify(outcome))
    assert.equal(outcome.reason, 'reset')
    assert.equal(outcome.kind, exchange.answered ? 'broken-off' : 'failed')
  }
}

function leaveAsPlanned({ exchange }: Asking, { clientLeavesAt }: Plan): void {
  if (clientLeavesAt === null) return
  if (clientLeavesAt === -1) return exchange.leave()
  exchange.on('written', () => {
    if (exchange.chunks.length === clientLeavesAt) exchange.leave()
  })
}

/** Reads requests with an eye for their framing, and answers as planned. */
function serve(socket: net.Socket, plans: readonly Plan[], received: readonly Received[]): void {
  let text = ''
  let isAnswering = false
  const next = () => {
    const request = isAnswering ? null : parseRequest(text)
    if (request === null) return
    text = text.slice(request.length)
    received[request.index]!.body = request.body
    received[request.index]!.trailers = request.trailers
    isAnswering = true
    answer(socket, plans[request.index]!).then(() => {
      isAnswering = false
      next()
    })
  }
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    next()
  })
}

async function answer(socket: net.Socket, plan: Plan): Promise<void> {
  const bytes = responseBytes(plan)
  const end = Math.min(bytes.length, plan.upstreamBreaksAt ?? bytes.length)
  for (let at = 0, i = 0; at < end && !socket.destroyed; i++) {
    const length = plan.cuts[i % plan.cuts.length]!
    socket.write(bytes.subarray(at, Math.min(end, at + length)))
    at += length
    await new Promise(setImmediate)
  }
  // Only a reset says that a body without a length is not whole; it may overtake what was written before it.
  if (end < bytes.length && plan.framing === 'until-close') socket.resetAndDestroy()
  else if (end < bytes.length) socket.destroy()
  else if (plan.framing === 'until-close') socket.end()
}

function responseBytes({ response, framing, trailers }: Plan): Buffer {
  const length = response.reduce((sum, piece) => sum + piece.length, 0)
  const field = {
    length: `Content-Length: ${length}\r\n`,
    chunked: 'Transfer-Encoding: chunked\r\n',
    'until-close': '',
  }
  const head = Buffer.from(`HTTP/1.1 200 OK\r\nX-A: b\r\n${field[framing]}\r\n`)
  if (framing !== 'chunked') return Buffer.concat([head, ...response])
  const chunks = response.flatMap((piece) => {
    return [Buffer.from(`${piece.length.toString(16)};x=y\r\n`), piece, Buffer.from('\r\n')]
  })
  return Buffer.concat([head, ...chunks, Buffer.from(`0\r\n${lines(trailers)}\r\n`)])
}

/** The first request in `text` once it is all there. Asserts that it is framed in one way. */
function parseRequest(text: string) {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return null
  const head = text.slice(0, headEnd + 2)
  const [, index] = /^[A-Z]+ \/(\d+) HTTP\/1\.1\r\n/.exec(head)!
  const length = /^Content-Length: (\d+)\r\n/m.exec(head)
  const isChunked = head.includes('\r\nTransfer-Encoding: chunked\r\n')
  assert.ok(!(length !== null && isChunked))
  const start = headEnd + 4
  if (!isChunked) {
    const end = start + Number(length?.[1] ?? 0)
    if (text.length < end) return null
    return { index: Number(index), length: end, body: text.slice(start, end), trailers: '' }
  }
  let body = ''
  for (let at = start; ; ) {
    const size = /^([0-9a-f]+)\r\n/.exec(text.slice(at, at + 20))
    if (size === null) return null
    at += size[0].length
    const count = Number.parseInt(size[1]!, 16)
    if (count === 0) {
      const end = text.indexOf('\r\n\r\n', at - 2)
      if (end === -1) return null
      return { index: Number(index), length: end + 4, body, trailers: text.slice(at, end + 2) }
    }
    if (text.length < at + count + 2) return null
    assert.equal(text.slice(at + count, at + count + 2), '\r\n')
    body += text.slice(at, at + count)
    at += count + 2
  }
}

function lines(fields: readonly string[]): string {
  let text = ''
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`
  return text
}

/** Requests of all kinds, 50 at once. */
async function load(group: UpstreamGroup, count: number): Promise<void> {
  let started = 0
  const lane = async () => {
    while (started < count) {
      const kind = started++ % 20
      const target = kind === 3 ? '/reset' : kind === 5 ? '/half' : '/'
      const asking = ask(group, { target })
      if (kind === 5) asking.exchange.on('written', () => asking.exchange.leave())
      if (kind === 7) asking.exchange.leave()
      const { kind: outcome } = await asking.outcome
      const expected = kind === 3 ? 'failed' : kind === 5 || kind === 7 ? 'client-gone' : 'answered'
      assert.equal(outcome, expected)
      assertClean(asking)
    }
  }
  await Promise.all(Array.from({ length: 50 }, lane))
}

function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  const collect: () => void = runInNewContext('gc')
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/** The timers of the coarse clock do not keep a process alive, so that nothing else tells of one left running. */
function countIntervals() {
  const { setInterval: set, clearInterval: clear } = globalThis
  const running = new Set<unknown>()
  globalThis.setInterval = ((callback: () => void, delayMs: number) => {
    const timer = set(callback, delayMs)
    running.add(timer)
    return timer
  }) as typeof set
  globalThis.clearInterval = ((timer: NodeJS.Timeout) => {
    running.delete(timer)
    clear(timer)
  }) as typeof clear
  return {
    running: () => running.size,
    restore: () => Object.assign(globalThis, { setInterval: set, clearInterval: clear }),
  }
}

function assertNoSockets(server: Upstream): void {
  assert.equal(server.sockets.size, 0)
  assert.ok(!process.getActiveResourcesInfo().includes('TCPSocketWrap'))
}
