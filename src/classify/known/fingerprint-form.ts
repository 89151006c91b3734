import { shown } from '../../shared/problem.ts'

/** The fingerprint types of the API. Each has parts, separated by `_`. */
export type Ja4Type = (typeof JA4_TYPES)[number]

export const JA4_TYPES = ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const

/** A run of characters that encodes one thing. */
interface Field {
  readonly what: string
  readonly length: number
  /** The source of a regular expression that can be part of another. */
  readonly form: string
  readonly takes: string
}

type Part = readonly Field[]

/**
 * Describes what is wrong with a fingerprint, and in which part, in words that follow its name; `null`: it is
 * valid. `starred`: whole parts may be `*`, but not all of them.
 */
export function wrongInFingerprint(type: Ja4Type, text: string, starred: boolean): string | null {
  const parts = PARTS[type]
  if (text.length > LENGTH_SPLIT_MAX) return `is ${shown(text)}, which is too long for a ${type}`
  const texts = splitParts(text, lengthOf(parts[0]!))
  if (texts.length !== parts.length)
    return `is ${shown(text)}, which has ${counted(texts.length)}; a ${type} has ${parts.length} parts separated by _`
  if (starred && texts.every((each) => each === '*')) return 'is only *; give at least one part'
  for (const [index, part] of parts.entries()) {
    const wrong = starred && texts[index] === '*' ? null : wrongInPart(part, texts[index]!)
    if (wrong !== null) return `has a part ${LETTERS[index]} that ${wrong}`
  }
  return null
}

/** The parts of a valid fingerprint, in order. */
export function partsOfFingerprint(type: Ja4Type, text: string): readonly string[] {
  return splitParts(text, lengthOf(PARTS[type][0]!))
}

/** The number of characters of each part. */
export function partLengths(type: Ja4Type): readonly number[] {
  return PARTS[type].map(lengthOf)
}

/** The source of a regular expression for the part `a`, `b`… of a type. */
export function formOfPart(type: Ja4Type, index: number): string {
  return PARTS[type][index]!.map(({ form }) => form).join('')
}

/** The source of a regular expression for a whole fingerprint. */
export function formOfFingerprint(type: Ja4Type): string {
  const anything = PARTS[type].map(() => '\\*').join('_')
  const parts = PARTS[type].map((_, index) => `(?:${formOfPart(type, index)}|\\*)`)
  return `^(?!${anything}$)${parts.join('_')}$`
}

/** The first part may contain `_` (from an unusual method), so only its length tells where it ends. */
function splitParts(text: string, firstLength: number): readonly string[] {
  if (text[firstLength] !== '_') return text.split('_')
  return [text.slice(0, firstLength), ...text.slice(firstLength + 1).split('_')]
}

function wrongInPart(part: Part, text: string): string | null {
  const length = lengthOf(part)
  if (text.length !== length && part.length > 1)
    return `is ${shown(text)}, which has ${text.length} characters; expected ${length}`
  let at = 0
  for (const { what, length: own, form, takes } of part) {
    const said = part.length === 1 ? text : text.slice(at, at + own)
    at += own
    if (new RegExp(`^${form}$`).test(said)) continue
    return part.length === 1
      ? `is ${shown(text)}; expected ${takes}`
      : `is ${shown(text)}: its ${what} is ${shown(said)}; expected ${takes}`
  }
  return null
}

function lengthOf(part: Part): number {
  return part.reduce((sum, { length }) => sum + length, 0)
}

function counted(parts: number): string {
  return parts === 1 ? 'one part' : `${parts} parts`
}

function hash(length: number): Part {
  const takes = `${length} hexadecimal digits in lower case`
  return [{ what: 'hash', length, form: `[0-9a-f]{${length}}`, takes }]
}

function count(what: string): Field {
  return { what, length: 2, form: '\\d\\d', takes: 'two digits' }
}

function oneOf(what: string, length: number, form: string, takes: string): Field {
  return { what, length, form, takes }
}

/** As fingerprint/ writes them: TLS 1.0 to 1.3, SSL, DTLS, or `00` for any other version. */
const TRANSPORT = oneOf('transport', 1, '[tqd]', 't, q or d')
const TLS_VERSION = oneOf(
  'version',
  2,
  '(?:1[0-3]|s[23]|d[1-3]|00)',
  '10, 11, 12, 13, s2, s3, d1, d2, d3 or 00',
)
const ALPN = oneOf('ALPN value', 2, '[0-9a-zA-Z]{2}', 'two letters or digits')

const PARTS: Readonly<Record<Ja4Type, readonly Part[]>> = {
  ja4: [
    [
      TRANSPORT,
      TLS_VERSION,
      oneOf('server name (SNI) flag', 1, '[di]', 'd or i'),
      count('number of ciphers'),
      count('number of extensions'),
      ALPN,
    ],
    hash(12),
    hash(12),
  ],
  ja4s: [[TRANSPORT, TLS_VERSION, count('number of extensions'), ALPN], hash(4), hash(12)],
  ja4h: [
    [
      // A method is any token. If it has a single letter, the JA4H is too short to be recognized.
      oneOf('method', 2, "[!#$%&'*+.^_`|~0-9a-z-]{2}", 'two lower-case letters'),
      oneOf('version', 2, '(?:10|11|20|30)', '10, 11, 20 or 30'),
      oneOf('cookie flag', 1, '[cn]', 'c or n'),
      oneOf('referer flag', 1, '[rn]', 'r or n'),
      count('number of headers'),
      oneOf('language', 4, '[a-z0-9]{4}', 'four lower-case letters or digits'),
    ],
    hash(12),
    hash(12),
    hash(12),
  ],
  ja4x: [hash(12), hash(12), hash(12)],
}
/** Longer texts are not parsed: the longest fingerprint has 51 characters. */
const LENGTH_SPLIT_MAX = 256
const LETTERS = ['a', 'b', 'c', 'd'] as const
