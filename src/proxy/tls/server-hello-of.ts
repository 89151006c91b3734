import { type ClientHello, EXTENSION_HEADER_BYTES } from '../../wire/client-hello.ts'
import { Reader } from '../../wire/reader.ts'
import type { ServerHello } from '../../wire/server-hello.ts'

/** What a finished handshake shows of the server's answer. */
export interface Negotiated {
  /** The version as Node names it. */
  readonly protocol: 'TLSv1.2' | 'TLSv1.3'
  /** The cipher suite's standard name. */
  readonly cipher: string
  readonly alpn: string | null
  readonly isResumed: boolean
}

/**
 * Reconstructs the ServerHello that the proxy sent, which Node does not expose. It follows from the client's
 * hello and the negotiated values, because everything else it depends on is fixed below. If the client had to
 * retry, it is the HelloRetryRequest, the first one on the wire. `null` for an unknown suite. `message` is
 * the parsed hello with its header.
 */
export function serverHelloOf(
  message: Uint8Array,
  hello: ClientHello,
  negotiated: Negotiated,
): ServerHello | null {
  const cipher = CIPHERS.get(negotiated.cipher)
  if (cipher === undefined) return null
  if (negotiated.protocol === 'TLSv1.2') return serverHello12(hello, cipher, message, negotiated)
  const helloRetryRequest = isRetried(message, hello)
  // RFC 8446 §4.1.3, in OpenSSL's order. No session is resumed without (EC)DHE.
  const extensions = [EXT_SUPPORTED_VERSIONS, EXT_KEY_SHARE]
  if (negotiated.isResumed && !helloRetryRequest) extensions.push(EXT_PRE_SHARED_KEY)
  return answer(cipher, extensions, TLS_1_3, null, helloRetryRequest)
}

function serverHello12(
  hello: ClientHello,
  cipher: number,
  message: Uint8Array,
  { alpn, isResumed }: Negotiated,
): ServerHello {
  const offered = hello.extensions
  const extensions: number[] = []
  if (offered.includes(EXT_RENEGOTIATION_INFO) || hello.ciphers.includes(RENEGOTIATION_SCSV))
    extensions.push(EXT_RENEGOTIATION_INFO)
  if (asksForShortFragments(message)) extensions.push(EXT_MAX_FRAGMENT_LENGTH)
  // All our TLS 1.2 suites are ECDHE.
  if (offered.includes(EXT_POINT_FORMATS) && !isResumed) extensions.push(EXT_POINT_FORMATS)
  if (offered.includes(EXT_SESSION_TICKET) && !isResumed) extensions.push(EXT_SESSION_TICKET)
  if (alpn !== null) extensions.push(EXT_ALPN)
  if (offered.includes(EXT_EXTENDED_MASTER_SECRET)) extensions.push(EXT_EXTENDED_MASTER_SECRET)
  return answer(cipher, extensions, null, alpn, false)
}

function answer(
  cipher: number,
  extensions: readonly number[],
  selectedVersion: number | null,
  alpn: string | null,
  helloRetryRequest: boolean,
): ServerHello {
  return {
    legacyVersion: TLS_1_2,
    cipher,
    extensions,
    selectedVersion,
    alpn: alpn === null ? null : Buffer.from(alpn, 'latin1'),
    helloRetryRequest,
    random: NO_BYTES,
  }
}

/**
 * OpenSSL 3.5 searches its tuples of groups for the first one with a group that the client supports. If the
 * client sent no key share for that tuple, it has to retry.
 */
function isRetried(message: Uint8Array, { groups }: ClientHello): boolean {
  const shares = shareGroups(bodyOf(message, EXT_KEY_SHARE))
  for (const tuple of GROUP_TUPLES) {
    if (tuple.some((group) => groups.includes(group))) return !tuple.some((group) => shares.includes(group))
  }
  return true
}

function shareGroups(body: Reader): number[] {
  const list = body.sub(body.u16())
  const groups: number[] = []
  while (list.left > 0) {
    groups.push(list.u16())
    list.skip(list.u16())
  }
  return groups
}

/** RFC 6066 §4: one of four lengths. */
function asksForShortFragments(message: Uint8Array): boolean {
  const body = bodyOf(message, EXT_MAX_FRAGMENT_LENGTH)
  const length = body.left === 1 ? body.u8() : 0
  return length >= 1 && length <= 4
}

/** The body of the first extension of this type. An empty reader if it is missing. */
function bodyOf(message: Uint8Array, type: number): Reader {
  const r = new Reader(message)
  r.skip(4 + 2 + 32) // header, legacy_version, random
  r.skip(r.u8()) // legacy_session_id
  r.skip(r.u16()) // cipher_suites
  r.skip(r.u8()) // legacy_compression_methods
  const block = r.sub(r.u16())
  while (block.left >= EXTENSION_HEADER_BYTES) {
    const found = block.u16()
    const length = block.u16()
    if (found === type) return block.sub(length)
    block.skip(length)
  }
  return new Reader(NO_BYTES)
}

/**
 * The cipher suites, in our order of preference, but ChaCha20 first for a client that prefers it (no AES in
 * hardware). Only forward secret and authenticated suites, as in Mozilla's "intermediate" profile without
 * finite-field DHE. AES-128 first, because it is the fastest and strong enough.
 */
export const CIPHER_LIST = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/**
 * The supported groups. Colons separate groups within a tuple, a slash separates tuples. Within a tuple a
 * group with a key share wins over a better one without, so that a client with a share for a common group
 * need not retry.
 */
export const GROUP_LIST = 'X25519MLKEM768:X25519:P-256:P-384/P-521'
const GROUP_TUPLES: readonly (readonly number[])[] = [[0x11ec, 29, 23, 24], [25]]

/** The numbers of CIPHER_LIST (IANA, TLS Cipher Suites), by Node's names. */
const CIPHERS: ReadonlyMap<string, number> = new Map([
  ['TLS_AES_128_GCM_SHA256', 0x1301],
  ['TLS_AES_256_GCM_SHA384', 0x1302],
  ['TLS_CHACHA20_POLY1305_SHA256', 0x1303],
  ['TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256', 0xc02b],
  ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 0xc02f],
  ['TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384', 0xc02c],
  ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384', 0xc030],
  ['TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256', 0xcca9],
  ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256', 0xcca8],
])

const TLS_1_2 = 0x0303
const TLS_1_3 = 0x0304
const EXT_MAX_FRAGMENT_LENGTH = 0x0001
const EXT_POINT_FORMATS = 0x000b
const EXT_ALPN = 0x0010
const EXT_EXTENDED_MASTER_SECRET = 0x0017
const EXT_SESSION_TICKET = 0x0023
const EXT_PRE_SHARED_KEY = 0x0029
const EXT_SUPPORTED_VERSIONS = 0x002b
const EXT_KEY_SHARE = 0x0033
const EXT_RENEGOTIATION_INFO = 0xff01
const RENEGOTIATION_SCSV = 0x00ff
const NO_BYTES = new Uint8Array(0)
