import type { DecipherCCM, KeyObject } from 'node:crypto'
import { createDecipheriv, createHmac, createSecretKey } from 'node:crypto'
import type { TlsRecord } from '../wire/record.ts'

/** How a cipher suite protects records once the keys are agreed. */
export interface Suite {
  readonly isTls13: boolean
  readonly aead: Aead
  readonly hash: Hash
}

export type Hash = 'sha256' | 'sha384'

export interface Aead {
  readonly keyBytes: number
  readonly tagBytes: number
  /** TLS 1.2: the part of the nonce sent with each record. The rest comes from the key block. */
  readonly explicitNonceBytes: 0 | 8
  /** Of Node's three decipher types, this one has the strictest parameters. */
  readonly decipher: (key: KeyObject, nonce: Uint8Array) => DecipherCCM
}

/** `null` if the suite is unknown or not AEAD. */
export function suiteOf(cipher: number): Suite | null {
  return SUITES.get(cipher) ?? null
}

/** A decrypted record. In TLS 1.3 the type was encrypted too. */
export interface Plaintext {
  readonly type: number
  readonly content: Uint8Array
}

/** The TLS 1.2 keys of one direction. Records must come in order and without a gap. */
export class Tls12Keys {
  readonly #aead: Aead
  readonly #key: KeyObject
  readonly #iv: Uint8Array
  #sequence = 0

  constructor(
    suite: Suite,
    masterSecret: Uint8Array,
    clientRandom: Uint8Array,
    serverRandom: Uint8Array,
    fromClient: boolean,
  ) {
    // RFC 5246 §6.3. An AEAD has no MAC keys: the block holds both keys, then both IVs.
    const { keyBytes, explicitNonceBytes } = suite.aead
    const ivBytes = NONCE_BYTES - explicitNonceBytes
    const seed = Buffer.concat([serverRandom, clientRandom])
    const block = prf(suite.hash, masterSecret, 'key expansion', seed, 2 * (keyBytes + ivBytes))
    const keyAt = fromClient ? 0 : keyBytes
    const ivAt = 2 * keyBytes + (fromClient ? 0 : ivBytes)
    this.#aead = suite.aead
    this.#key = createSecretKey(block.subarray(keyAt, keyAt + keyBytes))
    this.#iv = block.subarray(ivAt, ivAt + ivBytes)
  }

