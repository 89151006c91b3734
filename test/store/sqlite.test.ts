import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { setImmediate as setImmediatePassed, setTimeout as wait } from 'node:timers/promises'
import SqliteConnection from 'better-sqlite3'
import { sql } from 'kysely'
import { type Test, test } from 'tap'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { idempotencyContract } from '../contract/idempotency.ts'
import { casesContract } from '../contract/cases.ts'
import { paymentsContract } from '../contract/payments.ts'
import { storeContract } from '../contract/store.ts'
import { gnapContract } from '../contract/gnap.ts'
import { appsContract } from '../contract/apps.ts'
import { policiesContract } from '../contract/policies.ts'
import { trustContract } from '../contract/trust.ts'
import { passkeysContract } from '../contract/passkeys.ts'
import { usersContract } from '../contract/users.ts'
import { webhooksContract } from '../contract/webhooks.ts'
import { freshUrl, openAt } from './databases.ts'
import { newKey } from './samples.ts'

storeContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
idempotencyContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
paymentsContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
casesContract('sqlite', (t) => freshUrl('sqlite', t), openAt)

test('only the user it runs as can read the file, its log, and the folder made for it', async (t) => {
  const { store, file } = await opened(t)
  await store.keys.add(newKey(1))
  for (const suffix of ['', '-wal', '-shm']) assert.equal(statSync(file + suffix).mode & 0o777, 0o600, suffix)
  const deeper = `${dirname(file)}/new/folder/x.db`
  await openAt(t, `sqlite:${deeper}`)
  assert.equal(statSync(dirname(deeper)).mode & 0o777, 0o700)
})

test('nothing stays beside a file that is closed, whether it was asked anything or not', async (t) => {
  const url = await freshUrl('sqlite', t)
  const folder = dirname(url.slice('sqlite:'.length))
  await (await openDatabase(url, null, migrate)).close()
  assert.deepEqual(readdirSync(folder), ['gatehouse.db'])
})

test('a full disk is said, nothing is half written, and what makes room helps', async (t) => {
  const database = await openDatabase(await freshUrl('sqlite', t), null, migrate)
  t.teardown(() => database.close())
  const { db } = database
  const add = (number: number) =>
    db.transaction().execute(async (queries) => {
      const name = 'long'.repeat(1000)
      for (const part of [0, 1]) {
        const row = { id: `${number}-${part}`, hash: `${number}-${part}`, name, scopes: '[]', plan: '' }
        await queries
          .insertInto('api_keys')
          .values({ ...row, created_at_ms: 0 })
          .execute()
      }
    })
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(db)
  await sql`pragma max_page_count = ${sql.lit(rows[0]!.page_count + 20)}`.execute(db)
  let added = 0
  await assert.rejects(
    async () => {
      for (; ; added++) await add(added)
    },
    { name: 'Fault', code: 'STORE_FULL' },
  )
  assert.ok(added > 0)
  const count = () => db.selectFrom('api_keys').select('id').execute()
  assert.equal((await count()).length, 2 * added)
  await assert.rejects(add(added), { code: 'STORE_FULL' })
  await sql`pragma max_page_count = 100000`.execute(db)
  await add(added)
  assert.equal((await count()).length, 2 * added + 2)
})

test('waits some seconds for another program at the file, without blocking other work', async (t) => {
  const { store, file } = await opened(t)
  const other = new SqliteConnection(file)
  t.teardown(() => other.close())
  other.exec('begin immediate')
  const adding = store.keys.add(newKey(1))
  let turns = 0
  const ticking = setInterval(() => turns++, 10)
  t.teardown(() => clearInterval(ticking))
  await wait(500)
  assert.ok(turns > 10, `only ${turns} turns: it waits in here`)
  other.exec('commit')
  await adding
  other.exec('begin exclusive')
  const started = performance.now()
  const refused = [2, 3, 4].map((number) =>
    store.transaction((queries) => store.keys.add(newKey(number), queries)),
  )
  const read = store.keys.byId('key_1')
  for (const each of refused) await assert.rejects(each, { name: 'Fault', code: 'STORE_LOCKED' })
  await assert.rejects(store.keys.add(newKey(2)), { code: 'STORE_LOCKED' })
  assert.equal((await read)?.id, 'key_1')
  assert.ok(performance.now() - started < 9_000, 'each of them waited for itself')
  other.exec('commit')
  await store.keys.add(newKey(2))
})

test('a missing file is reported and not created again; work goes on once it is back', async (t) => {
  const { store, file } = await opened(t)
  await store.keys.add(newKey(1))
  renameSync(file, `${file}.away`)
  for (const _ of [1, 2]) await assert.rejects(store.keys.byId('key_1'), { code: 'STORE_UNAVAILABLE' })
  await assert.rejects(
    store.transaction(async () => 1),
    { code: 'STORE_UNAVAILABLE' },
  )
  assert.throws(() => statSync(file), { code: 'ENOENT' })
  renameSync(`${file}.away`, file)
  assert.equal((await store.keys.byId('key_1'))?.id, 'key_1')
  await store.keys.add(newKey(2))
})

test('another file in its place is used, and brought up to date', async (t) => {
  const { store, file } = await opened(t)
  const { store: others, file: other } = await opened(t)
  await others.keys.add(newKey(7))
  await others.close()
  await store.keys.add(newKey(1))
  renameSync(other, file)
  assert.equal(await store.keys.byId('key_1'), null)
  assert.equal((await store.keys.byId('key_7'))?.id, 'key_7')
  writeFileSync(`${file}.new`, '') // as sqlite3 makes them
  renameSync(`${file}.new`, file)
  await store.keys.add(newKey(7))
})

