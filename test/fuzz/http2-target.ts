import type { ReceivedHead } from '../../src/proxy/connection/received-head.ts'
import { headerRules } from '../proxy/test-headers.ts'
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import type { Print } from '../../src/fingerprint/print.ts'
import { framedHeaders } from '../../src/proxy/http/answer-framing.ts'
import { answerHead, interimHead } from '../../src/proxy/http/answer-head.ts'
import { Beat } from '../../src/proxy/connection/beat.ts'
import type { ClientConnection } from '../../src/proxy/connection/connection.ts'
import { FieldRules } from '../../src/proxy/http/h2/field-rules.ts'
import { Inflow } from '../../src/proxy/http/h2/inflow.ts'
import { Outflow } from '../../src/proxy/http/h2/outflow.ts'
import { Http2Exchange, type ServedStream } from '../../src/proxy/http/exchange-h2.ts'
import { fieldLines, trailersToPass } from '../../src/proxy/connection/field-syntax.ts'
import { type AppHeaders, listed } from '../../src/proxy/connection/app-headers.ts'
import { introduce } from '../../src/proxy/request/introduction.ts'
import { checkHttp2, type RequestFacts } from '../../src/proxy/connection/request-check.ts'
import { receiveHeaders, receiveTrailers } from '../../src/proxy/connection/request-headers.ts'
import { H2Stream, type H2StreamOwner } from '../../src/proxy/upstream/upstream-h2-stream.ts'
import { requestList, requestText, upstreamRequest } from '../../src/proxy/upstream/upstream-request.ts'
import type { Receiver } from '../../src/proxy/upstream/upstream-stream.ts'
import { HpackDecoder } from '../../src/wire/h2/hpack-decoder.ts'
import { framesOf } from '../proxy/http2-frames.ts'
import { MemoryExchange } from '../proxy/memory-exchange.ts'
import { readRequests, readResponses } from './llhttp.ts'

/**
 * The headers of a stream, as bad as they like, beyond what nghttp2 lets through: as a request they go on to an app of
 * HTTP/1 or HTTP/2, as an answer of one to a client of either, and nothing in them is ever taken for framing, for another
 * message, for a field of the connection, or for what only we say.
 *
 * A byte of flags, then fields: a name, `FIELD`, a value, `NAME`.
 */
export function http2(bytes: Buffer): void {
  const flags = bytes[0] ?? 0
  const hasEnded = (flags & 1) !== 0
  // In UTF-8 there are characters that are more than a byte, and would be cut to one on the wire.
  const text = bytes.toString((flags & 2) !== 0 ? 'utf8' : 'latin1', 1)
  const raw = text.split(NAME).flatMap((field) => {
    const [name = '', value = ''] = field.split(FIELD, 2)
    return [name, value]
  })
  request(raw, hasEnded)
  trailers(raw)
  answer(raw, hasEnded)
}

function request(raw: readonly string[], hasEnded: boolean): void {
  const facts = checkHttp2(raw, hasEnded, LIMITS)
  if (!facts.isGood) return
  const method = raw[raw.lastIndexOf(':method') + 1]!
  const { target, hasOddNames } = facts
  const head: ReceivedHead = { method, target, version: '20', rawHeaders: raw, hasOddNames }
  const relaying = { isTrusted: true, isJa4Hop: false }
  const { kept, hop } = receiveHeaders(RULES, relaying, head, facts.authority, true)
  const relayed = { hop, passesForwarded: true, path: ['192.0.2.1', '10.0.0.1'] }
  assert.ok(kept.length <= raw.length + 2)
  for (const trusted of [null, relayed]) {
    const introduction = introduce(
      CONNECTION,
      facts.authority,
      trusted,
      { print: PRINT, verdict: UNKNOWN },
      null,
    )
    const sending: AppHeaders = { own: kept, introduction }
    const exchange = Object.assign(new MemoryExchange(), { head, bodyLength: facts.bodyLength })
    const sent = upstreamRequest(Object.assign(exchange, { expectsContinue: facts.expectsContinue }), sending)
    if (sent === null) continue
    names(kept)
    const headers = listed(sending)
    asHttp1(requestText(sent, 'app.test', null), method, facts, headers)
    asHttp2(requestList(sent, 'http', 'app.test', null), method, facts)
  }
}

/** Of what the client has sent nothing is of the connection, and nothing of ours, in any spelling. */
function names(own: readonly string[]): void {
  for (let i = 0; i < own.length; i += 2) {
    const plain = own[i]!.toLowerCase().replaceAll('_', '-')
    assert.ok(!OURS.test(plain) && !OF_THE_CONNECTION.has(plain), own[i])
  }
}

