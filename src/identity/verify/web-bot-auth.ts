import { type BareItem, type Dictionary, isInnerList, type Item, parseItem, Token } from 'structured-headers'
import { PAYMENT_TAGS, type PaymentTag } from '../../classify/verdict/proof.ts'
import { type DocumentRules, readAgentId } from '../keys/agent-document.ts'
import {
  type HttpSignature,
  isCovered,
  readSignatures,
  type SignatureFault,
  type SignaturePolicy,
} from './http-signature.ts'
import { fieldValue, type SignedRequest } from '../signature/signature-base.ts'
import { readDistinctDictionary } from '../signature/structured-text.ts'

/**
 * The claimed signer of a request (draft-ietf-webbotauth-httpsig-protocol). Proven once a key of that agent
 * verifies the signature.
 */
export interface BotSignature {
  readonly kind: 'signature'
  /** From readAgentId. */
  readonly agentId: string
  /** RFC 7638. */
  readonly thumbprint: string
  readonly signature: HttpSignature
}

export type BotFault =
  | SignatureFault
  /** Signature-Agent is missing, not covered, or ambiguous. */
  | 'no-agent'
  /** Signature-Agent is not a valid agent URL. */
  | 'other-agent'
  /** Signature-Agent names a way to the keys that is unknown here, or a directory that is not an origin. */
  | 'ignored-agent'
  /** The keyid is not a thumbprint. */
  | 'no-thumbprint'
  /** The only signatures are those of a payment protocol (Trusted Agent Protocol). */
  | 'payment-tag'
  | 'several'

export interface RefusedSignature {
  readonly kind: 'refused'
  readonly fault: BotFault
}

export type ReadBotSignature = BotSignature | RefusedSignature

/** `origin`: without a type, Signature-Agent names the origin of a directory, as the protocol has it. `url`: or a document. */
export type AgentForm = 'origin' | 'url'

/**
 * The Web Bot Auth signatures of a request, each read by itself; at least one. Needs no public-key operation and never
 * throws.
 */
export function readBotSignatures(
  request: SignedRequest,
  rules: DocumentRules,
  nowMs: number,
  form: AgentForm = 'origin',
): readonly ReadBotSignature[] {
  const read = readSignatures(request, POLICY, nowMs)
  if (read.kind === 'signatures')
    return read.signatures.map((signature) => readOne(signature, request.rawHeaders, rules, form))
  return [refused(isPaymentAlone(read.fault, request.rawHeaders) ? 'payment-tag' : read.fault)]
}

/** Whether no signature is meant for this protocol, but one is for the Trusted Agent Protocol. */
function isPaymentAlone(fault: SignatureFault, rawHeaders: readonly string[]): boolean {
  if (fault !== 'other-tag' && fault !== 'malformed') return false
  const isMeant = fieldValue(rawHeaders, 'signature-input')?.includes(`tag="${POLICY.tag}"`) === true
  return !isMeant && paymentTagIn(rawHeaders) !== null
}

/** The same for a request that must have one. */
export function readBotSignature(
  request: SignedRequest,
  rules: DocumentRules,
  nowMs: number,
  form: AgentForm = 'origin',
): ReadBotSignature {
  const [read, another] = readBotSignatures(request, rules, nowMs, form)
  return another === undefined ? read! : refused('several')
}

/** Whether the request claims an agent by Signature-Agent. */
export function namesAgent(rawHeaders: readonly string[]): boolean {
  return fieldValue(rawHeaders, AGENT) !== null
}

/**
 * The tag of a signature of the Trusted Agent Protocol; one for paying counts before one for looking around. Read as text:
 * the signatures in the specification of the protocol have the parameter `keyId`, which is invalid in a structured field.
 */
export function paymentTagIn(rawHeaders: readonly string[]): PaymentTag | null {
  const text = fieldValue(rawHeaders, 'signature-input')?.slice(0, FIELD_LENGTH_MAX) ?? ''
  return PAYMENT_TAGS.findLast((tag) => text.includes(`tag="${tag}"`)) ?? null
}

function readOne(
  signature: HttpSignature,
  rawHeaders: readonly string[],
  rules: DocumentRules,
  form: AgentForm,
): ReadBotSignature {
  const named = agentIn(rawHeaders, signature)
  if (named === null) return refused('no-agent')
  const agent = readAgentId(named.text, rules)
  if (!isFollowed(named, form, agent)) return refused('ignored-agent')
  if ('refused' in agent) return refused('other-agent')
  const { keyId } = signature
  if (keyId === null || !THUMBPRINT.test(keyId)) return refused('no-thumbprint')
  return { kind: 'signature', agentId: agent.id, thumbprint: keyId, signature }
}

interface NamedAgent {
  readonly text: string
  /** How its keys are found. `null`: not stated. */
  readonly type: BareItem | null
}

/** A directory is at an origin, and other documents are not. */
function isFollowed(
  { text, type }: NamedAgent,
  form: AgentForm,
  agent: ReturnType<typeof readAgentId>,
): boolean {
  const name = type instanceof Token ? type.toString() : type
  if (name !== null && (typeof name !== 'string' || !(type instanceof Token) || !TYPES.has(name)))
    return false
  if ('refused' in agent) return true
  const isOrigin = new URL(text).origin === agent.id
  if (name === null && form === 'url') return true
  return isOrigin === (name === null || name === 'directory')
}

/** What Signature-Agent says, as far as it is covered: a dictionary member, or a string as in older drafts. */
function agentIn(rawHeaders: readonly string[], signature: HttpSignature): NamedAgent | null {
  const text = fieldValue(rawHeaders, AGENT)
  if (text === null || text.length > FIELD_LENGTH_MAX) return null
  try {
    if (text.startsWith('"')) return isCovered(signature, AGENT) ? namedBy(parseItem(text)) : null
    return memberIn(readDistinctDictionary(text), signature)
  } catch {
    return null
  }
}

/** The member with the label of the signature, or else the only one that it covers. */
function memberIn(members: Dictionary, signature: HttpSignature): NamedAgent | null {
  const isWhole = isCovered(signature, AGENT)
  const covered = [...members].filter(([name]) => isCovered(signature, AGENT, name))
  const own = [...members].filter(
    ([name]) => name === signature.label && (isWhole || isCovered(signature, AGENT, name)),
  )
  const whole = members.size === 1 && isWhole ? [...members] : []
  const [[, member] = [], another] = own.length > 0 ? own : covered.length > 0 ? covered : whole
  return member === undefined || another !== undefined || isInnerList(member) ? null : namedBy(member)
}

function namedBy([value, parameters]: Item): NamedAgent | null {
  return typeof value === 'string' ? { text: value, type: parameters.get('type') ?? null } : null
}

function refused(fault: BotFault): RefusedSignature {
  return { kind: 'refused', fault }
}

/** Allowed clock difference. */
export const SKEW_S = 60
const AGENT = 'signature-agent'
const POLICY: SignaturePolicy = {
  tag: 'web-bot-auth',
  covers: [['@authority', '@target-uri']],
  needsExpiry: true,
  // Real fields use at most a third of it. At this length parsing costs no more than verifying.
  fieldLengthMax: 2_048,
  ageMaxS: 86_400,
  skewS: SKEW_S,
}
const FIELD_LENGTH_MAX = 2_048
/** SHA-256. */
const THUMBPRINT = /^[\w-]{43}$/
/** How keys are found at the URL in Signature-Agent. */
const TYPES: ReadonlySet<string> = new Set(['directory', 'jwks_uri', 'cimd'])
