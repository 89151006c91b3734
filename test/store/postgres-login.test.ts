import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { type Test, test } from 'tap'
import { StoreLoginPart } from '../../src/runtime/credential-parts.ts'
import { Reloader } from '../../src/runtime/reload.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { LeaderLock } from '../../src/store/engine/leader-lock.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { StoreLogin } from '../../src/store/engine/store-login.ts'
import { folderFor, startPostgres } from '../e2e/engines.ts'
import { MountedSecret } from '../e2e/mounted-secret.ts'
import { until } from '../until.ts'

test('a password that was changed is used for new connections, and no write that was acknowledged is lost', async (t) => {
  const { secret, login, reloader, database, admin, password, said } = await begun(t)
  const { db } = database
  await sql`create table written (number integer primary key)`.execute(db)
  const acknowledged: number[] = []
  let isOver = false
  let failures = 0
  const writing = Array.from({ length: 6 }, async (_, writer) => {
    for (let i = 0; !isOver; i++) {
      const number = writer * 1_000_000 + i
      try {
        await sql`insert into written values (${number})`.execute(db)
        acknowledged.push(number)
      } catch {
        failures++
      }
    }
  })
  const someMore = async () => {
    const count = acknowledged.length
    while (acknowledged.length < count + 50) await wait(5)
  }
  await someMore()
  const before = await pids(admin)
  // The server first, then the Secret: connections that are there go on.
  await password('two')
  await someMore()
  secret.swap({ password: 'two\n' })
  await reloader.check(false)
  assert.deepEqual([reloader.status.isCurrent, login.password], [true, 'two'])
  await someMore()
  while ((await pids(admin)).some((pid) => before.includes(pid))) await wait(20)
  isOver = true
  await Promise.all(writing)
  assert.equal(failures, 0)
  const { rows } = await sql<{ number: number }>`select number from written`.execute(db)
  const kept = new Set(rows.map(({ number }) => number))
  assert.deepEqual(
    acknowledged.filter((number) => !kept.has(number)),
    [],
  )
  assert.ok(!said.join('').includes('two'))
})

test('a wrong password is not put to use: the old one stays, is said once, and the right one is found later', async (t) => {
  const { secret, login, reloader, database, password, said } = await begun(t)
  secret.swap({ password: 'guess' })
  for (let i = 0; i < 3; i++) await reloader.check(false)
  assert.deepEqual([reloader.status.isCurrent, login.password], [false, 'one'])
  const lines = said.filter((line) => line.includes('not reloaded'))
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /does not take the new credentials.*Compare store\.password_file/)
  assert.ok(!said.join('').includes('guess'))
  // New connections are made with the one that is known to be right.
  login.renew(login.password)
  await sql`select 1`.execute(database.db)
  secret.swap({ password: '' })
  await reloader.check(false)
  assert.match(said.join(''), /is empty/)
  secret.swap({ password: 'two' })
  await reloader.check(false)
  assert.equal(reloader.status.isCurrent, false, 'the server does not know it yet')
  await password('two')
  await reloader.check(false)
  assert.deepEqual([reloader.status.isCurrent, login.password], [true, 'two'])
  await sql`select 1`.execute(database.db)
})

test('the lock of the leader is taken with the new password when its connection breaks', async (t) => {
  const { url, secret, login, reloader, admin, password } = await begun(t)
  const lock = new LeaderLock(url, login)
  t.teardown(() => lock.release())
  assert.equal(await lock.take(), true)
  await password('two')
  secret.swap({ password: 'two' })
  await reloader.check(false)
  assert.equal(await lock.isHeld(), true, 'it goes on leading')
  await admin.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'gatehouse leader'",
  )
  await until(async () => !(await lock.isHeld()))
  // The server ends the connection before it releases the locks of the session.
  await until(() => lock.take())
  assert.equal(await lock.isHeld(), true)
})

/** A database whose user has the password `one`, in a mounted file, and a server that asks for it. */
async function begun(t: Test) {
  const engine = await startPostgres(t)
  const admin = new pg.Client({ connectionString: engine.url })
  admin.on('error', () => undefined)
  await admin.connect()
  t.teardown(() => admin.end())
  const password = (text: string) => admin.query(`alter role app password '${text}'`)
  await admin.query("create role app login password 'one'")
  await admin.query('create database app owner app')
  writeFileSync(
    join(engine.folder, 'data', 'pg_hba.conf'),
    'host all gatehouse 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  )
  await admin.query('select pg_reload_conf()')
  const secret = new MountedSecret(join(folderFor(t, 'secret'), 'mounted'), { password: 'one\n' })
  const url = `postgres://app@127.0.0.1:${engine.port}/app`
  const login = new StoreLogin('one', secret.file('password'))
  const database = await openDatabase(url, login, async () => undefined)
  t.teardown(() => database.close())
  const said: string[] = []
  const log = createLogTo('info', { write: (line) => void said.push(line) })
  const { reloader } = await Reloader.load(new StoreLoginPart(url, login), log)
  return { url, secret, login, reloader, database, admin, password, said }
}

async function pids(admin: pg.Client): Promise<readonly number[]> {
  const { rows } = await admin.query("select pid from pg_stat_activity where application_name = 'gatehouse'")
  return rows.map(({ pid }) => pid)
}
