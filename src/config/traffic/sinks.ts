import { boolean, choice, duration, optional, path } from '../kinds.ts'
import { awsRegion, bucketUrl, syslogRisk, syslogUrl, webUrl } from '../network-kinds.ts'
import { type Maybe, type ValueOf, list, secret, section, setting } from '../items.ts'
import { appInFilter } from '../apps.ts'
import type { Say } from '../inject.ts'
import { checkOtlpLogs, OTLP_LOGS, type OtlpLogsConfig, otlpLogsConfig, warnOtlpLogs } from './otlp-sink.ts'
import type { Secret } from '../../shared/secret.ts'
import {
  type CheckedNatsSink,
  checkNatsSink,
  NATS,
  type NatsSinkConfig,
  natsSinkConfig,
  warnNatsSink,
} from './nats-sink.ts'

const PARQUET = section(
  'Individual requests as Parquet files, in a folder for each app, day and hour: `app=shop/date=2026-11-28/hour=13`; config/guide/exports.md. Set `folder` or `bucket`.',
  {
    folder: setting(optional(path), null, 'The folder for the files. `null`: none.'),
    bucket: setting(
      optional(bucketUrl),
      null,
      'The bucket for the files, and the beginning of their names: on S3, or on a store with its protocol. `null`: none.',
    ),
    region: setting(
      awsRegion,
      'us-east-1',
      'The region of the bucket. Stores other than S3 often accept any.',
    ),
    endpoint: setting(
      optional(webUrl),
      null,
      'The URL of a store other than S3, like `https://minio.example:9000`. `null`: S3 of this region.',
      (url) =>
        url?.startsWith('http:')
          ? 'addresses of clients are sent over plain http://, so an attacker on the network can read them'
          : null,
    ),
    path_style: setting(
      optional(boolean),
      null,
      'Whether the bucket is in the path of a URL instead of its host. `null`: only with `endpoint`, or if the name of the bucket has a dot.',
    ),
    access_key: secret('The id of the access key for the bucket.', 1),
    secret_key: secret(
      'The secret access key. If it is given as a file, the file is read for each upload.',
      1,
    ),
    session_token: secret('The session token of temporary credentials.', 1),
    ca_file: setting(
      optional(path),
      null,
      'For `endpoint`: PEM file with CAs that are trusted instead of those of the system.',
    ),
    every: setting(
      duration('10s', '1h'),
      '15m',
      'How long requests wait for others to share a file with. After 50,000 requests they do not wait longer.',
    ),
  },
)

export const SINKS = section(
  'Where events are sent for a SIEM, and individual requests for analysis. Both include the addresses of clients.',
  {
    file: setting(
      optional(path),
      null,
      'A file to which each event is appended as one line. If it is moved away, a new file is created. Gatehouse never rotates it. `null`: none.',
    ),
    file_format: setting(
      choice('json', 'cef'),
      'json',
      'The format of the file: JSON as in the API, or the Common Event Format (CEF).',
    ),
    syslog: setting(
      optional(syslogUrl),
      null,
      'The syslog server that receives each event (RFC 5424). If several processes share a database, one at a time sends. `null`: none.',
      syslogRisk,
    ),
    syslog_format: setting(choice('cef', 'json'), 'cef', 'The format of syslog messages.'),
    parquet: PARQUET,
    nats: NATS,
    otlp_logs: OTLP_LOGS,
    apps: list(
      appInFilter,
      'Only events about these apps, and requests to them, go to the sinks. `default`: requests that matched no app, and events about them. Events that are not about one app do not pass. Empty: all.',
    ),
    syslog_ca_file: setting(
      optional(path),
      null,
      'For `tls://`: PEM file with CAs that are trusted instead of those of the system. The certificate is always verified.',
    ),
  },
)

type Sinks = ValueOf<typeof SINKS>

export interface SinksConfig {
  readonly file: string | null
  readonly fileFormat: 'json' | 'cef'
  readonly syslog: string | null
  readonly syslogFormat: 'json' | 'cef'
  readonly syslogCaFile: string | null
  /** `null`: requests are not written to Parquet files. */
  readonly parquet: ParquetConfig | null
  /** `null`: requests are not sent to NATS. */
  readonly nats: NatsSinkConfig | null
  /** `null`: requests are not sent as log records. */
  readonly otlpLogs: OtlpLogsConfig | null
  /** Empty: all. */
  readonly apps: readonly string[]
}

