/**
 * A bounds-checked cursor over untrusted bytes. A read past the end yields 0, empties the reader and clears
 * `ok`. So a parser reads straight through and checks `ok` once: no throw, and every `while (r.left > 0)`
 * loop ends.
 */
export class Reader {
  ok = true
  readonly #bytes: Uint8Array
  #at: number
  #end: number

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  get left(): number {
    return this.#end - this.#at
  }

  /** The position of the cursor in the bytes. */
  get at(): number {
    return this.#at
  }

  u8(): number {
    if (this.#end - this.#at < 1) return this.#fail()
    return this.#bytes[this.#at++]!
  }

  u16(): number {
    const at = this.#at
    if (this.#end - at < 2) return this.#fail()
    this.#at = at + 2
    return (this.#bytes[at]! << 8) | this.#bytes[at + 1]!
  }

  u24(): number {
    const at = this.#at
    if (this.#end - at < 3) return this.#fail()
    this.#at = at + 3
    return (this.#bytes[at]! << 16) | (this.#bytes[at + 1]! << 8) | this.#bytes[at + 2]!
  }

  u32(): number {
    return this.left < 4 ? this.#fail() : this.u16() * 0x1_0000 + this.u16()
  }

  /** All remaining bytes as 16-bit values. An odd byte at the end is a failure. */
  u16s(): number[] {
    const bytes = this.#bytes
    const end = this.#end - 1
    const values: number[] = []
    let at = this.#at
    for (; at < end; at += 2) values.push((bytes[at]! << 8) | bytes[at + 1]!)
    this.#at = at
    if (at === end) this.#fail()
    return values
  }

  skip(length: number): void {
    if (this.#end - this.#at < length) this.#fail()
    else this.#at += length
  }

  /** The next `length` bytes as a view, without a copy. */
  take(length: number): Uint8Array {
    const at = this.#at
    this.skip(length)
    return this.ok ? this.#bytes.subarray(at, at + length) : EMPTY
  }

  /** A reader over the next `length` bytes. If they are not all there, the new reader has already failed. */
  sub(length: number): Reader {
    const at = this.#at
    this.skip(length)
    const inner = new Reader(this.#bytes, at, this.#at)
    if (!this.ok) inner.#fail()
    return inner
  }

  /** All remaining bytes, one character a byte: bytes outside ASCII are kept, not decoded. */
  latin1(): string {
    let text = ''
    while (this.#at < this.#end) text += String.fromCharCode(this.#bytes[this.#at++]!)
    return text
  }

  #fail(): 0 {
    this.ok = false
    this.#at = this.#end
    return 0
  }
}

const EMPTY = Uint8Array.of()
