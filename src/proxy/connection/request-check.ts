import { isAuthority } from '../../wire/host.ts'
import { isMiscasedMethod, isRegisteredMethod } from '../../wire/methods.ts'
import { isPlainName } from '../../wire/header-name.ts'
import { ownText } from '../../wire/own-text.ts'
import type { HttpVersion } from '../../wire/request-head.ts'
import { isToken } from './field-syntax.ts'

/** The facts of a request head in which nothing is ambiguous. */
export interface RequestFacts {
  readonly isGood: true
  readonly authority: string | null
  /** In origin-form, or `*`. */
  readonly target: string
  /** 0: no body. `null`: a body of unknown length. */
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers: boolean
}

/** The same for HTTP/2, whose check looks at the names anyway. */
export interface Http2RequestFacts extends RequestFacts {
  /** GET for an extended CONNECT: so the app gets it. */
  readonly method: string
  /** As in ReceivedHead. */
  readonly hasOddNames: boolean
  /** An extended CONNECT: the client asks for a WebSocket (RFC 8441). */
  readonly isTunnel: boolean
}

/** A request that the proxy answers itself, at once, without forwarding it. */
export interface BadRequest {
  readonly isGood: false
  readonly status: 400 | 413 | 414 | 417 | 431 | 501 | 505
  /** A short code for the problem. */
  readonly code: string
}

export interface RequestLimits {
  readonly requestLineBytesMax: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
}

/**
 * Checks an HTTP/1 head beyond what the parser does: framing that two parsers could read differently (RFC
 * 9112 §6.3), an invalid or repeated Host, an invalid target (§3.2), and limits. `rawHeaders` are as sent.
 */
export function checkHttp1(
  method: string,
  url: string,
  version: HttpVersion | null,
  rawHeaders: readonly string[],
  limits: RequestLimits,
): RequestFacts | BadRequest {
  if (version !== '11' && version !== '10') return BAD.version
  if (url.length > limits.requestLineBytesMax) return BAD.longTarget
  if (rawHeaders.length > limits.headerCountMax * 2) return BAD.manyHeaders
  if (method === 'CONNECT') return BAD.connect
  let host: string | null = null
  let contentLength: string | null = null
  let transferEncoding: string | null = null
  let expect: string | null = null
  let acceptsTrailers = false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    switch (name.length) {
      case 2:
        if (isName(name, 'te')) acceptsTrailers ||= hasTrailers(value)
        break
      case 4:
        if (!isName(name, 'host')) break
        if (host !== null) return BAD.hosts
        host = value
        break
      case 6:
        if (isName(name, 'expect')) expect = expect === null ? value : `${expect},${value}`
        break
      case 14:
        if (!isName(name, 'content-length')) break
        if (contentLength !== null) return BAD.contentLength
        contentLength = value
        break
      case 17:
        if (!isName(name, 'transfer-encoding')) break
        if (transferEncoding !== null) return BAD.transferEncoding
        transferEncoding = value
    }
  }
  const isOld = version === '10'
  if (host === null && !isOld) return BAD.noHost
  if (host !== null && !isAuthority(host)) return BAD.host
  if (transferEncoding !== null) {
    if (contentLength !== null) return BAD.twoFramings
    if (isOld || transferEncoding.toLowerCase() !== 'chunked') return BAD.transferEncoding
  }
  const expectsContinue = expect !== null && !isOld && expect.toLowerCase() === '100-continue'
  if (expect !== null && !isOld && !expectsContinue) return BAD.expectation
  const bodyLength = transferEncoding !== null ? null : lengthOf(contentLength)
  if (bodyLength === -1) return BAD.contentLength
  return withTarget(method, {
    isGood: true,
    authority: host,
    target: url,
    bodyLength,
    expectsContinue,
    acceptsTrailers,
  })
}

