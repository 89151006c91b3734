import { FRAME_HEADER_BYTES } from '../../wire/h2/frame.ts'
import type { HpackEncoder } from '../../wire/h2/hpack-encoder.ts'
import { NameLook } from '../../wire/header-name.ts'
import { isConnectionField } from '../http/h2/answer-fields.ts'
import type { Exchange } from '../connection/exchange.ts'
import { areFieldLines, fieldLines, isToken } from '../connection/field-syntax.ts'
import { type AppHeaders, listed } from '../connection/app-headers.ts'
import { HOP_BY_HOP } from '../connection/header-rules.ts'

/**
 * A request for an upstream. It has been checked: no part of it can be read as framing or as a second
 * request.
 */
export interface UpstreamRequest {
  readonly method: string
  /** In origin form, or `*`. */
  readonly target: string
  readonly headers: AppHeaders
  /** `headers` as HTTP/1 lines. */
  readonly lines: string
  /** The index of the Host field in the header list. -1 if absent. */
  readonly hostAt: number
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers: boolean
  /** Whether sending it twice has the same effect as once (RFC 9110 §9.2.2). */
  readonly isIdempotent: boolean
  /** Names in lower case. See ReceivedHead. */
  readonly neverIndexed: readonly string[]
}

/** `null` if a part of the request is invalid and could change its meaning. */
export function upstreamRequest(exchange: Exchange, headers: AppHeaders): UpstreamRequest | null {
  const { method } = exchange.head
  const target = originForm(method, exchange.head.target)
  if (target === null || method === 'CONNECT' || !isToken(method)) return null
  const { own, introduction } = headers
  const ownLines = fieldLines(own)
  if (!areFieldLines(ownLines, own.length / 2)) return null
  const introduced = introduction === null ? '' : introduction.lines
  if (introduced === null) return null
  let hostAt = -1
  for (let i = 0; i < own.length; i += 2) {
    const name = own[i]!
    if (!FRAMING.mayHave(name)) continue
    const lower = name.toLowerCase()
    if (HOP_BY_HOP.has(lower)) return null // the connection writes the framing itself
    if (lower !== 'host') continue
    if (hostAt !== -1) return null
    hostAt = i
  }
  return {
    method,
    target,
    headers,
    lines: ownLines + introduced,
    hostAt,
    bodyLength: exchange.bodyLength,
    expectsContinue: exchange.expectsContinue && exchange.bodyLength !== 0,
    acceptsTrailers: exchange.acceptsTrailers,
    isIdempotent: IDEMPOTENT.has(method),
    neverIndexed: exchange.head.neverIndexed ?? NONE,
  }
}

/** The HTTP/1.1 head as sent. `ownHost`, if set, replaces the client's host. */
export function requestText(request: UpstreamRequest, authority: string, ownHost: string | null): string {
  const { headers, hostAt, bodyLength } = request
  let text = `${request.method} ${request.target} HTTP/1.1\r\n`
  // A request without Host would be rejected. By custom it is the first field (RFC 9110 §7.2).
  if (hostAt === -1) text += `Host: ${authority}\r\n`
  text +=
    hostAt === -1 || ownHost === null ? request.lines : fieldLines(listed(headers).with(hostAt + 1, ownHost))
  if (bodyLength === null) text += 'Transfer-Encoding: chunked\r\n'
  else if (bodyLength > 0 || EXPECTING_A_BODY.has(request.method)) text += `Content-Length: ${bodyLength}\r\n`
  return request.expectsContinue ? `${text}Expect: 100-continue\r\n\r\n` : `${text}\r\n`
}

/** The same for HTTP/2: pseudo-headers first, names in lower case (RFC 9113 §8.2). */
export function requestList(
  request: UpstreamRequest,
  scheme: string,
  authority: string,
  ownHost: string | null,
): string[] {
  const { hostAt, bodyLength } = request
  const headers = listed(request.headers)
  const host = hostAt === -1 ? authority : (ownHost ?? headers[hostAt + 1]!)
  const pseudo = [':method', request.method, ':scheme', scheme, ':authority', host, ':path', request.target]
  const list: string[] = pseudo
  for (let i = 0; i < headers.length; i += 2) {
    if (i !== hostAt) list.push(headers[i]!.toLowerCase(), headers[i + 1]!)
  }
  const hasLength = bodyLength !== null && (bodyLength > 0 || EXPECTING_A_BODY.has(request.method))
  if (hasLength) list.push('content-length', String(bodyLength))
  if (request.expectsContinue) list.push('expect', '100-continue')
  return list
}

/** Encodes what `requestList` returns, without fields of the connection. */
export function encodeRequest(
  encoder: HpackEncoder,
  list: readonly string[],
  neverIndexed: readonly string[],
): void {
  encoder.begin(FRAME_HEADER_BYTES)
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i]!
    const value = list[i + 1]!
    if (isConnectionField(name) || (name === 'te' && value.toLowerCase() !== 'trailers')) continue
    if (neverIndexed.length > 0 && neverIndexed.includes(name)) encoder.neverIndexed(name, value)
    else encoder.field(name, value)
  }
}

/**
 * The app gets only the path, whatever form the client sent (RFC 9112 §3.2.1). A fragment is invalid in a
 * target, and servers differ in where they cut it off.
 */
function originForm(method: string, target: string): string | null {
  if (!TARGET.test(target)) return null
  if (target.charCodeAt(0) === SLASH) return target
  if (target === '*') return method === 'OPTIONS' ? target : null
  const absolute = ABSOLUTE.exec(target)
  if (absolute === null) return null
  const rest = target.slice(absolute[0].length)
  if (rest === '') return method === 'OPTIONS' ? '*' : '/'
  return rest.charCodeAt(0) === SLASH ? rest : `/${rest}`
}

const NONE: readonly string[] = []
const SLASH = 0x2f
/** A quick filter for framing fields and Host. */
const FRAMING = new NameLook([...HOP_BY_HOP, 'host'])
const TARGET = /^[\x21\x22\x24-\x7e\x80-\xff]+$/
const ABSOLUTE = /^https?:\/\/[^/?]+/i
const IDEMPOTENT: ReadonlySet<string> = new Set(['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE'])
/** Methods that imply a body and need a length even without one (RFC 9110 §8.6). */
const EXPECTING_A_BODY: ReadonlySet<string> = new Set(['PATCH', 'POST', 'PUT'])
