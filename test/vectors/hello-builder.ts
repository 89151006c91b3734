/**
 * Builds hellos byte by byte, for vectors and property tests. It knows nothing of src/: what it writes is read
 * there, and a mistake made twice would cancel out.
 */
export type Transport = 'tcp' | 'quic' | 'dtls'

export interface Extension {
  readonly type: number
  readonly body: Uint8Array
}

/** A ClientHello; what is left out is plain. */
export interface HelloPlan {
  readonly legacyVersion?: number
  readonly sessionId?: Uint8Array
  /** Only DTLS has one. */
  readonly cookie?: Uint8Array
  readonly ciphers?: readonly number[]
  /** `null`: not even an empty block of them. */
  readonly extensions?: readonly Extension[] | null
}

/** RFC 8446 §4.1.2, in the handshake header of its transport. */
export function clientHello(plan: HelloPlan, transport: Transport = 'tcp'): Buffer {
  const { legacyVersion = 0x0303, sessionId = NONE, cookie = NONE, ciphers = [], extensions = [] } = plan
  const body = Buffer.concat([
    u16(legacyVersion),
    RANDOM,
    vector8(sessionId),
    ...(transport === 'dtls' ? [vector8(cookie)] : []),
    vector16(...ciphers.map(u16)),
    vector8(Buffer.of(0)), // compression methods: null
    ...(extensions === null ? [] : [extensionBlock(extensions)]),
  ])
  return handshakeMessage(1, body, transport)
}

export interface ServerHelloPlan {
  readonly legacyVersion?: number
  readonly random?: Uint8Array
  readonly cipher?: number
  readonly extensions?: readonly Extension[] | null
}

/** RFC 8446 §4.1.3. */
export function serverHello(plan: ServerHelloPlan, transport: Transport = 'tcp'): Buffer {
  const { legacyVersion = 0x0303, random = RANDOM, cipher = 0x1301, extensions = [] } = plan
  const body = Buffer.concat([
    u16(legacyVersion),
    random,
    vector8(NONE),
    u16(cipher),
    Buffer.of(0),
    ...(extensions === null ? [] : [extensionBlock(extensions)]),
  ])
  return handshakeMessage(2, body, transport)
}

/** RFC 5246 §7.4.2; with a context and extensions, RFC 8446 §4.4.2. */
export function certificateMessage(chain: readonly Uint8Array[], version: '12' | '13'): Buffer {
  return handshakeMessage(11, certificateBody(chain, version))
}

export function certificateBody(chain: readonly Uint8Array[], version: '12' | '13'): Buffer {
  if (version === '12') return vector24(...chain.map((der) => vector24(der)))
  return Buffer.concat([vector8(NONE), vector24(...chain.flatMap((der) => [vector24(der), vector16()]))])
}

/** `sequence` is DTLS's message_seq. */
export function handshakeMessage(
  type: number,
  body: Uint8Array,
  transport: Transport = 'tcp',
  sequence = 0,
): Buffer {
  const dtls = [u16(sequence), u24(0), u24(body.length)]
  return Buffer.concat([Buffer.of(type), u24(body.length), ...(transport === 'dtls' ? dtls : []), body])
}

export function extension(type: number, body: Uint8Array | string = NONE): Extension {
  return { type, body: typeof body === 'string' ? Buffer.from(body, 'hex') : body }
}

/** RFC 6066 §3: one name of type host_name. */
export function serverName(name: string): Extension {
  return extension(0x0000, vector16(Buffer.of(0), vector16(Buffer.from(name, 'latin1'))))
}

/** RFC 7301 §3.1. */
export function alpn(...protocols: readonly Uint8Array[]): Extension {
  return extension(0x0010, vector16(...protocols.map((name) => vector8(name))))
}

export function signatureAlgorithms(...algorithms: readonly number[]): Extension {
  return extension(0x000d, vector16(...algorithms.map(u16)))
}

export function supportedGroups(...groups: readonly number[]): Extension {
  return extension(0x000a, vector16(...groups.map(u16)))
}

export function supportedVersions(...versions: readonly number[]): Extension {
  return extension(0x002b, vector8(...versions.map(u16)))
}

/** A TLS record for each of `payloads`. */
export function records(payloads: readonly Uint8Array[], version = 0x0301, type = 22): Buffer[] {
  return payloads.map((payload) => Buffer.concat([Buffer.of(type), u16(version), vector16(payload)]))
}

/**
 * A DTLS message as datagrams of one record with one fragment each, cut where `sizes` says. `from` is the number of
 * the first record.
 */
export function dtlsDatagrams(message: Uint8Array, sizes: readonly number[] = [], from = 0): Buffer[] {
  const [header, body] = [message.subarray(0, 6), message.subarray(12)]
  let offset = 0
  return pieces(body, sizes).map((piece, index) => {
    const fragment = Buffer.concat([header, u24(offset), u24(piece.length), piece])
    offset += piece.length
    return dtlsRecord(fragment, from + index)
  })
}

export function dtlsRecord(fragment: Uint8Array, sequence: number): Buffer {
  return Buffer.concat([Buffer.of(22), u16(0xfefd), u16(0), u24(0), u24(sequence), vector16(fragment)])
}

/** `bytes` cut into pieces of these sizes; what is left over is the last one. */
export function pieces(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const cut: Uint8Array[] = []
  let at = 0
  for (const size of sizes) {
    cut.push(bytes.subarray(at, at + size))
    at += size
  }
  if (at < bytes.length) cut.push(bytes.subarray(at))
  return cut
}

/** `bytes` cut into pieces of one size. */
export function every(size: number, bytes: Uint8Array): Uint8Array[] {
  return pieces(bytes, new Array<number>(Math.ceil(bytes.length / size) - 1).fill(size))
}

function extensionBlock(extensions: readonly Extension[]): Buffer {
  return vector16(...extensions.map(({ type, body }) => Buffer.concat([u16(type), vector16(body)])))
}

export function vector8(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.of(body.length), body])
}

export function vector16(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([u16(body.length), body])
}

export function vector24(...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts)
  return Buffer.concat([u24(body.length), body])
}

export function u16(value: number): Buffer {
  return Buffer.of(value >> 8, value)
}

export function u24(value: number): Buffer {
  return Buffer.of(value >> 16, value >> 8, value)
}

const NONE = Buffer.alloc(0)
const RANDOM = Buffer.from(Array.from({ length: 32 }, (_, index) => index))
