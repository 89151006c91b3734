import { hash } from 'node:crypto'
import { HELLO_BYTES_MAX } from '../wire/client-hello.ts'
import { GREASE, isLeftOut, type LeftOut } from './left-out.ts'

/**
 * The text a fingerprint hashes, written as bytes into one buffer that every call reuses: on the path of each
 * connection this costs a fifth of joining strings. A text is finished (`hash12` or `text`) before the next is begun.
 */
export class FingerprintText {
  #length = 0

  clear(): this {
    this.#length = 0
    return this
  }

  /** The values less those left out, as 4 hex digits each, in the order they have. */
  list(values: readonly number[], leftOut: LeftOut = GREASE): this {
    return this.#write(keepFirst(values, leftOut))
  }

  /** The same, in ascending order. */
  sorted(values: readonly number[], leftOut: LeftOut = GREASE): this {
    const kept = keepFirst(values, leftOut)
    sortFirst(kept)
    return this.#write(kept)
  }

  /** `_` in place of the comma before what follows. */
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

  /** Every value is written with a comma before it; the first one's is left out when reading. */
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
 * First 12 hex digits of the SHA-256, and zeros for nothing: never the hash of the empty text. `text` has one
 * character a byte, as headers are read, so bytes outside ASCII are hashed as they were sent.
 */
export function hash12(text: string): string {
  if (text === '') return NOTHING
  const ascii = Buffer.byteLength(text) === text.length
  return hash('sha256', ascii ? text : Buffer.from(text, 'latin1'), 'hex').slice(0, 12)
}

/** Puts the values kept into `KEPT`, and says how many they are. */
function keepFirst(values: readonly number[], leftOut: LeftOut): number {
  let kept = 0
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!
    if (!isLeftOut(value, leftOut)) KEPT[kept++] = value
  }
  return kept
}

/** Lists of a hello are short, where insertion beats the native sort by far; a hostile one must not make it quadratic. */
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
/** Room for every 16-bit value a hello of the largest size can hold, at 5 bytes each. */
const BYTES = Buffer.allocUnsafeSlow((HELLO_BYTES_MAX / 2 + 1) * 5)
/** The values being written. */
const KEPT = new Uint16Array(HELLO_BYTES_MAX / 2 + 1)
