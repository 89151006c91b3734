import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** A column of values that are encrypted with a key outside of the database. */
export interface SealedColumn {
  readonly table: keyof Tables
  readonly column: string
  /** The primary key. */
  readonly key: readonly string[]
  /** What else has to be known of a row to decrypt its value. */
  readonly names: readonly string[]
}

export interface SealedRow {
  /** The primary key, in the order of its columns. */
  readonly key: readonly (string | number)[]
  /** Key and names, by column. */
  readonly row: Readonly<Record<string, string>>
  readonly sealed: string
}

/** Encrypted values wherever they are, for encrypting them with another key. */
export class SealedValueStore {
  readonly #db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  async count({ table, column }: SealedColumn): Promise<number> {
    const { rows } = await sql<{ count: number | bigint }>`
      select count(*) as count from ${sql.table(table)} where ${sql.ref(column)} is not null
    `.execute(this.#db)
    return Number(rows[0]?.count ?? 0)
  }

  /** Those that do not begin with `prefix`, in the order of their keys behind `after`; so many at most. */
  async others(
    { table, column, key, names }: SealedColumn,
    prefix: string,
    after: SealedRow['key'] | null,
    rowsMax: number,
  ): Promise<readonly SealedRow[]> {
    const keys = sql.join(key.map((name) => sql.ref(name)))
    const columns = [...key, ...names]
    const behind = after === null ? sql`` : sql`and (${keys}) > (${sql.join(after)})`
    const { rows } = await sql<Record<string, string | number>>`
      select ${sql.join(columns.map((name) => sql.ref(name)))}, ${sql.ref(column)} as sealed_value
      from ${sql.table(table)}
      where ${sql.ref(column)} is not null and ${sql.ref(column)} not like ${`${prefix}%`} ${behind}
      order by ${keys} limit ${rowsMax}
    `.execute(this.#db)
    return rows.map((row) => ({
      key: key.map((name) => row[name]!),
      row: Object.fromEntries(columns.map((name) => [name, String(row[name])])),
      sealed: String(row['sealed_value']),
    }))
  }

  /** All or none of them; of those that have changed meanwhile nothing is replaced. Resolves to how many were. */
  replace(
    { table, column, key }: SealedColumn,
    changes: readonly { readonly from: SealedRow; readonly to: string }[],
  ): Promise<number> {
    return this.#db.transaction().execute(async (queries) => {
      let replaced = 0
      for (const { from, to } of changes) {
        const isRow = sql.join(
          key.map((name, index) => sql`${sql.ref(name)} = ${from.key[index]}`),
          sql` and `,
        )
        const { numAffectedRows = 0n } = await sql`
          update ${sql.table(table)} set ${sql.ref(column)} = ${to}
          where ${isRow} and ${sql.ref(column)} = ${from.sealed}
        `.execute(queries)
        replaced += Number(numAffectedRows)
      }
      return replaced
    })
  }
}
