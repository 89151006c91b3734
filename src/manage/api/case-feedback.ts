import { ALL_APPS } from '../../apps/app-scope.ts'
import { storedObject } from '../../store/engine/stored.ts'
import type { CaseRecord } from '../../store/events/cases.ts'
import type { ThreatReason } from '../events/threats/threat.ts'
import type { Principal } from '../http/access/principal.ts'
import type { Actor } from '../http/audit.ts'
import { Refusal } from '../http/refusal.ts'
import { giveFeedback } from '../judging/feedback.ts'
import type { ApiContext } from './context.ts'

type Told = 'human' | 'agent'

/**
 * The correct verdict on the requests of a false alarm; `null`: no feedback. `asked`: by the caller. Feedback counts for
 * the whole organisation, so callers that are limited to some apps give none.
 */
export function verdictOf(
  { reason }: Pick<CaseRecord, 'reason'>,
  asked: Told | null | undefined,
  { apps }: Pick<Principal, 'apps'>,
): Told | null {
  if (apps === ALL_APPS) return asked === undefined ? (MEANS[reason as ThreatReason] ?? null) : asked
  if (asked === undefined || asked === null) return null
  throw new Refusal(
    'needs_all_apps',
    'feedback is about all apps, and these credentials are limited to some: leave out verdict',
  )
}

/** Gives feedback on the decisions that the newest events of a case name. Resolves to the number of these decisions. */
export async function feedbackOnCase(
  { id, agent }: Pick<CaseRecord, 'id' | 'agent'>,
  verdict: Told,
  actor: Actor,
  management: ApiContext,
): Promise<number> {
  const { store } = management
  const { items } = await store.events.list({ page: 1, limit: EVENTS_MAX }, { ...ANY, caseId: id }, ALL_APPS)
  const decisions = new Set(items.flatMap(({ data }) => decisionIn(data) ?? []))
  const named = verdict === 'agent' && agent !== null && (await isAgent(agent, management)) ? agent : null
  let given = 0
  for (const decisionId of decisions) {
    try {
      await giveFeedback({ requestId: null, decisionId, verdict, agent: named }, actor, management)
      given++
    } catch (error) {
      // Its retention has passed.
      if (!(error instanceof Refusal) || error.code !== 'not_found') throw error
    }
  }
  return given
}

function decisionIn(data: string): string | null {
  const { detection } = storedObject(data) as { readonly detection?: { readonly request_id?: string } }
  return detection?.request_id || null
}

async function isAgent(id: string, { store }: Pick<ApiContext, 'store'>): Promise<boolean> {
  return (await store.catalogue.softwareNamed(id))?.kind === 'agent'
}

/** The correct verdict, if the alarm of this reason is false. Other reasons say nothing about the verdict. */
const MEANS: Partial<Record<ThreatReason, Told>> = {
  spoofed_browser: 'human',
  foreign_address: 'agent',
  proof_failed: 'agent',
  proof_contradicted: 'agent',
}
const EVENTS_MAX = 20
const ANY = {
  ...{ types: [], categories: [], agents: [], apps: [], severities: null, minConfidence: null },
  ...{ sinceMs: null, untilMs: null },
}