/**
 * Checks an HTTP/2 head. nghttp2 has already checked that pseudo-headers come first and only once, that no
 * field belongs to the connection, that the body matches its Content-Length (RFC 9113 §8.2.2, §8.3.1), and that
 * only CONNECT has a `:protocol`.
 */
export function checkHttp2(
  rawHeaders: readonly string[],
  hasEnded: boolean,
  limits: RequestLimits,
): Http2RequestFacts | BadRequest {
  let method = ''
  let path = ''
  let protocol: string | null = null
  let authority: string | null = null
  let host: string | null = null
  let contentLength: string | null = null
  let expect: string | null = null
  let hasOddNames = false
  let counted = rawHeaders.length / 2
  let bytes = counted * FIELD_OVERHEAD
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!
    const value = rawHeaders[i + 1]!
    bytes += name.length + value.length
    if (isBlankEnded(value)) return MALFORMED_FIELD
    switch (name) {
      case ':method':
        method = value
        counted--
        break
      case ':path':
        path = value
        counted--
        break
      case ':authority':
        authority = value
        counted--
        break
      case ':protocol':
        protocol = value
        counted--
        break
      case ':scheme':
        if (value !== 'https' && value !== 'http') return BAD.scheme
        counted--
        break
      case 'cookie': // the app gets the pieces as one header
        counted--
        break
      case 'host':
        if (host !== null) return BAD.hosts
        host = value
        break
      case 'content-length':
        if (contentLength !== null) return BAD.contentLength
        contentLength = value
        break
      case 'expect':
        expect = expect === null ? value : `${expect},${value}`
        break
      default:
        if (isPlainName(name)) break
        // As a text line it would be another field. nghttp2 rejects such names.
        if (name.includes(':')) return BAD.name
        hasOddNames = true
    }
  }
  if (method === 'CONNECT') {
    if (protocol === null) return BAD.connect
    if (protocol.toLowerCase() !== 'websocket') return BAD.protocol
    // Its DATA is not a body (RFC 9110 §9.3.6). END_STREAM would leave the client without a side.
    if (contentLength !== null) return BAD.contentLength
    if (hasEnded) return BAD.ended
    method = 'GET'
  }
  if (path.charCodeAt(0) !== SLASH && path !== '*') return BAD.target
  if (path.length > limits.requestLineBytesMax) return BAD.longTarget
  if (counted > limits.headerCountMax) return BAD.manyHeaders
  // nghttp2 enforces our announced limit only after the client has acknowledged it.
  if (bytes > limits.headerBytesMax) return BAD.largeHeaders
  if (!isRegisteredMethod(method)) {
    if (!isToken(method)) return BAD.method
    if (isMiscasedMethod(method)) return BAD.methodCase
  }
  if (authority !== null && host !== null && authority.toLowerCase() !== host.toLowerCase()) return BAD.hosts
  const named = authority ?? host
  if (named === null) return BAD.noHost
  if (!isAuthority(named)) return BAD.host
  const expectsContinue = expect !== null && expect.toLowerCase() === '100-continue'
  if (expect !== null && !expectsContinue) return BAD.expectation
  const announced = contentLength === null && !hasEnded ? null : lengthOf(contentLength)
  if (announced === -1 || (hasEnded && announced !== null && announced > 0)) return BAD.contentLength
  const facts = withTarget(method, {
    isGood: true,
    authority: named,
    target: path,
    bodyLength: hasEnded ? 0 : announced,
    expectsContinue,
    acceptsTrailers: true,
  })
  if (!facts.isGood) return facts
  return {
    isGood: true,
    method,
    authority: facts.authority,
    target: facts.target,
    bodyLength: facts.bodyLength,
    expectsContinue,
    acceptsTrailers: true,
    hasOddNames,
    isTunnel: protocol !== null,
  }
}

/** Whether a value begins or ends with a blank, which is malformed in HTTP/2 (RFC 9113 §8.2.1). */
export function hasBlankEnds(rawHeaders: readonly string[]): boolean {
  for (let i = 1; i < rawHeaders.length; i += 2) if (isBlankEnded(rawHeaders[i]!)) return true
  return false
}

