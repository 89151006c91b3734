import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { PUBLISHED_KEYS } from './published-keys.ts'

/** A public key that verifies signatures. The key itself fixes the algorithm. */
export interface SignatureKey {
  readonly algorithm: SignatureAlgorithm
  readonly key: KeyObject
  /** RFC 7638, with SHA-256. */
  readonly thumbprint: string
  /** The owner's name for the key. */
  readonly kid: string | null
  readonly signatureBytes: number
}

/**
 * From the registry of RFC 9421 §6.2. No shared-secret algorithm: a public key must never be used as a
 * secret.
 */
export type SignatureAlgorithm = 'ed25519' | 'ecdsa-p256-sha256' | 'ecdsa-p384-sha384' | 'rsa-pss-sha512'

export type ReadKey =
  | { readonly kind: 'key'; readonly key: SignatureKey }
  /** `member`: the JWK member. The fault does not quote its value. */
  | { readonly kind: 'refused'; readonly member: string; readonly detail: string }

/** Reads a JWK (RFC 7517) from an untrusted source. Ignores members that do not describe the key. */
export function readSignatureKey(jwk: unknown, allowsPublishedKeys = false): ReadKey {
  if (typeof jwk !== 'object' || jwk === null || Array.isArray(jwk)) return refused('', 'is not an object')
  const given = jwk as Readonly<Record<string, unknown>>
  const shown = PRIVATE.find((member) => Object.hasOwn(given, member))
  if (shown !== undefined) return refused(shown, 'is private: stop using this key')
  const form = FORMS.find(({ kty, crv }) => given['kty'] === kty && (crv === null || given['crv'] === crv))
  if (form === undefined)
    return refused('kty', 'and crv take EC with P-256 or P-384, OKP with Ed25519, or RSA')
  const misused = misuseOf(given)
  if (misused !== null) return misused
  if (given['alg'] !== undefined && !form.algs.includes(given['alg']))
    return refused('alg', `must be one of ${form.algs.join(', ')} for this kind of key`)
  for (const [member, isRight] of form.members)
    if (!isRight(bytesOf(given[member]))) return refused(member, 'is not what such a key has')
  return imported(given, form, allowsPublishedKeys)
}

interface KeyForm {
  readonly kty: string
  readonly crv: string | null
  readonly algs: readonly unknown[]
  readonly algorithm: SignatureAlgorithm
  /** The members that define the key. */
  readonly members: readonly (readonly [name: string, isRight: (bytes: Buffer) => boolean])[]
}

function misuseOf({ use, key_ops, kid }: Readonly<Record<string, unknown>>): ReadKey | null {
  if (use !== undefined && use !== 'sig') return refused('use', 'is not sig')
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify')))
    return refused('key_ops', 'does not have verify')
  if (kid !== undefined && !(typeof kid === 'string' && KID.test(kid)))
    return refused('kid', 'must have 1 to 256 printable characters')
  return null
}

function imported(
  given: Readonly<Record<string, unknown>>,
  { kty, crv, members, algorithm }: KeyForm,
  allowsPublishedKeys: boolean,
): ReadKey {
  const kept = { ...(crv === null ? {} : { crv }), kty }
  const jwk: Record<string, unknown> = { ...kept }
  for (const [member] of members) jwk[member] = given[member]
  const thumbprint = thumbprintOf(jwk)
  if (!allowsPublishedKeys && PUBLISHED_KEYS.has(thumbprint))
    return refused('', 'is a published key for tests, so anyone can sign with it')
  try {
    const key = createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' })
    const signatureBytes = SIGNATURE_BYTES[algorithm] ?? bytesOf(given['n']).length
    const kid = (given['kid'] as string | undefined) ?? null
    return { kind: 'key', key: { algorithm, key, thumbprint, kid, signatureBytes } }
  } catch {
    return refused('x', 'and y are no point of the curve')
  }
}

/** RFC 7638: the required members, sorted, without whitespace. */
function thumbprintOf(jwk: Readonly<Record<string, unknown>>): string {
  const sorted = Object.fromEntries(Object.entries(jwk).sort(([one], [other]) => (one < other ? -1 : 1)))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('base64url')
}

/** Empty if the encoding is not canonical: with two encodings, one key would have two thumbprints. */
function bytesOf(value: unknown): Buffer {
  if (typeof value !== 'string' || value.length > MEMBER_LENGTH_MAX) return NO_BYTES
  const bytes = Buffer.from(value, 'base64url')
  return bytes.toString('base64url') === value ? bytes : NO_BYTES
}

function refused(member: string, detail: string): ReadKey {
  return { kind: 'refused', member, detail }
}

function ofLength(length: number): (bytes: Buffer) => boolean {
  return (bytes) => bytes.length === length
}

const NO_BYTES = Buffer.alloc(0)
/** Private members (RFC 7518 §6.2.2, §6.3.2 and §6.4.1). */
const PRIVATE = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const KID = /^[\x20-\x7e]{1,256}$/
/** 2048 to 4096 bits: shorter keys are weak, and longer ones cost more to verify. */
const isModulus = (bytes: Buffer) => bytes.length >= 256 && bytes.length <= 512 && bytes[0]! >= 0x80
const isExponent = (bytes: Buffer) => bytes.equals(EXPONENT)
/** 65537: other exponents are very rare. */
const EXPONENT = Buffer.from([1, 0, 1])
const MEMBER_LENGTH_MAX = 1_000
const FORMS: readonly KeyForm[] = [
  {
    kty: 'OKP',
    crv: 'Ed25519',
    algs: ['EdDSA', 'Ed25519'],
    algorithm: 'ed25519',
    members: [['x', ofLength(32)]],
  },
  {
    kty: 'EC',
    crv: 'P-256',
    algs: ['ES256'],
    algorithm: 'ecdsa-p256-sha256',
    members: [
      ['x', ofLength(32)],
      ['y', ofLength(32)],
    ],
  },
  {
    kty: 'EC',
    crv: 'P-384',
    algs: ['ES384'],
    algorithm: 'ecdsa-p384-sha384',
    members: [
      ['x', ofLength(48)],
      ['y', ofLength(48)],
    ],
  },
  {
    kty: 'RSA',
    crv: null,
    algs: ['PS512'],
    algorithm: 'rsa-pss-sha512',
    members: [
      ['n', isModulus],
      ['e', isExponent],
    ],
  },
]
/** `null`: the length of the modulus. */
const SIGNATURE_BYTES: Readonly<Record<SignatureAlgorithm, number | null>> = {
  ed25519: 64,
  'ecdsa-p256-sha256': 64,
  'ecdsa-p384-sha384': 96,
  'rsa-pss-sha512': null,
}
