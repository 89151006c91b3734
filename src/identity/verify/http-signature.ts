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

/** What a protocol asks of a signature (RFC 9421 §1.4). */
export interface SignaturePolicy {
  /** `gnap`. Signatures with another are somebody else's. `null`: whatever they have. */
  readonly tag: string | null
  /** Of each at least one has to be covered as a whole: `[['@method'], ['@authority', '@target-uri']]`. */
  readonly covers: readonly (readonly string[])[]
  /** Whether it has to say when it expires. */
  readonly needsExpiry: boolean
  /** Of what is parsed: `Signature-Input`, `Signature`, and together all structured fields, and the query, of which parts are covered. */
  readonly fieldLengthMax: number
  /** How long one is good, from `created`. */
  readonly ageMaxS: number
  /** By how much clocks may differ. */
  readonly skewS: number
}

/** One that is as the policy wants it. Whether the key that it names has made it, `verifySignature` says. */
export interface HttpSignature {
  readonly label: string
  readonly keyId: string | null
  readonly nonce: string | null
  readonly createdS: number
  readonly expiresS: number | null
  /** It is refused from then on, by its age if by nothing else: a replay need not be remembered for longer. */
  readonly goodUntilMs: number
  readonly components: readonly Component[]
  /** What it says it was made with; the key decides. */
  readonly algorithm: string | null
  /** What was signed. */
  readonly base: string
  readonly bytes: Uint8Array
}

/** Why there is no signature to rely on: for the answer and the log, which it says nothing secret to. */
export type SignatureFault =
  | 'unsigned'
  | 'malformed'
  | 'too-large'
  /** None has the tag. */
  | 'other-tag'
  | 'no-created'
  | 'no-expires'
  | 'created-in-future'
  | 'too-old'
  | 'expired'
  | 'lives-too-long'
  /** What has to be covered is not. */
  | 'not-covered'
  /** What is covered is not in the request, or not known here. */
  | 'no-component'
  | 'other-key'
  | 'other-algorithm'
  | 'wrong'

export type ReadSignatures =
  /** One at least. */
  | { readonly kind: 'signatures'; readonly signatures: readonly HttpSignature[] }
  | { readonly kind: 'refused'; readonly fault: SignatureFault }

export type Verification =
  | { readonly kind: 'verified'; readonly signature: HttpSignature }
  | { readonly kind: 'refused'; readonly fault: SignatureFault }

/** The signatures in a request that are as the policy wants them. Costs no public-key operation, and never throws. */
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
    const made = signatureOf(each, values, policy, nowMs)
    if (typeof made === 'string') fault = made
    else signatures.push(made)
  }
  return signatures.length > 0 ? { kind: 'signatures', signatures } : { kind: 'refused', fault }
}

/** `null`: this key has made it. */
export function verifySignature(signature: HttpSignature, key: SignatureKey): SignatureFault | null {
  if (signature.algorithm !== null && signature.algorithm !== key.algorithm) return 'other-algorithm'
  return verifyBytes(key, signature.base, signature.bytes) ? null : 'wrong'
}

/** Whether this key has made these bytes of that base. */
export function verifyBytes(key: SignatureKey, base: string, bytes: Uint8Array): boolean {
  return bytes.length === key.signatureBytes && isMadeBy(key, Buffer.from(base, 'latin1'), bytes)
}

/** What the parameters of a signature say of its times, as the policy wants them. */
export function signatureTimes(
  parameters: ReadonlyMap<string, BareItem>,
  policy: Pick<SignaturePolicy, 'needsExpiry' | 'ageMaxS' | 'skewS'>,
  nowMs: number,
): SignatureTimes | SignatureFault {
  const said = saidBy(parameters)
  return said === null ? 'malformed' : timesOf(said, policy, nowMs)
}

/** Where the key is known before: whether one of the request's signatures names it, and was made with it. */
export function verifyRequest(
  request: SignedRequest,
  policy: SignaturePolicy,
  key: SignatureKey,
  nowMs: number,
): Verification {
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

/** Whether it covers all of this component, or this part of it. */
export function isCovered({ components }: HttpSignature, name: string, part: string | null = null): boolean {
  return components.some((each) => each.name === name && each.part === part)
}

/**
 * What tells this use of a key from every other: its nonce, else what of the signature nobody but the signer can make
 * anew. Of an ECDSA signature (r, s) anybody makes (r, -s), which is as good.
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
  return { ...{ label, keyId, nonce, algorithm }, ...times, components, base, bytes }
}

interface Said {
  readonly created: number | null
  readonly expires: number | null
  readonly keyId: string | null
  readonly nonce: string | null
  readonly algorithm: string | null
}

/** `null`: a parameter is not of its type (RFC 9421 §2.3). Those that nobody knows may be there. */
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
      // Of any length of salt: many sign with the longest instead of the 64 bytes of RFC 9421 §3.3.1.
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
/** In the year 33658; a thousand times it is a safe integer. */
const TIME_MAX_S = 1_000_000_000_000
const TEXT_LENGTH_MAX = 512
