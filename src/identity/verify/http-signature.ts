import { constants, createHash, verify } from 'node:crypto'
import type { BareItem } from 'structured-headers'
import {
  type Component,
  ComponentValues,
  componentOf,
  type SignedRequest,
} from '../signature/signature-base.ts'
import { type LabelledSignature, readSignatureFields } from '../signature/signature-fields.ts'
import type { SignatureKey } from '../signature/signature-key.ts'
import { innerListText } from '../signature/structured-text.ts'

/** What a protocol requires of a signature (RFC 9421 §1.4). */
export interface SignaturePolicy {
  /** `gnap`. Signatures with other tags are ignored. `null`: any tag. */
  readonly tag: string | null
  /** Signatures with other labels are ignored. Omitted: any label. */
  readonly labels?: ReadonlySet<string>
  /**
   * At least one component of each group must be covered as a whole: `[['@method'], ['@authority',
   * '@target-uri']]`.
   */
  readonly covers: readonly (readonly string[])[]
  /** Whether `expires` is required. */
  readonly needsExpiry: boolean
  /**
   * Limits the text to parse: `Signature-Input`, `Signature`, and the sum of structured fields and the query
   * with covered parts.
   */
  readonly fieldLengthMax: number
  /** How long a signature is valid, counted from `created`. */
  readonly ageMaxS: number
  /** Allowed clock difference. */
  readonly skewS: number
}

/** A signature that meets the policy. `verifySignature` then checks it with the key. */
export interface HttpSignature {
  readonly label: string
  readonly keyId: string | null
  readonly nonce: string | null
  readonly createdS: number
  readonly expiresS: number | null
  /**
   * It is refused from then on, at least because of its age, so a replay need not be remembered for longer.
   */
  readonly goodUntilMs: number
  readonly components: readonly Component[]
  /** The `alg` parameter. The key decides. */
  readonly algorithm: string | null
  /** The text that was signed. */
  readonly base: string
  readonly bytes: Uint8Array
}

/** Why there is no reliable signature. It is used in the response and the log, so it contains no secrets. */
export type SignatureFault =
  | 'unsigned'
  | 'malformed'
  | 'too-large'
  /** No signature has the tag. */
  | 'other-tag'
  | 'no-created'
  | 'no-expires'
  | 'created-in-future'
  | 'too-old'
  | 'expired'
  | 'lives-too-long'
  /** A required component is not covered. */
  | 'not-covered'
  /** A covered component is missing in the request or unknown. */
  | 'no-component'
  | 'other-key'
  | 'other-algorithm'
  | 'wrong'

export type ReadSignatures =
  /** At least one. */
  | { readonly kind: 'signatures'; readonly signatures: readonly HttpSignature[] }
  | { readonly kind: 'refused'; readonly fault: SignatureFault }

export type SignatureOutcome =
  | { readonly kind: 'verified'; readonly signature: HttpSignature }
  | { readonly kind: 'refused'; readonly fault: SignatureFault }

/** The signatures of a request that meet the policy. Needs no public-key operation and never throws. */
export function readSignatures(
  request: SignedRequest,
  policy: SignaturePolicy,
  nowMs: number,
): ReadSignatures {
  const read = readSignatureFields(request.rawHeaders, policy.fieldLengthMax)
  if (read.kind !== 'signatures') return { kind: 'refused', fault: read.kind }
  const values = new ComponentValues(request, policy.fieldLengthMax)
  const signatures: HttpSignature[] = []
  let fault: SignatureFault = 'other-tag'
  for (const each of read.signatures) {
    if (policy.tag !== null && each.input[1].get('tag') !== policy.tag) continue
    if (policy.labels?.has(each.label) === false) continue
    const made = signatureOf(each, values, policy, nowMs)
    if (typeof made === 'string') fault = made
    else signatures.push(made)
  }
  return signatures.length > 0 ? { kind: 'signatures', signatures } : { kind: 'refused', fault }
}

/** `null`: this key made the signature. */
export function verifySignature(signature: HttpSignature, key: SignatureKey): SignatureFault | null {
  if (signature.algorithm !== null && signature.algorithm !== key.algorithm) return 'other-algorithm'
  return verifyBytes(key, signature.base, signature.bytes) ? null : 'wrong'
}

/** Whether this key signed `base` with these bytes. */
export function verifyBytes(key: SignatureKey, base: string, bytes: Uint8Array): boolean {
  return bytes.length === key.signatureBytes && isMadeBy(key, Buffer.from(base, 'latin1'), bytes)
}

/** Checks the time parameters of a signature against the policy. */
export function signatureTimes(
  parameters: ReadonlyMap<string, BareItem>,
  policy: Pick<SignaturePolicy, 'needsExpiry' | 'ageMaxS' | 'skewS'>,
  nowMs: number,
): SignatureTimes | SignatureFault {
  const said = saidBy(parameters)
  return said === null ? 'malformed' : timesOf(said, policy, nowMs)
}

/** For a known key: whether a signature of the request names it and was made with it. */
export function verifyRequest(
  request: SignedRequest,
  policy: SignaturePolicy,
  key: SignatureKey,
  nowMs: number,
): SignatureOutcome {
  const read = readSignatures(request, policy, nowMs)
  if (read.kind === 'refused') return read
  let fault: SignatureFault = 'other-key'
  for (const signature of read.signatures) {
    if (signature.keyId !== key.thumbprint && (key.kid === null || signature.keyId !== key.kid)) continue
    const wrong = verifySignature(signature, key)
    if (wrong === null) return { kind: 'verified', signature }
    fault = wrong
  }
  return { kind: 'refused', fault }
}

