import { DurationHistogram, type Metrics, Tally } from '../../../shared/metrics.ts'
import type { Log } from '../../../shared/log.ts'
import { PROBLEMS } from '../refusal.ts'
import { PROXY_HEADER_FAULTS, type ProxyHeaderFault } from './proxy-header.ts'

/** A request to the management port that has been answered, or whose caller has gone. */
export interface Visit {
  readonly method: string
  /** Less its query. */
  readonly path: string
  /** The id of an operation; `probe`, `document`, `gnap`, `oauth`, `mcp`, `a2a`, `none`. */
  readonly operation: string
  readonly status: number
  /** The code of the problem it was answered with. */
  readonly problem: string | null
  readonly durationMs: number
  /** `false`: who asked has gone before, or was let go. */
  readonly isComplete: boolean
  /** The id of who asked. */
  readonly principal: string | null
  readonly address: string
  readonly requestId: string
}

/** What the management port has to do: counted, and where the operator wants it, logged. No query, no header, no body. */
export class ManageTraffic {
  /** Whether a visit is worth more than the level debug. */
  isLogged: boolean
  readonly #log: Log
  readonly #answers: Tally<'operation' | 'status'>
  readonly #problems = new Tally({ code: Object.keys(PROBLEMS) })
  readonly #refusedHeaders = new Tally({ reason: PROXY_HEADER_FAULTS })
  readonly #durations = new DurationHistogram()

  /** `operations`: the ids there are. */
  constructor(operations: readonly string[], isLogged: boolean, log: Log) {
    this.#answers = new Tally({ operation: [...operations, ...OTHERS], status: STATUSES })
    this.isLogged = isLogged
    this.#log = log
  }

  answered(visit: Visit): void {
    const { operation, status, problem, durationMs } = visit
    this.#answers.add(operation, STATUSES[Math.floor(status / 100) - 2] ?? '')
    if (problem !== null) this.#problems.add(problem)
    // Who looks every second whether we live would make everything look fast.
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
    metrics.counter('manage_requests_total', 'Requests to the management port, by what they ask for.', () =>
      this.#answers.samples(),
    )
    metrics.counter('manage_problems_total', 'Of these, what was answered with a problem.', () =>
      this.#problems.samples(),
    )
    metrics.counter(
      'manage_proxy_header_refused_total',
      'Connections to the management port closed because of their PROXY header.',
      () => this.#refusedHeaders.samples(),
    )
    metrics.histogram(
      'manage_request_duration_seconds',
      'From the head of a request to the end of its answer, probes excepted.',
      this.#durations,
    )
  }
}

const OTHERS = ['probe', 'document', 'gnap', 'oauth', 'mcp', 'a2a', 'preflight', 'none']
const STATUSES = ['2xx', '3xx', '4xx', '5xx']
