import { createHash, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'
import { createSigner, httpbis } from 'http-message-signatures'
import {
  readSignatureKey,
  type SignatureAlgorithm,
  type SignatureKey,
} from '../../src/identity/signature/signature-key.ts'

/** A key pair of a client; the signatures are made by an independent program. */
export interface Signer {
  readonly algorithm: SignatureAlgorithm
  readonly privateKey: KeyObject
  readonly jwk: JsonWebKey
  /** As it is read here. */
  readonly key: SignatureKey
}

export interface Wanted {
  readonly fields: readonly string[]
  readonly keyId?: string | null
  readonly tag?: string | null
  readonly createdS: number
  readonly expiresS?: number
  readonly nonce?: string
  readonly algorithm?: string
  readonly label?: string
}

export interface ToSign {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[]>>
}

export function newSigner(algorithm: SignatureAlgorithm = 'ecdsa-p256-sha256'): Signer {
  const { privateKey, publicKey } = keyPair(algorithm)
  const jwk = publicKey.export({ format: 'jwk' })
  const read = readSignatureKey(jwk)
  if (read.kind !== 'key') throw new Error(`${read.member} ${read.detail}`)
  return { algorithm, privateKey, jwk, key: read.key }
}

/** The headers with those of the signature. */
export async function signed(
  { algorithm, privateKey, key }: Signer,
  request: ToSign,
  { fields, createdS, expiresS, nonce, label = 'sig1', ...more }: Wanted,
): Promise<Record<string, string | string[]>> {
  const { keyId = key.thumbprint, tag = 'gnap' } = more
  const paramValues = {
    created: new Date(createdS * 1000),
    ...(expiresS !== undefined && { expires: new Date(expiresS * 1000) }),
    ...(nonce !== undefined && { nonce }),
    ...(keyId !== null && { keyid: keyId }),
    ...(tag !== null && { tag }),
    ...(more.algorithm !== undefined && { alg: more.algorithm }),
  }
  const config = {
    key: createSigner(privateKey, algorithm),
    name: label,
    fields: [...fields],
    params: Object.keys(paramValues),
    paramValues,
  }
  const message = { ...request, headers: { ...request.headers } }
  return (await httpbis.signMessage(config, message)).headers
}

/** RFC 9530. */
export function contentDigest(body: string | Buffer, algorithm: 'sha-256' | 'sha-512' = 'sha-256'): string {
  return `${algorithm}=:${createHash(algorithm.replace('-', '')).update(body).digest('base64')}:`
}

/** As Node has them of a request. */
export function rawHeadersOf(headers: Readonly<Record<string, string | string[]>>): string[] {
  return Object.entries(headers).flatMap(([name, lines]) => [lines].flat().flatMap((line) => [name, line]))
}

function keyPair(algorithm: SignatureAlgorithm) {
  switch (algorithm) {
    case 'ed25519':
      return generateKeyPairSync('ed25519')
    case 'ecdsa-p256-sha256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' })
    case 'ecdsa-p384-sha384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' })
    case 'rsa-pss-sha512':
      return generateKeyPairSync('rsa', { modulusLength: 2048 })
  }
}
