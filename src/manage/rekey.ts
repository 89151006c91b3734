import { setTimeout as wait } from 'node:timers/promises'
import { Fault } from '../shared/fault.ts'
import type { SealedRow } from '../store/engine/sealed-values.ts'
import { SEALED_BY } from '../store/work/settings.ts'
import type { Store } from '../store/store.ts'
import { SEALED_COLUMNS, type SealedPlace } from './sealed-columns.ts'
import { type Sealer, sealedPrefix } from './auth/sealer.ts'

export interface RekeyOptions {
  /** Looks, and changes nothing. */
  readonly isDry: boolean
  /** Told after each batch. */
  progress(done: number, all: number): void
}

export interface RekeyReport {
  /** The key that everything is encrypted with now. */
  readonly keyId: string
  readonly tables: readonly RekeyedTable[]
  /** Why values stayed as they were; the first of them. */
  readonly problems: readonly string[]
}

export interface RekeyedTable {
  readonly table: string
  /** Values in all. */
  readonly total: number
  /** With another key before. In a dry run, those that would be encrypted anew. */
  readonly rekeyed: number
  /** That stayed as they were: they cannot be decrypted. */
  readonly failed: number
}

/**
 * Encrypts every secret in the database with the first key of the ring. Managers may run meanwhile: a value that one of
 * them changes is left to it, and looked at again in the next round. What is done is done, so that it may be stopped
 * and begun again.
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

/** One column. */
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

  /** A manager that has not read the new keys yet may write with an old one meanwhile. */
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
        // Others wait for a database that one writes at a time.
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

  /** `null`: it cannot be, and why is kept. */
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
/** The last one finds nothing but what cannot be decrypted. */
const ROUNDS_MAX = 5
const PROBLEMS_MAX = 20
/** Of one table. */
const PROBLEMS_COUNTED_MAX = 100_000
