import assert from 'node:assert/strict'
import { receiveTrailers } from '../../src/proxy/connection/request-headers.ts'
import { headerRules } from './test-headers.ts'
import { once } from 'node:events'
import net from 'node:net'
import type { Readable } from 'node:stream'
import { type ForwardOutcome, forward } from '../../src/proxy/upstream/forward.ts'
import { UpstreamGroup, type UpstreamSettings, upstreamCounters } from '../../src/proxy/upstream/upstream.ts'
import { MemoryExchange, type MemoryRequest } from './memory-exchange.ts'

export const HEADERS: readonly string[] = ['Host', 'app.example.test', 'User-Agent', 'test']

const STAYED_MS = 60_000

/** A server that says what the test wants, and counts. */
export interface Upstream {
  readonly url: string
  readonly port: number
  /** Open now. */
  readonly sockets: Set<net.Socket>
  accepted: number
  /** Stops it, once every connection has closed by itself. One that stays is a failure, and is closed. */
  settled(): Promise<void>
}

/** `serve` gets each connection, and how many came before it. */
export async function upstream(serve: (socket: net.Socket, index: number) => void): Promise<Upstream> {
  const server = net.createServer({ noDelay: true }, (socket) => {
    found.sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      found.sockets.delete(socket)
      server.emit('left')
    })
    serve(socket, found.accepted++)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  let stayed = 0
  const found: Upstream = {
    url: `http://127.0.0.1:${port}`,
    port,
    sockets: new Set(),
    accepted: 0,
    settled: async () => {
      const timer = setTimeout(() => {
        for (const socket of found.sockets) {
          socket.destroy()
          stayed++
        }
      }, STAYED_MS)
      while (found.sockets.size > 0) await once(server, 'left')
      clearTimeout(timer)
      server.close()
      await once(server, 'close')
      assert.equal(stayed, 0, 'connections that did not close by themselves')
    },
  }
  return found
}

/** Answers every request that ends with its head with the same bytes. */
export function answering(text: string): (socket: net.Socket) => void {
  return (socket) => eachHead(socket, () => socket.write(text, 'latin1'))
}

/** Calls back with each request's head; bodies are the caller's to tell apart. */
export function eachHead(socket: net.Socket, came: (head: string, index: number) => void): void {
  let text = ''
  let index = 0
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, end + 4)
      text = text.slice(end + 4)
      came(head, index++)
    }
  })
}

export function settingsFor(
  urls: readonly string[],
  changes: Partial<UpstreamSettings> = {},
): UpstreamSettings {
  return {
    name: 'default',
    urls,
    connectTimeoutMs: 5000,
    headTimeoutMs: 5000,
    idleTimeoutMs: 0,
    keepAliveMs: 60_000,
    connectionsMax: 256,
    connectionsIdleMax: 64,
    retries: 1,
    host: 'preserve',
    tls: { verify: true, ca: null, serverName: null },
    health: null,
    ...changes,
  }
}

export function groupOf(urls: readonly string[], changes: Partial<UpstreamSettings> = {}): UpstreamGroup {
  return new UpstreamGroup(settingsFor(urls, changes), upstreamCounters())
}

export interface Asking {
  readonly exchange: MemoryExchange
  readonly outcome: Promise<ForwardOutcome>
  /** Outcomes so far: never more than one. */
  readonly outcomes: ForwardOutcome[]
}

export function ask(
  group: UpstreamGroup,
  request: MemoryRequest = {},
  headers: readonly string[] = HEADERS,
): Asking {
  const exchange = new MemoryExchange(request)
  const outcomes: ForwardOutcome[] = []
  const outcome = new Promise<ForwardOutcome>((resolve) => {
    forward(exchange, group, { own: headers, introduction: null }, trailersForApp, (outcome) => {
      outcomes.push(outcome)
      resolve(outcome)
    })
  })
  return { exchange, outcome, outcomes }
}

/** Checks that the contract was kept, and that nothing is left behind. */
export function assertClean({ exchange, outcomes }: Asking): void {
  assert.deepEqual(exchange.wrongs, [])
  assert.equal(outcomes.length, 1)
  assert.equal(exchange.onGone, null)
  assert.equal(exchange.onDrain, null)
  assert.equal((exchange.body as Readable).listenerCount('data'), 0)
  const kind = outcomes[0]!.kind
  if (kind === 'answered') assert.ok(exchange.endTrailers !== null && !exchange.isAborted)
  if (kind === 'broken-off') assert.ok(exchange.isAborted)
  if (kind === 'failed') assert.ok(!exchange.answered && !exchange.isAborted)
}

/** The answer to a GET, which must be one. */
export async function answerOf(group: UpstreamGroup, request: MemoryRequest = {}): Promise<MemoryExchange> {
  const asking = ask(group, request)
  const outcome = await asking.outcome
  assert.equal(outcome.kind, 'answered', JSON.stringify(outcome))
  assertClean(asking)
  return asking.exchange
}

/** Closes the group and waits until the upstreams have seen the last connection go. */
export async function closed(group: UpstreamGroup, ...upstreams: readonly Upstream[]): Promise<void> {
  group.close()
  for (const target of group.status) {
    assert.deepEqual([target.connections, target.idle, target.waiting], [0, 0, 0])
  }
  for (const one of upstreams) await one.settled()
}

const trailersForApp = (trailers: readonly string[]) => receiveTrailers(headerRules(), trailers, () => {})
