import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { type Buckets, OTHER, UNNAMED, UNPUBLISHED } from '../../plane/counts/buckets.ts'
import type { RollupTally } from '../../plane/counts/rollup-tally.ts'
import { storedJson } from '../../store/engine/stored.ts'
import type { TrafficStore } from '../../store/traffic/traffic.ts'
import type { TrafficSample } from './traffic.ts'

/**
 * Reports the traffic once a second. A single process counts only while it has listeners. If there are other
 * processes, each one writes the counts of its last second to the database, and one with listeners also reads
 * those of the others.
 */
export class TrafficPulse {
  readonly #everyMs: number
  readonly #process = randomUUID()
  readonly #waiting = new Set<(traffic: TrafficSample | null) => void>()
  #shared: TrafficStore | null = null
  #listeners = 0
  #beat: NodeJS.Timeout | null = null
  #telling: Promise<void> | null = null
  #counts = new Counts()
  /** When each of the other processes last wrote, by its own clock; `null`: not read yet. */
  #heard: ReadonlyMap<string, number> | null = null

  constructor(everyMs = EVERY_MS) {
    this.#everyMs = everyMs
  }

  /** Call it if there are, or will be, other processes. */
  share(shared: TrafficStore): void {
    this.#shared = shared
    this.#begin()
  }

  /** Call it with requests whose counts were stored. */
  add(tally: RollupTally): void {
    if (this.#beat !== null) for (const { buckets } of tally.minutes()) this.#counts.add(buckets)
  }

  /** Runs until `stop`. A listener that does not read in time skips to a later second. */
  async *follow(stop: AbortSignal): AsyncGenerator<TrafficSample, void, undefined> {
    this.#listeners++
    this.#begin()
    try {
      for (;;) {
        const traffic = await this.#next(stop)
        if (traffic === null) return
        yield traffic
      }
    } finally {
      if (--this.#listeners === 0 && this.#shared === null) this.#end()
    }
  }

  /** Resolves when no work is in progress. */
  async close(): Promise<void> {
    this.#end()
    await this.#telling
  }

  #begin(): void {
    this.#beat ??= setInterval(() => {
      // A slow database gets one query at a time. The next report then covers more than a second.
      this.#telling ??= this.#tell().finally(() => {
        this.#telling = null
      })
    }, this.#everyMs).unref()
  }

  async #tell(): Promise<void> {
    const own = this.#counts
    this.#counts = new Counts()
    const all = this.#shared === null ? own : await this.#withOthers(own, this.#shared).catch(() => own)
    const traffic = all.read(AGENTS_MAX)
    for (const resolve of this.#waiting) resolve(traffic)
  }

  async #withOthers(own: Counts, shared: TrafficStore): Promise<Counts> {
    const atMs = Date.now()
    if (own.requests > 0)
      await shared.put({ process: this.#process, atMs, document: JSON.stringify(own.read(AGENTS_SHARED)) })
    if (this.#listeners === 0) {
      this.#heard = null
      return own
    }
    const before = this.#heard
    const others = await shared.ofOthers(this.#process, atMs - CLOCKS_APART_MS)
    this.#heard = new Map(others.map(({ process, atMs }) => [process, atMs]))
    const all = new Counts()
    all.addAll(own.read(AGENTS_SHARED))
    for (const { process, atMs, document } of others)
      if (before !== null && before.get(process) !== atMs)
        all.addAll(trafficSchema.parse(storedJson(document)))
    return all
  }

  #next(stop: AbortSignal): Promise<TrafficSample | null> {
    if (stop.aborted) return Promise.resolve(null)
    return new Promise((resolve) => {
      const end = (traffic: TrafficSample | null) => {
        this.#waiting.delete(end)
        stop.removeEventListener('abort', gone)
        resolve(traffic)
      }
      const gone = () => end(null)
      stop.addEventListener('abort', gone)
      this.#waiting.add(end)
    })
  }

  #end(): void {
    if (this.#beat !== null) clearInterval(this.#beat)
    this.#beat = null
    this.#counts = new Counts()
  }
}

class Counts {
  #requests = 0
  readonly #verdicts = new Map<string, number>()
  readonly #actions = new Map<string, number>()
  readonly #categories = new Map<string, number>()
  readonly #purposes = new Map<string, number>()
  readonly #agents = new Map<string, number>()

  get requests(): number {
    return this.#requests
  }

  add({ total, verdict, action, category, purpose, agent }: Buckets): void {
    for (const { requests } of total.values()) this.#requests += requests
    increaseAll(this.#verdicts, verdict)
    increaseAll(this.#actions, action)
    increaseAll(this.#categories, category)
    increaseAll(this.#purposes, purpose)
    for (const [id, { requests }] of agent)
      if (id !== UNNAMED && id !== OTHER) increase(this.#agents, id, requests)
  }

  addAll({ requests, by_verdict, by_action, by_category, by_purpose, agents }: TrafficSample): void {
    this.#requests += requests
    for (const [verdict, count] of Object.entries(by_verdict)) increase(this.#verdicts, verdict, count)
    for (const [action, count] of Object.entries(by_action)) increase(this.#actions, action, count)
    for (const [category, count] of Object.entries(by_category)) increase(this.#categories, category, count)
    for (const [purpose, count] of Object.entries(by_purpose)) increase(this.#purposes, purpose, count)
    for (const { id, requests: count } of agents) increase(this.#agents, id, count)
  }

  read(agentsMax: number): TrafficSample {
    const most = [...this.#agents].sort(([, one], [, other]) => other - one).slice(0, agentsMax)
    return {
      requests: this.#requests,
      by_verdict: Object.fromEntries(this.#verdicts),
      by_action: Object.fromEntries(this.#actions),
      by_category: Object.fromEntries(this.#categories),
      by_purpose: Object.fromEntries(this.#purposes),
      agents: most.map(([id, requests]) => ({ id, requests })),
    }
  }
}

/** Requests without a name are not listed. */
function increaseAll(sums: Map<string, number>, bucket: Buckets['total']): void {
  for (const [name, { requests }] of bucket)
    if (name !== UNNAMED && name !== UNPUBLISHED) increase(sums, name, requests)
}

/** Limits the number of distinct names, which clients influence. */
function increase(counts: Map<string, number>, name: string, by = 1): void {
  const count = counts.get(name)
  if (count !== undefined || counts.size < NAMES_MAX) counts.set(name, (count ?? 0) + by)
}

const count = z.int().min(0)
const counts = z.record(z.string(), count)
const trafficSchema: z.ZodType<TrafficSample> = z.object({
  requests: count,
  by_verdict: counts,
  by_action: counts,
  by_category: counts,
  // An earlier version in another process does not send it.
  by_purpose: counts.default({}),
  agents: z.array(z.object({ id: z.string(), requests: count })),
})
const EVERY_MS = 1_000
const AGENTS_MAX = 10
/** Per process. It is larger than `AGENTS_MAX`, so that the busiest agents overall are among them. */
const AGENTS_SHARED = 100
const NAMES_MAX = 1_000
/** Counts that are older than this are ignored. The margin allows for differences between clocks. */
const CLOCKS_APART_MS = 60_000
