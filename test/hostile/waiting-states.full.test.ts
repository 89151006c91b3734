import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import net, { type AddressInfo, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { ListenerLimits } from '../../src/proxy/worker/listener.ts'
import type { UpstreamSettings } from '../../src/proxy/upstream/upstream.ts'
import { data, frame, getRequest, headers, PREFACE, settings } from '../proxy/http2-frames.ts'
import { type Gate, startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { helloMessage, records } from './tls-hellos.ts'

/** As many clients are silent at once. */
const CROWD = 200
/** What the deadline of a state is set to. All others are so long that none of them can be the one that passes. */
const SHORT_MS = 400
const LONG_MS = 600_000
/** A busy machine, and deadlines that are looked at now and then: with all states of a crowd it is far from LONG_MS. */
const LATE_MS = 20_000

interface State {
  readonly name: string
  /** The setting that its deadline has, in `proxy.limits` or of the upstream. */
  readonly deadline: keyof typeof DEADLINES
  /** What each client sends, and then no more. */
  readonly sent: string | Buffer
  readonly isTls?: boolean
  /** It does not read either. */
  readonly isDeaf?: boolean
  readonly fastLane?: boolean
  /** All places for uploads, and all connections to the app, are taken by others before. */
  readonly isAppTaken?: boolean
  /** What it hears before the end; with HTTP/2 the status of its stream, behind which the connection may go on. */
  readonly hears?: RegExp
  readonly status?: number | 'reset'
}

const DEADLINES = {
  hello_timeout: { limits: { helloTimeoutMs: SHORT_MS } },
  handshake_timeout: { limits: { handshakeTimeoutMs: SHORT_MS } },
  header_timeout: { limits: { headerTimeoutMs: SHORT_MS } },
  body_idle_timeout: { limits: { bodyIdleTimeoutMs: SHORT_MS } },
  answer_unread_timeout: { limits: { answerUnreadTimeoutMs: SHORT_MS } },
  keep_alive_timeout: { limits: { keepAliveTimeoutMs: SHORT_MS } },
  upgrade_idle_timeout: { upgradeIdleTimeoutMs: SHORT_MS },
  connect_timeout: { upstream: { connectTimeoutMs: SHORT_MS } },
  head_timeout: { upstream: { headTimeoutMs: SHORT_MS } },
  idle_timeout: { upstream: { idleTimeoutMs: SHORT_MS } },
} as const satisfies Record<
  string,
  {
    readonly limits?: Partial<ListenerLimits>
    readonly upstream?: Partial<UpstreamSettings>
    readonly upgradeIdleTimeoutMs?: number
  }
>

/** Requests that the app has not answered. */
let held = 0

const HOST = 'Host: a.example.test\r\n'
const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`
const post = (framing: string, path = '/') => `POST ${path} HTTP/1.1\r\n${HOST}${framing}\r\n\r\n`
const upgrade = (path: string) => get(path, 'Connection: Upgrade\r\nUpgrade: bytes\r\n')
const OPENING = Buffer.concat([PREFACE, settings()])
const CLOSED_WINDOWS = Buffer.concat([PREFACE, settings([4, 0])])
const opened = (...frames: readonly Buffer[]) => Buffer.concat([OPENING, ...frames])
const h2Get = (path: string) => headers(1, getRequest({ ':path': path }))
const h2Post = (path = '/') =>
  headers(1, getRequest({ ':method': 'POST', ':path': path }), { hasEnded: false })

/** In both lanes of HTTP/1: what begins in the fast one may be handed over. */
const HTTP1_STATES = [true, false].flatMap((fastLane) =>
  (
    [
      { name: 'nothing', deadline: 'header_timeout', sent: '' },
      {
        name: 'half a head',
        deadline: 'header_timeout',
        sent: `GET / HTTP/1.1\r\n${HOST}`,
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'half of a second head',
        deadline: 'header_timeout',
        sent: `${get('/')}GET / HT`,
        hears: /^HTTP\/1.1 200 /,
      },
      { name: 'no second request', deadline: 'keep_alive_timeout', sent: get('/'), hears: /^HTTP\/1.1 200 / },
      {
        name: 'no body',
        deadline: 'body_idle_timeout',
        sent: post('Content-Length: 10'),
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'half a body',
        deadline: 'body_idle_timeout',
        sent: `${post('Content-Length: 10')}half`,
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'half a chunk',
        deadline: 'body_idle_timeout',
        sent: `${post('Transfer-Encoding: chunked')}a\r\nhalf`,
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'no body after a 100',
        deadline: 'body_idle_timeout',
        sent: post('Content-Length: 10\r\nExpect: 100-continue'),
        hears: /^HTTP\/1.1 100 .*HTTP\/1.1 408 /s,
      },
      {
        name: 'half a body behind its answer',
        deadline: 'body_idle_timeout',
        sent: `${post('Content-Length: 10', '/early')}half`,
        hears: /^HTTP\/1.1 200 /,
      },
      {
        name: 'half a body, while it waits for a place',
        deadline: 'body_idle_timeout',
        sent: `${post('Content-Length: 10')}half`,
        isAppTaken: true,
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'half a body in chunks, while it waits for a place',
        deadline: 'body_idle_timeout',
        sent: `${post('Transfer-Encoding: chunked')}a\r\nhalf`,
        isAppTaken: true,
        hears: /^HTTP\/1.1 408 /,
      },
      {
        name: 'a body that is held back, while it waits for a place',
        deadline: 'connect_timeout',
        sent: `${post('Content-Length: 200000')}${'x'.repeat(190_000)}`,
        isAppTaken: true,
        hears: /^HTTP\/1.1 503 /,
      },
      {
        name: 'a body that waits for a 100, while it waits for a place',
        deadline: 'connect_timeout',
        sent: post('Content-Length: 10\r\nExpect: 100-continue'),
        isAppTaken: true,
        hears: /^HTTP\/1.1 503 /,
      },
      {
        name: 'a whole request, while it waits for a connection',
        deadline: 'connect_timeout',
        sent: get('/'),
        isAppTaken: true,
        hears: /^HTTP\/1.1 503 /,
      },
      {
        name: 'no answer of the app',
        deadline: 'head_timeout',
        sent: get('/hold'),
        hears: /^HTTP\/1.1 504 /,
      },
      {
        name: 'half an answer of the app',
        deadline: 'idle_timeout',
        sent: get('/half'),
        hears: /^HTTP\/1.1 200 /,
      },
      {
        name: 'an answer that is not read',
        deadline: 'answer_unread_timeout',
        sent: get('/large'),
        isDeaf: true,
      },
      {
        name: 'answers that are not read',
        deadline: 'answer_unread_timeout',
        sent: get('/large').repeat(5),
        isDeaf: true,
      },
      {
        name: 'an upgraded connection',
        deadline: 'upgrade_idle_timeout',
        sent: upgrade('/'),
        hears: /^HTTP\/1.1 101 /,
      },
      {
        name: 'an upgrade that the app does not answer',
        deadline: 'head_timeout',
        sent: upgrade('/hold'),
        hears: /^HTTP\/1.1 504 /,
      },
      {
        name: 'an answer in place of an upgrade that is not read',
        deadline: 'answer_unread_timeout',
        sent: upgrade('/large'),
        isDeaf: true,
      },
      {
        name: 'half an answer in place of an upgrade',
        deadline: 'idle_timeout',
        sent: upgrade('/half'),
        hears: /^HTTP\/1.1 200 /,
      },
    ] satisfies State[]
  ).map((state: State) => ({
    ...state,
    fastLane,
    name: `HTTP/1.1, ${fastLane ? 'fast' : 'robust'}: ${state.name}`,
  })),
)

const HTTP2_STATES: readonly State[] = [
  { name: 'half a preface', deadline: 'header_timeout', sent: PREFACE.subarray(0, 12) },
  { name: 'a preface without SETTINGS', deadline: 'header_timeout', sent: PREFACE },
  { name: 'no request', deadline: 'keep_alive_timeout', sent: OPENING },
  {
    name: 'half a field block',
    deadline: 'keep_alive_timeout',
    sent: opened(frame(1, 1, 1, Buffer.of(0x82))),
  },
  { name: 'no second request', deadline: 'keep_alive_timeout', sent: opened(h2Get('/')) },
  { name: 'no body', deadline: 'body_idle_timeout', sent: opened(h2Post()), status: 408 },
  {
    name: 'half a body',
    deadline: 'body_idle_timeout',
    sent: opened(h2Post(), data(1, 'half', false)),
    status: 408,
  },
  {
    name: 'half a body behind its answer',
    deadline: 'body_idle_timeout',
    sent: opened(h2Post('/early'), data(1, 'half', false)),
    status: 'reset',
  },
  {
    name: 'half a body, while it waits for a place',
    deadline: 'body_idle_timeout',
    sent: opened(h2Post(), data(1, 'half', false)),
    isAppTaken: true,
    status: 408,
  },
  {
    name: 'a whole request, while it waits for a connection',
    deadline: 'connect_timeout',
    sent: opened(h2Get('/')),
    isAppTaken: true,
    status: 503,
  },
  { name: 'no answer of the app', deadline: 'head_timeout', sent: opened(h2Get('/hold')), status: 504 },
  {
    name: 'half an answer of the app',
    deadline: 'idle_timeout',
    sent: opened(h2Get('/half')),
    status: 'reset',
  },
  {
    name: 'an answer that is not read',
    deadline: 'answer_unread_timeout',
    sent: Buffer.concat([CLOSED_WINDOWS, h2Get('/large')]),
    status: 'reset',
  },
].map((state) => ({ ...state, name: `HTTP/2: ${state.name}` }) as State)

const STATES: readonly State[] = [
  { name: 'TLS: nothing', deadline: 'hello_timeout', isTls: true, sent: '' },
  {
    name: 'TLS: half a hello',
    deadline: 'hello_timeout',
    isTls: true,
    sent: records(helloMessage()).subarray(0, -1),
  },
  {
    name: 'TLS: a hello and no more',
    deadline: 'handshake_timeout',
    isTls: true,
    sent: records(helloMessage()),
  },
  ...HTTP1_STATES,
  ...HTTP2_STATES,
]

class Client {
  readonly socket: Socket
  isClosed = false
  readonly #heard: Buffer[] = []

  constructor(port: number) {
    this.socket = net.connect(port, '127.0.0.1')
    this.socket.on('error', () => undefined)
    this.socket.on('data', (bytes: Buffer) => this.#heard.push(bytes))
    this.socket.on('close', () => {
      this.isClosed = true
    })
  }

  get text(): string {
    return this.heard.toString('latin1')
  }

  get heard(): Buffer {
    return Buffer.concat(this.#heard)
  }

  /** With HTTP/2: stream 1 has been answered with this status, or was reset. */
  hasEnded(status: number | 'reset'): boolean {
    const { heard } = this
    for (let at = 0; at + 9 <= heard.length; at += 9 + heard.readUIntBE(at, 3)) {
      const [type, stream] = [heard[at + 3], heard.readUInt32BE(at + 5)]
      if (stream !== 1) continue
      if (type === 3 && status === 'reset') return true
      if (type === 1 && typeof status === 'number') return isStatus(heard.subarray(at + 9), status)
    }
    return false
  }
}

/** As our HPACK encoder writes it first: out of the static table, or as three digits behind its name (RFC 7541 §6). */
function isStatus(block: Buffer, status: number): boolean {
  if (status === 200) return block[0] === 0x88
  const digits = block.subarray(0, 8)
  return HUFFMAN_STATUS[status]!.some((code) => digits.includes(code))
}

const HUFFMAN_STATUS: Readonly<Record<number, readonly Buffer[]>> = {
  408: [Buffer.from('408'), Buffer.from([0x68, 0x1e, 0x7f])],
  503: [Buffer.from('503'), Buffer.from([0x6c, 0x0c, 0xff])],
  504: [Buffer.from('504'), Buffer.from([0x6c, 0x0d, 0x3f]), Buffer.from([0x6c, 0x0d, 0x7f])],
}

const OF_THE_UPSTREAM: ReadonlySet<string> = new Set(['connect_timeout', 'head_timeout', 'idle_timeout'])

/** A gate whose deadlines are all long but for that of the state. */
async function gateFor(t: Test, { deadline, fastLane = true, isAppTaken = false }: State): Promise<Gate> {
  const app = await startApp(t)
  const plan: {
    limits?: Partial<ListenerLimits>
    upstream?: Partial<UpstreamSettings>
    upgradeIdleTimeoutMs?: number
  } = DEADLINES[deadline]
  const upstream = settingsFor([app], {
    ...{ connectTimeoutMs: LONG_MS, headTimeoutMs: LONG_MS, idleTimeoutMs: LONG_MS },
    connectionsMax: isAppTaken ? 1 : 2 * CROWD,
    ...plan.upstream,
  })
  const gate = await startGate(t, {
    upstreams: [upstream],
    options: { fastLane },
    limits: { ...LONG_LIMITS, ...plan.limits },
    context: { upgradeIdleTimeoutMs: plan.upgradeIdleTimeoutMs ?? LONG_MS },
  })
  if (isAppTaken) await takeApp(t, gate.secure.port)
  return gate
}

const LONG_LIMITS: Partial<ListenerLimits> = {
  ...{ helloTimeoutMs: LONG_MS, handshakeTimeoutMs: LONG_MS, headerTimeoutMs: LONG_MS },
  ...{ bodyIdleTimeoutMs: LONG_MS, answerUnreadTimeoutMs: LONG_MS, keepAliveTimeoutMs: LONG_MS },
  connectionsPerAddressMax: 10 * CROWD,
}

/** By an upload that goes on and on: it holds the one place and the one connection. */
async function takeApp(t: Test, port: number): Promise<void> {
  const upload = https.request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/hold',
    rejectUnauthorized: false,
  })
  upload.on('error', () => undefined)
  upload.write('x')
  const drip = setInterval(() => upload.write('x'), SHORT_MS / 10)
  t.teardown(() => {
    clearInterval(drip)
    upload.destroy()
  })
  while (held === 0) await wait(5)
}

/** Answers `/hold` never, half of `/half`, `/large` at length, `/early` before it has read the request; all else is `ok`. */
async function startApp(t: Test): Promise<string> {
  held = 0
  const large = Buffer.alloc(8_000_000, 'x')
  const app = http.createServer((request, response) => {
    request.resume()
    if (request.url === '/hold') return void held++
    if (request.url === '/half') return void response.write('half')
    if (request.url === '/large') return void response.end(large)
    if (request.url === '/early') return void response.end('early')
    request.on('end', () => response.end('ok'))
  })
  app.on('upgrade', ({ url }: IncomingMessage, socket: Socket) => {
    socket.on('error', () => undefined)
    if (url === '/hold') return
    if (url === '/half') return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf')
    if (url === '/')
      return void socket.write('HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: bytes\r\n\r\n')
    socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large.length}\r\n\r\n`)
    socket.write(large)
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  return `http://127.0.0.1:${(app.address() as AddressInfo).port}`
}

