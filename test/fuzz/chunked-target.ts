import { headerRules } from '../proxy/test-headers.ts'
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { Beat } from '../../src/proxy/connection/beat.ts'
import { receiveTrailers } from '../../src/proxy/connection/request-headers.ts'
import type { ResponseContext } from '../../src/proxy/upstream/response-head.ts'
import type { Dialer } from '../../src/proxy/upstream/upstream-dial.ts'
import { H1Connection, type H1Owner } from '../../src/proxy/upstream/upstream-h1.ts'
import { type UpstreamRequest, upstreamRequest } from '../../src/proxy/upstream/upstream-request.ts'
import type { Receiver } from '../../src/proxy/upstream/upstream-stream.ts'
import { MemoryExchange } from '../proxy/memory-exchange.ts'
import { cut } from './cut.ts'
import { readRequests } from './llhttp.ts'
import { answerTo } from './response-target.ts'

/**
 * A chunked body: of an answer it is read as llhttp reads it, and written anew as what it was; of a request it is what
 * llhttp has read, and goes on to the app as the same one.
 */
export function chunked(bytes: Buffer): void {
  const said = answerTo(ASKED, Buffer.concat([ANSWER, bytes]))
  const { messages } = readRequests(Buffer.concat([REQUEST, bytes]))
  const read = messages[0]!
  if (said.trailers !== null && read.isComplete) {
    assert.deepEqual([said.body, said.trailers], [read.body, read.trailers])
  }
  if (read.isComplete) passedOn(Buffer.from(read.body, 'latin1'), read.trailers)
}

/** As Forwarding hands it to its connection: in pieces, then the trailers that may go on. */
function passedOn(body: Buffer, rawTrailers: readonly string[]): void {
  const trailers = receiveTrailers(RULES, rawTrailers, () => {})
  const { connection, socket } = connect()
  for (const piece of cut(body)) connection.write(piece)
  connection.write(Buffer.alloc(0)) // no chunk, which would be the last one
  connection.end(trailers)
  connection.cancel()
  const { messages, isFault } = readRequests(Buffer.from(socket.text + NEXT, 'latin1'))
  assert.equal(isFault, false, 'llhttp refuses it')
  assert.deepEqual(
    messages.map(({ target, body, trailers }) => [target, body, trailers]),
    [
      ['/', body.toString('latin1'), trailers],
      ['/next', '', []],
    ],
  )
  const names = trailers.filter((_, i) => i % 2 === 0)
  assert.ok(!names.some((name) => FORBIDDEN.test(name)), String(names))
}

function connect(): { readonly connection: H1Connection; readonly socket: MemorySocket } {
  const socket = new MemorySocket()
  let connected = (): void => undefined
  const dialer = {
    address: { tls: null, authority: 'app.test' },
    dial(_onread: unknown, whenConnected: () => void): Socket {
      connected = whenConnected
      return socket as unknown as Socket
    },
  } as unknown as Dialer
  const connection = new H1Connection({ ...OWNER, dialer }, RECEIVER, Number.POSITIVE_INFINITY)
  connected()
  return { connection, socket }
}

/** Takes all at once. */
class MemorySocket extends EventEmitter {
  readonly writable = true
  readonly writableLength = 0
  text = ''

  write(chunk: string | Uint8Array): boolean {
    this.text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1')
    return true
  }
  cork(): void {}
  uncork(): void {}
  destroy(): void {}
}

export function chunkedSeeds(): Buffer[] {
  const bodies = [
    '0\r\n\r\n',
    '3\r\nabc\r\n0\r\n\r\n',
    '0a\r\n0123456789\r\n00\r\nA: 1\r\nB:\t2 \r\n\r\n',
    '1;a;b=c;d="e;\\"f"\r\nx\r\n2 ; g\r\nyz\r\n0;h\r\n\r\n',
    'F\r\n0\r\nA: 1\r\n\r\nxxxx\r\n0\r\nContent-Length: 5\r\nX-Agent-Verdict: human\r\n\r\n',
    '3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\nHost: b\r\nx_forwarded_for: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n',
    '3\nabc\n0\n\n',
    '000000000003\r\nabc\r\n0\r\n\r\n',
  ]
  return bodies.map((body) => Buffer.from(body, 'latin1'))
}

const ASKED: ResponseContext = { method: 'GET', acceptsTrailers: true }
const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
const REQUEST = Buffer.from('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
const NEXT = 'GET /next HTTP/1.1\r\nHost: a\r\n\r\n'
const FORBIDDEN =
  /^(?:content-length|transfer-encoding|host|connection|trailer|cookie|authorization|forwarded|x[-_](?:agent|forwarded|ja4|http2)(?:[-_].*)?)$/i
const UPSTREAM_REQUEST: UpstreamRequest = upstreamRequest(
  new MemoryExchange({ method: 'POST', bodyLength: null }),
  { own: ['Host', 'app.test'], introduction: null },
)!
const RECEIVER: Receiver = {
  request: UPSTREAM_REQUEST,
  isBodyWhole: false,
  opened() {},
  writable() {},
  informed() {},
  answered() {},
  received: () => true,
  completed() {},
  failed() {},
}
const OWNER: Omit<H1Owner, 'dialer'> = {
  beat: new Beat(),
  times: { connectTimeoutMs: 0, headTimeoutMs: 0, idleTimeoutMs: 0, keepAliveMs: 0 },
  ownHost: null,
  released() {},
  closed() {},
}
const RULES = headerRules()
