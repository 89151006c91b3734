import { Fault } from '../../shared/fault.ts'
import type { Database, Prepare } from './database.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import type { StoreLogin } from './store-login.ts'

/** Opens `sqlite:FILE` or `postgres://…`. Throws a Fault that says what to do. */
export async function openDatabase(
  url: string,
  login: StoreLogin | null,
  prepare: Prepare,
): Promise<Database> {
  const file = sqliteFile(url)
  if (file !== null) return openSqlite(file, prepare)
  if (/^postgres(?:ql)?:\/\//.test(url)) return openPostgres(url, login, prepare)
  throw new Fault('STORE_URL_INVALID', 'a store is sqlite:FILE or postgres://USER@HOST/DATABASE')
}

/** `null`: the URL is not for SQLite. */
export function sqliteFile(url: string): string | null {
  const file = url.startsWith(SQLITE) ? url.slice(SQLITE.length).trim() : null
  if (file === '') throw new Fault('STORE_URL_INVALID', 'the file is missing in sqlite:FILE')
  return file
}

const SQLITE = 'sqlite:'
