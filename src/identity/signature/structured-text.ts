import {
  type BareItem,
  type Dictionary,
  type InnerList,
  isInnerList,
  type Item,
  type Parameters,
  parseDictionary,
  serializeBareItem,
} from 'structured-headers'

/**
 * Parses a dictionary (RFC 9651 §3.2) like parseDictionary, or throws. parseDictionary runs regular
 * expressions on each character. The text that nearly all signers write is parsed here in a fifth of the
 * time; other text goes to parseDictionary.
 */
export function readDictionary(text: string): Dictionary {
  return new UsualText(text).dictionary() ?? parseDictionary(text)
}

/**
 * The same, but throws if a name occurs twice. Parsers silently use the last value, while another program may
 * have used the first.
 */
export function readDistinctDictionary(text: string): Dictionary {
  const usual = new UsualText(text).dictionary()
  if (usual !== null) return usual
  const dictionary = parseDictionary(text)
  if (!hasAllOf(text, dictionary)) throw new Error('something is in it twice')
  return dictionary
}

/** Like serializeInnerList, for a parsed value: its keys need no second validation. */
export function innerListText([items, parameters]: InnerList): string {
  let text = '('
  for (const item of items) text += text.length === 1 ? itemText(item) : ` ${itemText(item)}`
  return `${text})${parametersText(parameters)}`
}

/** Like serializeItem, for a parsed value. */
export function itemText([value, parameters]: Item): string {
  return bareText(value) + parametersText(parameters)
}

/**
 * Parses common text only: unique keys, strings without escapes, byte sequences, integers, and single blanks.
 */
class UsualText {
  readonly #text: string
  #at = 0
  #isUsual = true

  constructor(text: string) {
    this.#text = text
  }

  /** `null`: the text contains something else, valid or not. */
  dictionary(): Dictionary | null {
    const members: Dictionary = new Map()
    while (this.#isUsual) {
      const key = this.#key()
      this.#expect(EQUALS)
      const member = this.#peek() === OPEN ? this.#innerList() : this.#item()
      if (members.has(key)) this.#isUsual = false
      members.set(key, member)
      if (this.#at === this.#text.length) return this.#isUsual ? members : null
      this.#expect(COMMA)
      if (this.#peek() === BLANK) this.#at++
    }
    return null
  }

  #innerList(): InnerList {
    const items: Item[] = []
    this.#at++
    while (this.#isUsual && this.#peek() !== CLOSE) {
      if (items.length > 0) this.#expect(BLANK)
      items.push(this.#item())
    }
    this.#at++
    return [items, this.#parameters()]
  }

  #item(): Item {
    return [this.#bare(), this.#parameters()]
  }

  #parameters(): Parameters {
    const parameters: Parameters = new Map()
    while (this.#isUsual && this.#peek() === SEMICOLON) {
      this.#at++
      const key = this.#key()
      let value: BareItem = true
      if (this.#peek() === EQUALS) {
        this.#at++
        value = this.#bare()
      }
      if (parameters.has(key)) this.#isUsual = false
      parameters.set(key, value)
    }
    return parameters
  }

  #bare(): BareItem {
    switch (this.#peek()) {
      case QUOTE:
        return this.#string()
      case COLON:
        return this.#bytes()
      default:
        return this.#integer()
    }
  }

  #string(): string {
    const start = ++this.#at
    while (isIn(this.#peek(), STRING)) this.#at++
    const value = this.#text.slice(start, this.#at)
    this.#expect(QUOTE)
    return value
  }

  /** Accepts canonical base64 only. */
  #bytes(): ArrayBuffer {
    const start = ++this.#at
    const end = this.#text.indexOf(':', start)
    const written = this.#text.slice(start, end === -1 ? start : end)
    const bytes = Buffer.from(written, 'base64')
    if (end === -1 || bytes.toString('base64') !== written) this.#isUsual = false
    this.#at = end + 1
    const own = new ArrayBuffer(bytes.length)
    new Uint8Array(own).set(bytes)
    return own
  }

  #integer(): number {
    const start = this.#at
    let value = 0
    for (let code = this.#peek(); code >= ZERO && code <= NINE; code = this.#peek()) {
      value = value * 10 + code - ZERO
      this.#at++
    }
    const digits = this.#at - start
    if (digits === 0 || digits > DIGITS_MAX || this.#peek() === PERIOD) this.#isUsual = false
    return value
  }

  #key(): string {
    const start = this.#at
    if (isIn(this.#peek(), KEY_START)) while (isIn(this.#peek(), KEY)) this.#at++
    if (this.#at === start) this.#isUsual = false
    return this.#text.slice(start, this.#at)
  }

  #expect(code: number): void {
    if (this.#peek() === code) this.#at++
    else this.#isUsual = false
  }

  /** NaN at the end. */
  #peek(): number {
    return this.#text.charCodeAt(this.#at)
  }
}

/**
 * Whether the parsed dictionary has as many members and parameters as the text, so that no duplicate was
 * dropped.
 */
function hasAllOf(text: string, dictionary: Dictionary): boolean {
  let parameters = 0
  for (const member of dictionary.values()) {
    parameters += member[1].size
    if (isInnerList(member)) for (const [, each] of member[0]) parameters += each.size
  }
  const { commas, semicolons } = separators(text)
  return commas === Math.max(0, dictionary.size - 1) && semicolons === parameters
}

/** Counts separators outside of strings. In a structured field only strings can contain them as text. */
function separators(text: string): { readonly commas: number; readonly semicolons: number } {
  const counts = { commas: 0, semicolons: 0 }
  let isString = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]
    if (isString && character === '\\') i++
    else if (character === '"') isString = !isString
    else if (!isString && character === ',') counts.commas++
    else if (!isString && character === ';') counts.semicolons++
  }
  return counts
}

function parametersText(parameters: Parameters): string {
  let text = ''
  for (const [key, value] of parameters) text += value === true ? `;${key}` : `;${key}=${bareText(value)}`
  return text
}

function bareText(value: BareItem): string {
  const isPlain = typeof value === 'string' && !value.includes('"') && !value.includes('\\')
  return isPlain ? `"${value}"` : serializeBareItem(value)
}

function isIn(code: number, kind: number): boolean {
  return code < 128 && (KINDS[code]! & kind) !== 0
}

const EQUALS = 0x3d
const COMMA = 0x2c
const BLANK = 0x20
const OPEN = 0x28
const CLOSE = 0x29
const SEMICOLON = 0x3b
const QUOTE = 0x22
const COLON = 0x3a
const PERIOD = 0x2e
const ZERO = 0x30
const NINE = 0x39
/** RFC 9651 §3.3.1. */
const DIGITS_MAX = 15

const KEY_START = 1
const KEY = 2
const STRING = 4
const KINDS = new Uint8Array(128)
mark('abcdefghijklmnopqrstuvwxyz*', KEY_START | KEY)
mark('0123456789_-.', KEY)
// All printable characters except `"` and `\`.
for (let code = 0x20; code < 0x7f; code++) if (code !== QUOTE && code !== 0x5c) KINDS[code]! |= STRING

function mark(characters: string, kind: number): void {
  for (const character of characters) KINDS[character.charCodeAt(0)]! |= kind
}
