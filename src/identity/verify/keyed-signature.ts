import { type Dictionary, isInnerList, type Item, Token } from 'structured-headers'
import { type DocumentRules, readAgentId } from '../keys/agent-document.ts'
import { metadataPlaceOf } from '../keys/issuer-metadata.ts'
import { fieldValue, type SignedRequest } from '../signature/signature-base.ts'
import { readSignatureKey, type SignatureKey } from '../signature/signature-key.ts'
import { readDistinctDictionary } from '../signature/structured-text.ts'
import { type HttpSignature, readSignatures, type SignaturePolicy } from './http-signature.ts'
import { readDelegationToken } from './delegation-token.ts'
import type { KeyFieldFault } from './signature-faults.ts'
import { type BotFault, type ReadBotSignature, SKEW_S } from './web-bot-auth.ts'

/** A signature whose key is in the request: scheme `hwk`. */
export interface InlineSignature {
  readonly kind: 'inline'
  readonly key: SignatureKey
  readonly signature: HttpSignature
}

/** A signature whose key is published, or in a token whose key is published: scheme `jwks`, `jwks_uri` or `jwt`. */
export interface PublishedSignature {
  readonly kind: 'published'
  /** The signer that the request names. */
  readonly agentId: string
  /** The id of the document with the keys, or with the way to them. */
  readonly keysOf: string
  /** The issuer that this document must describe; `null`: it must be a key set. */
  readonly issuer: string | null
  readonly kid: string
  /** `null`: the published key made the signature. */
  readonly delegation: Delegation | null
  readonly signature: HttpSignature
}

/** A token of the issuer that names the key of the signature. */
export interface Delegation {
  readonly key: SignatureKey
  readonly isOfPerson: boolean
  readonly algorithm: string
  /** What the issuer signed, and how. */
  readonly base: string
  readonly bytes: Uint8Array
}

export type KeyedSignature = InlineSignature | PublishedSignature | RefusedKey

export interface RefusedKey {
  readonly kind: 'refused'
  readonly fault: BotFault | KeyFieldFault
}

/**
 * The signatures of a request whose keys are named in Signature-Key (draft-hardt-httpbis-signature-key-08), instead of
 * those that could not be read without it. A signature with a valid Signature-Agent stays as it is. Never throws.
 */
export function withKeyedSignatures(
  bots: readonly ReadBotSignature[],
  request: SignedRequest,
  rules: DocumentRules,
  nowMs: number,
): readonly (ReadBotSignature | KeyedSignature)[] {
  const text = fieldValue(request.rawHeaders, SIGNATURE_KEY)
  if (text === null) return bots
  const named = bots.filter((each) => each.kind === 'signature')
  const keyed = keyedIn(text, new Set(named.map(({ signature }) => signature.label)), request, rules, nowMs)
  return keyed.length === 0 ? bots : [...named, ...keyed]
}

/** Whether the key names a single algorithm, as the draft requires, and it is one of those that are supported here. */
export function namesAlgorithm(jwk: Readonly<Record<string, unknown>>): boolean {
  return ALGORITHMS.has(jwk['alg'])
}

function keyedIn(
  text: string,
  others: ReadonlySet<string>,
  request: SignedRequest,
  rules: DocumentRules,
  nowMs: number,
): readonly KeyedSignature[] {
  // A token of an unsupported scheme may be as long as this: the signature is unchecked, not invalid.
  if (text.length > FIELD_LENGTH_MAX) return [refused('key-too-large')]
  let members: Dictionary
  try {
    members = readDistinctDictionary(text)
  } catch {
    return [refused('malformed')]
  }
  const labels = new Set([...members.keys()].filter((label) => !others.has(label)))
  const read = readSignatures(request, { ...POLICY, labels }, nowMs)
  if (read.kind === 'refused') return read.fault === 'other-tag' ? [] : [refused(read.fault)]
  return read.signatures.map((signature) => {
    const member = members.get(signature.label)!
    if (isInnerList(member)) return refused('malformed')
    // Without `expires`, the age alone ends it.
    const goodUntilMs = signature.expiresS === null ? signature.createdS * 1_000 + AGE_MAX_MS : Infinity
    if (goodUntilMs <= nowMs) return refused('too-old')
    const limited = {
      ...signature,
      goodUntilMs: Math.min(signature.goodUntilMs, goodUntilMs),
      algorithm: null,
    }
    return keyedBy(member, limited, { ...rules, base: request.base, nowMs })
  })
}

/** What the key of a signature is judged by, beside the signature. */
interface Scene extends DocumentRules {
  /** Scheme and host of the request. */
  readonly base: string
  readonly nowMs: number
}

function keyedBy([scheme, parameters]: Item, signature: HttpSignature, rules: Scene): KeyedSignature {
  if (!(scheme instanceof Token)) return refused('malformed')
  const given = Object.fromEntries(parameters)
  switch (scheme.toString()) {
    case 'jwt':
      return ofToken(given, signature, rules)
    case 'hwk':
      return inline(given, signature, rules)
    case 'jwks':
      return ofKeySet(given, signature, rules)
    case 'jwks_uri':
      return ofIssuer(given, signature, rules)
    default:
      return refused('ignored-key')
  }
}

