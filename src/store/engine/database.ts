import type { Kysely, Transaction } from 'kysely'
import type { Tables } from './tables.ts'

/** An open database of either kind, under one query code. */
export interface Database {
  readonly kind: DatabaseKind
  /**
   * A query that fails because of the world throws a Fault whose code starts with `STORE_`. One that comes later
   * succeeds once the world is in order.
   */
  readonly db: Kysely<Tables>
  close(): Promise<void>
}

export type DatabaseKind = 'sqlite' | 'postgres'

/** Brings the tables to where this program needs them, before anything else is asked. It may take its time. */
export type Prepare = (db: Kysely<Tables>, kind: DatabaseKind) => Promise<unknown>

/** In a transaction or outside of one: a query does not have to know. */
export type Queries = Kysely<Tables> | Transaction<Tables>
