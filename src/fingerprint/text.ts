import { hash } from 'node:crypto'
import { GREASE, isLeftOut, type LeftOut } from './left-out.ts'

/**
 * The text that a fingerprint hashes. It is written as bytes into a buffer that is reused, which costs a
 * fifth of joining strings; every connection needs it. Finish one text (`hash12` or `text`) before beginning
 * the next. One instance serves any number of hellos.
 */
export class FingerprintText {
  #length = 0
  #bytes = Buffer.alloc(VALUES * VALUE_BYTES)
  /** The values about to be written. */
  #kept = new Uint16Array(VALUES)
  #lastValues: readonly number[] | null = null
  #lastHash = ''

  clear(): this {
    this.#length = 0
    return this
  }

  /** Appends the values except those left out, 4 hex digits each, in the given order. */
  list(values: readonly number[], leftOut: LeftOut = GREASE): this {
    return this.#write(this.#keepFirst(values, leftOut))
  }

  /** Like `list`, but in ascending order. */
  sorted(values: readonly number[], leftOut: LeftOut = GREASE): this {
    const count = this.#keepFirst(values, leftOut)
    sortFirst(this.#kept, count)
    return this.#write(count)
  }

  /** Like `list`, but with `_` instead of the comma before the first value. */
  section(values: readonly number[]): this {
    const at = this.#length
    this.list(values)
    if (this.#length > at) this.#bytes[at] = UNDERSCORE
    return this
  }

  text(): string {
    return this.#bytes.toString('latin1', FIRST, this.#length)
  }

  hash12(): string {
    if (this.#length === 0) return NOTHING
    return hash('sha256', this.#bytes.subarray(FIRST, this.#length), 'hex').slice(0, 12)
  }

  /** The hash of the sorted values alone. It is kept for the last list, because a hello needs it twice or more. */
  hashSorted(values: readonly number[]): string {
    if (values !== this.#lastValues) {
      this.#lastHash = this.clear().sorted(values).hash12()
      this.#lastValues = values
    }
    return this.#lastHash
  }

  /** Copies the values that are not left out into `#kept` and returns their number. */
  #keepFirst(values: readonly number[], leftOut: LeftOut): number {
    if (values.length > this.#kept.length) this.#kept = new Uint16Array(values.length)
    const kept = this.#kept
    let count = 0
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!
      if (!isLeftOut(value, leftOut)) kept[count++] = value
    }
    return count
  }

  /** Writes a comma before every value. `text` and `hash12` skip the first comma. */
  #write(count: number): this {
    let at = this.#length
    const end = at + count * VALUE_BYTES
    if (end > this.#bytes.length) this.#bytes = Buffer.concat([this.#bytes], end * 2)
    const bytes = this.#bytes
    const kept = this.#kept
    for (let i = 0; i < count; i++) {
      const value = kept[i]!
      bytes[at] = COMMA
      bytes[at + 1] = HEX.charCodeAt(value >> 12)
      bytes[at + 2] = HEX.charCodeAt((value >> 8) & 15)
      bytes[at + 3] = HEX.charCodeAt((value >> 4) & 15)
      bytes[at + 4] = HEX.charCodeAt(value & 15)
      at += VALUE_BYTES
    }
    this.#length = at
    return this
  }
}

/**
 * The first 12 hex digits of the SHA-256. For the empty text it is zeros, never the hash. `text` has one
 * character a byte, like parsed headers, so bytes outside ASCII are hashed as sent.
 */
export function hash12(text: string): string {
  if (text === '') return NOTHING
  const ascii = Buffer.byteLength(text) === text.length
  return hash('sha256', ascii ? text : Buffer.from(text, 'latin1'), 'hex').slice(0, 12)
}

/**
 * The lists of a real hello are short, and insertion sort is far faster than the native sort there. A hostile
 * list must not make it quadratic.
 */
function sortFirst(kept: Uint16Array, count: number): void {
  if (count > INSERTION_MAX) {
    kept.subarray(0, count).sort()
    return
  }
  for (let i = 1; i < count; i++) {
    const value = kept[i]!
    let at = i
    while (at > 0 && kept[at - 1]! > value) {
      kept[at] = kept[at - 1]!
      at--
    }
    kept[at] = value
  }
}

const NOTHING = '000000000000'

const INSERTION_MAX = 64
const FIRST = 1
const COMMA = 0x2c
const UNDERSCORE = 0x5f
const HEX = '0123456789abcdef'
/** `,1301`. */
const VALUE_BYTES = 5
/** Enough for the hello of a client that is not hostile. */
const VALUES = 256