/** As llhttp reads it: one request, and behind it the next one. */
function asHttp1(text: string, method: string, facts: RequestFacts, headers: readonly string[]): void {
  oneByteEach(text)
  const { bodyLength, target } = facts
  const body = 'GET / HTTP/1.1\r\n\r\n'
  const length = bodyLength === null ? body.length : Math.min(bodyLength, BODY_BYTES_MAX)
  const isShort = bodyLength === null || bodyLength <= BODY_BYTES_MAX
  const written =
    bodyLength === null ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : 'x'.repeat(length)
  const all = isShort ? text + written + NEXT : text
  const { messages, isFault } = readRequests(Buffer.from(all, 'latin1'))
  // llhttp knows some methods; servers with others must not be asked for two things either.
  if (isFault && messages.length === 0 && !METHODS.has(method)) return lines(text, headers)
  assert.equal(isFault, false, 'llhttp refuses it')
  const [first, next, ...more] = messages
  assert.deepEqual([first!.method, first!.target, first!.isUpgrade], [method, target, false])
  assert.deepEqual(first!.rawHeaders.slice(0, headers.length), headers.map(trimmed))
  assert.ok(first!.rawHeaders.slice(headers.length).every((name, i) => i % 2 === 1 || FRAMING.has(name)))
  if (isShort) assert.deepEqual([first!.body.length, next?.target, more.length], [length, '/next', 0])
}

function lines(text: string, headers: readonly string[]): void {
  const count = text.split('\r\n').length - headers.length / 2
  assert.ok(count >= 3 && count <= 5, text)
}

function asHttp2(list: readonly string[], method: string, facts: RequestFacts): void {
  assert.deepEqual(list.slice(0, 4), [':method', method, ':scheme', 'http'])
  assert.deepEqual([list[4], list[6], list[7]], [':authority', ':path', facts.target])
  http2Fields(list.slice(8))
  oneByteEach(list.join(''))
}

function answer(raw: readonly string[], hasEnded: boolean): void {
  const receiver = new Answered()
  const { stream } = streamTo(receiver)
  const regular = raw.flatMap((name, i) => (i % 2 === 0 && !name.startsWith(':') ? [name, raw[i + 1]!] : []))
  const blocks = [[':status', '103', ...regular], raw[0] === ':status' ? raw : [':status', '200', ...raw]]
  for (const [index, fields] of blocks.entries()) {
    if (new FieldRules().answer(fields) === null) stream.cameHeaders(fields, hasEnded && index === 1, [])
    else if (index === 1) stream.malformed()
  }
  if (stream.hasHead) {
    if (FieldRules.trailers(raw) === null) stream.cameHeaders(raw, true, [])
    else stream.malformed()
  }
  for (const { status, headers, bodyLength } of receiver.answers) {
    toHttp1(status, headers, bodyLength)
    toHttp2(status, headers, bodyLength, trailersToPass(receiver.trailers ?? []))
  }
}

/** Those of a request, to an app of either. */
function trailers(raw: readonly string[]): void {
  const passed = receiveTrailers(RULES, raw, () => {})
  names(passed)
  const { messages, isFault } = readRequests(Buffer.from(`${CHUNKED}${fieldLines(passed)}\r\n`, 'latin1'))
  assert.deepEqual([isFault, messages[0]!.trailers], [false, passed.map(trimmed)])
  const { stream, sent } = streamTo(new Answered())
  stream.end(passed)
  const [frame] = framesOf(sent())
  const trailed: string[] = []
  // Without trailers it is DATA that ends the stream.
  if (frame!.type === 1) assert.equal(new HpackDecoder().decode(frame!.payload, trailed), 'whole')
  fieldsSent(trailed, passed)
}

/** A stream of a connection that keeps what is sent. */
function streamTo(receiver: Receiver): { stream: H2Stream; sent(): Buffer } {
  const chunks: Buffer[] = []
  const socket = {
    writable: true,
    writableLength: 0,
    write: (bytes: Buffer) => chunks.push(Buffer.from(bytes)),
  }
  const outflow = new Outflow(socket as unknown as Socket, false)
  const inflow = new Inflow(outflow, { stream: 1000, connection: 1000 })
  const stream = new H2Stream(1, { ...OWNER, outflow, inflow }, receiver, 1000, false)
  const sent = () => {
    outflow.flush()
    return Buffer.concat(chunks)
  }
  return { stream, sent }
}

