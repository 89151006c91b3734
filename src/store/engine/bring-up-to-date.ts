import { migrate, migrationsDone } from './migrations.ts'
import { openDatabase } from './open-database.ts'
import type { StoreLogin } from './store-login.ts'

export interface BroughtUpToDate {
  /** The last migration that was applied before; `null`: the database had no tables. */
  readonly before: string | null
  /** The migrations that were applied now, in order. */
  readonly added: readonly string[]
}

/** Applies the missing migrations, as every start does. `url` is `sqlite:FILE` or `postgres://…`. */
export async function bringUpToDate(url: string, login: StoreLogin | null): Promise<BroughtUpToDate> {
  let brought: BroughtUpToDate = { before: null, added: [] }
  const database = await openDatabase(url, login, async (db, kind) => {
    const done = await migrationsDone(db, kind)
    brought = { before: done.at(-1) ?? null, added: await migrate(db, kind) }
  })
  await database.close()
  return brought
}
