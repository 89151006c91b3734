import type { Log } from '../../shared/log.ts'
import type { NumberedSighting } from '../../store/traffic/sightings.ts'
import type { Store } from '../../store/store.ts'
import { isAmong } from '../events/event-filter.ts'
import type { SinkSource } from '../events/sinks/sink.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'

interface SourceLinks {
  readonly store: Pick<Store, 'sightings'>
  readonly log: Log
  readonly counts: SinkCounts
  /** Only requests to these apps. Empty: all. */
  readonly apps: readonly string[]
}

/** The Sightings behind a position, for a sink. They wait in the database, so its retention bounds how many wait. */
export class WaitingSightings {
  readonly #links: SourceLinks
  /** What waited at the last look. */
  #before: { readonly position: number; readonly last: number; readonly rows: number } | null = null

  constructor(links: SourceLinks) {
    this.#links = links
  }

  /** How many wait behind this position. Those that were deleted since the last look are counted as lost. */
  async look(position: number): Promise<{ readonly last: number; readonly rows: number }> {
    const { store, counts, log } = this.#links
    const { first, last } = await store.sightings.stored()
    const after = Math.max(position, first - 1)
    const rows = last <= position ? 0 : await store.sightings.rowsAfter(after)
    const before = this.#before
    if (before?.position === position && before.rows > 0) {
      const left = rows - (await store.sightings.rowsAfter(Math.max(before.last, after)))
      const lost = before.rows - left
      if (lost > 0) {
        counts.lost += lost
        log.warn('requests were deleted before a sink has got them', { requests: lost })
      }
    }
    this.#before = { position, last, rows }
    counts.waiting = rows
    return { last, rows }
  }
}

/** Sightings one by one. */
export class SightingSource implements SinkSource<NumberedSighting> {
  readonly what = 'requests'
  readonly #links: SourceLinks
  readonly #waiting: WaitingSightings

  constructor(links: SourceLinks) {
    this.#links = links
    this.#waiting = new WaitingSightings(links)
  }

  async kept(): Promise<{ readonly last: number; readonly forgotten: number }> {
    return { last: (await this.#links.store.sightings.stored()).last, forgotten: 0 }
  }

  async after(position: number, limit: number): Promise<readonly NumberedSighting[]> {
    const { rows } = await this.#waiting.look(position)
    return rows === 0 ? [] : this.#links.store.sightings.after(position, limit)
  }

  numberOf({ number }: NumberedSighting): number {
    return number
  }

  atMsOf({ document }: NumberedSighting): number {
    return document.seenAtMs
  }

  isWanted({ document }: NumberedSighting): boolean {
    return isAmong(document.app, this.#links.apps)
  }

  /** The sink counts Sightings itself. */
  sizeOf(): number {
    return 0
  }

  onAdded(): () => void {
    return () => undefined
  }
}
