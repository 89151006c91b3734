import { ALL_APPS } from '../apps/app-scope.ts'
import { randomUUID } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { Fault } from '../shared/fault.ts'
import { changed, COMMAND_LINE } from '../manage/http/audit.ts'

import { backupSqlite, restoreSqlite } from '../store/engine/sqlite-backup.ts'
import { sqliteFile } from '../store/engine/open-database.ts'
import { RESTORED } from '../store/work/settings.ts'
import { Store } from '../store/store.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION, printJson } from '../terminal/json-option.ts'
import { databaseMissing, placeGiven, STORE_OPTIONS } from '../runtime/store-given.ts'

export const backup: CommandAction = {
  name: 'backup',
  summary: 'Copy the database to a file, while the gateway runs',
  description: [
    'The copy is a checked snapshot of one moment. If anything fails, no file is written. It contains what the database ' +
      'contains: addresses of clients, hashes of keys. Only its owner can read it.',
    'For SQLite. A store in PostgreSQL is backed up with pg_dump.',
  ],
  operands: [{ name: 'FILE', description: 'The file to write' }],
  options: [{ name: 'force', description: 'Overwrite an existing file' }, JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'backup /backup/gatehouse-monday.db', description: 'Every night' }],
  run: runBackup,
}

export const restore: CommandAction = {
  name: 'restore',
  summary: 'Replace the database by a backup, while the gateway runs or not',
  description: [
    'Checks first that the backup is intact, from Gatehouse, and not from a later version. Everything written after the ' +
      'backup is lost: keys created since then stop working, and keys revoked since then work again. A running gateway ' +
      'continues with the restored data. If the database is too damaged to overwrite, its files are moved aside.',
    'For SQLite. A store in PostgreSQL is restored with pg_restore.',
  ],
  operands: [{ name: 'FILE', description: 'A copy that "gatehouse backup" made' }],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [{ command: 'restore /backup/gatehouse-monday.db', description: 'Back to that state' }],
  run: runRestore,
}

async function runBackup(given: Arguments, io: Io): Promise<ExitCode> {
  const to = given.operands[0]!
  const file = fileGiven(given, io, 'pg_dump')
  if (!existsSync(file)) throw databaseMissing(file)
  if (existsSync(to) && !given.flag('force'))
    throw new Fault('FILE_EXISTS', `${to} exists; --force overwrites it`)
  await backupSqlite(file, to)
  if (given.flag('json')) printJson(io, { file: to, of: file, bytes: statSync(to).size })
  else io.stderr.write(`${to}: a copy of ${file}\n`)
  return 0
}

async function runRestore(given: Arguments, io: Io): Promise<ExitCode> {
  const from = given.operands[0]!
  const file = fileGiven(given, io, 'pg_restore')
  const { putAside } = await restoreSqlite(from, file)
  const store = await Store.open(`sqlite:${file}`)
  try {
    const change = { action: 'restoreBackup', subject: null, apps: ALL_APPS, detail: {} } as const
    await changed(store, COMMAND_LINE, change, Date.now(), async (queries) => {
      // Running gateways see this and refresh their caches.
      await store.settings.put(RESTORED, randomUUID(), null, Date.now(), queries)
    })
  } finally {
    await store.close()
  }
  if (given.flag('json')) {
    printJson(io, { file, from, put_aside: putAside })
    return 0
  }
  if (putAside !== null) io.stderr.write(`${putAside}: the damaged database that was there\n`)
  io.stderr.write(`${file}: as ${from} has it\n`)
  return 0
}

function fileGiven(given: Arguments, io: Io, instead: string): string {
  const file = sqliteFile(placeGiven(given, io).storeUrl)
  if (file === null)
    throw new Fault(
      'STORE_BACKUP_ELSEWHERE',
      `this store is in PostgreSQL, which has its own tool: ${instead}`,
    )
  if (file === ':memory:') throw new Fault('STORE_BACKUP_ELSEWHERE', 'this store is in no file')
  return file
}
