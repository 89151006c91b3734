import { getHeapStatistics } from 'node:v8'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { CATEGORIES } from '../../classify/known/software.ts'
import { DurationHistogram, Metrics, type Sample, LabelledCounter } from '../../shared/metrics.ts'
import type { SignatureFinding } from '../../classify/verdict/proof.ts'
import { SIGNATURE_FAULTS, SIGNATURE_FINDINGS } from '../../identity/verify/signature-faults.ts'
import { ABUSE } from '../http/h2/abuse.ts'
import { CLIENT_TIMEOUTS, type ClientTimeout } from '../connection/client-timeouts.ts'
import type { ConnectionFailure, FailureReason, SecuredConnection } from '../connection/connection.ts'
import type { DoneRequest } from '../request/context.ts'
import type { ListenerCounts } from './listener.ts'
import type { Recorder } from './recorder.ts'
import { RequestsByApp } from './requests-by-app.ts'
import type { SpanCounts } from '../request/span-exporter.ts'
import type { UpstreamGroup } from '../upstream/upstream.ts'

/** Counts kept elsewhere, read on demand. */
export interface CountSources {
  readonly listeners: readonly { readonly counts: ListenerCounts }[]
  readonly upstreams: readonly UpstreamGroup[]
  readonly recorder: Pick<Recorder, 'counts' | 'droppedByApp' | 'waitingCounts'>
  readonly traffic: { readonly size: number }
  /** Of the expressions of the policy. */
  readonly expressions: { readonly failures: number; readonly overruns: number }
  /** `null`: requests are not traced. */
  readonly spans: { readonly counts: SpanCounts } | null
  readonly accessLog: { readonly dropped: number } | null
  /** The number of requests that wait for their signer's key. */
  readonly waiting: () => number
}

