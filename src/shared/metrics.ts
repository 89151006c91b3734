import assert from 'node:assert/strict'
import type { Metric, Registry, RegistryContentType } from 'prom-client'

/**
 * The metrics of a process, with names that start with `gatehouse_`. Code that counts keeps plain numbers,
 * and a metric reads them on demand, so that counting costs one addition.
 *
 * The budget: label values come from lists in this program or from its configuration, never from clients. All
 * metrics together make at most 1,500 series, plus 40 for each upstream, certificate and feed.
 */
export class Metrics {
  readonly #readings = new Map<string, () => MetricsReading[number]>()

  counter(name: string, help: string, samples: () => Iterable<Sample>): void {
    this.#add('counter', 'sum', name, help, samples)
  }

  /** `across`: how to combine the values of several workers. */
  gauge(name: string, help: string, across: Across, samples: () => Iterable<Sample>): void {
    this.#add('gauge', across, name, help, samples)
  }

  histogram(name: string, help: string, histogram: DurationHistogram): void {
    this.histograms(name, help, () => [{ labels: {}, histogram }])
  }

  /** The same for several histograms. */
  histograms(name: string, help: string, each: () => Iterable<LabelledHistogram>): void {
    const full = `${PREFIX}${name}`
    this.#add('histogram', 'sum', name, help, function* () {
      for (const { labels, histogram } of each()) yield* histogram.samples(full, labels)
    })
  }

  /** In a form that can be sent to another process. */
  read(): MetricsReading {
    return [...this.#readings.values()].map((read) => read())
  }

  #add(type: string, aggregator: Across, name: string, help: string, samples: () => Iterable<Sample>): void {
    const full = `${PREFIX}${name}`
    assert(!this.#readings.has(full), `duplicate metric ${full}`)
    this.#readings.set(full, () => ({ name: full, help, type, aggregator, values: [...samples()] }))
  }
}

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Set if it differs from the metric's name: `…_bucket`. */
  readonly metricName?: string
  readonly exemplar?: Exemplar
}

/** One of the counted observations. */
interface Exemplar {
  readonly labelSet: Readonly<Record<string, string>>
  readonly value: number
  /** In seconds. */
  readonly timestamp: number
}

interface LabelledHistogram {
  readonly labels: Sample['labels']
  readonly histogram: DurationHistogram
}

/** `first`: the same in every process. */
type Across = 'sum' | 'min' | 'max' | 'first'

export type MetricsReading = readonly {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly values: readonly Sample[]
  readonly aggregator: string
}[]

/** Loads the text encoder on demand: a gateway serves before the first scrape, and workers never need it. */
export function textCode(): Promise<typeof import('prom-client')> {
  return import('prom-client')
}

/** Merges readings of several processes into a text for Prometheus. Only OpenMetrics has exemplars. */
export async function metricsText(
  readings: readonly MetricsReading[],
  type: MetricsType = METRICS_TYPE,
): Promise<string> {
  const { AggregatorRegistry, Registry } = await textCode()
  const sum: Registry<RegistryContentType> = AggregatorRegistry.aggregate(readings as unknown as object[])
  return type === METRICS_TYPE ? sum.metrics() : openMetricsText(sum, readings, new Registry())
}

/** In OpenMetrics a counter's name lacks the `_total` that its samples have. */
async function openMetricsText(
  sum: Registry<RegistryContentType>,
  readings: readonly MetricsReading[],
  registry: Registry<RegistryContentType>,
): Promise<string> {
  const exemplars = latestExemplars(readings)
  registry.setContentType(OPENMETRICS_TYPE)
  for (const metric of (await sum.getMetricsAsJSON()) as unknown as MetricsReading) {
    const name = metric.type === 'counter' ? metric.name.replace(/_total$/, '') : metric.name
    const values = metric.values.map((sample) => {
      const exemplar = exemplars.get(seriesKey(metric.name, sample))
      return exemplar === undefined ? sample : { ...sample, exemplar }
    })
    const get = async () => ({ ...metric, name, values })
    registry.registerMetric({ name, type: metric.type, get } as unknown as Metric)
  }
  return registry.metrics()
}

/** Aggregation drops exemplars, so this collects the latest one of each series. */
function latestExemplars(readings: readonly MetricsReading[]): ReadonlyMap<string, Exemplar> {
  const latest = new Map<string, Exemplar>()
  for (const { name, values } of readings.flat())
    for (const sample of values) {
      const { exemplar } = sample
      const key = seriesKey(name, sample)
      if (exemplar !== undefined && exemplar.timestamp >= (latest.get(key)?.timestamp ?? 0))
        latest.set(key, exemplar)
    }
  return latest
}

function seriesKey(name: string, { metricName, labels }: Sample): string {
  return `${metricName ?? name} ${JSON.stringify(Object.entries(labels).sort())}`
}

/** The format for an Accept header: the plain format, unless it names OpenMetrics. */
export function metricsTypeFor(accept: string | undefined): MetricsType {
  return accept !== undefined && /\bapplication\/openmetrics-text\b/i.test(accept)
    ? OPENMETRICS_TYPE
    : METRICS_TYPE
}

