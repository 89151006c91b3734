import type { KeyObject } from 'node:crypto'
import { createCipheriv, createSecretKey } from 'node:crypto'
import { Reader } from '../wire/reader.ts'
import type { Aead, Suite } from './tls-cipher.ts'
import {
  AES_128_GCM_SHA256,
  CHACHA20_POLY1305,
  expandLabel,
  hmac,
  openSealed,
  sequenceNonce,
} from './tls-cipher.ts'

export type PacketKind = 'initial' | 'early' | 'handshake' | 'retry'

/** A packet with a long header (RFC 9000 §17.2), still protected. */
export interface LongPacket {
  readonly kind: PacketKind
  readonly version: QuicVersion
  readonly destination: Uint8Array
  /** This packet only: others may follow in the same datagram. */
  readonly bytes: Uint8Array
  /** Offset of the packet number. */
  readonly numberAt: number
}

export interface QuicVersion {
  readonly salt: Uint8Array
  readonly labels: 'quic' | 'quicv2'
  /** The packet kinds for the two type bits 0 to 3. */
  readonly kinds: readonly PacketKind[]
}

/** The first packet of `datagram`. `null` if it has a short header, an unknown version, or is not QUIC. */
export function readLongPacket(datagram: Uint8Array): LongPacket | null {
  const r = new Reader(datagram)
  const first = r.u8()
  if ((first & FORM_BITS) !== FORM_BITS) return null
  const version = VERSIONS.get(r.u32())
  if (version === undefined) return null
  const destination = r.take(r.u8())
  const source = r.take(r.u8())
  if (destination.length > CONNECTION_ID_BYTES_MAX || source.length > CONNECTION_ID_BYTES_MAX) return null
  const kind = version.kinds[(first >> 4) & 3]!
  if (kind === 'retry') return r.ok ? { kind, version, destination, bytes: datagram, numberAt: r.at } : null
  if (kind === 'initial') r.skip(readVarint(r)) // token
  const length = readVarint(r)
  const numberAt = r.at
  r.skip(length)
  return r.ok ? { kind, version, destination, bytes: datagram.subarray(0, r.at), numberAt } : null
}

/** The keys of one direction at one encryption level (RFC 9001 §5). */
export class PacketKeys {
  readonly #aead: Aead
  readonly #key: KeyObject
  readonly #iv: Uint8Array
  readonly #headerKey: KeyObject
  #largestNumber = -1

  constructor(version: QuicVersion, suite: Suite, secret: Uint8Array) {
    const { keyBytes } = suite.aead
    this.#aead = suite.aead
    this.#key = createSecretKey(expandLabel(suite.hash, secret, `${version.labels} key`, keyBytes))
    this.#iv = expandLabel(suite.hash, secret, `${version.labels} iv`, NONCE_BYTES)
    this.#headerKey = createSecretKey(expandLabel(suite.hash, secret, `${version.labels} hp`, keyBytes))
  }

