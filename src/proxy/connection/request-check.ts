import { isAuthority } from '../../wire/host.ts'
import { isMiscasedMethod, isRegisteredMethod } from '../../wire/methods.ts'
import { isPlainName } from '../../wire/header-name.ts'
import { ownText } from '../../wire/own-text.ts'
import type { HttpVersion } from '../../wire/request-head.ts'
import { isToken } from './field-syntax.ts'

/** What a request's head says of the request, once nothing in it can be read in two ways. */
export interface RequestFacts {
  readonly isGood: true
  readonly authority: string | null
  /** In origin-form, or `*`. */
  readonly target: string
  /** 0 is no body, `null` one of unknown length. */
  readonly bodyLength: number | null
  readonly expectsContinue: boolean
  readonly acceptsTrailers: boolean
}

/** The same of HTTP/2, where names are looked at anyway. */
export interface Http2RequestFacts extends RequestFacts {
  /** As in ReceivedHead. */
  readonly hasOddNames: boolean
}

/** A request that is answered by us, at once, and forwarded to nobody. */
export interface BadRequest {
  readonly isGood: false
  readonly status: 400 | 413 | 414 | 417 | 431 | 501 | 505
  /** One short word for what is wrong. */
  readonly code: string
}

export interface RequestLimits {
  readonly requestLineBytesMax: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
}

/**
 * HTTP/1, beyond what the parser has seen to: framing that two readers could take differently (RFC 9112 §6.3), a target
 * and a Host that do not name one thing (§3.2), and limits. `rawHeaders` are as sent.
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
  return withTarget(method, url, host, bodyLength, expectsContinue, acceptsTrailers)
}

/**
 * HTTP/2, beyond what nghttp2 has seen to: pseudo-headers are there once and come first, no field belongs to the
 * connection, and a Content-Length is kept (RFC 9113 §8.2.2, §8.3.1).
 */
export function checkHttp2(
  rawHeaders: readonly string[],
  hasEnded: boolean,
  limits: RequestLimits,
): Http2RequestFacts | BadRequest {
  let method = ''
  let path = ''
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
      case ':scheme':
        if (value !== 'https' && value !== 'http') return BAD.scheme
        counted--
        break
      case 'cookie': // cut into crumbs that are one header again behind us
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
        // Written as a line it would be another field. nghttp2 lets none through.
        if (name.includes(':')) return BAD.name
        hasOddNames = true
    }
  }
  if (method === 'CONNECT') return BAD.connect
  if (path.charCodeAt(0) !== SLASH && path !== '*') return BAD.target
  if (path.length > limits.requestLineBytesMax) return BAD.longTarget
  if (counted > limits.headerCountMax) return BAD.manyHeaders
  // nghttp2 holds to the limit that we announce only once the client has agreed to it.
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
  if (announced === -1) return BAD.contentLength
  const facts = withTarget(method, path, named, hasEnded ? 0 : announced, expectsContinue, true)
  if (!facts.isGood) return facts
  return {
    isGood: true,
    authority: facts.authority,
    target: facts.target,
    bodyLength: facts.bodyLength,
    expectsContinue,
    acceptsTrailers: true,
    hasOddNames,
  }
}

/** Whether a value begins or ends with a blank: in HTTP/2 that is malformed (RFC 9113 §8.2.1). */
export function hasBlankEnds(rawHeaders: readonly string[]): boolean {
  for (let i = 1; i < rawHeaders.length; i += 2) if (isBlankEnded(rawHeaders[i]!)) return true
  return false
}

/** nghttp2 lets no other control character than the tab through. */
function isBlankEnded(value: string): boolean {
  return value.charCodeAt(0) <= BLANK || value.charCodeAt(value.length - 1) <= BLANK
}

/** RFC 9112 §3.2. A full URL has the last word on the host; what is forwarded has only the path. */
function withTarget(
  method: string,
  url: string,
  host: string | null,
  bodyLength: number | null,
  expectsContinue: boolean,
  acceptsTrailers: boolean,
): RequestFacts | BadRequest {
  if (url.charCodeAt(0) === SLASH) {
    if (!isTarget(url)) return BAD.target
    return { isGood: true, authority: host, target: url, bodyLength, expectsContinue, acceptsTrailers }
  }
  if (url === '*') {
    if (method !== 'OPTIONS') return BAD.target
    return { isGood: true, authority: host, target: url, bodyLength, expectsContinue, acceptsTrailers }
  }
  const parts = ABSOLUTE_FORM.exec(url)
  if (parts === null) return BAD.target
  const authority = ownText(parts[1]!) // a connection remembers it, and not the whole URL
  const rest = parts[2]!
  if (!isAuthority(authority) || !isTarget(rest)) return BAD.target
  const target =
    rest !== '' ? (rest.charCodeAt(0) === SLASH ? rest : `/${rest}`) : method === 'OPTIONS' ? '*' : '/'
  return { isGood: true, authority, target, bodyLength, expectsContinue, acceptsTrailers }
}

/** `lower` is what the name, of the same length, has to be but for case. */
function isName(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

/** RFC 9110 §10.1.4: `trailers`, alone or in a list. */
function hasTrailers(value: string): boolean {
  return value === 'trailers' || value.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}

/** -1 for what is no length; 0 where none is given. */
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

/** Printable ASCII without blanks, and no fragment: that is the client's own (RFC 9112 §3.2.1). */
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

/** A field that HTTP/2 forbids (RFC 9113 §8.2.1). */
export const MALFORMED_FIELD: BadRequest = bad(400, 'malformed-field')
/** The code for a method that is a registered one in another case. */
export const METHOD_CASE = 'method-case'

const BAD = {
  version: bad(505, 'version'),
  longTarget: bad(414, 'long-target'),
  manyHeaders: bad(431, 'many-headers'),
  largeHeaders: bad(431, 'large-headers'),
  connect: bad(501, 'connect'),
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
/** What a field counts beside its letters (RFC 9113 §6.5.2). */
const FIELD_OVERHEAD = 32
/** Below 2^53, so that a length is exact. */
const LENGTH_DIGITS_MAX = 15
const BLANK = 0x20
const SLASH = 0x2f
const HASH = 0x23