/** Totals of ended processes: counters stay, gauges are dropped. */
export function departed(readings: readonly MetricsReading[]): MetricsReading {
  const sums = new Map<string, { metric: MetricsReading[number]; samples: Map<string, Sample> }>()
  for (const metric of readings.flat()) {
    if (metric.type === 'gauge') continue
    const sum = sums.get(metric.name) ?? { metric, samples: new Map() }
    sums.set(metric.name, sum)
    for (const sample of metric.values) {
      const key = `${sample.metricName} ${JSON.stringify(sample.labels)}`
      const value = sample.value + (sum.samples.get(key)?.value ?? 0)
      sum.samples.set(key, { ...sample, value })
    }
  }
  return [...sums.values()].map(({ metric, samples }) => ({ ...metric, values: [...samples.values()] }))
}

export type MetricsType = typeof METRICS_TYPE | typeof OPENMETRICS_TYPE

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/**
 * Counts by labels with predefined values; any other value counts as `other`. Costs one addition on the hot
 * path.
 */
export class LabelledCounter<Name extends string = string> {
  readonly #names: readonly Name[]
  readonly #values: readonly (readonly string[])[]
  readonly #counts: Float64Array

  constructor(labels: Readonly<Record<Name, readonly string[]>>) {
    this.#names = Object.keys(labels) as Name[]
    this.#values = this.#names.map((name) => [...labels[name], OTHER])
    this.#counts = new Float64Array(this.#values.reduce((product, values) => product * values.length, 1))
  }

  /** Values in the order of the labels. */
  add(first: string, second = '', third = '', fourth = ''): void {
    const values = this.#values
    let at = position(values[0]!, first)
    if (values.length > 1) at = at * values[1]!.length + position(values[1]!, second)
    if (values.length > 2) at = at * values[2]!.length + position(values[2]!, third)
    if (values.length > 3) at = at * values[3]!.length + position(values[3]!, fourth)
    this.#counts[at]! += 1
  }

  /**
   * Samples with counts. Small tables also report zeros, so that the first event shows as an increase. Most
   * combinations of a large table never occur.
   */
  *samples(): Iterable<Sample> {
    const saysZeros = this.#counts.length <= ZEROS_MAX
    for (let at = 0; at < this.#counts.length; at++) {
      const value = this.#counts[at]!
      if (value === 0 && !saysZeros) continue
      const labels = this.#labels(at)
      if (value > 0 || !Object.values(labels).includes(OTHER)) yield { labels, value }
    }
  }

  #labels(at: number): Record<string, string> {
    const labels: Record<string, string> = {}
    let size = this.#counts.length
    for (const [i, values] of this.#values.entries()) {
      size /= values.length
      labels[this.#names[i]!] = values[Math.floor(at / size) % values.length]!
    }
    return labels
  }
}

/** Durations in buckets. Coarse buckets are enough to see whether durations get worse. */
export class DurationHistogram {
  readonly #boundsMs: readonly number[]
  readonly #counts: Float64Array
  readonly #exemplars: (Observed | null)[]
  #sumMs = 0

  constructor(boundsMs: readonly number[] = DURATION_BOUNDS_MS) {
    this.#boundsMs = boundsMs
    this.#counts = new Float64Array(boundsMs.length + 1)
    this.#exemplars = new Array<Observed | null>(boundsMs.length + 1).fill(null)
  }

  observe(durationMs: number): void {
    this.#counts[this.#bucket(durationMs)]! += 1
    this.#sumMs += durationMs
  }

  /** The same, with ids as an exemplar. Each bucket keeps one exemplar per second: the first. */
  observeAs(durationMs: number, nowMs: number, id: string, traceId: string | null): void {
    const bucket = this.#bucket(durationMs)
    this.#counts[bucket]! += 1
    this.#sumMs += durationMs
    const before = this.#exemplars[bucket]!
    if (before === null) this.#exemplars[bucket] = { id, traceId, durationMs, atMs: nowMs }
    else if (nowMs - before.atMs >= EXEMPLAR_KEPT_MS) {
      before.id = id
      before.traceId = traceId
      before.durationMs = durationMs
      before.atMs = nowMs
    }
  }

  *samples(name: string, labels: Sample['labels'] = {}): Iterable<Sample> {
    let count = 0
    for (const [bucket, boundMs] of [...this.#boundsMs, Number.POSITIVE_INFINITY].entries()) {
      count += this.#counts[bucket]!
      const le = boundMs === Number.POSITIVE_INFINITY ? '+Inf' : boundMs / 1000
      const observed = this.#exemplars[bucket]!
      yield {
        metricName: `${name}_bucket`,
        labels: { ...labels, le },
        value: count,
        ...(observed !== null && { exemplar: exemplarOf(observed) }),
      }
    }
    yield { metricName: `${name}_sum`, labels, value: this.#sumMs / 1000 }
    yield { metricName: `${name}_count`, labels, value: count }
  }

  #bucket(durationMs: number): number {
    const bounds = this.#boundsMs
    let bucket = 0
    while (bucket < bounds.length && durationMs > bounds[bucket]!) bucket++
    return bucket
  }
}

interface Observed {
  id: string
  /** `null`: not traced. */
  traceId: string | null
  durationMs: number
  atMs: number
}

function exemplarOf({ id, traceId, durationMs, atMs }: Observed): Exemplar {
  const labelSet = { decision_id: id, ...(traceId !== null && { trace_id: traceId }) }
  return { labelSet, value: durationMs / 1000, timestamp: atMs / 1000 }
}

function position(values: readonly string[], value: string): number {
  const found = values.indexOf(value)
  return found === -1 ? values.length - 1 : found
}

const PREFIX = 'gatehouse_'
const OTHER = 'other'
const ZEROS_MAX = 32
/** Scrape intervals are longer than this. */
const EXEMPLAR_KEPT_MS = 1_000
const DURATION_BOUNDS_MS = [2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000, 60_000]
