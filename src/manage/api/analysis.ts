import * as z from 'zod'
import { COMPARED_TYPES, typeOf } from '../judging/comparison.ts'
import { detectionAnswer, evidence, nameConfidence } from './detect.ts'

// Schemas for those tools and tasks that have no API path of their own.

/** Each fingerprint is compared with each other one. */
const COMPARED_MAX = 50

const comparedType = z.enum(COMPARED_TYPES)

/** A fingerprint with its type, or a text that shows the type. */
const givenFingerprint = z
  .union([z.string(), z.strictObject({ fingerprint: z.string(), type: comparedType.optional() })])
  .transform((given, context) => {
    const { fingerprint, type } = typeof given === 'string' ? { fingerprint: given, type: undefined } : given
    const found = typeOf(fingerprint)
    if (found !== null && (type === undefined || type === found)) return { fingerprint, type: found }
    context.addIssue({
      code: 'custom',
      message: `is not a fingerprint of ${type === undefined ? 'any known type' : `the type ${type}`}`,
    })
    return z.NEVER
  })

export const comparisonRequest = z
  .strictObject({
    fingerprints: z
      .array(givenFingerprint)
      .min(2, 'needs at least two')
      .max(COMPARED_MAX, `must have at most ${COMPARED_MAX}`),
  })
  .meta({ description: 'Fingerprints, each a string or `{fingerprint, type}`.' })

const relation = z.enum(['identical', 'same_client', 'same_library', 'different', 'unknown']).meta({
  description:
    '`same_client`: they differ only in parts that change between sessions and requests. `same_library`: the same library in another version or with other settings.',
})

export const comparedFingerprint = z.strictObject({
  type: comparedType,
  fingerprint: z.string(),
  known: z.string().nullable().meta({
    description:
      'How much of it is known: `exact`, or the parts that match, such as `a_b`. `null`: none of it.',
  }),
  owners: z.array(
    z.strictObject({
      id: z.string(),
      name: z.string(),
      kind: z.enum(['agent', 'tool', 'browser']),
      share: z.number().meta({ description: 'The share of its observations that belongs to this software.' }),
    }),
  ),
})

export const comparisonAnswer = z
  .strictObject({
    verdict: relation,
    why: z.string(),
    fingerprints: z.array(comparedFingerprint),
    comparisons: z.array(
      z.strictObject({
        first: z.int(),
        second: z.int(),
        relation,
        why: z.string(),
        agreeing: z.array(z.string()),
        differing: z.array(z.string()),
        common_owners: z.array(z.string()),
      }),
    ),
  })
  .meta({ id: 'Comparison' })

const verdict = detectionAnswer.verdict

export const explanationAnswer = z
  .strictObject({
    detection: z.strictObject(detectionAnswer),
    alternatives: z
      .array(z.strictObject({ verdict: z.enum(['agent', 'automation', 'human']), probability: z.number() }))
      .meta({ description: 'Most likely first.' }),
    evidence: z.array(
      evidence.extend({
        without: z
          .strictObject({
            verdict,
            confidence: z.number(),
            agent_name: z.string().nullable(),
            name_confidence: nameConfidence,
          })
          .meta({ description: 'The verdict without this piece of evidence.' }),
        decides: z.boolean().meta({ description: 'Whether the verdict would differ without it.' }),
      }),
    ),
    fingerprints: z.array(comparedFingerprint),
    untold: z
      .array(z.strictObject({ field: z.string(), says: z.string() }))
      .meta({ description: 'Missing inputs, and what each could show.' }),
  })
  .meta({ id: 'Explanation' })