/** nghttp2 rejects all control characters except tab. */
function isBlankEnded(value: string): boolean {
  return value.charCodeAt(0) <= BLANK || value.charCodeAt(value.length - 1) <= BLANK
}

/** RFC 9112 §3.2. The host in a full URL takes precedence. Only the path is forwarded. */
function withTarget(method: string, facts: RequestFacts): RequestFacts | BadRequest {
  const url = facts.target
  if (url.charCodeAt(0) === SLASH) return isTarget(url) ? facts : BAD.target
  if (url === '*') return method === 'OPTIONS' ? facts : BAD.target
  const parts = ABSOLUTE_FORM.exec(url)
  if (parts === null) return BAD.target
  const authority = ownText(parts[1]!) // a copy: the connection keeps it, and must not keep the whole URL
  const rest = parts[2]!
  if (!isAuthority(authority) || !isTarget(rest)) return BAD.target
  const target =
    rest !== '' ? (rest.charCodeAt(0) === SLASH ? rest : `/${rest}`) : method === 'OPTIONS' ? '*' : '/'
  return { ...facts, authority, target }
}

/** Compares without case. `lower` has the same length as the name. */
function isName(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/** RFC 9110 §10.1.4: `trailers`, alone or in a list. */
function hasTrailers(value: string): boolean {
  return value === 'trailers' || value.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}

/** -1 if the value is not a valid length. 0 if there is no value. */
function lengthOf(value: string | null): number {
  if (value === null) return 0
  if (value.length === 0 || value.length > LENGTH_DIGITS_MAX) return -1
  let length = 0
  for (let i = 0; i < value.length; i++) {
    const digit = value.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return -1
    length = length * 10 + digit
  }
  return length
}

/** Printable ASCII without blanks and without a fragment, which clients must not send (RFC 9112 §3.2.1). */
function isTarget(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code <= 0x20 || code >= 0x7f || code === HASH) return false
  }
  return true
}

function bad(status: BadRequest['status'], code: string): BadRequest {
  return { isGood: false, status, code }
}

/** A request that is malformed in HTTP/2 (RFC 9113 §8.1.1). */
export function malformed(code: string): BadRequest {
  return bad(400, code)
}

/** A field that HTTP/2 forbids (RFC 9113 §8.2.1). */
export const MALFORMED_FIELD: BadRequest = bad(400, 'malformed-field')
/** A header list above the limit. */
export const LARGE_HEADERS: BadRequest = bad(431, 'large-headers')
/** The code for a registered method in another case. */
export const METHOD_CASE = 'method-case'

const BAD = {
  version: bad(505, 'version'),
  longTarget: bad(414, 'long-target'),
  manyHeaders: bad(431, 'many-headers'),
  largeHeaders: LARGE_HEADERS,
  connect: bad(501, 'connect'),
  protocol: bad(501, 'protocol'),
  ended: bad(400, 'ended-tunnel'),
  method: bad(400, 'method'),
  methodCase: bad(400, METHOD_CASE),
  scheme: bad(400, 'scheme'),
  name: bad(400, 'name'),
  noHost: bad(400, 'no-host'),
  hosts: bad(400, 'hosts'),
  host: bad(400, 'host'),
  contentLength: bad(400, 'content-length'),
  transferEncoding: bad(400, 'transfer-encoding'),
  twoFramings: bad(400, 'two-framings'),
  expectation: bad(417, 'expectation'),
  target: bad(400, 'target'),
} as const

const ABSOLUTE_FORM = /^https?:\/\/([^/?]*)(.*)$/i
/** The overhead of a field in the size of a header list (RFC 9113 §6.5.2). */
const FIELD_OVERHEAD = 32
/** Below 2^53, so that the length is exact. */
const LENGTH_DIGITS_MAX = 15
const BLANK = 0x20
const SLASH = 0x2f
const HASH = 0x23
