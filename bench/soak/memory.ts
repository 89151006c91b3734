import type { SoakedGateway } from './gateway.ts'
import { descriptorsOf, residentBytesOf } from './sockets.ts'

/** What one process, or all together, needed over its life. */
export interface Series {
  readonly name: string
  readonly samples: { readonly atMs: number; readonly bytes: number }[]
}

/** Looks at the memory of each process now and then. */
export class MemoryWatch {
  readonly descriptors = new Map<number, number>()
  readonly #series = new Map<string, Series>()
  readonly #gateway: SoakedGateway
  readonly #timer: NodeJS.Timeout

  constructor(gateway: SoakedGateway) {
    this.#gateway = gateway
    this.#timer = setInterval(() => void this.#sample(), SAMPLE_MS)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  get series(): readonly Series[] {
    return [...this.#series.values()]
  }

  async #sample(): Promise<void> {
    const { pid, workers } = this.#gateway
    this.#add(`primary ${pid}, resident`, residentBytesOf(pid))
    for (const worker of workers) {
      this.#add(`worker ${worker}, resident`, residentBytesOf(worker))
      this.descriptors.set(worker, Math.max(this.descriptors.get(worker) ?? 0, descriptorsOf(worker).length))
    }
    const metrics = await this.#gateway.metrics().catch(() => null)
    if (metrics !== null) this.#add('all, JavaScript heap', metrics.sum('memory_heap_bytes'))
  }

  #add(name: string, bytes: number | null): void {
    if (bytes === null || bytes === 0) return
    const series = this.#series.get(name) ?? { name, samples: [] }
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

export function growthOf({ name, samples }: Series): Growth {
  const quarter = Math.max(1, Math.floor(samples.length / 4))
  const beforeBytes = median(samples.slice(quarter, 2 * quarter).map(({ bytes }) => bytes))
  const afterBytes = median(samples.slice(-quarter).map(({ bytes }) => bytes))
  const seconds = (samples.at(-1)!.atMs - samples[0]!.atMs) / 1000
  const isFlat = seconds < LIFE_S_MIN ? null : afterBytes <= beforeBytes * GROWTH_MAX + SLACK_BYTES
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
