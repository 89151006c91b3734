import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { type Kysely, sql } from 'kysely'
import { type Test, test } from 'tap'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import type { Migration } from '../../src/store/engine/migration.ts'
import { MIGRATIONS, migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Tables } from '../../src/store/engine/tables.ts'
import { KINDS, openAt, urlWithoutTables } from './databases.ts'
import { fileOf, migrationText } from './migration-text.ts'
import { openRecorded, readBack, recordedCounts, recordedReads } from './recorded.ts'

for (const kind of KINDS) {
  test(`${kind}: migrations are what they were`, async () => {
    const said = 'see test/store/migration-text.ts'
    assert.equal(await migrationText(kind), readFileSync(fileOf(kind), 'utf8'), said)
  })

  test(`${kind}: processes that start at once make the tables once`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    const answers = await Promise.all(Array.from({ length: 5 }, () => openInProcess(url)))
    assert.deepEqual(new Set(answers), new Set(['open']))
    const database = await opened(t, kind, url)
    assert.deepEqual(await done(database), [...MIGRATIONS.keys()])
  })

  test(`${kind}: a step that fails leaves nothing of those before it`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    const failing = new Map<string, Migration>([
      ['1', (db) => makeTable(db, 'one')],
      ['2', (db) => makeTable(db, 'two')],
      ['3', (db) => makeTable(db, 'one')],
    ])
    const attempt = (migrations: typeof failing) =>
      openDatabase(url, null, (db) => migrate(db, kind, migrations))
    await assert.rejects(attempt(failing), /already exists/)
    const database = await attempt(new Map([['1', (db: Kysely<Tables>) => makeTable(db, 'one')]]))
    t.teardown(() => database.close())
    assert.deepEqual(await done(database), ['1'])
    await assert.rejects(sql`select * from two`.execute(database.db))
  })

  let newSchema: unknown = null
  for (const name of MIGRATIONS.keys())
    test(`${kind}: a database recorded at ${name} is upgraded, and its records are read as before`, async (t) => {
      const url = await openRecorded(name, kind, t)
      assert.partialDeepStrictEqual(await readBack(await openAt(t, url)), recordedReads(name))
      const database = await opened(t, kind, url)
      assert.deepEqual(await done(database), [...MIGRATIONS.keys()])
      for (const [table, count] of recordedCounts(name)) {
        if (table !== 'migrations') assert.equal(await countIn(database, table), count, table)
      }
      newSchema ??= await schemaOf(await opened(t, kind, await urlWithoutTables(kind, t)))
      assert.deepEqual(await schemaOf(database), newSchema)
      // What is added now gets the next number.
      const { rows } = await sql<{
        number: number
      }>`insert into events (id, type, at_ms, subject, data) values ('evt_2', 'new_agent', 0, '', '{}') returning number`.execute(
        database.db,
      )
      assert.equal(rows[0]!.number, 2)
    })

  test(`${kind}: 0002-apps adds only what a development version lacks`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    const store = await openAt(t, url)
    await store.close()
    const database = await openDatabase(url, null, async () => undefined)
    t.teardown(() => database.close())
    const before = await schemaOf(database)
    await sql`delete from migrations where name = '0002-apps'`.execute(database.db)
    assert.deepEqual(await migrate(database.db, kind), ['0002-apps'])
    assert.deepEqual(await schemaOf(database), before)
  })

  test(`${kind}: a database from before the first release is refused, and stays as it was`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    const old = await openDatabase(url, null, (db) =>
      migrate(db, kind, new Map([['0001-keys', (each: Kysely<Tables>) => makeTable(each, 'api_keys')]])),
    )
    t.teardown(() => old.close())
    const before = await schemaOf(old)
    await assert.rejects(openAt(t, url), {
      name: 'Fault',
      code: 'STORE_TOO_OLD',
      message: /before the first release \(0001-keys\).*GET \/v1\/policy.*new database/,
    })
    assert.deepEqual([await schemaOf(old), await done(old)], [before, ['0001-keys']])
  })

  test(`${kind}: what a later version has written is left alone`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    const database = await opened(t, kind, url)
    await sql`insert into migrations (name, at_ms) values ('9999-later', 0)`.execute(database.db)
    const before = await schemaOf(database)
    await assert.rejects(openAt(t, url), {
      name: 'Fault',
      code: 'STORE_TOO_NEW',
      message: /later version.*9999-later/,
    })
    assert.deepEqual(await schemaOf(database), before)
  })
}

async function opened(t: Test, kind: DatabaseKind, url: string): Promise<Database> {
  const database = await openDatabase(url, null, (db) => migrate(db, kind))
  t.teardown(() => database.close())
  return database
}

async function openInProcess(url: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', OPEN, url])
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return out.trim() || err
}

async function done({ db }: Database): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from migrations order by name`.execute(db)
  return rows.map(({ name }) => name)
}

async function countIn({ db }: Database, table: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*) as count from ${sql.table(table)}`.execute(db)
  return Number(rows[0]!.count)
}

async function makeTable(db: Kysely<Tables>, name: string): Promise<void> {
  await db.schema.createTable(name).addColumn('x', 'text').execute()
}

async function schemaOf({ db, kind }: Database): Promise<unknown> {
  const query =
    kind === 'sqlite'
      ? sql`select name, sql from sqlite_schema order by name`
      : sql`select table_name, column_name, data_type, is_nullable, column_default from information_schema.columns
            where table_schema = 'public' union all
            select tablename, indexname, indexdef, '', '' from pg_indexes where schemaname = 'public' order by 1, 2`
  return (await query.execute(db)).rows
}

const OPEN = `
  const { Store } = await import(${JSON.stringify(new URL('../../src/store/store.ts', import.meta.url).href)})
  const store = await Store.open(process.argv[1])
  await store.close()
  console.log('open')`
