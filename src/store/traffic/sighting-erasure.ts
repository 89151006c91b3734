import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { WantedAddresses } from '../../plane/privacy/address-form.ts'
import { isOneOf } from '../engine/arrays.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import { lockUntilCommit } from '../engine/locks.ts'
import type { Tables } from '../engine/tables.ts'
import { PART_SIZE, SightingParts } from './sighting-parts.ts'

/** The rows that an erasure removed from a table; in a dry run, those that it would remove. */
export type ErasedRows = ReadonlyMap<'sightings' | 'traffic_outbox' | 'requests' | Ja4hTable, number>
type Ja4hTable = (typeof JA4H_TABLES)[number]

/** Deletes the Sightings of some addresses, and the JA4H that end with hashes of their cookies. */
export class SightingErasure {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind
  readonly #parts: SightingParts

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
    this.#parts = new SightingParts(db)
  }

  /** Yields what each slice of the work removed. */
  async *erase(wanted: WantedAddresses, isDry: boolean): AsyncGenerator<ErasedRows> {
    const counted = new Set<string>()
    for (const { number: part } of await this.#parts.all()) {
      let after: number | null = part * PART_SIZE - 1
      while (after !== null) {
        const from: number = after
        const slice = await this.#db.transaction().execute(async (queries) => {
          if (!isDry) await lockUntilCommit(queries, this.#kind, 'sightings')
          return this.#slice(wanted, { part, after: from, counted, isDry }, queries)
        })
        after = slice.next
        yield slice.erased
      }
    }
  }

  async #slice(wanted: WantedAddresses, { part, after, counted, isDry }: ErasedSlice, queries: Queries) {
    const rows = await queries
      .selectFrom('sightings')
      .innerJoin('sighting_profiles', 'sighting_profiles.id', 'sightings.profile')
      .select(['sightings.number', 'sightings.address', 'sightings.ja4h_cookies', 'sighting_profiles.ja4h'])
      .where(sql<boolean>`(sightings.number >> 16) = ${part}`)
      // Names the partition in PostgreSQL.
      .where('sightings.number', '>', after)
      .where('sightings.number', '<', (part + 1) * PART_SIZE)
      .where(isInRanges(wanted))
      .orderBy('sightings.number')
      .limit(ROWS)
      .execute()
    const found = rows.filter(({ address }) => wanted.has(address))
    const erased = new Map<'sightings' | Ja4hTable, number>([['sightings', found.length]])
    if (found.length > 0) {
      const ja4h = found.flatMap((row) =>
        row.ja4h === null || row.ja4h_cookies === null ? [] : [`${row.ja4h}_${row.ja4h_cookies}`],
      )
      const fresh = ja4h.filter((value) => !counted.has(value))
      if (counted.size > COUNTED_MAX) counted.clear()
      for (const value of fresh) counted.add(value)
      for (const [table, count] of await forgetJa4h(fresh, isDry, queries)) erased.set(table, count)
      if (!isDry)
        await queries
          .deleteFrom('sightings')
          .where('number', '>', after)
          .where('number', '<=', found.at(-1)!.number)
          .where(
            isOneOf(
              'number',
              found.map(({ number }) => number),
              queries,
              'bigint',
            ),
          )
          .execute()
    }
    return { erased, next: rows.length < ROWS ? null : rows.at(-1)!.number }
  }
}

interface ErasedSlice {
  readonly part: number
  readonly after: number
  /** The JA4H of earlier slices, so that a dry run counts each once. */
  readonly counted: Set<string>
  readonly isDry: boolean
}

/** Deletes what is kept of these JA4H. Writers hold the lock of Sightings. */
export async function forgetJa4h(
  values: readonly string[],
  isDry: boolean,
  queries: Queries,
): Promise<ReadonlyMap<Ja4hTable, number>> {
  const isWanted = isOneOf('value', [...new Set(values)], queries)
  const erased = new Map<Ja4hTable, number>()
  for (const table of JA4H_TABLES) {
    const { count } = await queries
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('type', '=', 'ja4h')
      .where(isWanted)
      .executeTakeFirstOrThrow()
    erased.set(table, Number(count))
    if (!isDry && Number(count) > 0)
      await queries.deleteFrom(table).where('type', '=', 'ja4h').where(isWanted).execute()
  }
  return erased
}

function isInRanges({ keys }: WantedAddresses): RawBuilder<boolean> {
  const each = keys.map(([first, last]) => sql`address_key between ${first} and ${last}`)
  return sql<boolean>`(${sql.join(each, sql` or `)})`
}

/** Takes a few milliseconds. */
const ROWS = 1_000
const COUNTED_MAX = 10_000
const JA4H_TABLES = ['fingerprints_seen', 'feedback_fingerprints'] as const
