import { type Kysely, sql } from 'kysely'
import type { Tables } from './tables.ts'

/** A column whose values are encrypted with a key outside of the database. */
export interface SealedColumn {
  readonly table: keyof Tables
  readonly column: string
  /** The columns of the primary key. */
  readonly key: readonly string[]
  /** Other columns that are needed to decrypt a value. */
  readonly names: readonly string[]
}

export interface SealedRow {
  /** The primary key, in the order of its columns. */
  readonly key: readonly (string | number)[]
  /** The key and the other columns, by name. */
  readonly row: Readonly<Record<string, string>>
  readonly sealed: string
}

/** Access to all encrypted values, to encrypt them again with another key. */
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

  /** Values without `prefix`, ordered by key, after `after`. At most `rowsMax`. */
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

  /**
   * Replaces values in one transaction. Skips values that changed meanwhile. Resolves to
   * the number of replaced values.
   */
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
