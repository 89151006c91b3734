import { FIELD_LINE, TOKEN } from '../../wire/field-line.ts'

/** A field name, or a method (RFC 9110 §5.6.2). */
export function isToken(text: string): boolean {
  return A_TOKEN.test(text)
}

/**
 * What may stand in a field line (RFC 9110 §5.5): no control character but the tab. A unit beyond one byte would lose
 * its upper half on the wire, and U+010A would become a line feed.
 */
export function isFieldValue(text: string): boolean {
  return !NOT_IN_VALUE.test(text)
}

/** Name, value, … as lines. Not by a template: V8 takes twice the time for one. */
export function fieldLines(headers: readonly string[]): string {
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) lines += headers[i]! + ': ' + headers[i + 1]! + '\r\n'
  return lines
}

/** Whether a text is as many field lines, whole ones: a value with a line's end in it would be one more. */
export function areFieldLines(text: string, count: number): boolean {
  let pattern = LINES[count]
  if (pattern === undefined) {
    pattern = new RegExp(`^(?:${FIELD_LINE}){${count}}$`)
    LINES[count] = pattern
  }
  return pattern.test(text)
}

/**
 * The trailers that may be passed on. Fields that frame, route, authenticate or say what the content is must not come
 * behind it (RFC 9110 §6.5.1): a receiver that merges trailers into the headers would believe them.
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
/** By how many: one pass over all is a sixth of what it takes to look at each name and value. */
const LINES: RegExp[] = []
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/

const NOT_IN_TRAILERS: ReadonlySet<string> = new Set([
  ...['connection', 'http2-settings', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade'],
  ...['content-length', 'content-encoding', 'content-range', 'content-type'],
  ...['age', 'cache-control', 'date', 'expires', 'host', 'location', 'max-forwards', 'retry-after', 'vary'],
  ...['expect', 'if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'range'],
  ...[
    'authorization',
    'cookie',
    'proxy-authenticate',
    'proxy-authorization',
    'set-cookie',
    'www-authenticate',
  ],
])