/** The metrics of one worker. Every label comes from a list here or from the configuration. */
export class WorkerMetrics {
  readonly #requests = new RequestsByApp(
    () =>
      new LabelledCounter({
        verdict: VERDICTS,
        category: [NO_CATEGORY, ...CATEGORIES],
        action: ACTIONS,
        status: STATUS_CLASSES,
      }),
  )
  readonly #durations = new DurationHistogram()
  readonly #detections = new DurationHistogram(DETECTION_BOUNDS_MS)
  readonly #failures = new LabelledCounter({ reason: FAILURE_REASONS })
  readonly #timeouts = new LabelledCounter({ timeout: CLIENT_TIMEOUTS })
  readonly #secured = new LabelledCounter({
    version: TLS_VERSIONS,
    resumed: ['false', 'true'],
    protocol: PROTOCOLS,
  })
  readonly #handshakeDurations = new DurationHistogram()
  readonly #handshakes = new LabelledCounter({ code: TLS_CODES })
  readonly #http2 = new LabelledCounter({ code: Object.values(ABUSE) })
  readonly #signatures = new LabelledCounter({ finding: SIGNATURE_FINDINGS, why: SIGNATURE_FAULTS })
  readonly #metrics = new Metrics()
  #forgedHeaders = 0
  #unknownHosts = 0
  #oddHeaderNames = 0
  #detectionsBegun = 0

  constructor(sources: CountSources) {
    this.#addRequests(sources.expressions)
    this.#addConnections(sources.listeners)
    this.#addUpstreams(sources.upstreams)
    this.#addSightings(sources.recorder)
    if (sources.spans !== null) this.#addSpans(sources.spans)
    if (sources.accessLog !== null) this.#addAccessLog(sources.accessLog)
    const help = 'Clients, and TLS hellos without a known owner, whose recent requests are remembered.'
    this.#metrics.gauge('traffic_remembered', help, 'sum', () => one(sources.traffic.size))
    const waiting = 'Signed requests that wait for the key of their signer.'
    this.#metrics.gauge('signatures_waiting', waiting, 'sum', () => one(sources.waiting()))
    addProcessMetrics(this.#metrics)
  }

  /** The apps that requests may be for. */
  nameApps(ids: Iterable<string>): void {
    this.#requests.name(ids)
  }

  /** The start time of a detection, if this one is measured. Otherwise 0. */
  detectionBegins(): number {
    return ++this.#detectionsBegun % DETECTIONS_TIMED === 0 ? performance.now() : 0
  }

  detectionDone(begunMs: number): void {
    this.#detections.observe(performance.now() - begunMs)
  }

  /** Called once for every request at the end of its answer. `status` 0: it got none. */
  requestDone(
    { id, app, verdict, decision }: DoneRequest,
    status: number,
    durationMs: number,
    nowMs: number,
    traceId: string | null,
  ): void {
    const category = verdict.agent?.category ?? NO_CATEGORY
    const statusClass = STATUS_CLASSES[Math.floor(status / 100)] ?? 'none'
    this.#requests.of(app.id).add(verdict.kind, category, decision.action.kind, statusClass)
    this.#durations.observeAs(durationMs, nowMs, id, traceId)
  }

  connectionSecured({ version, isResumed, protocol, durationMs }: SecuredConnection): void {
    this.#secured.add(version, String(isResumed), protocol)
    this.#handshakeDurations.observe(durationMs)
  }

  /** Counts the result of a Web Bot Auth signature. */
  signatureFound(finding: SignatureFinding): void {
    this.#signatures.add(finding.kind, 'why' in finding ? finding.why : '')
  }

  /** Counts proxy headers that clients sent. */
  forgedHeaders(count: number): void {
    this.#forgedHeaders += count
  }

  /** Counts a request for a host that `proxy.hosts` does not contain. */
  unknownHost(): void {
    this.#unknownHosts++
  }

  /** Counts client header names with characters that servers fold. */
  oddHeaderNames(count: number): void {
    this.#oddHeaderNames += count
  }

  connectionFailed({ reason, code }: ConnectionFailure): void {
    this.#failures.add(reason)
    if (reason === 'h2-protocol') this.#http2.add(code ?? '')
    if (reason === 'handshake' || reason === 'malformed-hello') this.#handshakes.add(code ?? '')
  }

  clientTimedOut(timeout: ClientTimeout): void {
    this.#timeouts.add(timeout)
  }

  read(): ReturnType<Metrics['read']> {
    return this.#metrics.read()
  }

  #addRequests(expressions: CountSources['expressions']): void {
    const metrics = this.#metrics
    const help =
      'Requests answered, by verdict, category of the agent (none: not a known agent), action, class of status (none: the client left first) and app (default: no app matched; other: beyond the first 500 apps).'
    metrics.counter('requests_total', help, () => this.#requests.samples())
    metrics.histogram(
      'request_duration_seconds',
      'The time from the head of the request to the end of the response.',
      this.#durations,
    )
    const detection = `The time to classify a request and decide, measured for one request in ${DETECTIONS_TIMED}.`
    metrics.histogram('detection_duration_seconds', detection, this.#detections)
    metrics.counter(
      'forged_headers_total',
      'Headers sent by clients that only Gatehouse may set, and that were removed.',
      () => one(this.#forgedHeaders),
    )
    const unknown = 'Requests for a host that is not in proxy.hosts, refused or passed.'
    metrics.counter('unknown_hosts_total', unknown, () => one(this.#unknownHosts))
    const odd =
      'Header names from clients with a character other than letters, digits and hyphens: dropped, passed on or refused, see proxy.odd_header_names.'
    metrics.counter('odd_header_names_total', odd, () => one(this.#oddHeaderNames))
    const signatures = 'Signed requests (Web Bot Auth), by outcome and reason.'
    metrics.counter('signatures_total', signatures, () => this.#signatures.samples())
    const failures = 'Rule expressions that failed: the stricter result was used.'
    metrics.counter('policy_expression_failures_total', failures, () => one(expressions.failures))
    const overruns = 'Requests that reached the step limit of expressions: the remaining expressions failed.'
    metrics.counter('policy_expression_overruns_total', overruns, () => one(expressions.overruns))
  }

  #addConnections(listeners: CountSources['listeners']): void {
    const metrics = this.#metrics
    const stages = ['opening', 'handshakes', 'h1', 'h2', 'upgraded'] as const
    metrics.gauge('connections_open', 'Open connections, by state.', 'sum', () =>
      stages.map((stage) => ({ labels: { stage }, value: total(listeners, ({ counts }) => counts[stage]) })),
    )
    metrics.gauge('streams_open', 'Open HTTP/2 streams.', 'sum', () =>
      one(total(listeners, ({ counts }) => counts.streams)),
    )
    const handshakes = 'Completed TLS handshakes, by version, session resumption and protocol.'
    metrics.counter('handshakes_total', handshakes, () => this.#secured.samples())
    const durations = 'The time from the ClientHello to the end of the handshake.'
    metrics.histogram('handshake_duration_seconds', durations, this.#handshakeDurations)
    const help = 'Connections and requests that failed before they were served.'
    metrics.counter('connection_failures_total', help, () => this.#failures.samples())
    const http2 =
      'HTTP/2 connections ended because the client broke or abused the protocol, by the rule or the limit.'
    metrics.counter('http2_failures_total', http2, () => this.#http2.samples())
    const timeouts =
      'Connections and HTTP/2 streams closed because a client sent or read nothing in time, by the setting in proxy.limits.'
    metrics.counter('client_timeouts_total', timeouts, () => this.#timeouts.samples())
    metrics.counter('handshake_failures_total', 'Failed TLS handshakes, by error.', () =>
      this.#handshakes.samples(),
    )
  }

  #addUpstreams(groups: readonly UpstreamGroup[]): void {
    const metrics = this.#metrics
    const help = 'Forwarded requests, by upstream and outcome.'
    metrics.counter('upstream_requests_total', help, () => groups.flatMap(outcomesOf))
    const heads = 'The time from forwarding a request to the head of the response, including retries.'
    metrics.histograms('upstream_head_duration_seconds', heads, () =>
      groups.map(({ name, headDurations }) => ({ labels: { upstream: name }, histogram: headDurations })),
    )
    metrics.counter('upstream_retries_total', 'Retries of requests.', () =>
      groups.map(({ name, counters }) => ({ labels: { upstream: name }, value: counters.retries })),
    )
    metrics.counter('upstream_connections_total', 'Connections opened to upstreams.', () =>
      groups.map(({ name, counters }) => ({ labels: { upstream: name }, value: counters.connectionsOpened })),
    )
    metrics.gauge('upstream_connections_open', 'Open connections to upstreams.', 'sum', () =>
      groups.map(({ name, status }) => ({
        labels: { upstream: name },
        value: total(status, (target) => target.connections),
      })),
    )
    metrics.gauge(
      'upstream_targets_healthy',
      'Healthy targets; if workers disagree, the lowest number.',
      'min',
      () =>
        groups.map(({ name, status }) => ({
          labels: { upstream: name },
          value: total(status, ({ isHealthy }) => Number(isHealthy)),
        })),
    )
  }

  #addSightings(recorder: CountSources['recorder']): void {
    const { counts, droppedByApp } = recorder
    const ends =
      'Sightings that were recorded, delivered, dropped for lack of room, and left out by sampling.'
    this.#metrics.counter('sightings_total', ends, () => [
      { labels: { outcome: 'recorded' }, value: counts.recorded },
      { labels: { outcome: 'delivered' }, value: counts.delivered },
      { labels: { outcome: 'dropped' }, value: counts.dropped },
      { labels: { outcome: 'sampled_out' }, value: counts.sampledOut },
    ])
    const help = 'Sightings that were dropped because too many waited, by app.'
    this.#metrics.counter('sightings_dropped_total', help, () => droppedByApp.samples)
    const counted = 'Requests that were counted for statistics, and whose counts the receiver has.'
    this.#metrics.counter('requests_counted_total', counted, () => one(counts.counted))
    const waiting = 'Requests that were counted for statistics, and whose counts wait to be sent.'
    this.#metrics.gauge('requests_counted_waiting', waiting, 'sum', () => one(recorder.waitingCounts))
  }

  #addAccessLog(accessLog: NonNullable<CountSources['accessLog']>): void {
    const help = 'Lines of the access log that were dropped because the disk or the reader was slow.'
    this.#metrics.counter('access_log_dropped_total', help, () => one(accessLog.dropped))
  }

  #addSpans({ counts }: NonNullable<CountSources['spans']>): void {
    const outcomes = ['exported', 'dropped', 'refused'] as const
    const help = 'Trace spans: accepted by the collector, dropped for lack of room, or refused by it.'
    this.#metrics.counter('spans_total', help, () =>
      outcomes.map((outcome) => ({ labels: { outcome }, value: counts[outcome] })),
    )
  }
}

/** Metrics of any process. Values of several processes add up, except the delay, where the maximum counts. */
export function addProcessMetrics(metrics: Metrics): void {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  let sinceMs = performance.now()
  metrics.gauge(
    'event_loop_delay_seconds',
    'The delay of the event loop over the last 30 seconds.',
    'max',
    () => {
      const samples = DELAY_PERCENTILES.map((percentile): Sample => {
        const lateMs = Math.max(0, delay.percentile(percentile) / 1e6 - DELAY_RESOLUTION_MS)
        return { labels: { percentile }, value: lateMs / 1000 }
      })
      if (performance.now() - sinceMs > DELAY_WINDOW_MS) {
        delay.reset()
        sinceMs = performance.now()
      }
      return samples
    },
  )
  metrics.gauge('memory_resident_bytes', 'Memory of all processes.', 'sum', () => one(residentBytes()))
  metrics.gauge('memory_heap_bytes', 'JavaScript heap of all processes.', 'sum', () =>
    one(getHeapStatistics().used_heap_size),
  )
  metrics.counter('cpu_seconds_total', 'Processor time of all processes.', () => {
    const { user, system } = process.cpuUsage()
    return one((user + system) / 1e6)
  })
}

let lastResidentBytes = 0

/** If it cannot be read, the last value: reading needs a file descriptor, and there may be none left. */
function residentBytes(): number {
  try {
    lastResidentBytes = process.memoryUsage.rss()
  } catch {
    // A failed metric must not end the process.
  }
  return lastResidentBytes
}

function outcomesOf({ name: upstream, counters }: UpstreamGroup): Sample[] {
  const { answered, clientGone, brokenOff, failed } = counters
  const outcomes = { answered, 'client-gone': clientGone, 'broken-off': brokenOff, ...failed }
  return Object.entries(outcomes).map(([outcome, value]) => ({ labels: { upstream, outcome }, value }))
}

function one(value: number): Sample[] {
  return [{ labels: {}, value }]
}

function total<T>(list: readonly T[], of: (item: T) => number): number {
  return list.reduce((sum, item) => sum + of(item), 0)
}

/** Measuring more would cost time without more insight. */
const DETECTIONS_TIMED = 64
const DETECTION_BOUNDS_MS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 25, 100]
const NO_CATEGORY = 'none'
const TLS_VERSIONS = ['TLSv1.2', 'TLSv1.3']
const PROTOCOLS = ['h1', 'h2']
const VERDICTS = ['agent', 'automation', 'human', 'unknown']
const ACTIONS = ['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route', 'charge']
const STATUS_CLASSES = ['none', '1xx', '2xx', '3xx', '4xx', '5xx']
const FAILURE_REASONS: readonly FailureReason[] = [
  'too-many-connections',
  'proxy-protocol',
  'gone',
  'hello-timeout',
  'hello-too-long',
  'not-tls',
  'malformed-hello',
  'handshake',
  'handshake-timeout',
  'header-timeout',
  'bad-request',
  'h2-protocol',
  'draining',
]
/** Codes on which an operator can act. All others share one label. */
const TLS_CODES = [
  'closed',
  'ECONNRESET',
  'ERR_SSL_NO_SHARED_CIPHER',
  'ERR_SSL_UNSUPPORTED_PROTOCOL',
  'ERR_SSL_NO_APPLICATION_PROTOCOL',
  'ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM',
  'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_UNKNOWN',
  'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED',
  'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE',
]
const DELAY_RESOLUTION_MS = 20
const DELAY_WINDOW_MS = 30_000
const DELAY_PERCENTILES = [50, 99, 100]
