/** The bytes of a JSON value in a longer text. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Finds the value of a member of a JSON object without parsing the object; of several members with this name, the last. `null`:
 * the member is missing. Does not check the JSON: what is parsed from the result may be invalid.
 */
export function memberRange(bytes: Uint8Array, name: string): ByteRange | null {
  const wanted = new TextEncoder().encode(JSON.stringify(name))
  let found: ByteRange | null = null
  let at = afterBlank(bytes, 0)
  if (bytes[at] !== OPEN_BRACE) return null
  for (at = afterBlank(bytes, at + 1); bytes[at] === QUOTE; at = afterBlank(bytes, at + 1)) {
    const nameEnd = stringEnd(bytes, at)
    const isWanted =
      nameEnd - at === wanted.length && wanted.every((byte, index) => bytes[at + index] === byte)
    const colon = afterBlank(bytes, nameEnd)
    const start = afterBlank(bytes, colon + 1)
    const end = valueEnd(bytes, start)
    if (isWanted) found = { start, end }
    at = afterBlank(bytes, end)
    if (bytes[at] !== COMMA) break
  }
  return found
}

/** Finds the items of a JSON list, one by one, without parsing them. Throws a SyntaxError where a comma is missing. */
export function* itemRanges(bytes: Uint8Array, list: ByteRange): Generator<ByteRange> {
  let at = afterBlank(bytes, list.start + 1)
  while (at < list.end - 1) {
    const end = valueEnd(bytes, at)
    yield { start: at, end }
    at = afterBlank(bytes, end)
    if (at === list.end - 1) return
    if (bytes[at] !== COMMA) throw new SyntaxError(`a comma is missing at byte ${at}`)
    at = afterBlank(bytes, at + 1)
  }
}

function valueEnd(bytes: Uint8Array, start: number): number {
  let depth = 0
  for (let at = start; at < bytes.length; ) {
    const byte = bytes[at]!
    if (byte === QUOTE) {
      at = stringEnd(bytes, at)
      if (depth === 0) return at
      continue
    }
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (depth === 0) return at // of the object around a number
      if (--depth === 0) return at + 1
    } else if (depth === 0 && (byte === COMMA || byte <= BLANK)) return at
    at++
  }
  return bytes.length
}

/** `start`: of its first quote. */
function stringEnd(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === BACKSLASH) at++
    else if (byte === QUOTE) return at + 1
  }
  return bytes.length
}

function afterBlank(bytes: Uint8Array, start: number): number {
  let at = start
  while (at < bytes.length && bytes[at]! <= BLANK) at++
  return at
}

const BLANK = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
