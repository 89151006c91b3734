import type { DetectionRequest, FingerprintType } from '../../api/operations.ts'

/** Pasted text and what was recognised in it. */
export type Pasted =
  | { readonly kind: 'empty' }
  | { readonly kind: 'fingerprint'; readonly type: FingerprintType; readonly fingerprint: string }
  | {
      readonly kind: 'request'
      /** `curl -v output`, `a request`, `headers`, `JSON`. */
      readonly from: string
      readonly request: DetectionRequest
      /** Names of headers whose values are withheld because they are private. */
      readonly withheld: readonly string[]
    }
  | { readonly kind: 'user-agent'; readonly request: DetectionRequest }
  | { readonly kind: 'unknown'; readonly why: string }

/**
 * Accepts a fingerprint, a request head, headers, headers as JSON, or output of `curl -v`. Other text is
 * taken as a User-Agent.
 */
export function readPasted(given: string): Pasted {
  if (given.length > LENGTH_MAX) return { kind: 'unknown', why: `more than ${LENGTH_MAX} characters` }
  const text = given.trim()
  if (text === '') return { kind: 'empty' }
  const type = typeOf(text)
  if (type !== null) return { kind: 'fingerprint', type, fingerprint: text }
  if (text.startsWith('{') || text.startsWith('[')) return ofJson(text)
  const lines = text.split(/\r\n|\n|\r/).map((line) => line.trimEnd())
  const sent = lines.filter((line) => /^>(?: |$)/.test(line)).map((line) => line.slice(2))
  if (sent.length > 0) return ofHead(sent, 'curl -v output')
  if (REQUEST_LINE.test(lines[0]!)) return ofHead(lines, 'a request')
  if (lines.every((line) => line === '' || HEADER.test(line))) return ofHead(lines, 'headers')
  if (lines.length === 1)
    return { kind: 'user-agent', request: { user_agent: text.slice(0, USER_AGENT_MAX) } }
  const wrong = lines.findIndex((line) => line !== '' && !HEADER.test(line)) + 1
  return { kind: 'unknown', why: `line ${wrong} is not a header such as "Name: value"` }
}

/** The fingerprint type whose form matches. */
export function typeOf(text: string): FingerprintType | null {
  return (Object.keys(FORMS) as FingerprintType[]).find((type) => FORMS[type].test(text)) ?? null
}

function ofHead(lines: readonly string[], from: string): Pasted {
  const [, method, target, version] = REQUEST_LINE.exec(lines[0] ?? '') ?? []
  const pairs: [string, string][] = []
  for (const line of method === undefined ? lines : lines.slice(1)) {
    // The body follows.
    if (line === '') break
    const header = HEADER.exec(line)
    if (header !== null) pairs.push([header[1]!, header[2]!])
  }
  if (pairs.length === 0) return { kind: 'unknown', why: 'no headers found' }
  return ofPairs(pairs, from, {
    ...(method !== undefined && { method: method.slice(0, 20) }),
    ...(target !== undefined && { path: target.split('?', 1)[0]!.slice(0, 2_000) }),
    ...(version !== undefined && { http_version: version === '2' ? '2' : version }),
  })
}

function ofJson(text: string): Pasted {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { kind: 'unknown', why: `invalid JSON: ${(error as Error).message}` }
  }
  const found = typeof value === 'object' && value !== null && 'headers' in value ? value.headers : value
  const pairs = pairsIn(found)
  return pairs === null || pairs.length === 0
    ? { kind: 'unknown', why: 'no headers found in this JSON' }
    : ofPairs(pairs, 'JSON', {})
}

/** `{name: value}`, `[[name, value]]`, or `[{name, value}]` as in a browser's HAR. */
function pairsIn(value: unknown): [string, string][] | null {
  if (typeof value !== 'object' || value === null) return null
  const entries: unknown[] = Array.isArray(value) ? value : Object.entries(value)
  const pairs = entries.flatMap((entry): [string, string][] => {
    const [name, content] = Array.isArray(entry)
      ? entry
      : [(entry as { name?: unknown })?.name, (entry as { value?: unknown })?.value]
    return typeof name === 'string' && typeof content === 'string' ? [[name, content]] : []
  })
  return pairs
}

function ofPairs(
  pairs: readonly (readonly [string, string])[],
  from: string,
  line: Pick<DetectionRequest, 'method' | 'path' | 'http_version'>,
): Pasted {
  const headers: Record<string, string | string[]> = Object.create(null)
  const withheld = new Set<string>()
  for (const [name, value] of pairs.slice(0, HEADERS_MAX)) {
    if (!NAME.test(name)) continue
    const isSecret = SECRET.test(name)
    if (isSecret) withheld.add(name)
    const shown = isSecret ? withheldValue(name, value) : value.trim().slice(0, VALUE_MAX)
    const before = headers[name]
    headers[name] = before === undefined ? shown : [...[before].flat(), shown]
  }
  if (Object.keys(headers).length === 0) return { kind: 'unknown', why: 'no headers found' }
  return { kind: 'request', from, request: { ...line, headers: { ...headers } }, withheld: [...withheld] }
}

/** JA4H uses the number and names of cookies, so these stay and their values go. */
function withheldValue(name: string, value: string): string {
  if (name.toLowerCase() !== 'cookie') return 'withheld'
  return value
    .split(';')
    .map((cookie) => `${cookie.split('=', 1)[0]!.trim()}=withheld`)
    .join('; ')
    .slice(0, VALUE_MAX)
}

const FORMS: Readonly<Record<FingerprintType, RegExp>> = {
  ja4: /^[tqd](?:\d\d|s[23]|d[123])[di]\d{4}[0-9a-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/,
  ja4s: /^[tqd](?:\d\d|s[23]|d[123])\d\d[0-9a-z]{2}_[0-9a-f]{4}_[0-9a-f]{12}$/,
  ja4h: /^[a-z]{2}\d\d[cn][rn]\d\d[0-9a-z]{4}_[0-9a-f]{12}_[0-9a-f]{12}_[0-9a-f]{12}$/,
  ja4x: /^[0-9a-f]{12}_[0-9a-f]{12}_[0-9a-f]{12}$/,
}
const REQUEST_LINE = /^([A-Z]{1,20}) (\S+) HTTP\/(\d(?:\.\d)?)$/
const HEADER = /^(:?[\w!#$%&'*+.^`|~-]{1,100}):\s?(.*)$/
const NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/
/** Words that the names of secret headers usually contain. */
const SECRET = /auth|cookie|credential|key|pass|secret|session|token/i
const LENGTH_MAX = 100_000
const HEADERS_MAX = 100
const VALUE_MAX = 4_000
const USER_AGENT_MAX = 1_000
