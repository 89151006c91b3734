import assert from 'node:assert/strict'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { LeaderLock } from '../../src/store/engine/leader-lock.ts'
import { MIGRATIONS } from '../../src/store/engine/migrations.ts'
import { Store } from '../../src/store/store.ts'
import { sighting } from '../contract/bus.ts'
import { TestManagement } from '../manage/management.ts'
import { until } from '../manage/event-reader.ts'
import { freshUrl, KINDS, openAt, urlWithoutTables } from '../store/databases.ts'
import { inDatabase, roles } from '../store/roles.ts'
import { memoryIo } from './memory-io.ts'

const LAST = [...MIGRATIONS.keys()].at(-1)!

for (const kind of KINDS)
  test(`${kind}: the tables are brought up to date, once, and it says from where to where`, async (t) => {
    const url = await urlWithoutTables(kind, t)
    assert.deepEqual(await migrated(url), {
      ...{ code: 0, err: '' },
      out: `The tables are brought from an empty database to ${LAST}, in ${MIGRATIONS.size} steps.\n`,
    })
    assert.equal((await migrated(url)).out, `The tables are up to date: ${LAST}.\n`)
    assert.deepEqual(JSON.parse((await migrated(url, '--json')).out), { before: LAST, added: [] })
    const store = await openAt(t, url)
    assert.deepEqual(await store.settings.all(), [])
  })

test('several at once bring them up to date once, while a manager runs', async (t) => {
  const url = await urlWithoutTables('postgres', t)
  const runs = await Promise.all([migrated(url), migrated(url), migrated(url)])
  assert.deepEqual(
    runs.map(({ code }) => code),
    [0, 0, 0],
  )
  assert.equal(runs.filter(({ out }) => out.includes('brought')).length, 1)
  const manage = await TestManagement.start(t, { storeUrl: url })
  assert.equal((await migrated(url)).code, 0)
  assert.equal((await manage.ask('GET', '/v1/keys')).status, 200)
})

test('a database that is away, or of a later version, is said, and left as it is', async (t) => {
  const url = await freshUrl('postgres', t)
  const away = new URL(url)
  away.port = '1'
  const lost = await migrated(away.href)
  assert.deepEqual([lost.code, lost.out], [1, ''])
  assert.match(lost.err, /cannot be reached/)
  await migrated(url)
  await inDatabase(url, "insert into migrations (name, at_ms) values ('9999-later', 0)")
  const later = await migrated(url)
  assert.deepEqual([later.code, later.out], [1, ''])
  assert.match(later.err, /later version.*9999-later/)
})

test('with the users of config/postgres-roles.sql managers change rows and no tables', async (t) => {
  const { owner, runtime } = await roles(t)
  // There is nothing yet, and it may make nothing.
  await assert.rejects(Store.open(runtime), { code: 'STORE_TOO_OLD', message: /gatehouse migrate/ })
  const refused = await migrated(runtime)
  assert.deepEqual([refused.code, refused.out], [1, ''])
  assert.match(refused.err, /may not change them/)
  const waiting = await TestManagement.start(t, { storeUrl: runtime, admin: null, adminKey: 'of the start' })
  const bearer = { authorization: 'Bearer of the start' }
  const early = await waiting.ask('GET', '/v1/keys', undefined, bearer)
  assert.deepEqual([early.status, /gatehouse migrate/.test(early.body.detail)], [503, true])
  assert.equal((await migrated(owner)).code, 0)
  await until(async () => (await waiting.ask('GET', '/v1/keys', undefined, bearer)).status === 200)

  const manage = await TestManagement.start(t, { storeUrl: runtime, knows: true })
  await manage.fillCatalogue()
  for (const [method, path, body, status] of [
    ['POST', '/v1/keys', { name: 'x', access: 'read' }, 201],
    ['PATCH', '/v1/settings', { 'limits.free_per_day': 5 }, 200],
    ['PUT', '/v1/policy', { rules: [] }, 200],
    ['POST', '/v1/detect', { user_agent: 'GPTBot/1.2' }, 200],
    ['POST', '/v1/webhooks', { url: 'https://example.com/x', events: ['new_agent'] }, 201],
    ['POST', '/v1/clients', { name: 'x', scopes: ['read'], grant_types: ['client_credentials'] }, 201],
    ['POST', '/v1/signatures/submit', SUBMISSION, 200],
    ['GET', '/v1/agents', undefined, 200],
    ['GET', '/v1/stats', undefined, 200],
    ['GET', '/v1/audit', undefined, 200],
  ] as const) {
    const answer = await manage.ask(method, path, body, path === '/v1/policy' ? { 'if-match': '*' } : {})
    assert.equal(answer.status, status, `${method} ${path} ${JSON.stringify(answer.body)}`)
  }
  await manage.take([1, 2, 3].map((number) => ({ ...sighting(number), seenAtMs: Date.now() })))
  const lock = new LeaderLock(runtime, null)
  assert.ok((await lock.take()) && (await lock.isHeld()))
  await lock.release()
  assert.deepEqual([...manage.failures, ...waiting.failures], [])

  for (const statement of [
    'create table mine (x text)',
    'drop table settings',
    'alter table settings add column x text',
    'truncate settings',
    'create index mine on settings (name)',
    'create schema mine',
  ])
    await assert.rejects(inDatabase(runtime, statement), { code: '42501' }, statement)
  await assert.rejects(inDatabase(owner, 'create role mine'), { code: '42501' })
})

async function migrated(
  url: string,
  ...argv: readonly string[]
): Promise<{ code: number; out: string; err: string }> {
  const io = memoryIo('', { env: { GATEHOUSE_STORE_URL: url }, columns: 400 })
  const code = await runCli(COMMANDS, ['migrate', ...argv], io)
  return { code, out: io.out, err: io.err }
}

const SUBMISSION = {
  ...{ fingerprint: 't13d1011h2_61a7ad8aa9b6_3a8073edd8ef', type: 'ja4' },
  ...{ agent_name: 'Acme Bot', category: 'orchestrator' },
}
