import { EXT_ALPN, EXT_SUPPORTED_VERSIONS, EXTENSION_HEADER_BYTES, readAlpn } from './client-hello.ts'
import { Reader } from './reader.ts'

/** A ServerHello, or a HelloRetryRequest, which has the same form (RFC 8446 §4.1.4). */
export interface ServerHello {
  readonly legacyVersion: number
  readonly cipher: number
  /** In wire order, as sent. */
  readonly extensions: readonly number[]
  /** The version selected in supported_versions. `null` without the extension. */
  readonly selectedVersion: number | null
  /** The selected protocol, unless it is hidden in EncryptedExtensions. */
  readonly alpn: Uint8Array | null
  readonly helloRetryRequest: boolean
  readonly random: Uint8Array
}

export type ServerHelloRead =
  | { readonly kind: 'server-hello'; readonly hello: ServerHello }
  | { readonly kind: 'malformed'; readonly fault: ServerHelloFault }

export type ServerHelloFault = 'wrong-type' | 'truncated' | 'trailing-data' | 'fragment'

/**
 * Parses one whole handshake message over TCP or QUIC. Bytes after the message belong to the next message and
 * are ignored.
 */
export function parseServerHello(message: Uint8Array): ServerHelloRead {
  const outer = new Reader(message)
  if (outer.u8() !== SERVER_HELLO) return malformed(message.length === 0 ? 'truncated' : 'wrong-type')
  return parseBody(message, outer.sub(outer.u24()))
}

/** Parses one whole DTLS handshake message with its 12-byte header. */
export function parseDtlsServerHello(message: Uint8Array): ServerHelloRead {
  const outer = new Reader(message)
  if (outer.u8() !== SERVER_HELLO) return malformed(message.length === 0 ? 'truncated' : 'wrong-type')
  const length = outer.u24()
  outer.skip(2) // message_seq
  const offset = outer.u24()
  const fragment = outer.u24()
  if (!outer.ok) return malformed('truncated')
  if (offset !== 0 || fragment !== length) return malformed('fragment')
  return parseBody(message, outer.sub(length))
}

function parseBody(message: Uint8Array, r: Reader): ServerHelloRead {
  const legacyVersion = r.u16()
  const randomAt = r.at
  r.skip(32)
  r.skip(r.u8()) // legacy_session_id_echo
  const cipher = r.u16()
  r.skip(1) // legacy_compression_method

  const extensions: number[] = []
  let selectedVersion: number | null = null
  let alpn: Uint8Array | null = null
  const block = r.left === 0 ? r : r.sub(r.u16())
  // Remaining bytes that are too few for an extension header are ignored.
  while (block.left >= EXTENSION_HEADER_BYTES) {
    const type = block.u16()
    const body = block.sub(block.u16())
    extensions.push(type)
    if (type === EXT_SUPPORTED_VERSIONS && selectedVersion === null && body.left === 2)
      selectedVersion = body.u16()
    else if (type === EXT_ALPN && alpn === null) alpn = readAlpn(message, body)[0] ?? null
  }
  if (!r.ok || !block.ok) return malformed('truncated')
  if (r.left > 0) return malformed('trailing-data')
  const random = message.subarray(randomAt, randomAt + 32)
  const helloRetryRequest = RETRY_RANDOM.every((byte, i) => random[i] === byte)
  return {
    kind: 'server-hello',
    hello: { legacyVersion, cipher, extensions, selectedVersion, alpn, helloRetryRequest, random },
  }
}

function malformed(fault: ServerHelloFault): ServerHelloRead {
  return { kind: 'malformed', fault }
}

export const SERVER_HELLO = 2

/** RFC 8446 §4.1.3: a HelloRetryRequest has the SHA-256 of "HelloRetryRequest" as its random. */
const RETRY_RANDOM = [
  0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2,
  0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
]
