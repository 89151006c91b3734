import { migrate, migrationsDone } from '../store/engine/migrations.ts'
import { openDatabase } from '../store/engine/open-database.ts'
import type { Action, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION, printJson } from '../terminal/json-option.ts'
import { placeGiven, STORE_OPTIONS } from '../runtime/store-given.ts'

export const migrateTables: Action = {
  name: 'migrate',
  summary: 'Bring the tables of the database up to date',
  description: [
    'Every start does this by itself where it may. This is for a database whose tables belong to another user than the ' +
      'one that managers run as, which then need no right to change them: see config/postgres-roles.sql.',
    'It may run while others do, and several at once: all steps are made, or none, and each once. Those that run go ' +
      'on with tables that are newer than they are; they cannot be started anew on them.',
  ],
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [
    {
      command: 'migrate --config fleet.yaml',
      description: 'Before the new version is started, with GATEHOUSE_STORE_URL of the owner',
    },
  ],
  run: runMigrate,
}

async function runMigrate(given: Arguments, io: Io): Promise<ExitCode> {
  const { storeUrl, storeLogin } = placeGiven(given, io)
  let before: string | null = null
  let added: readonly string[] = []
  const database = await openDatabase(storeUrl, storeLogin, async (db, kind) => {
    before = (await migrationsDone(db, kind)).at(-1) ?? null
    added = await migrate(db, kind)
  })
  await database.close()
  if (given.flag('json')) {
    printJson(io, { before, added })
    return 0
  }
  const from = before === null ? 'an empty database' : before
  io.stdout.write(
    added.length === 0
      ? `The tables are up to date: ${from}.\n`
      : `The tables are brought from ${from} to ${added.at(-1)}, in ${steps(added.length)}.\n`,
  )
  return 0
}

function steps(count: number): string {
  return count === 1 ? 'one step' : `${count} steps`
}
