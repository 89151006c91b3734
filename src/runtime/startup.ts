import { rootCertificates } from 'node:tls'
import { signerAt } from '../classify/known/signer-id.ts'
import { loadConfig, type ParsedConfig, type StartupConfig } from '../config/config.ts'
import type { CertificateConfig } from '../config/proxy.ts'
import type { ConfigFlags } from '../config/layers.ts'
import { canAsk, type RobotsUpstream } from '../manage/events/threats/robots-upstream.ts'
import { REASONS } from '../manage/events/threats/threat.ts'
import type { ManagementSettings } from '../manage/management-settings.ts'
import type { KeyPairSource } from '../proxy/tls/key-pair.ts'
import type { UpstreamSettings } from '../proxy/upstream/upstream.ts'
import type { SampleShares } from '../proxy/worker/sampler.ts'
import type { WorkerSettings } from '../proxy/worker/worker-settings.ts'
import type { Arguments } from '../terminal/command.ts'
import { configFlags } from '../terminal/config-options.ts'
import { feedSettings } from './signatures/feed-settings.ts'
import type { GatewaySettings } from './gateway/gateway-settings.ts'
import type { Io } from '../terminal/io.ts'
import type { ManagerSettings } from './manager.ts'
import { natsLogin, requestSinkSettings, sinkSettings } from './sink-settings.ts'
import { storePlace } from './store-place.ts'
import { paymentSettings } from './gateway/payment-settings.ts'
import { pemIn } from './pem-file.ts'
import { version } from '../shared/package-files.ts'

type SamplingShares = StartupConfig['sightings']['sampling']['shares']

interface Startup {
  readonly settings: GatewaySettings
  /** Settings that are allowed but risky. */
  readonly warnings: readonly string[]
}

/**
 * Makes the settings from the arguments, the environment and the configuration file.
 * Throws a Fault with all problems.
 */
export function startupSettings(
  given: Arguments,
  io: Io,
  role: 'up' | 'proxy',
  workersDefault?: number,
): Promise<Startup> {
  return startupFrom(configFlags(given), given.value('config'), io, role, workersDefault)
}

/** Like `startupSettings`, for a command with options of its own. */
export async function startupFrom(
  flags: ConfigFlags,
  configFile: string | null,
  io: Io,
  role: 'up' | 'proxy',
  workersDefault?: number,
): Promise<Startup> {
  const more = { role, ...(workersDefault === undefined ? {} : { workersDefault }) }
  const parsed = loadConfig(flags, configFile, io.env, more)
  const settings = await gatewaySettings(parsed, role)
  return { settings, warnings: warningsOf(parsed) }
}

/** Like `startupFrom`, for a manager. */
export async function managerSettings(
  flags: ConfigFlags,
  configFile: string | null,
  io: Io,
): Promise<{ readonly settings: ManagerSettings; readonly warnings: readonly string[] }> {
  const parsed = loadConfig(flags, configFile, io.env, { role: 'manage' })
  const { config } = parsed
  const settings: ManagerSettings = {
    version: version(),
    configHash: parsed.hash,
    bus: busSettings(config),
    management: await managementSettings(parsed),
    apps: config.apps,
    policyFile: config.policy.file,
    signatures: { paths: config.signatures, weightsFile: config.weights.file },
    feeds: feedSettings(config),
    rangesRefreshMs: config.identity.rangesRefreshMs,
    allowPrivate: config.fetch.allowPrivateAddresses,
    asnFile: config.identity.asnFile,
    signing: config.signing,
    sightings: sightingFileSettings(config),
    dataFolder: config.data.dir,
    ...portSettings(config),
    isReadyWithoutStore: config.manage.isReadyWithoutStore,
    log: config.log,
  }
  return { settings, warnings: warningsOf(parsed) }
}

function warningsOf({ warnings }: ParsedConfig): readonly string[] {
  return warnings.map(({ where, what }) => `${where}: ${what}`)
}

/** Defaults to worker processes. A command that serves from one process overrides that. */
async function gatewaySettings(parsed: ParsedConfig, role: 'up' | 'proxy'): Promise<GatewaySettings> {
  const { config } = parsed
  const { proxy, data, policy, identity, log } = config
  const worker = await workerSettings(config)
  const isOfFleet = role === 'proxy' && config.bus.urls.length > 0
  return {
    version: version(),
    configHash: parsed.hash,
    worker,
    workers: proxy.workers,
    certificates: proxy.tls.certificates.map(keyPairSource),
    ticketKeyFile: proxy.tls.ticketKeyFile,
    apps: config.apps,
    policyFile: policy.file,
    sightings: sightingFileSettings(config),
    signatures: { paths: config.signatures, weightsFile: config.weights.file },
    feeds: feedSettings(config),
    signing: config.signing,
    identity: {
      mode: identity.signatures,
      agents: new Set(worker.identity.agents),
      registries: identity.registries,
      allowPrivate: config.fetch.allowPrivateAddresses,
      reverseDns: identity.reverseDns,
      resolvers: identity.resolvers,
      asnFile: identity.asnFile,
      rangesRefreshMs: identity.rangesRefreshMs,
    },
    dataFolder: data.dir,
    port: portSettings(config),
    management: role === 'up' ? await managementSettings(parsed) : null,
    fleet: isOfFleet ? fleetSettings(parsed) : null,
    log,
  }
}