// What made it would be taken for the log of the file that a restore puts there next.
test('a file that disappears while it is opened is not created again', async (t) => {
  const { store, file } = await opened(t)
  const damaged = Buffer.alloc(50_000, 'x')
  for (let moments = 0; moments < 80; moments++) {
    rmSync(file, { force: true })
    writeFileSync(file, damaged)
    await assert.rejects(async () => store.keys.byHash('a'))
    const asked = Promise.resolve(store.keys.byHash('a')).catch(() => null)
    // Some before it looks, some after, some between what it does.
    for (let moment = 0; moment < moments; moment++) await (moment % 8 === 7 ? setImmediatePassed() : null)
    rmSync(file)
    await asked
    assert.deepEqual(
      readdirSync(dirname(file)).filter((name) => !name.includes('-')),
      [],
      `after ${moments} moments`,
    )
  }
})

test('a file that is not SQLite, or cut off, is reported as damaged and left unchanged', async (t) => {
  const { store, file } = await opened(t)
  for (let number = 0; number < 300; number++) await store.keys.add(newKey(number))
  await store.close()
  cpSync(file, `${file}.good`)
  const damages: readonly (readonly [string, () => void])[] = [
    ['text', () => writeFileSync(file, 'not a database, whatever its name says\n'.repeat(100))],
    ['cut off', () => truncateSync(file, 20_000)],
    ['cut off in a page', () => truncateSync(file, 8192 + 17)],
    ['noise', () => writeFileSync(file, Buffer.alloc(50_000, 0xa5))],
  ]
  for (const [name, damage] of damages) {
    cpSync(`${file}.good`, file)
    damage()
    const { size } = statSync(file)
    await assert.rejects(
      async () => {
        const damaged = await openAt(t, `sqlite:${file}`)
        for (let page = 1; page < 30; page++) await damaged.keys.list({ page, limit: 10 }, '*')
      },
      { name: 'Fault', code: 'STORE_DAMAGED' },
      name,
    )
    assert.equal(statSync(file).size, size, name)
    for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
  }
})

test('damage that appears while it runs is said, and over when a good file is in its place', async (t) => {
  const { store, file } = await opened(t)
  for (let number = 0; number < 300; number++) await store.keys.add(newKey(number))
  const reader = new SqliteConnection(file)
  reader.pragma('wal_checkpoint(truncate)')
  reader.close()
  cpSync(file, `${file}.good`)
  truncateSync(file, 12_288)
  const readAll = async () => {
    for (let page = 1; page <= 30; page++) await store.keys.list({ page, limit: 10 }, '*')
  }
  const { page_size } = { page_size: statSync(`${file}.good`).size }
  assert.ok(page_size > 12_288)
  await assert.rejects(async () => {
    for (;;) {
      await readAll()
      await store.keys.add(newKey(1000))
    }
  }, /SQLITE|damaged|constraint/i)
  rmSync(file)
  for (const suffix of ['-wal', '-shm']) rmSync(file + suffix, { force: true })
  renameSync(`${file}.good`, file)
  await readAll()
  await store.keys.add(newKey(2000))
})

test('a place where nothing can be written is said, with its name', async (t) => {
  const { store, file } = await opened(t)
  await store.close()
  await assert.rejects(openAt(t, `sqlite:${file}/x/y.db`), {
    code: 'STORE_UNAVAILABLE',
    message: /y\.db.*ENOTDIR/,
  })
  await assert.rejects(openAt(t, `sqlite:${dirname(file)}`), { code: 'STORE_UNAVAILABLE', message: /EISDIR/ })
  await assert.rejects(openAt(t, 'sqlite:'), { code: 'STORE_URL_INVALID' })
  await assert.rejects(openAt(t, 'mysql://root:hunter2@x/y'), (error: Error) => {
    return 'code' in error && error.code === 'STORE_URL_INVALID' && !error.message.includes('hunter2')
  })
})

test('a file that may only be read is said', async (t) => {
  const { store, file } = await opened(t)
  await store.close()
  chmodSync(file, 0o444)
  chmodSync(dirname(file), 0o755)
  if (process.getuid?.() === 0) chownSync(dirname(file), NOBODY, NOBODY)
  const program = `
    const { Store } = await import(${JSON.stringify(new URL('../../src/store/store.ts', import.meta.url).href)})
    await Store.open(process.argv[1]).then(() => console.log('open'), ({ code, message }) => console.log(code, message))`
  const argv = ['--input-type=module', '--eval', program, `sqlite:${file}`]
  // Root may write to everything.
  const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  const { stdout, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', ...asNobody })
  assert.match(stdout, /^STORE_UNAVAILABLE .*EACCES/, stderr)
})

test('a constraint and a statement that is wrong are bugs, and said as they are', async (t) => {
  const database = await openDatabase(await freshUrl('sqlite', t), null, migrate)
  t.teardown(() => database.close())
  await assert.rejects(sql`selec 1`.execute(database.db), { name: 'SqliteError', code: 'SQLITE_ERROR' })
  await assert.rejects(sql`insert into migrations (name, at_ms) values ('x', null)`.execute(database.db), {
    code: 'SQLITE_CONSTRAINT_NOTNULL',
  })
})

async function opened(t: Test): Promise<{ store: Store; file: string }> {
  const url = await freshUrl('sqlite', t)
  return { store: await openAt(t, url), file: url.slice('sqlite:'.length) }
}

const NOBODY = 65_534

appsContract('sqlite')
policiesContract('sqlite')
gnapContract('sqlite')
trustContract('sqlite')
webhooksContract('sqlite')
usersContract('sqlite')
passkeysContract('sqlite')
