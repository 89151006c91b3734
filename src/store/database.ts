import type { Kysely, Transaction } from 'kysely'
import type { Tables } from './tables.ts'

/** An open database of either kind, under one query code. */
export interface Database {
  readonly kind: DatabaseKind
  /** A query that fails because of the world throws a Fault whose code starts with `STORE_`. */
  readonly db: Kysely<Tables>
  /** What SQLite can and PostgreSQL has tools of its own for. Throws a Fault. */
  backup(file: string): Promise<void>
  close(): Promise<void>
}

export type DatabaseKind = 'sqlite' | 'postgres'

/** In a transaction or outside of one: a query does not have to know. */
export type Queries = Kysely<Tables> | Transaction<Tables>
