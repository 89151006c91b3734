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

/** Who says to have signed a request (draft-ietf-webbotauth-httpsig-protocol). Proven when a key of that agent has. */
export interface BotSignature {
  readonly kind: 'signature'
  /** As readAgentId gives it. */
  readonly agentId: string
  /** RFC 7638. */
  readonly thumbprint: string
  readonly signature: HttpSignature
}

export type BotFault =
  | SignatureFault
  /** Signature-Agent is not there, or not covered, or says no one thing. */
  | 'no-agent'
  /** What it says is no address of an agent. */
  | 'other-agent'
  /** The keyid is no thumbprint. */
  | 'no-thumbprint'
  | 'several'

export type ReadBotSignature =
  | BotSignature
  | {
      readonly kind: 'refused'
      readonly fault: BotFault
      /** There is a Signature-Agent: it is meant for who asks for agents. */
      readonly hasAgent: boolean
    }

/** The one Web Bot Auth signature of a request. Costs no public-key operation, and never throws. */
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
  // Each has an agent of its own, and nothing says for which of them the request is.
  if (signature === undefined || another !== undefined) return refused('several')
  const text = agentIn(request.rawHeaders, signature)
  if (text === null) return refused('no-agent')
  const agent = readAgentId(text, rules)
  if ('refused' in agent) return refused('other-agent')
  const { keyId } = signature
  if (keyId === null || !THUMBPRINT.test(keyId)) return refused('no-thumbprint')
  return { kind: 'signature', agentId: agent.id, thumbprint: keyId, signature }
}

/** What Signature-Agent says where the signature covers it: a member of a dictionary, or, as drafts had it, a string. */
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

/** Parameters of a member change nothing: what an address is, it says itself. */
function memberIn(members: Dictionary, signature: HttpSignature): string | null {
  const covered = [...members].filter(([name]) => isCovered(signature, AGENT, name))
  const whole = members.size === 1 && isCovered(signature, AGENT) ? [...members] : []
  const [[, member] = [], another] = covered.length > 0 ? covered : whole
  return member === undefined || another !== undefined || isInnerList(member) ? null : asText(member[0])
}

function asText(value: BareItem): string | null {
  return typeof value === 'string' ? value : null
}

/** By how much clocks may differ. */
export const SKEW_S = 60
const AGENT = 'signature-agent'
const POLICY: SignaturePolicy = {
  tag: 'web-bot-auth',
  covers: [['@authority', '@target-uri']],
  needsExpiry: true,
  // Of real ones a third at most; parsing it costs no more than to check a signature then.
  fieldLengthMax: 2_048,
  ageMaxS: 86_400,
  skewS: SKEW_S,
}
const FIELD_LENGTH_MAX = 2_048
/** SHA-256. */
const THUMBPRINT = /^[\w-]{43}$/
