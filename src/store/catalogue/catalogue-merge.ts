import { type Kysely, sql } from 'kysely'
import { type SignatureRow, type SoftwareRow, weighAnew } from './catalogue.ts'
import type { DatabaseKind, Queries } from '../engine/database.ts'
import type { SoftwareNameTable } from '../engine/tables/catalogue.ts'
import type { Tables } from '../engine/tables.ts'

/** Everything in the files. Each list is sorted by its key, byte by byte. */
export interface CatalogueRows {
  readonly software: Iterable<SoftwareRow>
  readonly names: Iterable<SoftwareNameTable>
  readonly signatures: Iterable<SignatureRow>
}

interface MergeSettings {
  /** The hash of the files. */
  readonly hash: string
  readonly nowMs: number
  /** Awaited after each transaction. */
  pause(): Promise<void>
}

export interface MergeCounts {
  readonly put: number
  readonly dropped: number
}

/**
 * Makes the tables equal to the files. Uses short transactions with pauses, so that other writers can
 * proceed. If the process is killed, the next merge continues from what is stored. Rows from the API
 * and from live traffic are kept.
 */
export class CatalogueMerge {
  readonly #db: Kysely<Tables>
  readonly #kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.#db = db
    this.#kind = kind
  }

  /** The hash of the files that the tables equal; `null` before the first merge. */
  async hash(): Promise<string | null> {
    const row = await this.#db.selectFrom('catalogue_state').select('hash').executeTakeFirst()
    return row?.hash ?? null
  }

  async merge(rows: CatalogueRows, how: MergeSettings): Promise<MergeCounts> {
    if (this.#kind === 'postgres') {
      const counts = await this.#merge(rows, how)
      // PostgreSQL reads a grown table page by page until it has new statistics.
      if (counts.put + counts.dropped >= MANY) await sql`analyze signatures`.execute(this.#db)
      return counts
    }
    // No one waits for the disk during a merge. Rows that a crash loses are merged again.
    await sql`pragma synchronous = normal`.execute(this.#db)
    await sql`pragma cache_size = ${sql.lit(-CACHE_KIB)}`.execute(this.#db)
    try {
      return await this.#merge(rows, how)
    } finally {
      await sql`pragma synchronous = full`.execute(this.#db)
      await sql`pragma cache_size = ${sql.lit(-CACHE_KIB_ELSE)}`.execute(this.#db)
    }
  }

  async #merge(rows: CatalogueRows, { hash, nowMs, pause }: MergeSettings): Promise<MergeCounts> {
    const db = this.#db
    const counts = { put: 0, dropped: 0 }
    await new Walk(db, SOFTWARE, counts, pause).run(rows.software)
    await new Walk(db, NAMES, counts, pause).run(rows.names)
    await new Walk(db, SIGNATURES, counts, pause).run(rows.signatures)
    await this.#weighAnew(pause) // always, because an earlier merge may have been killed here
    const state = { hash, merged_at_ms: nowMs }
    await db
      .insertInto('catalogue_state')
      .values({ id: 1, ...state })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(state))
      .execute()
    return counts
  }

  /** Recalculates fingerprints to which the API added an owner, because the files do not know that owner. */
  async #weighAnew(pause: () => Promise<void>): Promise<void> {
    let last = { type: '', value: '' }
    for (;;) {
      const some = await this.#db
        .selectFrom('signatures')
        .select(['type', 'value'])
        .distinct()
        .where(sql<boolean>`source <> 'builtin'`)
        .where(sql<boolean>`(type, value) > (${last.type}, ${last.value})`)
        .orderBy('type')
        .orderBy('value')
        .limit(WRITTEN_AT_ONCE)
        .execute()
      if (some.length === 0) return
      last = some.at(-1)!
      await this.#db.transaction().execute(async (queries) => {
        for (const { type, value } of some) await weighAnew(type, value, queries)
      })
      await pause()
    }
  }
}

/** A table whose rows come from files, with exceptions. */
interface MergedTable<Row> {
  /** The rows that come from files, ordered by key. */
  after(last: Row | null, queries: Queries): Promise<readonly Row[]>
  compare(one: Row, other: Row): number
  isSame(stored: Row, wanted: Row): boolean
  put(rows: Row[], queries: Queries): Promise<void>
  drop(rows: readonly Row[], queries: Queries): Promise<void>
}

