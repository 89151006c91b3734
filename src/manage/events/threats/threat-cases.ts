import { isHash, shownAddress } from '../../../plane/privacy/address-form.ts'
import type { Queries } from '../../../store/engine/database.ts'
import { storedObject } from '../../../store/engine/stored.ts'
import type { CaseDraft, CaseStore, CaseSubject } from '../../../store/events/cases.ts'
import type { CasesOfEvents, NewEvent } from '../../../store/events/events.ts'
import { newId } from '../../http/ids.ts'
import { SEVERITY_OF, type ThreatReason } from './threat.ts'

/** Adds the threats among new events to their cases, in the transaction that adds the events. */
export async function fileThreats(
  store: Pick<CaseStore, 'file'>,
  events: readonly NewEvent[],
  queries: Queries,
): Promise<CasesOfEvents> {
  const drafts = new Map<string, CaseDraft>()
  const identities = new Map<string, string>()
  for (const event of events) {
    const draft = caseDraft(event)
    if (draft === null) continue
    const { identity } = draft
    const known = drafts.get(identity)
    drafts.set(identity, known === undefined ? draft : together(known, draft))
    identities.set(event.id, identity)
  }
  if (drafts.size === 0) return new Map()
  const ids = await store.file([...drafts.values()], queries)
  return new Map(Array.from(identities, ([event, identity]) => [event, ids.get(identity)!]))
}

/** The case of one event; `null`: it is not a threat. */
export function caseDraft({ type, app, atMs, agent, data }: NewEvent): CaseDraft | null {
  if (type !== 'threat_detected') return null
  const threat = storedObject(data) as ThreatData
  const { reason, count } = threat
  if (reason === undefined || !(reason in SEVERITY_OF)) return null
  const subject = subjectIn(threat, agent)
  const [kind, name] = Object.entries(subject).find(([, value]) => value !== null) ?? ['many', '']
  return {
    id: newId('cas'),
    identity: [reason, app ?? '*', kind, name].join(' '),
    ...{ app, reason, severity: SEVERITY_OF[reason as ThreatReason] },
    ...subject,
    ...{ firstAtMs: atMs, lastAtMs: atMs, events: 1, requests: count ?? 1 },
  }
}

/** The parts of a threat that decide on its case. */
interface ThreatData {
  readonly reason?: string
  readonly count?: number
  readonly campaign_id?: string | null
  readonly examples?: unknown
  readonly detection?: { readonly fingerprints?: { readonly ja4?: string } }
  readonly request?: { readonly address?: string | null }
}

/** The first that is known of campaign, agent, TLS fingerprint and network. A summary of many clients has none but the agent. */
function subjectIn(
  { campaign_id: campaign = null, examples, detection, request }: ThreatData,
  agent: string | null,
): CaseSubject {
  const none: CaseSubject = { campaign: null, agent: null, ja4: null, address: null }
  if (campaign !== null) return { ...none, campaign }
  if (agent !== null) return { ...none, agent }
  if (examples !== undefined) return none
  const ja4 = detection?.fingerprints?.ja4 || null
  return ja4 === null ? { ...none, address: networkOf(request?.address ?? null) } : { ...none, ja4 }
}

/** A keyed hash has no network. */
function networkOf(address: string | null): string | null {
  if (address === null || isHash(address)) return address
  return shownAddress(address) || null
}

function together(one: CaseDraft, other: CaseDraft): CaseDraft {
  return {
    ...one,
    firstAtMs: Math.min(one.firstAtMs, other.firstAtMs),
    lastAtMs: Math.max(one.lastAtMs, other.lastAtMs),
    events: one.events + other.events,
    requests: one.requests + other.requests,
  }
}