  /** The decrypted frames. `null` if the packet was not sealed with these keys. */
  open(packet: LongPacket): Uint8Array | null {
    const { bytes, numberAt } = packet
    // RFC 9001 §5.4.2: the sample position assumes a packet number of four bytes.
    const sampleAt = numberAt + NUMBER_BYTES_MAX
    const sample = bytes.subarray(sampleAt, sampleAt + SAMPLE_BYTES)
    if (sample.length < SAMPLE_BYTES) return null
    const mask = headerMask(this.#aead, this.#headerKey, sample)

    const first = bytes[0]! ^ (mask[0]! & 0x0f)
    const numberBytes = (first & 3) + 1
    const header = Buffer.from(bytes.subarray(0, numberAt + numberBytes))
    header[0] = first
    for (let i = 0; i < numberBytes; i++) header[numberAt + i]! ^= mask[1 + i]!

    const number = fullNumber(header.readUIntBE(numberAt, numberBytes), numberBytes, this.#largestNumber)
    const nonce = sequenceNonce(this.#iv, number)
    const frames = openSealed(this.#aead, this.#key, nonce, header, bytes.subarray(header.length))
    if (frames !== null) this.#largestNumber = Math.max(this.#largestNumber, number)
    return frames
  }
}

/** RFC 9001 §5.2: Initial packets are sealed with keys that everyone can derive. */
export function initialKeys(version: QuicVersion, destination: Uint8Array, fromClient: boolean): PacketKeys {
  const suite = AES_128_GCM_SHA256
  const common = hmac(suite.hash, version.salt, destination) // HKDF-Extract
  const secret = expandLabel(suite.hash, common, fromClient ? 'client in' : 'server in', 32)
  return new PacketKeys(version, suite, secret)
}

export interface CryptoFrame {
  readonly offset: number
  readonly data: Uint8Array
}

/**
 * The CRYPTO frames (RFC 9000 §19) of an Initial or Handshake packet, up to the first frame type not allowed
 * there.
 */
export function readCryptoFrames(frames: Uint8Array): CryptoFrame[] {
  const r = new Reader(frames)
  const found: CryptoFrame[] = []
  while (r.left > 0) {
    const type = r.u8()
    if (type === CRYPTO) {
      const offset = readVarint(r)
      const data = r.take(readVarint(r))
      if (r.ok) found.push({ offset, data })
    } else if (type === ACK || type === ACK_ECN) skipAck(r, type)
    else if (type !== PADDING && type !== PING) break
  }
  return found
}

function skipAck(r: Reader, type: number): void {
  readVarint(r) // largest acknowledged
  readVarint(r) // delay
  const ranges = readVarint(r)
  readVarint(r) // first range
  const numbers = 2 * ranges + (type === ACK_ECN ? 3 : 0)
  for (let i = 0; i < numbers && r.ok; i++) readVarint(r)
}

/**
 * RFC 9000 §16. Values above 2^53 lose precision. Valid values are far smaller, and such a length is too long
 * anyway.
 */
function readVarint(r: Reader): number {
  const first = r.u8()
  let value = first & 0x3f
  for (let more = (1 << (first >> 6)) - 1; more > 0; more--) value = value * 256 + r.u8()
  return value
}

/** RFC 9001 §5.4.3 and §5.4.4. */
function headerMask(aead: Aead, key: KeyObject, sample: Uint8Array): Uint8Array {
  if (aead === CHACHA20_POLY1305) return createCipheriv('chacha20', key, sample).update(Buffer.alloc(5))
  return createCipheriv(aead.keyBytes === 16 ? 'aes-128-ecb' : 'aes-256-ecb', key, null).update(sample)
}

/** RFC 9000 §A.3: of the numbers that end in `truncated`, the one nearest to the expected number. */
function fullNumber(truncated: number, bytes: number, largest: number): number {
  const window = 256 ** bytes
  const expected = largest + 1
  const candidate = expected - (expected % window) + truncated
  if (candidate <= expected - window / 2) return candidate + window
  if (candidate > expected + window / 2 && candidate >= window) return candidate - window
  return candidate
}

function version(number: number, salt: string): [number, QuicVersion] {
  return [number, { salt: Buffer.from(salt, 'hex'), labels: 'quic', kinds: V1_KINDS }]
}

function drafts(from: number, to: number, salt: string): [number, QuicVersion][] {
  return Array.from({ length: to - from + 1 }, (_, i) => version(0xff00_0000 + from + i, salt))
}

const V1_KINDS: readonly PacketKind[] = ['initial', 'early', 'handshake', 'retry']
/** RFC 9369 §3.2. */
const V2_KINDS: readonly PacketKind[] = ['retry', 'initial', 'early', 'handshake']
const V1_SALT = '38762cf7f55934b34d179ae6a4c80cadccbb7f0a'
const V2_SALT = '0dede3def700a6db819381be6e269dcbf9bd2ed9'

const VERSIONS: ReadonlyMap<number, QuicVersion> = new Map([
  version(1, V1_SALT),
  [0x6b33_43cf, { salt: Buffer.from(V2_SALT, 'hex'), labels: 'quicv2', kinds: V2_KINDS }],
  ...drafts(23, 28, 'c3eef712c72ebb5a11a7d2432bb46365bef9f502'),
  ...drafts(29, 32, 'afbfec289993d24c9e9786f19c6111e04390a899'),
  ...drafts(33, 34, V1_SALT),
])

/** The long header bit and the bit that RFC 9000 §17.2 fixes. */
const FORM_BITS = 0xc0
const CONNECTION_ID_BYTES_MAX = 20
const NUMBER_BYTES_MAX = 4
const SAMPLE_BYTES = 16
const NONCE_BYTES = 12
const PADDING = 0x00
const PING = 0x01
const ACK = 0x02
const ACK_ECN = 0x03
const CRYPTO = 0x06