async function managementSettings({ config, effective }: ParsedConfig): Promise<ManagementSettings> {
  const { proxy, manage, auth, data, store, sightings, rollups, observed, threats } = config
  const first = proxy.upstreams[0]
  return {
    ...storePlace(config),
    publicUrl: manage.publicUrl,
    adminKey: manage.adminKey?.reveal() ?? null,
    hasTls: manage.certificate !== null,
    corsOrigins: manage.corsOrigins,
    ja4plus: config.fingerprints.ja4plus,
    findsCampaigns: config.classify.campaigns,
    hasDashboard: manage.hasDashboard,
    authFailuresPerMinute: auth.failuresPerMinute,
    gnap: { tokenTtlS: auth.accessTokenTtlS, allowsBearer: auth.gnapBearerTokens },
    oauth: {
      accessTokenTtlS: auth.accessTokenTtlS,
      keyRotationMs: auth.signingKeyRotationMs,
      registration: auth.registration,
      registrationToken: auth.registrationToken?.reveal() ?? null,
      needsDpopNonce: auth.dpopNonce === 'required',
    },
    openid: await openidSettings(auth.openid),
    auditRetentionMs: store.auditRetentionMs,
    taskRetentionMs: config.retention.tasksMs,
    feedbackRetentionMs: config.retention.feedbackMs,
    events: config.events,
    sinks: await sinkSettings(config.sinks),
    requestSinks: await requestSinkSettings(config),
    dataFolder: data.dir,
    encryptionKeys: store.encryptionKeys,
    allowPrivateWebhooks: config.webhooks.allowPrivateAddresses,
    deliveries: await deliverySettings(config.webhooks),
    allowPrivateFetches: config.fetch.allowPrivateAddresses,
    fetchesCards: config.identity.signatures !== 'off',
    upstreams: upstreamNames(config),
    payments: await paymentSettings(config.payments),
    fixedApp: proxy.app,
    configured: effective,
    version: version(),
    threats: {
      windowMs: threats.windowMs,
      eventsPerMinute: threats.eventsPerMinute,
      reasons: new Set(REASONS.filter((reason) => threats.reasons.includes(reason))),
      anomaly: threats.anomaly,
      robots: {
        file: threats.robots.file,
        isPublished: config.publish.hasRobots,
        upstream:
          threats.robots.isFromUpstream && first !== undefined
            ? robotsUpstream(await upstreamSettings(first))
            : null,
      },
    },
    seen: {
      sightingsMs: sightings.retentionMs,
      sightingsMax: sightings.rowsMax,
      bytesMax: sightings.databaseBytesMax,
      ...{ rollups, observed },
    },
    privacyKeys: config.privacy.keys,
    sightingsWaitForDisk: sightings.waitsForDisk,
  }
}

/** `null` for a manager whose configuration names no upstreams. */
function upstreamNames({ proxy }: StartupConfig): readonly string[] | null {
  return proxy.upstreams.length === 0 ? null : proxy.upstreams.map(({ name }) => name)
}

/** The settings of the management port. */
export function portSettings({ manage }: StartupConfig) {
  return {
    listen: manage.listen,
    front: {
      requestTimeoutMs: manage.requestTimeoutMs,
      connectionsMax: manage.connectionsMax,
      hasTls: manage.certificate !== null,
      corsOrigins: manage.corsOrigins,
      trustedProxies: manage.trustedProxies,
      proxyProtocol: manage.proxyProtocol,
    },
    certificate: manage.certificate === null ? null : keyPairSource(manage.certificate),
    isAccessLogged: manage.isAccessLogged,
  }
}

function sightingFileSettings({ sightings }: StartupConfig): GatewaySettings['sightings'] {
  return sightings.file === null ? null : { file: sightings.file, bytesMax: sightings.bytesMax }
}

function fleetSettings({ config, hash }: ParsedConfig): NonNullable<GatewaySettings['fleet']> {
  const { firstSnapshot, bootstrapFile } = config.bus
  const spoolBytesMax = config.sightings.spoolBytesMax
  return { bus: busSettings(config), spoolBytesMax, configHash: hash, firstSnapshot, bootstrapFile }
}

export function busSettings({ bus }: StartupConfig): ManagerSettings['bus'] {
  const { urls, name, sightingsBytesMax, replicas } = bus
  return { urls, name, ...natsLogin(bus), sightingsBytesMax, replicas }
}

/** The first URL from which robots.txt can be fetched. */
function robotsUpstream({ urls, host, tls }: UpstreamSettings): RobotsUpstream {
  const asked = urls.map((url) => ({ url, host, tls }))
  return asked.find(canAsk) ?? asked[0]!
}

async function openidSettings(
  openid: StartupConfig['auth']['openid'],
): Promise<NonNullable<GatewaySettings['management']>['openid']> {
  if (openid === null) return null
  const { caFile, ...settings } = openid
  return { ...settings, ca: await pemIn(caFile) }
}

