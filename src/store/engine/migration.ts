import type { ColumnDataType, Kysely, RawBuilder } from 'kysely'
import type { Tables } from './tables.ts'

/** A step forward; there is none back. Once released it is never changed. */
export type Migration = (db: Kysely<Tables>, types: ColumnTypes) => Promise<void>

/** What differs between the two. */
export interface ColumnTypes {
  /** To 2^53. */
  readonly integer: 'integer' | 'bigint'
  readonly real: 'real' | 'double precision'
  readonly bytes: 'blob' | 'bytea'
  /** Text that is compared byte by byte, whatever the language of the database. */
  readonly key: ColumnDataType | RawBuilder<unknown>
}
