import { migrate, migrationsDone } from './migrations.ts'
import { openDatabase } from './open-database.ts'
import type { StoreLogin } from './store-login.ts'

export interface BroughtUpToDate {
  /** The last step that the tables had behind them; `null`: there were none. */
  readonly before: string | null
  /** Those that were missing, in their order. */
  readonly added: readonly string[]
}

/** Does what every start does, and no more. `sqlite:FILE` or `postgres://…`. */
export async function bringUpToDate(url: string, login: StoreLogin | null): Promise<BroughtUpToDate> {
  let brought: BroughtUpToDate = { before: null, added: [] }
  const database = await openDatabase(url, login, async (db, kind) => {
    const done = await migrationsDone(db, kind)
    brought = { before: done.at(-1) ?? null, added: await migrate(db, kind) }
  })
  await database.close()
  return brought
}
