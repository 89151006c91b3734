import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { AppIndex } from '../../apps/app-index.ts'
import { Traffic } from '../../classify/verdict/traffic.ts'
import type { Log } from '../../shared/log.ts'
import type { MetricsReading } from '../../shared/metrics.ts'
import type { Investigator } from '../../identity/keys/inquiry.ts'
import { readSigningKeys } from '../../identity/keys/signing-key.ts'
import type { ProxyBus } from '../../plane/bus.ts'
import { ClientPrivacy } from '../../plane/privacy/client-privacy.ts'
import type { UnreadyReason } from '../../plane/readiness.ts'
import type { Snapshot } from '../../plane/snapshot.ts'
import { SnapshotReader } from '../../plane/snapshot-reader.ts'
import { AccessLog } from '../request/access-log.ts'
import { CertificateStore } from '../tls/certificates.ts'
import { JudgingScratch, type ProxyContext } from '../request/context.ts'
import type { ListenAddresses, LiveState } from './data-plane.ts'
import { DecisionIds } from '../connection/decision-id.ts'
import { createHandler } from '../request/handler.ts'
import { HostGate } from '../request/host-gate.ts'
import { HeaderRules } from '../connection/header-rules.ts'
import { createListener, type Listener, type ListenerOptions } from './listener.ts'
import { AddressSet } from '../../wire/ip-address.ts'
import { Prover } from '../request/prover.ts'
import { TermsPublisher } from '../request/publish/terms-publisher.ts'
import { McpMessageReader } from '../request/mcp/message-reader.ts'
import { RateLimiter } from '../request/rate-limiter.ts'
import { Recorder } from './recorder.ts'
import { receiveTrailers } from '../connection/request-headers.ts'
import { ServedHosts } from '../connection/served-hosts.ts'
import { SpanExporter } from '../request/span-exporter.ts'
import { TagSigner } from '../request/tag-signature.ts'
import type { Tap } from '../connection/tap.ts'
import { Tarpit } from '../request/tarpit.ts'
import { Toll } from '../request/pay/toll.ts'
import { Tracer } from '../request/tracer.ts'
import { Upgrades } from '../request/upgrade.ts'
import { UpstreamGroup, upstreamCounters } from '../upstream/upstream.ts'
import type { UnhealthyTarget } from '../upstream/upstream-log.ts'
import { WorkerMetrics } from './worker-metrics.ts'
import type { WorkerSettings, WorkerTracingSettings } from './worker-settings.ts'

/** What a worker is given to work with. */
export interface WorkerServices {
  readonly bus: ProxyBus
  readonly log: Log
  /** `null`: proofs are not checked. */
  readonly investigator: Investigator | null
  /** `null`: hellos are not recorded. */
  readonly tap: Tap | null
}

/** Connects listeners, handler, upstreams and recorder. */
export class Worker {
  readonly #settings: WorkerSettings
  readonly #bus: ProxyBus
  readonly #certificates: CertificateStore
  readonly #upstreams: readonly UpstreamGroup[]
  readonly #recorder: Recorder
  readonly #spans: SpanExporter | null
  readonly #accessLog: AccessLog | null
  readonly #metrics: WorkerMetrics
  readonly #upgrades = new Upgrades()
  readonly #traffic = new Traffic()
  readonly #clock = new Clock()
  readonly #privacy: ClientPrivacy
  readonly #scratch: JudgingScratch
  readonly #context: ProxyContext
  readonly #listeners: readonly Listener[]

  /** Resolves when it accepts connections. If it cannot, it rejects with a Fault and cleans up. */
  static async start(
    settings: WorkerSettings,
    state: LiveState,
    services: WorkerServices,
    beforeListening: () => void = () => undefined,
  ): Promise<Worker> {
    const { bus, log } = services
    const isPublishing = TermsPublisher.for(settings.publish) !== null
    const first = Promise.withResolvers<Snapshot>()
    let use: (snapshot: Snapshot) => void = first.resolve
    const reader = new SnapshotReader((snapshot) => use(snapshot), isPublishing)
    bus.onSnapshot((document) => {
      reader.read(document).catch((error) => {
        // The sender has checked it: one side has another version, or there is a bug. The previous one stays.
        log.error('a snapshot cannot be used', { number: document.number, error: error as Error })
        first.reject(error)
      })
    })
    const worker = new Worker(settings, state, await first.promise, services)
    use = (snapshot) => {
      worker.#context.snapshot = snapshot
      worker.#recorder.takesCounts = snapshot.takesCounts
      worker.#context.apps = worker.#context.apps.having(snapshot.apps)
      worker.#metrics.nameApps(worker.#context.apps.ids)
      worker.#context.prover?.use(snapshot.knowledge)
    }
    try {
      beforeListening()
      await worker.#listen()
      return worker
    } catch (error) {
      await worker.drain(0)
      throw error
    }
  }

