import {
  constants,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from 'node:crypto'
import { Fault } from '../../shared/fault.ts'
import { readSignatureKey, type SignatureAlgorithm } from '../signature/signature-key.ts'

/** A private key. The secret part is in `key` only, and KeyObject does not print it. */
export interface SigningKey {
  readonly algorithm: SignatureAlgorithm
  readonly key: KeyObject
  /** RFC 7638. */
  readonly thumbprint: string
  /** The public half, for directories. */
  readonly jwk: Readonly<Record<string, string>>
}

/** The first key signs. The others are previous keys that are still published. */
export type SigningKeys = readonly [SigningKey, ...SigningKey[]]

export const SIGNING_ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256', 'rsa-pss-sha512'] as const

export function makeSigningKey(algorithm: (typeof SIGNING_ALGORITHMS)[number] = 'ed25519'): SigningKey {
  switch (algorithm) {
    case 'ed25519':
      return signingKeyOf(generateKeyPairSync('ed25519').privateKey)
    case 'ecdsa-p256-sha256':
      return signingKeyOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)
    case 'rsa-pss-sha512':
      return signingKeyOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)
  }
}

/** Reads a private JWK, a JWK Set, or PEM. Throws a Fault that quotes nothing of the text. */
export function readSigningKeys(text: string): SigningKeys {
  if (text.includes('-----BEGIN')) return [signingKeyOf(privateKey({ key: text, format: 'pem' }))]
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw invalid('is neither PEM nor a JWK')
  }
  const { keys: set } = (value ?? {}) as { readonly keys?: unknown }
  const jwks = Array.isArray(set) ? set : [value]
  if (jwks.length > KEYS_MAX) throw invalid(`has more than ${KEYS_MAX} keys`)
  const [first, ...others] = jwks.map((jwk: unknown) => {
    if (typeof jwk !== 'object' || jwk === null) throw invalid('contains an entry that is not a JWK')
    return signingKeyOf(privateKey({ key: jwk as JsonWebKey, format: 'jwk' }))
  })
  if (first === undefined) throw invalid('has no key')
  return [first, ...others]
}

/** The text to store. It contains the private keys. */
export function signingKeysText(keys: readonly SigningKey[]): string {
  return `${JSON.stringify({ keys: keys.map(({ key }) => key.export({ format: 'jwk' })) }, null, 2)}\n`
}

/** Signs as RFC 9421 §3.3 requires. */
export function signBase({ algorithm, key }: SigningKey, base: string): Buffer {
  const bytes = Buffer.from(base, 'latin1')
  switch (algorithm) {
    case 'ed25519':
      return sign(null, bytes, key)
    case 'ecdsa-p256-sha256':
      return sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' })
    case 'ecdsa-p384-sha384':
      return sign('sha384', bytes, { key, dsaEncoding: 'ieee-p1363' })
    case 'rsa-pss-sha512':
      return sign('sha512', bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 64 })
  }
}

function signingKeyOf(key: KeyObject): SigningKey {
  const given = createPublicKey(key.export({ format: 'pem', type: 'pkcs8' })).export({ format: 'jwk' })
  // A signature with a published key proves nothing, but tests may want one.
  const read = readSignatureKey(given, true)
  if (read.kind === 'refused')
    throw invalid(
      `must be Ed25519, P-256, P-384, or RSA of 2048 to 4096 bits (${read.member} ${read.detail})`,
    )
  const { algorithm, thumbprint } = read.key
  const jwk = {
    ...(given as Record<string, string>),
    kid: thumbprint,
    alg: JWK_ALGORITHMS[algorithm],
    use: 'sig',
  }
  return { algorithm, key, thumbprint, jwk }
}

function privateKey(given: Parameters<typeof createPrivateKey>[0]): KeyObject {
  try {
    return createPrivateKey(given)
  } catch {
    throw invalid('holds no private key that can be read')
  }
}

function invalid(detail: string): Fault {
  return new Fault('SIGNING_KEY_INVALID', detail)
}

const KEYS_MAX = 8
const JWK_ALGORITHMS: Readonly<Record<SignatureAlgorithm, string>> = {
  ed25519: 'EdDSA',
  'ecdsa-p256-sha256': 'ES256',
  'ecdsa-p384-sha384': 'ES384',
  'rsa-pss-sha512': 'PS512',
}
