import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../../../shared/fault.ts'
import type { DueDelivery } from '../../../store/events/deliveries.ts'
import type { WebhookRecord, WebhookSecret } from '../../../store/events/webhooks.ts'
import { Doze } from '../../http/doze.ts'
import type { EventsContext } from '../context.ts'
import { type Ended, isProbed, toldOf } from './afterwards.ts'
import { Courier, type CourierSettings, type Posted } from './courier.ts'
import type { DeliveryMetrics } from './delivery-metrics.ts'
import { settle } from './settling.ts'
import { bodyOf, Signing } from '../../jobs/signing.ts'

export interface DelivererSettings extends Omit<CourierSettings, 'allowPrivate'> {
  /** The delay before the first retry. It triples with each retry. */
  readonly retryBaseMs: number
  readonly pollMs?: number
  /** How long it takes until other processes take over from one that was killed. */
  readonly heldMs?: number
}

type DelivererContext = Omit<EventsContext, 'deliveries' | 'snapshot'>

/**
 * Sends the deliveries that are due, in parallel with other processes. One process at a time holds a
 * delivery; if it dies, the delivery falls due again. Finished deliveries are stored together in one
 * transaction before new ones are claimed.
 */
export class Deliverer {
  readonly #management: DelivererContext
  readonly #settings: DelivererSettings
  readonly #metrics: DeliveryMetrics
  readonly #courier: Courier
  readonly #signing: Signing
  readonly #closing = new AbortController()
  readonly #doze: Doze
  readonly #holder = randomUUID()
  #claims = 0
  readonly #underWay = new Map<DueDelivery, UnderWay>()
  /** By webhook. */
  readonly #counts = new Map<string, number>()
  readonly #ended: Ended[] = []
  #loop: Promise<void> = Promise.resolve()
  #forget: () => void = () => undefined

  constructor(management: DelivererContext, settings: DelivererSettings, metrics: DeliveryMetrics) {
    this.#management = management
    this.#settings = settings
    this.#metrics = metrics
    this.#courier = new Courier({ ...settings, allowPrivate: management.allowPrivateWebhooks })
    this.#signing = new Signing(management.sealer)
    const pollMs = settings.pollMs ?? Math.min(POLL_MS, settings.retryBaseMs)
    this.#doze = new Doze(pollMs, this.#closing.signal)
  }

  start(): void {
    this.#forget = this.#management.events.onAdded(() => this.wake())
    this.#loop = this.#run()
  }

  /** Call it if there may be something to send. */
  wake(): void {
    this.#doze.wake()
  }

