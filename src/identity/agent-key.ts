import { readSignatureKey, type SignatureKey } from './signature-key.ts'

/** A public key of an agent. */
export interface AgentKey extends SignatureKey {
  /** Whether it may sign requests; else tokens only. */
  readonly signsRequests: boolean
  /** The public key and nothing else, with its `kid` and `alg` where it has them: for who checks tokens. */
  readonly jwk: Readonly<Record<string, string>>
}

export type ReadAgentKey =
  | { readonly kind: 'key'; readonly key: AgentKey }
  /** `isOther`: it is for something else, or of a kind that is not known here; it may well be right. */
  | { readonly kind: 'refused'; readonly isOther: boolean; readonly member: string; readonly detail: string }

export function readAgentKey(given: unknown, allowsPublishedKeys: boolean): ReadAgentKey {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { kind: 'refused', isOther: false, member: '', detail: 'is no object' }
  const { alg: said } = given as { readonly alg?: unknown }
  const isForTokens = typeof said === 'string' && TOKEN_ALGS.has(said)
  const alg = isForTokens ? undefined : (HTTP_ALGS.get(said) ?? said)
  const read = readSignatureKey({ ...given, alg }, allowsPublishedKeys)
  if (read.kind === 'refused') return { ...read, isOther: OTHERS.has(read.member) }
  const { key } = read
  if (isForTokens && key.algorithm !== 'rsa-pss-sha512')
    return { kind: 'refused', isOther: true, member: 'alg', detail: `is ${said} for no RSA key` }
  const jwk = publicJwk(key, isForTokens ? said : alg)
  return { kind: 'key', key: { ...key, signsRequests: !isForTokens, jwk } }
}

function publicJwk({ key, kid }: SignatureKey, alg: unknown): Readonly<Record<string, string>> {
  const members = key.export({ format: 'jwk' }) as Record<string, string>
  return { ...members, ...(kid !== null && { kid }), ...(typeof alg === 'string' && { alg }) }
}

/** RSA's, for tokens alone: RFC 9421 has one of its own. */
const TOKEN_ALGS: ReadonlySet<string> = new Set(['RS256', 'PS256'])
/** Directories may have the names of RFC 9421 §6.2 for what JOSE calls otherwise. */
const HTTP_ALGS: ReadonlyMap<unknown, string> = new Map([
  ['ed25519', 'EdDSA'],
  ['ecdsa-p256-sha256', 'ES256'],
  ['ecdsa-p384-sha384', 'ES384'],
  ['rsa-pss-sha512', 'PS512'],
])
/** What differs here is no mistake (RFC 7517 §5). */
const OTHERS: ReadonlySet<string> = new Set(['kty', 'use', 'key_ops', 'alg'])
