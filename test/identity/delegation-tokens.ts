import { sign } from 'node:crypto'
import type { Signer } from './signer.ts'

type Claims = Readonly<Record<string, unknown>>

/** What is different in a token. A claim that is `undefined` is left out. */
export interface Making {
  readonly header?: Claims
  readonly claims?: Claims
  readonly by?: Signer
}

/** An agent token of AAuth with other claims, as a compact JWS that an issuer signs. */
export function delegationToken({ algorithm, privateKey }: Signer, header: Claims, claims: Claims): string {
  const isEd25519 = algorithm === 'ed25519'
  const base = [
    { typ: 'aa-agent+jwt', alg: isEd25519 ? 'Ed25519' : 'ES256', ...header },
    { dwk: 'aauth-agent.json', sub: 'aauth:buyer@a.example', ...claims },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const digest = isEd25519 ? null : 'sha256'
  const bytes = sign(digest, Buffer.from(base), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  return `${base}.${bytes.toString('base64url')}`
}
