import type { CatalogueKey } from '../../store/catalogue/catalogue.ts'
import type { KnownSignature } from '../../store/catalogue/known-signature.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import { shownSignature } from '../judging/signature-schemas.ts'
import { type EventDraft, eventOf } from './event-draft.ts'
import type { EventLog } from './event-log.ts'
import type { EventMetrics } from './event-metrics.ts'
import type { SoftwareById } from '../judging/sighting-account.ts'
import type { AfterCommit } from '../intake/ingest.ts'
import type { ObservedEvents } from '../intake/sighting-keeper.ts'
import type { SignatureNews } from '../judging/context.ts'
import { NEW_SIGNATURES, Storms } from './storms.ts'

interface NewSignaturesContext {
  readonly store: Store
  readonly log: EventLog
  readonly metrics: EventMetrics
  readonly eventsPerMinute: number
  nowMs(): number
}

export class NewSignatures implements SignatureNews {
  readonly #context: NewSignaturesContext

  constructor(context: NewSignaturesContext) {
    this.#context = context
  }

  async add(keys: readonly CatalogueKey[], queries: Queries): Promise<AfterCommit> {
    const { store, log, metrics, eventsPerMinute } = this.#context
    const nowMs = this.#context.nowMs()
    const signatures = await store.catalogueLists.byKeys(keys, queries)
    const ids = new Set(signatures.flatMap(({ software }) => software?.id ?? []))
    const names = await store.agentsSeen.names([...ids], queries)
    const storms = await Storms.open(store.eventStorms, [NEW_SIGNATURES], eventsPerMinute, nowMs, queries)
    const events: NewEvent[] = [...storms.over]
    for (const signature of signatures) {
      const draft = draftOf(signature, names)
      if (storms.admit(NEW_SIGNATURES)) events.push(eventOf(draft, nowMs))
      else if (storms.add(NEW_SIGNATURES, occurrenceOf(signature, draft, nowMs)))
        storms.describe(NEW_SIGNATURES, draft)
    }
    await storms.save(queries)
    const added = await log.add(events, queries)
    return () => {
      metrics.countEvents(events)
      added()
    }
  }

  /** For fingerprints that were seen often enough to become signatures without an owner. */
  readonly observed: ObservedEvents = (observed, queries) =>
    this.add(
      observed.map(({ type, value }) => ({ type, value, softwareId: '' })),
      queries,
    )
}

function draftOf(signature: KnownSignature, names: SoftwareById): EventDraft {
  const { type, value, software, confidence } = signature
  return {
    type: 'new_signature',
    subject: `${type} ${value}`,
    severity: null,
    confidence,
    agent: software?.id ?? null,
    category: software === null ? null : (names.get(software.id)?.category ?? null),
    app: null,
    data: { signature: shownSignature(signature) },
  }
}

function occurrenceOf(
  { type, value, software }: KnownSignature,
  { agent, category, confidence }: EventDraft,
  nowMs: number,
) {
  return {
    count: 1,
    sinceMs: nowMs,
    untilMs: nowMs,
    address: null,
    fingerprint: `${type} ${value}`,
    agent,
    category,
    confidence,
    app: null,
    example: { type, fingerprint: value, agent_id: software?.id ?? null },
  }
}
