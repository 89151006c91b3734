import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ALL_HOSTS_MAX, APP_HOSTS_MAX, type App, parseApps } from '../../src/apps/app.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { until } from '../until.ts'
import { appKeeper } from './idle-links.ts'
import { TestManagement } from './management.ts'

test('an app is created, read, changed and deleted, and each is in the audit log', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await manage.ask('POST', '/v1/apps', SHOP)
  const { created_at, updated_at, ...rest } = made.body
  assert.equal(made.status, 201, JSON.stringify(made.body))
  assert.deepEqual(rest, { ...SHOP, source: 'api' })
  assert.match(created_at, /Z$/)
  assert.equal(updated_at, created_at)
  assert.deepEqual((await manage.ask('GET', '/v1/apps/shop')).body, made.body)

  const changed = await manage.ask('PATCH', '/v1/apps/shop', { team: null, name: null, hosts: ['b.example'] })
  assert.equal(changed.status, 200)
  assert.partialDeepStrictEqual(changed.body, {
    ...SHOP,
    ...{ team: null, name: 'shop', hosts: ['b.example'], created_at },
  })
  assert.equal((await manage.ask('DELETE', '/v1/apps/shop')).status, 204)
  assert.equal((await manage.ask('GET', '/v1/apps/shop')).status, 404)
  const { body } = await manage.ask('GET', '/v1/audit')
  assert.deepEqual(
    body.audit.map((each: { action: string; subject: string }) => [each.action, each.subject]).slice(0, 3),
    ['deleteApp', 'updateApp', 'createApp'].map((action) => [action, 'shop']),
  )
  assert.deepEqual(body.audit[1].detail.after.hosts, ['b.example'])
  assert.deepEqual(manage.apps[0], [SHOP])
  await until(() => manage.apps.at(-1)!.length === 0)
})

test('an app needs only an id', async (t) => {
  const manage = await TestManagement.start(t)
  const { status, body } = await manage.ask('POST', '/v1/apps', { id: 'a' })
  assert.equal(status, 201)
  assert.partialDeepStrictEqual(body, {
    ...{ id: 'a', name: 'a', team: null, hosts: [], upstream: null, labels: [], quota: null },
  })
})

test('every problem of an app is named at its field', async (t) => {
  const manage = await TestManagement.start(t)
  const problems = async (body: unknown) => {
    const answered = await manage.ask('POST', '/v1/apps', body)
    assert.equal(answered.status, 400, JSON.stringify(answered.body))
    return answered.body.errors as readonly { pointer: string; detail: string }[]
  }
  const pointers = async (body: unknown) => (await problems(body)).map(({ pointer }) => pointer)
  assert.deepEqual(
    await pointers({ id: 'A', team: '-', hosts: ['ok.example', 'a.example:1'], upstream: '', labels: [''] }),
    ['/id', '/team', '/hosts/1', '/upstream', '/labels/0'],
  )
  assert.deepEqual(await pointers({}), ['/id'])
  for (const id of ['default', 'other', 'a b', '']) assert.deepEqual(await pointers({ id }), ['/id'], id)
  assert.deepEqual(await pointers({ id: 'a', host: [] }), ['/host'])
  assert.deepEqual(await problems({ id: 'a', upstream: 'othr' }), [
    { pointer: '/upstream', detail: 'is not the name of an upstream (did you mean "other"?)' },
  ])
  const [twice] = await problems({ id: 'a', hosts: ['a.example', 'A.example.'] })
  assert.match(twice!.detail, /A\.example\./)
  const hosts = Array.from({ length: APP_HOSTS_MAX + 1 }, (_, number) => `h${number}.example`)
  assert.deepEqual(await pointers({ id: 'a', hosts }), ['/hosts'])
  assert.equal((await manage.ask('GET', '/v1/apps')).body.total, 0)
})

test('all apps together have a limited number of hosts', async (t) => {
  const hosts = Array.from({ length: ALL_HOSTS_MAX - 2 }, (_, number) => `h${number}.example`)
  const lots = hosts.flatMap((_, at) =>
    at % APP_HOSTS_MAX === 0 ? [hosts.slice(at, at + APP_HOSTS_MAX)] : [],
  )
  const apps = parseApps(lots.map((some, number) => ({ id: `a${number}`, hosts: some })))
  const manage = await TestManagement.start(t, { apps })
  const asked = (id: string, method: 'POST' | 'PATCH', names: readonly string[]) =>
    manage.ask(method, method === 'POST' ? '/v1/apps' : `/v1/apps/${id}`, {
      ...(method === 'POST' ? { id } : {}),
      hosts: names,
    })
  assert.equal((await asked('one', 'POST', ['a.test', 'b.test'])).status, 201)
  const { status, body } = await asked('two', 'POST', ['c.test'])
  assert.deepEqual(
    [status, body.code, body.detail],
    [409, 'conflict', 'too many hosts of all apps (at most 50000): remove some first'],
  )
  assert.equal((await asked('one', 'PATCH', ['a.test', 'b.test', 'c.test'])).status, 409)
  assert.equal((await asked('one', 'PATCH', ['a.test', 'c.test'])).status, 200)
})