/** Whether the signature covers the whole component, or this part of it. */
export function isCovered({ components }: HttpSignature, name: string, part: string | null = null): boolean {
  return components.some((each) => each.name === name && each.part === part)
}

/**
 * Identifies one use of a key: by its nonce, else by the part of the signature that only the signer can
 * create. Anyone can turn an ECDSA signature (r, s) into the equally valid (r, -s), so only r counts.
 */
export function replayIdOf({ nonce, bytes }: HttpSignature, { algorithm, thumbprint }: SignatureKey): string {
  const own = algorithm.startsWith('ecdsa') ? bytes.subarray(0, bytes.length / 2) : bytes
  const digest = createHash('sha256').update(`${thumbprint}\n`)
  return (
    nonce === null ? digest.update('signature\n').update(own) : digest.update(`nonce\n${nonce}`)
  ).digest('base64url')
}

export type SignatureTimes = Pick<HttpSignature, 'createdS' | 'expiresS' | 'goodUntilMs'>

function signatureOf(
  { label, input, bytes }: LabelledSignature,
  values: ComponentValues,
  policy: SignaturePolicy,
  nowMs: number,
): HttpSignature | SignatureFault {
  const said = saidBy(input[1])
  if (said === null) return 'malformed'
  const times = timesOf(said, policy, nowMs)
  if (typeof times === 'string') return times
  const components: Component[] = []
  let base = ''
  for (const identifier of input[0]) {
    const component = componentOf(identifier)
    const value = component === null ? null : values.of(component)
    if (component === null || value === null) return 'no-component'
    if (components.some((each) => isSame(each, component))) return 'malformed'
    components.push(component)
    base += `${component.text}: ${value}\n`
  }
  const isWhole = (name: string) => components.some((each) => each.name === name && each.part === null)
  if (!policy.covers.every((names) => names.some(isWhole))) return 'not-covered'
  base += `"@signature-params": ${innerListText(input)}`
  const { keyId, nonce, algorithm } = said
  return { label, keyId, nonce, algorithm, ...times, components, base, bytes }
}

interface Said {
  readonly created: number | null
  readonly expires: number | null
  readonly keyId: string | null
  readonly nonce: string | null
  readonly algorithm: string | null
}

/** `null`: a parameter has the wrong type (RFC 9421 §2.3). Unknown parameters are ignored. */
function saidBy(parameters: ReadonlyMap<string, BareItem>): Said | null {
  const said = (name: string) => parameters.get(name) ?? null
  const [created, expires] = [said('created'), said('expires')]
  const [keyId, nonce, algorithm] = [said('keyid'), said('nonce'), said('alg')]
  if (!isTime(created) || !isTime(expires)) return null
  if (!isText(keyId) || !isText(nonce) || !isText(algorithm)) return null
  return { created, expires, keyId, nonce, algorithm }
}

function timesOf(
  { created, expires }: Said,
  { needsExpiry, ageMaxS, skewS }: Pick<SignaturePolicy, 'needsExpiry' | 'ageMaxS' | 'skewS'>,
  nowMs: number,
): SignatureTimes | SignatureFault {
  if (created === null) return 'no-created'
  if (needsExpiry && expires === null) return 'no-expires'
  const goodUntilMs = (Math.min(created + ageMaxS, expires ?? Number.MAX_SAFE_INTEGER) + skewS) * 1_000
  if (created * 1_000 > nowMs + skewS * 1_000) return 'created-in-future'
  if (expires !== null && expires <= created) return 'expired'
  if (needsExpiry && expires !== null && expires - created > ageMaxS) return 'lives-too-long'
  if (goodUntilMs <= nowMs)
    return expires !== null && (expires + skewS) * 1_000 <= nowMs ? 'expired' : 'too-old'
  return { createdS: created, expiresS: expires, goodUntilMs }
}

function isMadeBy({ algorithm, key }: SignatureKey, base: Buffer, bytes: Uint8Array): boolean {
  switch (algorithm) {
    case 'ed25519':
      return verify(null, base, key, bytes)
    case 'ecdsa-p256-sha256':
      return verify('sha256', base, { key, dsaEncoding: 'ieee-p1363' }, bytes)
    case 'ecdsa-p384-sha384':
      return verify('sha384', base, { key, dsaEncoding: 'ieee-p1363' }, bytes)
    case 'rsa-pss-sha512':
      // Any salt length: many signers use the longest instead of the 64 bytes of RFC 9421 §3.3.1.
      return verify('sha512', base, { key, ...PSS }, bytes)
  }
}

function isSame(one: Component, other: Component): boolean {
  return one.name === other.name && one.part === other.part && one.form.kind === other.form.kind
}

function isTime(value: BareItem | null): value is number | null {
  return (
    value === null ||
    (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= TIME_MAX_S)
  )
}

function isText(value: BareItem | null): value is string | null {
  return value === null || (typeof value === 'string' && value.length <= TEXT_LENGTH_MAX)
}

const PSS = {
  padding: constants.RSA_PKCS1_PSS_PADDING,
  saltLength: constants.RSA_PSS_SALTLEN_AUTO,
}
/** The year 33658. Multiplied by 1,000 it is a safe integer. */
const TIME_MAX_S = 1_000_000_000_000
const TEXT_LENGTH_MAX = 512
