import {
  boolean,
  choice,
  duration,
  hostName,
  integer,
  name,
  optional,
  path,
  upstreamUrl,
  urlPath,
} from './kinds.ts'
import { list, section, setting } from './items.ts'

/** One of `proxy.upstreams`. */
export const UPSTREAM = section('', {
  name: setting(name, 'default', 'What rules and metrics call it.'),
  urls: list(
    upstreamUrl,
    'Where it is; with several, each gets a request in turn. `h2c` and `h2` are HTTP/2 without and with TLS.',
  ),
  host: setting(
    choice('preserve', 'upstream'),
    'preserve',
    "The Host it sees: the client's, or that of its own URL.",
  ),
  connect_timeout: setting(
    duration('1ms', '10m'),
    '5s',
    'For a connection, and for a free one when all are in use.',
  ),
  head_timeout: setting(
    duration('0', '24h'),
    '60s',
    'From when all of a request has left to the head of the answer, and how long its body may wait to be taken. 0: for ever.',
  ),
  idle_timeout: setting(
    duration('0', '24h'),
    0,
    'How long an answer may be silent. 0: for ever, as streams of events need it.',
  ),
  keep_alive: setting(duration('0', '24h'), '60s', 'How long an idle connection is kept. 0: for ever.'),
  connections_max: setting(
    integer(1, 65_535),
    256,
    'Connections to one URL, or with HTTP/2 requests to it at once, for each worker. Requests whose bodies are still coming, as those of gRPC streams, hold three quarters of them at most.',
  ),
  connections_idle_max: setting(integer(0, 65_535), 64, 'Of these, how many are kept idle.'),
  retries: setting(
    integer(0, 10),
    1,
    'How many other URLs a request tries that could not be sent to the first.',
  ),
  health: section('When a URL is unhealthy and left out. The only URL gets every request all the same.', {
    path: setting(
      optional(urlPath),
      null,
      'Is asked with GET at each interval. `null`: only requests tell, and connections to a URL that refused them.',
    ),
    interval: setting(duration('10ms', '1h'), '10s', 'Between two such GETs.'),
    timeout: setting(duration('10ms', '10m'), '2s', 'For the answer to such a GET.'),
    unhealthy_after: setting(integer(1, 1000), 3, 'Failures in a row that leave it out.'),
    healthy_after: setting(integer(1, 1000), 2, 'Answers in a row that take it back.'),
  }),
  tls: section('For `https://` and `h2://`.', {
    verify: setting(boolean, true, "Whether the upstream's certificate is checked.", (isVerified) =>
      isVerified ? null : 'whoever is between here and the upstream can read and change everything',
    ),
    ca_file: setting(optional(path), null, "Trusted instead of the system's; PEM."),
    server_name: setting(optional(hostName), null, 'The name in its certificate, where it is not the host.'),
  }),
})
