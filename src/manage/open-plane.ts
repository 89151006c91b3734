import type Koa from 'koa'
import { versionSaid } from '../classify/known/version-said.ts'
import type { VersionOf } from '../store/catalogue/agents-seen.ts'
import { Store } from '../store/store.ts'
import { SEALED_BY } from '../store/work/settings.ts'
import type { TaskRecord } from '../store/work/task-record.ts'
import { api } from './api/api.ts'
import type { ApiContext } from './api/context.ts'
import { TASK_TYPES } from './api/operations.ts'
import { shownTask } from './api/tasks.ts'
import { oauthEndpoints } from './auth/oauth/endpoints.ts'
import { type Composed, composed, type Groundwork, type Site } from './compose.ts'
import { EventSources } from './events/event-sources.ts'
import { Deliverer } from './events/webhooks/deliverer.ts'
import { deliveryJobs } from './events/webhooks/delivery-jobs.ts'
import type { RequestSinks } from './export/request-sinks.ts'
import type { RequestState } from './http/router.ts'
import { Campaigns } from './intake/campaigns.ts'
import { Ingest, type IngestOptions } from './intake/ingest.ts'
import { SightingKeeper } from './intake/sighting-keeper.ts'
import { forgetting, Periodic, type PeriodicJob } from './jobs/periodic.ts'
import { type CallbackMessage, TaskCallbacks } from './jobs/task-callbacks.ts'
import { TaskRunner } from './jobs/task-runner.ts'
import { taskWebhook } from './jobs/task-webhook.ts'
import { trialCounter } from './judging/submissions/trial-counter.ts'
import type { RateLimitSettings } from './limits/rate-limits.ts'
import { Cashier } from './payments/cashier.ts'
import { periodicJobs } from './periodic-jobs.ts'
import { StoreWatch } from './store-watch.ts'

/** The management plane over an open database. */
export class OpenPlane {
  readonly store: Store
  readonly context: ApiContext
  readonly api: Koa.Middleware<RequestState>
  readonly oauth: Koa.Middleware<RequestState>
  readonly ingest: Ingest
  readonly watch: StoreWatch
  readonly cashier: Cashier
  readonly #ground: Groundwork
  readonly #composed: Composed
  readonly #sources: EventSources
  readonly #keeper: SightingKeeper
  /** `null`: disabled. */
  readonly #campaigns: Campaigns | null
  readonly #tasks: TaskRunner<ApiContext>
  readonly #callbacks: TaskCallbacks
  readonly #deliverer: Deliverer
  readonly #periodic: Periodic

  /** Opens the database and makes the parts that need it. None of them works before `start`. */
  static async open(ground: Groundwork, site: Site): Promise<OpenPlane> {
    const { settings, links, live } = ground
    const store = await Store.open(settings.storeUrl, settings.storeLogin, settings.traffic)
    try {
      await store.space?.prepare(ground.log)
      const { policy, apps, appPolicies } = links
      await Promise.all([
        live.open(store),
        policy.kind === 'file' ? null : policy.open(store),
        apps.open(store),
        appPolicies.open(store),
      ])
      return new OpenPlane(ground, await composed(store, ground, site))
    } catch (error) {
      await store.close()
      throw error
    }
  }

