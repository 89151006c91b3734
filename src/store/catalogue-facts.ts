import { type Kysely, sql } from 'kysely'
import { JA4_TYPES, type Ja4Type } from '../classify/fingerprint-form.ts'
import type { Tables } from './tables.ts'

/** Whose a fingerprint is, by signatures that judge. */
export interface Owners {
  /** The most observed of them, some. */
  readonly most: readonly Owner[]
  readonly count: number
  /** Each as often as it was observed, and once more. */
  readonly observed: number
}

export interface Owner {
  readonly id: string
  readonly name: string
  readonly observations: number
}

export interface SoftwareFacts {
  /** As a file of signatures has it, in JSON. */
  readonly document: string
  /** On live traffic. */
  readonly requests: number
  readonly lastSeenMs: number | null
  readonly fingerprints: readonly FingerprintCount[]
}

/** Of one type, signatures that judge. */
export interface FingerprintCount {
  readonly type: Ja4Type
  /** To `COUNTED_MAX`. */
  readonly count: number
  /** Of those that were counted. */
  readonly confidenceMax: number
}

/** What is known beside what is listed: the same few queries however many it is asked of. */
export class CatalogueFacts {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  /** Of those that somebody has. */
  async owners(type: Ja4Type, values: readonly string[]): Promise<ReadonlyMap<string, Owners>> {
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

  /** Of those that there are. */
  async software(ids: readonly string[]): Promise<ReadonlyMap<string, SoftwareFacts>> {
    if (ids.length === 0) return new Map()
    const rows = await this.#db
      .selectFrom('software')
      .leftJoin('agents_seen', 'agents_seen.software_id', 'software.id')
      .select(['software.id', 'document', 'agents_seen.requests', 'agents_seen.last_seen_ms'])
      .where('software.id', 'in', ids)
      .execute()
    const counts = await this.#counts(ids)
    return new Map(
      rows.map(({ id, document, requests, last_seen_ms: lastSeenMs }) => [
        id,
        { document, requests: requests ?? 0, lastSeenMs, fingerprints: counts.get(id) ?? [] },
      ]),
    )
  }

  /** In the order of the types. */
  async #counts(ids: readonly string[]): Promise<ReadonlyMap<string, readonly FingerprintCount[]>> {
    const counts = new Map<string, FingerprintCount[]>()
    for (const type of JA4_TYPES) {
      // Each by an index, and none for longer than it takes to count so many.
      const { rows } = await sql<CountRow>`
        select software.id, (select count(*) from ${someOf(type)}) as count,
          (select max(confidence) from ${someOf(type)}) as confidence
        from software where software.id in (${sql.join(ids)})`.execute(this.#db)
      for (const { id, count, confidence } of rows) {
        if (confidence === null) continue
        const known = counts.get(id) ?? []
        known.push({ type, count: Number(count), confidenceMax: confidence })
        counts.set(id, known)
      }
    }
    return counts
  }
}

interface OwnerRow extends Owner {
  readonly value: string
  readonly owners: number
  readonly observed: number
}

interface CountRow {
  readonly id: string
  readonly count: number
  readonly confidence: number | null
}

function someOf(type: Ja4Type) {
  return sql`(select confidence from signatures where signatures.software_id = software.id
    and signatures.type = ${type} and signatures.status = 'active' limit ${COUNTED_MAX}) as few`
}

/** More are only counted. */
const OWNERS_MAX = 5
export const COUNTED_MAX = 1_000
