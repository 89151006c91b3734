import { type Place, shown } from '../../shared/problem.ts'
import { formOfFingerprint, formOfPart, JA4_TYPES } from './fingerprint-form.ts'

/** A pattern that identifies the Software it belongs to, and where it was measured. */
export type Signature = ((UserAgentPattern | HeaderPattern | HeaderOrder) & Provenance) | FingerprintSignature

/** Words of a User-Agent, regardless of case. */
export interface UserAgentPattern {
  readonly type: 'user-agent'
  readonly text: string
  /**
   * `product`: whole words only, so `curl/` does not match `libcurl/`, and a pattern that ends in a letter or
   * digit must end a word. `whole`: the whole User-Agent (`node`).
   */
  readonly match: 'product' | 'whole'
}

/** A header that is present. With `value`, its value must match (`*` stands for any text). */
export interface HeaderPattern {
  readonly type: 'header'
  /** Lower case. */
  readonly name: string
  readonly value: string | null
}

/** The order in which a browser sends its headers: names in lower case, without pseudo-headers. */
export interface HeaderOrder {
  readonly type: 'header-order'
  readonly protocol: 'h1' | 'h2'
  readonly names: readonly string[]
}

/** A fingerprint as written. In JA4, JA4S, JA4H and JA4X, whole parts may be `*`. */
export interface FingerprintPattern {
  readonly type: FingerprintType
  readonly value: string
}

export interface FingerprintSignature extends FingerprintPattern, Provenance {
  /** An admin has decided that every client with this fingerprint is this agent. */
  readonly isDecisive: boolean
}

export type FingerprintType = (typeof FINGERPRINT_TYPES)[number]

export interface Provenance {
  readonly source: string
  /** The day, `YYYY-MM-DD`. */
  readonly date: string
  /** The number of connections or requests it was seen on; 0 if it was only published. */
  readonly observations: number
}

export type DecidableType = (typeof DECIDABLE_TYPES)[number]

export function isDecidable(type: string): type is DecidableType {
  return DECIDABLE_TYPES.some((each) => each === type)
}

/** Whether every client with this signature is the agent that it belongs to. */
export function isDecisive(signature: Signature): boolean {
  return 'isDecisive' in signature && signature.isDecisive
}

/** Whether the text has the form of this type. */
export function isFingerprint(type: FingerprintType, text: string): boolean {
  return FORMS[type].test(text)
}

/** `null`: it was refused, and its place has the problem. */
export function readSignature(place: Place): Signature | null {
  const members = place.members(MEMBERS)
  const given = PATTERN_NAMES.filter((name) => members.has(name))
  if (given.length !== 1)
    return place.refuse(`needs exactly one of ${PATTERN_NAMES.join(', ')}, but has ${given.length}`)
  const pattern = PATTERNS[given[0]!]!(members.get(given[0]!)!, members)
  const provenance = readProvenance(place, members)
  const decisive = members.get('decisive')
  const isDecisive = decisive?.boolean() ?? false
  if (pattern === null || provenance === null) return null
  if (isDecisive && !canDecide(pattern))
    return decisive!.refuse(
      'is allowed only for a complete ja4, ja4h or ja4x; in a ja4h, the cookie parts may be *',
    )
  return isOfFingerprint(pattern)
    ? Object.freeze({ ...pattern, ...provenance, isDecisive })
    : Object.freeze({ ...pattern, ...provenance })
}

type Pattern = UserAgentPattern | HeaderPattern | HeaderOrder | FingerprintPattern
type Members = ReadonlyMap<string, Place>

function readProvenance(place: Place, members: Members): Provenance | null {
  const source = members.get('source')?.text('where it was measured, as text') ?? null
  const date = members.get('date')?.text('a day, like 2026-11-21') ?? null
  const observations = members.get('observations')?.integer(0, Number.MAX_SAFE_INTEGER) ?? 0
  if (!members.has('source') || !members.has('date')) return place.refuse('needs `source` and `date`')
  if (source === null || date === null) return null
  return DAY.test(date)
    ? { source, date, observations }
    : members.get('date')!.refuse(`is ${shown(date)}; expected a day, like 2026-11-21`)
}

