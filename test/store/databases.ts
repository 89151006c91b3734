import { statfsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { Store } from '../../src/store/store.ts'
import { ownDatabase, sharedDatabase } from './postgres-databases.ts'

/** What a tap test has, and a program without one can have too. */
export interface Owner {
  /** What was added last is run first. */
  teardown(work: () => unknown): void
}

/** An empty store of its own, which is closed and gone when the test ends. */
export async function openFresh(kind: DatabaseKind, t: Owner): Promise<Store> {
  return openAt(t, await freshUrl(kind, t))
}

/** One more store on a database that may have others: what another process would be. */
export async function openAt(t: Owner, url: string): Promise<Store> {
  const store = await Store.open(url)
  t.teardown(() => store.close())
  return store
}

/** Of a database with all tables and no rows, which only this test uses. */
export async function freshUrl(kind: DatabaseKind, t: Owner): Promise<string> {
  if (kind === 'postgres') return sharedDatabase(t)
  emptyFile ??= makeEmptyFile()
  const file = await freshFile(t)
  await writeFile(file, await emptyFile, { mode: 0o600 })
  return `sqlite:${file}`
}

/** Of a database without tables, which is gone when the test ends. For tests that make or change tables and users. */
export async function urlWithoutTables(kind: DatabaseKind, t: Owner): Promise<string> {
  return kind === 'postgres' ? ownDatabase(t) : `sqlite:${await freshFile(t)}`
}

async function freshFile(t: Owner): Promise<string> {
  const folder = await mkdtemp(join(FILES_FOLDER, 'gatehouse-store-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'gatehouse.db')
}

/** Tables take 60 ms to make and 1 ms to copy. */
async function makeEmptyFile(): Promise<Buffer> {
  const teardowns: (() => unknown)[] = []
  const file = await freshFile({ teardown: (work) => teardowns.push(work) })
  await (await Store.open(`sqlite:${file}`)).close()
  const bytes = await readFile(file)
  for (const work of teardowns) await work()
  return bytes
}

/** In memory where there is room: every transaction waits for the disk otherwise. */
function filesFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize > MEMORY_BYTES_MIN ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}

const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 2 ** 30
const FILES_FOLDER = filesFolder()
let emptyFile: Promise<Buffer> | null = null
export const KINDS: readonly DatabaseKind[] = ['sqlite', 'postgres']
