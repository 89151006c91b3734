import { ALL_APPS } from '../../../apps/app-scope.ts'
import { createHash } from 'node:crypto'
import { parseSoftware } from '../../../classify/known/software.ts'
import type { Queries } from '../../../store/engine/database.ts'
import type {
  SubmissionDecision,
  NamedSoftware,
  SubmissionRecord,
} from '../../../store/catalogue/submissions.ts'
import type { Trial, VerdictCount } from '../../../store/catalogue/trials.ts'
import { type Actor, type Change, changed } from '../../http/audit.ts'
import type { JudgingContext } from '../context.ts'
import { invalid, Refusal } from '../../http/refusal.ts'
import { analyse } from './analyse.ts'
import { EFFECTS } from './findings.ts'
import { forgetNames, idFor } from './names.ts'
import { surroundingsOf } from './surroundings.ts'

interface Review {
  readonly decision: 'accept' | 'reject' | 'rollback'
  /** The id or a name of the agent that the reviewer assigns, instead of the submitted one. */
  readonly agentId: string | null
  /** The reviewer accepts it although live traffic shows people with this fingerprint. */
  readonly isDespitePeople: boolean
}

/** Applies an administrator's decision. Throws a Refusal if the state is another or harm would result. */
export async function review(
  record: SubmissionRecord,
  wanted: Review,
  actor: Actor,
  management: JudgingContext,
): Promise<void> {
  switch (wanted.decision) {
    case 'accept':
      await accept(record, wanted, actor, management)
      return changedKnowledge(management)
    case 'reject':
      return reject(record, actor, management)
    case 'rollback':
      await rollBack(record, actor, management)
      return changedKnowledge(management)
  }
}

function changedKnowledge({ store, publisher }: JudgingContext): void {
  forgetNames(store)
  publisher.nudge()
}

async function accept(
  record: SubmissionRecord,
  { agentId, isDespitePeople }: Review,
  actor: Actor,
  management: JudgingContext,
): Promise<void> {
  if (record.status !== 'pending') throw notIn('pending', record)
  const target = await targetOf(record, agentId, management)
  await refuseHarm(record, target.software, isDespitePeople, management)
  await promote(record, target, actor, management)
}

/** Accepts a submission that was just analysed without objections, on behalf of its submitter. */
export async function acceptClean(
  record: SubmissionRecord,
  actor: Actor,
  management: JudgingContext,
): Promise<void> {
  await promote(record, await targetOf(record, null, management), actor, management)
  changedKnowledge(management)
}

/** Turns a submission into a signature, with the events about it, in one transaction. */
async function promote(
  record: SubmissionRecord,
  { software, isNew }: Target,
  actor: Actor,
  management: JudgingContext,
): Promise<void> {
  const { store, newSignatures, nowMs } = management
  const atMs = nowMs()
  const { id, type, value } = record
  const afterCommit = await changed(
    store,
    actor,
    changeOf('accept', record, software.id),
    atMs,
    async (queries) => {
      // Events lock the Sightings first and the trial counts second. The same order here avoids a deadlock.
      await store.sightings.lock(queries)
      const madeSoftware =
        isNew && (await store.catalogue.addSoftware(newAgent(software, record), atMs, queries))
      const decision: SubmissionDecision = {
        status: 'accepted',
        softwareId: software.id,
        madeSoftware,
        decidedAtMs: atMs,
        decidedBy: actor.id,
        rolledBackAtMs: null,
      }
      await decide(record, decision, queries, management)
      const isAdded = await store.catalogue.addSignature(
        {
          type,
          value,
          softwareId: software.id,
          status: 'active',
          source: 'submitted',
          provenance: `submission ${id}`,
          firstSeenMs: atMs,
          observations: OBSERVATIONS,
        },
        queries,
      )
      return isAdded ? newSignatures.add([{ type, value, softwareId: software.id }], queries) : null
    },
  )
  afterCommit?.()
}

async function reject(record: SubmissionRecord, actor: Actor, management: JudgingContext): Promise<void> {
  if (record.status !== 'pending') throw notIn('pending', record)
  const { store, nowMs } = management
  const atMs = nowMs()
  await changed(store, actor, changeOf('reject', record, record.softwareId), atMs, (queries) =>
    decide(
      record,
      { ...record, status: 'rejected', decidedAtMs: atMs, decidedBy: actor.id },
      queries,
      management,
    ),
  )
}

