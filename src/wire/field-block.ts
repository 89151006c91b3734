import { Reader } from './reader.ts'

/**
 * How many fields a block of HPACK has (RFC 7541 §6). The strings are passed over unread, so that this takes neither a
 * decoder nor its dynamic table. `null` for what is not a block.
 */
export function countFields(block: Uint8Array): number | null {
  const r = new Reader(block)
  let count = 0
  while (r.left > 0) {
    const first = r.u8()
    if (first >= SIZE_UPDATE && first < LITERAL_WITH_INDEXING) {
      readInteger(r, first, 5)
      continue
    }
    count++
    if (first >= INDEXED) {
      readInteger(r, first, 7)
      continue
    }
    const index = readInteger(r, first, first >= LITERAL_WITH_INDEXING ? 6 : 4)
    if (index === 0) skipString(r)
    skipString(r)
  }
  return r.ok ? count : null
}

/** The part of the payload of a HEADERS frame that belongs to its block (RFC 9113 §6.2). */
export function blockFragment(payload: Uint8Array, flags: number): Uint8Array | null {
  const r = new Reader(payload)
  const padding = flags & PADDED ? r.u8() : 0
  if (flags & PRIORITY) r.skip(5)
  return r.ok && padding <= r.left ? r.take(r.left - padding) : null
}

/** §5.1. One that is too long is given as infinite: no index, no length and no size can be that. */
export function readInteger(r: Reader, first: number, prefixBits: number): number {
  const prefixMax = (1 << prefixBits) - 1
  let value = first & prefixMax
  if (value < prefixMax) return value
  for (let shift = 0; shift < INTEGER_BITS_MAX; shift += 7) {
    const byte = r.u8()
    value += (byte & 0x7f) << shift
    if (byte < 0x80) return value
  }
  return Number.POSITIVE_INFINITY
}

function skipString(r: Reader): void {
  r.skip(readInteger(r, r.u8(), 7))
}

/** Enough for all lengths that there can be. */
const INTEGER_BITS_MAX = 28

// The first byte of a field, §6.
export const INDEXED = 0x80
export const LITERAL_WITH_INDEXING = 0x40
export const SIZE_UPDATE = 0x20

/** In the flags of HEADERS and CONTINUATION. */
export const END_HEADERS = 0x4
// In those of HEADERS.
const PADDED = 0x8
const PRIORITY = 0x20
