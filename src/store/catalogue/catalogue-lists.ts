import { type Kysely, type RawBuilder, sql } from 'kysely'
import { JA4_TYPES, type Ja4Type, partLengths } from '../../classify/known/fingerprint-form.ts'
import type { Category, Purpose, SoftwareKind } from '../../classify/known/software.ts'
import { purposeInText, purposesAndVendorIn } from '../../classify/known/software-document.ts'
import type { CatalogueKey } from './catalogue.ts'
import type { Queries } from '../engine/database.ts'
import {
  cutOff,
  inOrderOf,
  isBehind,
  noPart,
  type Order,
  type OrderColumn,
  type Page,
  type PageOf,
  type Part,
  type PartOf,
  partOf,
  type Stretch,
  type StretchOf,
} from '../engine/page.ts'
import type { Tables } from '../engine/tables.ts'
import { type KnownSignature, knownIn, knownSignature, seenOnly } from './known-signature.ts'
import { VersionTally } from './version-tally.ts'

export interface SignatureFilter {
  readonly type: Ja4Type | null
  /** Only fingerprints on live traffic that have no owner. */
  readonly unknownOnly: boolean
  /** `false`: none that is known only from live traffic. */
  readonly isObservedToo?: boolean
  readonly softwareId: string | null
  /** The start of a fingerprint or of one of its parts, or text in the owner's names or description. */
  readonly text: string | null
  readonly confidenceMin: number
  readonly sort: SignatureSort
}

export interface SignatureSort {
  readonly by: 'fingerprint' | 'first_seen' | 'confidence' | 'observations'
  readonly isDescending: boolean
}

export interface ListedAgent {
  readonly id: string
  readonly name: string
  readonly category: Category | null
  readonly purposes: readonly Purpose[]
  readonly vendor: string | null
  readonly kind: SoftwareKind
  readonly description: string | null
  readonly firstSeenMs: number
  readonly lastSeenMs: number | null
}

/** An agent on live traffic. */
interface AgentSeen {
  readonly lastSeenMs: number
  readonly requests: number
  /** The versions that clients claimed, ranked by requests and recency. */
  readonly versions: readonly string[]
}

interface AgentFilter {
  readonly category: Category | null
  readonly purpose: Purpose | null
  /** Text in its names or description. */
  readonly text: string | null
  /** Seen on live traffic since then. */
  readonly seenSinceMs: number | null
  /** Only these. */
  readonly ids: readonly string[] | null
}

/** Some fingerprints of each type. */
export type FingerprintLists = Readonly<Record<Ja4Type, readonly string[]>>

/** Lists of the catalogue, to browse. */
export class CatalogueLists {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Ordered by id. */
  async agents<Asked extends Part>(
    { category, purpose, text, seenSinceMs, ids }: AgentFilter,
    part: Asked,
  ): Promise<PartOf<ListedAgent, Asked>> {
    if (ids?.length === 0) return noPart(part)
    let found = this.#db
      .selectFrom('software')
      .leftJoin('agents_seen', 'agents_seen.software_id', 'software.id')
      .where('software.kind', '=', 'agent')
    if (category !== null) found = found.where('software.category', '=', category)
    if (purpose !== null) found = found.where(contains('software.document', purposeInText(purpose)))
    if (text !== null) found = found.where(contains('software.search', text.toLowerCase()))
    if (seenSinceMs !== null) found = found.where('agents_seen.last_seen_ms', '>=', seenSinceMs)
    if (ids !== null) found = found.where('software.id', 'in', ids)
    const rows = found
      .select(['software.id', 'software.name', 'software.category', 'software.kind'])
      .select(['software.description', 'software.first_seen_ms', 'agents_seen.last_seen_ms'])
      .select('software.document')
    return partOf(found, rows, BY_ID, part, (row) => ({
      id: row.id,
      name: row.name,
      category: row.category,
      ...purposesAndVendorIn(row.document),
      kind: row.kind,
      description: row.description,
      firstSeenMs: row.first_seen_ms,
      lastSeenMs: row.last_seen_ms,
    }))
  }