/** As often, with the same values, as they were given. */
function fieldsSent(trailed: readonly string[], given: readonly string[]): void {
  assert.equal(trailed.length, given.length)
  http2Fields(trailed)
  oneByteEach(trailed.join(''))
  const values = (list: readonly string[]) => list.filter((_, i) => i % 2 === 1).toSorted()
  assert.deepEqual(values(trailed), values(given))
}

function toHttp1(status: number, headers: readonly string[], bodyLength: number | null): void {
  const head = { method: 'GET', target: '/', version: '11', rawHeaders: [] } as const
  const framing = { isChunked: bodyLength === null, keptS: 5 }
  const list = framedHeaders(head, status, headers, bodyLength)
  const text =
    status < 200
      ? interimHead(status, headers)
      : answerHead(status, null, list, status < 200 ? LAST : framing)
  if (text === null) return
  oneByteEach(text)
  const { messages, isFault } = readResponses(Buffer.from(text, 'latin1'), () => true)
  const sent = status < 200 ? headers : list
  // A length, and another one, is for the client to refuse; nghttp2 lets none through.
  if (isFault && sent.filter((name) => /^content-length$/i.test(name)).length > 0) return
  assert.deepEqual([isFault, messages.length], [false, 1])
  assert.deepEqual(messages[0]!.rawHeaders.slice(0, sent.length), sent.map(trimmed))
}

function toHttp2(
  status: number,
  headers: readonly string[],
  bodyLength: number | null,
  trailers: readonly string[],
): void {
  const stream = new MemoryStream()
  const facts = { authority: 'a', bodyLength: 0, expectsContinue: false } as RequestFacts
  const head: ReceivedHead = {
    ...{ method: 'GET', target: '/', version: '20', rawHeaders: [], hasOddNames: false },
  }
  const served = stream as unknown as ServedStream
  const exchange = new Http2Exchange(CONNECTION as ClientConnection, head, facts, served)
  if (status < 200) exchange.inform(status, headers)
  else exchange.answer(status, headers, bodyLength)
  if (bodyLength === null) {
    exchange.end(trailers)
    exchange.sendTrailers()
    if (stream.responded.length > 0) fieldsSent(stream.trailed, trailers)
  } else if (bodyLength !== 0) exchange.send()
  for (const list of stream.responded) {
    assert.deepEqual(list.slice(0, 2), [':status', status])
    const fields = list.slice(2).map(String)
    http2Fields(fields)
    oneByteEach(fields.join(''))
  }
}

/** RFC 9113 §8.2: lower case, none of the connection; and pseudo-headers are over. */
function http2Fields(fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i]!
    assert.match(name, LOWER_CASE_TOKEN)
    assert.ok(!OF_THE_CONNECTION.has(name) || name === 'content-length' || name === 'expect', name)
  }
}

function oneByteEach(text: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be there
  assert.doesNotMatch(text.replaceAll('\r\n', ''), /[\0-\x08\n-\x1f\x7f\u0100-\uffff]/)
}

/** As HTTP/1 has values: blanks around them mean nothing. */
function trimmed(text: string): string {
  return text.replace(/^[\t ]+|[\t ]+$/g, '')
}

/** Keeps what was said to it. */
class Answered implements Receiver {
  readonly request = REQUEST
  readonly isBodyWhole = true
  readonly answers: {
    readonly status: number
    readonly headers: readonly string[]
    readonly bodyLength: number | null
  }[] = []
  trailers: readonly string[] | null = null

  opened(): void {}
  writable(): void {}
  informed(status: number, headers: readonly string[]): void {
    this.answers.push({ status, headers, bodyLength: 0 })
  }
  answered(
    status: number,
    _reason: string | null,
    headers: readonly string[],
    bodyLength: number | null,
  ): void {
    this.answers.push({ status, headers, bodyLength })
  }
  received(): boolean {
    return true
  }
  completed(trailers: readonly string[]): void {
    this.trailers = trailers
  }
  failed(): void {}
}

/** Of either side; it goes nowhere. */
class MemoryStream extends EventEmitter {
  readonly closed = false
  readonly destroyed = false
  readonly writableFinished = true
  readonly readableEnded = true
  readonly writableLength = 0
  readonly rstCode = 0
  readonly responded: (readonly (string | number)[])[] = []
  trailed: readonly string[] = []