test('an id and a host belong to one app, which the refusal names', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', SHOP)
  const again = await manage.ask('POST', '/v1/apps', { id: 'shop' })
  assert.deepEqual(
    [again.status, again.body.code, again.body.detail],
    [409, 'conflict', 'the app "shop" already exists'],
  )
  const taken = await manage.ask('POST', '/v1/apps', { id: 'blog', hosts: ['x.example', 'SHOP.example.'] })
  assert.deepEqual(
    [taken.status, taken.body.detail, taken.body.errors],
    [
      409,
      'the host "SHOP.example." belongs to the app "shop"',
      [{ pointer: '/hosts/1', detail: 'is taken' }],
    ],
  )
  await manage.ask('POST', '/v1/apps', { id: 'blog', hosts: ['blog.example'] })
  const moved = await manage.ask('PATCH', '/v1/apps/blog', { hosts: ['*.shop.example'] })
  assert.deepEqual(
    [moved.status, moved.body.detail],
    [409, 'the host "*.shop.example" belongs to the app "shop"'],
  )
  assert.deepEqual((await manage.ask('GET', '/v1/apps/blog')).body.hosts, ['blog.example'])
})

test('apps of the settings are listed, read-only, and keep their ids and hosts', async (t) => {
  const apps = parseApps([{ id: 'fixed', hosts: ['fixed.example'], team: 'ops' }])
  const manage = await TestManagement.start(t, { apps })
  await manage.ask('POST', '/v1/apps', SHOP)
  const { body } = await manage.ask('GET', '/v1/apps')
  assert.deepEqual(
    body.apps.map(({ id, source, created_at }: Shown) => [id, source, created_at === null]),
    [
      ['fixed', 'settings', true],
      ['shop', 'api', false],
    ],
  )
  const said = 'the app "fixed" comes from the settings: change it under apps there'
  const refused = [
    await manage.ask('POST', '/v1/apps', { id: 'fixed' }),
    await manage.ask('PATCH', '/v1/apps/fixed', { team: 'web' }),
    await manage.ask('DELETE', '/v1/apps/fixed'),
  ]
  for (const each of refused) assert.deepEqual([each.status, each.body.detail], [409, said])
  const host = await manage.ask('PATCH', '/v1/apps/shop', { hosts: ['Fixed.example'] })
  assert.deepEqual(
    [host.status, host.body.detail],
    [409, 'the host "Fixed.example" belongs to the app "fixed"'],
  )
  await until(() => manage.apps.length === 1)
  assert.deepEqual(manage.apps[0]!.map(idOf), ['fixed', 'shop'])
})

test('If-Match guards a change and a deletion', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', SHOP)
  const etag = (await manage.ask('GET', '/v1/apps/shop')).headers.get('etag')!
  const change = (ifMatch: string) =>
    manage.ask('PATCH', '/v1/apps/shop', { labels: ['a'] }, { 'if-match': ifMatch })
  assert.equal((await change('"other"')).status, 412)
  assert.equal((await change(etag)).status, 200)
  assert.equal((await change(etag)).status, 412)
  const remove = (ifMatch: string) =>
    manage.ask('DELETE', '/v1/apps/shop', undefined, { 'if-match': ifMatch })
  assert.equal((await remove(etag)).status, 412)
  assert.equal((await remove('*')).status, 204)
})

test('a creation is idempotent with a key, and of several at once one succeeds', async (t) => {
  const manage = await TestManagement.start(t)
  const twice = [1, 2].map(() => manage.ask('POST', '/v1/apps', SHOP, { 'idempotency-key': 'one' }))
  const [first, second] = [await twice[0]!, await twice[1]!]
  const again = await manage.ask('POST', '/v1/apps', SHOP, { 'idempotency-key': 'one' })
  assert.equal(again.status, 201)
  assert.ok([first, second].every(({ status }) => status === 201 || status === 409))
  const many = [1, 2, 3, 4].map((n) => manage.ask('POST', '/v1/apps', { id: `n${n}`, hosts: ['n.example'] }))
  assert.deepEqual((await Promise.all(many)).map(({ status }) => status).sort(), [201, 409, 409, 409])
})

test('the list has pages, cursors and a filter by team', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['c', 'a', 'b']) await manage.ask('POST', '/v1/apps', { id, team: id === 'b' ? 'x' : 'y' })
  const page = await manage.ask('GET', '/v1/apps?limit=2&page=2')
  assert.deepEqual([page.body.apps.map(idOf), page.body.total], [['c'], 3])
  const first = await manage.ask('GET', '/v2/apps?limit=2')
  assert.deepEqual(first.body.apps.map(idOf), ['a', 'b'])
  const rest = await manage.ask('GET', `/v2/apps?limit=2&cursor=${first.body.next_cursor}`)
  assert.deepEqual([rest.body.apps.map(idOf), rest.body.next_cursor], [['c'], null])
  assert.deepEqual((await manage.ask('GET', '/v1/apps?team=y')).body.apps.map(idOf), ['a', 'c'])
})

