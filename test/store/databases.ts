import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { Store } from '../../src/store/store.ts'
import { services } from '../services/services.ts'

/** What a tap test has, and a program without one can have too. */
export interface Owner {
  /** What was added last is run first. */
  teardown(work: () => unknown): void
}

/** A store of its own, empty, which is closed and gone when the test ends. */
export async function openFresh(kind: DatabaseKind, t: Owner): Promise<Store> {
  return openAt(t, await freshUrl(kind, t))
}

/** One more store on a database that may have others: what another process would be. */
export async function openAt(t: Owner, url: string): Promise<Store> {
  const store = await Store.open(url)
  t.teardown(() => store.close())
  return store
}

/** Of a database of its own, without a table yet, which is gone when the test ends, even if it has connections. */
export function freshUrl(kind: DatabaseKind, t: Owner): Promise<string> {
  return kind === 'sqlite' ? freshFile(t) : freshDatabase(t)
}

async function freshFile(t: Owner): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-store-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return `sqlite:${join(folder, 'gatehouse.db')}`
}

async function freshDatabase(t: Owner): Promise<string> {
  const name = `gatehouse_test_${randomBytes(8).toString('hex')}`
  // From a template without connections: tests run side by side.
  await inServer(`create database ${name} template template0`)
  t.teardown(() => inServer(`drop database ${name} with (force)`))
  const url = new URL(POSTGRES)
  url.pathname = `/${name}`
  return url.href
}

/** In the database that is always there. */
export async function inServer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: POSTGRES })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** A user in it may make databases. */
export const POSTGRES = services().postgres
export const KINDS: readonly DatabaseKind[] = ['sqlite', 'postgres']
