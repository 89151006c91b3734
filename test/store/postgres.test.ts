import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { type Test, test } from 'tap'
import type { Database } from '../../src/store/engine/database.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openPostgres } from '../../src/store/engine/postgres.ts'
import { asFault } from '../../src/store/engine/postgres-fault.ts'
import { StoreLogin } from '../../src/store/engine/store-login.ts'
import { Store } from '../../src/store/store.ts'
import { idempotencyContract } from '../contract/idempotency.ts'
import { casesContract } from '../contract/cases.ts'
import { paymentsContract } from '../contract/payments.ts'
import { gnapContract } from '../contract/gnap.ts'
import { appsContract } from '../contract/apps.ts'
import { policiesContract } from '../contract/policies.ts'
import { trustContract } from '../contract/trust.ts'
import { passkeysContract } from '../contract/passkeys.ts'
import { usersContract } from '../contract/users.ts'
import { webhooksContract } from '../contract/webhooks.ts'
import { storeContract } from '../contract/store.ts'
import { freshUrl, openAt, urlWithoutTables } from './databases.ts'
import { inServer } from './postgres-databases.ts'
import { newKey } from './samples.ts'
import { Relay } from './relay.ts'

storeContract('postgres', (t) => freshUrl('postgres', t), openAt)
idempotencyContract('postgres', (t) => freshUrl('postgres', t), openAt)
paymentsContract('postgres', (t) => freshUrl('postgres', t), openAt)
casesContract('postgres', (t) => freshUrl('postgres', t), openAt)

// An unhandled rejection ends the process, and this test with it.

test('connections that break while idle are replaced', async (t) => {
  const { store, relay } = await opened(t)
  await Promise.all(Array.from({ length: 10 }, () => store.keys.byId('x')))
  relay.cut()
  await wait(50)
  await store.keys.add(newKey(1))
  assert.equal((await store.keys.byId('key_1'))?.id, 'key_1')
})

