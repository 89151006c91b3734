import {
  addressRange,
  boolean,
  choice,
  duration,
  feedKey,
  headerName,
  hostPattern,
  httpsUrl,
  integer,
  isEverywhere,
  issuerUrl,
  listenAddress,
  name,
  optional,
  path,
  share,
  size,
  slow,
  storeUrl,
  syslogRisk,
  syslogUrl,
  text,
  upstreamUrl,
  webOrigin,
  webUrl,
  wide,
} from './kinds.ts'
import { BUS } from './fleet.ts'
import { HEADERS } from './headers.ts'
import { IDENTITY, SIGNING } from './identity.ts'
import { INJECT } from './inject.ts'
import { LIMITS } from './limits.ts'
import { UPSTREAM } from './upstream.ts'
import { list, secret, secrets, section, sections, setting, short } from './items.ts'

const CERTIFICATE = section('', {
  cert_file: setting(path, undefined, 'The certificate: PEM with its chain, DER, or PKCS#12 with its key.'),
  key_file: setting(optional(path), null, 'Its private key, if it is in a separate file.'),
  key_passphrase: secret('Passphrase of an encrypted key, or of a PKCS#12 file.', 0),
})

const PROXY = section('The data plane.', {
  listen: setting(listenAddress, '0.0.0.0:8443', 'Address for client connections with TLS.'),
  plain_listen: setting(
    optional(listenAddress),
    null,
    'Address for client connections without TLS, in addition to `listen`. These connections have no TLS fingerprint.',
    (place) =>
      place !== null && isEverywhere(place)
        ? 'this traffic is not encrypted, and the address is reachable on every network interface'
        : null,
  ),
  workers: setting(
    optional(integer(1, 256)),
    null,
    'Number of worker processes. `null`: one for each core, at most 4; with `gatehouse proxy` 1. Each worker has its own limits, connections and memory.',
  ),
  upstream: short(list(upstreamUrl, ''), 'Short form for one upstream with these URLs.'),
  upstreams: sections(
    UPSTREAM,
    'The applications behind the proxy. The first one receives every request that no rule routes elsewhere.',
  ),
  trusted_proxies: list(
    addressRange,
    'Proxies whose X-Forwarded-For, Forwarded and PROXY headers are trusted. The last 64 entries of X-Forwarded-For are read, and a Forwarded header of at most 4 KiB. `trusted_headers` lists the other headers that are trusted.',
    wide('any client in this range can claim any address'),
  ),
  ...HEADERS,
  proxy_protocol: setting(
    choice('off', 'optional', 'required'),
    'off',
    'Whether trusted proxies start a connection with a PROXY header (v1 or v2).',
  ),
  ja4_hops: section('Proxies in front of this one that terminate TLS and report the JA4 of the client.', {
    addresses: list(
      addressRange,
      'Their addresses.',
      wide('any client in this range can claim any fingerprint'),
    ),
    header: setting(headerName, 'x-ja4-fingerprint', 'The header in which they send the JA4.'),
  }),
  hosts: list(
    hostPattern,
    'Hosts that clients may request, without a port: `shop.example`, `*.shop.example` (exactly one label before it), `192.0.2.1`, `[2001:db8::1]`. Empty: any host.',
  ),
  unknown_host: setting(
    choice('refuse', 'pass'),
    'refuse',
    'What to do with a request for a host that is not in `hosts`: `refuse` it (421), or `pass` it to the upstream and count it. A rule with `host` matches it only if the rule names that host.',
  ),
  tls: section('', {
    cert_file: short(CERTIFICATE.members.cert_file, 'Short form for one certificate.'),
    key_file: short(CERTIFICATE.members.key_file, 'Its private key.'),
    key_passphrase: short(CERTIFICATE.members.key_passphrase, 'Passphrase of its private key.'),
    certificates: sections(
      CERTIFICATE,
      'The certificate is selected by the server name (SNI) that the client sends. If none matches, the first is used. Empty: a development certificate is created in `data.dir`.',
    ),
    min_version: setting(choice('1.2', '1.3'), '1.2', 'The oldest TLS version that is accepted.'),
    client_certificates: setting(
      choice('off', 'request'),
      'off',
      'Whether to request a client certificate. It is optional for the client, and is used only for its JA4X.',
    ),
    client_ca_file: setting(
      optional(path),
      null,
      'PEM file with the CAs that are listed in the certificate request.',
    ),
    ticket_key_file: setting(
      optional(path),
      null,
      'File with the session ticket key that all replicas share: 48 bytes, raw, hexadecimal or base64. `null`: a new key is created at each start.',
    ),
    sni_mismatch: setting(
      choice('allow', 'reject'),
      'allow',
      'Whether the host of a request may differ from the server name (SNI) of its connection. If rejected, the answer is 421.',
    ),
    require_sni: setting(
      optional(boolean),
      null,
      'Whether a connection must send a server name (SNI); if it is missing, the answer is 421. `null`: only with `sni_mismatch: reject`. Clients that connect to an IP address send no server name.',
    ),
  }),
  fast_lane: setting(boolean, true, 'Whether HTTP/1.1 requests in the usual form use a faster parser.'),
  access_log: setting(
    choice('off', 'common', 'json'),
    'off',
    'Writes one line for each request: in the common log format followed by the decision, or as JSON. Query strings are omitted.',
  ),
  access_log_file: setting(
    optional(path),
    null,
    'The access log file. If it is moved away, a new file is opened within a second. `null`: standard output.',
  ),
  access_log_sample: setting(share, 1, 'The share of requests that is logged; 1: all.'),
  limits: LIMITS,
  drain_timeout: setting(
    duration('0', '1h'),
    '30s',
    'At shutdown, how long to wait for requests in progress.',
  ),
  websocket_grace: setting(
    duration('0', '1h'),
    '10s',
    'At shutdown, how long to wait for WebSockets and other upgraded connections.',
  ),
  signature_key: secret(
    'Key that signs the headers sent to the upstream (HMAC-SHA256, `X-Agent-Signature`).',
    16,
  ),
  fail: setting(
    choice('open', 'closed'),
    'open',
    'Whether to serve a TLS client whose ClientHello could not be parsed: `open` serves it, `closed` does not.',
  ),
  ready: setting(
    choice('always', 'upstream'),
    'always',
    'What `/health/ready` answers while an upstream has no healthy target. `always`: the proxy stays ready and answers requests with 502. `upstream`: it is not ready (503), so that a load balancer sends requests elsewhere; set `health.path` for each upstream.',
  ),
})

