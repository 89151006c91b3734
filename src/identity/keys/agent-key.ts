import { readSignatureKey, type SignatureKey } from '../signature/signature-key.ts'

/** A public key of an agent. */
export interface AgentKey extends SignatureKey {
  /** Whether the key may sign requests; otherwise it signs tokens only. */
  readonly signsRequests: boolean
  /** Validity by the owner's `nbf` and `exp`; `null`: no limit. */
  readonly fromMs: number | null
  readonly untilMs: number | null
  /** The public key only, with `kid`, `alg` and times if present. Token checks use it. */
  readonly jwk: Readonly<Record<string, string | number>>
}

export type ReadAgentKey =
  | { readonly kind: 'key'; readonly key: AgentKey }
  /** `isOther`: the key is for another use or of an unknown kind; it may be valid. */
  | { readonly kind: 'refused'; readonly isOther: boolean; readonly member: string; readonly detail: string }

export function readAgentKey(given: unknown, allowsPublishedKeys: boolean): ReadAgentKey {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    return { kind: 'refused', isOther: false, member: '', detail: 'is not an object' }
  const { alg: said } = given as { readonly alg?: unknown }
  const isForTokens = typeof said === 'string' && TOKEN_ALGS.has(said)
  const alg = isForTokens ? undefined : (HTTP_ALGS.get(said) ?? said)
  const read = readSignatureKey({ ...given, alg }, allowsPublishedKeys)
  if (read.kind === 'refused') return { ...read, isOther: OTHERS.has(read.member) }
  const { key } = read
  if (isForTokens && key.algorithm !== 'rsa-pss-sha512')
    return { kind: 'refused', isOther: true, member: 'alg', detail: `is ${said} for no RSA key` }
  const { nbf, exp } = given as { readonly nbf?: unknown; readonly exp?: unknown }
  const [fromMs, untilMs] = [timeMs(nbf), timeMs(exp)]
  if (fromMs === undefined || untilMs === undefined)
    return { kind: 'refused', isOther: false, member: fromMs === undefined ? 'nbf' : 'exp', detail: NO_TIME }
  const jwk = publicJwk(key, isForTokens ? said : alg, fromMs, untilMs)
  return { kind: 'key', key: { ...key, signsRequests: !isForTokens, fromMs, untilMs, jwk } }
}

/** Whether this is the thumbprint of the key, or the name that its owner gave it. */
export function isNamed({ thumbprint, kid }: AgentKey, name: string): boolean {
  return thumbprint === name || kid === name
}

/** A signature made outside the key's validity proves nothing. */
export function isInTime({ fromMs, untilMs }: AgentKey, nowMs: number): boolean {
  return (fromMs === null || fromMs <= nowMs) && (untilMs === null || nowMs < untilMs)
}

/**
 * Reads `nbf` or `exp` (draft-meunier-http-message-signatures-directory, examples). `undefined`: invalid
 * time.
 */
function timeMs(value: unknown): number | null | undefined {
  if (value === undefined) return null
  if (typeof value !== 'number' || !(value >= 0 && value <= TIME_MAX_MS)) return undefined
  return value < SECONDS_MAX ? value * 1_000 : value
}

function publicJwk(
  { key, kid }: SignatureKey,
  alg: unknown,
  fromMs: number | null,
  untilMs: number | null,
): AgentKey['jwk'] {
  return {
    ...(key.export({ format: 'jwk' }) as Record<string, string>),
    ...(kid !== null && { kid }),
    ...(typeof alg === 'string' && { alg }),
    ...(fromMs !== null && { nbf: fromMs / 1_000 }),
    ...(untilMs !== null && { exp: untilMs / 1_000 }),
  }
}

const NO_TIME = 'must be seconds since 1970'
/** The year 5138. A larger value is in milliseconds, which widely used directories contain. */
const SECONDS_MAX = 100_000_000_000
/** Largest value of Date. */
const TIME_MAX_MS = 8_640_000_000_000_000

/** RSA for tokens only: RFC 9421 defines its own RSA algorithm. */
const TOKEN_ALGS: ReadonlySet<string> = new Set(['RS256', 'PS256'])
/** Directories may use the names of RFC 9421 §6.2 for algorithms that JOSE names differently. */
const HTTP_ALGS: ReadonlyMap<unknown, string> = new Map([
  ['ed25519', 'EdDSA'],
  ['ecdsa-p256-sha256', 'ES256'],
  ['ecdsa-p384-sha384', 'ES384'],
  ['rsa-pss-sha512', 'PS512'],
])
/** Unknown values of these members are allowed (RFC 7517 §5). */
const OTHERS: ReadonlySet<string> = new Set(['kty', 'use', 'key_ops', 'alg'])
