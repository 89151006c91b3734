import { boolean, choice, duration, integer, optional, path, slow } from './kinds.ts'
import {
  addressRange,
  type HostPort,
  isEverywhere,
  listenAddress,
  webOrigin,
  webUrl,
  wide,
} from './network-kinds.ts'
import { type ValueOf, list, secret, section, setting } from './items.ts'
import type { Secret } from '../shared/secret.ts'
import type { CertificateConfig } from './proxy.ts'

export const MANAGE = section('The management plane.', {
  listen: setting(
    listenAddress,
    '127.0.0.1:9080',
    'Address for health checks, metrics and the API.',
    (place) =>
      isEverywhere(place) ? 'metrics and the management API are reachable on every network interface' : null,
  ),
  public_url: setting(
    optional(webUrl),
    null,
    'The public URL of the management plane, if it differs from `listen`. Links and discovery documents use it.',
    (url) => (url?.startsWith('http:') ? 'keys and tokens are sent unencrypted' : null),
  ),
  admin_key: secret(
    'A bootstrap administrator key, for access before any other exists: any text, sent like an API key. It is stored nowhere else; a new value replaces it.',
    16,
  ),
  tls: section('TLS for the whole management port, including probes: HTTP/1.1 over TLS 1.2 or 1.3.', {
    cert_file: setting(
      optional(path),
      null,
      'The certificate: PEM with its chain, DER, or PKCS#12 with its key. Reloaded when it changes. `null`: no TLS.',
    ),
    key_file: setting(optional(path), null, 'Its private key, if it is in a separate file.'),
    key_passphrase: secret('Passphrase of an encrypted key, or of a PKCS#12 file.', 0),
  }),
  trusted_proxies: list(
    addressRange,
    'Load balancers and proxies in front of this port whose X-Forwarded-For, Forwarded and PROXY headers are trusted. Throttles, the audit log and the access log then use the address of the client behind them. These headers are ignored from other peers.',
    wide('a client in this range can claim any address and evade every throttle'),
  ),
  proxy_protocol: setting(
    choice('off', 'optional', 'required'),
    'off',
    'Whether trusted proxies start a connection to this port with a PROXY header (v1 or v2). With `required`, no other peer can connect: probes and scrapers that connect directly need `optional`.',
  ),
  cors_origins: list(
    webOrigin,
    'Web origins whose pages may call the API with a key or token (CORS). Cookies are never accepted from them.',
    (origin) =>
      origin.startsWith('http:')
        ? 'an attacker on the network can change such a page and use its key or token'
        : null,
  ),
  dashboard: setting(
    boolean,
    true,
    'Whether the dashboard is available at `/dashboard/`. It shows a signed-in user the same data as the API.',
  ),
  request_timeout: setting(
    duration('1s', '1h'),
    '30s',
    'Time limit for a complete request, including its body (408).',
    slow('requests that never end', 300_000),
  ),
  connections_max: setting(
    integer(10, 100_000),
    1000,
    'Maximum open connections. Further connections are closed immediately.',
  ),
  access_log: setting(
    boolean,
    false,
    'Whether to log every request except probes, without query, headers and body. Otherwise requests are logged at level `debug`.',
  ),
  ready_without_store: setting(
    boolean,
    false,
    'Whether `gatehouse manage` is ready while its database is unreachable. `false`: `/health/ready` answers 503, so that requests go to another manager. `gatehouse up` always stays ready, because clients of the app do not need the database.',
  ),
})

export const RATE_LIMITS = section(
  'Rate limits of the API by plan, for each key or client, across all processes (429).',
  {
    free_per_day: setting(integer(1, 1_000_000_000), 1000, 'Requests per day with the plan `free`.'),
    standard_per_hour: setting(
      integer(1, 1_000_000_000),
      10_000,
      'Requests per hour with the plan `standard`.',
    ),
  },
)

export interface ManageConfig {
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

export function manageConfig(manage: ValueOf<typeof MANAGE>): ManageConfig {
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
