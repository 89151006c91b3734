import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

/** A forward migration; there is no way back. It never changes after its release. */
export type Migration = (db: Kysely<Tables>, types: ColumnTypes) => Promise<void>

/** The types that differ between the two databases. */
export interface ColumnTypes {
  /** Up to 2^53. */
  readonly integer: string
  readonly real: string
  /** A primary key that the database counts up. */
  readonly serial: string
  /** Text that is compared byte by byte, independent of the database's locale. */
  readonly key: string
  readonly uuid: string
}
