import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { type ConfigRole, checkRole, checkTogether, type Settings, warnTogether } from './checks.ts'
import type { HostPort } from './kinds.ts'
import { CONFIG_VARIABLE, type ConfigFlags, Layers, type LayersInput } from './layers.ts'
import { type InjectConfig, injectConfig } from './inject.ts'
import { ConfigReader, type Effective } from './reader.ts'
import { ConfigFault, type Problem } from './source.ts'
import { Fault } from '../shared/fault.ts'
import type { LogSettings } from '../shared/log.ts'
import { REDACTED, Secret } from '../shared/secret.ts'

/** All settings that are read at the start and need a restart to change. A time of 0 means forever. */
export interface StartupConfig {
  readonly proxy: ProxyConfig
  readonly manage: {
    readonly listen: HostPort
    readonly publicUrl: string | null
    readonly adminKey: Secret<string> | null
    /** `null`: without TLS. */
    readonly certificate: CertificateConfig | null
    readonly corsOrigins: readonly string[]
    /** Addresses whose X-Forwarded-For, Forwarded and PROXY header are trusted at this port. */
    readonly trustedProxies: readonly string[]
    readonly proxyProtocol: 'off' | 'optional' | 'required'
    readonly requestTimeoutMs: number
    readonly connectionsMax: number
    readonly isAccessLogged: boolean
    /** Whether a manager is ready while its database is unreachable. */
    readonly isReadyWithoutStore: boolean
    readonly hasDashboard: boolean
  }
  readonly tracing: {
    /** `null`: tracing is off. */
    readonly endpoint: string | null
    readonly token: Secret<string> | null
    readonly sample: number
    readonly service: string
  }
  readonly limits: { readonly freePerDay: number; readonly standardPerHour: number }
  readonly data: { readonly dir: string }
  /** Without a URL: SQLite in the data folder. */
  readonly store: {
    readonly url: string | null
    readonly password: Secret<string> | null
    readonly auditRetentionMs: number
    /** The first key encrypts, all of them decrypt. Empty: the keys in the file `store.key`. */
    readonly encryptionKeys: readonly Secret<string>[]
  }
  readonly auth: {
    readonly failuresPerMinute: number
    readonly accessTokenTtlS: number
    readonly gnapBearerTokens: boolean
    readonly dpopNonce: 'off' | 'required'
    readonly signingKeyRotationMs: number
    readonly registration: 'off' | 'token' | 'open'
    readonly registrationToken: Secret<string> | null
    /** `null`: no sign-in through an identity provider. */
    readonly openid: OpenidConfig | null
  }
  readonly bus: BusConfig
  readonly webhooks: {
    readonly allowPrivateAddresses: boolean
    readonly caFile: string | null
    readonly retryBaseMs: number
    readonly retentionMs: number
  }
  readonly events: { readonly retentionMs: number; readonly rowsMax: number }
  readonly sinks: {
    readonly file: string | null
    readonly fileFormat: 'json' | 'cef'
    readonly syslog: string | null
    readonly syslogFormat: 'json' | 'cef'
    readonly syslogCaFile: string | null
  }
  /** For documents that third parties publish. */
  readonly fetch: { readonly allowPrivateAddresses: boolean }
  /** How agents prove their identity. */
  readonly identity: IdentityConfig
  /** Signing with this installation's key. */
  readonly signing: SigningConfig
  /** The operator's files and folders. */
  readonly signatures: readonly string[]
  /** `null`: the bundled weights. */
  readonly weights: { readonly file: string | null }
  readonly feeds: readonly FeedConfig[]
  readonly policy: { readonly file: string | null }
  readonly sightings: {
    readonly file: string | null
    readonly bytesMax: number
    /** `null`: Sightings are not spooled to disk. */
    readonly spoolBytesMax: number | null
    readonly retentionMs: number
    readonly rowsMax: number
  }
  readonly rollups: { readonly minutesMs: number; readonly hoursMs: number; readonly daysMs: number }
  readonly observed: { readonly addressesMin: number; readonly requestsMin: number; readonly max: number }
  readonly threats: ThreatsConfig
  readonly inject: InjectConfig
  readonly fingerprints: { readonly ja4plus: boolean }
  readonly log: LogSettings
}

