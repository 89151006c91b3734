import type { Kysely } from 'kysely'
import type { Tables } from './tables.ts'

export class IdempotencyStore {
  readonly db: Kysely<Tables>

  constructor(db: Kysely<Tables>) {
    this.db = db
  }
}