  /** The active signatures of each id, up to `max` of each type. */
  async fingerprintsOf(ids: readonly string[], max: number): Promise<ReadonlyMap<string, FingerprintLists>> {
    const lists = new Map(ids.map((id) => [id, emptyLists()]))
    for (let at = 0; at < ids.length; at += OWNERS_AT_ONCE) {
      const queries = ids.slice(at, at + OWNERS_AT_ONCE).flatMap((id) =>
        JA4_TYPES.map(
          (type) => sql`select * from (
            select software_id, type, value from signatures
            where software_id = ${id} and type = ${type} and status = 'active'
            order by value limit ${max}) as ${sql.ref(`of${type}`)}`,
        ),
      )
      const { rows } = await sql<{ software_id: string; type: Ja4Type; value: string }>`${sql.join(
        queries,
        sql` union all `,
      )}`.execute(this.#db)
      for (const { software_id, type, value } of rows) lists.get(software_id)![type].push(value)
    }
    return lists
  }

  /** An agent's live traffic; `null`: never seen. */
  async agentSeen(id: string): Promise<AgentSeen | null> {
    const row = await this.#db
      .selectFrom('agents_seen')
      .select(['last_seen_ms', 'requests', 'versions'])
      .where('software_id', '=', id)
      .executeTakeFirst()
    if (row === undefined) return null
    const { last_seen_ms: lastSeenMs, requests, versions } = row
    return { lastSeenMs, requests, versions: VersionTally.parse(versions).list }
  }

  /** Does not include retired signatures, which are deleted. */
  async signatures<Asked extends Part>(
    filter: SignatureFilter,
    part: Asked,
  ): Promise<PartOf<KnownSignature, Asked>> {
    return filter.unknownOnly ? this.#unknown(filter, part) : this.#known(filter, part)
  }

  /** The signatures with these keys that exist, in the same order. */
  byKeys(keys: readonly CatalogueKey[], queries: Queries): Promise<readonly KnownSignature[]> {
    const rows = keys.map(({ type, value, softwareId }) => ({ type, value, software_id: softwareId }))
    return this.#withAll(rows, queries)
  }

  async #known<Asked extends Part>(
    filter: SignatureFilter,
    part: Asked,
  ): Promise<PartOf<KnownSignature, Asked>> {
    const { type, softwareId, text, confidenceMin, isObservedToo = true, sort } = filter
    const from = text === null ? sql`signatures` : about(text, type === null ? JA4_TYPES : [type])
    const conditions: RawBuilder<unknown>[] = []
    if (text !== null)
      conditions.push(sql`signatures.type = found.type and signatures.value = found.value
        and signatures.software_id = found.software_id`)
    if (type !== null) conditions.push(isOfType(type, filter))
    if (softwareId !== null) conditions.push(sql`signatures.software_id = ${softwareId}`)
    if (confidenceMin > 0) conditions.push(sql`signatures.confidence >= ${confidenceMin}`)
    if (!isObservedToo) conditions.push(sql`signatures.source <> 'observed'`)
    const order = orderOf(KNOWN, sort)
    const answer =
      'page' in part
        ? await (text === null
            ? this.#page(from, conditions, order, part)
            : this.#pageOfFew(from, conditions, order, part))
        : await this.#stretch(from, conditions, order, part)
    return { ...answer, items: await this.#withAll(answer.items) } as unknown as PartOf<KnownSignature, Asked>
  }

  async #page(
    from: RawBuilder<unknown>,
    conditions: readonly RawBuilder<unknown>[],
    order: Order,
    { page, limit }: Page,
  ): Promise<PageOf<Key>> {
    const where = allOf(conditions)
    const counted = await sql<{ rows: number }>`select count(*) as rows from ${from} ${where}`.execute(
      this.#db,
    )
    const total = Number(counted.rows[0]!.rows)
    const offset = (page - 1) * limit
    if (offset >= total) return { items: [], total }
    const { rows } = await sql<Key>`
      select signatures.type, signatures.value, signatures.software_id from ${from} ${where}
      order by ${inOrderOf(order)} limit ${limit} offset ${offset}`.execute(this.#db)
    return { items: rows, total }
  }

  /** Runs the search of `about` once, for both the page and the total. */
  async #pageOfFew(
    from: RawBuilder<unknown>,
    conditions: readonly RawBuilder<unknown>[],
    order: Order,
    asked: Page,
  ): Promise<PageOf<Key>> {
    const { page, limit } = asked
    const { rows } = await sql<Key & { total: number }>`
      select signatures.type, signatures.value, signatures.software_id, count(*) over () as total
      from ${from} ${allOf(conditions)}
      order by ${inOrderOf(order)} limit ${limit} offset ${(page - 1) * limit}`.execute(this.#db)
    const [first] = rows
    // A page past the end has no row with the total.
    if (first === undefined && page > 1) return this.#page(from, conditions, order, asked)
    return { items: rows, total: Number(first?.total ?? 0) }
  }

  async #stretch(
    from: RawBuilder<unknown>,
    conditions: readonly RawBuilder<unknown>[],
    order: Order,
    { after, limit }: Stretch,
  ): Promise<StretchOf<Key>> {
    const where = allOf(after === null ? conditions : [...conditions, isBehind(order, after)])
    const columns = new Set([...KEY_COLUMNS, ...order.columns].map(({ name }) => name))
    const { rows } = await sql<Key>`
      select ${sql.join([...columns].map((name) => sql.ref(name)))} from ${from} ${where}
      order by ${inOrderOf(order)} limit ${limit + 1}`.execute(this.#db)
    return cutOff(rows, order, limit)
  }

  /** In the same order. */
  async #withAll(keys: readonly Key[], queries: Queries = this.#db): Promise<readonly KnownSignature[]> {
    if (keys.length === 0) return []
    const rows = await knownIn(queries)
      .where(
        sql<boolean>`(signatures.type, signatures.value, signatures.software_id) in (values ${sql.join(
          keys.map(({ type, value, software_id }) => sql`(${type}, ${value}, ${software_id})`),
        )})`,
      )
      .execute()
    const byKey = new Map(rows.map((row) => [[row.type, row.value, row.software_id].join(' '), row]))
    return keys.flatMap(({ type, value, software_id }) => {
      const row = byKey.get([type, value, software_id].join(' '))
      return row === undefined ? [] : [knownSignature(row)]
    })
  }

  /** Fingerprints on live traffic that no active signature matches, with or without wildcards. */
  async #unknown<Asked extends Part>(
    filter: SignatureFilter,
    part: Asked,
  ): Promise<PartOf<KnownSignature, Asked>> {
    const { type, softwareId, text, confidenceMin, sort } = filter
    // These have no agent and no confidence.
    if (softwareId !== null || confidenceMin > 0) return noPart(part)
    let found = this.#db.selectFrom('fingerprints_seen').where(unnamed)
    if (type !== null) found = found.where('type', '=', type)
    if (text !== null) found = found.where(startsWith('fingerprints_seen.value', text))
    return partOf(found, found.selectAll(), orderOf(UNKNOWN, sort), part, seenOnly)
  }
}

