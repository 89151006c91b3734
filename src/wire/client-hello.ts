import { Reader } from './reader.ts'

/**
 * What carries the handshake. The hello itself does not show it: a QUIC extension may also be sent over TCP.
 */
export type Transport = 'tcp' | 'quic' | 'dtls'

/** A ClientHello in wire order, with GREASE, duplicates and unknown numbers. */
export interface ClientHello {
  readonly legacyVersion: number
  readonly ciphers: readonly number[]
  readonly extensions: readonly number[]
  /** `null` if the extension is absent. Empty if it is present without a valid list. */
  readonly supportedVersions: readonly number[] | null
  readonly signatureAlgorithms: readonly number[]
  /** supported_groups. Each key share belongs to one of them (RFC 8446 §4.2.8). */
  readonly groups: readonly number[]
  /** Protocol names as bytes. */
  readonly alpn: readonly Uint8Array[]
  /** The requested host name. `null` if it was not sent; `extensions` may still contain the extension. */
  readonly serverName: string | null
  /** The client random, which identifies the connection in a key log. */
  readonly random: Uint8Array
}

export type Hello =
  | { readonly kind: 'client-hello'; readonly hello: ClientHello }
  | { readonly kind: 'malformed'; readonly fault: HelloFault }

export type HelloFault =
  /** The message is of another handshake type. */
  | 'wrong-type'
  /** A length reaches past the end. */
  | 'truncated'
  /** Bytes are left over inside the hello. */
  | 'trailing-data'
  /** The cipher list has an odd length. */
  | 'odd-list'
  /** Longer than `HELLO_BYTES_MAX`. */
  | 'too-long'
  /** DTLS: a single fragment instead of the whole hello. */
  | 'fragment'

/**
 * Parses one whole handshake message over TCP or QUIC; `record.ts` has joined the records. Bytes after the
 * message belong to the next message and are ignored.
 */
export function parseClientHello(message: Uint8Array): Hello {
  const outer = new Reader(message)
  if (outer.u8() !== CLIENT_HELLO) return malformed(message.length === 0 ? 'truncated' : 'wrong-type')
  const length = outer.u24()
  if (length > HELLO_BYTES_MAX) return malformed('too-long')
  return parseBody(message, outer.sub(length), false)
}

/**
 * Parses one whole DTLS handshake message with its 12-byte header (RFC 6347 §4.2.2), fragments already
 * joined.
 */
export function parseDtlsClientHello(message: Uint8Array): Hello {
  const outer = new Reader(message)
  if (outer.u8() !== CLIENT_HELLO) return malformed(message.length === 0 ? 'truncated' : 'wrong-type')
  const length = outer.u24()
  outer.skip(2) // message_seq
  const offset = outer.u24()
  const fragment = outer.u24()
  if (length > HELLO_BYTES_MAX) return malformed('too-long')
  if (!outer.ok) return malformed('truncated')
  if (offset !== 0 || fragment !== length) return malformed('fragment')
  return parseBody(message, outer.sub(length), true)
}

/** RFC 8446 §4.1.2. For DTLS with the cookie of RFC 6347 §4.2.1. */
function parseBody(message: Uint8Array, r: Reader, cookie: boolean): Hello {
  const legacyVersion = r.u16()
  const randomAt = r.at
  r.skip(32)
  r.skip(r.u8()) // legacy_session_id
  if (cookie) r.skip(r.u8())
  const ciphersLength = r.u16()
  if (ciphersLength % 2 === 1) return malformed('odd-list')
  const ciphers = r.sub(ciphersLength).u16s()
  r.skip(r.u8()) // legacy_compression_methods

  const extensions: number[] = []
  let supportedVersions: readonly number[] | null = null
  let signatureAlgorithms: readonly number[] | null = null
  let groups: readonly number[] | null = null
  let alpn: readonly Uint8Array[] | null = null
  let serverName: string | null = null

  // A hello may end here: SSL 3.0 and bare TLS 1.0 stacks send no extensions block.
  const block = r.left === 0 ? r : r.sub(r.u16())
  // Remaining bytes that are too few for an extension header are ignored.
  while (block.left >= EXTENSION_HEADER_BYTES) {
    const type = block.u16()
    const length = block.u16()
    extensions.push(type)
    // If an extension is repeated, the first one counts. If its body is malformed, only its type is kept.
    if (type === EXT_SERVER_NAME && serverName === null) serverName = readServerName(block.sub(length))
    else if (type === EXT_SIGNATURE_ALGORITHMS && signatureAlgorithms === null)
      signatureAlgorithms = readU16Vector(block.sub(length), 2)
    else if (type === EXT_SUPPORTED_GROUPS && groups === null) groups = readU16Vector(block.sub(length), 2)
    else if (type === EXT_ALPN && alpn === null) alpn = readAlpn(message, block.sub(length))
    else if (type === EXT_SUPPORTED_VERSIONS && supportedVersions === null)
      supportedVersions = readU16Vector(block.sub(length), 1)
    else block.skip(length)
  }
  if (!r.ok || !block.ok) return malformed('truncated')
  if (r.left > 0) return malformed('trailing-data')
  return {
    kind: 'client-hello',
    hello: {
      legacyVersion,
      ciphers,
      extensions,
      supportedVersions,
      signatureAlgorithms: signatureAlgorithms ?? NO_NUMBERS,
      groups: groups ?? NO_NUMBERS,
      alpn: alpn ?? NO_NAMES,
      serverName,
      random: message.subarray(randomAt, randomAt + 32),
    },
  }
}

/** RFC 6066 §3: the first entry of type host_name. */
function readServerName(body: Reader): string | null {
  const list = body.sub(body.u16())
  while (list.left > 0) {
    const type = list.u8()
    const name = list.sub(list.u16())
    if (!list.ok) return null
    if (type === 0) return name.left === 0 ? null : name.latin1()
  }
  return null
}

/** RFC 7301 §3.1. If the lengths do not fit, the list counts as empty. */
export function readAlpn(message: Uint8Array, body: Reader): readonly Uint8Array[] {
  const list = body.sub(body.u16())
  const names: Uint8Array[] = []
  while (list.left > 0) {
    const length = list.u8()
    const at = list.at
    list.skip(length)
    names.push(message.subarray(at, at + length))
  }
  return list.ok && body.left === 0 ? names : NO_NAMES
}

/**
 * A vector of 16-bit values after a length of `lengthBytes`. If the length does not fit, the list counts as
 * empty.
 */
function readU16Vector(body: Reader, lengthBytes: 1 | 2): readonly number[] {
  const length = lengthBytes === 1 ? body.u8() : body.u16()
  const list = body.sub(length)
  if (!list.ok || body.left > 0 || length % 2 === 1) return NO_NUMBERS
  return list.u16s()
}

function malformed(fault: HelloFault): Hello {
  return { kind: 'malformed', fault }
}

/**
 * The longest hello that is parsed: four times the longest seen in practice (16 kB, a test of s2n). It limits
 * what a peer can make us buffer.
 */
export const HELLO_BYTES_MAX = 65_536

export const CLIENT_HELLO = 1
export const EXTENSION_HEADER_BYTES = 4
export const EXT_SERVER_NAME = 0x0000
export const EXT_SUPPORTED_GROUPS = 0x000a
export const EXT_SIGNATURE_ALGORITHMS = 0x000d
export const EXT_ALPN = 0x0010
export const EXT_SUPPORTED_VERSIONS = 0x002b
const NO_NUMBERS: readonly number[] = []
const NO_NAMES: readonly Uint8Array[] = []
