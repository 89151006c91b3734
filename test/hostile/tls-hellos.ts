import { randomBytes } from 'node:crypto'

/** ClientHellos written by hand, so that they can be written wrong. */
export interface HelloPlan {
  readonly legacyVersion?: number
  readonly sessionId?: Buffer
  readonly ciphers?: Buffer
  readonly compressions?: Buffer
  readonly extensions?: readonly Extension[] | null
}

export type Extension = readonly [type: number, body: Piece]

/** Bytes, or a list with its length before it in so many bytes. */
export type Piece = Buffer | Sized | readonly Piece[]

export interface Sized {
  readonly size: 1 | 2 | 3
  readonly body: Piece
}

/** Where a length stands. */
export interface Length {
  readonly at: number
  readonly size: number
}

export const SERVER_NAME = 'localhost'

export function sized(size: Sized['size'], ...body: readonly Piece[]): Sized {
  return { size, body }
}

export function u16(...values: readonly number[]): Buffer {
  return Buffer.concat(values.map((value) => Buffer.of(value >> 8, value & 0xff)))
}

export function serverName(name: string | Buffer, type = 0): Piece {
  return sized(2, Buffer.of(type), sized(2, Buffer.from(name as string, 'latin1')))
}

/** What a client of TLS 1.3 sends that also speaks 1.2. */
export function usualExtensions(): Extension[] {
  return [
    [0x0000, serverName(SERVER_NAME)],
    [0x0017, []],
    [0x000a, sized(2, u16(0x001d, 0x0017))],
    [0x000b, sized(1, Buffer.of(0))],
    [0x000d, sized(2, u16(0x0403, 0x0804, 0x0401))],
    [0x0010, sized(2, sized(1, Buffer.from('h2')), sized(1, Buffer.from('http/1.1')))],
    [0x002b, sized(1, u16(0x0304, 0x0303))],
    [0x002d, sized(1, Buffer.of(1))],
    [0x0033, sized(2, u16(0x001d), sized(2, randomBytes(32)))],
  ]
}

/** The same with other extensions in place of those of their type, or behind them. */
export function changed(...changes: readonly Extension[]): Extension[] {
  const rest = new Map(changes)
  const list = usualExtensions().map(([type, body]): Extension => {
    const other = rest.get(type)
    rest.delete(type)
    return [type, other ?? body]
  })
  return [...list, ...rest]
}

export function without(...types: readonly number[]): Extension[] {
  return usualExtensions().filter(([type]) => !types.includes(type))
}

/** The handshake message. */
export function helloPiece({
  legacyVersion = 0x0303,
  sessionId = randomBytes(32),
  ciphers = u16(0x1301, 0x1302, 0xc02b, 0xc02f),
  compressions = Buffer.of(0),
  extensions = usualExtensions(),
}: HelloPlan = {}): Piece {
  const block =
    extensions === null
      ? []
      : [sized(2, ...extensions.map(([type, body]): Piece => [u16(type), sized(2, body)]))]
  const [session, suites, methods] = [sized(1, sessionId), sized(2, ciphers), sized(1, compressions)]
  return [Buffer.of(1), sized(3, u16(legacyVersion), randomBytes(32), session, suites, methods, block)]
}

export function helloMessage(plan: HelloPlan = {}): Buffer {
  return written(helloPiece(plan))
}

export function record(
  payload: Buffer,
  { type = 22, version = 0x0301, length = payload.length } = {},
): Buffer {
  return Buffer.concat([Buffer.of(type), u16(version, length), payload])
}

/** In as many records as it takes when each has `size` bytes of it. */
export function records(message: Buffer, size = 16_384): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; at < message.length; at += size) parts.push(record(message.subarray(at, at + size)))
  return Buffer.concat(parts)
}

/** Every length in a hello and its record, however deep. */
export function lengthsOf(piece: Piece): Length[] {
  const found: Length[] = []
  written(piece, found)
  return found
}

export function written(piece: Piece, found: Length[] = [], at = 0): Buffer {
  if (Buffer.isBuffer(piece)) return piece
  if ('size' in piece) {
    found.push({ at, size: piece.size })
    const body = written(piece.body, found, at + piece.size)
    const length = Buffer.alloc(piece.size)
    length.writeUIntBE(body.length, 0, piece.size)
    return Buffer.concat([length, body])
  }
  const parts: Buffer[] = []
  let end = at
  for (const each of piece) {
    const part = written(each, found, end)
    parts.push(part)
    end += part.length
  }
  return Buffer.concat(parts)
}

/** The same bytes with another length in one place. */
export function lied(bytes: Buffer, { at, size }: Length, change: (length: number) => number): Buffer {
  const copy = Buffer.from(bytes)
  const most = 2 ** (8 * size) - 1
  copy.writeUIntBE(Math.min(most, Math.max(0, change(copy.readUIntBE(at, size)))), at, size)
  return copy
}
