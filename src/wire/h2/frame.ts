// Frame types (RFC 9113 §6).
export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PUSH_PROMISE = 5
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9
/** RFC 9218 §7.1. */
export const PRIORITY_UPDATE = 16

// Flags.
export const END_STREAM = 0x1
export const ACK = 0x1
export const END_HEADERS = 0x4
export const PADDED = 0x8
export const HAS_PRIORITY = 0x20

// Error codes (§7).
export const NO_ERROR = 0
export const PROTOCOL_ERROR = 1
export const INTERNAL_ERROR = 2
export const FLOW_CONTROL_ERROR = 3
export const STREAM_CLOSED = 5
export const FRAME_SIZE_ERROR = 6
export const REFUSED_STREAM = 7
export const CANCEL = 8
export const COMPRESSION_ERROR = 9
export const ENHANCE_YOUR_CALM = 11

// Settings (§6.5.2).
export const HEADER_TABLE_SIZE = 1
export const ENABLE_PUSH = 2
export const MAX_CONCURRENT_STREAMS = 3
export const INITIAL_WINDOW_SIZE = 4
export const MAX_FRAME_SIZE = 5
export const MAX_HEADER_LIST_SIZE = 6
/** RFC 8441 §3. */
export const ENABLE_CONNECT_PROTOCOL = 8
/** RFC 9218 §2.1. */
export const NO_RFC7540_PRIORITIES = 9

export const FRAME_HEADER_BYTES = 9
/** The largest payload without the other side's permission for more (§4.2). */
export const FRAME_BYTES_MAX = 16_384
export const WINDOW_BYTES_DEFAULT = 65_535
/** The largest window and the largest stream number. The same bits hold both. */
export const U31_MAX = 0x7fff_ffff

/** Writes a frame header and returns where the payload begins. */
export function writeFrameHeader(
  bytes: Uint8Array,
  at: number,
  length: number,
  kind: { readonly type: number; readonly flags: number },
  stream: number,
): number {
  bytes[at] = length >>> 16
  bytes[at + 1] = length >>> 8
  bytes[at + 2] = length
  bytes[at + 3] = kind.type
  bytes[at + 4] = kind.flags
  return writeU32(bytes, at + 5, stream)
}

export function writeU32(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
  return at + 4
}

/** A stream number, a window increment and a dependency share their first bit with something else. */
export function u31At(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! & 0x7f) << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

export function u32At(bytes: Uint8Array, at: number): number {
  return u31At(bytes, at) + (bytes[at]! >>> 7) * 0x8000_0000
}
