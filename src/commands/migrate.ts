import { migrate, migrationsDone } from '../store/engine/migrations.ts'
import { openDatabase } from '../store/engine/open-database.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION, printJson } from '../terminal/json-option.ts'
import { placeGiven, STORE_OPTIONS } from '../runtime/store-given.ts'

export const migrateTables: CommandAction = {
  name: 'migrate',
  summary: 'Bring the tables of the database up to date',
  description: [
    'Every start of a manager does this by itself if its database user may. Use this command if the tables belong to another user, so that managers need no right to change them: see config/postgres-roles.sql.',
    'It may run while managers run, and several times at once: all steps are done once, or none. Running managers continue with tables that are newer than they are, but cannot start with them.',
  ],
  operands: [],
  options: [JSON_OPTION, ...STORE_OPTIONS],
  examples: [
    {
      command: 'migrate --config fleet.yaml',
      description: 'Before you start the new version, with GATEHOUSE_STORE_URL of the owner',
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
