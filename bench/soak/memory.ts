import { setTimeout as wait } from 'node:timers/promises'
import type { SoakedGateway } from './gateway.ts'
import { descriptorsOf, residentBytesOf } from './sockets.ts'

/** What one process, or all together, needed over its life. */
export interface Series {
  readonly name: string
  readonly samples: Sample[]
  /** What it may grow by beside a share of what it has. */
  readonly slackBytes: number
}

interface Sample {
  readonly atMs: number
  readonly bytes: number
}

/** Looks at the memory of each process now and then, over a soak of some seconds. */
export class MemoryWatch {
  readonly descriptors = new Map<number, number>()
  readonly #series = new Map<string, Series>()
  readonly #gateway: SoakedGateway
  readonly #timer: NodeJS.Timeout
  readonly #atQuarter: Promise<Sample>

  constructor(gateway: SoakedGateway, seconds: number) {
    this.#gateway = gateway
    this.#timer = setInterval(() => void this.#sample(), SAMPLE_MS)
    this.#atQuarter = wait((seconds * 1000) / 4, null, { ref: false }).then(() => this.#live())
    this.#atQuarter.catch(() => undefined) // `stop` hears of it
  }

  /** Returns what has become of everything. */
  async stop(): Promise<readonly Growth[]> {
    clearInterval(this.#timer)
    const growths = [...this.#series.values()].map(growthOf)
    const [before, after] = [await this.#atQuarter, await this.#live()]
    const seconds = (after.atMs - before.atMs) / 1000
    const isFlat = seconds < LIVE_S_MIN ? null : after.bytes <= before.bytes + LIVE_SLACK_BYTES
    const live = {
      name: 'primary, in use',
      seconds,
      beforeBytes: before.bytes,
      afterBytes: after.bytes,
      isFlat,
    }
    return [live, ...growths]
  }

  /** Asked for twice and not more: what is collected for it never grows. */
  async #live(): Promise<Sample> {
    return { atMs: Date.now(), bytes: await this.#gateway.primaryLiveBytes() }
  }

  async #sample(): Promise<void> {
    const { pid, workers } = this.#gateway
    this.#add(`primary ${pid}, resident`, residentBytesOf(pid), PRIMARY_SLACK_BYTES)
    for (const worker of workers) {
      this.#add(`worker ${worker}, resident`, residentBytesOf(worker))
      this.descriptors.set(worker, Math.max(this.descriptors.get(worker) ?? 0, descriptorsOf(worker).length))
    }
    const metrics = await this.#gateway.metrics().catch(() => null)
    if (metrics !== null) this.#add('all, JavaScript heap', metrics.sum('memory_heap_bytes'))
  }

  #add(name: string, bytes: number | null, slackBytes = SLACK_BYTES): void {
    if (bytes === null || bytes === 0) return
    const series = this.#series.get(name) ?? { name, samples: [], slackBytes }
    this.#series.set(name, series)
    series.samples.push({ atMs: Date.now(), bytes })
  }
}

/** The second quarter of a life, when all has been warmed up, against the last. */
export interface Growth {
  readonly name: string
  readonly seconds: number
  readonly beforeBytes: number
  readonly afterBytes: number
  /** `null` where the life was too short to say. */
  readonly isFlat: boolean | null
}

function growthOf({ name, samples, slackBytes }: Series): Growth {
  const quarter = Math.max(1, Math.floor(samples.length / 4))
  const beforeBytes = median(samples.slice(quarter, 2 * quarter).map(({ bytes }) => bytes))
  const afterBytes = median(samples.slice(-quarter).map(({ bytes }) => bytes))
  const seconds = (samples.at(-1)!.atMs - samples[0]!.atMs) / 1000
  const isFlat = seconds < LIFE_S_MIN ? null : afterBytes <= beforeBytes * GROWTH_MAX + slackBytes
  return { name, seconds, beforeBytes, afterBytes, isFlat }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

const SAMPLE_MS = 1000
/** Before that, everything grows. */
const LIFE_S_MIN = 240
const GROWTH_MAX = 1.1
const SLACK_BYTES = 8 * 1024 * 1024
/**
 * The primary does so little that its young generation, three times 16 MiB, is not yet full when a soak of ten minutes
 * ends; that of a worker is within seconds. Whether the primary keeps anything, what it has in use says.
 */
const PRIMARY_SLACK_BYTES = 48 * 1024 * 1024
/** It differs by less than 1 MiB from time to time, with the metrics of workers and code that has been compiled. */
const LIVE_SLACK_BYTES = 2 * 1024 * 1024
const LIVE_S_MIN = 180