async function deliverySettings({
  caFile,
  retryBaseMs,
  retentionMs,
}: StartupConfig['webhooks']): Promise<NonNullable<GatewaySettings['management']>['deliveries']> {
  const own = await pemIn(caFile)
  const ca = own === null ? null : [...rootCertificates, own].join('\n')
  return { ca, retryBaseMs, retentionMs }
}

export function keyPairSource({ certificateFile, keyFile, passphrase }: CertificateConfig): KeyPairSource {
  return { certificateFile, keyFile, passphrase: passphrase?.reveal() ?? null }
}

async function workerSettings({
  payments,
  proxy,
  publish,
  identity,
  fetch,
  fingerprints,
  tracing,
  sightings,
  privacy,
  log,
}: StartupConfig): Promise<WorkerSettings> {
  const { tls, limits } = proxy
  return {
    listen: proxy.listen,
    plainListen: proxy.plainListen,
    app: proxy.app,
    upstreams: await Promise.all(proxy.upstreams.map(upstreamSettings)),
    trustedProxies: proxy.trustedProxies,
    proxyProtocol: proxy.proxyProtocol,
    ja4Hops: proxy.ja4Hops,
    headers: proxy.headers,
    tls: {
      minVersion: tls.minVersion,
      clientCertificates: tls.clientCertificates,
      clientCa: await pemIn(tls.clientCaFile),
    },
    sampling: samplingOf(sightings.sampling, proxy.workers ?? 1),
    privacy: privacySettings(privacy),
    hosts: {
      hosts: proxy.hosts,
      unknownHost: proxy.unknownHost,
      sniMismatch: tls.sniMismatch,
      requireSni: tls.requireSni,
    },
    limits,
    mcpMessageBytesMax: limits.mcpMessageBytesMax,
    upgradeIdleTimeoutMs: limits.upgradeIdleTimeoutMs,
    websocketGraceMs: proxy.websocketGraceMs,
    drainTimeoutMs: proxy.drainTimeoutMs,
    signatureKey: proxy.signatureKey?.reveal() ?? null,
    fail: proxy.fail,
    ready: proxy.ready,
    fastLane: proxy.fastLane,
    http2: proxy.http2,
    accessLog: proxy.accessLog,
    publish,
    payments: payments.terms,
    ja4plus: fingerprints.ja4plus,
    tracing:
      tracing.endpoint === null
        ? null
        : {
            endpoint: tracing.endpoint,
            token: tracing.token?.reveal() ?? null,
            sample: tracing.sample,
            service: tracing.service,
            version: version(),
          },
    identity: {
      isSignatureChecked: identity.signatures !== 'off',
      areStrangersAsked: identity.signatures === 'discover',
      isPlaceAsked: identity.reverseDns || identity.asnFile !== null,
      areNetworksKnown: identity.asnFile !== null,
      needsNonce: identity.nonce === 'required',
      readsSignatureKey: identity.signatureKey,
      allowPrivate: fetch.allowPrivateAddresses,
      agents: identity.agents.map(signerAt),
      hosts: identity.hosts,
    },
    log,
  }
}

/** Only plain data goes to the workers. */
function privacySettings({ addresses, userAgents, paths, keys }: StartupConfig['privacy']) {
  return { addresses, userAgents, paths, key: keys[0]?.reveal() ?? null }
}

/** `null`: all Sightings are sent. */
function samplingOf(
  { shares, perSecond }: StartupConfig['sightings']['sampling'],
  workers: number,
): WorkerSettings['sampling'] {
  const { apps, ...ofAll } = shares
  const own = apps.map(({ app, ...ofApp }) => [app, sharesOfApp(ofApp, ofAll)] as const)
  const all = [ofAll, ...own.map(([, ofApp]) => ofApp)].flatMap((each) => Object.values(each))
  if (perSecond === null && all.every((each) => each === null || each === 1)) return null
  return {
    ...{ shares: ofAll, apps: Object.fromEntries(own) },
    perSecond: perSecond === null ? null : perSecond / workers,
  }
}

/** A verdict without a share there has the default of the app, if that is set, and else its share for all apps. */
function sharesOfApp(
  { default: ofRest, blocked, ...verdicts }: Omit<SamplingShares['apps'][number], 'app'>,
  ofAll: Omit<SamplingShares, 'apps'>,
): SampleShares {
  const shareOf = (verdict: keyof typeof verdicts) => verdicts[verdict] ?? ofRest ?? ofAll[verdict]
  return {
    default: ofRest ?? ofAll.default,
    blocked: blocked ?? ofAll.blocked,
    ...{ agent: shareOf('agent'), automation: shareOf('automation') },
    ...{ human: shareOf('human'), unknown: shareOf('unknown') },
  }
}

export async function upstreamSettings(
  upstream: StartupConfig['proxy']['upstreams'][number],
): Promise<UpstreamSettings> {
  const { verify, caFile, serverName } = upstream.tls
  return { ...upstream, tls: { verify, ca: await pemIn(caFile), serverName } }
}
