import { DurationHistogram, type Metrics, LabelledCounter } from '../../../shared/metrics.ts'
import type { Log } from '../../../shared/log.ts'
import { PROBLEMS } from '../refusal.ts'
import { PROXY_HEADER_FAULTS, type ProxyHeaderFault } from './proxy-header.ts'

/** A finished request to the management port: it was answered, or the client left. */
export interface FinishedRequest {
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** An operation id, or one of `probe`, `document`, `gnap`, `oauth`, `mcp`, `a2a`, `preflight`, `none`. */
  readonly operation: string
  readonly status: number
  /** The code of the problem, if the answer was one. */
  readonly problem: string | null
  readonly durationMs: number
  /** `false`: the client left first, or was disconnected. */
  readonly isComplete: boolean
  /** The id of the principal. */
  readonly principal: string | null
  readonly address: string
  readonly requestId: string
}

/**
 * Counts requests to the management port, and logs them if the operator wants that. Never logs a query, a
 * header or a body.
 */
export class ManageTraffic {
  /** Whether visits are logged above the level debug. */
  isLogged: boolean
  readonly #log: Log
  readonly #answers: LabelledCounter<'operation' | 'status'>
  readonly #problems = new LabelledCounter({ code: Object.keys(PROBLEMS) })
  readonly #refusedHeaders = new LabelledCounter({ reason: PROXY_HEADER_FAULTS })
  readonly #durations = new DurationHistogram()

  /** `operations`: all operation ids. */
  constructor(operations: readonly string[], isLogged: boolean, log: Log) {
    this.#answers = new LabelledCounter({ operation: [...operations, ...OTHERS], status: STATUSES })
    this.isLogged = isLogged
    this.#log = log
  }

  answered(visit: FinishedRequest): void {
    const { operation, status, problem, durationMs } = visit
    this.#answers.add(operation, STATUSES[Math.floor(status / 100) - 2] ?? '')
    if (problem !== null) this.#problems.add(problem)
    // Probes, which may come every second, would make the durations look too short.
    if (operation !== 'probe') this.#durations.observe(durationMs)
    const fields = { ...visit, durationMs: Math.round(durationMs * 10) / 10 }
    if (this.isLogged && operation !== 'probe') this.#log.info('answered', fields)
    else this.#log.debug('answered', fields)
  }

  refusedProxyHeader(fault: ProxyHeaderFault): void {
    this.#refusedHeaders.add(fault)
    this.#log.debug('closed a connection to the management port because of its PROXY header', { fault })
  }

  addMetrics(metrics: Metrics): void {
    metrics.counter('manage_requests_total', 'Requests to the management port, by operation.', () =>
      this.#answers.samples(),
    )
    metrics.counter(
      'manage_problems_total',
      'Requests to the management port answered with an error, by code.',
      () => this.#problems.samples(),
    )
    metrics.counter(
      'manage_proxy_header_refused_total',
      'Connections to the management port closed because of their PROXY header.',
      () => this.#refusedHeaders.samples(),
    )
    metrics.histogram(
      'manage_request_duration_seconds',
      'Time from the head of a request to the end of its answer, without probes.',
      this.#durations,
    )
  }
}

const OTHERS = ['probe', 'document', 'gnap', 'oauth', 'mcp', 'a2a', 'preflight', 'none']
const STATUSES = ['2xx', '3xx', '4xx', '5xx']
