/**
 * A JWT in which an issuer names the key of a signature: scheme `jwt` of Signature-Key, and the tokens of AAuth
 * (draft-hardt-oauth-aauth-protocol). What it says counts only once `base` and `bytes` are verified with the issuer's key.
 */
export interface DelegationToken {
  readonly issuer: string
  /** The name of the issuer's metadata document, which leads to its keys. */
  readonly metadata: string
  /** Of the issuer's key. */
  readonly kid: string
  readonly algorithm: string
  /** The servers that it is for. `null`: it names none. */
  readonly audience: readonly string[] | null
  /** It says for which person an agent acts, and not which agent. */
  readonly isOfPerson: boolean
  /** The key of the signature, as a JWK. */
  readonly jwk: Readonly<Record<string, unknown>>
  readonly untilMs: number
  readonly base: string
  readonly bytes: Uint8Array
}

/** `ignored-key`: a JWT for another purpose, of which nothing can be said. */
export type ReadToken = DelegationToken | 'malformed' | 'ignored-key' | 'token-expired'

/** Needs no public-key operation and never throws. */
export function readDelegationToken(text: string, nowMs: number, skewS: number): ReadToken {
  const parts = text.split('.')
  const [header, claims] = [objectIn(parts[0]), objectIn(parts[1])]
  const bytes = bytesIn(parts[2])
  if (parts.length !== 3 || header === null || claims === null || bytes === null) return 'malformed'
  const { typ, alg, kid } = header
  const { iss, dwk, aud, exp, iat, cnf } = claims
  const form = FORMS.get(typeof typ === 'string' ? typ.toLowerCase() : typ)
  if (form === undefined || Object.hasOwn(header, 'crit')) return 'ignored-key'
  // Without them, its keys would have to be known otherwise, or it would be valid for ever.
  if (iss === undefined || dwk === undefined || kid === undefined || exp === undefined) return 'ignored-key'
  if (form.metadata !== null && !form.metadata.includes(dwk)) return 'ignored-key'
  if (!isText(iss) || !isText(dwk) || !isText(kid) || !isText(alg)) return 'malformed'
  if (!isTime(exp) || !(iat === undefined || isTime(iat))) return 'malformed'
  const audience = audienceIn(aud)
  if (audience === undefined || (form.isOfPerson && audience === null)) return 'malformed'
  const jwk = isObject(cnf) ? cnf['jwk'] : null
  if (!isObject(jwk)) return 'malformed'
  const untilMs = exp * 1_000
  const isEarly = iat !== undefined && (iat - skewS) * 1_000 > nowMs
  if (untilMs <= nowMs || isEarly) return 'token-expired'
  return {
    ...{ issuer: iss, metadata: dwk, kid, algorithm: alg, audience, isOfPerson: form.isOfPerson },
    ...{ jwk, untilMs, base: `${parts[0]}.${parts[1]}`, bytes },
  }
}

/** `undefined`: not a text or a list of texts. */
function audienceIn(aud: unknown): readonly string[] | null | undefined {
  if (aud === undefined) return null
  const all: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return all.every((each) => typeof each === 'string') ? all : undefined
}

function objectIn(part: string | undefined): Readonly<Record<string, unknown>> | null {
  const bytes = bytesIn(part)
  if (bytes === null) return null
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    return isObject(value) ? value : null
  } catch {
    return null
  }
}

/** `null`: it is empty, or another text stands for the same bytes. */
function bytesIn(part: string | undefined): Buffer | null {
  if (part === undefined || part === '') return null
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : null
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= TIME_MAX_S
}

/** The year 33658. Multiplied by 1,000 it is a safe integer. */
const TIME_MAX_S = 1_000_000_000_000

/** By `typ`: the metadata documents with the keys of its issuers, `null` for any. */
const FORMS: ReadonlyMap<
  unknown,
  { readonly metadata: readonly unknown[] | null; readonly isOfPerson: boolean }
> = new Map([
  [undefined, { metadata: null, isOfPerson: false }],
  ['jwt', { metadata: null, isOfPerson: false }],
  ['aa-agent+jwt', { metadata: ['aauth-agent.json'], isOfPerson: false }],
  ['aa-person+jwt', { metadata: ['aauth-person.json'], isOfPerson: true }],
  ['aa-auth+jwt', { metadata: ['aauth-person.json', 'aauth-access.json'], isOfPerson: true }],
])
