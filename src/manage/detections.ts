import type { Ja4Type } from '../classify/fingerprint-form.ts'

/** What somebody was held for, and by which fingerprints, where they are known. */
export interface Judged extends Readonly<Record<Ja4Type, string | null>> {
  readonly verdict: string
  readonly agentId: string | null
}

/**
 * The newest answers of `/detect`, by the id of the request: an operator may say that one was wrong. In memory, and
 * nothing of it but what was held of whom and by which fingerprints.
 */
export class RecentDetections {
  #newest = new Map<string, Judged>()
  #older = new Map<string, Judged>()

  /** Callers choose the ids of their requests: of two that have chosen one the later is remembered. */
  keep(requestId: string, judged: Judged): void {
    if (this.#newest.size >= KEPT_MIN) {
      this.#older = this.#newest
      this.#newest = new Map()
    }
    this.#newest.set(requestId, judged)
  }

  find(requestId: string): Judged | null {
    return this.#newest.get(requestId) ?? this.#older.get(requestId) ?? null
  }
}

/** And twice as many at most: some ten megabytes. */
const KEPT_MIN = 10_000
