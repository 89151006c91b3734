import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../shared/fault.ts'
import type { SealedRow } from '../store/engine/sealed-values.ts'
import { SEALED_BY } from '../store/work/settings.ts'
import type { Store } from '../store/store.ts'
import { SEALED_COLUMNS, type SealedPlace } from './sealed-columns.ts'
import { type Sealer, sealedPrefix } from './auth/sealer.ts'

interface RekeyOptions {
  /** Only counts, and changes nothing. */
  readonly isDry: boolean
  /** Called after each batch. */
  progress(done: number, all: number): void
}

export interface RekeyReport {
  /** The id of the key that now encrypts everything. */
  readonly keyId: string
  readonly tables: readonly RekeyedTable[]
  /** The first reasons why values could not be re-encrypted. */
  readonly problems: readonly string[]
}

interface RekeyedTable {
  readonly table: string
  /** The number of values. */
  readonly total: number
  /** Values that had another key. In a dry run, those that would be re-encrypted. */
  readonly rekeyed: number
  /** Values that stayed unchanged because they cannot be decrypted. */
  readonly failed: number
}

/**
 * Encrypts every secret in the database with the first key of the ring. Managers may run at the same time: a
 * value that a manager changes is skipped and checked again in the next round. Each batch is final, so the
 * command can be interrupted and repeated.
 */
export async function rekey(store: Store, sealer: Sealer, options: RekeyOptions): Promise<RekeyReport> {
  const [keyId] = (await sealer.keyIds()) as readonly [string, ...string[]]
  const totals = await Promise.all(SEALED_COLUMNS.map((place) => store.sealedValues.count(place)))
  const all = totals.reduce((sum, total) => sum + total, 0)
  const problems: string[] = []
  const tables: RekeyedTable[] = []
  let looked = 0
  for (const [index, place] of SEALED_COLUMNS.entries()) {
    const work = new Rekeying(store, sealer, place, sealedPrefix(keyId))
    const progress = () => options.progress(looked + work.rekeyed, all)
    if (options.isDry) await work.look()
    else await work.run(progress)
    looked += totals[index]!
    problems.push(...work.problems.values())
    const { rekeyed, problems: failed } = work
    tables.push({ table: place.table, total: totals[index]!, rekeyed, failed: failed.size })
  }
  if (!options.isDry) await store.settings.put(SEALED_BY, keyId, null, Date.now())
  return { keyId, tables, problems: problems.slice(0, PROBLEMS_MAX) }
}

/** The work on one column. */
class Rekeying {
  rekeyed = 0
  /** By record. */
  readonly problems = new Map<string, string>()
  readonly #store: Store
  readonly #sealer: Sealer
  readonly #place: SealedPlace
  readonly #prefix: string

  constructor(store: Store, sealer: Sealer, place: SealedPlace, prefix: string) {
    this.#store = store
    this.#sealer = sealer
    this.#place = place
    this.#prefix = prefix
  }

  async look(): Promise<void> {
    for await (const rows of this.#batches()) {
      const opened = await Promise.all(rows.map((row) => this.#opened(row)))
      this.rekeyed += opened.filter((each) => each !== null).length
    }
  }

  /** Repeats until nothing changes: a manager with outdated keys may still write with an old one. */
  async run(progress: () => void): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round++) {
      this.problems.clear()
      const before = this.rekeyed
      for await (const rows of this.#batches()) {
        const changes = await Promise.all(rows.map((row) => this.#change(row)))
        this.rekeyed += await this.#store.sealedValues.replace(
          this.#place,
          changes.filter((each) => each !== null),
        )
        progress()
        // Only one process can write to SQLite at a time, so this lets others write.
        await wait(PAUSE_MS)
      }
      if (this.rekeyed === before) return
    }
  }

  async *#batches(): AsyncGenerator<readonly SealedRow[]> {
    let after: SealedRow['key'] | null = null
    for (;;) {
      const rows: readonly SealedRow[] = await this.#store.sealedValues.others(
        this.#place,
        this.#prefix,
        after,
        BATCH,
      )
      if (rows.length === 0) return
      yield rows
      after = rows.at(-1)!.key
    }
  }

  async #change(from: SealedRow): Promise<{ readonly from: SealedRow; readonly to: string } | null> {
    const text = await this.#opened(from)
    return text === null ? null : { from, to: await this.#sealer.seal(text, this.#place.sealedAs(from.row)) }
  }

  /** `null`: the value cannot be decrypted. The reason is added to `problems`. */
  async #opened({ row, sealed }: SealedRow): Promise<string | null> {
    const name = this.#place.sealedAs(row)
    try {
      return (await this.#sealer.open(sealed, name)).reveal()
    } catch (error) {
      if (!(error instanceof Fault) || error.code === 'SEAL_KEY_UNUSABLE') throw error
      if (this.problems.size < PROBLEMS_COUNTED_MAX)
        this.problems.set(name, `${this.#place.table}: ${error.message}`)
      return null
    }
  }
}

const BATCH = 100
const PAUSE_MS = 5
/** The last round only finds values that cannot be decrypted. */
const ROUNDS_MAX = 5
const PROBLEMS_MAX = 20
/** Per table. */
const PROBLEMS_COUNTED_MAX = 100_000
