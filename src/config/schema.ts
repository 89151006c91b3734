import { boolean, choice, duration, integer, optional, path, share, size, text } from './kinds.ts'
import { storeUrl, trafficUrl, webUrl } from './network-kinds.ts'
import { list, secret, secrets, section, sections, setting } from './items.ts'
import { APP } from './apps.ts'
import { AUTH } from './auth.ts'
import { FEED } from './feeds.ts'
import { BUS } from './fleet.ts'
import { IDENTITY, SIGNING } from './identity.ts'
import { INJECT } from './inject.ts'
import { MANAGE, RATE_LIMITS } from './manage.ts'
import { PAYMENTS } from './payments.ts'
import { PROXY } from './proxy.ts'
import { PRIVACY } from './privacy.ts'
import { RETENTION } from './retention.ts'
import { SAMPLE } from './traffic/sample.ts'
import { SINKS } from './traffic/sinks.ts'
import { PUBLISH } from './publish.ts'
import { THREATS } from './threats.ts'

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
  traffic: section('Recorded requests, if they are kept outside of the database.', {
    url: setting(
      optional(trafficUrl),
      null,
      'The URL of ClickHouse. With `clickhouses://`, TLS. With `?cluster=NAME`, the servers of a cluster share the requests. `null`: requests are in the database.',
    ),
    password: secret('Password of the user in `traffic.url`.', 0),
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
  sinks: SINKS,
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
      'The policy file with the rules. `null`: every request is tagged, none is blocked. With `proxy.app` and `bus.url`, it has the rules of this app, between those of the organisation that the managers send.',
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
        integer(1_000, 10_000_000_000),
        1_000_000,
        'Maximum number of individual requests kept. If there are more, the oldest are deleted. A million need about 0.3 GB.',
      ),
      bytes_max: setting(
        optional(size('64MiB', '100000GiB')),
        null,
        'For SQLite: maximum size of the database file. If it is larger, the oldest individual requests are deleted. The file may be an eighth larger for a moment, and has up to 64 MiB of log beside it. `null`: no limit.',
      ),
      sample: SAMPLE,
      limit_a_second: setting(
        optional(integer(1, 1_000_000)),
        null,
        'How many requests a proxy records a second at most, all workers together. Statistics still count all. Apps with few requests lose none before others. `null`: no limit.',
        (limit) =>
          limit === null
            ? null
            : 'beyond the limit, threats and campaigns are found in a part of the requests only',
      ),
      synchronous_commit: setting(
        choice('on', 'off'),
        'on',
        'For PostgreSQL: whether the commit of requests waits for the disk, as in PostgreSQL. `off`: if the database server crashes, the requests of its last moments are lost, with their counts. Requests that cause an event, and all other data, always wait.',
      ),
    },
  ),
  privacy: PRIVACY,
  retention: RETENTION,
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
  threats: THREATS,
  publish: PUBLISH,
  payments: PAYMENTS,
  submissions: section('Fingerprints that API callers submit.', {
    auto_accept: setting(
      boolean,
      false,
      'Whether submissions without any objection are accepted immediately. Then every caller who may submit can decide which clients are classified as an agent. `false`: an administrator reviews each one.',
    ),
  }),
  apps: sections(
    APP,
    'The apps behind the proxies; config/guide/apps.md. They belong in the settings of `gatehouse up` or `gatehouse manage`; proxies on a bus receive them from there.',
  ),
  inject: INJECT,
  classify: section('', {
    campaigns: setting(
      boolean,
      true,
      'Whether to look for campaigns, crawlers that come from many addresses, in the requests of all proxies; config/guide/campaigns.md. It takes 5 MB of memory in the process that receives the requests.',
    ),
  }),
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