interface Key {
  readonly type: Ja4Type
  readonly value: string
  readonly software_id: string
}

interface Sortable {
  readonly key: readonly OrderColumn[]
  readonly sorts: Readonly<Partial<Record<SignatureSort['by'], OrderColumn>>>
}

function orderOf({ key, sorts }: Sortable, { by, isDescending }: SignatureSort): Order {
  const first = sorts[by]
  return { columns: first === undefined ? key : [first, ...key], isDescending }
}

function allOf(conditions: readonly RawBuilder<unknown>[]): RawBuilder<unknown> {
  return conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`
}

/**
 * SQLite overestimates how selective a type is. The concatenation makes it use the index of the sort order.
 */
function isOfType(type: Ja4Type, { softwareId, text, sort }: SignatureFilter): RawBuilder<unknown> {
  const isByOrder = softwareId === null && text === null && sort.by !== 'fingerprint'
  return isByOrder ? sql`signatures.type || '' = ${type}` : sql`signatures.type = ${type}`
}

/**
 * Finds signatures that start with the text, that have a part which does, or whose owner matches it. Each
 * search uses an index. The `cross join` keeps SQLite from reordering the join.
 */
function about(text: string, types: readonly Ja4Type[]): RawBuilder<unknown> {
  // Ordered along an index, so that the limit always keeps the same rows.
  const beginning = types.flatMap((type) =>
    [['value'], ['part_b', 'part_c', 'value'], ['part_c', 'value']].map((columns) => {
      const order = [...columns, 'software_id'].map((column) => sql.ref(`like_it.${column}`))
      return sql`select * from (select type, value, software_id from signatures as like_it
        where type = ${type} and ${startsWith(`like_it.${columns[0]}`, text)}
        order by ${sql.join(order)} limit ${ABOUT_MAX}) as few`
    }),
  )
  const owned = sql`select * from (
    select type, value, software_id from signatures as theirs where software_id in (
    select id from (select id from software where ${contains('software.search', text.toLowerCase())}
    order by id limit ${OWNERS_FOUND_MAX}) as owners)
    order by software_id, type, value limit ${ABOUT_MAX}) as few`
  return sql`(${sql.join([...beginning, owned], sql` union `)}) as found
    cross join signatures`
}

/** Escapes the text, so that it is not a pattern. */
function contains(column: string, text: string): RawBuilder<boolean> {
  const pattern = `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
  return sql<boolean>`${sql.ref(column)} like ${pattern} escape '\\'`
}

