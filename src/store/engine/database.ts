import { type Kysely, PostgresAdapter, type Transaction } from 'kysely'
import type { Tables } from './tables.ts'

/** An open database of either kind, used by the same query code. */
export interface Database {
  readonly kind: DatabaseKind
  /**
   * If the environment causes a query to fail, it throws a Fault whose code starts with `STORE_`. Queries
   * succeed again once the environment is repaired.
   */
  readonly db: Kysely<Tables>
  close(): Promise<void>
}

export type DatabaseKind = 'sqlite' | 'postgres'

/** Applies migrations before any other query. It may take long. */
export type Prepare = (db: Kysely<Tables>, kind: DatabaseKind) => Promise<unknown>

export function kindOf(queries: Queries): DatabaseKind {
  return queries.getExecutor().adapter instanceof PostgresAdapter ? 'postgres' : 'sqlite'
}

/** Works in a transaction or outside of one. A query does not need to know which. */
export type Queries = Kysely<Tables> | Transaction<Tables>
