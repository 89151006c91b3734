import { createCipheriv, createHmac } from 'node:crypto'

/** The sealing end of QUIC, written apart from src/ after RFC 9001; quic.test.ts holds it against the RFC's samples. */

export interface Version {
  readonly name: string
  readonly number: number
  readonly salt: string
  readonly labels: string
  /** The type bits of Initial, 0-RTT, Handshake and Retry. */
  readonly types: Readonly<Record<Kind, number>>
}

export type Kind = 'initial' | 'early' | 'handshake' | 'retry'

export interface Keys {
  readonly aead: AeadName
  readonly key: Buffer
  readonly iv: Buffer
  readonly headerKey: Buffer
}

export type AeadName = 'aes-128-gcm' | 'aes-256-gcm' | 'aes-128-ccm' | 'chacha20-poly1305'

export interface Packet {
  readonly version: Version
  readonly kind: Kind
  readonly destination: Buffer
  readonly source?: Buffer
  readonly token?: Buffer
  readonly number: number
  readonly numberBytes?: 1 | 2 | 3 | 4
  readonly frames: Buffer
  readonly keys: Keys
}

export function sealPacket(packet: Packet): Buffer {
  const { version, kind, destination, source = Buffer.alloc(0), token = Buffer.alloc(0), keys } = packet
  const numberBytes = packet.numberBytes ?? 2
  const length = numberBytes + packet.frames.length + 16
  const header = Buffer.concat([
    Buffer.from([0xc0 | (version.types[kind] << 4) | (numberBytes - 1)]),
    bigEndian(version.number, 4),
    Buffer.from([destination.length]),
    destination,
    Buffer.from([source.length]),
    source,
    ...(kind === 'initial' ? [varint(token.length), token] : []),
    varint(length, 2),
    bigEndian(packet.number % 256 ** numberBytes, numberBytes),
  ])
  const sealed = Buffer.concat([header, seal(keys, packet.number, header, packet.frames)])
  const numberAt = header.length - numberBytes
  const mask = headerMask(keys, sealed.subarray(numberAt + 4, numberAt + 20))
  sealed[0]! ^= mask[0]! & 0x0f
  for (let i = 0; i < numberBytes; i++) sealed[numberAt + i]! ^= mask[1 + i]!
  return sealed
}

export function seal(keys: Keys, number: number, header: Buffer, plaintext: Buffer): Buffer {
  const nonce = Buffer.from(keys.iv)
  for (const [i, byte] of bigEndian(number, 6).entries()) nonce[6 + i]! ^= byte
  const cipher = createCipheriv(keys.aead as 'aes-128-ccm', keys.key, nonce, { authTagLength: 16 })
  cipher.setAAD(header, { plaintextLength: plaintext.length })
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()])
}

export function headerMask(keys: Keys, sample: Buffer): Buffer {
  const { aead, headerKey } = keys
  if (aead === 'chacha20-poly1305')
    return createCipheriv('chacha20', headerKey, sample).update(Buffer.alloc(5))
  return createCipheriv(`${aead.slice(0, 7)}-ecb`, headerKey, null)
    .update(sample)
    .subarray(0, 5)
}

export function initialKeys(version: Version, destination: Buffer, fromClient: boolean): Keys {
  const common = createHmac('sha256', Buffer.from(version.salt, 'hex')).update(destination).digest()
  const secret = expandLabel('sha256', common, fromClient ? 'client in' : 'server in', 32)
  return keysOf(version, 'aes-128-gcm', 'sha256', secret)
}

export function keysOf(version: Version, aead: AeadName, hash: string, secret: Buffer): Keys {
  const length = aead.startsWith('aes-128') ? 16 : 32
  return {
    aead,
    key: expandLabel(hash, secret, `${version.labels} key`, length),
    iv: expandLabel(hash, secret, `${version.labels} iv`, 12),
    headerKey: expandLabel(hash, secret, `${version.labels} hp`, length),
  }
}

