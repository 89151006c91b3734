import type { FingerprintType } from '../signature.ts'

/** The parts that two different fingerprints have in common. */
export type PartsAlike =
  | ('a' | 'b' | 'c' | 'd')
  | ('a_b' | 'a_c' | 'a_d' | 'b_c' | 'b_d' | 'c_d')
  | ('a_b_c' | 'a_b_d' | 'a_c_d' | 'b_c_d')

/**
 * How a type of fingerprint is written, and how an index stores it: as 32-bit words. Hexadecimal parts are
 * stored as numbers, other parts as characters side by side. A set of parts is a number with one bit for each
 * part.
 */
export interface KeyForm {
  readonly type: FingerprintType
  /** Its position in `KEY_FORMS`. */
  readonly number: number
  readonly parts: readonly KeyPart[]
  /** The set of all its parts. */
  readonly whole: number
  /** Words of a key. 0 if the length depends on the text; then it is `textWords` of the key's first word. */
  readonly stride: number
  /** The word offsets of each set of parts. A text uses as many of them as it has words. */
  readonly offsets: readonly Uint16Array[]
  /** The tables of all types are numbered consecutively. Each type has one table for each set of parts. */
  readonly firstTable: number
  /** The sets of parts to look up by, most telling first. */
  readonly order: readonly PartsAlike[]
  /** The same sets as numbers. */
  readonly orderParts: readonly number[]
  /**
   * The sets of parts that also match signatures with more parts. Any other set matches only signatures with
   * exactly these parts: widely shared parts are evidence only if a signature lists them alone.
   */
  readonly telling: ReadonlySet<number>
  readonly prefix: string
  readonly separator: number
  readonly hasStars: boolean
  /** Characters of a whole fingerprint; 0 for any number. */
  readonly characters: number
}

interface KeyPart {
  /** Start and end of the part in the text. */
  readonly at: number
  readonly end: number
  readonly isHex: boolean
  /** Start and end of the part in the key. */
  readonly word: number
  readonly wordEnd: number
}

/** The key that was read last. One buffer for all: each key is used before the next is read. */
export const KEY = new Int32Array(1 + 256)

/** The longest text that is stored whole, an HTTP/2 fingerprint. A longer text matches no signature. */
export const TEXT_CHARACTERS_MAX = (KEY.length - 1) * 4

/** Reads a fingerprint into `KEY` without allocating. `false`: it does not have this form. */
export function readKey(form: KeyForm, value: string): boolean {
  if (form.stride === 0) return readText(value)
  if (value.length !== form.characters || !value.startsWith(form.prefix)) return false
  const { parts, separator } = form
  let wrong = 0
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]!
    wrong |= part.isHex ? readDigits(value, part.at, part) : readCharacters(value, part.at, part)
    if (part.end < value.length) wrong |= value.charCodeAt(part.end) ^ separator
  }
  return wrong === 0
}

/**
 * Reads a fingerprint in which whole parts may be `*` into `KEY`. Returns the set of its other parts; 0 if it
 * does not have this form.
 */
export function readPattern(form: KeyForm, value: string): number {
  if (readKey(form, value)) return form.whole
  const texts = form.hasStars ? splitParts(form, value) : null
  if (texts === null) return 0
  let has = 0
  let wrong = 0
  for (const [i, part] of form.parts.entries()) {
    KEY.fill(0, part.word, part.wordEnd)
    const text = texts[i]!
    if (text === '*') continue
    has |= 1 << i
    if (text.length !== part.end - part.at) return 0
    wrong |= part.isHex ? readDigits(text, 0, part) : readCharacters(text, 0, part)
  }
  return wrong === 0 ? has : 0
}

/** The first part may contain the separator, so only its length tells where it ends. */
function splitParts(form: KeyForm, value: string): readonly string[] | null {
  const separator = String.fromCharCode(form.separator)
  const firstEnd = value.startsWith(`*${separator}`) ? 1 : form.parts[0]!.end
  if (value[firstEnd] !== separator) return null
  const texts = [value.slice(0, firstEnd), ...value.slice(firstEnd + 1).split(separator)]
  return texts.length === form.parts.length ? texts : null
}

/** The number of words of a text key, given its first word. */
export function textWords(first: number): number {
  return 1 + ((first + 3) >> 2)
}

/**
 * A set of parts as a number. 0, which no signature has, if the type lacks such a part, or if these are all
 * its parts.
 */
export function partsOf(form: KeyForm, alike: PartsAlike | 'exact'): number {
  if (alike === 'exact') return form.whole
  const parts = PARTS[alike]
  return parts < form.whole ? parts : 0
}

/**
 * The hash of a key in a table: HalfSipHash-1-3, so that an attacker who does not know the seed cannot choose
 * keys that collide. `at`: where the key begins in `words`.
 */
export function hashKey(form: KeyForm, parts: number, words: Int32Array, at: number, seed: Seed): number {
  const offsets = form.offsets[parts]!
  const count = form.stride === 0 ? textWords(words[at]!) : offsets.length
  let v0 = seed[0] | 0
  let v1 = seed[1] | 0
  let v2 = 0x6c796765 ^ v0
  let v3 = 0x74656462 ^ v1
  // The words of the key, a word that identifies the table, then three final rounds.
  for (let i = 0; i < count + 4; i++) {
    const said = i < count ? words[at + offsets[i]!]! : i === count ? form.firstTable + parts : 0
    if (i === count + 1) v2 ^= 0xff
    v3 ^= said
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= said
  }
  return (v1 ^ v3) >>> 0
}

export type Seed = readonly [number, number]

/**
 * Whether two keys are equal in these parts. One begins at `at` in `words`, the other at `otherAt` in
 * `others`.
 */
