import { LRUCache } from 'lru-cache'
import { type Metrics, Tally } from '../metrics.ts'
import type { Finding, Inquiry, Investigator, SignatureUse } from './inquiry.ts'
import type { KeyDirectories } from './key-directories.ts'
import { ReplayMemory } from './replay-memory.ts'

/** Finds out what addresses are. */
export interface PlaceFinder {
  /** Never rejects. `null`: it cannot be found out now. */
  find(address: string): Promise<(Finding & { readonly kind: 'place' }) | null>
  close(): void
}

export interface InvestigationParts {
  readonly directories: KeyDirectories
  /** `null`: nobody asks. */
  readonly places: PlaceFinder | null
  nowMs(): number
}

/**
 * Finds out what workers ask, in the one process that all of them have, and tells all of them what came of it. Nobody
 * waits for it on the way of a request.
 */
export class Investigations implements Investigator {
  readonly #parts: InvestigationParts
  readonly #replays = new ReplayMemory()
  readonly #underWay = new Set<string>()
  readonly #known = new LRUCache<string, Finding>({ max: KNOWN_MAX })
  readonly #claims = new Tally({ outcome: CLAIMS })
  #listener: (finding: Finding) => void = () => undefined

  constructor(parts: InvestigationParts) {
    this.#parts = parts
  }

  onFinding(listener: (finding: Finding) => void): void {
    this.#listener = listener
  }

  /** What is known by now: for who comes later. */
  known(): readonly Finding[] {
    const nowMs = this.#parts.nowMs()
    return [...this.#known.values()].filter(({ untilMs }) => untilMs > nowMs)
  }

  ask(inquiry: Inquiry): void {
    const key = keyOf(inquiry)
    if (this.#underWay.has(key) || this.#underWay.size >= UNDER_WAY_MAX) return
    this.#underWay.add(key)
    void this.#find(inquiry).then((finding) => {
      this.#underWay.delete(key)
      if (finding === null) return
      this.#known.set(subjectOf(finding), finding)
      this.#listener(finding)
    })
  }

  async claim(use: SignatureUse): Promise<boolean> {
    const isTaken = this.#replays.claim(use, this.#parts.nowMs())
    this.#claims.add(isTaken ? 'taken' : 'refused')
    return isTaken
  }

  /** What is under way is given up. */
  close(): void {
    this.#listener = () => undefined
    this.#parts.directories.close()
    this.#parts.places?.close()
  }

  addMetrics(metrics: Metrics): void {
    const replays = this.#replays
    const uses = 'Signatures that are remembered, so that none is used twice.'
    metrics.gauge('signature_uses_remembered', uses, 'sum', () => [{ labels: {}, value: replays.size }])
    const floors = 'Uses that were forgotten before their time; of their keys, nothing older is taken.'
    metrics.counter('signature_uses_forgotten_total', floors, () => [
      { labels: {}, value: replays.floorsRaised },
    ])
    const claims = 'Right signatures, by whether they were used before.'
    metrics.counter('signature_uses_total', claims, () => this.#claims.samples())
    const known = 'Agents whose keys are known, and addresses of which it is known what they are.'
    metrics.gauge('investigations_known', known, 'sum', () => {
      const kinds = [...this.#known.values()].map(({ kind }) => kind)
      return (['keys', 'place'] as const).map((kind) => {
        return { labels: { kind }, value: kinds.filter((each) => each === kind).length }
      })
    })
  }

  #find(inquiry: Inquiry): Promise<Finding | null> {
    const { directories, places } = this.#parts
    return inquiry.kind === 'keys'
      ? directories.find(inquiry)
      : (places?.find(inquiry.address) ?? Promise.resolve(null))
  }
}

function keyOf(inquiry: Inquiry): string {
  return inquiry.kind === 'keys'
    ? `keys ${inquiry.agentId} ${inquiry.thumbprint}`
    : `place ${inquiry.address}`
}

function subjectOf(finding: Finding): string {
  return finding.kind === 'keys' ? `keys ${finding.agentId}` : `place ${finding.address}`
}

const CLAIMS = ['taken', 'refused'] as const
/** What is more is asked for again when it is met again. */
const UNDER_WAY_MAX = 256
const KNOWN_MAX = 4_000
