import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { Test } from 'tap'
import { urlWithoutTables } from './databases.ts'
import { inServer } from './postgres-databases.ts'

/** A database with the users of config/postgres-roles.sql, whose names are unique: users belong to the whole server. */
export async function roles(t: Test) {
  const admin = await urlWithoutTables('postgres', t)
  const mark = randomBytes(6).toString('hex')
  const names = { owner: `gatehouse_owner_${mark}`, runtime: `gatehouse_runtime_${mark}` }
  const text = readFileSync(new URL('../../config/postgres-roles.sql', import.meta.url), 'utf8')
  await inDatabase(
    admin,
    text.replaceAll('gatehouse_owner', names.owner).replaceAll('gatehouse_runtime', names.runtime),
  )
  t.teardown(async () => {
    for (const name of [names.owner, names.runtime]) {
      await inDatabase(admin, `drop owned by ${name} cascade`)
      await inServer(`drop role ${name}`)
    }
  })
  const as = (name: string) => {
    const url = new URL(admin)
    url.username = name
    return url.href
  }
  return { owner: as(names.owner), runtime: as(names.runtime) }
}

export async function inDatabase(url: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statements)
  } finally {
    await client.end()
  }
}
