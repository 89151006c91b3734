/** HTTP/2 written by hand, so that it can be written wrong. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

export function frame(type: number, flags: number, stream: number, payload: Uint8Array = NOTHING): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function settings(...entries: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(entries.length * 6)
  for (const [index, [id, value]] of entries.entries()) {
    payload.writeUInt16BE(id, index * 6)
    payload.writeUInt32BE(value, index * 6 + 2)
  }
  return frame(4, 0, 0, payload)
}

export function windowUpdate(increment: number, stream = 0): Buffer {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(increment)
  return frame(8, 0, stream, payload)
}

export function priority(stream: number, dependency: number, weight: number, exclusive = false): Buffer {
  const payload = Buffer.alloc(5)
  payload.writeUInt32BE(dependency)
  if (exclusive) payload[0]! |= 0x80
  payload[4] = weight
  return frame(2, 0, stream, payload)
}

/** All fields as literals without indexing (RFC 7541 §6.2.2), which any encoder may do. */
export function headers(
  stream: number,
  fields: readonly string[],
  { hasEnded = true, isWhole = true }: { hasEnded?: boolean; isWhole?: boolean } = {},
): Buffer {
  return frame(1, (hasEnded ? 1 : 0) | (isWhole ? 4 : 0), stream, fieldBlock(fields))
}

export function fieldBlock(fields: readonly string[]): Buffer {
  const parts: Buffer[] = []
  for (let i = 0; i < fields.length; i += 2)
    parts.push(Buffer.of(0), literal(fields[i]!), literal(fields[i + 1]!))
  return Buffer.concat(parts)
}

export function data(stream: number, payload: string | Uint8Array, hasEnded = true): Buffer {
  return frame(0, hasEnded ? 1 : 0, stream, Buffer.from(payload as string, 'latin1'))
}

/** A GET for `/`, with other fields in place of these, or after them. */
export function getRequest(
  changes: Readonly<Record<string, string | null>> = {},
  ...more: readonly string[]
): string[] {
  const fields = { ':method': 'GET', ':scheme': 'https', ':authority': 'a', ':path': '/', ...changes }
  const list = Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [name, value]))
  return [...list, ...more]
}

export interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** The whole frames in what a server has sent. */
export function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at + 9 <= bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    if (end > bytes.length) break
    const stream = bytes.readUInt32BE(at + 5)
    frames.push({ type: bytes[at + 3]!, flags: bytes[at + 4]!, stream, payload: bytes.subarray(at + 9, end) })
    at = end
  }
  return frames
}

/** HPACK's integer of 7 bits, and the bytes without Huffman coding. */
function literal(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1')
  const length: number[] = []
  if (bytes.length < 127) length.push(bytes.length)
  else {
    length.push(127)
    let rest = bytes.length - 127
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128)
    length.push(rest)
  }
  return Buffer.concat([Buffer.from(length), bytes])
}

const NOTHING = Buffer.alloc(0)
