import { Reader } from './reader.ts'

/**
 * The number of fields in an HPACK block (RFC 7541 §6). It skips the strings, so it needs neither a decoder
 * nor a dynamic table. `null` if the block is malformed.
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

/** The part of a HEADERS payload that belongs to the header block (RFC 9113 §6.2). */
export function blockFragment(payload: Uint8Array, flags: number): Uint8Array | null {
  const r = new Reader(payload)
  const padding = flags & PADDED ? r.u8() : 0
  if (flags & PRIORITY) r.skip(5)
  return r.ok && padding <= r.left ? r.take(r.left - padding) : null
}

/** RFC 7541 §5.1. An integer that is too long yields infinity, which is invalid as index, length and size. */
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

/** Enough for every valid length. */
const INTEGER_BITS_MAX = 28

// The first byte of a field (RFC 7541 §6).
export const INDEXED = 0x80
export const LITERAL_WITH_INDEXING = 0x40
export const SIZE_UPDATE = 0x20

/** A flag of HEADERS and CONTINUATION. */
export const END_HEADERS = 0x4
// Flags of HEADERS.
const PADDED = 0x8
const PRIORITY = 0x20