  private constructor(
    settings: WorkerSettings,
    state: LiveState,
    snapshot: Snapshot,
    { bus, log, investigator, tap }: WorkerServices,
  ) {
    this.#settings = settings
    this.#bus = bus
    this.#privacy = new ClientPrivacy(settings.privacy)
    this.#scratch = new JudgingScratch(this.#privacy.visitorOf)
    const { clientCa } = settings.tls
    this.#certificates = new CertificateStore(state.keyPairs, clientCa === null ? {} : { ca: clientCa })
    this.#upstreams = settings.upstreams.map((upstream) => new UpstreamGroup(upstream, upstreamCounters()))
    const { sampling } = settings
    this.#recorder = new Recorder(bus, () => this.#clock.ids.next(), { sampling, privacy: this.#privacy })
    this.#recorder.takesCounts = snapshot.takesCounts
    this.#spans = settings.tracing === null ? null : exporterFor(settings.tracing, log)
    this.#accessLog =
      settings.accessLog === null ? null : new AccessLog(settings.accessLog, log, this.#privacy)
    const listeners: Listener[] = []
    this.#metrics = new WorkerMetrics({
      listeners,
      upstreams: this.#upstreams,
      recorder: this.#recorder,
      traffic: this.#traffic,
      spans: this.#spans,
      accessLog: this.#accessLog,
      expressions: this.#scratch.policy,
      waiting: () => this.#context.prover?.waiting ?? 0,
    })
    this.#context = this.#contextWith(snapshot, investigator, state.signingKey, lacksUpstream(log))
    this.#metrics.nameApps(this.#context.apps.ids)
    this.#context.prover?.use(snapshot.knowledge)

