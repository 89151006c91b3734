import * as z from 'zod'
import { JA4_TYPES } from '../../classify/known/fingerprint-form.ts'
import { CATEGORIES, PURPOSES } from '../../classify/known/software.ts'
import type { SubmissionRecord } from '../../store/catalogue/submissions.ts'
import type { ApiContext } from './context.ts'
import { EFFECTS, type FindingCode } from '../judging/submissions/findings.ts'
import { figuresOf, sumOf, type TrialFigures } from '../judging/submissions/figures.ts'
import type { Taken } from '../judging/submissions/submit.ts'
import { time, timeOf } from '../http/schemas.ts'
import { signatureEvidence } from '../judging/evidence.ts'
import type { KnownSignature } from '../../store/catalogue/known-signature.ts'
import { fingerprintType, shownSignature } from '../judging/signature-schemas.ts'

export const type = fingerprintType
export const category = z.enum(CATEGORIES)
export const purposes = z.array(z.enum(PURPOSES))
export const status = z.enum(['pending', 'accepted', 'rejected', 'duplicate'])
const reason = z
  .strictObject({
    code: z.enum(Object.keys(EFFECTS) as [FindingCode, ...FindingCode[]]).meta({
      description: 'Stable, for programs.',
    }),
    detail: z.string().meta({ description: 'A readable description.' }),
  })
  .meta({ id: 'SubmissionReason' })

/** `signature`: the schema that the API version has. */
export function submitAnswer<Signature extends z.ZodType>(signature: Signature) {
  const submission = z.strictObject({ id: z.string(), status, signature, reasons: z.array(reason) })
  return z.strictObject({ submissions: z.array(submission) })
}

const trial = z
  .strictObject({
    since: time,
    is_counting: z
      .boolean()
      .meta({ description: 'Whether it is counted: only while a submission of it is pending.' }),
    hits: z.int().min(0).meta({ description: 'Requests with the fingerprint.' }),
    addresses: z.int().min(0).meta({ description: 'Distinct addresses, approximately.' }),
    first_hit_at: time.nullable(),
    last_hit_at: time.nullable(),
    agreements: z
      .int()
      .min(0)
      .meta({ description: 'Requests that were classified as this agent without it.' }),
    undecided: z
      .int()
      .min(0)
      .meta({ description: 'Requests that were classified as unknown or as unnamed automation.' }),
    disagreements: z
      .strictObject({
        total: z.int().min(0),
        by: z.array(
          z.strictObject({
            verdict: z.string(),
            agent_id: z.string().nullable(),
            requests: z.int().min(0),
          }),
        ),
      })
      .meta({ description: 'Requests that were classified as human or as another agent.' }),
    false_positive_reports: z
      .int()
      .min(0)
      .meta({ description: 'Requests that `/feedback` reported as human.' }),
    confirmations: z.int().min(0).meta({
      description: 'Requests that `/feedback` reported as this agent, or as an agent without naming it.',
    }),
    contradictions: z
      .int()
      .min(0)
      .meta({ description: 'Requests that `/feedback` reported as another agent.' }),
  })
  .meta({
    id: 'SubmissionTrial',
    description: 'What live traffic has shown about it since it was submitted. Verdicts are not affected.',
  })

const submissionFields = {
  id: z.string().meta({ example: 'sub_x7c1Jq0aT5b2' }),
  status,
  fingerprint: z.string(),
  type,
  agent_name: z.string().nullable(),
  agent_id: z.string().nullable(),
  category: category.nullable(),
  purpose: purposes.meta({ description: 'What the agent is for, as the submitter says.' }),
  user_agent: z.string().nullable(),
  notes: z.string().nullable(),
  reasons: z.array(reason),
  duplicate_of: z.string().nullable().meta({ description: 'The id of the earlier submission.' }),
  submitted_by: z.string().meta({ description: 'The id of a principal.' }),
  created_at: time,
  decided_by: z.string().nullable().meta({ description: 'The id of a principal; `analysis`.' }),
  decided_at: time.nullable(),
  rolled_back_at: time
    .nullable()
    .meta({ description: 'When it was rolled back after it was accepted. `null`: it was not.' }),
}
export const submissionAnswer = z
  .strictObject({ ...submissionFields, trial: trial.nullable() })
  .meta({ id: 'Submission' })

