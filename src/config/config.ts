import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { type ConfigRole, checkRole, checkTogether, type Settings, warnTogether } from './checks.ts'
import { CONFIG_VARIABLE, type ConfigFlags, Layers, type LayersInput } from './layers.ts'
import { type InjectConfig, injectConfig } from './inject.ts'
import { ConfigReader, type Effective } from './reader.ts'
import { secretIn, textIn } from './setting-files.ts'
import { ConfigFault, type Problem } from './source.ts'
import type { App } from '../apps/app.ts'
import type { LogSettings } from '../shared/log.ts'
import { REDACTED, Secret } from '../shared/secret.ts'
import { appsConfig } from './apps.ts'
import { type AuthConfig, authConfig } from './auth.ts'
import { type FeedConfig, feedConfig } from './feeds.ts'
import { type BusConfig, busConfig } from './fleet.ts'
import { type IdentityConfig, identityConfig, type SigningConfig, signingConfig } from './identity.ts'
import { type ManageConfig, manageConfig } from './manage.ts'
import { type PaymentConfig, paymentConfig } from './payments.ts'
import { type ProxyConfig, proxyConfig } from './proxy.ts'
import { type PublishConfig, publishConfig } from './publish.ts'
import { type RetentionConfig, retentionConfig } from './retention.ts'
import { type PrivacyConfig, privacyConfig } from './privacy.ts'
import type { SamplingConfig } from './traffic/sample.ts'
import { type SinksConfig, sinksConfig } from './traffic/sinks.ts'
import { type ThreatsConfig, threatsConfig } from './threats.ts'

/** All settings that are read at the start and need a restart to change. A time of 0 means forever. */
export interface StartupConfig {
  readonly proxy: ProxyConfig
  readonly manage: ManageConfig
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
  /** Where recorded requests are kept; `url` is `null`: in the database. */
  readonly traffic: { readonly url: string | null; readonly password: Secret<string> | null }
  readonly auth: AuthConfig
  readonly bus: BusConfig
  readonly webhooks: {
    readonly allowPrivateAddresses: boolean
    readonly caFile: string | null
    readonly retryBaseMs: number
    readonly retentionMs: number
  }
  readonly events: { readonly retentionMs: number; readonly rowsMax: number }
  readonly sinks: SinksConfig
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
    /** SQLite: the bytes of the database file. `null`: no limit. */
    readonly databaseBytesMax: number | null
    /** PostgreSQL: whether the commit of Sightings waits for the disk. */
    readonly waitsForDisk: boolean
    readonly sampling: SamplingConfig
  }
  readonly privacy: PrivacyConfig
  /** Of records that have no settings elsewhere. */
  readonly retention: RetentionConfig['others']
  readonly rollups: { readonly minutesMs: number; readonly hoursMs: number; readonly daysMs: number }
  readonly observed: { readonly addressesMin: number; readonly requestsMin: number; readonly max: number }
  readonly threats: ThreatsConfig
  readonly publish: PublishConfig
  readonly payments: PaymentConfig
  readonly apps: readonly App[]
  readonly inject: InjectConfig
  readonly classify: { readonly campaigns: boolean }
  readonly fingerprints: { readonly ja4plus: boolean }
  readonly log: LogSettings
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

/** A configuration with its problems: where, what, and the nearest valid name. */
export interface InspectedConfig {
  readonly problems: readonly Problem[]
  /** With defaults in place of invalid values; `null`: the file is not readable as YAML. */
  readonly parsed: ParsedConfig | null
}

/** Throws one ConfigFault with all problems. */
export function parseConfig(input: ConfigInput): ParsedConfig {
  return sound(inspectConfig(input))
}

function sound({ problems, parsed }: InspectedConfig): ParsedConfig {
  if (problems.length > 0 || parsed === null) throw new ConfigFault(problems)
  return parsed
}

function inspectConfig(input: ConfigInput): InspectedConfig {
  const layers = new Layers(input)
  if (!layers.isReadable) return { problems: inOrder(layers.problems), parsed: null }
  const readSecret = input.readSecret ?? secretIn
  const reader = new ConfigReader(layers, readSecret)
  const settings = reader.read()
  checkRole(settings, input.role, (pointer, what) => {
    // A problem at the same place is probably the cause.
    if (!layers.hasProblemNear(pointer)) layers.refuse(pointer, what)
  })
  checkTogether(settings, (...problem) => layers.refuse(...problem))
  const problems = inOrder(layers.problems)
  const isValid = problems.length === 0
  if (isValid) warnTogether(settings, (...warning) => reader.warn(...warning))
  const usable = isValid ? settings : new ConfigReader(layers, readSecret).readUsable()
  const config = startupConfig(usable, input.workersDefault ?? defaultWorkers())
  const effective = reader.effective.map((each) =>
    each.pointer === '/proxy/workers' ? { ...each, value: config.proxy.workers } : each,
  )
  return { problems, parsed: { config, warnings: reader.warnings, effective, hash: hashOf(effective) } }
}

