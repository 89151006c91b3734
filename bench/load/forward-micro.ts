import { fork } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import net from 'node:net'
import { Readable } from 'node:stream'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { forward } from '../../src/proxy/upstream/forward.ts'
import { UpstreamGroup, upstreamCounters } from '../../src/proxy/upstream/upstream.ts'

async function compare(rounds: number): Promise<void> {
  const child = fork(new URL(import.meta.url), { execArgv: [] })
  const [[port, h2Port]] = (await once(child, 'message')) as [[number, number]]
  const groups = { forward: groupAt(`http://127.0.0.1:${port}`), h2c: groupAt(`h2c://127.0.0.1:${h2Port}`) }
  const agent = new http.Agent({ keepAlive: true, maxSockets: LANES })
  const session = http2.connect(`http://127.0.0.1:${h2Port}`, {
    settings: { initialWindowSize: WINDOW_BYTES },
  })
  session.once('connect', () => session.setLocalWindowSize(64 * WINDOW_BYTES))
  for (const { name, path, bytes, count } of LOADS) {
    const forwards = (group: UpstreamGroup) => (done: () => void) =>
      forward(
        new Answered(path, bytes, done),
        group,
        { own: HEADERS, introduction: null },
        () => NONE,
        () => {},
      )
    const ways: Record<string, (done: () => void) => void> = {
      forward: forwards(groups.forward),
      'node:http': (done) => askNode(agent, port, path, bytes, done),
      'forward, h2c': forwards(groups.h2c),
      'node:http2': (done) => askNodeHttp2(session, path, bytes, done),
    }
    const samples = new Map<string, number[]>(Object.keys(ways).map((way) => [way, []]))
    for (let round = 0; round <= rounds; round++) {
      for (const [way, ask] of Object.entries(ways)) {
        const micros = await cpuMicros(count, ask)
        if (round > 0) samples.get(way)!.push(micros) // the first one warms up
      }
    }
    for (const [way, taken] of samples) {
      const quartile = taken.sort((a, b) => a - b)[Math.floor(taken.length / 4)]!
      process.stdout.write(
        `${name.padEnd(10)} ${way.padEnd(12)} ${quartile.toFixed(1)} µs of CPU a request\n`,
      )
    }
  }
  for (const group of Object.values(groups)) group.close()
  agent.destroy()
  session.destroy()
  child.disconnect()
}