  /** `null` if the record was not sealed with these keys. The sequence number then stays the same. */
  open(record: TlsRecord): Plaintext | null {
    const { explicitNonceBytes, tagBytes } = this.#aead
    const sealed = record.fragment.subarray(explicitNonceBytes)
    if (sealed.length < tagBytes) return null
    // RFC 5288 §3 sends a part of the nonce. RFC 7905 §2 derives all of it, as TLS 1.3 does.
    const nonce =
      explicitNonceBytes === 0
        ? sequenceNonce(this.#iv, this.#sequence)
        : Buffer.concat([this.#iv, record.fragment.subarray(0, explicitNonceBytes)])
    const content = openSealed(this.#aead, this.#key, nonce, this.#associated(record, sealed), sealed)
    if (content === null) return null
    this.#sequence++
    return { type: record.type, content }
  }

  /** RFC 5246 §6.2.3.3: sequence number, type, version, and the length of the plaintext. */
  #associated(record: TlsRecord, sealed: Uint8Array): Uint8Array {
    const data = Buffer.alloc(13)
    data.writeUIntBE(this.#sequence, 2, 6)
    data.set(record.header.subarray(0, 3), 8)
    data.writeUInt16BE(sealed.length - this.#aead.tagBytes, 11)
    return data
  }
}

/** The TLS 1.3 keys of one direction, from a traffic secret. Records must come in order and without a gap. */
export class Tls13Keys {
  readonly #suite: Suite
  readonly #secret: Uint8Array
  readonly #key: KeyObject
  readonly #iv: Uint8Array
  #sequence = 0

  constructor(suite: Suite, secret: Uint8Array) {
    this.#suite = suite
    this.#secret = secret
    this.#key = createSecretKey(expandLabel(suite.hash, secret, 'key', suite.aead.keyBytes))
    this.#iv = expandLabel(suite.hash, secret, 'iv', NONCE_BYTES)
  }

  /** `null` if the record was not sealed with these keys. The sequence number then stays the same. */
  open(record: TlsRecord): Plaintext | null {
    const nonce = sequenceNonce(this.#iv, this.#sequence)
    const inner = openSealed(this.#suite.aead, this.#key, nonce, record.header, record.fragment)
    if (inner === null) return null
    this.#sequence++
    // RFC 8446 §5.4: the type is the last byte that is not padding.
    let typeAt = inner.length - 1
    while (typeAt > 0 && inner[typeAt] === 0) typeAt--
    return { type: inner[typeAt] ?? 0, content: inner.subarray(0, Math.max(typeAt, 0)) }
  }

  /** The keys after a KeyUpdate (RFC 8446 §7.2). */
  next(): Tls13Keys {
    const suite = this.#suite
    return new Tls13Keys(suite, expandLabel(suite.hash, this.#secret, 'traffic upd', this.#secret.length))
  }
}

/** `null` if key, nonce and bytes do not match. */
export function openSealed(
  aead: Aead,
  key: KeyObject,
  nonce: Uint8Array,
  associated: Uint8Array,
  sealed: Uint8Array,
): Uint8Array | null {
  const plaintextLength = sealed.length - aead.tagBytes
  if (plaintextLength < 0) return null
  try {
    const decipher = aead.decipher(key, nonce)
    decipher.setAuthTag(sealed.subarray(plaintextLength))
    decipher.setAAD(associated, { plaintextLength })
    const plaintext = decipher.update(sealed.subarray(0, plaintextLength))
    decipher.final()
    return plaintext
  } catch {
    return null // Node throws if the tag does not match.
  }
}

/** RFC 8446 §5.3: the IV xor the sequence number of the record (in QUIC, the packet number). */
export function sequenceNonce(iv: Uint8Array, sequence: number): Uint8Array {
  const nonce = Buffer.from(iv)
  let at = nonce.length
  for (let left = sequence; left > 0; left = Math.floor(left / 256)) nonce[--at]! ^= left % 256
  return nonce
}

/**
 * HKDF-Expand-Label (RFC 8446 §7.1) with an empty context. No key is longer than its hash, so the first block
 * is enough.
 */
export function expandLabel(hash: Hash, secret: Uint8Array, label: string, length: number): Uint8Array {
  const name = `tls13 ${label}`
  const info = Buffer.concat([Buffer.from([0, length, name.length]), Buffer.from(name), Buffer.from([0, 1])])
  return hmac(hash, secret, info).subarray(0, length)
}

/** Uses a KeyObject, as the ciphers do: with a key as plain bytes each call takes Node 10 µs more. */
export function hmac(hash: Hash, key: Uint8Array, data: Uint8Array): Uint8Array {
  return createHmac(hash, createSecretKey(key)).update(data).digest()
}

/** RFC 5246 §5. */
function prf(hash: Hash, secret: Uint8Array, label: string, seed: Uint8Array, length: number): Uint8Array {
  const labelled = Buffer.concat([Buffer.from(label), seed])
  const blocks: Uint8Array[] = []
  let chain = hmac(hash, secret, labelled)
  for (let made = 0; made < length; made += chain.length) {
    blocks.push(hmac(hash, secret, Buffer.concat([chain, labelled])))
    chain = hmac(hash, secret, chain)
  }
  return Buffer.concat(blocks, length)
}

const NONCE_BYTES = 12

const AES_128_GCM: Aead = {
  keyBytes: 16,
  tagBytes: 16,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-128-gcm', key, nonce, { authTagLength: 16 }),
}
const AES_256_GCM: Aead = {
  keyBytes: 32,
  tagBytes: 16,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }),
}
const AES_128_CCM: Aead = {
  keyBytes: 16,
  tagBytes: 16,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-128-ccm', key, nonce, { authTagLength: 16 }),
}
const AES_256_CCM: Aead = {
  keyBytes: 32,
  tagBytes: 16,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-256-ccm', key, nonce, { authTagLength: 16 }),
}
const AES_128_CCM_8: Aead = {
  keyBytes: 16,
  tagBytes: 8,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-128-ccm', key, nonce, { authTagLength: 8 }),
}
const AES_256_CCM_8: Aead = {
  keyBytes: 32,
  tagBytes: 8,
  explicitNonceBytes: 8,
  decipher: (key, nonce) => createDecipheriv('aes-256-ccm', key, nonce, { authTagLength: 8 }),
}
export const CHACHA20_POLY1305: Aead = {
  keyBytes: 32,
  tagBytes: 16,
  explicitNonceBytes: 0,
  decipher: (key, nonce) => createDecipheriv('chacha20-poly1305', key, nonce, { authTagLength: 16 }),
}

/** The suite of QUIC's Initial packets (RFC 9001 §5.2). */
export const AES_128_GCM_SHA256: Suite = { isTls13: true, aead: AES_128_GCM, hash: 'sha256' }

const TLS13_SUITES: readonly (readonly [number, Suite])[] = [
  [0x1301, AES_128_GCM_SHA256],
  [0x1302, { isTls13: true, aead: AES_256_GCM, hash: 'sha384' }],
  [0x1303, { isTls13: true, aead: CHACHA20_POLY1305, hash: 'sha256' }],
  [0x1304, { isTls13: true, aead: AES_128_CCM, hash: 'sha256' }],
  [0x1305, { isTls13: true, aead: AES_128_CCM_8, hash: 'sha256' }],
]

/**
 * TLS 1.2. Key exchange and signature do not matter once the master secret is known. RFC 5288, 5289, 5487,
 * 8442 (GCM), 6655, 7251, 8442 (CCM), 7905 (ChaCha20).
 */
const TLS12_SUITES: readonly (readonly [Aead, Hash, readonly number[]])[] = [
  [
    AES_128_GCM,
    'sha256',
    [
      0x009c, 0x009e, 0x00a0, 0x00a2, 0x00a4, 0x00a6, 0x00a8, 0x00aa, 0x00ac, 0xc02b, 0xc02d, 0xc02f, 0xc031,
      0xd001,
    ],
  ],
  [
    AES_256_GCM,
    'sha384',
    [
      0x009d, 0x009f, 0x00a1, 0x00a3, 0x00a5, 0x00a7, 0x00a9, 0x00ab, 0x00ad, 0xc02c, 0xc02e, 0xc030, 0xc032,
      0xd002,
    ],
  ],
  [AES_128_CCM, 'sha256', [0xc09c, 0xc09e, 0xc0a4, 0xc0a6, 0xc0ac, 0xd005]],
  [AES_256_CCM, 'sha256', [0xc09d, 0xc09f, 0xc0a5, 0xc0a7, 0xc0ad]],
  [AES_128_CCM_8, 'sha256', [0xc0a0, 0xc0a2, 0xc0a8, 0xc0aa, 0xc0ae, 0xd003]],
  [AES_256_CCM_8, 'sha256', [0xc0a1, 0xc0a3, 0xc0a9, 0xc0ab, 0xc0af]],
  [CHACHA20_POLY1305, 'sha256', [0xcca8, 0xcca9, 0xccaa, 0xccab, 0xccac, 0xccad, 0xccae]],
]

const SUITES: ReadonlyMap<number, Suite> = new Map([
  ...TLS13_SUITES,
  ...TLS12_SUITES.flatMap(([aead, hash, ciphers]) =>
    ciphers.map((cipher): [number, Suite] => [cipher, { isTls13: false, aead, hash }]),
  ),
])
