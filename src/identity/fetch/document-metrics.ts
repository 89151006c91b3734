import { type Metrics, LabelledCounter } from '../../shared/metrics.ts'
import type { FetchReason } from './guarded-get.ts'

/**
 * The kinds of documents: of an agent or a client, key directories, the key sets that they name, metadata of
 * an OpenID provider and, for the proxy, key directories of request signers, cards, registries of cards, and the
 * address ranges that cards name.
 */
export type DocumentName = (typeof DOCUMENTS)[number]
export type FetchOutcome = 'fetched' | 'busy' | 'malformed' | FetchReason
/** `stale`: the server did not return the document again. `none`: there is no usable document. */
export type DocumentOrigin = (typeof ORIGINS)[number]

/** Metrics about fetched documents. They contain no URLs, because third parties choose those. */
export class DocumentMetrics {
  readonly #fetches = new LabelledCounter({ document: DOCUMENTS, outcome: OUTCOMES })
  readonly #uses = new LabelledCounter({ document: DOCUMENTS, origin: ORIGINS })
  readonly #ages = new Map(DOCUMENTS.map((document) => [document, new OldestAge()]))

  fetched(document: DocumentName, outcome: FetchOutcome): void {
    this.#fetches.add(document, outcome)
  }

  /** `ageMs`: time since it was fetched. */
  used(document: DocumentName, origin: DocumentOrigin, ageMs: number, nowMs: number): void {
    this.#uses.add(document, origin)
    if (origin !== 'none') this.#ages.get(document)!.saw(ageMs, nowMs)
  }

  addTo(metrics: Metrics, nowMs: () => number = Date.now): void {
    const fetches = 'Fetches of documents of agents and clients, by outcome.'
    metrics.counter('document_fetches_total', fetches, () => this.#fetches.samples())
    const uses = 'Uses of a document of an agent or client, by its source.'
    metrics.counter('document_uses_total', uses, () => this.#uses.samples())
    const age = 'The age of the oldest document used in the last five to ten minutes.'
    metrics.gauge('document_age_seconds', age, 'max', () =>
      [...this.#ages].map(([document, oldest]) => ({
        labels: { document },
        value: oldest.atMs(nowMs()) / 1000,
      })),
    )
  }
}

/** The largest age in the last minutes, whichever document it is and however often it is used. */
class OldestAge {
  #startMs = Number.NEGATIVE_INFINITY
  #currentMs = 0
  #beforeMs = 0

  saw(ageMs: number, nowMs: number): void {
    this.#turn(nowMs)
    this.#currentMs = Math.max(this.#currentMs, ageMs)
  }

  atMs(nowMs: number): number {
    this.#turn(nowMs)
    return Math.max(this.#currentMs, this.#beforeMs)
  }

  #turn(nowMs: number): void {
    const passedMs = Math.abs(nowMs - this.#startMs)
    if (passedMs < WINDOW_MS) return
    this.#beforeMs = passedMs < 2 * WINDOW_MS ? this.#currentMs : 0
    this.#currentMs = 0
    this.#startMs = nowMs
  }
}

const DOCUMENTS = ['identity', 'keys', 'openid', 'directory', 'card', 'registry', 'ranges'] as const
const OUTCOMES: readonly FetchOutcome[] = [
  'fetched',
  'busy',
  'malformed',
  'address',
  'redirect',
  'status',
  'too-large',
  'timeout',
  'network',
]
const ORIGINS = ['fetched', 'remembered', 'stale', 'none'] as const
const WINDOW_MS = 300_000