function expandLabel(hash: string, secret: Buffer, label: string, length: number): Buffer {
  const full = `tls13 ${label}`
  const info = Buffer.concat([
    bigEndian(length, 2),
    Buffer.from([full.length]),
    Buffer.from(full),
    Buffer.from([0]),
  ])
  return createHmac(hash, secret)
    .update(Buffer.concat([info, Buffer.from([1])]))
    .digest()
    .subarray(0, length)
}

export function cryptoFrame(offset: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x06]), varint(offset), varint(data.length), data])
}

export const PING = Buffer.from([0x01])
/** Packets 0 to 2 and 5 to 9. */
export const ACK = Buffer.from([0x02, 9, 0, 1, 4, 1, 2])
export const padding = (length: number): Buffer => Buffer.alloc(length)

export function varint(value: number, bytes = value < 64 ? 1 : value < 16_384 ? 2 : 4): Buffer {
  const encoded = bigEndian(value, bytes)
  encoded[0]! |= { 1: 0x00, 2: 0x40, 4: 0x80 }[bytes]!
  return encoded
}

/** TLS handshake messages, as small as they may be. */

export function clientHello(random: Buffer, length = 300): Buffer {
  const needed = Buffer.concat([extension(0x002b, [2, 3, 4]), extension(0x0010, [0, 3, 2, 0x68, 0x33])])
  const filled = (bytes: number): Buffer =>
    message(
      1,
      [0x03, 0x03],
      random,
      [0],
      [0, 2, 0x13, 0x01],
      [1, 0],
      vector(Buffer.concat([needed, extension(0x0015, Buffer.alloc(bytes))])),
    )
  return filled(length - filled(0).length)
}

export function serverHello(random: Buffer, cipher: number): Buffer {
  return message(2, [0x03, 0x03], random, [0], bigEndian(cipher, 2), [0], vector(extension(0x002b, [3, 4])))
}

export const RETRY_RANDOM = Buffer.from(
  'cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c',
  'hex',
)

export const ENCRYPTED_EXTENSIONS = Buffer.from([8, 0, 0, 2, 0, 0])
export const FINISHED = Buffer.from([20, 0, 0, 32, ...Buffer.alloc(32)])

export function certificate(der: Buffer): Buffer {
  const entry = Buffer.concat([bigEndian(der.length, 3), der, Buffer.from([0, 0])])
  return message(11, [0], bigEndian(entry.length, 3), entry)
}

function message(type: number, ...parts: readonly (Buffer | readonly number[])[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)))
  return Buffer.concat([Buffer.from([type]), bigEndian(body.length, 3), body])
}

function extension(type: number, body: Buffer | readonly number[]): Buffer {
  return Buffer.concat([bigEndian(type, 2), vector(Buffer.from(body))])
}

function vector(body: Buffer): Buffer {
  return Buffer.concat([bigEndian(body.length, 2), body])
}

function bigEndian(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  buffer.writeUIntBE(value, 0, bytes)
  return buffer
}

const V1_TYPES = { initial: 0, early: 1, handshake: 2, retry: 3 }

export const V1: Version = {
  name: 'version 1',
  number: 1,
  salt: '38762cf7f55934b34d179ae6a4c80cadccbb7f0a',
  labels: 'quic',
  types: V1_TYPES,
}
export const V2: Version = {
  name: 'version 2',
  number: 0x6b3343cf,
  salt: '0dede3def700a6db819381be6e269dcbf9bd2ed9',
  labels: 'quicv2',
  types: { initial: 1, early: 2, handshake: 3, retry: 0 },
}
export const DRAFT_29: Version = {
  ...V1,
  name: 'draft 29',
  number: 0xff00001d,
  salt: 'afbfec289993d24c9e9786f19c6111e04390a899',
}
export const DRAFT_27: Version = {
  ...V1,
  name: 'draft 27',
  number: 0xff00001b,
  salt: 'c3eef712c72ebb5a11a7d2432bb46365bef9f502',
}
export const DRAFT_34: Version = { ...V1, name: 'draft 34', number: 0xff000022 }
