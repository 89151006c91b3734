import { type LicenseClaim, type PaymentClaim, schemeOf } from '../../payment/claim.ts'
import { pathWithoutSecrets } from '../../plane/privacy/path-form.ts'
import type { Queries } from '../../store/engine/database.ts'
import type { NewEvent } from '../../store/events/events.ts'
import type { Store } from '../../store/store.ts'
import type { PaymentRecord } from '../../store/work/payments.ts'
import { timeOf } from '../http/schemas.ts'
import type { AfterCommit } from '../intake/ingest.ts'
import { nameOf, type SoftwareById } from '../judging/sighting-account.ts'
import type { PaymentNews } from '../payments/cashier.ts'
import { type ShownPayment, shownPayment } from '../payments/shown-payment.ts'
import { type EventDraft, eventOf } from './event-draft.ts'
import type { EventLog } from './event-log.ts'
import type { EventMetrics } from './event-metrics.ts'
import { Storms } from './storms.ts'

interface PaymentEventsContext {
  readonly store: Store
  readonly log: EventLog
  readonly metrics: EventMetrics
  /** Of each outcome at each app. */
  readonly eventsPerMinute: number
  nowMs(): number
}

/**
 * The events of payments. A refusal costs its client nothing, so refusals are counted in memory and reported together every
 * second. The last second of them is lost if the process is killed. No money was moved for them.
 */
export class PaymentEvents implements PaymentNews {
  readonly #context: PaymentEventsContext
  #refused = new Map<string, Refusals>()

  constructor(context: PaymentEventsContext) {
    this.#context = context
  }

  changed(payment: PaymentRecord, queries: Queries): Promise<AfterCommit> {
    const outcome = payment.state === 'refunded' ? 'refunded' : 'settled'
    const nowMs = this.#context.nowMs()
    const { id, app, agent } = payment
    const shown = shownPayment(payment)
    const data = { outcome, payment: shown }
    const [count, subject] = [1, `payment ${id}`]
    const change = { outcome, app, agent, subject, data, count, sinceMs: nowMs, untilMs: nowMs } as const
    return this.#add([{ ...change, example: { payment_id: id, ...exampleOf(shown) } }], queries)
  }

  refused(claim: PaymentClaim | LicenseClaim, why: string): void {
    const { app, rule, agent } = claim
    const nowMs = this.#context.nowMs()
    const key = [app, rule, why, agent].join(' ')
    const known = this.#refused.get(key)
    if (known !== undefined) {
      known.count++
      known.untilMs = nowMs
    } else if (this.#refused.size < REFUSED_MAX)
      this.#refused.set(key, { claim, why, count: 1, sinceMs: nowMs, untilMs: nowMs })
  }

  /** Reports the refusals since the last call. */
  async tell(): Promise<'done'> {
    if (this.#refused.size === 0) return 'done'
    const changes = [...this.#refused.values()].map(changeOf)
    this.#refused = new Map()
    const afterCommit = await this.#context.store.transaction((queries) => this.#add(changes, queries))
    afterCommit()
    return 'done'
  }

  async #add(changes: readonly PaymentChange[], queries: Queries): Promise<AfterCommit> {
    const { store, log, metrics, eventsPerMinute } = this.#context
    const nowMs = this.#context.nowMs()
    await store.sightings.lock(queries)
    const agents = new Set(changes.flatMap(({ agent }) => agent ?? []))
    const names = await store.agentsSeen.names([...agents], queries)
    const storms = await Storms.open(store.eventStorms, changes.map(topicOf), eventsPerMinute, nowMs, queries)
    const events: NewEvent[] = [...storms.over]
    for (const change of changes) {
      const topic = topicOf(change)
      const draft = draftOf(change, names)
      if (storms.admit(topic)) events.push(eventOf(draft, nowMs))
      else if (storms.add(topic, { ...NO_CLIENT, ...change, category: draft.category }))
        storms.describe(topic, draft)
    }
    await storms.save(queries)
    const added = await log.add(events, queries)
    return () => {
      metrics.countEvents(events)
      added()
    }
  }
}

/** Refusals for one reason, of one rule and agent. */
interface Refusals {
  /** The first one. */
  readonly claim: PaymentClaim | LicenseClaim
  readonly why: string
  count: number
  readonly sinceMs: number
  untilMs: number
}

interface PaymentChange {
  readonly outcome: 'settled' | 'refused' | 'refunded'
  readonly app: string
  readonly agent: string | null
  readonly subject: string
  readonly data: Readonly<Record<string, unknown>>
  readonly count: number
  readonly sinceMs: number
  readonly untilMs: number
  readonly example: Readonly<Record<string, string | number | null>>
}

function changeOf({ claim, why, count, sinceMs, untilMs }: Refusals): PaymentChange {
  const { app, agent, rule, host, path, price, currency, purposes, license } = claim
  const scheme = schemeOf(claim)
  const payment = {
    ...{ scheme, app, rule, agent_id: agent, key: claim.key, host, path: pathWithoutSecrets(path) },
    ...{ price, currency, purpose: purposes, license, decision_id: claim.decisionId },
  }
  const times = { since: timeOf(sinceMs), until: timeOf(untilMs) }
  return {
    ...{ outcome: 'refused', app, agent, count, sinceMs, untilMs },
    subject: `payments for ${app}`,
    data: { outcome: 'refused', reason: why, payment, count, ...times },
    example: { reason: why, ...exampleOf(payment), count },
  }
}

function draftOf({ app, agent, subject, data }: PaymentChange, names: SoftwareById): EventDraft {
  const known = agent === null ? undefined : names.get(agent)
  const category = known?.category ?? null
  const shown =
    agent === null
      ? null
      : { id: agent, name: nameOf(agent, names), category, purpose: known?.purposes ?? [] }
  const { outcome, ...rest } = data
  return {
    ...{ type: 'payment', subject, agent, category, severity: null, confidence: null, app },
    data: { outcome, agent: shown, ...rest },
  }
}

function exampleOf({ agent_id, price, currency }: Example): Example {
  return { agent_id, price, currency }
}

type Example = Pick<ShownPayment, 'agent_id' | 'price' | 'currency'>

/** Of each app its own, so that payments for one app hide none for another. */
function topicOf({ outcome, app }: PaymentChange): string {
  return `payment ${outcome} ${app}`
}

const NO_CLIENT = { address: null, fingerprint: null, confidence: null }
/** Different ones a second. More are counted in the metrics only. */
const REFUSED_MAX = 64