/** Requests on all lanes until `count` are answered. */
async function cpuMicros(count: number, ask: (done: () => void) => void): Promise<number> {
  const before = process.cpuUsage()
  await new Promise<void>((resolve) => {
    let asked = 0
    let answered = 0
    const next = () => {
      if (asked++ < count) ask(done)
    }
    const done = () => {
      if (++answered === count) resolve()
      else next()
    }
    for (let lane = 0; lane < LANES; lane++) next()
  })
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

/** An exchange whose client takes everything at once. */
class Answered implements Exchange {
  readonly connection = null as unknown as Connection
  readonly head: Exchange['head']
  readonly authority = 'app.example.test'
  readonly body = NO_BODY
  readonly isBodyWhole = true
  readonly bodyLength = 0
  readonly expectsContinue = false
  readonly acceptsTrailers = false
  readonly trailers = NONE
  answered = false
  onGone: (() => void) | null = null
  onDrain: (() => void) | null = null
  readonly #done: () => void
  #bytesLeft: number

  constructor(target: string, bytes: number, done: () => void) {
    this.head = { method: 'GET', target, version: '11', rawHeaders: NONE, hasOddNames: false }
    this.#bytesLeft = bytes
    this.#done = done
  }

  inform(): void {}

  answer(): void {
    this.answered = true
  }

  write(chunk: Uint8Array): boolean {
    this.#bytesLeft -= chunk.length
    return true
  }

  end(): void {
    if (this.#bytesLeft !== 0) throw new Error('the answer is not whole')
    this.#done()
  }

  abort(): void {
    throw new Error('the answer broke off')
  }
}

function askNode(agent: http.Agent, port: number, path: string, bytes: number, done: () => void): void {
  const headers: Record<string, string> = {}
  for (let i = 0; i < HEADERS.length; i += 2) headers[HEADERS[i]!] = HEADERS[i + 1]!
  const request = http.request({ agent, host: '127.0.0.1', port, path, headers }, (response) => {
    let left = bytes
    response.on('data', (chunk: Buffer) => {
      left -= chunk.length
    })
    response.on('end', () => {
      if (left !== 0) throw new Error('the answer is not whole')
      done()
    })
  })
  request.end()
}

function askNodeHttp2(
  session: http2.ClientHttp2Session,
  path: string,
  bytes: number,
  done: () => void,
): void {
  const headers: Record<string, string> = { ':path': path, ':authority': HEADERS[1]! }
  for (let i = 2; i < HEADERS.length; i += 2) headers[HEADERS[i]!.toLowerCase()] = HEADERS[i + 1]!
  let left = bytes
  const stream = session.request(headers, { endStream: true })
  stream.on('data', (chunk: Buffer) => {
    left -= chunk.length
  })
  stream.on('end', () => {
    if (left !== 0) throw new Error('the answer is not whole')
    done()
  })
}

function groupAt(url: string): UpstreamGroup {
  const settings = {
    name: 'bench',
    urls: [url],
    connectTimeoutMs: 5000,
    headTimeoutMs: 60_000,
    idleTimeoutMs: 0,
    keepAliveMs: 60_000,
    connectionsMax: 256,
    connectionsIdleMax: LANES,
    retries: 1,
    host: 'preserve',
    tls: { verify: true, ca: null, serverName: null },
    health: null,
  } as const
  return new UpstreamGroup(settings, upstreamCounters())
}

/** Answers as fast as can be, whatever is asked but for its size. */
function serve(): void {
  const answers = LOADS.map(({ bytes }) => {
    const head = `HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: ${bytes}\r\n\r\n`
    return Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 'a')])
  })
  const server = net.createServer({ noDelay: true }, (socket) => {
    socket.on('data', (request) => socket.write(answers[request.includes('/big') ? 1 : 0]!))
    socket.on('error', () => {})
  })
  const overHttp2 = http2.createServer({ maxSessionMemory: 1_000 }).on('stream', (stream, headers) => {
    const isBig = headers[':path'] === '/big'
    stream.on('error', () => {})
    stream.respond({
      server: 'bench',
      'content-type': 'text/plain',
      'content-length': LOADS[isBig ? 1 : 0].bytes,
    })
    stream.end(isBig ? BIG : SMALL)
  })
  const portOf = (one: net.Server) => (one.address() as net.AddressInfo).port
  server.listen(0, '127.0.0.1', () => {
    overHttp2.listen(0, '127.0.0.1', () => process.send!([portOf(server), portOf(overHttp2)]))
  })
  process.on('disconnect', () => process.exit())
}

const LANES = 64
const LOADS = [
  { name: '200 bytes', path: '/small', bytes: 200, count: 30_000 },
  { name: '1 MiB', path: '/big', bytes: 1024 * 1024, count: 1000 },
] as const
const [SMALL, BIG] = LOADS.map(({ bytes }) => Buffer.alloc(bytes, 'a'))
/** Like those of our own client. */
const WINDOW_BYTES = 262_144
const NONE: readonly string[] = []
const NO_BODY = Readable.from([])
const HEADERS: readonly string[] = [
  ...['Host', 'app.example.test', 'User-Agent', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36'],
  ...['Accept', 'text/html,application/xhtml+xml', 'Accept-Encoding', 'gzip, deflate, br'],
  ...['Accept-Language', 'en-US,en;q=0.9', 'Cookie', 'session=abcdefghijklmnopqrstuvwxyz0123456789'],
  ...['X-Forwarded-For', '192.0.2.1', 'X-Forwarded-Proto', 'https', 'X-Agent-Verdict', 'human'],
  ...['X-JA4-Fingerprint', 't13d1516h2_8daaf6152771_e5627efa2ab1'],
]

/**
 * What forwarding costs by itself, without a client or TLS: our upstream side against node:http's with a keep-alive
 * agent and against a session of node:http2, taking turns, to a trivial upstream in a process of its own. Usage: node bench/load/forward-micro.ts [ROUNDS]
 */
if (process.send !== undefined) serve()
else await compare(Number(process.argv[2] ?? 5))
