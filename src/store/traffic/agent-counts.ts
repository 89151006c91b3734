import { type Counts, OTHER, UNNAMED } from '../../plane/counts/buckets.ts'

/** The requests of one agent in a time span. */
export interface CountedAgent {
  readonly id: string
  readonly requests: number
  readonly blocked: number
  /** Those that proved the agent. `null`: an earlier version counted some requests of the span, without it. */
  readonly verified: number | null
}

/** The requests of all agents in a time span. */
export class AgentCounts {
  readonly #agents = new Map<string, Counts>()
  readonly #verified = new Map<string, number>()
  /** Verified requests of all agents, by their names and by their proofs. */
  #verifiedByName = 0
  #verifiedByProof = 0

  addAgent(id: string, { requests, agents, blocked }: Readonly<Counts>): void {
    if (id === OTHER || id === UNNAMED) return
    const known = this.#agents.get(id)
    if (known === undefined) this.#agents.set(id, { requests, agents, blocked })
    else {
      known.requests += requests
      known.blocked += blocked
    }
  }

  addVerifiedAgent(id: string, { requests }: Readonly<Counts>): void {
    this.#verified.set(id, (this.#verified.get(id) ?? 0) + requests)
    this.#verifiedByName += requests
  }

  addProof({ agents }: Readonly<Counts>): void {
    this.#verifiedByProof += agents
  }

  /** The agents with the most requests first. */
  sorted(): readonly CountedAgent[] {
    const isKnown = this.#verifiedByName === this.#verifiedByProof
    return [...this.#agents]
      .map(([id, { requests, blocked }]) => {
        return { id, requests, blocked, verified: isKnown ? (this.#verified.get(id) ?? 0) : null }
      })
      .sort((one, other) => other.requests - one.requests || (one.id < other.id ? -1 : 1))
  }
}
