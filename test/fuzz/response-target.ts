import assert from 'node:assert/strict'
import { framedHeaders } from '../../src/proxy/http/answer-framing.ts'
import { answerHead, interimHead } from '../../src/proxy/http/answer-head.ts'
import { fieldLines, trailersToPass } from '../../src/proxy/connection/field-syntax.ts'
import type { ResponseContext } from '../../src/proxy/upstream/response-head.ts'
import { HEAD_BYTES_MAX, TRAILER_BYTES_MAX } from '../../src/proxy/upstream/response-reader.ts'
import { readResponse, type Said } from '../proxy/response-recorder.ts'
import { cut } from './cut.ts'
import { readResponses } from './llhttp.ts'

/**
 * What an upstream answers is read the same however it is cut; llhttp, which is strict, reads nothing else in what is taken;
 * and what is written of it to the client is one answer, the same one.
 */
export function response(bytes: Buffer): void {
  for (const asked of [GET, HEAD]) answerTo(asked, bytes)
}

/** Also says what was read. */
export function answerTo(asked: ResponseContext, bytes: Buffer): Said {
  const said = readResponse([bytes], asked)
  assert.deepEqual(comparable(readResponse(cut(bytes), asked)), comparable(said))
  if (said.trailers === null) return said
  assert.ok(said.head!.headers.join('').length <= HEAD_BYTES_MAX)
  assert.ok(said.trailers.join('').length <= TRAILER_BYTES_MAX)
  sameByLlhttp(asked, bytes, said)
  sameToClient(asked, said)
  return said
}

/** Whether more came in the same piece is another thing when it is cut. */
function comparable({ isSurplus: _, ...said }: Said): Omit<Said, 'isSurplus'> {
  return said
}

/** It may refuse what is taken here, such as a length that is said twice. */
function sameByLlhttp(asked: ResponseContext, bytes: Buffer, said: Said): void {
  const { messages, isFault } = readResponses(bytes, (status) => status >= 200 && asked.method === 'HEAD')
  const at = said.informs.length
  const final = messages[at]
  if (final === undefined || (isFault && !final.isComplete)) return assert.ok(isFault, 'no answer for llhttp')
  const interim = messages.slice(0, at)
  assert.deepEqual(
    interim.map(({ status }) => status),
    said.informs.map(([status]) => status),
  )
  const { status, headers } = said.head!
  assert.deepEqual([final.status, final.body], [status, said.body])
  assert.deepEqual(final.trailers, said.trailers)
  isPartOf(headers, final.rawHeaders)
  for (const [index, [, fields]] of said.informs.entries()) isPartOf(fields, interim[index]!.rawHeaders)
}

/** Nothing came in between, and the order stays; a length is written anew. */
function isPartOf(part: readonly string[], whole: readonly string[]): void {
  let at = 0
  for (let i = 0; i < part.length; i += 2) {
    while (at < whole.length && !isSame(part, i, whole, at)) at += 2
    assert.ok(at < whole.length, `${part[i]} was not sent`)
    at += 2
  }
}

function isSame(part: readonly string[], i: number, whole: readonly string[], at: number): boolean {
  if (part[i] !== whole[at]) return false
  if (part[i]!.toLowerCase() === 'content-length')
    return Number(part[i + 1]) === Number.parseInt(whole[at + 1]!, 10)
  return part[i + 1] === whole[at + 1]
}

function sameToClient(asked: ResponseContext, said: Said): void {
  const head = { method: asked.method, target: '/', version: '11', rawHeaders: [] } as const
  const { status, reason, headers, body, length } = said.head!
  const bodyLength = body === 'none' ? 0 : body === 'length' ? length : null
  const list = framedHeaders(head, status, headers, bodyLength)
  const isChunked = bodyLength === null
  const text = answerHead(status, reason, list, { isChunked, keptS: 5 })
  assert.notEqual(text, null, 'what can be read can be written')
  const trailers = trailersToPass(said.trailers!)
  const interim = said.informs.map(([status, fields]) => interimHead(status, fields)!)
  const written = isChunked ? `${chunk(said.body)}0\r\n${fieldLines(trailers)}\r\n` : said.body
  const all = Buffer.from(`${interim.join('')}${text}${written}${NEXT}`, 'latin1')
  const hasNoBody = (status: number) => status >= 200 && asked.method === 'HEAD'
  const { messages, isFault } = readResponses(all, hasNoBody)
  assert.equal(isFault, false, 'llhttp refuses it')
  assert.deepEqual(
    messages.map((message) => [message.status, message.body, message.trailers]),
    [
      ...said.informs.map(([status]) => [status, '', []]),
      [status, said.body, isChunked ? trailers : []],
      [299, '', []],
    ],
  )
  const sent = messages[said.informs.length]!.rawHeaders
  assert.deepEqual(sent.slice(0, list.length), list)
  const ours = sent.slice(list.length).filter((_, i) => i % 2 === 0)
  assert.ok(
    ours.every((name) => OURS.has(name)),
    String(ours),
  )
  const again = readResponse([all.subarray(0, all.length - NEXT.length)], asked)
  assert.deepEqual([again.fault, again.body, again.isSurplus], [null, said.body, false])
}

function chunk(body: string): string {
  return body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`
}

export function responseSeeds(): Buffer[] {
  const heads = [
    'HTTP/1.1 200 OK\r\n',
    'HTTP/1.0 200\r\n',
    'HTTP/1.1 204 No Content\r\n',
    'HTTP/1.1 304 x\r\n',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 \xe9\r\n',
  ]
  const rests = [
    'Content-Length: 3\r\n\r\nabc',
    'Content-Length: 3, 3\r\nX:\t y \r\n\r\nabcd',
    'content-length: 0\r\n\r\n',
    'Transfer-Encoding: chunked\r\nTrailer: A\r\n\r\n3;a="b"\r\nabc\r\n0\r\nA: 1\r\n\r\n',
    'Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5, max=9\r\nDate: x\r\n\r\nall of it',
    'Connection: keep-alive\r\nUpgrade: h2c\r\nTE: x\r\nProxy-Connection: y\r\nContent-Length: 1\r\n\r\nz',
  ]
  return heads.flatMap((head) => rests.map((rest) => Buffer.from(head + rest, 'latin1')))
}

const GET: ResponseContext = { method: 'GET', acceptsTrailers: true }
const HEAD: ResponseContext = { method: 'HEAD', acceptsTrailers: false }
const OURS: ReadonlySet<string> = new Set([
  'Date',
  'Connection',
  'Keep-Alive',
  'Transfer-Encoding',
  'Content-Length',
])
/** Where the answer is not one whole, this is not the next one. */
const NEXT = 'HTTP/1.1 299 Next\r\nContent-Length: 0\r\n\r\n'
