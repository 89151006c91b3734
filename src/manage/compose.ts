import { join } from 'node:path'
import { DocumentMetrics } from '../identity/fetch/document-metrics.ts'
import type { Snapshot } from '../plane/snapshot.ts'
import type { Log } from '../shared/log.ts'
import type { Metrics } from '../shared/metrics.ts'
import type { Store } from '../store/store.ts'
import type { ApiContext } from './api/context.ts'
import { AgentClients } from './auth/agent-clients.ts'
import { AgentIdentities } from './auth/agent-identity.ts'
import { ApiKeys } from './auth/api-keys.ts'
import { BootstrapKey } from './auth/bootstrap-key.ts'
import { ASKING_PER_MINUTE } from './auth/gnap/gnap.ts'
import { GnapTokens } from './auth/gnap/gnap-tokens.ts'
import { MinuteThrottle } from './auth/minute-throttle.ts'
import { Assertions } from './auth/oauth/assertions.ts'
import { OAuth } from './auth/oauth/oauth.ts'
import { OwnSignature, type OwnSigning } from './auth/own-signature.ts'
import { AddressHasher } from '../plane/privacy/address-form.ts'
import { OpenidProvider } from './auth/people/openid-provider.ts'
import { PasswordHasher } from './auth/people/password-hash.ts'
import { PeoplePages } from './auth/people/people-pages.ts'
import { Sealer } from './auth/sealer.ts'
import { Trust } from './auth/trust.ts'
import { EventLog } from './events/event-log.ts'
import { EventMetrics } from './events/event-metrics.ts'
import { EventTail } from './events/event-tail.ts'
import { NewSignatures } from './events/new-signatures.ts'
import { PaymentEvents } from './events/payment-events.ts'
import { SinkMetrics } from './events/sinks/sink-metrics.ts'
import { Sinks } from './events/sinks/sinks.ts'
import { DeliveryMetrics } from './events/webhooks/delivery-metrics.ts'
import { RequestSinks, sinkKinds } from './export/request-sinks.ts'
import { OpenStreams } from './http/open-streams.ts'
import { CampaignMetrics } from './intake/campaign-metrics.ts'
import { IngestMetrics } from './intake/ingest-metrics.ts'
import { RequestFeed } from './intake/request-feed.ts'
import { TrafficPulse } from './intake/traffic-pulse.ts'
import { SignatureAgentCards } from './judging/signature-agent-cards.ts'
import { RecentDetections } from './judging/detections.ts'
import { PaymentMetrics } from './payments/payment-metrics.ts'
import { RateLimits } from './limits/rate-limits.ts'
import type { ManagementLinks, ManagementSettings } from './management-settings.ts'
import { LiveSettings } from './publish/live-settings.ts'

/** The parts that exist before the database is open. They stay when opening it is tried again. */
export class Groundwork {
  readonly settings: ManagementSettings
  readonly links: ManagementLinks
  readonly log: Log
  /** The settings that can change at runtime. */
  readonly live: LiveSettings
  readonly sealer: Sealer
  readonly sinks: Sinks
  readonly requestSinks: RequestSinks
  readonly sinkMetrics: SinkMetrics
  readonly ingestMetrics = new IngestMetrics()
  readonly campaignMetrics = new CampaignMetrics()
  readonly paymentMetrics = new PaymentMetrics()
  readonly deliveryMetrics = new DeliveryMetrics()
  readonly eventMetrics = new EventMetrics()
  readonly documentMetrics: DocumentMetrics
  /** The Snapshot in force; `null` before the first. */
  snapshot: Snapshot | null = null

  constructor(settings: ManagementSettings, log: Log, links: ManagementLinks) {
    this.settings = settings
    this.links = links
    this.log = log
    this.live = new LiveSettings(settings.configured, log)
    this.sealer = new Sealer(settings.encryptionKeys, join(settings.dataFolder, 'store.key'))
    const { sinks, requestSinks, dataFolder } = settings
    this.sinkMetrics = new SinkMetrics(sinkKinds({ ...sinks, ...requestSinks }))
    this.sinks = new Sinks(sinks, this.sinkMetrics)
    this.requestSinks = new RequestSinks(requestSinks, this.sinkMetrics, dataFolder)
    this.documentMetrics = links.documentMetrics ?? new DocumentMetrics()
  }

  nowMs(): number {
    return (this.links.nowMs ?? Date.now)()
  }

  isLeading(): boolean {
    return this.links.fleet?.isLeading() ?? true
  }

  addTo(metrics: Metrics): void {
    this.ingestMetrics.addTo(metrics)
    if (this.settings.findsCampaigns) this.campaignMetrics.addTo(metrics)
    this.deliveryMetrics.addTo(metrics)
    this.paymentMetrics.addTo(metrics)
    this.eventMetrics.addTo(metrics)
    this.sinkMetrics.addTo(metrics)
  }
}

