import { FIELD_LINE, PLAIN_FIELD_LINE } from './field-line.ts'

/** A request head in the form that nearly all HTTP/1.1 clients send. */
export interface CommonHead {
  readonly method: string
  /** In origin form. */
  readonly target: string
  readonly fields: CommonFields
  /** Offset of the first byte after the empty line. */
  readonly end: number
}

/** The field lines of such a head. */
export interface CommonFields {
  /** As sent, with the empty line. */
  readonly text: string
  /** Flat list, as in `RequestHead`. */
  readonly rawHeaders: readonly string[]
  /** Whether a header name has a character other than letters, digits and hyphens. */
  readonly hasOddNames: boolean
  /** Whether the client did not send `Connection: close`. */
  readonly keepsAlive: boolean
}

/**
 * Parses the HTTP/1.1 head at the start of the bytes. It accepts only a complete head in a grammar so narrow
 * that every parser reads it alike: a common method, a path, whole lines. `null` leaves the head to another
 * parser. That includes every header that changes what follows (`Transfer-Encoding`, `Expect`, `Upgrade`, a
 * `Connection` that lists fields). `last`: the fields of the connection's previous request, which are used
 * again if these are the same.
 */
export function readCommonHead(bytes: Buffer, last: CommonFields | null): CommonHead | null {
  const blank = bytes.indexOf(EMPTY_LINE)
  if (blank === -1 || blank > HEAD_BYTES_MAX) return null
  const end = blank + EMPTY_LINE.length
  const text = bytes.toString('latin1', 0, end)
  const methodEnd = text.indexOf(' ')
  const targetEnd = text.indexOf(' ', methodEnd + 1)
  const fieldsAt = targetEnd + VERSION_LINE_LENGTH
  if (!REQUEST_LINE.test(text.slice(0, fieldsAt))) return null
  const isRepeated = last !== null && last.text === text.slice(fieldsAt)
  const fields = isRepeated ? last : readFields(text, bytes, fieldsAt)
  if (fields === null) return null
  const target = own(text, bytes, methodEnd + 1, targetEnd)
  return { method: text.slice(0, methodEnd), target, fields, end }
}

function readFields(text: string, bytes: Buffer, start: number): CommonFields | null {
  const sent = text.slice(start)
  const hasOddNames = !PLAIN_FIELDS.test(sent)
  if (hasOddNames && !FIELDS.test(sent)) return null
  const rawHeaders: string[] = []
  let keepsAlive = true
  for (let from = start; from < text.length - 2; ) {
    const lineEnd = text.indexOf('\r\n', from)
    const colon = text.indexOf(':', from)
    let [first, last] = [colon + 1, lineEnd]
    while (first < last && isBlank(text.charCodeAt(first))) first++
    while (last > first && isBlank(text.charCodeAt(last - 1))) last--
    const name = own(text, bytes, from, colon)
    const value = own(text, bytes, first, last)
    if (SPECIAL_LENGTHS[name.length] === true) {
      const lower = name.toLowerCase()
      if (ELSEWHERE.has(lower)) return null
      if (lower === 'connection') {
        const wish = value.toLowerCase()
        if (wish === 'close') keepsAlive = false
        else if (wish !== 'keep-alive') return null
      }
    }
    rawHeaders.push(name, value)
    from = lineEnd + 2
  }
  return { text: sent, rawHeaders, hasOddNames, keepsAlive }
}

/**
 * Copies a piece of the text: a slice would keep the whole head in memory. V8 copies slices shorter than 13
 * characters anyway.
 */
function own(text: string, bytes: Buffer, from: number, to: number): string {
  return to - from < SLICED_LENGTH_MIN ? text.slice(from, to) : bytes.toString('latin1', from, to)
}

function fieldsOf(fieldLine: string): RegExp {
  return new RegExp(`^(?:${fieldLine})*\\r\\n$`)
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** Longer heads are rare. The other parser enforces the limits for them. */
const HEAD_BYTES_MAX = 8192
const EMPTY_LINE = Buffer.from('\r\n\r\n')
/** A target of printable ASCII without a fragment (RFC 9112 §3.2.1). */
const REQUEST_LINE = /^(?:GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS) \/[!"$-~]* HTTP\/1\.1\r\n$/
const PLAIN_FIELDS = fieldsOf(PLAIN_FIELD_LINE)
const FIELDS = fieldsOf(FIELD_LINE)
const VERSION_LINE_LENGTH = ' HTTP/1.1\r\n'.length
const SLICED_LENGTH_MIN = 13
/** llhttp treats `proxy-connection` like `Connection`. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'expect',
  'upgrade',
  'http2-settings',
  'proxy-connection',
])
const SPECIAL_LENGTHS: readonly boolean[] = Array.from({ length: 18 }, (_, length) =>
  [...ELSEWHERE, 'connection'].some((name) => name.length === length),
)