  respond(list: readonly (string | number)[]): void {
    this.responded.push(list)
  }
  additionalHeaders({ ':status': status, ...fields }: Fields): void {
    this.responded.push([':status', status as number, ...listOf(fields)])
  }
  sendTrailers(fields: Fields): void {
    this.trailed = listOf(fields)
  }
  end(): void {}
  close(): void {}
  destroy(): void {}
}

/** As Node takes them. */
type Fields = Readonly<Record<string, string | number | readonly string[]>>

function listOf(fields: Fields): string[] {
  return Object.entries(fields).flatMap(([name, values]) =>
    [values].flat().flatMap((value) => [name, String(value)]),
  )
}

export function http2Seeds(): Buffer[] {
  const requests = [
    [],
    ['accept', '*/*', 'user-agent', 'curl/8', 'cookie', 'a=b', 'cookie', 'c=d', 'te', 'trailers'],
    ['content-length', '3', 'expect', '100-continue', 'host', 'a.test'],
    ['connection', 'x-a', 'transfer-encoding', 'chunked', 'x-a', '1', 'upgrade', 'h2c', 'keep-alive', '1'],
    ['x-agent-verdict', 'human', 'X_Agent_Name', 'x', 'x-forwarded-for', '1.2.3.4', 'forwarded', 'for=x'],
    ['x-ja4-fingerprint', 't', 'proxy-connection', 'close', 'http2-settings', 'AA', 'trailer', 'x'],
  ].map((more) => [
    ...[':method', 'POST', ':scheme', 'https', ':authority', 'a.test', ':path', '/a?b'],
    ...more,
  ])
  const answers = [
    [':status', '200', 'content-length', '3', 'date', 'x', 'trailer', 'a'],
    [':status', '200', 'grpc-status', '0', 'constructor', 'x', '__proto__', 'y'],
    [':status', '204', 'content-length', '0', 'te', 'x', 'upgrade', 'y', 'connection', 'close'],
    [':status', '599', 'set-cookie', 'a=b', 'set-cookie', '\xe9', 'a', '\x01', 'X-A', '1'],
  ]
  const hostile = [
    [':path', '/ HTTP/1.1\r\nA: b\r\n\r\n'],
    ['a', 'b\0c'],
    ['a\r\nb', 'c'],
    ['transfer-encoding:', 'chunked'],
    ['a', '\u010a\u010d'],
  ]
  return [0, 1, 2].flatMap((flags) =>
    [...requests, ...answers, ...hostile.map((more) => [...requests[0]!, ...more])].map((list) =>
      written(list, flags),
    ),
  )
}

function written(list: readonly string[], flags: number): Buffer {
  const fields = Array.from({ length: list.length / 2 }, (_, i) => list[2 * i]! + FIELD + list[2 * i + 1]!)
  return Buffer.concat([
    Buffer.of(flags),
    Buffer.from(fields.join(NAME), (flags & 2) !== 0 ? 'utf8' : 'latin1'),
  ])
}

const FIELD = '\x1e'
const NAME = '\x1f'
const LIMITS = { requestLineBytesMax: 16_384, headerBytesMax: 65_536, headerCountMax: 200 }
const BODY_BYTES_MAX = 1000
const CHUNKED = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n'
const NEXT = 'GET /next HTTP/1.1\r\nHost: a\r\n\r\n'
const LAST = { isChunked: false, keptS: null }
const LOWER_CASE_TOKEN = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
const OURS =
  /^(?:forwarded|x-agent-.*|x-forwarded-(?:for|proto|host|port)|x-real-ip|x-ja4[hs]?-fingerprint|x-ja4-source|x-http2-fingerprint)$/
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
const FRAMING: ReadonlySet<string> = new Set(['Transfer-Encoding', 'Content-Length', 'Expect'])
const OF_THE_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'expect', 'http2-settings', 'keep-alive', 'proxy-connection'],
  ...['transfer-encoding', 'upgrade'],
])
const { connection: CONNECTION } = new MemoryExchange()
const PRINT: Print = { connection: CONNECTION.print, ja4h: null }
const REQUEST = upstreamRequest(new MemoryExchange({ acceptsTrailers: true }), {
  own: ['Host', 'app.test'],
  introduction: null,
})!
const OWNER: Omit<H2StreamOwner, 'outflow' | 'inflow'> = {
  beat: new Beat(),
  times: { connectTimeoutMs: 0, headTimeoutMs: 0, idleTimeoutMs: 0, keepAliveMs: 0 },
  isClosed: false,
  lastStream: 0,
  over() {},
  wornOut() {},
}
const RULES = headerRules()
