import { type BareItem, type Dictionary, isInnerList, parseItem } from 'structured-headers'
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
  /** The keyid is not a thumbprint. */
  | 'no-thumbprint'
  | 'several'

export type ReadBotSignature =
  | BotSignature
  | {
      readonly kind: 'refused'
      readonly fault: BotFault
      /** Signature-Agent is present, so the signature is meant for agent checks. */
      readonly hasAgent: boolean
    }

/** The one Web Bot Auth signature of a request. Needs no public-key operation and never throws. */
export function readBotSignature(
  request: SignedRequest,
  rules: DocumentRules,
  nowMs: number,
): ReadBotSignature {
  const read = readSignatures(request, POLICY, nowMs)
  const refused = (fault: BotFault): ReadBotSignature => {
    const hasAgent = fieldValue(request.rawHeaders, AGENT) !== null
    return { kind: 'refused', fault, hasAgent }
  }
  if (read.kind === 'refused') return refused(read.fault)
  const [signature, another] = read.signatures
  // With several, each has its own agent, and it is unclear which one sent the request.
  if (signature === undefined || another !== undefined) return refused('several')
  const text = agentIn(request.rawHeaders, signature)
  if (text === null) return refused('no-agent')
  const agent = readAgentId(text, rules)
  if ('refused' in agent) return refused('other-agent')
  const { keyId } = signature
  if (keyId === null || !THUMBPRINT.test(keyId)) return refused('no-thumbprint')
  return { kind: 'signature', agentId: agent.id, thumbprint: keyId, signature }
}

/** The covered value of Signature-Agent: a dictionary member, or a string as in older drafts. */
function agentIn(rawHeaders: readonly string[], signature: HttpSignature): string | null {
  const text = fieldValue(rawHeaders, 'signature-agent')
  if (text === null || text.length > FIELD_LENGTH_MAX) return null
  try {
    if (text.startsWith('"')) return isCovered(signature, AGENT) ? asText(parseItem(text)[0]) : null
    return memberIn(readDistinctDictionary(text), signature)
  } catch {
    return null
  }
}

/** Ignores parameters of the member: the URL alone identifies the agent. */
function memberIn(members: Dictionary, signature: HttpSignature): string | null {
  const covered = [...members].filter(([name]) => isCovered(signature, AGENT, name))
  const whole = members.size === 1 && isCovered(signature, AGENT) ? [...members] : []
  const [[, member] = [], another] = covered.length > 0 ? covered : whole
  return member === undefined || another !== undefined || isInnerList(member) ? null : asText(member[0])
}

function asText(value: BareItem): string | null {
  return typeof value === 'string' ? value : null
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
