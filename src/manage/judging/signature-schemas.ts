import * as z from 'zod'
import { ALL_APPS, type AppScope } from '../../apps/app-scope.ts'
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
  agent_name: z.string().nullable().meta({ description: 'The software that has it; `null`: unknown.' }),
  agent_id: z.string().nullable(),
  kind: z.enum(SOFTWARE_KINDS).nullable().meta({
    description: 'The kind of that software: `agent`, `tool` or `browser`.',
  }),
  first_seen: time,
  last_seen: time.nullable().meta({ description: 'On traffic of this installation; `null`: never.' }),
  confidence: confidence.meta({
    description:
      'The probability that a client with this fingerprint is this software, among all software observed with it and one unknown.',
  }),
  observations: z.int().min(0).meta({ description: 'Connections or requests it was measured on.' }),
  requests_seen: z.int().min(0).meta({ description: 'Requests with it on traffic of this installation.' }),
  source: z.enum(['builtin', 'submitted', 'observed']).meta({
    description: '`builtin`: from files that come with Gatehouse, from feeds, or the operator’s own.',
  }),
  status: z.enum(['active', 'trial', 'unknown', 'retired']).meta({
    description:
      '`active`: it is used to classify requests. `trial`: it is only counted. `unknown`: it has no known owner.',
  }),
  decisive: z.boolean().meta({
    description:
      'An administrator decided that this fingerprint identifies this agent: a request with it is classified as this agent unless it names another.',
  }),
}

const evidence = reasons(
  'SignatureEvidence',
  'measured',
  'Why it has this owner. Weights are natural logarithms of odds and add up to the odds of `confidence`, which stays within one in a million of 0 and 1. Measurements on the named software (`measured`) raise it, measurements on other software (`shared`) lower it. A signature that changes no verdict says why (`on-trial`, `unknown`, `retired`). Facts that do not change the confidence have weight 0: that it decides alone (`decides`), who submitted it (`accepted`), live traffic (`seen-live`), and feedback of operators (`reported-human`, `reported-agent`, `reported-other`).',
)

export const signature = z.strictObject(signatureFields).meta({ id: 'Signature' })
export const signatureWithEvidence = z
  .strictObject({ ...signatureFields, evidence })
  .meta({ id: 'Signature' })

const score = confidence.optional().meta({
  description:
    'With `match=partial`: the probability that clients that share these parts are the same software.',
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

/**
 * The catalogue without what it knows from traffic, for principals that do not see the traffic of all apps: no
 * fingerprints that were only observed, and no counts.
 */
export function knownToTeam<Known extends KnownSignature>(
  signatures: readonly Known[],
  apps: AppScope,
): readonly Known[] {
  if (apps === ALL_APPS) return signatures
  return signatures.flatMap((each) =>
    each.source === 'observed' ? [] : { ...each, lastSeenMs: null, requestsSeen: 0 },
  )
}

export async function shownWithEvidence(
  signatures: readonly KnownSignature[],
  management: JudgingContext,
  apps: AppScope,
) {
  const all = await signatureEvidence(signatures, management)
  // Reports are about requests, and the requests may be those of other apps.
  const evidence =
    apps === ALL_APPS
      ? all
      : all.map((reasons) => reasons.filter(({ kind }) => !kind.startsWith('reported-')))
  return signatures.map((each, index) => ({ ...shownSignature(each), evidence: evidence[index]! }))
}