interface ProxyConfig {
  readonly listen: HostPort
  readonly plainListen: HostPort | null
  readonly workers: number
  /** One or more, with unique names. The first is the default for requests that no rule routes. */
  readonly upstreams: readonly UpstreamConfig[]
  readonly trustedProxies: readonly string[]
  readonly proxyProtocol: 'off' | 'optional' | 'required'
  readonly ja4Hops: { readonly addresses: readonly string[]; readonly header: string }
  /** Empty: any host. */
  readonly hosts: readonly string[]
  readonly unknownHost: 'refuse' | 'pass'
  /** Which client headers reach the app. Names are in lower case. */
  readonly headers: {
    readonly oddNames: 'drop' | 'pass' | 'refuse'
    readonly untrusted: readonly string[]
    readonly trusted: readonly string[]
  }
  readonly tls: TlsConfig
  readonly limits: LimitsConfig
  readonly drainTimeoutMs: number
  readonly websocketGraceMs: number
  readonly signatureKey: Secret<string> | null
  readonly fail: 'open' | 'closed'
  readonly ready: 'always' | 'upstream'
  readonly fastLane: boolean
  /** `null`: no access log. */
  readonly accessLog: {
    readonly format: 'common' | 'json'
    readonly file: string | null
    readonly sample: number
  } | null
}

interface UpstreamConfig {
  readonly name: string
  readonly urls: readonly string[]
  readonly host: 'preserve' | 'upstream'
  readonly connectTimeoutMs: number
  readonly headTimeoutMs: number
  readonly idleTimeoutMs: number
  readonly keepAliveMs: number
  readonly connectionsMax: number
  readonly connectionsIdleMax: number
  readonly retries: number
  readonly health: {
    readonly path: string | null
    readonly intervalMs: number
    readonly timeoutMs: number
    readonly unhealthyAfter: number
    readonly healthyAfter: number
  }
  readonly tls: {
    readonly verify: boolean
    readonly caFile: string | null
    readonly serverName: string | null
  }
}

/** NATS, between the planes. */
interface BusConfig {
  /** Empty: no connection to other planes. */
  readonly urls: readonly string[]
  readonly name: string
  readonly credentialsFile: string | null
  readonly user: string | null
  readonly userFile: string | null
  readonly password: Secret<string> | null
  readonly token: Secret<string> | null
  readonly caFile: string | null
  readonly certificateFile: string | null
  readonly keyFile: string | null
  /** What a proxy does before it has received its first Snapshot of the fleet. */
  readonly firstSnapshot: 'wait' | 'serve'
  /** `null`: not configured. */
  readonly bootstrapFile: string | null
  readonly sightingsBytesMax: number
  readonly replicas: number
}

interface IdentityConfig {
  readonly signatures: 'discover' | 'listed' | 'off'
  readonly agents: readonly string[]
  readonly hosts: readonly string[]
  readonly nonce: 'optional' | 'required'
  readonly reverseDns: boolean
  readonly resolvers: readonly string[]
  /** `null`: never. */
  readonly rangesRefreshMs: number | null
  /** `null`: not configured. */
  readonly asnFile: string | null
}

export interface SigningConfig {
  readonly webhooks: boolean
  readonly upstream: boolean
  /** `null`: in the data folder. */
  readonly keyFile: string | null
  readonly agent: string | null
}

interface ThreatsConfig {
  /** The reasons that are reported: `blocked`, … */
  readonly reasons: readonly string[]
  readonly anomaly: { readonly factor: number; readonly requestsMin: number }
  readonly robots: { readonly file: string | null; readonly isFromUpstream: boolean }
  readonly windowMs: number
  readonly eventsPerMinute: number
}

interface FeedConfig {
  readonly name: string
  readonly url: string
  readonly publicKeys: readonly string[]
  readonly refreshMs: number
  readonly timeoutMs: number
  readonly bytesMax: number
  readonly token: Secret<string> | null
  readonly caFile: string | null
  readonly allowPrivate: boolean
}