/** The answer to the principal that submits it. */
export function shownAtOnce(taken: Taken) {
  const { id, status, agentName, softwareId } = taken.record
  const signature = shownSignature(signatureOf(taken))
  const named = taken.registered === null ? { agent_name: agentName, agent_id: softwareId } : {}
  return { id, status, signature: { ...signature, ...named }, reasons: reasonsOf(taken.record) }
}

export async function shownWithEvidence(all: readonly Taken[], management: ApiContext) {
  const evidence = await signatureEvidence(all.map(signatureOf), management)
  return all.map((taken, index) => {
    const shown = shownAtOnce(taken)
    return { ...shown, signature: { ...shown.signature, evidence: evidence[index]! } }
  })
}

/** The existing signature, or the one that the submission would become, which affects no verdict. */
function signatureOf({ record, registered, live }: Taken): KnownSignature {
  const { status, type, value, createdAtMs } = record
  const seen = { type, value, lastSeenMs: live?.lastSeenMs ?? null, requestsSeen: live?.requests ?? 0 }
  if (registered !== null) {
    const isDecisive = registered.isDecisive === 1 && registered.kind === 'agent'
    return { ...registered, ...seen, status: 'active', isDecisive, software: registered }
  }
  return {
    ...seen,
    source: 'submitted',
    status: status === 'rejected' ? 'retired' : 'trial',
    firstSeenMs: live?.firstSeenMs ?? createdAtMs,
    provenance: null,
    observations: 0,
    confidence: 0,
    isDecisive: false,
    software: null,
  }
}

export async function shown(record: SubmissionRecord, management: ApiContext) {
  const [only] = await shownAll([record], management)
  return only!
}

export async function shownAll(records: readonly SubmissionRecord[], { store }: ApiContext) {
  const figures = new Map<string, TrialFigures>()
  for (const type of JA4_TYPES) {
    const ofType = records.filter((record) => record.type === type)
    const values = [...new Set(ofType.map(({ value }) => value))]
    const trials = new Map((await store.trials.of(type, values)).map((each) => [each.value, each]))
    const told = await store.feedback.toldOf(type, values)
    for (const record of ofType) {
      const trial = trials.get(record.value)
      const about = told.filter(({ value }) => value === record.value)
      if (trial !== undefined) figures.set(record.id, figuresOf(record, trial, about))
    }
  }
  return records.map((record) => ({ ...fieldsOf(record), trial: trialOf(figures.get(record.id) ?? null) }))
}

function fieldsOf(record: SubmissionRecord) {
  const { id, status, type, category, notes, principal } = record
  return {
    id,
    status,
    type,
    category,
    notes,
    fingerprint: record.value,
    agent_name: record.agentName,
    agent_id: record.softwareId,
    purpose: [...record.purposes],
    user_agent: record.userAgent,
    reasons: reasonsOf(record),
    duplicate_of: record.duplicateOf,
    submitted_by: principal,
    created_at: timeOf(record.createdAtMs),
    decided_by: record.decidedBy,
    decided_at: timeOf(record.decidedAtMs),
    rolled_back_at: timeOf(record.rolledBackAtMs),
  }
}

function reasonsOf({ reasons }: SubmissionRecord) {
  return reasons.map(({ code, detail }) => ({ code: code as FindingCode, detail }))
}

function trialOf(figures: TrialFigures | null): z.output<typeof trial> | null {
  if (figures === null) return null
  const { trial, agreements, undecided, disagreements } = figures
  return {
    since: timeOf(trial.sinceMs),
    is_counting: trial.isOpen,
    hits: trial.hits,
    addresses: trial.addresses.count,
    agreements,
    undecided,
    first_hit_at: timeOf(trial.firstHitMs),
    last_hit_at: timeOf(trial.lastHitMs),
    disagreements: {
      total: sumOf(disagreements),
      by: disagreements.map(({ verdict, agentId, count }) => ({
        verdict,
        agent_id: agentId,
        requests: count,
      })),
    },
    false_positive_reports: figures.falsePositives,
    confirmations: figures.confirmations,
    contradictions: figures.contradictions,
  }
}