    const handlers = createHandler(this.#context)
    const options = listenerOptions(settings, this.#context.trusted)
    const tls = tlsOptions(settings, this.#certificates, state.ticketKeys)
    listeners.push(createListener({ ...options, tls }, handlers, tap))
    if (settings.plainListen !== null)
      listeners.push(createListener({ ...options, tls: null }, handlers, tap))
    this.#listeners = listeners
  }

  /** The actual addresses, with assigned ports. */
  get addresses(): ListenAddresses {
    const [listen, plainListen] = this.#listeners.map(({ address }) => address)
    return { listen: listen ?? this.#settings.listen, plainListen: plainListen ?? null }
  }

  /** The number of the current Snapshot. */
  get snapshot(): number {
    return this.#context.snapshot.number
  }

  /** The number of Sightings it had no room for. */
  get dropped(): number {
    return this.#recorder.counts.dropped
  }

  /** Applies to later handshakes. If a certificate is unusable, it throws and changes nothing. */
  use({ keyPairs, ticketKeys, signingKey }: LiveState): void {
    this.#certificates.replace(keyPairs)
    this.#context.signer = signerOf(this.#settings.signatureKey, signingKey)
    for (const listener of this.#listeners) listener.refreshTls(ticketKeys)
  }

  unready(): readonly UnreadyReason[] {
    if (this.#settings.ready === 'always') return []
    const nowMs = performance.now()
    return this.#upstreams
      .filter((group) => !group.isWorthTrying(nowMs))
      .map(({ name }) => ({ code: 'upstream', detail: `upstream ${name}: no target is healthy` }))
  }

  /** Upstream targets that are unreachable or failing for this worker. */
  unhealthyTargets(): readonly UnhealthyTarget[] {
    return this.#upstreams.flatMap((group) => group.unhealthy)
  }

  read(): MetricsReading {
    return this.#metrics.read()
  }

  /** Resolves when everything is closed. */
  async drain(deadlineMs: number): Promise<void> {
    const startedMs = performance.now()
    const { websocketGraceMs } = this.#settings
    await Promise.all(this.#listeners.map((listener) => listener.drain(deadlineMs, websocketGraceMs)))
    this.#upgrades.close()
    for (const group of this.#upstreams) group.close() // no requests are left
    const leftMs = deadlineMs - (performance.now() - startedMs)
    this.#context.prover?.close()
    const lastMs = Math.max(leftMs, LAST_SIGHTINGS_MS)
    await Promise.all([this.#recorder.close(lastMs), this.#spans?.close(lastMs)])
    this.#accessLog?.close()
    this.#clock.stop()
    this.#bus.close()
  }

  #contextWith(
    snapshot: Snapshot,
    investigator: Investigator | null,
    signingKey: string | null,
    lacksUpstream: ProxyContext['lacksUpstream'],
  ): ProxyContext {
    const settings = this.#settings
    const limiter = new RateLimiter()
    const trusted = addressSet(settings.trustedProxies)
    const headerRules = new HeaderRules({ ...settings.headers, ja4Header: settings.ja4Hops.header })
    const countOdd = (count: number) => this.#metrics.oddHeaderNames(count)
    return {
      name: hostname(),
      snapshot,
      apps: new AppIndex(snapshot.apps, settings.app),
      upstreams: new Map(this.#upstreams.map((group) => [group.name, group])),
      defaultUpstream: this.#upstreams[0]!,
      lacksUpstream,
      trusted,
      headerRules,
      trailersForApp: (trailers) => receiveTrailers(headerRules, trailers, countOdd),
      ja4plus: settings.ja4plus,
      fail: settings.fail,
      publisher: TermsPublisher.for(settings.publish),
      hostGate: HostGate.for(settings.hosts, () => this.#metrics.unknownHost()),
      upgradeIdleTimeoutMs: settings.upgradeIdleTimeoutMs,
      signer: signerOf(settings.signatureKey, signingKey),
      prover: investigator === null ? null : this.#proverFor(investigator, trusted, headerRules),
      messages: new McpMessageReader(settings.mcpMessageBytesMax),
      limiter,
      traffic: this.#traffic,
      scratch: this.#scratch,
      tarpit: new Tarpit(),
      toll: new Toll({
        terms: settings.payments,
        rslPath: settings.publish.rslPath,
        bus: this.#bus,
        limiter,
        clock: this.#clock,
      }),
      upgrades: this.#upgrades,
      ids: this.#clock.ids,
      clock: this.#clock,
      recorder: this.#recorder,
      accessLog: this.#accessLog,
      tracer: this.#spans === null ? null : new Tracer(settings.tracing!.sample, this.#spans, this.#privacy),
      metrics: this.#metrics,
    }
  }

  #proverFor(investigator: Investigator, trusted: AddressSet, rules: HeaderRules): Prover {
    const { identity } = this.#settings
    const hosts = new ServedHosts(identity.hosts, this.#certificates)
    return new Prover(identity, {
      investigator,
      hosts,
      trusted,
      rules,
      clock: this.#clock,
      metrics: this.#metrics,
    })
  }

  async #listen(): Promise<void> {
    const [listener, plainListener] = this.#listeners
    await listener!.listen({ ...this.#settings.listen })
    await plainListener?.listen({ ...this.#settings.plainListen! })
  }
}

/** Warns once of each name. */
function lacksUpstream(log: Log): ProxyContext['lacksUpstream'] {
  const lacking = new Set<string>()
  return ({ id, upstream }) => {
    if (upstream === null || lacking.has(upstream) || lacking.size === LACKING_MAX) return
    lacking.add(upstream)
    log.warn('an app has an upstream that this proxy lacks; its requests go to the default', {
      app: id,
      upstream,
    })
  }
}

/** `shared`: the secret that the app also has. */
function signerOf(shared: string | null, signingKey: string | null): TagSigner | null {
  if (signingKey !== null) return new TagSigner(readSigningKeys(signingKey)[0])
  return shared === null ? null : new TagSigner(shared)
}

function exporterFor({ endpoint, token, service, version }: WorkerTracingSettings, log: Log): SpanExporter {
  const resource = Object.entries({
    'service.name': service,
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
  }).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  return new SpanExporter({ endpoint, token, resource }, log)
}

/** The time of day, read at intervals so that requests need not read the clock. */
class Clock {
  nowMs = Date.now()
  readonly ids = new DecisionIds(this.nowMs)
  readonly #beat = setInterval(() => {
    this.nowMs = Date.now()
    this.ids.beat(this.nowMs)
  }, CLOCK_BEAT_MS).unref()

  stop(): void {
    clearInterval(this.#beat)
  }
}

function listenerOptions(settings: WorkerSettings, trusted: AddressSet): Omit<ListenerOptions, 'tls'> {
  return {
    proxyProtocol: settings.proxyProtocol,
    trusted,
    ja4Hops: addressSet(settings.ja4Hops.addresses),
    ja4plus: settings.ja4plus,
    fastLane: settings.fastLane,
    http2: settings.http2,
    limits: settings.limits,
  }
}

function tlsOptions(
  { tls }: WorkerSettings,
  certificates: CertificateStore,
  ticketKeys: Buffer,
): ListenerOptions['tls'] {
  return {
    certificates,
    ticketKeys,
    minVersion: tls.minVersion,
    requestClientCertificate: tls.clientCertificates === 'request',
    clientCa: tls.clientCa,
  }
}

function addressSet(ranges: readonly string[]): AddressSet {
  const set = AddressSet.parse(ranges)
  assert(set !== null, 'the configuration has checked them')
  return set
}

/** Limits the warnings. */
const LACKING_MAX = 100
/** Exact enough for decisions, with ten wake-ups a second. */
const CLOCK_BEAT_MS = 100
/** Even at the deadline, the last Sightings get a moment. */
const LAST_SIGHTINGS_MS = 500
