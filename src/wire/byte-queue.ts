/**
 * Bytes that arrive in pieces and are read from the front. Appending copies only the new bytes, however small
 * the pieces are. A reader that keeps up copies nothing: the last chunk is only borrowed until `keep` is
 * called.
 */
export class ByteQueue {
  #bytes: Uint8Array = EMPTY
  #at = 0
  #end = 0
  /** Whether `#bytes` is our own buffer, not the caller's chunk. */
  #owned = false

  get length(): number {
    return this.#end - this.#at
  }

  /** Memory that the queue itself has allocated. */
  get heldBytes(): number {
    return this.#owned ? this.#bytes.length : 0
  }

  push(chunk: Uint8Array): void {
    if (this.#at === this.#end) {
      this.#bytes = chunk
      this.#at = 0
      this.#end = chunk.length
      this.#owned = false
      return
    }
    this.#reserve(chunk.length)
    this.#bytes.set(chunk, this.#end)
    this.#end += chunk.length
  }

  /** Call this when reading pauses: it copies the unread bytes and releases the caller's buffer. */
  keep(): void {
    if (this.#owned) return
    if (this.#at === this.#end) this.clear()
    else this.#reserve(0)
  }

  byteAt(index: number): number {
    return this.#bytes[this.#at + index]!
  }

  u16At(index: number): number {
    return (this.byteAt(index) << 8) | this.byteAt(index + 1)
  }

  u24At(index: number): number {
    return (this.byteAt(index) << 16) | this.u16At(index + 1)
  }

  /** The next `length` bytes as a view, valid until the next `push`. */
  take(length: number): Uint8Array {
    const at = this.#at
    this.#at += length
    return this.#bytes.subarray(at, this.#at)
  }

  skip(length: number): void {
    this.#at += length
  }

  /** All unread bytes, as a view. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#at, this.#end)
  }

  clear(): void {
    this.#bytes = EMPTY
    this.#at = 0
    this.#end = 0
    this.#owned = false
  }

  #reserve(more: number): void {
    const held = this.length
    if (this.#owned && this.#end + more <= this.#bytes.length) return
    const room = this.#owned && (held + more) * 2 <= this.#bytes.length ? this.#bytes : grown(held + more)
    room.set(this.rest(), 0)
    this.#bytes = room
    this.#at = 0
    this.#end = held
    this.#owned = true
  }
}

function grown(needed: number): Uint8Array {
  return new Uint8Array(Math.max(256, needed * 2))
}

const EMPTY = Uint8Array.of()
