import { FIELD_LINE } from '../../wire/field-line.ts'

/** The head of an HTTP/1 response, with the framing of its body. */
export interface ResponseHead {
  readonly status: number
  /** The reason phrase, which has no meaning but may be shown. */
  readonly reason: string
  /** The headers for the client: order, case and duplicates as sent, without hop-by-hop fields. */
  readonly headers: string[]
  readonly body: 'none' | 'length' | 'chunked' | 'until-close'
  /** The body's length, if `body` is `length`. */
  readonly length: number
  /** Whether the connection can be reused. */
  readonly keepsAlive: boolean
  /** How long, if `Keep-Alive: timeout` is present. */
  readonly keepAliveMs: number | null
}

/** The properties of the request that determine how the response head is read. */
export interface ResponseContext {
  readonly method: string
  readonly acceptsTrailers: boolean
}

export type HeadFault = 'bad-head' | 'bad-framing' | 'too-many-fields' | 'unasked-upgrade'

/**
 * Parses a head strictly, from the status line to the empty line. What RFC 9112 allows a recipient to repair
 * (a bare line feed, a folded line, a blank before the colon) is rejected, and so are two different lengths,
 * because a client may repair them differently.
 */
export function readResponseHead(text: string, asked: ResponseContext): ResponseHead | HeadFault {
  if (!HEAD.test(text)) return 'bad-head'
  const status = Number(text.slice(STATUS_AT, STATUS_AT + 3))
  const fields: string[] = []
  const lineEnd = text.indexOf(CRLF)
  const fault = readFields(text, lineEnd + CRLF.length, fields)
  if (fault !== null) return fault
  if (status === 101) return 'unasked-upgrade'
  const reason = text.slice(REASON_AT, lineEnd)
  return framed(text.charCodeAt(MINOR_VERSION_AT) - DIGIT_0, status, reason, fields, asked)
}

/** Parses trailers: field lines between a line end and an empty line. */
export function readTrailers(text: string, trailers: string[]): HeadFault | null {
  return TRAILERS.test(text) ? readFields(text, CRLF.length, trailers) : 'bad-head'
}

/** Parses field lines up to the empty line that ends `text`: name, value, … */
function readFields(text: string, start: number, fields: string[]): HeadFault | null {
  const end = text.length - CRLF.length
  for (let at = start; at < end; ) {
    if (fields.length === FIELDS_MAX * 2) return 'too-many-fields'
    const lineEnd = text.indexOf(CRLF, at)
    const colon = text.indexOf(':', at)
    fields.push(text.slice(at, colon), trimmed(text, colon + 1, lineEnd))
    at = lineEnd + CRLF.length
  }
  return null
}

function framed(
  minor: number,
  status: number,
  reason: string,
  fields: string[],
  asked: ResponseContext,
): ResponseHead | HeadFault {
  const { connection, keepAlive, codings, lengths, hasTrailer, rest } = sorted(fields)
  // A length besides a coding, or a coding in HTTP/1.0: the two ends could disagree on the framing.
  if (codings !== null && (lengths !== null || minor === 0)) return 'bad-framing'
  if (codings !== null && codings.toLowerCase() !== 'chunked') return 'bad-framing'
  const length = lengths === null ? NO_LENGTH : lengthOf(lengths)
  if (lengths !== null && length === NO_LENGTH) return 'bad-framing'

  let headers = rest
  const tokens = connection === null ? NO_TOKENS : tokensOf(connection)
  for (const token of tokens) {
    if (token !== 'close' && token !== 'keep-alive') headers = without(headers, token)
  }
  const body = bodyOf(status, asked.method, codings !== null, length)
  if (length !== NO_LENGTH) headers = withLength(headers, status, length)
  // A Trailer field is kept only if trailers can follow.
  if (hasTrailer && !(asked.acceptsTrailers && body === 'chunked')) headers = without(headers, 'trailer')
  const persists = !tokens.includes('close') && (minor === 1 || tokens.includes('keep-alive'))
  return {
    status,
    reason,
    headers,
    body,
    length: body === 'length' ? length : 0,
    keepsAlive: persists && body !== 'until-close',
    keepAliveMs: keepAlive === null ? null : keepAliveMsOf(keepAlive),
  }
}

interface SortedFields {
  connection: string | null
  keepAlive: string | null
  codings: string | null
  lengths: string | null
  hasTrailer: boolean
  /** The other fields, and the first Content-Length. */
  rest: string[]
}

/** Separates the fields on connection and framing from the others (RFC 9110 §7.6.1). */
function sorted(fields: string[]): SortedFields {
  const found: SortedFields = {
    connection: null,
    keepAlive: null,
    codings: null,
    lengths: null,
    hasTrailer: false,
    rest: fields,
  }
  for (let i = 0; i < fields.length; i += 2) {
    const isRest = !isSpecialLength(fields[i]!) || keeps(found, fields[i]!.toLowerCase(), fields[i + 1]!)
    // The list is copied only if a field is removed.
    if (!isRest && found.rest === fields) found.rest = fields.slice(0, i)
    else if (isRest && found.rest !== fields) found.rest.push(fields[i]!, fields[i + 1]!)
  }
  return found
}

