import { readFileSync, statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { type HostPort, isEverywhere } from './config-kinds.ts'
import { CONFIG_VARIABLE, type ConfigFlags, Layers, type LayersInput } from './config-layers.ts'
import { checkInject, type InjectConfig, injectConfig, warnInject } from './config-inject.ts'
import { ConfigReader, type Effective } from './config-reader.ts'
import type { ValueOf } from './config-items.ts'
import type { SETTINGS } from './config-schema.ts'
import { ConfigFault, type Problem } from './config-source.ts'
import { Fault } from './fault.ts'
import type { LogLevel } from './log.ts'
import { REDACTED, type Secret } from './secret.ts'

/** All that is set at the start and takes a restart to change. Times of 0 are for ever. */
export interface StartupConfig {
  readonly proxy: ProxyConfig
  readonly manage: {
    readonly listen: HostPort
    readonly publicUrl: string | null
    readonly adminKey: Secret<string> | null
    /** `null`: without TLS. */
    readonly certificate: CertificateConfig | null
    readonly corsOrigins: readonly string[]
    readonly requestTimeoutMs: number
    readonly connectionsMax: number
    readonly isAccessLogged: boolean
  }
  readonly limits: { readonly freePerDay: number; readonly standardPerHour: number }
  readonly data: { readonly dir: string }
  /** Without a URL it is SQLite in the data folder. */
  readonly store: {
    readonly url: string | null
    readonly password: Secret<string> | null
    readonly auditRetentionMs: number
    readonly encryptionKey: Secret<string> | null
  }
  readonly auth: {
    readonly failuresPerMinute: number
    readonly accessTokenTtlS: number
    readonly gnapBearerTokens: boolean
    readonly dpopNonce: 'off' | 'required'
    readonly signingKeyRotationMs: number
    readonly registration: 'off' | 'token' | 'open'
    readonly registrationToken: Secret<string> | null
    /** `null`: nobody signs in from elsewhere. */
    readonly openid: OpenidConfig | null
  }
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
  /** Of documents that others publish. */
  readonly fetch: { readonly allowPrivateAddresses: boolean }
  /** How agents prove who they are. */
  readonly identity: IdentityConfig
  /** With a key of our own. */
  readonly signing: SigningConfig
  /** Files and folders of the operator's own. */
  readonly signatures: readonly string[]
  /** `null`: those that come with Gatehouse. */
  readonly weights: { readonly file: string | null }
  readonly feeds: readonly FeedConfig[]
  readonly policy: { readonly file: string | null }
  readonly sightings: {
    readonly file: string | null
    readonly bytesMax: number
    readonly retentionMs: number
    readonly rowsMax: number
  }
  readonly rollups: { readonly minutesMs: number; readonly hoursMs: number; readonly daysMs: number }
  readonly observed: { readonly addressesMin: number; readonly requestsMin: number; readonly max: number }
  readonly threats: ThreatsConfig
  readonly inject: InjectConfig
  readonly fingerprints: { readonly ja4plus: boolean }
  readonly log: { readonly level: LogLevel }
}

export interface ProxyConfig {
  readonly listen: HostPort
  readonly plainListen: HostPort | null
  readonly workers: number
  /** One or more, each name once. The first is the one requests go to when no rule says otherwise. */
  readonly upstreams: readonly UpstreamConfig[]
  readonly trustedProxies: readonly string[]
  readonly proxyProtocol: 'off' | 'optional' | 'required'
  readonly ja4Hops: { readonly addresses: readonly string[]; readonly header: string }
  readonly tls: TlsConfig
  readonly limits: LimitsConfig
  readonly drainTimeoutMs: number
  readonly websocketGraceMs: number
  readonly signatureKey: Secret<string> | null
  readonly fail: 'open' | 'closed'
}

export interface UpstreamConfig {
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

export interface IdentityConfig {
  readonly signatures: 'discover' | 'listed' | 'off'
  readonly agents: readonly string[]
  readonly hosts: readonly string[]
  readonly nonce: 'optional' | 'required'
  readonly reverseDns: boolean
  readonly resolvers: readonly string[]
  /** `null`: never. */
  readonly rangesRefreshMs: number | null
  /** `null`: none. */
  readonly asnFile: string | null
}

export interface SigningConfig {
  readonly webhooks: boolean
  readonly upstream: boolean
  /** `null`: in the data folder. */
  readonly keyFile: string | null
  readonly agent: string | null
}

export interface ThreatsConfig {
  /** Those that are told: `blocked`, … */
  readonly reasons: readonly string[]
  readonly anomaly: { readonly factor: number; readonly requestsMin: number }
  readonly robots: { readonly file: string | null; readonly isFromUpstream: boolean }
  readonly windowMs: number
  readonly eventsPerMinute: number
}

export interface FeedConfig {
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

export interface OpenidConfig {
  readonly issuer: string
  readonly name: string
  readonly clientId: string
  readonly clientSecret: Secret<string> | null
  readonly caFile: string | null
  readonly allowPrivate: boolean
}

export interface TlsConfig {
  /** None: a development certificate. */
  readonly certificates: readonly CertificateConfig[]
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  readonly clientCertificates: 'off' | 'request'
  readonly clientCaFile: string | null
  readonly ticketKeyFile: string | null
  readonly sniMismatch: 'allow' | 'reject'
}

export interface CertificateConfig {
  readonly certificateFile: string
  readonly keyFile: string | null
  readonly passphrase: Secret<string> | null
}

export interface LimitsConfig {
  readonly helloBytesMax: number
  readonly helloTimeoutMs: number
  readonly handshakeTimeoutMs: number
  readonly requestLineBytesMax: number
  readonly headerBytesMax: number
  readonly headerCountMax: number
  readonly headerTimeoutMs: number
  readonly bodyIdleTimeoutMs: number
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
  /** Where `proxy.workers` is not set. */
  readonly workersDefault?: number
  /** It forwards nothing, but looks after what is stored, or after Pods: there may be no upstream. */
  readonly isForStore?: true
  /** What a file of a secret holds. Throws a Fault. */
  readonly readSecret?: (file: string) => string
}

export interface ParsedConfig {
  readonly config: StartupConfig
  /** What is allowed, and risky or without effect. */
  readonly warnings: readonly Problem[]
  readonly effective: readonly Effective[]
}

/** Throws one ConfigFault with everything that is wrong: where, what, and the nearest name there is. */
export function parseConfig(input: ConfigInput): ParsedConfig {
  const layers = new Layers(input)
  if (!layers.isReadable) throw new ConfigFault(inOrder(layers.problems))
  const reader = new ConfigReader(layers, input.readSecret ?? secretIn)
  const settings = reader.read()
  // If there is another problem, that may be why.
  if (!input.isForStore && layers.problems.length === 0 && settings.proxy.upstreams.length === 0)
    layers.refuse(...NO_UPSTREAM)
  checkTogether(settings, (...problem) => layers.refuse(...problem))
  if (layers.problems.length > 0) throw new ConfigFault(inOrder(layers.problems))
  warnTogether(settings, (...warning) => reader.warn(...warning))
  const config = startupConfig(settings, input.workersDefault ?? defaultWorkers())
  const effective = reader.effective.map((each) =>
    each.pointer === '/proxy/workers' ? { ...each, value: config.proxy.workers } : each,
  )
  return { config, warnings: reader.warnings, effective }
}

/** The same, of the file that `--config` or GATEHOUSE_CONFIG names. */
export function loadConfig(
  flags: ConfigFlags,
  configFile: string | null,
  env: ConfigInput['env'],
  {
    workersDefault = defaultWorkers(),
    ...more
  }: Pick<ConfigInput, 'workersDefault' | 'isForStore' | 'flagSettings'> = {},
): ParsedConfig {
  const named = configFile ?? (env[CONFIG_VARIABLE] || null)
  const file = named === null ? null : { name: named, text: textIn(named) }
  const parsed = parseConfig({ flags, env, file, workersDefault, ...more })
  return { ...parsed, warnings: [...parsed.warnings, ...readableByOthers(parsed, named)] }
}

/** More than four have to be asked for: each has memory, upstream connections and limits of its own. */
export function defaultWorkers(): number {
  return Math.min(availableParallelism(), 4)
}

type Settings = ValueOf<typeof SETTINGS>
type Say = (pointer: string, what: string) => void

/** What is wrong only in view of other settings. Those that are wrong by themselves are undefined. */
function checkTogether(
  { proxy, manage, auth, fetch, identity, signing, feeds, inject }: Partly<Settings>,
  refuse: Say,
): void {
  const { upstreams, limits } = proxy
  checkInject(inject, refuse)
  for (const [index, upstream] of upstreams.entries()) {
    const at = `/proxy/upstreams/${index}`
    if (upstream.urls.length === 0) refuse(`${at}/urls`, 'is missing')
    const first = upstreams.findIndex(({ name }) => name === upstream.name)
    if (upstream.name !== undefined && first < index)
      refuse(`${at}/name`, `"${upstream.name}" is taken; each upstream needs a name of its own`)
    if (isMore(upstream.connections_idle_max, upstream.connections_max))
      refuse(`${at}/connections_idle_max`, 'is more than connections_max')
    const { path, interval, timeout } = upstream.health
    if (path !== null && isMore(timeout, interval)) refuse(`${at}/health/timeout`, 'is longer than interval')
  }
  if (proxy.proxy_protocol === 'required' && proxy.trusted_proxies.length === 0)
    refuse('/proxy/proxy_protocol', 'is required, and without trusted_proxies nobody may send one')
  if (isMore(limits.request_line_bytes, limits.header_bytes))
    refuse('/proxy/limits/request_line_bytes', 'is more than header_bytes, of which it is a part')
  if (manage.admin_key && UNSENDABLE.test(manage.admin_key.reveal()))
    refuse(
      '/manage/admin_key',
      'has a blank at an end, or a control character in it: no header could carry it',
    )
  if (auth.registration === 'token' && auth.registration_token === null)
    refuse('/auth/registration', 'is token, and there is no registration_token')
  if (auth.registration_token && !BEARER_TOKEN.test(auth.registration_token.reveal()))
    refuse('/auth/registration_token', 'has a character in it that no token may have')
  if (signing.upstream === true && proxy.signature_key)
    refuse('/signing/upstream', 'and proxy.signature_key sign the same header: give one of them')
  const { issuer, client_id } = auth.openid
  if (issuer && client_id === null) refuse('/auth/openid/client_id', 'is missing: the issuer has given one')
  if (issuer?.startsWith('http:') && fetch.allow_private_addresses === false)
    refuse(
      '/auth/openid/issuer',
      'takes https://; with fetch.allow_private_addresses, for tests, http:// too',
    )
  for (const [index, agent] of identity.agents.entries())
    if (agent?.startsWith('http:') && fetch.allow_private_addresses === false)
      refuse(
        `/identity/agents/${index}`,
        'takes https://; with fetch.allow_private_addresses, for tests, http:// too',
      )
  if (isSame(proxy.plain_listen, proxy.listen)) refuse('/proxy/plain_listen', 'is also proxy.listen')
  if (isSame(manage.listen, proxy.listen)) refuse('/manage/listen', 'is also proxy.listen')
  else if (isSame(manage.listen, proxy.plain_listen)) refuse('/manage/listen', 'is also proxy.plain_listen')
  for (const [index, { name, public_keys, token }] of feeds.entries()) {
    const at = `/feeds/${index}`
    if (public_keys.length === 0) refuse(`${at}/public_keys`, 'is missing')
    if (name !== undefined && feeds.findIndex((feed) => feed.name === name) < index)
      refuse(`${at}/name`, `"${name}" is taken; each feed needs a name of its own`)
    if (token && !BEARER_TOKEN.test(token.reveal()))
      refuse(`${at}/token`, 'has a character in it that no token may have')
  }
}

/** As read while something in it may have been refused. */
type Partly<Value> = Value extends HostPort | Secret<string> | string | number | boolean | null
  ? Value | undefined
  : { readonly [Name in keyof Value]: Partly<Value[Name]> }

function isMore(one: number | undefined, other: number | undefined): boolean {
  return one !== undefined && other !== undefined && one > other
}

/** Port 0 is a new one each time. */
function isSame(one: HostPort | null | undefined, other: HostPort | null | undefined): boolean {
  if (!one || !other || one.port !== other.port || one.port === 0) return false
  return one.host === other.host || isEverywhere(one) || isEverywhere(other)
}

/** By line, where they are in one file; what is in no file comes first. */
function inOrder(problems: readonly Problem[]): Problem[] {
  const lineOf = ({ where }: Problem) => Number(/:(\d+):\d+$/.exec(where)?.[1] ?? 0)
  return problems.toSorted((a, b) => lineOf(a) - lineOf(b))
}

/** What does nothing, or less than it seems to. */
function warnTogether(
  { proxy, manage, store, auth, fetch, identity, signing, sinks, inject }: Settings,
  warn: Say,
): void {
  const { tls } = proxy
  warnInject(inject, warn)
  if (proxy.proxy_protocol === 'optional' && proxy.trusted_proxies.length === 0)
    warn('/proxy/proxy_protocol', 'has no effect without trusted_proxies')
  if (tls.client_ca_file !== null && tls.client_certificates === 'off')
    warn('/proxy/tls/client_ca_file', 'has no effect without client_certificates: request')
  if (store.url?.startsWith('postgres') && store.encryption_key === null)
    warn('/store/url', 'is shared, and without store.encryption_key each process reads its own secrets only')
  if (manage.tls.cert_file === null && manage.tls.key_file !== null)
    warn('/manage/tls/key_file', 'has no effect without cert_file')
  if (auth.openid.client_id !== null && auth.openid.issuer === null)
    warn('/auth/openid/client_id', 'has no effect without issuer')
  if (sinks.syslog_ca_file !== null && !sinks.syslog?.startsWith('tls:'))
    warn('/sinks/syslog_ca_file', 'has no effect without syslog: tls://…')
  if (identity.resolvers.length > 0 && !identity.reverse_dns)
    warn('/identity/resolvers', 'has no effect without reverse_dns')
  if (identity.agents.length > 0 && identity.signatures === 'off')
    warn('/identity/agents', 'has no effect with signatures: off')
  if (identity.signatures === 'discover' && fetch.allow_private_addresses)
    warn(
      '/fetch/allow_private_addresses',
      'is true with identity.signatures: discover: each signed request says which host in here is asked; listed asks those of agents that are named',
    )
  if (signing.key_file !== null && !signing.webhooks && !signing.upstream)
    warn('/signing/key_file', 'has no effect without signing.webhooks or signing.upstream')
  if (proxy.websocket_grace > proxy.drain_timeout)
    warn('/proxy/websocket_grace', 'is longer than drain_timeout, which ends it')
  for (const [index, upstream] of proxy.upstreams.entries()) {
    const isPlain = upstream.urls.every((url) => !/^(?:https|h2):/i.test(url))
    const isSet = !upstream.tls.verify || upstream.tls.ca_file !== null || upstream.tls.server_name !== null
    if (isPlain && isSet) warn(`/proxy/upstreams/${index}/tls`, 'has no effect: no URL has https:// or h2://')
  }
  for (const [pointer, key] of [
    ['/proxy/signature_key', proxy.signature_key],
    ['/manage/admin_key', manage.admin_key],
    ['/store/encryption_key', store.encryption_key],
  ] as const) {
    if (key !== null && key.reveal().length < SECRET_LENGTH_GOOD)
      warn(
        pointer,
        `is shorter than ${SECRET_LENGTH_GOOD} characters; one made by chance is safe, one thought of is not`,
      )
  }
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
      tls: tlsConfig(proxy.tls),
      limits: limitsConfig(proxy.limits),
      drainTimeoutMs: proxy.drain_timeout,
      websocketGraceMs: proxy.websocket_grace,
      signatureKey: proxy.signature_key,
      fail: proxy.fail,
    },
    manage: manageConfig(manage),
    limits: { freePerDay: others.limits.free_per_day, standardPerHour: others.limits.standard_per_hour },
    data: others.data,
    store: {
      url: others.store.url,
      password: others.store.password,
      auditRetentionMs: others.store.audit_retention,
      encryptionKey: others.store.encryption_key,
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
    log: others.log,
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
    requestTimeoutMs: manage.request_timeout,
    connectionsMax: manage.connections_max,
    isAccessLogged: manage.access_log,
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

/** Files of secrets that anybody on this machine can read. One that cannot be looked at is for others to complain of. */
function readableByOthers({ config, effective }: ParsedConfig, configFile: string | null): Problem[] {
  const files = new Map<string, string>()
  const others = [config.manage.certificate, config.inject.certificate].filter((each) => each !== null)
  const certificates = [...config.proxy.tls.certificates, ...others]
  for (const { certificateFile, keyFile } of certificates)
    files.set(keyFile ?? certificateFile, 'the private key in it')
  if (config.proxy.tls.ticketKeyFile !== null)
    files.set(config.proxy.tls.ticketKeyFile, 'the ticket key, and with it recorded sessions,')
  if (config.signing.keyFile !== null) files.set(config.signing.keyFile, 'the private key in it')
  const isSecretInFile = ({ value, from }: Effective) =>
    value === REDACTED && from.startsWith(`${configFile}:`)
  if (configFile !== null && effective.some(isSecretInFile)) files.set(configFile, 'the secrets in it')
  return [...files].flatMap(([file, what]) => {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & READABLE_BY_OTHERS) === 0
      ? []
      : [{ where: file, what: `everybody on this machine can read ${what}` }]
  })
}

function textIn(file: string): string {
  const bytes = bytesOf(file)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Fault('CONFIG_INVALID', `${file}: is no text in UTF-8`, { cause: error })
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

const NO_UPSTREAM = [
  '/proxy/upstream',
  'is missing: say what is behind the gate, like --upstream http://127.0.0.1:3000',
] as const
const SECRET_LENGTH_GOOD = 32
/** RFC 6750 §2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/
/** RFC 9110 §5.5: blanks around a value are none of it. */
const UNSENDABLE = /^\s|\s$|\p{Cc}/u
const READABLE_BY_OTHERS = 0o004
const READ_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
])
