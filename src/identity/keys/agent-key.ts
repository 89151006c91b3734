import { readSignatureKey, type SignatureKey } from '../signature/signature-key.ts'

/** A public key of an agent. */
export interface AgentKey extends SignatureKey {
  /** Whether it may sign requests; else tokens only. */
  readonly signsRequests: boolean
  /** When it may be used, as its owner says: `null`: from ever, or for ever. */
  readonly fromMs: number | null
  readonly untilMs: number | null
  /** The public key and nothing else, with its `kid`, `alg` and times where it has them: for who checks tokens. */
  readonly jwk: Readonly<Record<string, string | number>>
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
  const { nbf, exp } = given as { readonly nbf?: unknown; readonly exp?: unknown }
  const [fromMs, untilMs] = [timeMs(nbf), timeMs(exp)]
  if (fromMs === undefined || untilMs === undefined)
    return { kind: 'refused', isOther: false, member: fromMs === undefined ? 'nbf' : 'exp', detail: NO_TIME }
  const jwk = publicJwk(key, isForTokens ? said : alg, fromMs, untilMs)
  return { kind: 'key', key: { ...key, signsRequests: !isForTokens, fromMs, untilMs, jwk } }
}

/** Outside of its time what is signed with it proves nothing. */
export function isInTime({ fromMs, untilMs }: AgentKey, nowMs: number): boolean {
  return (fromMs === null || fromMs <= nowMs) && (untilMs === null || nowMs < untilMs)
}

/** Of `nbf` and `exp` (draft-meunier-http-message-signatures-directory, its examples). `undefined`: it is no time. */
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

const NO_TIME = 'takes seconds since 1970'
/** In the year 5138: what is larger is meant to be milliseconds, in which widely used directories have them. */
const SECONDS_MAX = 100_000_000_000
/** That of Date. */
const TIME_MAX_MS = 8_640_000_000_000_000

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
