import type { Log } from '../../shared/log.ts'

export interface SpanExporterSettings {
  /** OTLP over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp */
  readonly endpoint: string
  /** The bearer token. `null`: none is sent. */
  readonly token: string | null
  /** The resource attributes of the spans. */
  readonly resource: readonly Attribute[]
  readonly everyMs?: number
  readonly timeoutMs?: number
}

/** A span in an OTLP message (JSON Protobuf encoding). */
export interface TraceSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly name: string
  /** 2: server, 3: client. */
  readonly kind: 2 | 3
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly Attribute[]
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  /** 0: unset, 2: error. */
  readonly status: { readonly code: 0 | 2 }
}

export interface Attribute {
  readonly key: string
  readonly value: AttributeValue
}

type AttributeValue =
  | { readonly stringValue: string }
  | { readonly intValue: string }
  | { readonly doubleValue: number }
  | { readonly arrayValue: { readonly values: readonly { readonly stringValue: string }[] } }

export interface SpanCounts {
  exported: number
  /** There was no room, or the process ended first. */
  dropped: number
  /** The collector rejected them. */
  refused: number
}

/**
 * Exports spans in batches at intervals. While the collector is unavailable they wait. If the buffer is full,
 * the newest are dropped and counted. Requests never wait for it.
 */
export class SpanExporter {
  readonly counts: SpanCounts = { exported: 0, dropped: 0, refused: 0 }
  readonly #settings: SpanExporterSettings
  readonly #log: Log
  readonly #beat: NodeJS.Timeout
  #waiting: TraceSpan[] = []
  #sending: Promise<void> | null = null
  #isAway = false

  constructor(settings: SpanExporterSettings, log: Log) {
    this.#settings = settings
    this.#log = log
    this.#beat = setInterval(() => this.#flush(), settings.everyMs ?? EVERY_MS).unref()
  }

  add(span: TraceSpan): void {
    if (this.#waiting.length >= WAITING_MAX) this.counts.dropped++
    else this.#waiting.push(span)
  }

  /** Sends the waiting spans until the deadline. */
  async close(deadlineMs: number): Promise<void> {
    clearInterval(this.#beat)
    const deadline = Promise.withResolvers<void>()
    const timer = setTimeout(deadline.resolve, deadlineMs)
    let isOver = false
    void deadline.promise.then(() => {
      isOver = true
    })
    while (!isOver && this.#waiting.length > 0) {
      const before = this.#waiting.length
      this.#flush()
      await Promise.race([this.#sending, deadline.promise])
      if (this.#waiting.length === before) break // the collector does not take them
    }
    clearTimeout(timer)
    this.counts.dropped += this.#waiting.length
    this.#waiting = []
  }

  #flush(): void {
    if (this.#sending !== null || this.#waiting.length === 0) return
    const batch = this.#waiting.slice(0, BATCH_MAX)
    this.#sending = this.#send(batch).finally(() => {
      this.#sending = null
      if (!this.#isAway && this.#waiting.length >= BATCH_MAX) this.#flush()
    })
  }

  async #send(batch: readonly TraceSpan[]): Promise<void> {
    const outcome = await this.#post(batch)
    if (outcome === 'later') return
    this.#waiting.splice(0, batch.length)
    this.counts[outcome] += batch.length
  }

  async #post(batch: readonly TraceSpan[]): Promise<'exported' | 'refused' | 'later'> {
    const { endpoint, token, resource, timeoutMs = TIMEOUT_MS } = this.#settings
    const scopeSpans = [{ scope: { name: 'gatehouse' }, spans: batch }]
    try {
      const response = await fetch(endpoint, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(token !== null && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ resourceSpans: [{ resource: { attributes: resource }, scopeSpans }] }),
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      })
      await response.body?.cancel()
      if (response.ok) return this.#told(null, 'exported')
      const isForNow = RETRYABLE.has(response.status)
      return this.#told(`it answered ${response.status}`, isForNow ? 'later' : 'refused')
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: unknown } }
      return this.#told(typeof cause?.code === 'string' ? cause.code : message, 'later')
    }
  }

  /** Logs once, until the state changes. */
  #told<Outcome>(why: string | null, outcome: Outcome): Outcome {
    if (why !== null && !this.#isAway) this.#log.warn('traces are not taken', { why })
    if (why === null && this.#isAway) this.#log.info('traces are taken again')
    this.#isAway = why !== null
    return outcome
  }
}

const EVERY_MS = 2_000
const TIMEOUT_MS = 10_000
/** 6 MB at some 1.5 KB each. */
const WAITING_MAX = 4_096
const BATCH_MAX = 512
/** "Retryable response codes" in the specification. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504])