test('connections that the server ends, idle and in use, are replaced', async (t) => {
  const { store, name } = await opened(t)
  await store.keys.byId('x')
  const endAll = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`
  await inServer(endAll)
  await wait(50)
  await store.keys.add(newKey(1))
  const ended = store.transaction(async (queries) => {
    await store.keys.add(newKey(2), queries)
    await inServer(endAll)
    await wait(100) // it breaks while it is idle
    await store.keys.add(newKey(3), queries)
  })
  await assert.rejects(ended, { name: 'Fault', code: 'STORE_UNAVAILABLE' })
  assert.equal((await store.keys.list(FIRST, '*')).total, 1)
})

test('a connection that breaks in a query and in a transaction is said, and nothing is half written', async (t) => {
  const { store, relay, database } = await opened(t)
  const slow = sql`select pg_sleep(10)`.execute(database.db)
  await wait(100)
  relay.cut()
  await assert.rejects(slow, { name: 'Fault', code: 'STORE_UNAVAILABLE' })
  const broken = store.transaction(async (queries) => {
    await store.keys.add(newKey(1), queries)
    relay.cut()
    await wait(50)
    await store.keys.add(newKey(2), queries)
  })
  await assert.rejects(broken, { name: 'Fault', code: 'STORE_UNAVAILABLE' })
  const brokenAtCommit = store.transaction(async (queries) => {
    await store.keys.add(newKey(1), queries)
    relay.cut()
  })
  await assert.rejects(brokenAtCommit, { name: 'Fault', code: 'STORE_UNAVAILABLE' })
  assert.equal((await store.keys.list(FIRST, '*')).total, 0)
})

test('a server that is away, and comes back', async (t) => {
  const { store, relay } = await opened(t)
  await store.keys.add(newKey(1))
  await relay.stop()
  for (let time = 0; time < 20; time++)
    await assert.rejects(store.keys.byId('key_1'), {
      code: 'STORE_UNAVAILABLE',
      message: /ECONN(?:REFUSED|RESET)/,
    })
  await relay.start()
  assert.equal((await store.keys.byId('key_1'))?.id, 'key_1')
})

test('a server that says nothing any more is not waited for, and not asked again on the same connection', async (t) => {
  const { relay, database } = await opened(t)
  const ask = () => sql`select 1`.execute(database.db)
  await ask()
  relay.stall(true)
  const started = performance.now()
  await assert.rejects(ask(), { code: 'STORE_UNAVAILABLE', message: /timeout/ })
  await assert.rejects(ask(), { code: 'STORE_UNAVAILABLE', message: /timeout/ }) // a new connection
  assert.ok(performance.now() - started < 20 * QUICK.queryMs)
  relay.stall(false)
  await ask()
})

test('a query that takes too long, and one that waits for all connections', async (t) => {
  const { database } = await opened(t)
  await assert.rejects(sql`select pg_sleep(10)`.execute(database.db), {
    code: 'STORE_UNAVAILABLE',
    message: /too long/,
  })
  const held = Promise.withResolvers<void>()
  const holders = Array.from({ length: QUICK.connectionsMax }, () =>
    database.db.transaction().execute(() => held.promise),
  )
  await assert.rejects(sql`select 1`.execute(database.db), { code: 'STORE_UNAVAILABLE', message: /timeout/ })
  held.resolve()
  await Promise.all(holders)
  await sql`select 1`.execute(database.db)
})

test('a transaction that stays open is ended, and no query waits for it forever', async (t) => {
  const { database } = await opened(t)
  const forgotten = database.db.transaction().execute(async (queries) => {
    await sql`lock table api_keys`.execute(queries)
    await wait(2 * QUICK.statementMs)
    await sql`select 1`.execute(queries)
  })
  await Promise.all([
    assert.rejects(forgotten, { code: 'STORE_UNAVAILABLE' }),
    wait(100).then(() =>
      database.db
        .selectFrom('api_keys')
        .select('id')
        .execute()
        .catch((error) => {
          assert.equal(error.code, 'STORE_UNAVAILABLE')
        }),
    ),
  ])
  await database.db.selectFrom('api_keys').select('id').execute()
})

test('at the start: no server, no such database, no such user, no permission, not PostgreSQL', async (t) => {
  const url = new URL(await urlWithoutTables('postgres', t))
  const refused = async (change: (url: URL) => void, message: RegExp, code = 'STORE_UNAVAILABLE') => {
    const changed = new URL(url)
    changed.password = 'hunter2'
    change(changed)
    await assert.rejects(
      Store.open(changed.href).then((store) => store.close()),
      (error: Error & { code: string; cause?: unknown }) => {
        assert.equal(error.code, code, error.stack)
        assert.match(error.message, message)
        assert.ok(!error.message.includes('hunter2'))
        assert.ok(!JSON.stringify(error.cause ?? null).includes('hunter2'))
        return true
      },
    )
  }
  await refused((to) => (to.port = '1'), /cannot be reached .*ECONNREFUSED/)
  await refused((to) => (to.hostname = 'nowhere.invalid'), /cannot be reached .*(ENOTFOUND|EAI_AGAIN)/)
  await refused((to) => (to.pathname = '/gatehouse_nowhere'), /does not let us in .*3D000/)
  await refused((to) => (to.username = 'gatehouse_nobody'), /does not let us in .*28/)
  await refused((to) => (to.search = '?sslmode=require'), /cannot be reached .*SSL/)
  await refused((to) => (to.search = '?sslrootcert=/nowhere'), /names a file/, 'STORE_URL_INVALID')
  await assert.rejects(Store.open('postgres://u:hunter2@[x/y'), (error: Error & { code: string }) => {
    return error.code === 'STORE_URL_INVALID' && !`${error.stack}`.includes('hunter2')
  })
  const silent = createServer((socket) =>
    socket.end('HTTP/1.1 400 Bad Request\r\n\r\n').on('error', () => undefined),
  )
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  await refused((to) => (to.port = String((silent.address() as { port: number }).port)), /./)
  const role = `gatehouse_${url.pathname.slice(-16)}`
  await inServer(`create role ${role} login`)
  t.teardown(() => inServer(`drop role ${role}`))
  await refused((to) => (to.username = role), /missing.*gatehouse migrate/, 'STORE_TOO_OLD')
})

test('the password of the login is sent to the server', async (t) => {
  const { url, password } = await askingForPassword(t)
  await assert.rejects(Store.open(url, new StoreLogin('hunter2')), { name: 'Fault' })
  assert.equal(await password, 'hunter2')
})

test('what the server says is sorted by its state', async () => {
  const fault = (code: string) => {
    const error = new pg.DatabaseError('words', 5, 'error')
    error.code = code
    const found = asFault(error, false)
    return found === error ? 'as it is' : (found as { code: string }).code
  }
  for (const [code, expected] of [
    ['53100', 'STORE_FULL'],
    ['53300', 'STORE_UNAVAILABLE'],
    ['40P01', 'STORE_LOCKED'],
    ['40001', 'STORE_LOCKED'],
    ['57P01', 'STORE_UNAVAILABLE'],
    ['57P03', 'STORE_UNAVAILABLE'],
    ['25006', 'STORE_UNAVAILABLE'],
    ['58030', 'STORE_UNAVAILABLE'],
    ['XX001', 'STORE_DAMAGED'],
    ['23505', 'as it is'],
    ['42601', 'as it is'],
    ['22021', 'as it is'],
    ['25P02', 'as it is'],
  ] as const)
    assert.equal(fault(code), expected, code)
})

/** The first bytes of a PostgreSQL server that asks for the password in clear text, and refuses it. */
async function askingForPassword(t: Test): Promise<{ url: string; password: Promise<string> }> {
  const password = Promise.withResolvers<string>()
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .once('data', () => {
        socket.write(message('R', Buffer.from([0, 0, 0, 3])))
        socket.once('data', (answer) => {
          password.resolve(answer.subarray(5, -1).toString())
          socket.end(message('E', Buffer.from('SFATAL\0C28P01\0Mpassword authentication failed\0\0')))
        })
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: `postgres://root@127.0.0.1:${port}/test`, password: password.promise }
}

/** A message of PostgreSQL's protocol: its type, its length and its content. */
function message(type: string, content: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length + 4)
  return Buffer.concat([Buffer.from(type), length, content])
}

async function opened(t: Test): Promise<{ store: Store; database: Database; relay: Relay; name: string }> {
  const url = await freshUrl('postgres', t)
  const relay = await Relay.before(url)
  t.teardown(() => relay.stop())
  const store = await openAt(t, relay.url)
  const database = await openPostgres(relay.url, null, migrate, QUICK)
  t.teardown(() => database.close())
  return { store, database, relay, name: new URL(url).pathname.slice(1) }
}

const FIRST = { page: 1, limit: 50 }
const QUICK = { connectionsMax: 3, connectMs: 500, statementMs: 1000, queryMs: 1500 }

appsContract('postgres')
policiesContract('postgres')
gnapContract('postgres')
trustContract('postgres')
webhooksContract('postgres')
usersContract('postgres')
passkeysContract('postgres')
