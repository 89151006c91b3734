import { FIELD_LINE, TOKEN } from '../../wire/field-line.ts'

/** Whether the text is a valid field name or method (RFC 9110 §5.6.2). */
export function isToken(text: string): boolean {
  return A_TOKEN.test(text)
}

/**
 * Whether the text is a valid field value (RFC 9110 §5.5): no control character except tab. A code unit above
 * one byte would lose its upper half on the wire, and U+010A would become a line feed.
 */
export function isFieldValue(text: string): boolean {
  return !NOT_IN_VALUE.test(text)
}

/** Formats name, value, … as lines. Without a template literal, which takes V8 twice the time. */
export function fieldLines(headers: readonly string[]): string {
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) lines += headers[i]! + ': ' + headers[i + 1]! + '\r\n'
  return lines
}

/** Whether the text is exactly `count` field lines. A value that contains a line end would add one. */
export function areFieldLines(text: string, count: number): boolean {
  let pattern = LINES[count]
  if (pattern === undefined) {
    pattern = new RegExp(`^(?:${FIELD_LINE}){${count}}$`)
    LINES[count] = pattern
  }
  return pattern.test(text)
}

/**
 * The trailers that may be forwarded. Fields for framing, routing, authentication or content description must
 * not be trailers (RFC 9110 §6.5.1): a receiver that merges trailers into the headers would believe them.
 */
export function trailersToPass(trailers: readonly string[]): string[] {
  const passed: string[] = []
  for (let i = 0; i < trailers.length; i += 2) {
    const name = trailers[i]!
    const value = trailers[i + 1]!
    const allowed = isToken(name) && isFieldValue(value) && !NOT_IN_TRAILERS.has(name.toLowerCase())
    if (allowed) passed.push(name, value)
  }
  return passed
}

const A_TOKEN = new RegExp(`^${TOKEN}$`)
/**
 * One pattern per number of lines: a single pass takes a sixth of the time of checking each name and value.
 */
const LINES: RegExp[] = []
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/

const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'content-encoding',
  'content-range',
  'content-type',
  'age',
  'cache-control',
  'date',
  'expires',
  'host',
  'location',
  'max-forwards',
  'retry-after',
  'vary',
  'expect',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'range',
  'authorization',
  'cookie',
  'proxy-authenticate',
  'proxy-authorization',
  'set-cookie',
  'www-authenticate',
])