function hashOf(effective: readonly Effective[]): string {
  const values = effective.map(({ pointer, value }) => `${pointer} ${JSON.stringify(value)}`).sort()
  return createHash('sha256').update(values.join('\n')).digest('hex')
}

type LoadOptions = Pick<ConfigInput, 'workersDefault' | 'role' | 'flagSettings'>

/** Like `parseConfig`, with the file named by `--config` or GATEHOUSE_CONFIG. */
export function loadConfig(
  flags: ConfigFlags,
  configFile: string | null,
  env: ConfigInput['env'],
  options: LoadOptions = {},
): ParsedConfig {
  return sound(loadInspected(flags, configFile, env, options))
}

/** Like `loadConfig`, for a report of all problems. Throws a Fault if the file cannot be read. */
export function loadInspected(
  flags: ConfigFlags,
  configFile: string | null,
  env: ConfigInput['env'],
  { workersDefault = defaultWorkers(), ...more }: LoadOptions = {},
): InspectedConfig {
  const named = configFile ?? (env[CONFIG_VARIABLE] || null)
  const file = named === null ? null : { name: named, text: textIn(named) }
  const { problems, parsed } = inspectConfig({ flags, env, file, workersDefault, ...more })
  if (parsed === null) return { problems, parsed }
  const warnings = [...parsed.warnings, ...readableByOthers(parsed, named)]
  return { problems, parsed: { ...parsed, warnings } }
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
  const retention = retentionConfig(others.retention, others)
  return {
    proxy: proxyConfig(proxy, workersDefault),
    manage: manageConfig(manage),
    limits: { freePerDay: others.limits.free_per_day, standardPerHour: others.limits.standard_per_hour },
    data: others.data,
    store: {
      url: others.store.url,
      password: others.store.password,
      auditRetentionMs: retention.auditMs,
      encryptionKeys: encryptionKeys(others.store),
    },
    traffic: others.traffic,
    auth: authConfig(others.auth, others.fetch.allow_private_addresses),
    bus: busConfig(others.bus),
    webhooks: {
      allowPrivateAddresses: others.webhooks.allow_private_addresses,
      caFile: others.webhooks.ca_file,
      retryBaseMs: others.webhooks.retry_base_ms,
      retentionMs: retention.deliveriesMs,
    },
    events: { retentionMs: retention.eventsMs, rowsMax: others.events.rows_max },
    sinks: sinksConfig(others.sinks),
    fetch: { allowPrivateAddresses: others.fetch.allow_private_addresses },
    tracing: others.tracing,
    identity: identityConfig(others.identity),
    signing: signingConfig(others.signing),
    signatures: others.signatures,
    weights: others.weights,
    feeds: others.feeds.map(feedConfig),
    policy: others.policy,
    sightings: {
      file: others.sightings.file,
      bytesMax: others.sightings.max_size,
      spoolBytesMax: others.sightings.spool_bytes,
      retentionMs: retention.requestsMs,
      rowsMax: others.sightings.rows_max,
      sampling: { shares: others.sightings.sample, perSecond: others.sightings.limit_a_second },
      databaseBytesMax: others.sightings.bytes_max,
      waitsForDisk: others.sightings.synchronous_commit === 'on',
    },
    privacy: privacyConfig(others.privacy),
    retention: retention.others,
    rollups: retention.rollups,
    observed: {
      addressesMin: others.observed.addresses_min,
      requestsMin: others.observed.requests_min,
      max: others.observed.max,
    },
    threats: threatsConfig(others.threats),
    publish: publishConfig(others.publish),
    payments: { ...paymentConfig(others.payments), retentionMs: retention.paymentsMs },
    apps: appsConfig(others.apps),
    inject: injectConfig(others.inject),
    classify: others.classify,
    fingerprints: others.fingerprints,
    log: {
      level: others.log.level,
      perSecond: others.log.per_second,
      format: others.log.format,
    },
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

const READABLE_BY_OTHERS = 0o004
