import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, type StartupConfig } from '../config/config.ts'
import { Fault } from '../shared/fault.ts'
import { Sealer } from '../manage/auth/sealer.ts'
import { sqliteFile } from '../store/engine/open-database.ts'
import { Store } from '../store/store.ts'
import type { Arguments, Option } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { type StorePlace, storePlace } from './store-place.ts'

/** Options of commands that work on a gateway's database, whether the gateway runs or not. */
export const STORE_OPTIONS: readonly Option[] = [
  {
    name: 'config',
    value: 'FILE',
    description: "The gateway's configuration (or GATEHOUSE_CONFIG). GATEHOUSE_* variables override it",
  },
  { name: 'data', value: 'DIRECTORY', description: 'The folder for persistent data (default: ./data)' },
]

export function placeGiven(given: Arguments, io: Io): StorePlace {
  return storePlace(configGiven(given, io))
}

/** Seals secrets with the same keys as the gateway. */
export function sealerGiven(given: Arguments, io: Io): Sealer {
  const { store, data } = configGiven(given, io)
  return new Sealer(store.encryptionKeys, join(data.dir, 'store.key'))
}

export function configGiven(given: Arguments, io: Io): StartupConfig {
  const flags = { data: given.values('data') }
  return loadConfig(flags, given.value('config'), io.env, { role: 'store' }).config
}

/** `mayMake`: the database need not exist yet. */
export async function withStore<Result>(
  given: Arguments,
  io: Io,
  mayMake: boolean,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { storeUrl, storeLogin, traffic } = placeGiven(given, io)
  const file = sqliteFile(storeUrl)
  if (file === ':memory:')
    throw new Fault(
      'STORE_UNAVAILABLE',
      'this store is in the memory of a gateway, and only its API gets there',
    )
  if (!mayMake && file !== null && !existsSync(file)) throw databaseMissing(file)
  const store = await Store.open(storeUrl, storeLogin, traffic)
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

export function databaseMissing(file: string): Fault {
  return new Fault(
    'STORE_UNAVAILABLE',
    `the database ${file} does not exist; name its folder with --data or --config`,
  )
}