/** Walks the stored and the wanted rows in parallel, and writes only the differences. */
class Walk<Row> {
  readonly #db: Kysely<Tables>
  readonly #table: MergedTable<Row>
  readonly #counts: { put: number; dropped: number }
  readonly #pause: () => Promise<void>
  #page: readonly Row[] | null = null
  #at = 0
  #puts: Row[] = []
  #drops: Row[] = []

  constructor(
    db: Kysely<Tables>,
    table: MergedTable<Row>,
    counts: { put: number; dropped: number },
    pause: () => Promise<void>,
  ) {
    this.#db = db
    this.#table = table
    this.#counts = counts
    this.#pause = pause
  }

  async run(wanted: Iterable<Row>): Promise<void> {
    const table = this.#table
    for (const row of wanted) {
      let stored = await this.#stored()
      for (; stored !== null && table.compare(stored, row) < 0; stored = await this.#stored())
        await this.#drop(stored)
      const isThere = stored !== null && table.compare(stored, row) === 0
      if (isThere) this.#at++
      if (!isThere || !table.isSame(stored!, row)) await this.#put(row)
    }
    for (let stored = await this.#stored(); stored !== null; stored = await this.#stored())
      await this.#drop(stored)
    await this.#write()
  }

  /** The next stored row; `null` after the last. */
  async #stored(): Promise<Row | null> {
    if (this.#page !== null && this.#at < this.#page.length) return this.#page[this.#at]!
    if (this.#page !== null && this.#page.length < READ_AT_ONCE) return null
    this.#page = await this.#table.after(this.#page?.at(-1) ?? null, this.#db)
    this.#at = 0
    return this.#page[0] ?? null
  }

  async #put(row: Row): Promise<void> {
    this.#puts.push(row)
    this.#counts.put++
    if (this.#puts.length + this.#drops.length >= WRITTEN_AT_ONCE) await this.#write()
  }

  async #drop(row: Row): Promise<void> {
    this.#at++
    this.#drops.push(row)
    this.#counts.dropped++
    if (this.#puts.length + this.#drops.length >= WRITTEN_AT_ONCE) await this.#write()
  }

  async #write(): Promise<void> {
    const puts = this.#puts
    const drops = this.#drops
    if (puts.length + drops.length === 0) return
    this.#puts = []
    this.#drops = []
    await this.#db.transaction().execute(async (queries) => {
      if (drops.length > 0) await this.#table.drop(drops, queries)
      if (puts.length > 0) await this.#table.put(puts, queries)
    })
    await this.#pause()
  }
}

const SOFTWARE: MergedTable<SoftwareRow> = {
  after: (last, queries) =>
    queries
      .selectFrom('software')
      .selectAll()
      .where('origin', '<>', 'api')
      .where('id', '>', last?.id ?? '')
      .orderBy('id')
      .limit(READ_AT_ONCE)
      .execute(),
  compare: (one, other) => compareBytes(one.id, other.id),
  isSame: (stored, wanted) =>
    stored.name === wanted.name &&
    stored.kind === wanted.kind &&
    stored.category === wanted.category &&
    stored.description === wanted.description &&
    stored.search === wanted.search &&
    stored.document === wanted.document &&
    stored.origin === wanted.origin &&
    stored.first_seen_ms === wanted.first_seen_ms,
  put: async (rows, queries) => {
    await queries
      .insertInto('software')
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('id').doUpdateSet(({ ref }) => ({
          name: ref('excluded.name'),
          kind: ref('excluded.kind'),
          category: ref('excluded.category'),
          description: ref('excluded.description'),
          search: ref('excluded.search'),
          document: ref('excluded.document'),
          origin: ref('excluded.origin'),
          first_seen_ms: ref('excluded.first_seen_ms'),
        })),
      )
      .execute()
  },
  // Software that signatures of the API refer to is kept, as if the API had created it.
  drop: async (rows, queries) => {
    const ids = rows.map(({ id }) => id)
    const kept = await queries
      .selectFrom('signatures')
      .select('software_id')
      .distinct()
      .where('software_id', 'in', ids)
      .where(sql<boolean>`source <> 'builtin'`)
      .execute()
    const isKept = new Set(kept.map(({ software_id }) => software_id))
    if (isKept.size > 0)
      await queries
        .updateTable('software')
        .set({ origin: 'api' })
        .where('id', 'in', [...isKept])
        .execute()
    const dropped = ids.filter((id) => !isKept.has(id))
    if (dropped.length > 0) await queries.deleteFrom('software').where('id', 'in', dropped).execute()
  },
}

