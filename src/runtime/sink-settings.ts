import type { StartupConfig } from '../config/config.ts'
import type { NatsLoginConfig } from '../config/fleet.ts'
import type { NatsSinkConfig } from '../config/traffic/nats-sink.ts'
import type { OtlpLogsConfig } from '../config/traffic/otlp-sink.ts'
import type { BucketConfig } from '../config/traffic/sinks.ts'
import type { SinkSettings } from '../manage/events/sinks/sinks.ts'
import type { NatsSinkSettings } from '../manage/export/nats-sink.ts'
import type { OtlpLogSettings } from '../manage/export/otlp-log-sink.ts'
import type { ParquetSettings, RequestSinkSettings } from '../manage/export/request-sinks.ts'
import type { S3Settings } from '../manage/export/s3-place.ts'
import type { BusCredentialSettings } from '../plane/bus-credentials.ts'
import { readBoundedText } from '../shared/bounded-file.ts'
import { type Secret, secretText } from '../shared/secret.ts'
import { pemIn } from './pem-file.ts'

export async function sinkSettings(sinks: StartupConfig['sinks']): Promise<SinkSettings> {
  const { file, fileFormat, syslog, syslogFormat, syslogCaFile, apps } = sinks
  return {
    file: file === null ? null : { file, format: fileFormat },
    syslog: syslog === null ? null : { url: syslog, format: syslogFormat, ca: await pemIn(syslogCaFile) },
    apps,
  }
}

export async function requestSinkSettings({
  sinks,
  sightings,
  retention,
}: StartupConfig): Promise<RequestSinkSettings> {
  return {
    parquet: await parquetSettings(sinks, sightings.rowsMax, retention.parquetMs),
    nats: sinks.nats === null ? null : natsSinkSettings(sinks.nats),
    otlp: sinks.otlpLogs === null ? null : await otlpLogSettings(sinks.otlpLogs),
    apps: sinks.apps,
  }
}

export function natsLogin(config: NatsLoginConfig): BusCredentialSettings {
  const { credentialsFile, user, userFile, password, token, caFile, certificateFile, keyFile } = config
  return {
    credentialsFile,
    user,
    password: password?.reveal() ?? null,
    token: token?.reveal() ?? null,
    secretFiles: { user: userFile, password: password?.file ?? null, token: token?.file ?? null },
    tls: { caFile, certificateFile, keyFile },
  }
}

async function otlpLogSettings({
  token,
  tokenHeader,
  caFile,
  ...others
}: OtlpLogsConfig): Promise<OtlpLogSettings> {
  const headers = async (): Promise<Record<string, string>> => {
    if (token === null) return {}
    const value = await current(token)
    return { [tokenHeader]: tokenHeader.toLowerCase() === 'authorization' ? `Bearer ${value}` : value }
  }
  return { ...others, headers, ca: await pemIn(caFile) }
}

function natsSinkSettings(nats: NatsSinkConfig): NatsSinkSettings {
  const { urls, subject, isStream } = nats
  return { urls, subject, isStream, login: natsLogin(nats) }
}

async function parquetSettings(
  { parquet }: StartupConfig['sinks'],
  sightingsMax: number,
  keptMs: number | null,
): Promise<ParquetSettings | null> {
  if (parquet === null) return null
  const { everyMs, place } = parquet
  // Before the database deletes them.
  const rowsMax = Math.min(PIECE_ROWS_MAX, Math.ceil(sightingsMax / PIECES_KEPT_MIN))
  return {
    ...{ everyMs, rowsMax, keptMs },
    place: 'folder' in place ? place : { s3: await bucketSettings(place.bucket) },
  }
}

async function bucketSettings(bucket: BucketConfig): Promise<Omit<S3Settings, 'draftFolder'>> {
  const { name, accessKeyId, secretAccessKey, sessionToken, caFile, ...others } = bucket
  return {
    bucket: name,
    ...others,
    ca: await pemIn(caFile),
    credentials: async () => ({
      accessKeyId: await current(accessKeyId),
      secretAccessKey: await current(secretAccessKey),
      sessionToken: sessionToken === null ? null : await current(sessionToken),
    }),
  }
}

/** A secret whose file may have changed. */
async function current(secret: Secret<string>): Promise<string> {
  return secret.file === null ? secret.reveal() : secretText(await readBoundedText(secret.file))
}

/** The memory for a piece grows with it: some bytes for each request. */
const PIECE_ROWS_MAX = 50_000
const PIECES_KEPT_MIN = 10
