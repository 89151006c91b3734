import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'tap'
import { APP_POLICIES_LENGTH_MAX, AppPolicyCopy } from '../../src/manage/publish/app-policies.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { until } from '../until.ts'
import { appKeeper, appPolicies } from './idle-links.ts'
import { TestManagement } from './management.ts'

const BLOCK = { rules: [{ name: 'no-crawlers', when: { category: 'crawler' }, action: 'block' }] }
const PASS = { rules: [{ name: 'all', when: {}, action: 'pass' }], otherwise: 'block' }
const ANY = { 'if-match': '*' }

for (const kind of KINDS)
  test(`${kind}: each app has a policy with versions of its own`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    const before = await manage.ask('GET', '/v1/apps/shop/policy')
    assert.partialDeepStrictEqual(before.body, { policy: { rules: [] }, source: 'default', version: null })
    assert.equal((await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK)).status, 428)
    const tag = before.headers.get('etag')!
    const put = await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK, { 'if-match': tag })
    assert.partialDeepStrictEqual(put.body, { policy: BLOCK, source: 'api', version: 1, problems: [] })
    assert.equal((await manage.ask('PUT', '/v1/apps/shop/policy', PASS, { 'if-match': tag })).status, 412)
    const again = { 'if-match': put.headers.get('etag')! }
    const whole = await manage.ask('PUT', '/v1/apps/shop/policy', { ...put.body, policy: PASS }, again)
    assert.deepEqual([whole.status, whole.body.version], [200, 2])
    const other = await manage.ask('PUT', '/v1/apps/blog/policy', BLOCK, ANY)
    assert.equal(other.body.version, 1)
    assert.equal((await manage.ask('PUT', '/v1/apps/default/policy', PASS, ANY)).body.version, 1)

    const versions = await manage.ask('GET', '/v1/apps/shop/policy/versions')
    const listed = versions.body.versions.map((each: { version: number; in_force: boolean }) => {
      return [each.version, each.in_force]
    })
    assert.deepEqual(
      [listed, versions.body.total],
      [
        [
          [2, true],
          [1, false],
        ],
        2,
      ],
    )
    const beta = await manage.ask('GET', '/v2/apps/shop/policy/versions?limit=1')
    assert.deepEqual([beta.body.versions.length, typeof beta.body.next_cursor], [1, 'string'])
    assert.deepEqual((await manage.ask('GET', '/v1/apps/shop/policy/versions/1')).body.policy, BLOCK)
    assert.equal((await manage.ask('GET', '/v1/apps/blog/policy/versions/2')).status, 404)
    const restored = await manage.ask('POST', '/v1/apps/shop/policy/versions/1/restore', undefined, ANY)
    assert.partialDeepStrictEqual(restored.body, { policy: BLOCK, version: 3, restored_version: 1 })
    const inForce = () => new Map(manage.appPolicies.at(-1)?.map(({ app, document }) => [app, document]))
    await until(() => inForce().size === 3 && inForce().get('shop') === JSON.stringify(BLOCK))
    assert.deepEqual(
      manage.appPolicies.at(-1)!.map(({ app, document }) => [app, JSON.parse(document)]),
      [
        ['blog', BLOCK],
        ['default', PASS],
        ['shop', BLOCK],
      ],
    )
    assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.source, 'default')
    const { audit } = (await manage.ask('GET', '/v1/audit')).body
    assert.partialDeepStrictEqual(audit[0], {
      ...{ action: 'restoreAppPolicy', subject: 'shop', detail: { version: 3, before: 2 } },
    })
    assert.deepEqual(manage.failures, [])
  })

test('the policy of an app ends with it', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  for (const policy of [BLOCK, PASS]) await manage.ask('PUT', '/v1/apps/shop/policy', policy, ANY)
  assert.equal((await manage.ask('DELETE', '/v1/apps/shop')).status, 204)
  const { audit } = (await manage.ask('GET', '/v1/audit')).body
  assert.partialDeepStrictEqual(audit[0], { action: 'deleteApp', detail: { policy_versions: 2 } })
  await until(() => manage.appPolicies.at(-1)!.length === 0)
  assert.equal((await manage.ask('GET', '/v1/apps/shop/policy')).status, 404)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  const { body } = await manage.ask('GET', '/v1/apps/shop/policy')
  assert.deepEqual([body.source, body.version, body.problems], ['default', null, []])
  assert.equal((await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK, ANY)).body.version, 1)
})

