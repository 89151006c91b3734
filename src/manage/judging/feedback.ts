import { ALL_APPS } from '../../apps/app-scope.ts'
import { JA4_TYPES } from '../../classify/known/fingerprint-form.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { Feedback } from '../../store/catalogue/feedback.ts'
import type { Fingerprint } from '../../store/catalogue/trials.ts'
import { type Actor, changed } from '../http/audit.ts'
import type { JudgedDetection } from './detections.ts'
import { newId } from '../http/ids.ts'
import type { JudgingContext } from './context.ts'
import { invalid, Refusal } from '../http/refusal.ts'

/** An operator's feedback on a decision. */
interface GivenFeedback {
  /** The id of a `/detect` answer or of a request that a proxy has seen. Exactly one of the two is set. */
  readonly requestId: string | null
  readonly decisionId: string | null
  readonly verdict: 'agent' | 'human'
  /** The id or a name of the agent. */
  readonly agent: string | null
}

export interface Counted extends Feedback {
  readonly outcome: Outcome
}

type Outcome = (typeof OUTCOMES)[number]

export const OUTCOMES = ['confirmed', 'false_positive', 'false_negative', 'wrong_agent'] as const

/** Stores the feedback, once per decision, with every fingerprint of the decision. */
export async function giveFeedback(
  told: GivenFeedback,
  actor: Actor,
  management: JudgingContext,
): Promise<Counted> {
  const { store, nowMs } = management
  const toldSoftwareId = await agentIdOf(told, management)
  const judged = await judgedOf(told, management)
  if (judged === null) throw new Refusal('not_found', 'no decision of this id is remembered')
  const feedback: Feedback = {
    id: newId('fbk'),
    decisionId: told.decisionId ?? told.requestId!,
    atMs: nowMs(),
    principal: actor.id,
    told: told.verdict,
    toldSoftwareId,
    verdict: judged.verdict,
    verdictSoftwareId: judged.agentId,
    fingerprints: fingerprintsOf(judged),
  }
  const outcome = outcomeOf(feedback)
  const detail = { verdict: told.verdict, agent_id: toldSoftwareId, outcome }
  const change = { action: 'giveFeedback', subject: feedback.decisionId, apps: ALL_APPS, detail } as const
  await changed(store, actor, change, feedback.atMs, async (queries: Queries) => {
    await store.feedback.put(feedback, queries)
    await store.feedback.forgetOldest(KEPT_MAX, queries)
  })
  return { ...feedback, outcome }
}

async function agentIdOf({ agent }: GivenFeedback, { store }: JudgingContext): Promise<string | null> {
  if (agent === null) return null
  const software = await store.catalogue.softwareNamed(agent)
  if (software?.kind === 'agent') return software.id
  throw invalid([{ pointer: '/agent', detail: 'names no agent that is known' }])
}

/** A request id is also the id of the decision about the request. */
async function judgedOf(
  { requestId, decisionId }: GivenFeedback,
  management: JudgingContext,
): Promise<JudgedDetection | null> {
  const { detections, store } = management
  const detection = requestId === null ? null : await detections.find(requestId)
  if (detection !== null) return detection
  const sighting = await store.sightings.byId(requestId ?? decisionId!, ALL_APPS)
  if (sighting === null) return requestId === null ? null : detections.findLater(requestId)
  const { verdict, agent, ja4, ja4s, ja4h, ja4x } = sighting
  return { verdict, agentId: agent, ja4, ja4s, ja4h, ja4x }
}

function fingerprintsOf(judged: JudgedDetection): readonly Fingerprint[] {
  return JA4_TYPES.flatMap((type) => {
    const value = judged[type]
    return value === null ? [] : { type, value }
  })
}

/** The feedback "human" means that no agent sent the request. A tool also counts as human. */
function outcomeOf({ told, toldSoftwareId, verdict, verdictSoftwareId }: Feedback): Outcome {
  const wasAgent = verdict === 'agent'
  if (told === 'human') return wasAgent || verdict === 'automation' ? 'false_positive' : 'confirmed'
  if (!wasAgent) return 'false_negative'
  return toldSoftwareId === null || toldSoftwareId === verdictSoftwareId ? 'confirmed' : 'wrong_agent'
}

/** Beyond this, the oldest feedback is deleted and no longer counts. */
const KEPT_MAX = 100_000