/** A decisive fingerprint is looked up as it is written, so it must be whole. */
function canDecide(pattern: Pattern): boolean {
  if (!isOfFingerprint(pattern) || !isDecidable(pattern.type)) return false
  const { type, value } = pattern
  return type === 'ja4h' ? WHOLE_BUT_COOKIES.test(value) : !value.includes('*')
}

function isOfFingerprint(pattern: Pattern): pattern is FingerprintPattern {
  return FINGERPRINT_TYPES.some((type) => type === pattern.type)
}

function userAgent(place: Place, members: Members): UserAgentPattern | null {
  const text = place.text('text from a User-Agent')
  const match = members.get('match')?.choice(['product', 'whole'] as const) ?? 'product'
  if (text === null) return null
  if (match === 'product' && (text.length < PRODUCT_LENGTH_MIN || GENERIC.has(text.toLowerCase())))
    return place.refuse(`is ${shown(text)}, which occurs in too many User-Agents; use \`match: whole\``)
  return { type: 'user-agent', text: text.toLowerCase(), match }
}

function header(place: Place, members: Members): HeaderPattern | null {
  const name = place.text('a header name')?.toLowerCase() ?? null
  const value = members.get('value')?.text('a value, in which * matches any text') ?? null
  if (name === null) return null
  if (!TOKEN.test(name)) return place.refuse(`${shown(name)} is not a valid header name`)
  return { type: 'header', name, value: value?.toLowerCase() ?? null }
}

function headerOrder(place: Place, members: Members): HeaderOrder | null {
  const names = place.items().map((item) => item.text('a header name')?.toLowerCase() ?? null)
  const protocol = members.get('protocol')?.choice(['h1', 'h2'] as const) ?? null
  if (!members.has('protocol')) return place.refuse('needs `protocol`, h1 or h2')
  if (protocol === null || names.includes(null)) return null
  return { type: 'header-order', protocol, names: names as string[] }
}

function fingerprint(type: FingerprintType): (place: Place) => FingerprintPattern | null {
  const form = FORMS[type]
  return (place) => {
    const value = place.text('a fingerprint')
    if (value === null || form.test(value)) return value === null ? null : { type, value }
    return place.refuse(`${shown(value)} is not a valid ${type}`)
  }
}

/** Any parts may be `*`, but not all of them. HTTP/2 fingerprints and stable keys are always whole. */
const FORMS: Readonly<Record<FingerprintType, RegExp>> = {
  ja4: new RegExp(formOfFingerprint('ja4')),
  ja4s: new RegExp(formOfFingerprint('ja4s')),
  ja4h: new RegExp(formOfFingerprint('ja4h')),
  ja4x: new RegExp(formOfFingerprint('ja4x')),
  stable: new RegExp(`^gs1-${[0, 1, 2].map((part) => formOfPart('ja4', part)).join('-')}$`),
  http2: /^[0-9:;]*\|[0-9]+\|[0-9:,]+\|(?:[a-z](?:,[a-z])*)?$/,
}

export const FINGERPRINT_TYPES = [...JA4_TYPES, 'stable', 'http2'] as const
/**
 * The types that can be decisive. A JA4S is the proxy's own answer, and many programs share the other types.
 */
const DECIDABLE_TYPES = ['ja4', 'ja4h', 'ja4x'] as const
const WHOLE_BUT_COOKIES = /^[^*]+(?:_\*){0,2}$/
const DETAILS = ['match', 'value', 'protocol', 'decisive']
const PROVENANCE = ['source', 'date', 'observations']
const PATTERNS: Readonly<Record<string, (place: Place, members: Members) => Pattern | null>> = {
  user_agent: userAgent,
  header,
  header_order: headerOrder,
  ...Object.fromEntries(FINGERPRINT_TYPES.map((type) => [type, fingerprint(type)])),
}
const PATTERN_NAMES = Object.keys(PATTERNS)
const MEMBERS = [...PATTERN_NAMES, ...DETAILS, ...PROVENANCE]
const DAY = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/
const PRODUCT_LENGTH_MIN = 3
/** Tokens of browsers and of half of all other clients. */
const GENERIC: ReadonlySet<string> = new Set([
  'mozilla',
  'mozilla/5.0',
  'gecko',
  'khtml',
  'applewebkit',
  'compatible',
  'version',
  'like',
])
