import { LRUCache } from 'lru-cache'
import type { Fingerprint } from '../store/trials.ts'

/** What somebody was held for, and by which fingerprints. */
export interface Judged {
  readonly verdict: string
  readonly agentId: string | null
  readonly fingerprints: readonly Fingerprint[]
}

/**
 * The newest answers of `/detect`, by the id of the request: an operator may say that one was wrong. In memory, and
 * nothing of it but what was held of whom and by which fingerprints.
 */
export class RecentDetections {
  readonly #judged = new LRUCache<string, Judged>({ max: KEPT_MAX })

  /** Callers choose the ids of their requests: of two that have chosen one the later is remembered. */
  keep(requestId: string, judged: Judged): void {
    this.#judged.set(requestId, judged)
  }

  find(requestId: string): Judged | null {
    return this.#judged.get(requestId) ?? null
  }
}

/** Some five megabytes. */
const KEPT_MAX = 10_000
