/**
 * Parts of a whole whose length may become known later. Where parts overlap, the bytes that came first are
 * kept.
 */
export class Pieces {
  /** Sorted and not overlapping. */
  readonly #pieces: Piece[] = []

  /** Copies the new bytes. After `PIECES_MAX` pieces nothing more is kept. */
  add(offset: number, bytes: Uint8Array): void {
    const end = offset + bytes.length
    let at = offset
    for (let i = 0; at < end; i++) {
      const known = this.#pieces[i]
      const until = Math.min(end, known?.offset ?? end)
      if (at < until) {
        if (this.#pieces.length === PIECES_MAX) return
        this.#pieces.splice(i, 0, {
          offset: at,
          bytes: new Uint8Array(bytes.subarray(at - offset, until - offset)),
        })
        at = until
      } else {
        at = Math.max(at, known!.offset + known!.bytes.length)
      }
    }
  }

  /** The first `length` bytes, or `null` if some are missing. */
  join(length: number): Buffer | null {
    const parts: Uint8Array[] = []
    let filled = 0
    for (const { offset, bytes } of this.#pieces) {
      if (offset !== filled || filled >= length) break
      parts.push(bytes)
      filled += bytes.length
    }
    return filled < length ? null : Buffer.concat(parts, length)
  }
}

interface Piece {
  readonly offset: number
  readonly bytes: Uint8Array
}

/** 64 KiB in the smallest pieces that every path carries (576 bytes, RFC 791) is 120 pieces. */
const PIECES_MAX = 256