/** The identity of this installation towards others. */
export interface Site {
  readonly publicUrl: string
  readonly ownSignature: OwnSignature
}

export function siteAt(publicUrl: string, ground: Groundwork): Site {
  const signing = ground.links.signing ?? SIGNS_NOTHING
  return { publicUrl, ownSignature: new OwnSignature(signing, publicUrl, () => ground.nowMs()) }
}

/** The parts that are made when the database is open. Those that are woken follow in OpenPlane. */
export interface Composed extends Omit<ApiContext, 'tasks' | 'callbacks' | 'deliveries' | 'robots'> {
  readonly rateLimits: RateLimits
  readonly newSignatures: NewSignatures
  readonly paymentNews: PaymentEvents
}

/** `ground.live` has to be open already, because limits start with the values in force. */
export async function composed(store: Store, ground: Groundwork, site: Site): Promise<Composed> {
  const { settings, links, log, live, sealer, documentMetrics: metrics } = ground
  const { publicUrl, ownSignature } = site
  const nowMs = () => ground.nowMs()
  // Only one process opens a SQLite file.
  const isAlone = store.kind === 'sqlite'
  const trust = new Trust(store.trust, nowMs)
  const passwords = links.passwords ?? new PasswordHasher()
  const elsewhere = settings.openid === null ? null : new OpenidProvider(settings.openid, nowMs, metrics)
  const pages = { store, sealer, log, passwords, publicUrl, elsewhere, nowMs }
  const people = links.people === undefined ? new PeoplePages(pages) : links.people
  const fetching = { allowPrivate: settings.allowPrivateFetches, nowMs, metrics }
  const agents = new AgentIdentities(trust, fetching)
  const documents = links.clientDocuments ?? new AgentClients(agents, store, people, nowMs)
  const assertions =
    elsewhere === null || settings.openid?.assertions == null
      ? null
      : new Assertions(settings.openid.assertions, elsewhere, publicUrl, nowMs)
  const oauth = {
    assertions,
    publicUrl,
    store,
    sealer,
    log,
    people,
    documents,
    settings: settings.oauth,
    nowMs,
  }
  const events = new EventLog(store, nowMs, () => ground.snapshot?.knowledge?.names ?? null)
  const limits = {
    freePerDay: live.value('limits.free_per_day'),
    standardPerHour: live.value('limits.standard_per_hour'),
  }
  const { eventsPerMinute } = settings.threats
  const newsParts = { store, log: events, metrics: ground.eventMetrics, eventsPerMinute, nowMs }
  return {
    store,
    log,
    version: settings.version,
    publicUrl,
    ownSignature,
    sealer,
    settings: live,
    addressHashers: settings.privacyKeys.map((key) => new AddressHasher(key.reveal())),
    policy: links.policy,
    apps: links.apps,
    appPolicies: links.appPolicies,
    fixedApp: settings.fixedApp,
    publisher: links.publisher,
    fleet: links.fleet ?? null,
    sinks: ground.sinks,
    upstreams: settings.upstreams,
    payments: settings.payments.terms,
    ja4plus: settings.ja4plus,
    allowPrivateWebhooks: settings.allowPrivateWebhooks,
    apiKeys: new ApiKeys(store.keys),
    bootstrapKey: settings.adminKey === null ? null : new BootstrapKey(settings.adminKey),
    trust,
    agents,
    cards: new SignatureAgentCards(fetching, settings.fetchesCards),
    passwords,
    elsewhere,
    oauth: new OAuth({ ...oauth, hasDashboard: settings.hasDashboard }),
    gnap: {
      settings: settings.gnap,
      tokens: new GnapTokens(store.gnapTokens, trust, people),
      asking: new MinuteThrottle(ASKING_PER_MINUTE),
    },
    rateLimits: await RateLimits.open(store, limits, (app) => links.apps.quotaOf(app), log),
    failureThrottle: new MinuteThrottle(settings.authFailuresPerMinute),
    detections: new RecentDetections(isAlone ? null : store.detections, nowMs),
    events,
    tail: new EventTail(store, events),
    newSignatures: new NewSignatures(newsParts),
    paymentNews: new PaymentEvents(newsParts),
    pulse: new TrafficPulse(),
    requests: new RequestFeed(store.sightings),
    streams: new OpenStreams(),
    workers: () => links.workers(),
    networks: () => links.networks?.() ?? null,
    snapshot: () => ground.snapshot,
    nowMs,
  }
}

const SIGNS_NOTHING: OwnSigning = { agent: null, webhooks: false, keys: () => null }
