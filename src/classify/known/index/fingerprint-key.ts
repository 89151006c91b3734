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

/** A fingerprint in the form of its index key. It is reused: reading the next one overwrites it. */
export class FingerprintKey {
  readonly words = new Int32Array(KEY_WORDS_MAX)

  /** Reads a fingerprint without allocating. `false`: it does not have this form. */
  read(form: KeyForm, value: string): boolean {
    if (form.stride === 0) return this.#readText(value)
    if (value.length !== form.characters || !value.startsWith(form.prefix)) return false
    const { parts, separator } = form
    let wrong = 0
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i]!
      wrong |= this.#readPart(value, part.at, part)
      if (part.end < value.length) wrong |= value.charCodeAt(part.end) ^ separator
    }
    return wrong === 0
  }

  /**
   * Reads a fingerprint in which whole parts may be `*`. Returns the set of its other parts; 0 if it does not
   * have this form.
   */
  readPattern(form: KeyForm, value: string): number {
    if (this.read(form, value)) return form.whole
    const texts = form.hasStars ? splitParts(form, value) : null
    if (texts === null) return 0
    let has = 0
    let wrong = 0
    for (const [i, part] of form.parts.entries()) {
      this.words.fill(0, part.word, part.wordEnd)
      const text = texts[i]!
      if (text === '*') continue
      has |= 1 << i
      if (text.length !== part.end - part.at) return 0
      wrong |= this.#readPart(text, 0, part)
    }
    return wrong === 0 ? has : 0
  }

  /** Whether the key that begins at `at` in `words` is equal to this one in these parts. */
  isAt(form: KeyForm, parts: number, words: Int32Array, at: number): boolean {
    const offsets = form.offsets[parts]!
    const own = this.words
    const count = wordsOf(form, parts, own, 0)
    for (let i = 0; i < count; i++) if (own[offsets[i]!] !== words[at + offsets[i]!]) return false
    return true
  }

  /** Returns 0 if all characters are hexadecimal digits, or fit into one byte where the part is a text. */
  #readPart(text: string, from: number, part: KeyPart): number {
    const end = from + part.end - part.at
    return part.isHex
      ? packDigits(this.words, part.word, text, from, end)
      : pack(this.words, part.word, text, from, end)
  }

  #readText(text: string): boolean {
    if (text.length > TEXT_CHARACTERS_MAX) return false
    this.words[0] = text.length
    return pack(this.words, 1, text, 0, text.length) === 0
  }
}

const KEY_WORDS_MAX = 1 + 256

/** The longest text that is stored whole, an HTTP/2 fingerprint. A longer text matches no signature. */
export const TEXT_CHARACTERS_MAX = (KEY_WORDS_MAX - 1) * 4

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
  const count = wordsOf(form, parts, words, at)
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

/** Whether two keys are equal in these parts. They begin at `at` and at `otherAt`. */
export function isSameKey(
  form: KeyForm,
  parts: number,
  words: Int32Array,
  at: number,
  otherAt: number,
): boolean {
  const offsets = form.offsets[parts]!
  const count = wordsOf(form, parts, words, at)
  for (let i = 0; i < count; i++) if (words[at + offsets[i]!] !== words[otherAt + offsets[i]!]) return false
  return true
}

/** How many words of a key these parts take. */
function wordsOf(form: KeyForm, parts: number, words: Int32Array, at: number): number {
  return form.stride === 0 ? textWords(words[at]!) : form.offsets[parts]!.length
}

/** Writes hexadecimal digits as numbers, eight a word. Returns 0 if all characters are digits. */
function packDigits(words: Int32Array, firstWord: number, text: string, from: number, end: number): number {
  let wrong = 0
  let word = firstWord
  for (let at = from; at < end; word++) {
    const wordEnd = Math.min(end, at + 8)
    let number = 0
    for (; at < wordEnd; at++) {
      const code = text.charCodeAt(at)
      const digit = DIGITS[code & 0xff]!
      wrong |= (digit & NO_DIGIT) | (code >> 8)
      number = (number << 4) | digit
    }
    words[word] = number
  }
  return wrong
}

