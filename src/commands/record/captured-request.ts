import { Fault } from '../../shared/fault.ts'
import { fieldValue, type SignedRequest } from '../../identity/signature/signature-base.ts'

/** A captured request. */
export interface CapturedRequest extends SignedRequest {
  readonly body: Buffer
}

/**
 * Parses HTTP/1 text, or JSON: {method, url, headers}, with headers as an object or as a list of [name,
 * value]. `base`: the origin, `https://gate.example`; `null`: https and the request's own Host. Throws a
 * Fault.
 */
export function capturedRequest(bytes: Buffer, base: string | null): CapturedRequest {
  if (bytes.length > BYTES_MAX) throw invalid(`is longer than ${BYTES_MAX} bytes`)
  const first = bytes.toString('latin1', 0, 64).trimStart()[0]
  return first === '{' ? ofJson(bytes.toString('utf8'), base) : ofHttp(bytes, base)
}

function ofHttp(bytes: Buffer, base: string | null): CapturedRequest {
  const text = bytes.toString('latin1')
  const end = HEAD_END.exec(text)
  const head = end === null ? text : text.slice(0, end.index)
  const [line = '', ...lines] = head.split(/\r?\n/)
  const [, method, target] = REQUEST_LINE.exec(line) ?? []
  if (method === undefined || target === undefined)
    throw invalid('begins with no request line, like GET / HTTP/1.1')
  const rawHeaders: string[] = []
  for (const each of lines) {
    if (each === '') continue
    // A folded line belongs to the previous line, unchanged.
    if (/^[ \t]/.test(each) && rawHeaders.length > 0) {
      rawHeaders.push(`${rawHeaders.pop()}\r\n${each}`)
      continue
    }
    const [, name, value] = HEADER.exec(each) ?? []
    if (name === undefined || value === undefined)
      throw invalid(`has an invalid header line: ${each.slice(0, 40)}`)
    rawHeaders.push(name, value)
  }
  // Kept as sent: the URL class would normalize it.
  const [, origin, path] = ABSOLUTE.exec(target) ?? []
  const rest = end === null ? Buffer.alloc(0) : bytes.subarray(end.index + end[0].length)
  const body = isChunked(rawHeaders) ? joined(rest) : rest
  return {
    method,
    rawHeaders,
    body,
    target: path === undefined ? target : path.startsWith('/') ? path : `/${path}`,
    base: base ?? origin ?? baseOf(rawHeaders),
  }
}

function isChunked(rawHeaders: readonly string[]): boolean {
  return /(?:^|,)[ \t]*chunked[ \t]*$/i.test(fieldValue(rawHeaders, 'transfer-encoding') ?? '')
}

/** Joins a chunked body (RFC 9112 §7.1): its digest covers the data without chunk sizes. */
function joined(bytes: Buffer): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; ; ) {
    const [line, size] = CHUNK_SIZE.exec(bytes.toString('latin1', at, at + CHUNK_LINE_MAX)) ?? []
    if (line === undefined || size === undefined) throw invalid('has a body in chunks that is damaged')
    const [start, length] = [at + line.length, Number.parseInt(size, 16)]
    if (length === 0) return Buffer.concat(pieces)
    if (start + length > bytes.length) throw invalid('has a body in chunks that is not whole')
    pieces.push(bytes.subarray(start, start + length))
    at = start + length + (bytes[start + length] === CARRIAGE_RETURN ? 2 : 1)
  }
}

function ofJson(text: string, base: string | null): CapturedRequest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('is not valid JSON')
  }
  const { method = 'GET', url, target, headers, body } = value as Readonly<Record<string, unknown>>
  if (typeof method !== 'string' || !/^[!#$%&'*+.^_`|~\w-]{1,64}$/.test(method))
    throw invalid('has no method')
  const rawHeaders = headersIn(headers)
  const whole = typeof url === 'string' ? URL.parse(url) : null
  if (url !== undefined && whole === null) throw invalid('has an invalid url')
  if (whole === null && typeof target !== 'string') throw invalid('has neither url nor target')
  return {
    method,
    rawHeaders,
    target: whole === null ? (target as string) : whole.pathname + whole.search,
    base: base ?? whole?.origin ?? baseOf(rawHeaders),
    body: Buffer.from(typeof body === 'string' ? body : ''),
  }
}

function headersIn(value: unknown): string[] {
  const entries: unknown[] = Array.isArray(value)
    ? value
    : typeof value === 'object' && value !== null
      ? Object.entries(value).flatMap(([name, each]) => [each].flat().map((text) => [name, text]))
      : []
  return entries.flatMap((entry) => {
    const [name, text, more] = Array.isArray(entry) ? entry : []
    if (typeof name !== 'string' || typeof text !== 'string' || more !== undefined)
      throw invalid('has headers that are no names and values')
    return [name, text]
  })
}

/** The origin, from the Host header. */
function baseOf(rawHeaders: readonly string[]): string {
  const at = rawHeaders.findIndex((text, i) => i % 2 === 0 && /^(?:host|:authority)$/i.test(text))
  if (at === -1) throw invalid('does not say where it was sent to: it has no Host; say so with --url')
  return `https://${rawHeaders[at + 1]!.trim()}`
}

function invalid(detail: string): Fault {
  return new Fault('REQUEST_UNREADABLE', `the request ${detail}`)
}

const BYTES_MAX = 16 * 1_048_576
const CHUNK_SIZE = /^([0-9a-f]{1,7})[ \t]*(?:;[^\r\n]*)?\r?\n/i
const CHUNK_LINE_MAX = 1_024
const CARRIAGE_RETURN = 0x0d
const HEAD_END = /\r?\n\r?\n/
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]{1,64}) (\S+)(?: HTTP\/\d(?:\.\d)?)?$/
const ABSOLUTE = /^(https?:\/\/[^/?#@]+)(.*)$/i
const HEADER = /^(:?[!#$%&'*+.^_`|~\w-]{1,256}):[ \t]*(?![ \t])(.*)$/