test('reading needs the scope read, and changing needs admin', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', SHOP)
  const as = async (scopes: readonly ('read' | 'write' | 'detect')[]) => {
    const authorization = `Bearer ${await manage.key({ scopes })}`
    const statuses = [
      manage.ask('GET', '/v1/apps', undefined, { authorization }),
      manage.ask('GET', '/v1/apps/shop', undefined, { authorization }),
      manage.ask('POST', '/v1/apps', { id: 'x' }, { authorization }),
      manage.ask('PATCH', '/v1/apps/shop', {}, { authorization }),
      manage.ask('DELETE', '/v1/apps/shop', undefined, { authorization }),
    ]
    return (await Promise.all(statuses)).map(({ status }) => status)
  }
  assert.deepEqual(await as(['read', 'write']), [200, 200, 403, 403, 403])
  assert.deepEqual(await as(['detect']), [403, 403, 403, 403, 403])
})

for (const kind of KINDS) {
  test(`${kind}: a change by another process is followed`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const used: (readonly App[])[] = []
    const other = appKeeper(temporaryFolder(t), { use: (apps) => used.push(apps) })
    await other.open(await openAt(t, storeUrl))
    assert.deepEqual(used, [])
    await manage.ask('POST', '/v1/apps', SHOP)
    await other.follow()
    await other.follow()
    assert.deepEqual(used, [[SHOP]])
    await other.create({ ...SHOP, id: 'blog', hosts: [] }, ACTOR, 1)
    await other.close()
    await until(() => manage.apps.at(-1)?.length === 2)
    assert.deepEqual(manage.apps.at(-1)!.map(idOf), ['blog', 'shop'])
  })
}

test('changes that follow closely share a list', async (t) => {
  const manage = await TestManagement.start(t)
  const ids = Array.from({ length: 20 }, (_, number) => `app-${String(number).padStart(2, '0')}`)
  await Promise.all(ids.map((id) => manage.ask('POST', '/v1/apps', { id })))
  await until(() => manage.apps.at(-1)?.length === ids.length)
  assert.deepEqual(manage.apps.at(-1)!.map(idOf), ids)
  assert.ok(manage.apps.length < ids.length, `${manage.apps.length} lists`)
})

test('the last apps are in force before the database is open, and stay without it', async (t) => {
  const folder = temporaryFolder(t)
  const storeUrl = await freshUrl('sqlite', t)
  const store = await Store.open(storeUrl)
  const before = appKeeper(folder)
  await before.open(store)
  await before.create(SHOP, ACTOR, 1)
  await before.close()
  await store.close()
  await before.follow()

  const used: (readonly App[])[] = []
  const after = appKeeper(folder, { use: (apps) => used.push(apps) })
  await after.start()
  assert.deepEqual(used, [[SHOP]])
  await after.open(await openAt(t, storeUrl))
  assert.deepEqual(used.length, 1)

  writeFileSync(join(folder, 'apps.json'), 'not JSON')
  const damaged = appKeeper(folder, { use: () => assert.fail('in force') })
  await damaged.start()
})

test('settings that take an id or a host of a stored app win', async (t) => {
  const folder = temporaryFolder(t)
  const store = await openAt(t, await freshUrl('sqlite', t))
  const before = appKeeper(folder)
  await before.open(store)
  await before.create({ ...SHOP, hosts: ['a.example', 'b.example'] }, ACTOR, 1)
  await before.create({ ...SHOP, id: 'blog', hosts: ['blog.example'] }, ACTOR, 1)
  await before.close()
  const used: (readonly App[])[] = []
  const configured = parseApps([{ id: 'blog' }, { id: 'new', hosts: ['B.example'] }])
  const after = appKeeper(folder, { configured, use: (apps) => used.push(apps) })
  await after.open(store)
  assert.deepEqual(
    used.at(-1)!.map(({ id, hosts }) => [id, hosts]),
    [
      ['blog', []],
      ['new', ['B.example']],
      ['shop', ['a.example']],
    ],
  )
})

test('a stored app that is invalid is left out', async (t) => {
  const store = await openAt(t, await freshUrl('sqlite', t))
  const keeper = appKeeper(temporaryFolder(t))
  await keeper.open(store)
  await keeper.create(SHOP, ACTOR, 1)
  await keeper.close()
  const bad = { ...SHOP, id: 'Bad Id', hosts: [], createdAtMs: 1, updatedAtMs: 1 }
  await store.transaction((queries) => store.apps.put(bad, queries))
  const used: (readonly App[])[] = []
  const fresh = appKeeper(temporaryFolder(t), { use: (apps) => used.push(apps) })
  await fresh.open(store)
  assert.deepEqual(used, [[SHOP]])
})

type Shown = { readonly id: string; readonly source: string; readonly created_at: string | null }
const idOf = ({ id }: { readonly id: string }) => id
const SHOP: App = {
  ...{ id: 'shop', name: 'Shop', team: 'retail', hosts: ['shop.example', '*.shop.example'] },
  ...{ upstream: 'other', labels: ['eu'], quota: { minute: 600 } },
}
const ACTOR = { id: 'key_test', address: null, requestId: null }
