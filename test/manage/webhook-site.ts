import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { createLogTo } from '../../src/shared/log.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { newId } from '../../src/manage/http/ids.ts'
import type { EventsContext } from '../../src/manage/events/context.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Deliverer, type DelivererSettings } from '../../src/manage/events/webhooks/deliverer.ts'
import { DeliveryMetrics } from '../../src/manage/events/webhooks/delivery-metrics.ts'
import { secretOf } from '../../src/manage/jobs/signing.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import { Secret } from '../../src/shared/secret.ts'
import type { DeliveryRecord } from '../../src/store/events/delivery-log.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import type { Store } from '../../src/store/store.ts'
import {
  UNTRIED,
  type WebhookChanges,
  type WebhookHealth,
  type WebhookRecord,
} from '../../src/store/events/webhooks.ts'
import type { Owner } from '../store/databases.ts'

export interface SiteOptions extends Partial<DelivererSettings> {
  readonly allowPrivate?: boolean
  readonly nowMs?: () => number
}

/** What delivers, and as much of a management plane as it needs. Several of them may have one database. */
export class WebhookSite {
  readonly store: Store
  readonly events: EventLog
  readonly deliverer: Deliverer
  readonly management: EventsContext
  readonly said: readonly string[]
  readonly #metrics: DeliveryMetrics

  static async start(t: Owner, store: Store, options: SiteOptions = {}): Promise<WebhookSite> {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-webhooks-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const site = new WebhookSite(store, folder, options)
    t.teardown(() => site.deliverer.close())
    site.deliverer.start()
    return site
  }

  private constructor(store: Store, folder: string, options: SiteOptions) {
    const { allowPrivate = true, nowMs = Date.now, ...settings } = options
    const said: string[] = []
    this.store = store
    this.said = said
    this.events = new EventLog(store, nowMs)
    this.management = {
      ...{ store, nowMs, events: this.events, allowPrivateWebhooks: allowPrivate, snapshot: () => null },
      // One key for all of them.
      sealer: new Sealer([new Secret('a key that all processes share')], join(folder, 'store.key')),
      log: createLogTo('info', { write: (line) => said.push(line) }),
      deliveries: { wake: () => this.deliverer.wake() },
      ownSignature: { headersFor: () => ({}) },
    }
    this.#metrics = new DeliveryMetrics()
    const given = { ca: null, retryBaseMs: 20, pollMs: 10, ...settings }
    this.deliverer = new Deliverer(this.management, given, this.#metrics)
  }

  /** With a secret, which it resolves to. */
  async webhook(url: string, given: Partial<WebhookRecord> = {}): Promise<{ id: string; secret: string }> {
    const record: WebhookRecord = {
      ...{ id: newId('whk'), url, events: ['new_agent', 'new_signature', 'threat_detected'] },
      ...{
        description: null,
        apps: '*',
        filters: null,
        isEnabled: true,
        createdAtMs: 1,
        updatedAtMs: 1,
        health: UNTRIED,
      },
      ...given,
    }
    const secret = `whsec_${Buffer.alloc(32, record.id).toString('base64')}`
    const sealed = { id: newId('whs'), createdAtMs: 1, sealed: '' }
    sealed.sealed = await this.management.sealer.seal(secret, secretOf(record.id, sealed.id))
    await this.store.transaction((queries) => this.store.webhooks.add(record, sealed, queries))
    return { id: record.id, secret }
  }

  /** The old ones sign until then; resolves to the new one. */
  async rotate(id: string, expiresAtMs: number, sealer = this.management.sealer): Promise<string> {
    const secret = `whsec_${Buffer.alloc(32, newId('whs')).toString('base64')}`
    const own = newId('whs')
    const sealed = await sealer.seal(secret, secretOf(id, own))
    const made = { id: own, sealed, createdAtMs: Date.now() }
    await this.store.transaction((queries) => this.store.webhooks.rotate(id, made, expiresAtMs, queries))
    return secret
  }

  /** In one transaction, as it is when something happens. */
  async add(...events: readonly NewEvent[]): Promise<void> {
    const added = await this.store.transaction((queries) => this.events.add(events, queries))
    added()
  }

  /** Resolves when it holds of the webhook's deliveries, newest first. */
  async until(
    webhookId: string,
    holds: (deliveries: readonly DeliveryRecord[]) => boolean,
    withinMs = 15_000,
  ): Promise<readonly DeliveryRecord[]> {
    const untilMs = Date.now() + withinMs
    for (;;) {
      const deliveries = await this.deliveries(webhookId)
      if (holds(deliveries)) return deliveries
      if (Date.now() > untilMs) throw new Error(`in vain: ${JSON.stringify(deliveries.slice(0, 3))}`)
      await wait(10)
    }
  }

  /** Resolves when it holds. */
  async health(id: string, holds: (health: WebhookHealth) => boolean): Promise<WebhookHealth> {
    const untilMs = Date.now() + 15_000
    for (;;) {
      const { health } = (await this.store.webhooks.byId(id))!
      if (holds(health)) return health
      if (Date.now() > untilMs) throw new Error(`in vain: ${JSON.stringify(health)}`)
      await wait(10)
    }
  }

  /** As an administrator does. */
  async change(id: string, changes: WebhookChanges): Promise<void> {
    await this.store.transaction(async (queries) => {
      await this.store.webhooks.update(id, changes, Date.now(), queries)
      if (changes.isEnabled === true) await this.store.webhookHealth.put(id, UNTRIED, queries)
    })
  }

  async deliveries(webhookId: string): Promise<readonly DeliveryRecord[]> {
    const any = { status: null, sinceMs: null, untilMs: null }
    return (await this.store.deliveryLog.list({ webhookId, ...any }, { page: 1, limit: 200 })).items
  }

  async metrics(): Promise<string> {
    const metrics = new Metrics()
    this.#metrics.addTo(metrics)
    return metricsText([await metrics.read()])
  }
}

let made = 0

/** About a subject of its own, unless it is given one. */
export function event(given: Partial<NewEvent> = {}): NewEvent {
  const number = ++made
  const about = { agent: null, category: null, severity: null, confidence: null, app: null }
  return {
    ...{ id: newId('evt'), type: 'new_signature', atMs: Date.now(), subject: `ja4 ${number}`, ...about },
    ...{ data: JSON.stringify({ number }), ...given },
  }
}
