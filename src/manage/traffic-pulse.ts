import type { Sighting } from '../plane/sighting.ts'

/** What this process has taken in within a second or so. */
export interface Traffic {
  readonly requests: number
  readonly by_verdict: Readonly<Record<string, number>>
  /** What was done. */
  readonly by_action: Readonly<Record<string, number>>
  readonly by_category: Readonly<Record<string, number>>
  /** Those with the most requests. */
  readonly agents: readonly { readonly id: string; readonly requests: number }[]
}

/** Tells once a second how much traffic there is, while somebody listens: then it is counted, and nothing is kept. */
export class TrafficPulse {
  readonly #everyMs: number
  readonly #waiting = new Set<(traffic: Traffic | null) => void>()
  #listeners = 0
  #beat: NodeJS.Timeout | null = null
  #counts = new Counts()

  constructor(everyMs = EVERY_MS) {
    this.#everyMs = everyMs
  }

  /** They are in the database. */
  add(batch: readonly Sighting[]): void {
    if (this.#beat !== null) for (const sighting of batch) this.#counts.add(sighting)
  }

  /** Until `stop`. Whoever does not read in time is told of a later second. */
  async *follow(stop: AbortSignal): AsyncGenerator<Traffic, void, undefined> {
    this.#listeners++
    this.#beat ??= setInterval(() => this.#tell(), this.#everyMs).unref()
    try {
      for (;;) {
        const traffic = await this.#next(stop)
        if (traffic === null) return
        yield traffic
      }
    } finally {
      if (--this.#listeners === 0) this.#end()
    }
  }

  #tell(): void {
    const traffic = this.#counts.read()
    this.#counts = new Counts()
    for (const resolve of this.#waiting) resolve(traffic)
  }

  #next(stop: AbortSignal): Promise<Traffic | null> {
    if (stop.aborted) return Promise.resolve(null)
    return new Promise((resolve) => {
      const end = (traffic: Traffic | null) => {
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
  readonly #agents = new Map<string, number>()

  add({ verdict, done, category, agent }: Sighting): void {
    this.#requests++
    increase(this.#verdicts, verdict)
    increase(this.#actions, done)
    if (category !== null) increase(this.#categories, category)
    if (agent !== null) increase(this.#agents, agent)
  }

  read(): Traffic {
    const most = [...this.#agents].sort(([, one], [, other]) => other - one).slice(0, AGENTS_MAX)
    return {
      requests: this.#requests,
      by_verdict: Object.fromEntries(this.#verdicts),
      by_action: Object.fromEntries(this.#actions),
      by_category: Object.fromEntries(this.#categories),
      agents: most.map(([id, requests]) => ({ id, requests })),
    }
  }
}

/** However many names there are, few are kept. */
function increase(counts: Map<string, number>, name: string): void {
  const count = counts.get(name)
  if (count !== undefined || counts.size < NAMES_MAX) counts.set(name, (count ?? 0) + 1)
}

const EVERY_MS = 1_000
const AGENTS_MAX = 10
const NAMES_MAX = 1_000
