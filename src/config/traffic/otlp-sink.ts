import { type Maybe, secret, section, setting, type ValueOf } from '../items.ts'
import type { Say } from '../inject.ts'
import { optional, path, text } from '../kinds.ts'
import { headerName, webUrl } from '../network-kinds.ts'
import type { Secret } from '../../shared/secret.ts'

/** Requests as log records. */
export const OTLP_LOGS = section(
  'Individual requests as log records of OpenTelemetry (OTLP over HTTP, as JSON); config/guide/exports.md. If several processes share a database, one at a time sends.',
  {
    endpoint: setting(
      optional(webUrl),
      null,
      'Where log records are sent, like `https://otel.example:4318/v1/logs`. `null`: none.',
      (url) =>
        url?.startsWith('http:')
          ? 'addresses of clients are sent over plain http://, so an attacker on the network can read them'
          : null,
    ),
    token: secret(
      'Token sent with the log records. If it is given as a file, the file is read for each message.',
      0,
    ),
    token_header: setting(
      headerName,
      'authorization',
      'The header with the token. In `authorization`, `Bearer` is before it; in any other, like `x-api-key`, it is alone.',
    ),
    ca_file: setting(
      optional(path),
      null,
      'PEM file with CAs that are trusted instead of those of the system.',
    ),
    service: setting(text, 'gatehouse', 'The name of the service in log records (`service.name`).'),
  },
)

type OtlpLogs = ValueOf<typeof OTLP_LOGS>

export interface OtlpLogsConfig {
  readonly endpoint: string
  readonly token: Secret<string> | null
  readonly tokenHeader: string
  readonly caFile: string | null
  readonly service: string
}

export function otlpLogsConfig(otlp: OtlpLogs): OtlpLogsConfig | null {
  const { endpoint, token, token_header: tokenHeader, ca_file: caFile, service } = otlp
  return endpoint === null ? null : { endpoint, token, tokenHeader, caFile, service }
}

/** Settings that are invalid by themselves are undefined here. */
export function checkOtlpLogs({ token }: Pick<Maybe<OtlpLogs>, 'token'>, refuse: Say): void {
  if (token && /[^\x20-\x7e]/.test(token.reveal()))
    refuse('/sinks/otlp_logs/token', 'contains a character that is not allowed in a header')
}

export function warnOtlpLogs({ endpoint, token, ca_file }: OtlpLogs, warn: Say): void {
  if (endpoint !== null) return
  if (token !== null) warn('/sinks/otlp_logs/token', 'has no effect without endpoint')
  if (ca_file !== null) warn('/sinks/otlp_logs/ca_file', 'has no effect without endpoint')
}