/** Undoes everything that accepting the submission created. */
async function rollBack(record: SubmissionRecord, actor: Actor, management: JudgingContext): Promise<void> {
  if (record.status !== 'accepted') throw notIn('accepted', record)
  const { store, nowMs } = management
  const atMs = nowMs()
  const { type, value } = record
  const softwareId = record.softwareId!
  await changed(store, actor, changeOf('rollback', record, softwareId), atMs, async (queries) => {
    const decision: SubmissionDecision = {
      ...record,
      status: 'rejected',
      decidedAtMs: atMs,
      decidedBy: actor.id,
      rolledBackAtMs: atMs,
    }
    await decide(record, decision, queries, management)
    await store.catalogue.setStatus({ type, value, softwareId }, 'retired', queries)
    if (await store.submissions.hasMade(softwareId, queries))
      await store.submissions.forgetMade(softwareId, queries)
  })
}

/** Only applies if the submission is unchanged: of two simultaneous decisions the second gets a Refusal. */
async function decide(
  record: SubmissionRecord,
  decision: SubmissionDecision,
  queries: Queries,
  { store }: JudgingContext,
): Promise<void> {
  const { id, status, type, value } = record
  if (!(await store.submissions.decide(id, status, decision, queries)))
    throw notIn(status, (await store.submissions.byId(id, queries)) ?? record)
  await store.trials.close(type, value, queries)
}

/** The software that gets the signature. */
interface Target {
  readonly software: NamedSoftware
  readonly isNew: boolean
}

/** The software that the reviewer names, or that now has the submitted name, or else a new agent. */
async function targetOf(
  { agentName, softwareId, category }: SubmissionRecord,
  agentId: string | null,
  { store }: JudgingContext,
): Promise<Target> {
  for (const name of agentId === null ? [softwareId, agentName] : [agentId]) {
    const software = name === null ? null : await store.catalogue.softwareNamed(name)
    if (software?.kind === 'browser')
      throw new Refusal('conflict', `it cannot be accepted: ${software.name} is a browser`)
    if (software !== null) return { software, isNew: false }
  }
  if (agentId !== null) throw invalid([{ pointer: '/agent_id', detail: 'is not the id of a known agent' }])
  if (agentName === null)
    throw invalid([{ pointer: '/agent_id', detail: 'is missing: the submission names no agent' }])
  const id = idFor(agentName, createHash('sha256').update(agentName).digest('hex'))
  const named = { name: agentName, kind: 'agent', category: category ?? 'custom' } as const
  return { software: { id, ...named }, isNew: true }
}

/**
 * Analyses the submission again: something that was harmless on arrival may be known to be harmful by now.
 */
async function refuseHarm(
  record: SubmissionRecord,
  { name, category }: NamedSoftware,
  isDespitePeople: boolean,
  management: JudgingContext,
): Promise<void> {
  const submitted = { ...record, agentName: name, category }
  const { findings } = analyse(submitted, await surroundingsOf([submitted], management))
  const harmful = findings.filter(({ code }) => EFFECTS[code] === 'rejects')
  if (harmful.length > 0)
    throw new Refusal('conflict', `it cannot be accepted: ${harmful.map(({ detail }) => detail).join('; ')}`)
  // An agent that drives a browser cannot be told from people by fingerprints alone.
  if (category === 'browser-agent' || isDespitePeople) return
  const [trial] = await management.store.trials.of(record.type, [record.value])
  const people = trial === undefined ? 0 : peopleIn(trial)
  if (people >= PEOPLE_MIN && people >= PEOPLE_SHARE_MIN * trial!.hits)
    throw new Refusal(
      'conflict',
      `${people} of ${trial!.hits} requests with it were classified as people; set despite_people to accept it anyway`,
    )
}

function peopleIn({ verdicts }: Trial): number {
  const isPerson = ({ verdict }: VerdictCount) => verdict === 'human'
  return verdicts.filter(isPerson).reduce((sum, { count }) => sum + count, 0)
}

function newAgent({ id, name, category }: NamedSoftware, submitted: SubmissionRecord) {
  const published = {
    source: `submission ${submitted.id}`,
    date: new Date(submitted.createdAtMs).toISOString().slice(0, 10),
  }
  const purpose = submitted.purposes.map((is) => ({ is, ...published }))
  return parseSoftware({ id, name, kind: 'agent', category, ...(purpose.length > 0 && { purpose }) })
}

function changeOf(
  decision: Review['decision'],
  { id, type, value }: SubmissionRecord,
  agentId: string | null,
): Change {
  const detail = { decision, type, fingerprint: value, agent_id: agentId }
  return { action: 'reviewSubmission', subject: id, apps: ALL_APPS, detail }
}

function notIn(state: SubmissionRecord['status'], { status, rolledBackAtMs }: SubmissionRecord): Refusal {
  const what = rolledBackAtMs === null ? status : 'taken back'
  return new Refusal('conflict', `the submission is ${what}; only one that is ${state} can be decided so`)
}

/** The submitter has seen it, which counts as one observation, however often it was seen since. */
const OBSERVATIONS = 1
const PEOPLE_MIN = 3
/** Almost no requests of an agent are judged human. */
const PEOPLE_SHARE_MIN = 0.05
