import type { ColumnDataType, Kysely, RawBuilder } from 'kysely'
import type { Tables } from './tables.ts'

/** A forward migration; there is no way back. It never changes after its release. */
export type Migration = (db: Kysely<Tables>, types: ColumnTypes) => Promise<void>

/** The types that differ between the two databases. */
export interface ColumnTypes {
  /** Up to 2^53. */
  readonly integer: 'integer' | 'bigint'
  readonly real: 'real' | 'double precision'
  readonly bytes: 'blob' | 'bytea'
  /** Text that is compared byte by byte, independent of the database's locale. */
  readonly key: ColumnDataType | RawBuilder<unknown>
}
