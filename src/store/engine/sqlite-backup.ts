import { existsSync, statSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import SqliteConnection from 'better-sqlite3'
import { Fault } from '../../shared/fault.ts'
import { migrate } from './migrations.ts'
import { openSqlite } from './sqlite.ts'
import { SqliteSpace } from './sqlite-space.ts'
import { asFault, guarded } from './sqlite-fault.ts'

/**
 * Copies the database at one moment to one file, while other processes write to it. The copy
 * is complete or does not exist.
 */
export async function backupSqlite(file: string, to: string): Promise<void> {
  if (isSame(file, to)) throw new Fault('STORE_BACKUP_INVALID', `${to} is the database itself`)
  await withDraft(to, async (draft) => {
    await copy(file, draft, 'the database')
    check(draft, file)
    await becomes(draft, to)
  })
}

/**
 * Replaces the content of a database with a backup, while other processes have it open. For them it is one
 * transaction. The backup is checked first: it must be intact and from Gatehouse. If the database is too
 * damaged to overwrite, its files are moved to `putAside`.
 */
export async function restoreSqlite(from: string, file: string): Promise<{ putAside: string | null }> {
  if (isSame(file, from)) throw new Fault('STORE_BACKUP_INVALID', `${from} is the database itself`)
  return withDraft(file, async (draft) => {
    await copy(from, draft, 'the backup')
    check(draft, from)
    const upToDate = await openSqlite(draft, migrate)
    await new SqliteSpace(upToDate.db).rewrite().finally(() => upToDate.close())
    if (existsSync(file)) {
      try {
        await overwrite(draft, file)
        return { putAside: null }
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'STORE_DAMAGED') throw error
      }
    }
    await synced(draft) // before the old file moves away, because this is slow
    const putAside = await takeAway(file)
    await becomes(draft, file)
    return { putAside }
  })
}

/** Copies a consistent snapshot to an empty file. */
async function copy(from: string, to: string, what: string): Promise<void> {
  if (!existsSync(from)) throw new Fault('STORE_BACKUP_INVALID', `there is no ${from}`)
  const source = guarded(() => new SqliteConnection(from, { fileMustExist: true, timeout: BUSY_MS }))
  try {
    // From here to the end, no other writes are visible.
    guarded(() => source.exec('begin'))
    const { tables } = guarded(() => source.prepare<[], { tables: number }>(TABLES).get()!)
    if (tables === 0) throw new Fault('STORE_BACKUP_INVALID', `${from} is not a Gatehouse database`)
    await transfer(source, to)
    const target = guarded(() => new SqliteConnection(to))
    // The copy must not depend on a log file beside it.
    guarded(() => target.pragma('journal_mode = delete'))
    target.close()
  } catch (error) {
    if (error instanceof Fault && error.code === 'STORE_DAMAGED')
      throw new Fault('STORE_DAMAGED', `${what} ${from} is damaged, or no database`, { cause: error })
    throw error
  } finally {
    source.close()
  }
}

/** Throws a Fault unless the file is intact and from Gatehouse. */
function check(draft: string, original: string): void {
  const connection = guarded(() => new SqliteConnection(draft, { readonly: true }))
  try {
    const result = guarded(() => connection.pragma('integrity_check(1)', { simple: true }))
    if (result !== 'ok') throw new Fault('STORE_DAMAGED', `${original} is damaged (${String(result)})`)
    const ours = guarded(() =>
      connection.prepare("select 1 from sqlite_schema where name = 'migrations'").get(),
    )
    if (ours === undefined) throw new Fault('STORE_BACKUP_INVALID', `${original} is not a Gatehouse database`)
  } finally {
    connection.close()
  }
}

/** Writes page by page to a database that others have open, under its locks. */
async function overwrite(draft: string, file: string): Promise<void> {
  const source = guarded(() => new SqliteConnection(draft))
  try {
    await transfer(source, file)
  } finally {
    source.close()
  }
  const live = guarded(() => new SqliteConnection(file, { timeout: BUSY_MS }))
  try {
    guarded(() => live.pragma('synchronous = full'))
    guarded(() => live.pragma('wal_checkpoint(full)')) // flushes what was copied to the disk
  } finally {
    live.close()
  }
}

async function transfer(source: SqliteConnection.Database, to: string): Promise<void> {
  for (const untilMs = performance.now() + BUSY_MS; performance.now() < untilMs; await wait(RETRY_MS)) {
    const { totalPages } = await source.backup(to, { progress: () => ALL_PAGES }).catch((error: unknown) => {
      throw asFault(error)
    })
    // If another program writes to the file, better-sqlite3 reports success with no pages.
    if (totalPages > 0) return
  }
  throw new Fault('STORE_LOCKED', `another program holds ${to}`)
}

/**
 * Creates a draft beside the target that only its owner can read. Deletes it
 * afterwards unless it was renamed.
 */
async function withDraft<Result>(beside: string, work: (draft: string) => Promise<Result>): Promise<Result> {
  const draft = join(dirname(beside), `.${basename(beside)}.${process.pid}.draft`)
  try {
    await (await open(draft, 'w', 0o600)).close()
    return await work(draft)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof Fault || code === undefined || !/^E[A-Z]+$/.test(code)) throw error
    throw new Fault('STORE_BACKUP_FAILED', `${beside} cannot be written (${code})`, { cause: error })
  } finally {
    for (const end of ['', '-wal', '-shm', '-journal']) await rm(draft + end, { force: true })
  }
}

async function becomes(draft: string, file: string): Promise<void> {
  await synced(draft)
  await rename(draft, file)
  await synced(dirname(file))
}

/**
 * Moves the database and its logs away before a new file appears. SQLite would apply a
 * remaining log to the new file.
 */
async function takeAway(file: string): Promise<string | null> {
  if (!existsSync(file)) {
    for (const end of ['-wal', '-shm']) await rm(file + end, { force: true })
    return null
  }
  const aside = `${file}.damaged-${new Date().toISOString().replaceAll(':', '-')}`
  for (const end of ['', '-wal', '-shm']) if (existsSync(file + end)) await rename(file + end, aside + end)
  return aside
}

async function synced(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }))
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev
}

const TABLES = 'select count(*) as tables from sqlite_schema'
const BUSY_MS = 10_000
const RETRY_MS = 20
/** All pages at once, because this process does nothing else. */
const ALL_PAGES = 0x7fffffff