const MANAGE = section('The management plane.', {
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

const RATE_LIMITS = section(
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

const AUTH = section('Access to the API.', {
  failures_per_minute: setting(
    integer(1, 100_000),
    120,
    'Failed authentications allowed per minute from one address (for IPv6, one /64); more are answered 429. Valid credentials are still accepted.',
  ),
  access_token_ttl_s: setting(
    integer(5, 600),
    600,
    'Lifetime of an access token, in seconds. Clients get a new one without user interaction.',
  ),
  signing_key_rotation: setting(
    duration('1h', '3650d'),
    '90d',
    'How long a key signs access tokens before it is rotated.',
  ),
  registration: setting(
    choice('off', 'token', 'open'),
    'off',
    'Dynamic registration of OAuth clients (RFC 7591): `off`, only with the `registration_token` (`token`), or without any credential (`open`). Such a client can only ask users for their consent.',
    (who) => (who === 'open' ? 'any client can ask your users for consent, under any name' : null),
  ),
  dpop_nonce: setting(
    choice('off', 'required'),
    'off',
    'Whether each DPoP proof must contain a nonce that Gatehouse issued in the last few minutes, so that proofs cannot be made in advance. Clients retry automatically with the nonce from the response.',
  ),
  registration_token: secret('The initial access token for `registration: token`.', 16),
  gnap_bearer_tokens: setting(
    boolean,
    true,
    'Whether GNAP issues bearer tokens to clients that request them. `false`: each request with a token must be signed.',
  ),
  openid: section(
    'An external OpenID provider. Its users can sign in if a matching user exists here. Register the redirect URI `{public_url}/oauth/openid/callback` there.',
    {
      issuer: setting(
        optional(issuerUrl),
        null,
        'The issuer URL, exactly as in its metadata. `null`: users sign in with their local credentials. The operator of the provider can sign in as any user whose email address it reports as verified, without the password and one-time code set here.',
      ),
      name: setting(optional(text), null, 'Its name on the sign-in page. `null`: its host.'),
      client_id: setting(optional(text), null, 'The client ID of this installation at the provider.'),
      client_secret: secret(
        'The client secret of this installation at the provider. Omit it to use PKCE only; PKCE is always used.',
        0,
      ),
      ca_file: setting(
        optional(path),
        null,
        'PEM file with CAs that are trusted instead of those of the system.',
      ),
      allow_private: setting(
        boolean,
        false,
        'Whether it may have an address that is not on the public internet. Plain `http://` also needs `fetch.allow_private_addresses`.',
        (isAllowed) =>
          isAllowed
            ? 'the owner of the DNS names of its hosts can make this server send requests to internal hosts'
            : null,
      ),
    },
  ),
})

const FEED = section('', {
  name: setting(name, undefined, 'The name that its publisher gave it. It is part of the signed content.'),
  url: setting(
    httpsUrl,
    undefined,
    'The URL of the feed, without user and query. Redirects are not followed.',
  ),
  public_keys: list(
    feedKey,
    'Keys of the publisher; one of them must have signed the feed. List two during a key rotation.',
  ),
  refresh: setting(
    duration('1m', '7d'),
    '1h',
    'How often it is fetched, with some jitter. After a failure it is fetched sooner.',
  ),
  timeout: setting(duration('100ms', '10m'), '30s', 'Time limit for a complete fetch.'),
  bytes_max: setting(size('1KiB', '64MiB'), '4MiB', 'Maximum size of the feed. A larger one is rejected.'),
  token: secret('Token sent to its server (`Authorization: Bearer`).', 0),
  ca_file: setting(
    optional(path),
    null,
    'PEM file with CAs that are trusted instead of those of the system.',
  ),
  allow_private: setting(
    boolean,
    false,
    'Whether its server may have an address that is not on the public internet.',
    (isAllowed) =>
      isAllowed
        ? 'the owner of the DNS name of its host can make this server send requests to internal hosts'
        : null,
  ),
})

/** Every setting. Validation, types, documentation and `gatehouse check` are derived from this value. */
export const SETTINGS = section('', {
  proxy: PROXY,
  manage: MANAGE,
  limits: RATE_LIMITS,
  auth: AUTH,
  data: section('', {
    dir: setting(
      path,
      './data',
      'The folder for data that must persist: the development CA and signature feeds.',
    ),
  }),
  store: section('The database of the management plane.', {
    url: setting(
      optional(storeUrl),
      null,
      'The URL of the database. `null`: SQLite, in the file `gatehouse.db` in `data.dir`.',
    ),
    password: secret('Password of the user in a `postgres://` URL.', 0),
    audit_retention: setting(duration('1d', '3650d'), '400d', 'How long entries of the audit log are kept.'),
    encryption_keys: secrets(
      'Keys that encrypt the secrets in the database (webhook secrets, one-time code secrets, OAuth signing keys and tokens). The first key encrypts; all keys decrypt. All processes that share a database need the same keys. A file has one key per line and is reloaded when it changes. `gatehouse rekey` encrypts everything again with the first key. If not set, a key is created in the file `store.key` in `data.dir`, which may also have several lines.',
      16,
    ),
    encryption_key: secret('Short form for `encryption_keys` with one key.', 16),
  }),
  bus: BUS,
  webhooks: section('Webhooks, which send events to other systems.', {
    allow_private_addresses: setting(
      boolean,
      false,
      'Whether webhooks and A2A push notifications may use addresses that are not on the public internet, and plain `http://`.',
      (isAllowed) =>
        isAllowed
          ? 'a user who can register a webhook can make this server send requests to internal hosts, unencrypted'
          : null,
    ),
    ca_file: setting(
      optional(path),
      null,
      'PEM file with CAs that are trusted for webhook endpoints, in addition to the public CAs.',
    ),
    retry_base_ms: setting(
      integer(1, 3_600_000),
      10_000,
      'Milliseconds from a failed delivery to the next attempt. Each further attempt waits three times as long. With the default, ten attempts take about 27 hours.',
    ),
    retention: setting(
      duration('1h', '365d'),
      '14d',
      'How long finished deliveries are kept, with the responses they received. When an event is deleted, its deliveries are deleted too.',
    ),
  }),
  events: section('Events, for webhooks, event streams and sinks.', {
    retention: setting(
      duration('1h', '3650d'),
      '30d',
      'How long events are kept. A reader that was disconnected for a shorter time can resume without loss.',
    ),
    rows_max: setting(
      integer(1_000, 100_000_000),
      1_000_000,
      'Maximum number of events kept. If there are more, the oldest are deleted.',
    ),
  }),
  sinks: section('Where events are sent for a SIEM. They include the addresses of clients.', {
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
    syslog_ca_file: setting(
      optional(path),
      null,
      'For `tls://`: PEM file with CAs that are trusted instead of those of the system. The certificate is always verified.',
    ),
  }),
  fetch: section('Fetching of documents that others publish: agents, their keys, and OAuth clients.', {
    allow_private_addresses: setting(
      boolean,
      false,
      'For tests: whether they may be at addresses that are not on the public internet, and at plain `http://`. Test keys published in specifications are then accepted too.',
      (isAllowed) =>
        isAllowed
          ? 'any client can make this server send requests to internal hosts, and published test keys are accepted as proof of identity'
          : null,
    ),
  }),
  identity: IDENTITY,
  signing: SIGNING,
  signatures: list(
    path,
    'Signature files, and folders of them, in addition to the built-in signatures. Your entry replaces a built-in or feed entry with the same id; long lists (`*.jsonl`) also add to the built-in ones. Reloaded when they change.',
  ),
  weights: section('', {
    file: setting(
      optional(path),
      null,
      'The weight of each kind of evidence, as written by `gatehouse evaluate --fit FILE`. Reloaded when it changes. `null`: the built-in weights.',
    ),
  }),
  feeds: sections(
    FEED,
    'Signed signature feeds from other publishers; see signatures/README.md. A later feed overrides an earlier one, and every feed overrides the built-in signatures.',
  ),
  policy: section('', {
    file: setting(
      optional(path),
      null,
      'The policy file with the rules. `null`: every request is tagged, none is blocked.',
    ),
  }),
  sightings: section(
    'Records of requests, for `gatehouse check --replay`. They contain client addresses, but no secrets.',
    {
      file: setting(
        optional(path),
        null,
        'A file to which every request is appended as one line of JSON: the client, its verdict and the action. If the disk is too slow, records are dropped and counted; requests never wait for it. `null`: none.',
      ),
      max_size: setting(
        size('64KiB', '100GiB'),
        '256MiB',
        'Maximum size of the file. When it is full, it is renamed to FILE.1, which replaces the previous FILE.1, and a new file is started.',
      ),
      spool_bytes: setting(
        optional(size('1MiB', '100GiB')),
        null,
        'For a proxy with `bus.url`: how much data is buffered in `data.dir` while NATS is unavailable. More is dropped and counted. `null`: buffered in memory only, 8,192 requests per worker.',
      ),
      retention: setting(
        duration('1m', '365d'),
        '24h',
        'How long the database keeps individual requests, with the address of the client. Counts are kept longer.',
      ),
      rows_max: setting(
        integer(1_000, 100_000_000),
        1_000_000,
        'Maximum number of individual requests kept. If there are more, the oldest are deleted. A million need about a gigabyte.',
      ),
    },
  ),
  rollups: section('Counts for statistics. Each kind counts every request, and is kept for its own time.', {
    minutes: setting(duration('25h', '31d'), '48h', 'How long counts per minute are kept.'),
    hours: setting(duration('31d', '1000d'), '90d', 'How long counts per hour are kept.'),
    days: setting(duration('31d', '3650d'), '1825d', 'How long counts per day are kept.'),
  }),
  observed: section(
    'Fingerprints that no signature has. Those seen often become signatures without a known owner.',
    {
      addresses_min: setting(
        integer(1, 1_000),
        5,
        'Minimum number of addresses (for IPv6, of /64 networks).',
      ),
      requests_min: setting(integer(1, 1_000_000), 5, 'Minimum number of requests.'),
      max: setting(
        integer(0, 1_000_000),
        10_000,
        'Maximum number of such signatures. The least seen are removed first.',
      ),
    },
  ),
  threats: section(
    'Which requests are reported as threats (`threat_detected` events); config/guide/events.md describes each kind.',
    {
      spoofed_browser: setting(
        boolean,
        true,
        'A client claims to be a browser, but its fingerprints or headers contradict that.',
      ),
      foreign_address: setting(
        boolean,
        true,
        'A client claims to be an agent, but its address is not in the published ranges or host names of the vendor.',
      ),
      proof_failed: setting(
        boolean,
        true,
        'The signature of a request is invalid, or was made by another agent than the one the client claims to be.',
      ),
      proof_contradicted: setting(
        boolean,
        true,
        'A valid signature proves the agent, but the TLS fingerprint or the address does not belong to that agent.',
      ),
      forged_headers: setting(boolean, true, 'A client sends headers that only the proxy may set.'),
      blocked: setting(boolean, true, 'A rule blocks a request, or delays it before it is refused.'),
      rate_limited: setting(boolean, true, 'A request exceeds the limit of a rule.'),
      rate_anomaly: setting(boolean, true, 'An agent sends far more requests than usual.'),
      rate_anomaly_factor: setting(
        integer(2, 10_000),
        10,
        'For `rate_anomaly`: how many times the usual rate counts as an anomaly.',
      ),
      rate_anomaly_requests: setting(
        integer(1, 100_000_000),
        300,
        'For `rate_anomaly`: minimum number of requests in five minutes.',
      ),
      robots_violation: setting(
        boolean,
        true,
        'A crawler requests a path that robots.txt disallows. Needs `robots_file` or `robots_upstream`.',
      ),
      robots_file: setting(
        optional(path),
        null,
        'A copy of the robots.txt of the sites behind the proxy. Read again every ten seconds.',
      ),
      robots_upstream: setting(
        boolean,
        false,
        'Whether to fetch robots.txt from the first upstream if `robots_file` is not set: once an hour for each host that crawlers request.',
      ),
      window: setting(
        duration('1m', '1h'),
        '5m',
        'How long a repeated threat with the same fingerprint and address is only counted after it was reported.',
      ),
      events_per_minute: setting(
        integer(1, 1_000),
        30,
        'Maximum individual events per minute, for each kind of threat and for new signatures. Further ones are summarized in one event a minute.',
      ),
    },
  ),
  submissions: section('Fingerprints that API callers submit.', {
    auto_accept: setting(
      boolean,
      false,
      'Whether submissions without any objection are accepted immediately. Then every caller who may submit can decide which clients are classified as an agent. `false`: an administrator reviews each one.',
    ),
  }),
  inject: INJECT,
  fingerprints: section('', {
    ja4plus: setting(
      boolean,
      true,
      "Whether to compute JA4S, JA4H and JA4X. They are under FoxIO's own license; see NOTICE.",
    ),
  }),
  tracing: section(
    'OpenTelemetry traces of requests: one span for each request, and one for the upstream, which receives `traceparent` (W3C Trace Context). An incoming `traceparent` becomes the parent only if it comes from `proxy.trusted_proxies`; otherwise it becomes a link.',
    {
      endpoint: setting(
        optional(webUrl),
        null,
        'Where spans are sent (OTLP over HTTP, as JSON), like `http://127.0.0.1:4318/v1/traces`. `null`: no tracing; trace headers are forwarded unchanged.',
      ),
      token: secret('Token sent with the spans (`Authorization: Bearer`).', 0),
      sample: setting(
        share,
        0.01,
        'The share of requests that is recorded, unless a trusted proxy has decided it; 1: all.',
      ),
      service: setting(text, 'gatehouse', 'The name of the service in spans (`service.name`).'),
    },
  ),
  log: section('', {
    level: setting(
      choice('debug', 'info', 'warn', 'error', 'silent'),
      'info',
      'The minimum level that is logged.',
    ),
    format: setting(
      choice('auto', 'text', 'json'),
      'auto',
      'The format of log lines: `text` for people, `json` for programs. `auto`: text on a terminal, otherwise JSON.',
    ),
    per_second: setting(
      optional(integer(1, 1_000_000)),
      null,
      'Maximum lines per second with the same message, for each process. The next line reports how many were omitted (`left_out`). `null`: no limit.',
    ),
  }),
})