test('an app of the settings has a policy, and an unknown app has none', async (t) => {
  const app = { id: 'shop', name: 'shop', team: null, hosts: [], upstream: null, labels: [], quota: null }
  const manage = await TestManagement.start(t, { apps: [app] })
  assert.equal((await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK, ANY)).status, 200)
  for (const id of ['blog', 'other', '*', 'constructor'])
    for (const [method, path] of [
      ['GET', ''],
      ['PUT', ''],
      ['GET', '/versions'],
      ['GET', '/versions/1'],
      ['POST', '/versions/1/restore'],
    ] as const) {
      const body = method === 'PUT' ? BLOCK : undefined
      const { status } = await manage.ask(method, `/v1/apps/${id}/policy${path}`, body, ANY)
      assert.equal(status, 404, `${method} ${id} ${path}`)
    }
})

test('a refused policy of an app says why, and changes nothing', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  const many = Array.from({ length: 1001 }, (_, index) => ({ name: `r${index}`, when: {}, action: 'tag' }))
  for (const [policy, pointer, detail] of [
    [{ first: BLOCK.rules }, '/first', /unknown field/],
    [{ rules: [{ name: 'a', when: { path: 'x' }, action: 'block' }] }, '/rules/0/when/path', /rule "a"/],
    [{ rules: many }, '/rules', /1001 rules; at most 1000/],
    [{ policy: null }, '/policy', /is null/],
  ] as const) {
    const { status, body } = await manage.ask('PUT', '/v1/apps/shop/policy', policy, ANY)
    assert.deepEqual([status, body.errors[0].pointer], [400, pointer])
    assert.match(body.errors[0].detail, detail)
  }
  assert.equal((await manage.ask('GET', '/v1/apps/shop/policy/versions')).body.total, 0)
})

test('the policies of all apps together have a limited length', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['a', 'b']) await manage.ask('POST', '/v1/apps', { id })
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const document = `{"rules": []${' '.repeat(APP_POLICIES_LENGTH_MAX - 20)}}`
  const record = {
    version: 1,
    hash: 'x',
    author: 'p',
    restoredVersion: null,
    comment: null,
    createdAtMs: 0,
    document,
  }
  await store.transaction((queries) => store.policies.of('a').add(record, 50, queries))
  assert.equal((await manage.ask('PUT', '/v1/apps/b/policy', {}, ANY)).status, 200)
  const refused = await manage.ask('PUT', '/v1/apps/b/policy', BLOCK, ANY)
  assert.equal(refused.status, 409)
  assert.match(refused.body.detail, /at most 33554432/)
  assert.equal((await manage.ask('PUT', '/v1/apps/a/policy', BLOCK, ANY)).status, 200)
})

for (const kind of KINDS)
  test(`${kind}: what another process changes is in force here, and in the next run`, async (t) => {
    const url = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl: url })
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK, ANY)
    await manage.ask('PUT', '/v1/apps/blog/policy', PASS, ANY)
    const store = await Store.open(url)
    t.teardown(() => store.close())
    const used: (readonly { readonly app: string }[])[] = []
    const parts = { apps: appKeeper(manage.folder), use: (list: (typeof used)[number]) => used.push(list) }
    const policies = appPolicies(manage.folder, parts)
    await policies.open(store)
    assert.deepEqual(policies.of('shop').inForce().document, BLOCK)
    await manage.ask('PUT', '/v1/apps/shop/policy', PASS, ANY)
    await policies.follow()
    assert.deepEqual(policies.of('shop').inForce().document, PASS)
    assert.equal(policies.of('blog').inForce().version!.version, 1)
    await manage.ask('DELETE', '/v1/apps/blog')
    await policies.follow()
    assert.equal(policies.of('blog').inForce().version, null)
    await until(() => used.at(-1)!.length === 1)
    await policies.close()
    const copy = await new AppPolicyCopy(join(manage.folder, 'app-policies.json')).read()
    assert.deepEqual(
      copy!.map(({ app, version }) => [app, version]),
      [['shop', 2]],
    )
    const next = appPolicies(manage.folder, parts)
    await next.start()
    assert.deepEqual(next.of('shop').inForce().document, PASS)
    await next.close()
  })

test('an invalid policy in the database leaves the one before it in force', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  await manage.ask('PUT', '/v1/apps/shop/policy', BLOCK, ANY)
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const record = {
    version: 2,
    hash: 'x',
    author: 'p',
    restoredVersion: null,
    comment: null,
    createdAtMs: 0,
    document: '[]',
  }
  await store.transaction((queries) => store.policies.of('shop').add(record, 50, queries))
  const { body } = await manage.ask('GET', '/v1/apps/shop/policy')
  assert.deepEqual([body.policy, body.version, body.problems.length], [BLOCK, 1, 1])
  assert.ok(manage.said.some((line) => line.includes('"app":"shop"') && line.includes('cannot be used')))
})
