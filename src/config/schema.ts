import {
  above,
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
import { UPSTREAM } from './upstream.ts'
import { list, secret, secrets, section, sections, setting, short } from './items.ts'

const CERTIFICATE = section('', {
  cert_file: setting(path, undefined, 'PEM with its chain, DER, or PKCS#12 with its key.'),
  key_file: setting(optional(path), null, 'Its private key, where that is in a file of its own.'),
  key_passphrase: secret('Of an encrypted key, or of PKCS#12.', 0),
})

const LIMITS = section(
  'For what clients send, for each worker. Beyond a limit, a client is refused and counted.',
  {
    hello_bytes: setting(
      size('4KiB', '1MiB'),
      '64KiB',
      'Of a ClientHello, with all that comes in front of it.',
      above(262_144, 'each new connection may hold so much memory before it is known'),
    ),
    hello_timeout: setting(
      duration('10ms', '10m'),
      '5s',
      'For a whole ClientHello.',
      slow('silent connections'),
    ),
    handshake_timeout: setting(
      duration('10ms', '10m'),
      '10s',
      'For the rest of the TLS handshake.',
      slow('half-open handshakes'),
    ),
    request_line_bytes: setting(size('256B', '1MiB'), '16KiB', 'Of the target of a request (414).'),
    header_bytes: setting(
      size('1KiB', '1MiB'),
      '64KiB',
      "Of a request's head (431).",
      above(262_144, 'each request may hold so much memory before it is known'),
    ),
    header_count: setting(
      integer(10, 10_000),
      200,
      "Of a request's headers (431).",
      above(1000, 'each header costs time in every rule that asks for one'),
    ),
    header_timeout: setting(
      duration('10ms', '10m'),
      '10s',
      "For a request's head, and for the opening of HTTP/2.",
      slow('connections that send one byte at a time'),
    ),
    body_idle_timeout: setting(
      duration('10ms', '24h'),
      '60s',
      "How long a request's body may be silent.",
      slow('requests that never end', 600_000),
    ),
    answer_unread_timeout: setting(
      duration('10ms', '24h'),
      '2m',
      'How long a client may leave an answer, or the rest of one, unread.',
      slow('answers that nobody reads', 600_000),
    ),
    keep_alive_timeout: setting(
      duration('10ms', '24h'),
      '75s',
      'How long a connection may be idle between requests.',
      slow('idle connections', 600_000),
    ),
    requests_per_connection: setting(
      integer(1, 1_000_000_000),
      10_000,
      'Then it is closed, so that load spreads anew.',
    ),
    connections_max: setting(
      integer(1, 1_000_000),
      10_000,
      'Open at once.',
      above(100_000, 'each takes some 20 to 50 KB and a file descriptor'),
    ),
    connections_per_address: setting(integer(1, 1_000_000), 1000, 'Open at once from one address.'),
    streams_per_connection: setting(
      integer(1, 10_000),
      128,
      'Requests at once on one HTTP/2 connection.',
      above(1000, 'one connection may then keep so many requests busy'),
    ),
    h2_reset_burst: setting(
      integer(1, 100_000),
      200,
      'Requests of HTTP/2 that a client may take back at once. As many frames of a connection may be invalid.',
      above(1000, 'a client that resets at once costs more than it pays (CVE-2023-44487)'),
    ),
    h2_reset_rate: setting(
      integer(1, 100_000),
      33,
      'The same, per second in the long run.',
      above(1000, 'a client that resets at once costs more than it pays (CVE-2023-44487)'),
    ),
    h2_session_memory: setting(
      size('1MiB', '1GiB'),
      '16MiB',
      'Memory for one HTTP/2 connection.',
      above(134_217_728, 'a few connections may then take all memory'),
    ),
    upgrade_idle_timeout: setting(
      duration('0', '24d'),
      0,
      'How long a WebSocket may be silent. 0: for ever.',
    ),
  },
)

const PROXY = section('The data plane.', {
  listen: setting(listenAddress, '0.0.0.0:8443', 'Where clients connect with TLS.'),
  plain_listen: setting(
    optional(listenAddress),
    null,
    'Where clients may connect without TLS as well. There is no fingerprint of a hello then.',
    (place) =>
      place !== null && isEverywhere(place)
        ? 'all that is sent there can be read and changed on its way, from wherever this machine is reached'
        : null,
  ),
  workers: setting(
    optional(integer(1, 256)),
    null,
    'Processes that serve. `null`: one for each core, at most 4 (each has limits, connections and memory of its own); with `gatehouse proxy` 1.',
  ),
  upstream: short(list(upstreamUrl, ''), 'Short for one upstream with these URLs.'),
  upstreams: sections(UPSTREAM, 'What is behind the gate. The first gets what no rule routes.'),
  trusted_proxies: list(
    addressRange,
    'Whose X-Forwarded-For, Forwarded and PROXY header are believed: of the first the last 64 entries, of Forwarded one of 4 KiB at most. `trusted_headers` says which others.',
    wide('anybody there can claim to be any address'),
  ),
  ...HEADERS,
  proxy_protocol: setting(
    choice('off', 'optional', 'required'),
    'off',
    'Whether trusted proxies begin a connection with a PROXY header, v1 or v2.',
  ),
  ja4_hops: section('Proxies in front of this one that saw the hello of the client itself.', {
    addresses: list(addressRange, 'Who they are.', wide('anybody there can claim any fingerprint')),
    header: setting(headerName, 'x-ja4-fingerprint', 'Where they say the JA4.'),
  }),
  hosts: list(
    hostPattern,
    'Hosts that requests may be for, without a port: `shop.example`, `*.shop.example` (one label in front), `192.0.2.1`, `[2001:db8::1]`. None: any host.',
  ),
  unknown_host: setting(
    choice('refuse', 'pass'),
    'refuse',
    'What happens to a request for a host that `hosts` does not name: refused (421), or passed on and counted. Rules with `host` do not hold for it unless they name it.',
  ),
  tls: section('', {
    cert_file: short(CERTIFICATE.members.cert_file, 'Short for one certificate.'),
    key_file: short(CERTIFICATE.members.key_file, 'Its key.'),
    key_passphrase: short(CERTIFICATE.members.key_passphrase, "Its key's passphrase."),
    certificates: sections(
      CERTIFICATE,
      'One is chosen by the name the client asks for; the first where none fits. None at all: a development certificate is made in `data.dir`.',
    ),
    min_version: setting(choice('1.2', '1.3'), '1.2', 'The oldest TLS that is spoken.'),
    client_certificates: setting(
      choice('off', 'request'),
      'off',
      'Whether clients are asked for one. They may have none; it is for its JA4X.',
    ),
    client_ca_file: setting(optional(path), null, 'The CAs that are named to clients; PEM.'),
    ticket_key_file: setting(
      optional(path),
      null,
      'Key of session tickets that replicas share: 48 bytes, as they are, in hexadecimal or base64. `null`: made at each start.',
    ),
    sni_mismatch: setting(
      choice('allow', 'reject'),
      'allow',
      'Whether a request may be for another host than its connection asked for (421).',
    ),
    require_sni: setting(
      optional(boolean),
      null,
      'Whether a connection has to name a host in its hello (421). `null`: with `sni_mismatch: reject`. Clients that connect to an address name none.',
    ),
  }),
  fast_lane: setting(
    boolean,
    true,
    'Whether requests of HTTP/1.1 that are written as nearly all are do without the parser that takes any.',
  ),
  access_log: setting(
    choice('off', 'common', 'json'),
    'off',
    'Writes a line for each request: in the common log format with the decision behind it, or as JSON. Queries are left out.',
  ),
  access_log_file: setting(
    optional(path),
    null,
    'Where these lines go. A file that is moved away is opened anew within a second. `null`: standard output.',
  ),
  access_log_sample: setting(share, 1, 'The share of requests that are written: 1 is all.'),
  limits: LIMITS,
  drain_timeout: setting(duration('0', '1h'), '30s', 'At the end, for what is under way.'),
  websocket_grace: setting(duration('0', '1h'), '10s', 'At the end, for WebSockets and other upgrades.'),
  signature_key: secret('Signs what the app is told (HMAC-SHA256, `X-Agent-Signature`).', 16),
  fail: setting(
    choice('open', 'closed'),
    'open',
    'Whether a client with TLS whose hello could not be read is served.',
  ),
  ready: setting(
    choice('always', 'upstream'),
    'always',
    'What `/health/ready` says while an upstream has no healthy target. `always`: the proxy stays ready and answers 502. `upstream`: it is not ready (503), so that a load balancer sends requests elsewhere. Give each upstream a `health.path` then.',
  ),
})

const MANAGE = section('The management plane.', {
  listen: setting(
    listenAddress,
    '127.0.0.1:9080',
    'Where it listens: health, metrics, and its API.',
    (place) =>
      isEverywhere(place) ? 'metrics and management can be reached from wherever this machine is' : null,
  ),
  public_url: setting(
    optional(webUrl),
    null,
    'How others reach it, where that differs from where it listens: what every link and discovery document says.',
    (url) => (url?.startsWith('http:') ? 'keys and tokens would travel unencrypted' : null),
  ),
  admin_key: secret(
    'A key of an administrator, the way in before there is another: any text, sent like an API key. It is kept nowhere else; another one takes its place.',
    16,
  ),
  tls: section('For all of that port, probes too. HTTP/1.1 over TLS 1.2 or 1.3.', {
    cert_file: setting(
      optional(path),
      null,
      'PEM with its chain, DER, or PKCS#12 with its key. Loaded anew when it changes. `null`: without TLS.',
    ),
    key_file: setting(optional(path), null, 'Its private key, where that is in a file of its own.'),
    key_passphrase: secret('Of an encrypted key, or of PKCS#12.', 0),
  }),
  trusted_proxies: list(
    addressRange,
    'The load balancers and proxies in front of this port, whose X-Forwarded-For, Forwarded and PROXY header are believed. Throttles, the audit log and the access log then use the address of the client behind them. Headers from other peers are ignored.',
    wide('a client there can claim any address and evade every throttle'),
  ),
  proxy_protocol: setting(
    choice('off', 'optional', 'required'),
    'off',
    'Whether trusted proxies begin a connection to this port with a PROXY header, v1 or v2. With `required` no other peer may connect: probes and scrapers that connect directly need `optional`.',
  ),
  cors_origins: list(
    webOrigin,
    'Pages of these origins may use the API, with a key or token that they hold. Cookies are never taken from them.',
    (origin) =>
      origin.startsWith('http:') ? 'whoever is between it and its reader can have it do anything' : null,
  ),
  dashboard: setting(
    boolean,
    true,
    'Whether there is a dashboard, at `/dashboard/`: it shows what the API tells whoever has signed in.',
  ),
  request_timeout: setting(
    duration('1s', '1h'),
    '30s',
    'For all of a request, to the last byte of its body (408).',
    slow('requests that never end', 300_000),
  ),
  connections_max: setting(integer(10, 100_000), 1000, 'Open at once; more are closed at once.'),
  access_log: setting(
    boolean,
    false,
    'Whether every request but probes is logged, without query, headers and body. Else they are at the level debug.',
  ),
  ready_without_store: setting(
    boolean,
    false,
    'Whether `gatehouse manage` is ready while its database is unreachable. `false`: `/health/ready` is 503 then, so that requests go to another manager. `gatehouse up` stays ready in any case: clients of the app do not need the database.',
  ),
})

const RATE_LIMITS = section(
  'How much may be asked of the API, by plan, for each key or client over all processes (429).',
  {
    free_per_day: setting(integer(1, 1_000_000_000), 1000, 'Requests in a day with the plan `free`.'),
    standard_per_hour: setting(
      integer(1, 1_000_000_000),
      10_000,
      'Requests in an hour with the plan `standard`.',
    ),
  },
)

const AUTH = section('Who may use the API.', {
  failures_per_minute: setting(
    integer(1, 100_000),
    120,
    'How many refused credentials from one address (of IPv6, one /64) in a minute; more are answered 429. A good one is taken all the same.',
  ),
  access_token_ttl_s: setting(
    integer(5, 600),
    600,
    'For how many seconds an access token is good. A new one is had without asking anybody.',
  ),
  signing_key_rotation: setting(
    duration('1h', '3650d'),
    '90d',
    'How long a key signs access tokens before the next one does.',
  ),
  registration: setting(
    choice('off', 'token', 'open'),
    'off',
    'Who may register an OAuth client by itself (RFC 7591): nobody, who has `registration_token`, or anybody. Such a client can ask people for their consent, and nothing else.',
    (who) => (who === 'open' ? 'anybody can have your users asked for their consent, under any name' : null),
  ),
  dpop_nonce: setting(
    choice('off', 'required'),
    'off',
    'Whether each proof of a key (DPoP) has to hold a nonce that Gatehouse has given out in the last minutes, so that none can be made long before it is used. Clients try again with the nonce of the answer by themselves.',
  ),
  registration_token: secret('The initial access token of `registration: token`.', 16),
  gnap_bearer_tokens: setting(
    boolean,
    true,
    'Whether GNAP gives out bearer tokens to who asks for them; else each request with a token has to be signed.',
  ),
  openid: section(
    'An OpenID provider elsewhere, whose people may sign in where there is a user for them. It is told to send them back to `{public_url}/oauth/openid/callback`.',
    {
      issuer: setting(
        optional(issuerUrl),
        null,
        'What it calls itself, as its metadata has it. `null`: people sign in with what this installation knows of them. Whoever runs it can sign in as any user whose address it calls verified, past their password and one-time codes here.',
      ),
      name: setting(optional(text), null, 'What the sign-in page calls it. `null`: its host.'),
      client_id: setting(optional(text), null, 'What it knows this installation by.'),
      client_secret: secret(
        'With what this installation proves itself there. Without it, by PKCE alone, which there is in any case.',
        0,
      ),
      ca_file: setting(optional(path), null, "Trusted instead of the system's; PEM."),
      allow_private: setting(
        boolean,
        false,
        'Whether it may have an address that is not on the public internet. Plain `http://` takes `fetch.allow_private_addresses`.',
        (isAllowed) =>
          isAllowed ? "whoever decides what its hosts' names stand for can have hosts in here asked" : null,
      ),
    },
  ),
})

const FEED = section('', {
  name: setting(name, undefined, 'The name its publisher gave it; it is part of what is signed.'),
  url: setting(httpsUrl, undefined, 'Where it is. Without user and query; no redirect is followed.'),
  public_keys: list(
    feedKey,
    'One of these has to have signed it. Two while its publisher changes from one to the other.',
  ),
  refresh: setting(
    duration('1m', '7d'),
    '1h',
    'How often it is fetched, a little more or less; after a failure sooner.',
  ),
  timeout: setting(duration('100ms', '10m'), '30s', 'For all of a fetch, to its last byte.'),
  bytes_max: setting(size('1KiB', '64MiB'), '4MiB', 'It is not read any further than this.'),
  token: secret('Sent to its server (`Authorization: Bearer`).', 0),
  ca_file: setting(optional(path), null, "Trusted instead of the system's; PEM."),
  allow_private: setting(
    boolean,
    false,
    'Whether its server may have an address that is not on the public internet.',
    (isAllowed) =>
      isAllowed ? "whoever decides what its host's name stands for can have hosts in here asked" : null,
  ),
})

/** Every setting. Validation, types, documentation and `gatehouse check` are derived from this value. */
export const SETTINGS = section('', {
  proxy: PROXY,
  manage: MANAGE,
  limits: RATE_LIMITS,
  auth: AUTH,
  data: section('', {
    dir: setting(path, './data', 'The folder for what has to last: the development CA, feeds of signatures.'),
  }),
  store: section('What the management plane keeps.', {
    url: setting(
      optional(storeUrl),
      null,
      'Its database. `null`: SQLite, in the file `gatehouse.db` of `data.dir`.',
    ),
    password: secret('Of the user in a `postgres://` URL.', 0),
    audit_retention: setting(
      duration('1d', '3650d'),
      '400d',
      'How long the audit log remembers who changed what.',
    ),
    encryption_keys: secrets(
      'Encrypt what is secret in the database (of webhooks, of one-time codes, and what OAuth signs with and remembers): the first encrypts, all decrypt; the same for all processes that share a database. In a file, one a line; it is read again when it changes. `gatehouse rekey` encrypts everything with the first. Without them a key is made, in the file `store.key` of `data.dir`, which may have several lines too.',
      16,
    ),
    encryption_key: secret('Short for `encryption_keys` with one key.', 16),
  }),
  bus: BUS,
  webhooks: section('Where others are told of events.', {
    allow_private_addresses: setting(
      boolean,
      false,
      'Whether webhooks, and push notifications of A2A, may lead to addresses that are not on the public internet, and be plain `http://`.',
      (isAllowed) =>
        isAllowed ? 'whoever may register a webhook can have hosts in here asked, and read on the way' : null,
    ),
    ca_file: setting(
      optional(path),
      null,
      'A PEM file with CAs that endpoints of webhooks may have their certificates from, beside those that everybody trusts.',
    ),
    retry_base_ms: setting(
      integer(1, 3_600_000),
      10_000,
      'Milliseconds from a delivery that failed to the next attempt; each further one waits three times as long. Ten attempts take some 27 hours as it is set here.',
    ),
    retention: setting(
      duration('1h', '365d'),
      '14d',
      'For how long deliveries that have ended are kept, with what was answered; events that are forgotten take theirs with them.',
    ),
  }),
  events: section('What has happened: for webhooks, for who listens, for sinks.', {
    retention: setting(
      duration('1h', '3650d'),
      '30d',
      'How long events are kept. Who has been away for no longer goes on where they were.',
    ),
    rows_max: setting(
      integer(1_000, 100_000_000),
      1_000_000,
      'How many are kept; of more the oldest are forgotten.',
    ),
  }),
  sinks: section('Where events are handed on to, as a SIEM wants them: with addresses of clients.', {
    file: setting(
      optional(path),
      null,
      'A file to which each event is added as a line. Where it is moved away, a new one is begun; it is never cut by itself. `null`: none.',
    ),
    file_format: setting(
      choice('json', 'cef'),
      'json',
      'JSON, as the API has it, or the Common Event Format.',
    ),
    syslog: setting(
      optional(syslogUrl),
      null,
      'Where each event is sent to (RFC 5424). Of processes that share a database one at a time does. `null`: nowhere.',
      syslogRisk,
    ),
    syslog_format: setting(choice('cef', 'json'), 'cef', 'The same.'),
    syslog_ca_file: setting(
      optional(path),
      null,
      "Of `tls://`: trusted instead of the system's; PEM. The certificate is always checked.",
    ),
  }),
  fetch: section('Documents that others publish: of agents, their keys, and clients.', {
    allow_private_addresses: setting(
      boolean,
      false,
      'Whether they may be at addresses that are not on the public internet, and at plain `http://`. For tests: keys that stand in specifications are taken then, too.',
      (isAllowed) =>
        isAllowed
          ? 'whoever can send a request can have hosts in here asked; published test keys prove who somebody is'
          : null,
    ),
  }),
  identity: IDENTITY,
  signing: SIGNING,
  signatures: list(
    path,
    'Files of signatures, and folders of them, beside those that come with Gatehouse: an entry of yours takes the place of one with the same id, there or in a feed; long lists (`*.jsonl`) also add to ours. Loaded anew when they change.',
  ),
  weights: section('', {
    file: setting(
      optional(path),
      null,
      'What each kind of evidence weighs, as `gatehouse evaluate --fit FILE` writes it. Loaded anew when it changes. `null`: as it comes with Gatehouse.',
    ),
  }),
  feeds: sections(
    FEED,
    'Signed signatures that others publish, see signatures/README.md. A later one is stronger than an earlier one, each stronger than what comes with Gatehouse.',
  ),
  policy: section('', {
    file: setting(optional(path), null, 'The rules. `null`: every request is tagged, none is blocked.'),
  }),
  sightings: section('What was seen, for `gatehouse check --replay`; no secrets, but addresses of clients.', {
    file: setting(
      optional(path),
      null,
      'Every request is added to it as a line of JSON: who it came from, what it is held for, what was done. What the disk cannot take is dropped and counted, and no request waits for it. `null`: none.',
    ),
    max_size: setting(
      size('64KiB', '100GiB'),
      '256MiB',
      'When it is full it becomes FILE.1, in the place of the one before, and a new one begins.',
    ),
    spool_bytes: setting(
      optional(size('1MiB', '100GiB')),
      null,
      'Of a proxy with `bus.url`: how much of what was seen may wait in `data.dir` while NATS is away; beyond, it is dropped and counted. `null`: what fits into memory waits, 8,192 requests a worker.',
    ),
    retention: setting(
      duration('1m', '365d'),
      '24h',
      'For how long the database keeps each request as it was, with the address of the client. What is counted of it stays longer.',
    ),
    rows_max: setting(
      integer(1_000, 100_000_000),
      1_000_000,
      'How many requests it keeps so; of more the oldest are forgotten. A million take a gigabyte.',
    ),
  }),
  rollups: section('Counts that statistics are made of. Each has every request, for as long as it is kept.', {
    minutes: setting(duration('25h', '31d'), '48h', 'For how long requests are counted by the minute.'),
    hours: setting(duration('31d', '1000d'), '90d', 'The same by the hour.'),
    days: setting(duration('31d', '3650d'), '1825d', 'The same by the day.'),
  }),
  observed: section(
    'Fingerprints that no signature has: those that are seen often become signatures of nobody.',
    {
      addresses_min: setting(integer(1, 1_000), 5, 'From how many addresses, of IPv6 networks of 64 bits.'),
      requests_min: setting(integer(1, 1_000_000), 5, 'In how many requests.'),
      max: setting(
        integer(0, 1_000_000),
        10_000,
        'How many there may be; those that are seen least make room.',
      ),
    },
  ),
  threats: section(
    'Which requests others are told of as threats (`threat_detected`); the README says what each is.',
    {
      spoofed_browser: setting(
        boolean,
        true,
        'Who says to be a browser, which its fingerprints or headers deny.',
      ),
      foreign_address: setting(
        boolean,
        true,
        'Who claims to be an agent from an address that is not one of its vendor’s, by its list or its host names.',
      ),
      proof_failed: setting(
        boolean,
        true,
        'Who signs a request, and not as the agent it says to be, or not as it was sent.',
      ),
      proof_contradicted: setting(
        boolean,
        true,
        'Who proves to be an agent by its signature, with TLS or from an address that is none of that agent’s.',
      ),
      forged_headers: setting(boolean, true, 'Who sends headers that only the gateway sets.'),
      blocked: setting(boolean, true, 'What a rule blocks, or holds before it is refused.'),
      rate_limited: setting(boolean, true, 'What is over the limit of a rule.'),
      rate_anomaly: setting(boolean, true, 'An agent that asks for far more than it does.'),
      rate_anomaly_factor: setting(integer(2, 10_000), 10, 'How many times what is usual for it.'),
      rate_anomaly_requests: setting(
        integer(1, 100_000_000),
        300,
        'Fewer requests in five minutes are none.',
      ),
      robots_violation: setting(
        boolean,
        true,
        'A crawler that asks for what robots.txt disallows it, as far as one of the next two settings says what that is.',
      ),
      robots_file: setting(
        optional(path),
        null,
        'A copy of the robots.txt of the sites behind the gateway. Read anew every ten seconds.',
      ),
      robots_upstream: setting(
        boolean,
        false,
        'Whether, without such a file, the first upstream is asked for its robots.txt, once an hour for each host that crawlers ask for.',
      ),
      window: setting(
        duration('1m', '1h'),
        '5m',
        'For how long one that was told, with its fingerprint and its address, is not told again but counted.',
      ),
      events_per_minute: setting(
        integer(1, 1_000),
        30,
        'How many are told by themselves in a minute, of each kind of threat, and of new signatures. Of more there is one event a minute.',
      ),
    },
  ),
  submissions: section('Fingerprints that callers of the API send in.', {
    auto_accept: setting(
      boolean,
      false,
      'Whether those that nothing speaks against are accepted at once. Else an administrator looks at each: whoever may submit would decide who is held for an agent.',
    ),
  }),
  inject: INJECT,
  fingerprints: section('', {
    ja4plus: setting(
      boolean,
      true,
      "Whether JA4S, JA4H and JA4X are computed: they are under FoxIO's own licence, see NOTICE.",
    ),
  }),
  tracing: section(
    'Traces of requests, for OpenTelemetry: of each a span, and one for the part of the app, which is told by `traceparent` (W3C Trace Context). What a client says there is taken from `proxy.trusted_proxies` only, and is a link otherwise.',
    {
      endpoint: setting(
        optional(webUrl),
        null,
        'Where spans are posted (OTLP over HTTP, as JSON), like `http://127.0.0.1:4318/v1/traces`. `null`: nowhere, and trace contexts pass as they are.',
      ),
      token: secret('Sent with them (`Authorization: Bearer`).', 0),
      sample: setting(
        share,
        0.01,
        'The share of requests that are recorded, where no trusted proxy has decided it: 1 is all.',
      ),
      service: setting(text, 'gatehouse', 'What they are said to come from (`service.name`).'),
    },
  ),
  log: section('', {
    level: setting(
      choice('debug', 'info', 'warn', 'error', 'silent'),
      'info',
      'The least important that is logged.',
    ),
    format: setting(
      choice('auto', 'text', 'json'),
      'auto',
      'How lines are written: `text` for people, `json` for programs. `auto`: text on a terminal, else JSON.',
    ),
    per_second: setting(
      optional(integer(1, 1_000_000)),
      null,
      'How many lines with the same message a process writes in a second; of more, the next one says how many were left out (`left_out`). `null`: all.',
    ),
  }),
})
