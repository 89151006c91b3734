import type { Sighting } from '../../../plane/sighting.ts'
import type { VerdictCount } from '../../../store/catalogue/trials.ts'

/** How often each verdict was reached. Agents beyond the first `DISTINCT_MAX` are counted as one. */
export class VerdictTally {
  readonly #counts = new Map<string, { verdict: string; agentId: string | null; count: number }>()

  constructor(counts: readonly VerdictCount[]) {
    for (const each of counts) this.#counts.set(keyOf(each), { ...each })
  }

  add({ verdict, agent }: Pick<Sighting, 'verdict' | 'agent'>): void {
    const said = { verdict, agentId: agent }
    const known = this.#counts.get(keyOf(said))
    if (known !== undefined) known.count++
    else if (this.#counts.size < DISTINCT_MAX) this.#counts.set(keyOf(said), { ...said, count: 1 })
    else this.#addToRest(verdict)
  }

  /** Most frequent first. */
  get counts(): readonly VerdictCount[] {
    return [...this.#counts.values()].sort((one, other) => other.count - one.count)
  }

  #addToRest(verdict: string): void {
    const rest = { verdict, agentId: OTHERS }
    const known = this.#counts.get(keyOf(rest))
    if (known === undefined) this.#counts.set(keyOf(rest), { ...rest, count: 1 })
    else known.count++
  }
}

function keyOf({ verdict, agentId }: Pick<VerdictCount, 'verdict' | 'agentId'>): string {
  return `${verdict} ${agentId ?? ''}`
}

/** Not an agent id: those contain no parentheses. */
const OTHERS = '(others)'
const DISTINCT_MAX = 32
