import { Fault } from '../fault.ts'
import type { Database } from './database.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

/** `sqlite:FILE` or `postgres://…`. Throws a Fault that says what to do. */
export async function openDatabase(url: string, password: string | null = null): Promise<Database> {
  if (url.startsWith('sqlite:')) return openSqlite(url.slice('sqlite:'.length))
  if (/^postgres(?:ql)?:\/\//.test(url)) return openPostgres(url, password)
  throw new Fault('STORE_URL_INVALID', 'a store is sqlite:FILE or postgres://USER@HOST/DATABASE')
}