type Parameters = Readonly<Record<string, unknown>>

function inline(
  jwk: Parameters,
  signature: HttpSignature,
  { allowPrivate }: DocumentRules,
): InlineSignature | RefusedKey {
  if (jwk['kid'] !== undefined) return refused('malformed')
  const key = keyIn(jwk, allowPrivate)
  return typeof key === 'string' ? refused(key) : { kind: 'inline', key, signature }
}

function keyIn(jwk: Parameters, allowPrivate: boolean): SignatureKey | RefusedKey['fault'] {
  if (typeof jwk['kty'] !== 'string') return 'malformed'
  const form = ALGORITHMS.get(jwk['alg'])
  if (form === undefined) return 'ignored-key'
  if (jwk['kty'] !== form.kty || jwk['crv'] !== form.crv) return 'other-algorithm'
  const read = readSignatureKey(jwk, allowPrivate)
  if (read.kind === 'key') return read.key
  // Without a member, the key as a whole is refused: it is a published one.
  return read.member === '' ? 'ignored-key' : 'malformed'
}

function ofToken(
  { jwt }: Parameters,
  signature: HttpSignature,
  { base, nowMs, ...rules }: Scene,
): PublishedSignature | RefusedKey {
  if (typeof jwt !== 'string') return refused('malformed')
  const token = readDelegationToken(jwt, nowMs, SKEW_S)
  if (typeof token === 'string') return refused(token)
  const { issuer, metadata, kid, audience, untilMs } = token
  if (audience !== null && !audience.includes(base)) return refused('token-for-another')
  const named = ofIssuer({ id: issuer, dwk: metadata, kid }, signature, rules)
  if (named.kind === 'refused') return named
  const key = keyIn(token.jwk, rules.allowPrivate)
  if (typeof key === 'string') return refused(key)
  const { isOfPerson, algorithm, bytes } = token
  return {
    ...named,
    delegation: { key, isOfPerson, algorithm, base: token.base, bytes },
    signature: { ...signature, goodUntilMs: Math.min(signature.goodUntilMs, untilMs) },
  }
}

function ofKeySet(
  { url, kid }: Parameters,
  signature: HttpSignature,
  rules: DocumentRules,
): PublishedSignature | RefusedKey {
  if (typeof url !== 'string' || !isKid(kid)) return refused('malformed')
  const read = readAgentId(url, rules)
  if ('refused' in read) return refused('malformed')
  // Here an origin stands for its key directory.
  if (new URL(url).pathname === '/') return refused('ignored-key')
  const keys = { agentId: read.id, keysOf: read.id, issuer: null, kid }
  return { kind: 'published', ...keys, delegation: null, signature }
}

function ofIssuer(
  { id, dwk, kid }: Parameters,
  signature: HttpSignature,
  rules: DocumentRules,
): PublishedSignature | RefusedKey {
  if (typeof id !== 'string' || typeof dwk !== 'string' || !isKid(kid)) return refused('malformed')
  const read = readAgentId(id, rules)
  if ('refused' in read || read.id !== id || id.includes('?') || !NAME.test(dwk)) return refused('malformed')
  const keys = { agentId: id, keysOf: metadataPlaceOf(id, dwk), issuer: id, kid }
  return { kind: 'published', ...keys, delegation: null, signature }
}

function isKid(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= KID_LENGTH_MAX
}

function refused(fault: RefusedKey['fault']): RefusedKey {
  return { kind: 'refused', fault }
}

const SIGNATURE_KEY = 'signature-key'
/** A token of AAuth takes 600 to 900 bytes, with RSA up to 2,500. */
const FIELD_LENGTH_MAX = 4_096
const KID_LENGTH_MAX = 256
/** The name of a document, and no way to another one. */
const NAME = /^(?!\.+$)[\w.-]{1,64}$/
const POLICY: SignaturePolicy = {
  // The draft defines none.
  tag: null,
  covers: [['@authority', '@target-uri'], ['signature-key']],
  needsExpiry: false,
  fieldLengthMax: 2_048,
  ageMaxS: 86_400,
  skewS: SKEW_S,
}
/** Of a signature without `expires`, with the allowed clock difference. */
const AGE_MAX_MS = (60 + SKEW_S) * 1_000
/** The fully-specified algorithms that are supported, and the kind of key of each. */
const ALGORITHMS: ReadonlyMap<unknown, { readonly kty: string; readonly crv: string | undefined }> = new Map([
  ['Ed25519', { kty: 'OKP', crv: 'Ed25519' }],
  ['ES256', { kty: 'EC', crv: 'P-256' }],
  ['ES384', { kty: 'EC', crv: 'P-384' }],
  ['PS512', { kty: 'RSA', crv: undefined }],
])