const NAMES: MergedTable<SoftwareNameTable> = {
  after: (last, queries) =>
    queries
      .selectFrom('software_names')
      .leftJoin('software', 'software.id', 'software_names.software_id')
      .selectAll('software_names')
      .where(({ or, eb }) => or([eb('software.origin', 'is', null), eb('software.origin', '<>', 'api')]))
      .where('software_names.name', '>', last?.name ?? '')
      .orderBy('software_names.name')
      .limit(READ_AT_ONCE)
      .execute(),
  compare: (one, other) => compareBytes(one.name, other.name),
  isSame: (stored, wanted) => stored.software_id === wanted.software_id,
  put: async (rows, queries) => {
    await queries
      .insertInto('software_names')
      .values(rows)
      .onConflict((conflict) =>
        conflict.column('name').doUpdateSet(({ ref }) => ({ software_id: ref('excluded.software_id') })),
      )
      .execute()
  },
  drop: async (rows, queries) => {
    const names = rows.map(({ name }) => name)
    await queries.deleteFrom('software_names').where('name', 'in', names).execute()
  },
}

const SIGNATURES: MergedTable<SignatureRow> = {
  after: (last, queries) =>
    queries
      .selectFrom('signatures')
      .selectAll()
      .where('source', '=', 'builtin')
      .where(
        sql<boolean>`(type, value, software_id) > (${last?.type ?? ''}, ${last?.value ?? ''}, ${last?.software_id ?? ''})`,
      )
      .orderBy('type')
      .orderBy('value')
      .orderBy('software_id')
      .limit(READ_AT_ONCE)
      .execute(),
  // These values are ASCII.
  compare: (one, other) =>
    compare(one.type, other.type) ||
    compare(one.value, other.value) ||
    compare(one.software_id, other.software_id),
  isSame: (stored, wanted) =>
    stored.observations === wanted.observations &&
    stored.confidence === wanted.confidence &&
    stored.first_seen_ms === wanted.first_seen_ms &&
    stored.provenance === wanted.provenance &&
    stored.is_decisive === wanted.is_decisive &&
    stored.status === wanted.status,
  // Rows of the API are kept.
  put: async (rows, queries) => {
    await queries
      .insertInto('signatures')
      .values(rows)
      .onConflict((conflict) =>
        conflict
          .columns(['type', 'value', 'software_id'])
          .doUpdateSet(({ ref }) => ({
            status: ref('excluded.status'),
            source: ref('excluded.source'),
            provenance: ref('excluded.provenance'),
            first_seen_ms: ref('excluded.first_seen_ms'),
            observations: ref('excluded.observations'),
            confidence: ref('excluded.confidence'),
            is_decisive: ref('excluded.is_decisive'),
          }))
          .where('signatures.source', '=', 'builtin'),
      )
      .execute()
  },
  drop: async (rows, queries) => {
    const keys = rows.map(({ type, value, software_id }) => sql`(${type}, ${value}, ${software_id})`)
    await queries
      .deleteFrom('signatures')
      .where('source', '=', 'builtin')
      .where(sql<boolean>`(type, value, software_id) in (values ${sql.join(keys)})`)
      .execute()
  },
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** Compares bytes, as both databases do. JavaScript compares UTF-16 units, which sort differently. */
export function compareBytes(one: string, other: string): number {
  return one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other))
}

/** The rows of a million signatures are spread over all index pages. SQLite's default cache is 2 MiB. */
const CACHE_KIB = 65_536
const CACHE_KIB_ELSE = 2_000
/** Fewer rows do not change PostgreSQL's statistics much. */
const MANY = 1_000
/** Takes a millisecond. */
const READ_AT_ONCE = 500
/** Takes some three milliseconds, during which SQLite has no other writer. */
const WRITTEN_AT_ONCE = 100
