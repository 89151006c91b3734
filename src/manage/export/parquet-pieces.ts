import type { Log } from '../../shared/log.ts'
import type { PositionHolder } from '../../store/events/event-positions.ts'
import type { Store } from '../../store/store.ts'
import type { SinkSource } from '../events/sinks/sink.ts'
import type { SinkCounts } from '../events/sinks/sink-metrics.ts'
import { WaitingSightings } from './sighting-source.ts'

/** The Sightings with numbers above `after` up to `last`, which are written to files together. */
export interface SightingPiece {
  readonly after: number
  readonly last: number
  /** When the first of them was seen. */
  readonly seenAtMs: number
}

export interface PieceSettings {
  /** A piece ends when its first Sighting has waited so long, or with so many of them. */
  readonly everyMs: number
  readonly rowsMax: number
}

interface PieceLinks {
  readonly store: Pick<Store, 'sightings' | 'eventPositions'>
  readonly log: Log
  readonly counts: SinkCounts
  readonly holder: PositionHolder
  nowMs(): number
}

/**
 * The pieces in which Sightings are written to files. The end of a piece is stored before it is written. So a process that
 * continues after a crash writes the same files again.
 */
export class ParquetPieces implements SinkSource<SightingPiece> {
  readonly what = 'requests'
  readonly #settings: PieceSettings
  readonly #links: PieceLinks
  readonly #waiting: WaitingSightings
  /** Since when Sightings behind this position are known to wait. */
  #since: { readonly position: number; readonly atMs: number } | null = null

  constructor(settings: PieceSettings, links: PieceLinks) {
    this.#settings = settings
    this.#links = links
    this.#waiting = new WaitingSightings({ ...links, apps: [] })
  }

  async kept(): Promise<{ readonly last: number; readonly forgotten: number }> {
    return { last: (await this.#links.store.sightings.stored()).last, forgotten: 0 }
  }

  async after(position: number): Promise<readonly SightingPiece[]> {
    const { store, holder, nowMs } = this.#links
    const { everyMs, rowsMax } = this.#settings
    const { last, rows } = await this.#waiting.look(position)
    const planned = await store.eventPositions.planned(holder.name)
    // A restored backup may be older than its plan.
    if (planned > position && planned <= last) return this.#piece(position, planned)
    if (rows === 0) {
      this.#since = null
      return []
    }
    if (this.#since?.position !== position) this.#since = { position, atMs: nowMs() }
    if (rows < rowsMax && nowMs() - this.#since.atMs < everyMs) return []
    const places = await store.sightings.placesAfter(position, last, rowsMax)
    const end = places.at(-1)?.number ?? last
    if (!(await store.eventPositions.plan(holder, end))) return []
    return this.#piece(position, end)
  }

  numberOf({ last }: SightingPiece): number {
    return last
  }

  atMsOf({ seenAtMs }: SightingPiece): number {
    return seenAtMs
  }

  isWanted(): boolean {
    return true
  }

  /** The sink counts Sightings itself. */
  sizeOf(): number {
    return 0
  }

  onAdded(): () => void {
    return () => undefined
  }

  async #piece(after: number, last: number): Promise<readonly SightingPiece[]> {
    const [first] = await this.#links.store.sightings.placesAfter(after, last, 1)
    return [{ after, last, seenAtMs: first?.seenAtMs ?? this.#links.nowMs() }]
  }
}