interface OpenidConfig {
  readonly issuer: string
  readonly name: string
  readonly clientId: string
  readonly clientSecret: Secret<string> | null
  readonly caFile: string | null
  readonly allowPrivate: boolean
}

interface TlsConfig {
  /** Empty: a development certificate. */
  readonly certificates: readonly CertificateConfig[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly clientCertificates: 'off' | 'request'
  readonly clientCaFile: string | null
  readonly ticketKeyFile: string | null
  readonly sniMismatch: 'allow' | 'reject'
  readonly requireSni: boolean
}

export interface CertificateConfig {
  readonly certificateFile: string
  readonly keyFile: string | null
  readonly passphrase: Secret<string> | null
}

interface LimitsConfig {
  readonly helloBytesMax: number
  readonly helloTimeoutMs: number
  readonly handshakeTimeoutMs: number
  readonly requestLineBytesMax: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly headerTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
  readonly answerUnreadTimeoutMs: number
  readonly keepAliveTimeoutMs: number
  readonly requestsPerConnectionMax: number
  readonly connectionsMax: number
  readonly connectionsPerAddressMax: number
  readonly streamsPerConnectionMax: number
  readonly h2ResetBurst: number
  readonly h2ResetRate: number
  readonly h2SessionMemoryBytes: number
  readonly upgradeIdleTimeoutMs: number
}

export interface ConfigInput extends LayersInput {
  /** Used if `proxy.workers` is not set. */
  readonly workersDefault?: number
  /** The command that uses the settings; if missing, any. */
  readonly role?: ConfigRole
  /** Reads a secret from its file. Throws a Fault. */
  readonly readSecret?: (file: string) => string
}

export interface ParsedConfig {
  readonly config: StartupConfig
  /** Allowed settings that are risky or have no effect. */
  readonly warnings: readonly Problem[]
  readonly effective: readonly Effective[]
  /**
   * Equal for processes with equal settings, whatever their source and their secrets. SHA-256, in
   * hexadecimal.
   */
  readonly hash: string
}

/** Throws one ConfigFault with all problems: where, what, and the nearest valid name. */
export function parseConfig(input: ConfigInput): ParsedConfig {
  const layers = new Layers(input)
  if (!layers.isReadable) throw new ConfigFault(inOrder(layers.problems))
  const reader = new ConfigReader(layers, input.readSecret ?? secretIn)
  const settings = reader.read()
  // Another problem may be the cause, so report those first.
  if (layers.problems.length === 0) checkRole(settings, input.role, (...problem) => layers.refuse(...problem))
  checkTogether(settings, (...problem) => layers.refuse(...problem))
  if (layers.problems.length > 0) throw new ConfigFault(inOrder(layers.problems))
  warnTogether(settings, (...warning) => reader.warn(...warning))
  const config = startupConfig(settings, input.workersDefault ?? defaultWorkers())
  const effective = reader.effective.map((each) =>
    each.pointer === '/proxy/workers' ? { ...each, value: config.proxy.workers } : each,
  )
  return { config, warnings: reader.warnings, effective, hash: hashOf(effective) }
}

function hashOf(effective: readonly Effective[]): string {
  const values = effective.map(({ pointer, value }) => `${pointer} ${JSON.stringify(value)}`).sort()
  return createHash('sha256').update(values.join('\n')).digest('hex')
}

/** The same for the file named by `--config` or GATEHOUSE_CONFIG. */
export function loadConfig(
  flags: ConfigFlags,
  configFile: string | null,
  env: ConfigInput['env'],
  {
    workersDefault = defaultWorkers(),
    ...more
  }: Pick<ConfigInput, 'workersDefault' | 'role' | 'flagSettings'> = {},
): ParsedConfig {
  const named = configFile ?? (env[CONFIG_VARIABLE] || null)
  const file = named === null ? null : { name: named, text: textIn(named) }
  const parsed = parseConfig({ flags, env, file, workersDefault, ...more })
  return { ...parsed, warnings: [...parsed.warnings, ...readableByOthers(parsed, named)] }
}

/** At most four by default: each has its own memory, upstream connections and limits. */
export function defaultWorkers(): number {
  return Math.min(availableParallelism(), 4)
}

/** Sorted by line; problems outside of a file come first. */
function inOrder(problems: readonly Problem[]): Problem[] {
  const lineOf = ({ where }: Problem) => Number(/:(\d+):\d+$/.exec(where)?.[1] ?? 0)
  return problems.toSorted((a, b) => lineOf(a) - lineOf(b))
}

function startupConfig({ proxy, manage, ...others }: Settings, workersDefault: number): StartupConfig {
  return {
    proxy: {
      listen: proxy.listen,
      plainListen: proxy.plain_listen,
      workers: proxy.workers ?? workersDefault,
      upstreams: proxy.upstreams.map(upstreamConfig),
      trustedProxies: proxy.trusted_proxies,
      proxyProtocol: proxy.proxy_protocol,
      ja4Hops: proxy.ja4_hops,
      hosts: proxy.hosts,
      unknownHost: proxy.unknown_host,
      headers: {
        oddNames: proxy.odd_header_names,
        untrusted: proxy.untrusted_headers,
        trusted: proxy.trusted_headers,
      },
      tls: tlsConfig(proxy.tls),
      limits: limitsConfig(proxy.limits),
      drainTimeoutMs: proxy.drain_timeout,
      websocketGraceMs: proxy.websocket_grace,
      signatureKey: proxy.signature_key,
      fail: proxy.fail,
      ready: proxy.ready,
      fastLane: proxy.fast_lane,
      accessLog:
        proxy.access_log === 'off'
          ? null
          : {
              format: proxy.access_log,
              file: proxy.access_log_file,
              sample: proxy.access_log_sample,
            },
    },
    manage: manageConfig(manage),
    limits: { freePerDay: others.limits.free_per_day, standardPerHour: others.limits.standard_per_hour },
    data: others.data,
    store: {
      url: others.store.url,
      password: others.store.password,
      auditRetentionMs: others.store.audit_retention,
      encryptionKeys: encryptionKeys(others.store),
    },
    auth: {
      failuresPerMinute: others.auth.failures_per_minute,
      accessTokenTtlS: others.auth.access_token_ttl_s,
      gnapBearerTokens: others.auth.gnap_bearer_tokens,
      dpopNonce: others.auth.dpop_nonce,
      signingKeyRotationMs: others.auth.signing_key_rotation,
      registration: others.auth.registration,
      registrationToken: others.auth.registration_token,
      openid: openidConfig(others.auth.openid, others.fetch.allow_private_addresses),
    },
    bus: busConfig(others.bus),
    webhooks: {
      allowPrivateAddresses: others.webhooks.allow_private_addresses,
      caFile: others.webhooks.ca_file,
      retryBaseMs: others.webhooks.retry_base_ms,
      retentionMs: others.webhooks.retention,
    },
    events: { retentionMs: others.events.retention, rowsMax: others.events.rows_max },
    sinks: {
      file: others.sinks.file,
      fileFormat: others.sinks.file_format,
      syslog: others.sinks.syslog,
      syslogFormat: others.sinks.syslog_format,
      syslogCaFile: others.sinks.syslog_ca_file,
    },
    fetch: { allowPrivateAddresses: others.fetch.allow_private_addresses },
    tracing: others.tracing,
    identity: identityConfig(others.identity),
    signing: {
      webhooks: others.signing.webhooks,
      upstream: others.signing.upstream,
      keyFile: others.signing.key_file,
      agent: others.signing.agent,
    },
    signatures: others.signatures,
    weights: others.weights,
    feeds: others.feeds.map(feedConfig),
    policy: others.policy,
    sightings: {
      file: others.sightings.file,
      bytesMax: others.sightings.max_size,
      spoolBytesMax: others.sightings.spool_bytes,
      retentionMs: others.sightings.retention,
      rowsMax: others.sightings.rows_max,
    },
    rollups: {
      minutesMs: others.rollups.minutes,
      hoursMs: others.rollups.hours,
      daysMs: others.rollups.days,
    },
    observed: {
      addressesMin: others.observed.addresses_min,
      requestsMin: others.observed.requests_min,
      max: others.observed.max,
    },
    threats: threatsConfig(others.threats),
    inject: injectConfig(others.inject),
    fingerprints: others.fingerprints,
    log: {
      level: others.log.level,
      perSecond: others.log.per_second,
      format: others.log.format,
    },
  }
}

function threatsConfig(threats: Settings['threats']): ThreatsConfig {
  const { rate_anomaly_factor, rate_anomaly_requests, robots_file, window, events_per_minute } = threats
  const robots = { file: robots_file, isFromUpstream: threats.robots_upstream }
  return {
    reasons: Object.entries(threats).flatMap(([reason, value]) => (value === true ? [reason] : [])),
    anomaly: { factor: rate_anomaly_factor, requestsMin: rate_anomaly_requests },
    robots,
    windowMs: window,
    eventsPerMinute: events_per_minute,
  }
}

function manageConfig(manage: Settings['manage']): StartupConfig['manage'] {
  const { cert_file, key_file, key_passphrase } = manage.tls
  return {
    listen: manage.listen,
    publicUrl: manage.public_url,
    adminKey: manage.admin_key,
    certificate:
      cert_file === null
        ? null
        : { certificateFile: cert_file, keyFile: key_file, passphrase: key_passphrase },
    corsOrigins: manage.cors_origins,
    trustedProxies: manage.trusted_proxies,
    proxyProtocol: manage.proxy_protocol,
    requestTimeoutMs: manage.request_timeout,
    connectionsMax: manage.connections_max,
    isAccessLogged: manage.access_log,
    isReadyWithoutStore: manage.ready_without_store,
    hasDashboard: manage.dashboard,
  }
}

function busConfig(bus: Settings['bus']): BusConfig {
  return {
    urls: bus.url,
    name: bus.name,
    credentialsFile: bus.credentials_file,
    user: bus.user,
    userFile: bus.user_file,
    password: bus.password,
    token: bus.token,
    caFile: bus.ca_file,
    certificateFile: bus.certificate_file,
    keyFile: bus.key_file,
    firstSnapshot: bus.first_snapshot,
    bootstrapFile: bus.bootstrap_file,
    sightingsBytesMax: bus.sightings_bytes,
    replicas: bus.replicas,
  }
}

function upstreamConfig(upstream: Settings['proxy']['upstreams'][number]): UpstreamConfig {
  const { health, tls } = upstream
  return {
    name: upstream.name,
    urls: upstream.urls,
    host: upstream.host,
    connectTimeoutMs: upstream.connect_timeout,
    headTimeoutMs: upstream.head_timeout,
    idleTimeoutMs: upstream.idle_timeout,
    keepAliveMs: upstream.keep_alive,
    connectionsMax: upstream.connections_max,
    connectionsIdleMax: upstream.connections_idle_max,
    retries: upstream.retries,
    health: {
      path: health.path,
      intervalMs: health.interval,
      timeoutMs: health.timeout,
      unhealthyAfter: health.unhealthy_after,
      healthyAfter: health.healthy_after,
    },
    tls: { verify: tls.verify, caFile: tls.ca_file, serverName: tls.server_name },
  }
}

function feedConfig(feed: Settings['feeds'][number]): FeedConfig {
  return {
    name: feed.name,
    url: feed.url,
    publicKeys: feed.public_keys,
    refreshMs: feed.refresh,
    timeoutMs: feed.timeout,
    bytesMax: feed.bytes_max,
    token: feed.token,
    caFile: feed.ca_file,
    allowPrivate: feed.allow_private,
  }
}

function identityConfig(identity: Settings['identity']): IdentityConfig {
  return {
    signatures: identity.signatures,
    agents: identity.agents,
    hosts: identity.hosts,
    nonce: identity.nonce,
    reverseDns: identity.reverse_dns,
    resolvers: identity.resolvers,
    rangesRefreshMs: identity.ranges_refresh,
    asnFile: identity.asn_file,
  }
}

function openidConfig(
  openid: Settings['auth']['openid'],
  allowPrivateFetches: boolean,
): StartupConfig['auth']['openid'] {
  const { issuer, client_id, name } = openid
  if (issuer === null || client_id === null) return null
  return {
    issuer,
    name: name ?? new URL(issuer).host,
    clientId: client_id,
    clientSecret: openid.client_secret,
    caFile: openid.ca_file,
    allowPrivate: openid.allow_private || allowPrivateFetches,
  }
}

function tlsConfig(tls: Settings['proxy']['tls']): TlsConfig {
  return {
    certificates: tls.certificates.map((certificate) => ({
      certificateFile: certificate.cert_file,
      keyFile: certificate.key_file,
      passphrase: certificate.key_passphrase,
    })),
    minVersion: tls.min_version === '1.3' ? 'TLSv1.3' : 'TLSv1.2',
    clientCertificates: tls.client_certificates,
    clientCaFile: tls.client_ca_file,
    ticketKeyFile: tls.ticket_key_file,
    sniMismatch: tls.sni_mismatch,
    requireSni: tls.require_sni ?? tls.sni_mismatch === 'reject',
  }
}

function limitsConfig(limits: Settings['proxy']['limits']): LimitsConfig {
  return {
    helloBytesMax: limits.hello_bytes,
    helloTimeoutMs: limits.hello_timeout,
    handshakeTimeoutMs: limits.handshake_timeout,
    requestLineBytesMax: limits.request_line_bytes,
    headerBytesMax: limits.header_bytes,
    headerCountMax: limits.header_count,
    headerTimeoutMs: limits.header_timeout,
    bodyIdleTimeoutMs: limits.body_idle_timeout,
    answerUnreadTimeoutMs: limits.answer_unread_timeout,
    keepAliveTimeoutMs: limits.keep_alive_timeout,
    requestsPerConnectionMax: limits.requests_per_connection,
    connectionsMax: limits.connections_max,
    connectionsPerAddressMax: limits.connections_per_address,
    streamsPerConnectionMax: limits.streams_per_connection,
    h2ResetBurst: limits.h2_reset_burst,
    h2ResetRate: limits.h2_reset_rate,
    h2SessionMemoryBytes: limits.h2_session_memory,
    upgradeIdleTimeoutMs: limits.upgrade_idle_timeout,
  }
}

/**
 * A single key is not reloaded when its file changes: with only the new key, nothing stored could be
 * decrypted.
 */
function encryptionKeys({ encryption_key: one, encryption_keys: ring }: Settings['store']) {
  return one === null ? ring : [new Secret(one.reveal())]
}

/**
 * Secret files that all users of the machine can read. Files that cannot be examined are reported elsewhere.
 */
function readableByOthers({ config, effective }: ParsedConfig, configFile: string | null): Problem[] {
  const files = new Map<string, string>()
  const others = [config.manage.certificate, config.inject.certificate].filter((each) => each !== null)
  const certificates = [...config.proxy.tls.certificates, ...others]
  for (const { certificateFile, keyFile } of certificates)
    files.set(keyFile ?? certificateFile, 'the private key')
  if (config.proxy.tls.ticketKeyFile !== null)
    files.set(config.proxy.tls.ticketKeyFile, 'the session ticket key, which decrypts recorded sessions')
  const { signing, bus } = config
  for (const file of [signing.keyFile, bus.keyFile, bus.credentialsFile])
    if (file !== null) files.set(file, 'the private key')
  const isSecretInFile = ({ value, from }: Effective) =>
    value === REDACTED && from.startsWith(`${configFile}:`)
  if (configFile !== null && effective.some(isSecretInFile)) files.set(configFile, 'the secrets')
  return [...files].flatMap(([file, what]) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & READABLE_BY_OTHERS) === 0
      ? []
      : [
          {
            where: file,
            what: `every user on this machine can read ${what}; restrict its permissions, like chmod 600`,
          },
        ]
  })
}

function textIn(file: string): string {
  const bytes = bytesOf(file)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Fault('CONFIG_INVALID', `${file}: is not UTF-8 text`, { cause: error })
  }
}

function secretIn(file: string): string {
  return bytesOf(file).toString('utf8')
}

function bytesOf(file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Fault(
      'CONFIG_UNREADABLE',
      `${file}: ${READ_FAULTS.get(code ?? '') ?? `cannot be read (${code})`}`,
    )
  }
}

const READABLE_BY_OTHERS = 0o004
const READ_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'no such file'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
])
