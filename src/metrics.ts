import { AggregatorRegistry, type Metric, Registry } from 'prom-client'

/**
 * What a process counts, under names that start with `gatehouse_`. Whoever counts keeps plain numbers; a metric reads
 * them when somebody asks, so that counting costs an addition.
 *
 * The budget: labels have values from lists in this program or names from its configuration, never anything a client
 * sent, and all metrics together make at most 600 series and 20 more for each upstream, certificate and feed.
 */
export class Metrics {
  readonly #registry = new Registry()

  counter(name: string, help: string, samples: () => Iterable<Sample>): void {
    this.#add('counter', 'sum', name, help, samples)
  }

  /** `across`: what the values of several workers make together. */
  gauge(name: string, help: string, across: Across, samples: () => Iterable<Sample>): void {
    this.#add('gauge', across, name, help, samples)
  }

  histogram(name: string, help: string, histogram: DurationHistogram): void {
    this.#add('histogram', 'sum', name, help, () => histogram.samples(`${PREFIX}${name}`))
  }

  /** In a form that can be sent to another process. */
  async read(): Promise<MetricsReading> {
    return (await this.#registry.getMetricsAsJSON()) as unknown as MetricsReading
  }

  #add(type: string, aggregator: string, name: string, help: string, samples: () => Iterable<Sample>): void {
    const full = `${PREFIX}${name}`
    const get = async () => ({ name: full, help, type, aggregator, values: [...samples()] })
    // A registry only ever calls `get`: a metric of prom-client's own would keep a second copy of every number.
    this.#registry.registerMetric({ name: full, help, type, aggregator, get } as unknown as Metric)
  }
}

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Where it is not the metric's own: `…_bucket`. */
  readonly metricName?: string
}

/** `first`: the same everywhere. */
export type Across = 'sum' | 'min' | 'max' | 'first'

export type MetricsReading = readonly {
  readonly name: string
  readonly type: string
  readonly help: string
  readonly values: readonly Sample[]
  readonly aggregator: string
}[]

/** The readings of several processes as one, in the text form that Prometheus reads. */
export async function metricsText(readings: readonly MetricsReading[]): Promise<string> {
  return AggregatorRegistry.aggregate(readings as unknown as object[]).metrics()
}

/** Of processes that are gone: what they have counted stays counted, what they measured is over. */
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

export const METRICS_TYPE: string = Registry.PROMETHEUS_CONTENT_TYPE

/** Counts under labels whose values are known beforehand; any other value is `other`. One addition on the hot path. */
export class Tally<Name extends string = string> {
  readonly #names: readonly Name[]
  readonly #values: readonly (readonly string[])[]
  readonly #counts: Float64Array

  constructor(labels: Readonly<Record<Name, readonly string[]>>) {
    this.#names = Object.keys(labels) as Name[]
    this.#values = this.#names.map((name) => [...labels[name], OTHER])
    this.#counts = new Float64Array(this.#values.reduce((product, values) => product * values.length, 1))
  }

  /** The values in the order of the labels. */
  add(first: string, second = '', third = '', by = 1): void {
    let at = position(this.#values[0]!, first)
    if (this.#values.length > 1) at = at * this.#values[1]!.length + position(this.#values[1]!, second)
    if (this.#values.length > 2) at = at * this.#values[2]!.length + position(this.#values[2]!, third)
    this.#counts[at]! += by
  }

  /**
   * What has happened; of a small table also what has not yet, so that the first time shows as a rise. Most
   * combinations in a large one never happen.
   */
  *samples(): Iterable<Sample> {
    const saysZeros = this.#counts.length <= ZEROS_MAX
    for (const [at, value] of this.#counts.entries()) {
      const labels = this.#labels(at)
      if (value > 0 || (saysZeros && !Object.values(labels).includes(OTHER))) yield { labels, value }
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

/** How long things take, in buckets: coarse, since what is asked is whether it got worse. */
export class DurationHistogram {
  readonly #boundsMs: readonly number[]
  readonly #counts: Float64Array
  #sumMs = 0

  constructor(boundsMs: readonly number[] = DURATION_BOUNDS_MS) {
    this.#boundsMs = boundsMs
    this.#counts = new Float64Array(boundsMs.length + 1)
  }

  observe(durationMs: number): void {
    let bucket = 0
    while (bucket < this.#boundsMs.length && durationMs > this.#boundsMs[bucket]!) bucket++
    this.#counts[bucket]! += 1
    this.#sumMs += durationMs
  }

  *samples(name: string): Iterable<Sample> {
    let count = 0
    for (const [bucket, boundMs] of [...this.#boundsMs, Number.POSITIVE_INFINITY].entries()) {
      count += this.#counts[bucket]!
      const le = boundMs === Number.POSITIVE_INFINITY ? '+Inf' : boundMs / 1000
      yield { metricName: `${name}_bucket`, labels: { le }, value: count }
    }
    yield { metricName: `${name}_sum`, labels: {}, value: this.#sumMs / 1000 }
    yield { metricName: `${name}_count`, labels: {}, value: count }
  }
}

function position(values: readonly string[], value: string): number {
  const found = values.indexOf(value)
  return found === -1 ? values.length - 1 : found
}

const PREFIX = 'gatehouse_'
const OTHER = 'other'
const ZEROS_MAX = 32
const DURATION_BOUNDS_MS = [2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000, 60_000]