  private constructor(ground: Groundwork, parts: Composed) {
    const { settings, log, eventMetrics, deliveryMetrics } = ground
    const { store } = parts
    this.store = store
    this.#ground = ground
    this.#composed = parts
    this.context = {
      ...parts,
      tasks: { wake: () => this.#tasks.wake() },
      callbacks: { wake: () => this.#callbacks.wake() },
      deliveries: { wake: () => this.#deliverer.wake() },
      robots: () => this.#sources.robots,
    }
    this.api = api(this.context)
    this.oauth = oauthEndpoints(this.context)
    this.watch = new StoreWatch(store, log)
    const { paymentMetrics: metrics } = ground
    const { paymentNews: news } = parts
    this.cashier = new Cashier(settings.payments, { store, news, log, metrics, nowMs: () => ground.nowMs() })
    this.#sources = new EventSources(this.context, settings.threats, eventMetrics)
    this.#keeper = new SightingKeeper({
      store,
      settings: settings.seen,
      observed: parts.newSignatures.observed,
      metrics: ground.ingestMetrics,
      log,
      isLeading: () => ground.isLeading(),
    })
    this.#campaigns = settings.findsCampaigns ? this.#makeCampaigns() : null
    this.ingest = this.#makeIngest()
    this.#tasks = new TaskRunner(TASK_TYPES, this.context)
    this.#callbacks = new TaskCallbacks(this.context, {
      message: pushMessageOf,
      signed: (task, by) => taskWebhook(task, shownTask(task), by, ground.nowMs()),
    })
    this.#deliverer = new Deliverer(this.context, settings.deliveries, deliveryMetrics)
    this.#periodic = new Periodic(log, () => ground.isLeading())
  }

  /** If it rejects, `close` ends the parts that have started. */
  async start(): Promise<void> {
    const { settings, sinks, requestSinks, deliveryMetrics } = this.#ground
    const { store, context } = this
    await this.#sayForeign()
    await this.#tasks.start()
    await Promise.all([sinks.start(context), requestSinks.start(context)])
    const { deliveries, payments } = settings
    this.#periodic.start([
      this.watch.job,
      ...this.#following,
      ...this.#sources.jobs,
      ...(this.#campaigns === null ? [] : [findCampaigns(this.#campaigns)]),
      ...periodicJobs(context, this.#composed.rateLimits, settings),
      forgetFiles(requestSinks),
      forgetting('old payments', HOUR_MS, (nowMs, rows) =>
        store.payments.forget(nowMs - payments.retentionMs, rows),
      ),
      { name: 'report refused payments', everyMs: FOLLOW_MS, run: () => this.#composed.paymentNews.tell() },
      ...deliveryJobs(context, deliveries.retentionMs, deliveryMetrics),
    ])
    if (store.kind !== 'sqlite') context.pulse.share(store.traffic)
    this.#keeper.start()
    this.#callbacks.start()
    this.#deliverer.start()
  }

  /** Resolves when everything is stored. */
  async close(): Promise<void> {
    const { tail, agents, cards, elsewhere, apiKeys, pulse, log } = this.context
    const { sinks, requestSinks, links } = this.#ground
    const parts = [
      links.apps,
      links.appPolicies,
      this.#periodic,
      this.ingest,
      this.#keeper,
      this.#tasks,
      this.#callbacks,
      this.cashier,
    ]
    await Promise.all([...parts, this.#deliverer, sinks, requestSinks, pulse].map((part) => part.close()))
    tail.close()
    agents.close()
    cards.close()
    elsewhere?.close()
    await this.#composed.paymentNews
      .tell()
      .catch((error: Error) => log.warn('refused payments could not be reported', { error }))
    await this.#composed.rateLimits
      .write()
      .catch((error: Error) => log.warn('counts of requests could not be written down', { error }))
    try {
      while ((await apiKeys.writeUsed()) === 'more');
    } catch (error) {
      log.warn('when keys were used could not be written down', { error: error as Error })
    }
    await this.store.close()
  }

  /** A backup was restored into the database. */
  restored(): void {
    this.context.oauth.forget()
    this.context.tail.restored()
    this.#ground.sinks.restored()
    this.#ground.requestSinks.restored()
  }

  /** Applies limits that were changed while the database is open. */
  useLimits(limits: Partial<RateLimitSettings>): void {
    this.#composed.rateLimits.use(limits)
  }

  /**
   * Reports a missing key at the start and when the keys change, instead of when a secret is first needed.
   */
  async saySealedBy(): Promise<void> {
    const { sealer, log } = this.#ground
    const { settings } = this.store
    const keys = sealer.givenKeyIds
    if (keys.length === 0) return
    const before = (await settings.get(SEALED_BY))?.value ?? null
    if (before !== keys[0]) await settings.put(SEALED_BY, keys[0], null, this.#ground.nowMs())
    if (before !== null && !keys.includes(String(before)))
      log.error(
        `the secrets in the database were last encrypted with the key ${before}, which is not in store.encryption_keys (${keys.join(', ')}), and cannot be read: add it there as a further key`,
      )
  }

  /** Warns about settings that processes on one database must share. No later check finds them in time. */
  async #sayForeign(): Promise<void> {
    await this.saySealedBy()
    const { settings, log } = this.#ground
    const { fleet, signing } = this.#ground.links
    if (fleet === undefined) return
    if (settings.publicUrl === null)
      log.warn('manage.public_url is missing: tokens and links name the address of this process alone')
    if (signing?.webhooks && signing.keyFile === null)
      log.warn(
        'signing.key_file is missing: each manager signs with a key of its own, which the others do not show',
      )
  }

  /** Applies the changes of other processes on the same database. */
  get #following(): readonly PeriodicJob[] {
    const { live, links, settings } = this.#ground
    const job = (name: string, everyMs: number, follow: () => Promise<void> | undefined): PeriodicJob => ({
      name,
      everyMs,
      run: async () => {
        await follow()
        return 'done'
      },
    })
    const { policy, apps, appPolicies } = links
    return [
      job('read the settings', FOLLOW_MS, () => live.follow()),
      ...(policy.kind === 'file' ? [] : [job('read the policy', FOLLOW_MS, () => policy.follow())]),
      ...(settings.traffic === null ? [] : [sendRequests(this.store)]),
      job('read the apps', FOLLOW_MS, () => apps.follow()),
      job('read the policies of apps', FOLLOW_MS, () => appPolicies.follow()),
      {
        ...job('poll for changes whose notification was lost', CATCH_UP_MS, () => links.catchUp?.()),
        isOnce: true,
      },
    ]
  }

  #makeCampaigns(): Campaigns {
    const { links, log, campaignMetrics } = this.#ground
    const campaigns = new Campaigns({
      store: this.store,
      log,
      isShared: links.fleet !== undefined,
      publish: (list) => links.publisher.useCampaigns?.(list),
      report: (active) => this.#sources.reportCampaigns(active),
    })
    campaignMetrics.campaigns = campaigns
    return campaigns
  }

  #makeIngest(): Ingest {
    const { settings, links, log, ingestMetrics } = this.#ground
    const { store, context } = this
    const versionOf: VersionOf = ({ agent, userAgent }) => {
      const index = context.snapshot()?.knowledge?.userAgents
      return agent === null || userAgent === null || index === undefined
        ? null
        : versionSaid(index, agent, userAgent)
    }
    const options: IngestOptions = {
      retention: settings.seen.rollups,
      counters: [trialCounter(store)],
      events: this.#sources.sightings,
      waitsForDisk: settings.sightingsWaitForDisk,
      stored: (batch, unnamed, tally) => {
        links.stored(batch)
        this.#keeper.noticed(unnamed)
        this.#campaigns?.take(batch)
        context.pulse.add(tally)
      },
      versionOf,
      nowMs: Date.now,
    }
    return new Ingest(store, options, ingestMetrics, log)
  }
}

function findCampaigns(campaigns: Campaigns): PeriodicJob {
  const run = (nowMs: number) => campaigns.run(nowMs)
  return { name: 'find campaigns', everyMs: FOLLOW_MS, isOnce: true, run }
}

/** In every process: each has a folder of its own. */
function forgetFiles(sinks: RequestSinks): PeriodicJob {
  const run = async (nowMs: number) => {
    await sinks.forget(nowMs)
    return 'done' as const
  }
  return { name: 'delete old files of requests', everyMs: HOUR_MS, run }
}

/** Requests appear in lists when they are sent. */
function sendRequests({ sightings }: Store): PeriodicJob {
  const run = async () => ((await sightings.send()) ? 'more' : 'done')
  return { name: 'send requests to ClickHouse', everyMs: FOLLOW_MS, isOnce: true, run }
}

/** Loads the A2A format only when a message has to be sent. */
async function pushMessageOf(task: TaskRecord): Promise<CallbackMessage> {
  return (await import('./a2a/push.ts')).pushMessage(task)
}

const HOUR_MS = 3_600_000
const FOLLOW_MS = 1_000
const CATCH_UP_MS = 5_000
