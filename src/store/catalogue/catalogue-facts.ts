import { type Kysely, sql } from 'kysely'
import { JA4_TYPES, type Ja4Type } from '../../classify/known/fingerprint-form.ts'
import type { Tables } from '../engine/tables.ts'

/** The owners of a fingerprint, by active signatures. */
export interface FingerprintOwners {
  /** The most observed owners, up to a limit. */
  readonly most: readonly FingerprintOwner[]
  readonly count: number
  /** The sum of all owners' observations, plus one for each owner. */
  readonly observed: number
}

interface FingerprintOwner {
  readonly id: string
  readonly name: string
  readonly observations: number
}

export interface SoftwareFacts {
  /** The entry in a signature file, as JSON. */
  readonly document: string
  /** On live traffic. */
  readonly requests: number
  readonly lastSeenMs: number | null
  readonly fingerprints: readonly FingerprintCount[]
}

/** The number of active signatures of one type. */
export interface FingerprintCount {
  readonly type: Ja4Type
  readonly count: number
  /** `false`: there may be more. */
  readonly isAll: boolean
  /** The highest confidence among those counted. */
  readonly confidenceMax: number
}

/** Facts about list entries. Takes the same few queries for any number of entries. */
export class CatalogueFacts {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** The owners of each fingerprint that has one. */
  async owners(type: Ja4Type, values: readonly string[]): Promise<ReadonlyMap<string, FingerprintOwners>> {
    if (values.length === 0) return new Map()
    const { rows } = await sql<OwnerRow>`
      select value, id, name, observations, owners, observed from (
        select value, software_id as id, coalesce(software.name, software_id) as name, observations,
          row_number() over (partition by value order by observations desc, software_id) as place,
          count(*) over (partition by value) as owners,
          sum(observations + 1) over (partition by value) as observed
        from signatures left join software on software.id = signatures.software_id
        where type = ${type} and value in (${sql.join(values)}) and status = 'active'
      ) as owned where place <= ${OWNERS_MAX} order by value, place`.execute(this.#db)
    const found = Map.groupBy(rows, ({ value }) => value)
    return new Map(
      [...found].map(([value, most]) => [
        value,
        { most, count: Number(most[0]!.owners), observed: Number(most[0]!.observed) },
      ]),
    )
  }

  /** Facts about each software that exists. Counts up to `max` of its fingerprints of each type. */
  async software(ids: readonly string[], max: number): Promise<ReadonlyMap<string, SoftwareFacts>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#db
      .selectFrom('software')
      .leftJoin('agents_seen', 'agents_seen.software_id', 'software.id')
      .select(['software.id', 'document', 'agents_seen.requests', 'agents_seen.last_seen_ms'])
      .where('software.id', 'in', ids)
      .execute()
    const counts = await this.#counts(ids, max)
    return new Map(
      rows.map(({ id, document, requests, last_seen_ms: lastSeenMs }) => [
        id,
        { document, requests: requests ?? 0, lastSeenMs, fingerprints: counts.get(id) ?? [] },
      ]),
    )
  }

  /** Each count uses an index and stops at `max`. */
  async #counts(ids: readonly string[], max: number): Promise<ReadonlyMap<string, FingerprintCount[]>> {
    const counts = new Map<string, FingerprintCount[]>()
    for (let at = 0; at < ids.length; at += SOFTWARE_AT_ONCE) {
      const queries = ids.slice(at, at + SOFTWARE_AT_ONCE).flatMap((id) =>
        JA4_TYPES.map(
          (type) => sql`select ${id} as id, ${type} as type, count(*) as count, max(confidence) as confidence
            from (select confidence from signatures where software_id = ${id} and type = ${type}
            and status = 'active' order by value limit ${max}) as ${sql.ref(`of${type}`)}`,
        ),
      )
      const { rows } = await sql<CountRow>`${sql.join(queries, sql` union all `)}`.execute(this.#db)
      for (const { id, type, count, confidence } of rows) {
        if (confidence === null) continue
        const known = counts.get(id) ?? []
        known.push({ type, count: Number(count), isAll: Number(count) < max, confidenceMax: confidence })
        counts.set(id, known)
      }
    }
    return counts
  }
}

interface OwnerRow extends FingerprintOwner {
  readonly value: string
  readonly owners: number
  readonly observed: number
}

interface CountRow {
  readonly id: string
  readonly type: Ja4Type
  readonly count: number
  readonly confidence: number | null
}

/** Owners beyond these are only counted. */
const OWNERS_MAX = 5
/** SQLite allows 500 queries in one statement. */
const SOFTWARE_AT_ONCE = 100
