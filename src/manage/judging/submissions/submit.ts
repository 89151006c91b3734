import type { Registered, SubmissionRecord } from '../../../store/catalogue/submissions.ts'
import type { Actor } from '../../http/audit.ts'
import { newId } from '../../http/ids.ts'
import type { JudgingContext } from '../context.ts'
import { Refusal } from '../../http/refusal.ts'
import { type Analysis, analyse, type Live, type Submitted, type Surroundings } from './analyse.ts'
import { type FindingEffect, effectOf } from './findings.ts'
import { acceptClean } from './review.ts'
import { keyOf, surroundingsOf } from './surroundings.ts'

/** A submission, with what was known of its fingerprint on arrival. */
export interface Taken {
  readonly record: SubmissionRecord
  /** The existing signature that it repeats. */
  readonly registered: Registered | null
  readonly live: Live | null
  /** It has no findings that need a review. */
  readonly isClean: boolean
}

/** Analyses all submissions and stores all of them or none. Storing them changes no verdict. */
export async function submit(
  list: readonly Submitted[],
  actor: Actor,
  management: JudgingContext,
): Promise<readonly Taken[]> {
  const { store, nowMs } = management
  const { id: principal } = actor
  const taken = takeAll(list, principal, await surroundingsOf(list, management), nowMs())
  const records = taken.map(({ record }) => record)
  const waiting = records.filter(({ status }) => status === 'pending')
  await store.transaction(async (queries) => {
    if (waiting.length > 0) {
      const { all, own } = await store.submissions.countWaiting(principal, queries)
      if (own + waiting.length > WAITING_OF_ONE_MAX) throw tooMany('of yours', own, WAITING_OF_ONE_MAX)
      if (all + waiting.length > WAITING_MAX) throw tooMany('of everybody', all, WAITING_MAX)
    }
    await store.submissions.add(records, queries)
    await store.trials.open(waiting, nowMs(), queries)
    await store.trials.forget(await store.submissions.forgetOldest(FINISHED_MAX, queries), queries)
  })
  if (!management.settings.value('submissions.auto_accept')) return taken
  const accepted: Taken[] = []
  for (const each of taken) accepted.push(each.isClean ? await acceptedAtOnce(each, actor, management) : each)
  return accepted
}

async function acceptedAtOnce(taken: Taken, actor: Actor, management: JudgingContext): Promise<Taken> {
  const { store } = management
  const { id, type, value } = taken.record
  await acceptClean(taken.record, actor, management)
  const record = (await store.submissions.byId(id)) ?? taken.record
  const known = await store.submissions.registered(type, [value])
  return { ...taken, record, registered: known.find((each) => each.id === record.softwareId) ?? null }
}

/** Each submission is also compared with the earlier ones in the list. */
function takeAll(
  list: readonly Submitted[],
  principal: string,
  surroundings: Surroundings,
  atMs: number,
): readonly Taken[] {
  const before = new Map<string, SubmissionRecord[]>()
  const withThose: Surroundings = {
    ...surroundings,
    waiting: (submitted) => [...surroundings.waiting(submitted), ...(before.get(keyOf(submitted)) ?? [])],
  }
  return list.map((submitted) => {
    const analysis = analyse(submitted, withThose)
    const record = recordOf(submitted, analysis, principal, atMs)
    const key = keyOf(submitted)
    if (record.status === 'pending') before.set(key, [...(before.get(key) ?? []), record])
    const known = record.status === 'duplicate' ? surroundings.registered(submitted) : []
    const registered = known.find(({ id }) => id === record.softwareId) ?? known[0] ?? null
    const isClean = effectOf(analysis.findings) === 'notes'
    return { record, registered, live: surroundings.live(submitted), isClean }
  })
}

function recordOf(
  submitted: Submitted,
  { findings, software, duplicateOf }: Analysis,
  principal: string,
  atMs: number,
): SubmissionRecord {
  const status = STATUSES[effectOf(findings)]
  const isDecided = status !== 'pending'
  return {
    ...submitted,
    id: newId('sub'),
    createdAtMs: atMs,
    principal,
    status,
    reasons: findings,
    softwareId: software?.id ?? null,
    duplicateOf: status === 'duplicate' ? duplicateOf : null,
    madeSoftware: false,
    decidedAtMs: isDecided ? atMs : null,
    decidedBy: isDecided ? ANALYSIS : null,
    rolledBackAtMs: null,
  }
}

function tooMany(whose: string, count: number, max: number): Refusal {
  return new Refusal(
    'conflict',
    `${count} submissions ${whose} wait for an administrator, and ${max} may; nothing was taken`,
  )
}

/**
 * Even without objections, an administrator accepts a submission, unless the operator has set
 * `submissions.auto_accept`: accepting one changes which clients are let in, and a key that may submit must
 * not decide that.
 */
const STATUSES: Readonly<Record<FindingEffect, SubmissionRecord['status']>> = {
  rejects: 'rejected',
  repeats: 'duplicate',
  waits: 'pending',
  notes: 'pending',
}
/** Recorded as the decider instead of a principal. */
const ANALYSIS = 'analysis'
/** The maximum for one call; more than an administrator can review. */
export const LIST_MAX = 1_000
const WAITING_OF_ONE_MAX = 1_000
/** Live traffic is searched for all of them. */
const WAITING_MAX = 10_000
/** The number of rejected and duplicate submissions to keep. */
const FINISHED_MAX = 10_000