/** Uses an index if the column has one. */
function startsWith(column: string, text: string): RawBuilder<boolean> {
  return sql<boolean>`${sql.ref(column)} >= ${text} and ${sql.ref(column)} < ${text + LAST_CHARACTER}`
}

function emptyLists(): Record<Ja4Type, string[]> {
  return { ja4: [], ja4s: [], ja4h: [], ja4x: [] }
}

/** No active signature matches this fingerprint, also not with whole parts as `*`. */
const unnamed = sql<boolean>`not exists (${sql.join(
  JA4_TYPES.map(
    (type) => sql`select 1 from signatures as named
      where fingerprints_seen.type = ${sql.lit(type)} and named.type = ${sql.lit(type)}
      and named.value in (${sql.join(starredInSql(type))})
      and named.software_id <> '' and named.status = 'active'`,
  ),
  sql` union all `,
)})`

/** All forms of the fingerprint in `fingerprints_seen.value`, with and without stars. */
function starredInSql(type: Ja4Type): readonly RawBuilder<string>[] {
  const lengths = partLengths(type)
  const all = 2 ** lengths.length - 1
  return Array.from({ length: all }, (_, starred) => {
    let at = 1
    const parts = lengths.map((length, index) => {
      const from = at
      at += length + 1
      return (starred & (1 << index)) !== 0
        ? sql`'*'`
        : sql`substr(fingerprints_seen.value, ${sql.lit(from)}, ${sql.lit(length)})`
    })
    return sql<string>`${sql.join(parts, sql` || '_' || `)}`
  })
}

const BY_ID: Order = { columns: [{ name: 'software.id', kind: 'text' }], isDescending: false }
const KEY_COLUMNS: readonly OrderColumn[] = [
  { name: 'signatures.type', kind: 'text' },
  { name: 'signatures.value', kind: 'text' },
  { name: 'signatures.software_id', kind: 'text' },
]
/** The column that precedes the key in each sort order. */
const KNOWN: Sortable = {
  key: KEY_COLUMNS,
  sorts: {
    first_seen: { name: 'signatures.first_seen_ms', kind: 'whole' },
    confidence: { name: 'signatures.confidence', kind: 'number' },
    observations: { name: 'signatures.observations', kind: 'whole' },
  },
}
const UNKNOWN: Sortable = {
  key: [
    { name: 'fingerprints_seen.type', kind: 'text' },
    { name: 'fingerprints_seen.value', kind: 'text' },
  ],
  sorts: {
    first_seen: { name: 'fingerprints_seen.first_seen_ms', kind: 'whole' },
    observations: { name: 'fingerprints_seen.requests', kind: 'whole' },
  },
}
/** The limit for each kind of match. A longer text finds the rest. */
const ABOUT_MAX = 2_000
/** The limit for matching owners. A more specific text finds the rest. */
const OWNERS_FOUND_MAX = 100
/** SQLite allows 500 queries in one statement. */
const OWNERS_AT_ONCE = 100
/** The highest code point. */
const LAST_CHARACTER = '\u{10ffff}'