export function isSameKey(
  form: KeyForm,
  parts: number,
  words: Int32Array,
  at: number,
  others: Int32Array,
  otherAt: number,
): boolean {
  const offsets = form.offsets[parts]!
  const count = form.stride === 0 ? textWords(words[at]!) : offsets.length
  for (let i = 0; i < count; i++) {
    if (words[at + offsets[i]!] !== others[otherAt + offsets[i]!]) return false
  }
  return true
}

/** Returns 0 if all characters are hexadecimal digits. */
function readDigits(text: string, from: number, part: KeyPart): number {
  const end = from + part.end - part.at
  let wrong = 0
  let word = part.word
  for (let at = from; at < end; word++) {
    const wordEnd = Math.min(end, at + 8)
    let number = 0
    for (; at < wordEnd; at++) {
      const code = text.charCodeAt(at)
      const digit = DIGITS[code & 0xff]!
      wrong |= (digit & NO_DIGIT) | (code >> 8)
      number = (number << 4) | digit
    }
    KEY[word] = number
  }
  return wrong
}

/** Returns 0 if all characters fit into one byte. */
function readCharacters(text: string, from: number, part: KeyPart): number {
  return pack(text, from, from + part.end - part.at, part.word)
}

function readText(text: string): boolean {
  if (text.length > TEXT_CHARACTERS_MAX) return false
  KEY[0] = text.length
  return pack(text, 0, text.length, 1) === 0
}

function pack(text: string, from: number, end: number, firstWord: number): number {
  let wrong = 0
  let word = firstWord
  for (let at = from; at < end; word++) {
    const wordEnd = Math.min(end, at + 4)
    let number = 0
    for (let shift = 0; at < wordEnd; at++, shift += 8) {
      const code = text.charCodeAt(at)
      wrong |= code >> 8
      number |= code << shift
    }
    KEY[word] = number
  }
  return wrong
}

const PARTS: Readonly<Record<PartsAlike, number>> = {
  ...{ a: 1, b: 2, c: 4, d: 8 },
  ...{ a_b: 3, a_c: 5, a_d: 9, b_c: 6, b_d: 10, c_d: 12 },
  ...{ a_b_c: 7, a_b_d: 11, a_c_d: 13, b_c_d: 14 },
}

const NO_DIGIT = 16
const DIGITS = Uint8Array.from({ length: 256 }, (_, code) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(code))
  return digit < 0 ? NO_DIGIT : digit
})

/** `lengths`: the characters of each part. A negative length means hexadecimal digits. */
function form(
  type: FingerprintType,
  lengths: readonly number[],
  order: readonly PartsAlike[],
  telling: readonly PartsAlike[],
  prefix = '',
  separator = '_',
): Omit<KeyForm, 'number' | 'firstTable'> {
  let at = prefix.length
  let word = 0
  const parts = lengths.map((length): KeyPart => {
    const end = at + Math.abs(length)
    const wordEnd = word + Math.ceil(Math.abs(length) / (length < 0 ? 8 : 4))
    const part = { at, end, isHex: length < 0, word, wordEnd }
    at = end + 1
    word = wordEnd
    return part
  })
  return {
    type,
    parts,
    whole: (1 << parts.length) - 1,
    stride: word,
    offsets: Array.from({ length: 1 << parts.length }, (_, set) => offsetsOf(parts, set)),
    order,
    orderParts: order.map((alike) => PARTS[alike]),
    telling: new Set(telling.map((alike) => PARTS[alike])),
    prefix,
    separator: separator.charCodeAt(0),
    hasStars: order.length > 0,
    characters: at - 1,
  }
}

function offsetsOf(parts: readonly KeyPart[], set: number): Uint16Array {
  if (parts[0]!.wordEnd === 0) return Uint16Array.from(KEY.keys())
  const has = parts.filter((_, i) => (set & (1 << i)) !== 0)
  return Uint16Array.from(
    has.flatMap(({ word, wordEnd }) => Array.from({ length: wordEnd - word }, (_, i) => word + i)),
  )
}

const WRITTEN: readonly Omit<KeyForm, 'number' | 'firstTable'>[] = [
  // First both hashes, so that ALPN, SNI and transport may differ. Then all but the ciphers, then all but the
  // extensions.
  form('ja4', [10, -12, -12], ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'], ['b_c', 'a_c', 'a_b', 'c', 'b']),
  form('ja4s', [7, -4, -12], ['a_c', 'b_c', 'a_b', 'c', 'a', 'b'], ['a_c', 'b_c', 'a_b']),
  // Cookies depend more on the app than on the client.
  form(
    'ja4h',
    [12, -12, -12, -12],
    [
      ...(['a_b_c', 'b_c_d', 'a_b_d', 'a_b', 'b_c', 'b_d', 'a_c_d', 'b'] as const),
      ...(['a_c', 'a_d', 'c_d', 'c', 'd', 'a'] as const),
    ],
    ['a_b_c', 'a_b', 'b'],
  ),
  form('ja4x', [-12, -12, -12], ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'], ['b_c', 'a_c', 'a_b', 'c']),
  form('stable', [10, -12, -12], [], [], 'gs1-', '-'),
  // Texts of any length, so no words are at fixed positions.
  form('http2', [0], [], []),
]

/** In the order of an index. */
export const KEY_FORMS: readonly KeyForm[] = WRITTEN.map((written, number) => ({
  ...written,
  number,
  firstTable: WRITTEN.slice(0, number).reduce((tables, { whole }) => tables + whole + 1, 0),
}))

export const KEY_FORM_OF: Readonly<Record<FingerprintType, KeyForm>> = Object.fromEntries(
  KEY_FORMS.map((each) => [each.type, each]),
) as Record<FingerprintType, KeyForm>
