import * as z from 'zod'
import { JA4_TYPES, type Ja4Type } from '../../classify/known/fingerprint-form.ts'
import { SOFTWARE_KINDS } from '../../classify/known/software.ts'
import type { KnownSignature } from '../../store/catalogue/known-signature.ts'
import type { JudgingContext } from './context.ts'
import { signatureEvidence } from './evidence.ts'
import { reasons, time, timeOf } from '../http/schemas.ts'

export const fingerprintType = z.enum(JA4_TYPES).meta({ id: 'FingerprintType' })

/** A number from 0 to 1. */
const confidence = z.number().min(0).max(1)

const signatureFields = {
  fingerprint: z.string().meta({
    description: 'Parts that may be anything are `*`: what equals all the others matches.',
    example: 't13d1516h2_8daaf6152771_e5627efa2ab1',
  }),
  type: fingerprintType,
  agent_name: z.string().nullable().meta({ description: 'Who has it; `null`: nobody knows.' }),
  agent_id: z.string().nullable(),
  kind: z.enum(SOFTWARE_KINDS).nullable().meta({
    description: 'What that is: an `agent`, or a `tool` or a `browser`, which are known as well.',
  }),
  first_seen: time,
  last_seen: time.nullable().meta({ description: 'On traffic of this installation; `null`: never.' }),
  confidence: confidence.meta({
    description:
      'How likely it is that who has it is this one, of all that were observed to have it, and somebody not known yet.',
  }),
  observations: z.int().min(0).meta({ description: 'Connections or requests it was measured on.' }),
  requests_seen: z.int().min(0).meta({ description: 'Requests with it on traffic of this installation.' }),
  source: z.enum(['builtin', 'submitted', 'observed']).meta({
    description: '`builtin`: from files that come with Gatehouse, from feeds, or the operator’s own.',
  }),
  status: z.enum(['active', 'trial', 'unknown', 'retired']).meta({
    description: '`active`: requests are judged by it. `trial`: it is only counted. `unknown`: nobody’s.',
  }),
  decisive: z.boolean().meta({
    description:
      'Somebody has decided that who has it is this agent: who shows it is held for that one, unless it names another.',
  }),
}

const evidence = reasons(
  'SignatureEvidence',
  'measured',
  'Why it is said whose it is. The weights add up to those of `confidence`: natural logarithms of odds, where nothing is surer than all but one in a million. How often it was measured of who is named (`measured`) speaks for that, how often of others (`shared`) against it. A signature that judges nothing says why (`on-trial`, `unknown`, `retired`). What changes no confidence weighs 0: that it decides alone (`decides`), who has sent it in (`accepted`), what was seen (`seen-live`), and what operators have said (`reported-human`, `reported-agent`, `reported-other`).',
)

export const signature = z.strictObject(signatureFields).meta({ id: 'Signature' })
export const signatureWithEvidence = z
  .strictObject({ ...signatureFields, evidence })
  .meta({ id: 'Signature' })

const score = confidence.optional().meta({
  description: 'With `match=partial`: how likely it is that who has what they share is the same.',
})

/** A match in the answer to a partial lookup. */
export const likeSignature = z.strictObject({ ...signatureFields, score }).meta({ id: 'FoundSignature' })
export const likeSignatureWithEvidence = z
  .strictObject({ ...signatureFields, evidence, score })
  .meta({ id: 'FoundSignature' })

export function shownSignature(signature: KnownSignature) {
  const { type, value, software, firstSeenMs, lastSeenMs, observations, requestsSeen } = signature
  return {
    fingerprint: value,
    type: type as Ja4Type,
    agent_name: software?.name ?? null,
    agent_id: software?.id ?? null,
    kind: software?.kind ?? null,
    first_seen: timeOf(firstSeenMs),
    last_seen: timeOf(lastSeenMs),
    confidence: signature.confidence,
    observations,
    requests_seen: requestsSeen,
    source: signature.source,
    status: signature.status,
    decisive: signature.isDecisive,
  }
}

export async function shownWithEvidence(signatures: readonly KnownSignature[], management: JudgingContext) {
  const evidence = await signatureEvidence(signatures, management)
  return signatures.map((each, index) => ({ ...shownSignature(each), evidence: evidence[index]! }))
}
