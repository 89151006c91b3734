import type { Kysely } from 'kysely'
import type { DatabaseKind } from './database.ts'
import type { Tables } from './tables.ts'

export class TaskStore {
  readonly db: Kysely<Tables>
  readonly kind: DatabaseKind

  constructor(db: Kysely<Tables>, kind: DatabaseKind) {
    this.db = db
    this.kind = kind
  }
}
