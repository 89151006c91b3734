import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import SqliteConnection from 'better-sqlite3'
import { test } from 'tap'
import { freshUrl } from '../store/databases.ts'
import { inServer } from '../store/postgres-databases.ts'
import { Relay } from '../store/relay.ts'
import { type Answered, TestManagement } from './management.ts'
import { basic, clientFor, postForm, tokenFor } from './oauth-client.ts'

test('a database that is away says so, with the reason, and works again when it is back: PostgreSQL', async (t) => {
  const url = await freshUrl('postgres', t)
  const relay = await Relay.before(url)
  t.teardown(() => relay.stop())
  const manage = await TestManagement.start(t, { storeUrl: relay.url })
  await works(manage)

  relay.cut()
  await eventuallyWorks(manage) // a connection or two may not know it yet

  await relay.stop()
  for (let time = 0; time < 12; time++) isAway(await add(manage), /is unreachable/)
  isAway(await manage.ask('GET', '/v1/audit'), /is unreachable/)
  await isAlive(manage)
  await relay.start()
  await works(manage)

  await inServer(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(url).pathname.slice(1)}'`,
  )
  await wait(50)
  await works(manage)
  assert.deepEqual(manage.failures, [])
})

test('a database that is away says so, with the reason, and works again when it is back: SQLite', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  const file = storeUrl.slice('sqlite:'.length)
  const manage = await TestManagement.start(t, { storeUrl })
  await works(manage)

  renameSync(file, `${file}.away`)
  await wait(600) // as long as a key is remembered
  isAway(await add(manage), /is unreachable/)
  await isAlive(manage)
  renameSync(`${file}.away`, file)
  await works(manage)

  const other = new SqliteConnection(file)
  t.teardown(() => other.close())
  other.exec('begin immediate')
  const waiting = add(manage)
  await isAlive(manage)
  isAway(await waiting, /locked by another program/)
  other.exec('commit')
  await works(manage)
  assert.deepEqual(manage.failures, [])
})

test('tokens are neither made nor taken without a database, for nobody could say that they are good', async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  const manage = await TestManagement.start(t, { storeUrl: relay.url })
  const client = await clientFor(manage, {})
  const token = await tokenFor(manage, client)
  const open = () => manage.ask('GET', '/v1/agents', undefined, { authorization: `Bearer ${token}` })
  assert.equal((await open()).status, 200)
  await relay.stop()
  await wait(900)
  isAway(await open(), /is unreachable/)
  const asked = { grant_type: 'client_credentials' }
  for (const path of ['/oauth/token', '/oauth/introspect', '/oauth/revoke']) {
    const { status, body } = await postForm(manage.url, path, { ...asked, token }, basic(client))
    assert.deepEqual([status, body.error], [503, 'temporarily_unavailable'], path)
  }
  for (const path of ['/oauth/jwks', '/.well-known/oauth-authorization-server'])
    assert.equal((await fetch(manage.url + path)).status, 200)
  await relay.start()
  while ((await open()).status !== 200) await wait(100)
  assert.equal((await postForm(manage.url, '/oauth/token', asked, basic(client))).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('a database that is not there at the start is opened when it is', async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  await relay.stop()
  const adminKey = 'the key of the configuration'
  const manage = await TestManagement.start(t, { storeUrl: relay.url, adminKey, admin: null })
  const bearer = { authorization: `Bearer ${adminKey}` }
  const ask = () => manage.ask('GET', '/v1/keys', undefined, bearer)
  isAway(await ask(), /is unreachable/)
  await isAlive(manage)
  await relay.start()
  while ((await ask()).status !== 200) await wait(100)
  assert.deepEqual(manage.failures, [])
})

function add(manage: TestManagement): Promise<Answered> {
  return manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' })
}

async function works(manage: TestManagement): Promise<void> {
  const { status, body } = await add(manage)
  assert.equal(status, 201, JSON.stringify(body))
}

async function eventuallyWorks(manage: TestManagement): Promise<void> {
  for (let time = 0; time < 12; time++) {
    const { status, body } = await add(manage)
    if (status === 201) return
    assert.deepEqual([status, body.code], [503, 'unavailable'])
  }
  await works(manage)
}

function isAway({ status, body, headers }: Answered, reason: RegExp): void {
  assert.deepEqual([status, body.code], [503, 'unavailable'], JSON.stringify(body))
  assert.match(body.detail, reason)
  assert.ok(Number(headers.get('retry-after')) > 0)
  assert.ok(!JSON.stringify(body).includes('127.0.0.1'), 'it says where the database is')
}

/** At once: nobody waits here for a database that waits. */
async function isAlive(manage: TestManagement): Promise<void> {
  const response = await fetch(`${manage.url}/health/live`, { signal: AbortSignal.timeout(2000) })
  assert.equal(response.status, 200)
}