for (const state of STATES)
  test(`${CROWD} clients at once: ${state.name}`, { timeout: 120_000 }, async (t) => {
    const { deadline, sent, isTls = false, isDeaf = false, hears, status } = state
    const gate = await gateFor(t, state)
    const { port, listener, timeouts } = isTls ? gate.secure : gate.plain
    const clients = Array.from({ length: CROWD }, () => new Client(port))
    t.teardown(() => {
      for (const { socket } of clients) socket.destroy()
    })
    const startMs = performance.now()
    for (const { socket } of clients) {
      if (isDeaf) socket.pause()
      socket.write(sent)
    }
    const isUpstreams = OF_THE_UPSTREAM.has(deadline)
    const isOver = (client: Client) => {
      if (client.isClosed) return true
      if (status !== undefined) return client.hasEnded(status)
      // It has its answer, behind which the connection may go on.
      return isUpstreams && deadline !== 'idle_timeout' && hears?.test(client.text) === true
    }
    // A client that does not read does not hear that its connection is gone.
    const areOver = () => (isDeaf ? listener.counts.connections === 0 : clients.every(isOver))
    let lastMs = 0
    while (lastMs < SHORT_MS || !areOver()) {
      const open = clients.filter((client) => !isOver(client))
      assert.ok(lastMs < LATE_MS, `${open.length} are open; the first has heard: ${open[0]?.text}`)
      assert.ok(lastMs > SHORT_MS || open.length === CROWD, `early, after ${lastMs} ms: ${clients[0]!.text}`)
      await wait(10)
      lastMs = performance.now() - startMs
    }
    if (hears !== undefined) for (const { text } of clients) assert.match(text, hears)
    // Of the others the metrics of requests tell, and those of the context.
    if (!isUpstreams && deadline !== 'upgrade_idle_timeout')
      assert.deepEqual(timeouts, Array(CROWD).fill(deadline))
    t.comment(`${deadline}: the last after ${lastMs.toFixed(0)} ms`)
  })