export interface ParquetConfig {
  readonly everyMs: number
  readonly place: { readonly folder: string } | { readonly bucket: BucketConfig }
}

export interface BucketConfig {
  readonly name: string
  /** Empty, or ends with `/`. */
  readonly prefix: string
  readonly region: string
  readonly endpoint: string | null
  readonly isPathStyle: boolean
  readonly accessKeyId: Secret<string>
  readonly secretAccessKey: Secret<string>
  readonly sessionToken: Secret<string> | null
  readonly caFile: string | null
}

interface Checked {
  readonly parquet: Maybe<Sinks['parquet']>
  readonly nats: CheckedNatsSink
  readonly otlp_logs: Pick<Maybe<Sinks['otlp_logs']>, 'token'>
}

export function sinksConfig(sinks: Sinks): SinksConfig {
  return {
    file: sinks.file,
    fileFormat: sinks.file_format,
    syslog: sinks.syslog,
    syslogFormat: sinks.syslog_format,
    syslogCaFile: sinks.syslog_ca_file,
    parquet: parquetConfig(sinks.parquet),
    nats: natsSinkConfig(sinks.nats),
    otlpLogs: otlpLogsConfig(sinks.otlp_logs),
    apps: sinks.apps,
  }
}

function parquetConfig(parquet: Sinks['parquet']): ParquetConfig | null {
  const { folder, bucket, every: everyMs } = parquet
  if (folder !== null) return { everyMs, place: { folder } }
  const { access_key: accessKeyId, secret_key: secretAccessKey } = parquet
  if (bucket === null || accessKeyId === null || secretAccessKey === null) return null
  const [name = '', ...rest] = bucket
    .slice('s3://'.length)
    .replace(/(?<!\/)\/+$/, '')
    .split('/')
  return {
    everyMs,
    place: {
      bucket: {
        name,
        prefix: rest.map((part) => `${part}/`).join(''),
        region: parquet.region,
        endpoint: parquet.endpoint,
        isPathStyle: parquet.path_style ?? (parquet.endpoint !== null || name.includes('.')),
        ...{ accessKeyId, secretAccessKey, sessionToken: parquet.session_token },
        caFile: parquet.ca_file,
      },
    },
  }
}

/** Settings that are invalid by themselves are undefined here. */
export function checkSinks({ parquet, nats, otlp_logs }: Checked, refuse: Say): void {
  checkNatsSink(nats, refuse)
  checkOtlpLogs(otlp_logs, refuse)
  const { folder, bucket, access_key, secret_key } = parquet
  if (folder && bucket)
    refuse('/sinks/parquet/bucket', 'and sinks.parquet.folder are both set; remove one of them')
  if (!bucket) return
  if (access_key === null) refuse('/sinks/parquet/access_key', 'is missing; set the access key of the bucket')
  if (secret_key === null) refuse('/sinks/parquet/secret_key', 'is missing; set the secret of the access key')
}

export function warnSinks(sinks: Sinks, warn: Say): void {
  const { file, syslog, parquet, nats } = sinks
  if (sinks.syslog_ca_file !== null && !syslog?.startsWith('tls:'))
    warn('/sinks/syslog_ca_file', 'has no effect without syslog: tls://…')
  warnNatsSink(nats, warn)
  warnOtlpLogs(sinks.otlp_logs, warn)
  const ofOne = [file, syslog, parquet.folder, parquet.bucket, sinks.otlp_logs.endpoint]
  const isAny = nats.url.length > 0 || ofOne.some((each) => each !== null)
  if (sinks.apps.length > 0 && !isAny) warn('/sinks/apps', 'has no effect without a sink')
  if (parquet.bucket !== null) return
  for (const name of ['endpoint', 'access_key', 'secret_key', 'session_token', 'ca_file'] as const)
    if (parquet[name] !== null) warn(`/sinks/parquet/${name}`, 'has no effect without bucket')
}