/** Writes characters side by side, four a word. Returns 0 if each fits into one byte. */
function pack(words: Int32Array, firstWord: number, text: string, from: number, end: number): number {
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
    words[word] = number
  }
  return wrong
}

const PARTS: Readonly<Record<PartsAlike, number>> = {
  a: 1,
  b: 2,
  c: 4,
  d: 8,
  a_b: 3,
  a_c: 5,
  a_d: 9,
  b_c: 6,
  b_d: 10,
  c_d: 12,
  a_b_c: 7,
  a_b_d: 11,
  a_c_d: 13,
  b_c_d: 14,
}

const NO_DIGIT = 16
const DIGITS = Uint8Array.from({ length: 256 }, (_, code) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(code))
  return digit < 0 ? NO_DIGIT : digit
})

interface WrittenForm {
  readonly type: FingerprintType
  /** The characters of each part. A negative length means hexadecimal digits. */
  readonly lengths: readonly number[]
  readonly order: readonly PartsAlike[]
  readonly telling: readonly PartsAlike[]
  readonly prefix?: string
  readonly separator?: string
}

function formOf({
  type,
  lengths,
  order,
  telling,
  prefix = '',
  separator = '_',
}: WrittenForm): Omit<KeyForm, 'number' | 'firstTable'> {
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
  if (parts[0]!.wordEnd === 0) return Uint16Array.from({ length: KEY_WORDS_MAX }, (_, word) => word)
  const has = parts.filter((_, i) => (set & (1 << i)) !== 0)
  return Uint16Array.from(
    has.flatMap(({ word, wordEnd }) => Array.from({ length: wordEnd - word }, (_, i) => word + i)),
  )
}

const WRITTEN: readonly WrittenForm[] = [
  {
    type: 'ja4',
    lengths: [10, -12, -12],
    // First both hashes, so that ALPN, SNI and transport may differ. Then all but the ciphers, then all but
    // the extensions.
    order: ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'],
    telling: ['b_c', 'a_c', 'a_b', 'c', 'b'],
  },
  {
    type: 'ja4s',
    lengths: [7, -4, -12],
    order: ['a_c', 'b_c', 'a_b', 'c', 'a', 'b'],
    telling: ['a_c', 'b_c', 'a_b'],
  },
  {
    type: 'ja4h',
    lengths: [12, -12, -12, -12],
    // Cookies depend more on the app than on the client.
    order: ['a_b_c', 'b_c_d', 'a_b_d', 'a_b', 'b_c', 'b_d', 'a_c_d', 'b', 'a_c', 'a_d', 'c_d', 'c', 'd', 'a'],
    telling: ['a_b_c', 'a_b', 'b'],
  },
  {
    type: 'ja4x',
    lengths: [-12, -12, -12],
    order: ['b_c', 'a_c', 'a_b', 'c', 'b', 'a'],
    telling: ['b_c', 'a_c', 'a_b', 'c'],
  },
  { type: 'stable', lengths: [10, -12, -12], order: [], telling: [], prefix: 'gs1-', separator: '-' },
  // Texts of any length, so no words are at fixed positions.
  { type: 'http2', lengths: [0], order: [], telling: [] },
]
const FORMS = WRITTEN.map(formOf)

/** In the order of an index. */
export const KEY_FORMS: readonly KeyForm[] = FORMS.map((form, number) => ({
  ...form,
  number,
  firstTable: FORMS.slice(0, number).reduce((tables, { whole }) => tables + whole + 1, 0),
}))

export const KEY_FORM_OF: Readonly<Record<FingerprintType, KeyForm>> = Object.fromEntries(
  KEY_FORMS.map((each) => [each.type, each]),
) as Record<FingerprintType, KeyForm>
