import { hash } from 'node:crypto'
import { HELLO_BYTES_MAX } from '../wire/client-hello.ts'
import { GREASE, isLeftOut, type LeftOut } from './left-out.ts'

/**
 * The text that a fingerprint hashes. It is written as bytes into one buffer that all calls share, which
 * costs a fifth of joining strings; every connection needs it. Finish one text (`hash12` or `text`) before
 * beginning the next.
 */
export class FingerprintText {
  #length = 0

  clear(): this {
    this.#length = 0
    return this
  }

  /** Appends the values except those left out, 4 hex digits each, in the given order. */
  list(values: readonly number[], leftOut: LeftOut = GREASE): this {
    return this.#write(keepFirst(values, leftOut))
  }

  /** Like `list`, but in ascending order. */
  sorted(values: readonly number[], leftOut: LeftOut = GREASE): this {
    const kept = keepFirst(values, leftOut)
    sortFirst(kept)
    return this.#write(kept)
  }

  /** Like `list`, but with `_` instead of the comma before the first value. */
  section(values: readonly number[]): this {
    const at = this.#length
    this.list(values)
    if (this.#length > at) BYTES[at] = UNDERSCORE
    return this
  }

  text(): string {
    return BYTES.toString('latin1', FIRST, this.#length)
  }

  hash12(): string {
    if (this.#length === 0) return NOTHING
    return hash('sha256', BYTES.subarray(FIRST, this.#length), 'hex').slice(0, 12)
  }

  /** Writes a comma before every value. `text` and `hash12` skip the first comma. */
  #write(count: number): this {
    let at = this.#length
    for (let i = 0; i < count; i++) {
      const value = KEPT[i]!
      BYTES[at] = COMMA
      BYTES[at + 1] = HEX[value >> 12]!
      BYTES[at + 2] = HEX[(value >> 8) & 15]!
      BYTES[at + 3] = HEX[(value >> 4) & 15]!
      BYTES[at + 4] = HEX[value & 15]!
      at += 5
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

/** Copies the values that are not left out into `KEPT` and returns their number. */
function keepFirst(values: readonly number[], leftOut: LeftOut): number {
  let kept = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    if (!isLeftOut(value, leftOut)) KEPT[kept++] = value
  }
  return kept
}

/**
 * The lists of a real hello are short, and insertion sort is far faster than the native sort there. A hostile
 * list must not make it quadratic.
 */
function sortFirst(count: number): void {
  if (count > INSERTION_MAX) {
    KEPT.subarray(0, count).sort()
    return
  }
  for (let i = 1; i < count; i++) {
    const value = KEPT[i]!
    let at = i
    while (at > 0 && KEPT[at - 1]! > value) {
      KEPT[at] = KEPT[at - 1]!
      at--
    }
    KEPT[at] = value
  }
}

const NOTHING = '000000000000'

const INSERTION_MAX = 64
const FIRST = 1
const COMMA = 0x2c
const UNDERSCORE = 0x5f
const HEX = Buffer.from('0123456789abcdef')
/** Enough for all 16-bit values of a hello of the largest size, at 5 bytes each. */
const BYTES = Buffer.allocUnsafeSlow((HELLO_BYTES_MAX / 2 + 1) * 5)
/** The values about to be written. */
const KEPT = new Uint16Array(HELLO_BYTES_MAX / 2 + 1)
