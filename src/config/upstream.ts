import { boolean, choice, duration, integer, name, optional, path } from './kinds.ts'
import { hostName, upstreamUrl, urlPath } from './network-kinds.ts'
import { type ValueOf, list, section, setting } from './items.ts'

/** One of `proxy.upstreams`. */
export const UPSTREAM = section('', {
  name: setting(name, 'default', 'The name in rules and metrics.'),
  urls: list(
    upstreamUrl,
    'URLs of the upstream; several receive requests in turn. `h2c` is HTTP/2 without TLS, `h2` is HTTP/2 with TLS.',
  ),
  host: setting(
    choice('preserve', 'upstream'),
    'preserve',
    'The Host header sent to the upstream: the one from the client (`preserve`), or the host of the URL (`upstream`).',
  ),
  connect_timeout: setting(
    duration('1ms', '10m'),
    '5s',
    'Time limit for connecting, and for waiting for a free connection.',
  ),
  head_timeout: setting(
    duration('0', '24h'),
    '60s',
    'Time limit for the response head after the complete request was sent, and for how long the upstream may stop reading a request body. 0: no limit.',
  ),
  idle_timeout: setting(
    duration('0', '24h'),
    0,
    'How long the upstream may pause within a response. 0: no limit, as event streams need it.',
  ),
  keep_alive: setting(duration('0', '24h'), '60s', 'How long an idle connection is kept open. 0: no limit.'),
  connections_max: setting(
    integer(1, 65_535),
    256,
    'Maximum connections to one URL for each worker; with HTTP/2, maximum concurrent requests. Requests whose bodies are still arriving, like gRPC streams, can use at most three quarters of them.',
  ),
  connections_idle_max: setting(integer(0, 65_535), 64, 'Maximum idle connections that are kept open.'),
  retries: setting(
    integer(0, 10),
    1,
    'How many other URLs are tried if a request could not be sent to the first.',
  ),
  health: section('Health checks. An unhealthy URL receives no requests, unless it is the only one.', {
    path: setting(
      optional(urlPath),
      null,
      'The path that is requested with GET at each interval. `null`: passive checks only: results of requests, and test connections to a URL that refused connections.',
    ),
    interval: setting(duration('10ms', '1h'), '10s', 'Time between two checks.'),
    timeout: setting(duration('10ms', '10m'), '2s', 'Time limit for the response to a check.'),
    unhealthy_after: setting(integer(1, 1000), 3, 'Consecutive failures until a URL is unhealthy.'),
    healthy_after: setting(integer(1, 1000), 2, 'Consecutive successes until a URL is healthy again.'),
  }),
  tls: section('TLS to the upstream, for `https://` and `h2://`.', {
    verify: setting(boolean, true, 'Whether to verify the certificate of the upstream.', (isVerified) =>
      isVerified ? null : 'an attacker between this proxy and the upstream can read and change everything',
    ),
    ca_file: setting(
      optional(path),
      null,
      'PEM file with CAs that are trusted instead of those of the system.',
    ),
    server_name: setting(
      optional(hostName),
      null,
      'The name in the certificate, if it is not the host of the URL.',
    ),
  }),
})

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

export function upstreamConfig(upstream: ValueOf<typeof UPSTREAM>): UpstreamConfig {
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