/** Records a field. Returns whether it stays in the list. */
function keeps(found: SortedFields, name: string, value: string): boolean {
  switch (name) {
    case 'connection':
      found.connection = joined(found.connection, value)
      return false
    case 'keep-alive':
      found.keepAlive = joined(found.keepAlive, value)
      return false
    case 'transfer-encoding':
      found.codings = joined(found.codings, value)
      return false
    case 'content-length': {
      const isFirst = found.lengths === null
      found.lengths = joined(found.lengths, value)
      return isFirst
    }
    case 'trailer':
      found.hasTrailer = true
      return true
    default:
      return name !== 'te' && name !== 'upgrade' && name !== 'proxy-connection'
  }
}

function isSpecialLength(name: string): boolean {
  return SPECIAL_LENGTHS[name.length] === true
}

/** RFC 9112 §6.3. */
function bodyOf(status: number, method: string, isChunked: boolean, length: number): ResponseHead['body'] {
  if (status < 200 || status === 204 || status === 304 || method === 'HEAD' || length === 0) return 'none'
  if (isChunked) return 'chunked'
  return length === NO_LENGTH ? 'until-close' : 'length'
}

/** The length, if all values agree (RFC 9110 §8.6). */
function lengthOf(value: string): number {
  let length = NO_LENGTH
  if (LENGTH.test(value)) return Number(value)
  for (const member of value.split(',')) {
    const text = trimmed(member, 0, member.length)
    if (!LENGTH.test(text)) return NO_LENGTH
    if (length !== NO_LENGTH && Number(text) !== length) return NO_LENGTH
    length = Number(text)
  }
  return length
}

/** Writes the length in one form. Without a body it is kept only for a 304 or an answer to HEAD. */
function withLength(headers: string[], status: number, length: number): string[] {
  if (status < 200 || status === 204) return without(headers, 'content-length')
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.length === 14 && headers[i]!.toLowerCase() === 'content-length')
      headers[i + 1] = String(length)
  }
  return headers
}

/**
 * Removes a field. `content-length` is never removed on behalf of a Connection field, because it frames the
 * message.
 */
function without(headers: string[], lowerCaseName: string): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== lowerCaseName) kept.push(headers[i]!, headers[i + 1]!)
  }
  return kept
}

function tokensOf(value: string): readonly string[] {
  if (value === 'keep-alive') return KEEP_ALIVE_TOKENS
  return value
    .toLowerCase()
    .split(',')
    .map((token) => trimmed(token, 0, token.length))
    .filter((token) => token !== '' && token !== 'content-length')
}

/** For example `timeout=5, max=100`. An invalid value counts as absent. */
function keepAliveMsOf(value: string): number | null {
  const seconds = KEEP_ALIVE_TIMEOUT.exec(value)
  return seconds === null ? null : Number(seconds[1]) * 1000
}

function joined(before: string | null, value: string): string {
  return before === null ? value : `${before},${value}`
}

/** Trims blanks (OWS, RFC 9110 §5.6.3). `trim()` would also remove latin1's 0xa0. */
export function trimmed(text: string, start: number, end: number): string {
  let from = start
  let to = end
  while (from < to && isBlank(text.charCodeAt(from))) from++
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--
  return text.slice(from, to)
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB
}

/** More fields than any server sends, in heads and in trailers. */
export const FIELDS_MAX = 256

const CRLF = '\r\n'
const SPACE = 0x20
const TAB = 0x09
const DIGIT_0 = 0x30
/** HTTP/1.x */
const MINOR_VERSION_AT = 7
const STATUS_AT = 9
const REASON_AT = 13
/** A missing space before an empty reason is common and harmless. */
const HEAD = new RegExp(
  `^HTTP/1\\.[01] [1-5][0-9]{2}(?: [\\t\\x20-\\x7e\\x80-\\xff]*)?\\r\\n(?:${FIELD_LINE})*\\r\\n$`,
)
const TRAILERS = new RegExp(`^\\r\\n(?:${FIELD_LINE})*\\r\\n$`)
const NO_LENGTH = -1
/** Fifteen digits exceed any body and still are an exact number. */
const LENGTH = /^[0-9]{1,15}$/
const KEEP_ALIVE_TIMEOUT = /(?:^|,)[ \t]*timeout[ \t]*=[ \t]*"?([0-9]{1,9})"?[ \t]*(?:,|$)/i
const KEEP_ALIVE_TOKENS: readonly string[] = ['keep-alive']
const NO_TOKENS: readonly string[] = []

/** The lengths of names that need a closer look. */
const SPECIAL_LENGTHS: readonly boolean[] = Array.from({ length: 18 }, (_, length) =>
  [2, 7, 10, 14, 16, 17].includes(length),
)
