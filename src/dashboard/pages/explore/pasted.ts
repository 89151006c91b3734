import type { DetectionRequest, FingerprintType } from '../../api/operations.ts'
import { type HeadText, readHeadText } from '../../../wire/head-text.ts'

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
  const head = readHeadText(text)
  if (head.headers.length === 0 && head.from === 'headers' && !/[\r\n]/.test(text))
    return { kind: 'user-agent', request: { user_agent: text.slice(0, USER_AGENT_MAX) } }
  return ofHead(head)
}

/** The fingerprint type whose form matches. */
export function typeOf(text: string): FingerprintType | null {
  return (Object.keys(FORMS) as FingerprintType[]).find((type) => FORMS[type].test(text)) ?? null
}

function ofHead({ from, line, headers, oddLines }: HeadText): Pasted {
  if (oddLines.length > 0)
    return { kind: 'unknown', why: `line ${oddLines[0]} is not a header such as "Name: value"` }
  if (headers.length === 0) return { kind: 'unknown', why: 'no headers found' }
  const pairs = headers.map(({ name, value }) => [name, value] as const)
  if (line === null) return ofPairs(pairs, from, {})
  const { method, target, version } = line
  const path = target.split('?', 1)[0]!.slice(0, 2_000)
  return ofPairs(pairs, from, { method: method.slice(0, 20), path, http_version: version })
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
const NAME = /^[\w!#$%&'*+.^`|~-]{1,100}$/
/** Words that the names of secret headers usually contain. */
const SECRET = /auth|cookie|credential|key|pass|secret|session|token/i
const LENGTH_MAX = 100_000
const HEADERS_MAX = 100
const VALUE_MAX = 4_000
const USER_AGENT_MAX = 1_000