  /** Deliveries in flight get `CLOSE_MS` to finish; the rest falls due again at once. */
  async close(): Promise<void> {
    this.#forget()
    this.#closing.abort()
    this.wake()
    await this.#loop
    const telling = Promise.all([...this.#underWay.values()].map(({ telling }) => telling))
    const inTime = new AbortController()
    await Promise.race([telling, wait(CLOSE_MS, undefined, { signal: inTime.signal }).catch(() => undefined)])
    inTime.abort()
    const left = [...this.#underWay.keys()]
    for (const { stop } of this.#underWay.values()) stop.abort()
    await telling
    await this.#attempt(async () => {
      while ((await this.#settle()) > 0);
      await this.#management.store.deliveries.release(left, this.#management.nowMs())
    })
    await this.#courier.close()
  }

  async #run(): Promise<void> {
    const { store, nowMs } = this.#management
    // Only one process uses a SQLite database, so whatever held a delivery before has died.
    if (store.kind === 'sqlite') await this.#attempt(() => store.deliveries.release(null, nowMs()))
    while (!this.#closing.signal.aborted) {
      const { woken } = this.#doze
      const hasMoved = await this.#attempt(async () => {
        const settled = await this.#settle()
        return (await this.#claim()) + settled > 0
      })
      if (hasMoved !== true) await this.#doze.pause(woken)
      // Waits for deliveries that end at almost the same time: one transaction is cheaper than several.
      if (this.#underWay.size > 0) await wait(GATHER_MS)
    }
  }

  /** The database may be temporarily unavailable. Work that fails is tried again later. */
  async #attempt<Result>(work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await work()
    } catch (error) {
      const isForNow = error instanceof Fault && error.code.startsWith('STORE_')
      if (!isForNow)
        this.#management.log.error('deliveries to webhooks have met a bug', { error: error as Error })
      return null
    }
  }

  /** Returns the number of settled deliveries. */
  async #settle(): Promise<number> {
    const ended = this.#ended.splice(0, SETTLED_MAX)
    if (ended.length === 0) return 0
    try {
      await settle(ended, this.#settings.retryBaseMs, this.#management)
    } catch (error) {
      this.#ended.unshift(...ended)
      throw error
    }
    for (const { told } of ended) this.#metrics.told(told)
    return ended.length
  }

  /** Returns the number of deliveries that were started. */
  async #claim(): Promise<number> {
    const { store, nowMs } = this.#management
    const due = (await store.webhookHealth.due(nowMs())).filter((webhook) => this.#room(webhook) > 0)
    if (due.length === 0) return 0
    const claimed = await this.#claimFor(due)
    const ids = due.map(({ id }) => id)
    const secrets = claimed.length === 0 ? [] : await store.webhooks.secrets(ids, nowMs())
    for (const { delivery, webhook } of claimed) {
      const own = secrets.filter(({ webhookId }) => webhookId === webhook.id)
      this.#begin(delivery, webhook, own)
    }
    return claimed.length
  }

  #claimFor(due: readonly WebhookRecord[]): Promise<readonly Claimed[]> {
    const { store, nowMs } = this.#management
    const holder = `${this.#holder}.${++this.#claims}`
    const atMs = nowMs()
    const untilMs = atMs + (this.#settings.heldMs ?? HELD_MS)
    return store.transaction(async (queries) => {
      const open: WebhookRecord[] = []
      // Webhooks are locked before deliveries, as everywhere else.
      for (const webhook of due)
        if (!isProbed(webhook.health) || (await store.webhookHealth.hold(webhook.id, atMs, untilMs, queries)))
          open.push(webhook)
      const claimed: Claimed[] = []
      for (const webhook of open) {
        const times = { nowMs: atMs, untilMs }
        const claim = { webhookId: webhook.id, holder, limit: this.#room(webhook), ...times }
        for (const delivery of await store.deliveries.claim(claim, queries))
          claimed.push({ delivery, webhook })
      }
      return claimed
    })
  }

  /** How many more deliveries may start. The limit keeps a slow endpoint from delaying the others. */
  #room({ id, health }: WebhookRecord): number {
    return isProbed(health) ? 1 : AT_ONCE_MAX - (this.#counts.get(id) ?? 0)
  }

  #begin(delivery: DueDelivery, webhook: WebhookRecord, secrets: readonly WebhookSecret[]): void {
    const { id } = webhook
    // One controller per delivery: a shared one would collect a listener for every delivery ever made.
    const stop = new AbortController()
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1)
    const telling = this.#tell(delivery, webhook, secrets, stop.signal).finally(() => {
      this.#underWay.delete(delivery)
      const left = this.#counts.get(id)! - 1
      if (left === 0) this.#counts.delete(id)
      else this.#counts.set(id, left)
      this.wake()
    })
    this.#underWay.set(delivery, { telling, stop })
  }

  async #tell(
    delivery: DueDelivery,
    { url, health }: WebhookRecord,
    secrets: readonly WebhookSecret[],
    stop: AbortSignal,
  ): Promise<void> {
    const { nowMs, log } = this.#management
    try {
      const posted = await this.#post(delivery, url, secrets, stop)
      if (stop.aborted && posted.outcome !== 'taken') return
      this.#metrics.attempted(posted.outcome)
      const told = toldOf(delivery, posted, this.#settings.retryBaseMs, nowMs())
      this.#ended.push({ told, posted, isProbe: isProbed(health) })
    } catch (error) {
      // The delivery stays claimed for a while and then falls due again.
      log.error('an event cannot be sent to a webhook', {
        webhook: delivery.webhookId,
        error: error as Error,
      })
    }
  }

  async #post(
    { event }: DueDelivery,
    url: string,
    secrets: readonly WebhookSecret[],
    stop: AbortSignal,
  ): Promise<Posted> {
    const body = bodyOf(event)
    const atMs = this.#management.nowMs()
    try {
      const headers = await this.#signing.headers(event.id, body, secrets, atMs)
      const own = this.#management.ownSignature.headersFor(url, headers, body)
      return await this.#courier.post(url, { ...headers, ...own }, body, stop)
    } catch (error) {
      if (!(error instanceof Fault) || !error.code.startsWith('SEAL_')) throw error
      const nothing = { status: null, response: '', retryAfterMs: null, durationMs: 0 }
      return { outcome: 'secret', atMs, error: error.message, ...nothing }
    }
  }
}

interface Claimed {
  readonly delivery: DueDelivery
  readonly webhook: WebhookRecord
}

interface UnderWay {
  readonly telling: Promise<void>
  readonly stop: AbortController
}

/** Per endpoint and process. */
const AT_ONCE_MAX = 32
/** Per transaction, because others wait for it. */
const SETTLED_MAX = 256
const HELD_MS = 30_000
const POLL_MS = 500
const GATHER_MS = 4
const CLOSE_MS = 1_000
