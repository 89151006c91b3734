import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { parseApps } from '../../src/apps/app.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { TestManagement } from '../manage/management.ts'
import { memoryIo } from './memory-io.ts'

test('apps are created and listed', async (t) => {
  const { run } = await running(t)
  const shop = ['--team', 'retail', '--host', 'shop.example', '--host', '*.shop.example', '--label', 'eu']
  assert.deepEqual(await run('create', 'shop', ...shop), { code: 0, out: 'shop\n', err: '' })
  const { out } = await run('list')
  assert.match(out, /^ID +NAME +TEAM +HOSTS +UPSTREAM +SOURCE\n/)
  assert.match(out, /^fixed +fixed +fixed\.example +settings$/m)
  assert.match(out, /^shop +shop +retail +shop\.example \*\.shop\.example +api$/m)
  const listed = JSON.parse((await run('list', '--json')).out)
  assert.deepEqual(
    listed.map(({ id }: { id: string }) => id),
    ['fixed', 'shop'],
  )
  assert.equal(JSON.parse((await run('create', 'blog', '--json')).out).source, 'api')
})

test('a quota is set, shown as a difference, exported and applied', async (t) => {
  const { run, file } = await running(t)
  const made = await run('create', 'shop', '--json', '--quota', 'minute=600, day=100000')
  assert.deepEqual(JSON.parse(made.out).quota, { minute: 600, day: 100_000 })
  for (const text of ['600', 'week=1', 'minute=', 'minute=a', 'minute=1,']) {
    const { code, err } = await run('create', 'x', '--quota', text)
    assert.equal(code, 2, text)
    assert.match(err, /--quota must be like minute=600,day=100000, with minute, hour, day; not "/)
  }
  assert.match((await run('create', 'x', '--quota', 'minute=0')).err, /quota/)
  file((await run('export')).out)
  assert.equal((await run('apply', 'apps.yaml', '--dry-run')).code, 0)
  file('apps: [{ id: shop, quota: { hour: 20, minute: 600 } }, { id: blog, quota: { minute: 1 } }]')
  const { out } = await run('apply', 'apps.yaml')
  assert.match(out, /^~ shop\n {4}quota: 600 per minute, 100000 per day → 600 per minute, 20 per hour$/m)
  assert.match(out, /^\+ blog\n {4}quota: none → 1 per minute$/m)
  file('apps: [{ id: shop }, { id: blog, quota: { minute: 1 } }]')
  assert.match((await run('apply', 'apps.yaml')).out, /^ {4}quota: 600 per minute, 20 per hour → none$/m)
  assert.equal((await run('apply', 'apps.yaml', '--dry-run')).code, 0)
})

test('a refusal names the app that has the host, and the exit code is 1', async (t) => {
  const { run } = await running(t)
  await run('create', 'shop', '--host', 'shop.example')
  const { code, out, err } = await run('create', 'blog', '--host', 'shop.example')
  assert.deepEqual([code, out], [1, ''])
  assert.match(err, /the host "shop\.example" belongs to the app "shop" \(conflict\)/)
  assert.equal((await run('create')).code, 2)
})

test('a dry run shows the differences, and changes nothing', async (t) => {
  const { run, file } = await running(t)
  await run('create', 'shop', '--team', 'retail', '--host', 'a.example')
  await run('create', 'old')
  file('apps: [{ id: shop, name: Shop, hosts: [b.example] }, { id: blog, hosts: [blog.example] }]')
  const before = (await run('export')).out
  const { code, out } = await run('apply', 'apps.yaml', '--dry-run', '--prune')
  assert.equal(code, 1)
  assert.equal(
    out,
    `- old
~ shop
    name: shop → Shop
    team: retail → none
    hosts: +b.example -a.example
+ blog
    hosts: +blog.example
1 to create, 1 to change, 1 to delete
`,
  )
  assert.equal((await run('export')).out, before)
  const told = JSON.parse((await run('apply', 'apps.yaml', '--dry-run', '--json')).out)
  assert.deepEqual(
    [told.dry_run, told.changes.map(({ action }: { action: string }) => action)],
    [true, ['update', 'create']],
  )
})

test('apply makes the apps those of the file, and a second time changes nothing', async (t) => {
  const { run, file } = await running(t)
  await run('create', 'old', '--host', 'old.example')
  const text =
    'apps: [{ id: shop, hosts: [old.example] }, { id: blog }, { id: fixed, hosts: [fixed.example] }]'
  file(text)
  assert.match((await run('apply', 'apps.yaml')).err, /"old\.example" belongs to the app "old"/)
  const { code, err } = await run('apply', 'apps.yaml', '--prune')
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual(await run('apply', 'apps.yaml', '--prune', '--dry-run'), {
    ...{ code: 0, out: '0 to create, 0 to change, 0 to delete\n', err: '' },
  })
})

test('hosts move from one app to another, and in a circle', async (t) => {
  const { run, file } = await running(t)
  file('apps: [{ id: a, hosts: [a.example, x.example] }, { id: b, hosts: [b.example] }]')
  await run('import', 'apps.yaml')
  file('apps: [{ id: a, hosts: [b.example, x.example] }, { id: b, hosts: [a.example] }]')
  assert.deepEqual((await run('apply', 'apps.yaml')).code, 0)
  assert.equal((await run('apply', 'apps.yaml', '--dry-run')).code, 0)
})

test('an export is applied to another installation, and import leaves what exists', async (t) => {
  const one = await running(t)
  await one.run('create', 'shop', '--name', 'The shop', '--host', '[2001:db8::1]', '--label', 'tier: 1')
  const { out } = await one.run('export')
  const other = await running(t)
  other.file(out)
  await other.run('create', 'kept')
  assert.equal((await other.run('import', 'apps.yaml')).code, 0)
  assert.equal((await other.run('apply', 'apps.yaml', '--dry-run', '--prune')).out.split('\n')[0], '- kept')
  other.file(out.replace('The shop', 'Another'))
  assert.match((await other.run('import', 'apps.yaml')).out, /^0 to create/)
  assert.equal((await other.run('apply', 'apps.yaml', '--dry-run')).code, 1)
})

test('an app of the settings is changed only there', async (t) => {
  const { run, file } = await running(t)
  file('apps: [{ id: fixed, hosts: [other.example] }]')
  const { code, err } = await run('apply', 'apps.yaml')
  assert.equal(code, 1)
  assert.match(err, /the app "fixed" comes from the settings/)
})

test('apply overwrites no change that was made meanwhile', async (t) => {
  const { manage, run, file } = await running(t)
  const real = globalThis.fetch
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    await run('create', 'shop', '--team', 'retail')
    file(method === 'DELETE' ? 'apps: []' : 'apps: [{ id: shop, team: web }]')
    const fetching = t.intercept(globalThis, 'fetch', {
      value: async (url: string, init: RequestInit) => {
        if (url.endsWith('/v1/apps/shop') && init.method === method) {
          fetching.restore()
          await manage.ask('PATCH', '/v1/apps/shop', { team: 'other' })
        }
        return real(url, init)
      },
    })
    const { code, err } = await run('apply', 'apps.yaml', '--prune')
    assert.equal(code, 1, method)
    assert.match(
      err,
      method === 'GET' ? /"shop" has been changed meanwhile: run the command again/ : /precondition/,
    )
    const { body } = await manage.ask('GET', '/v1/apps/shop')
    assert.equal(body.team, 'other', method)
    assert.equal((await run('apply', 'apps.yaml', '--prune')).code, 0, method)
    await manage.ask('DELETE', '/v1/apps/shop')
  }
})

test('a file is refused with the line of each problem', async (t) => {
  const { run, file } = await running(t)
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'apps:\n  - id: Shop\n  - id: a\n    hosts: [a.example]\n    host: x\n',
      /apps\.yaml:2:.*\n.*apps\.yaml:5:/,
    ],
    ['apps:\n  - { id: a, hosts: [x.example] }\n  - { id: b, hosts: [X.example] }\n', /apps\.yaml:3:/],
    ['[]', /apps\.yaml:1:1/],
    ['{}', /has no list apps/],
    ['app: []', /apps\.yaml:1:1: app: unknown field/],
    ['a: [', /apps\.yaml:1/],
  ]
  for (const [text, said] of cases) {
    file(text)
    const { code, err } = await run('apply', 'apps.yaml')
    assert.equal(code, 1, text)
    assert.match(err, said)
  }
  assert.match((await run('import', 'missing.yaml')).err, /missing\.yaml/)
})

test('policies of apps are shown as differences, and put', async (t) => {
  const { manage, run, file } = await running(t)
  await run('create', 'shop')
  const old = {
    rules: [
      { name: 'a', when: { path: '/a' }, action: 'block' },
      { name: 'b', when: { path: '/b' }, action: 'block' },
      { name: 'c', when: {}, action: 'pass' },
    ],
  }
  await manage.ask('PUT', '/v1/apps/shop/policy', old, { 'if-match': '*' })
  const own = join(manage.folder, 'own.yaml')
  writeFileSync(own, 'rules: [{ name: own, when: {}, action: tag }]')
  file(`apps:
  - id: shop
    policy:
      rules:
        - { name: c, when: {}, action: pass }
        - { name: a, when: { path: /x }, action: block }
        - { name: d, when: {}, action: tag }
      otherwise: block
  - id: blog
    policy_file: ${own}
  - id: calm
policies:
  default: { rules: [] }
  fixed: { otherwise: pass }
`)
  const { code, out } = await run('apply', 'apps.yaml', '--dry-run')
  assert.equal(code, 1)
  assert.equal(
    out,
    `+ blog
+ calm
~ shop, policy
    ~ rule "a": {"when":{"path":"/a"},"action":"block"} → {"when":{"path":"/x"},"action":"block"}
    - rule "b"
    + rule "d": {"when":{},"action":"tag"}
    + otherwise: "block"
    rules: in another order
~ default, policy
~ fixed, policy
    + otherwise: "pass"
~ blog, policy
    + rule "own": {"when":{},"action":"tag"}
2 to create, 0 to change, 0 to delete, 4 policies to change
`,
  )
  assert.equal((await manage.ask('GET', '/v1/apps/fixed/policy')).body.version, null)
  assert.deepEqual((await run('apply', 'apps.yaml')).err, '')
  for (const [id, version] of [
    ['shop', 2],
    ['blog', 1],
    ['default', 1],
    ['fixed', 1],
    ['calm', null],
  ])
    assert.equal((await manage.ask('GET', `/v1/apps/${id}/policy`)).body.version, version, `${id}`)
  assert.equal((await run('apply', 'apps.yaml', '--dry-run')).code, 0)
  const told = JSON.parse((await run('apply', 'apps.yaml', '--dry-run', '--json')).out)
  assert.deepEqual(told.changes, [])
})

test('an export has the policies, and another installation takes them', async (t) => {
  const one = await running(t)
  const policy = { rules: [{ name: 'a', when: { path: '/*' }, action: { block: { status: 404 } } }] }
  await one.run('create', 'shop')
  for (const id of ['shop', 'fixed', 'default'])
    await one.manage.ask('PUT', `/v1/apps/${id}/policy`, policy, { 'if-match': '*' })
  const { out, err } = await one.run('export')
  assert.equal(err, '')
  const other = await running(t)
  other.file(out)
  await other.manage.ask('PUT', '/v1/apps/fixed/policy', { rules: [] }, { 'if-match': '*' })
  assert.match((await other.run('import', 'apps.yaml')).out, /^1 to create.*, 2 policies to change$/m)
  for (const [id, rules] of [
    ['shop', policy.rules],
    ['default', policy.rules],
    ['fixed', []],
  ] as const)
    assert.deepEqual((await other.manage.ask('GET', `/v1/apps/${id}/policy`)).body.policy.rules, rules)
  const key = await one.manage.key({ scopes: ['read'] })
  const keyFile = join(one.manage.folder, 'key')
  writeFileSync(keyFile, key)
  const reader = await one.run('export', '--key-file', keyFile)
  assert.match(reader.err, /the policies of the apps are left out: the key needs the scope admin/)
  assert.ok(!reader.out.includes('policy'))
})

test('apply overwrites no policy that was put meanwhile', async (t) => {
  const { manage, run, file } = await running(t)
  await run('create', 'shop')
  file('apps: [{ id: shop, policy: { otherwise: block } }]')
  const real = globalThis.fetch
  const fetching = t.intercept(globalThis, 'fetch', {
    value: async (url: string, init: RequestInit) => {
      if (init.method === 'PUT') {
        fetching.restore()
        await manage.ask('PUT', '/v1/apps/shop/policy', { otherwise: 'pass' }, { 'if-match': '*' })
      }
      return real(url, init)
    },
  })
  const { code, err } = await run('apply', 'apps.yaml')
  assert.deepEqual([code, /precondition/.test(err)], [1, true])
  assert.equal((await manage.ask('GET', '/v1/apps/shop/policy')).body.policy.otherwise, 'pass')
})

test('an invalid policy of an app is refused before anything is changed', async (t) => {
  const { manage, run, file } = await running(t)
  const broken = join(manage.folder, 'broken.yaml')
  writeFileSync(broken, 'rules: [{ name: a, when: { pth: /x }, action: block }]')
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'apps:\n  - id: shop\n    policy:\n      rules:\n        - { name: a, when: { path: x }, action: block }\n',
      /apps\.yaml:5:\d+: app "shop": rule "a": .*path/,
    ],
    ['apps: [{ id: a, policy: { first: [] } }]', /app "a": .*first: unknown field/],
    ['apps: [{ id: a, policy: null }]', /is empty; a policy without rules is \{rules: \[\]\}/],
    ['apps: [{ id: a, policy: {}, policy_file: x }]', /policy_file: goes without policy/],
    ['apps: [{ id: a, policy_file: missing.txt }]', /apps\.yaml:1:17: .*missing\.txt/],
    ['apps: [{ id: a, policy_file: 7 }]', /the name of a policy file/],
    [`apps: [{ id: a, policy_file: ${broken} }]`, /broken\.yaml:1:\d+: rule "a": when\.pth: unknown/],
    ['apps: [{ id: a }]\npolicies: { a: {} }', /is in the list apps: move its policy there/],
    ['apps: []\npolicies: { "*": {} }', /is not the id of an app/],
    ['apps: []\npolicies: { gone: {} }', /the app "gone" is unknown: add it/],
  ]
  for (const [text, said] of cases) {
    file(text)
    const { code, err } = await run('apply', 'apps.yaml')
    assert.equal(code, 1, text)
    assert.match(err, said)
  }
  assert.equal((await manage.ask('GET', '/v1/apps')).body.total, 1)
})

async function running(t: Test) {
  const folder = temporaryFolder(t)
  const apps = parseApps([{ id: 'fixed', hosts: ['fixed.example'] }])
  const manage = await TestManagement.start(t, { apps })
  const env = { GATEHOUSE_URL: manage.url, GATEHOUSE_KEY: manage.adminKey }
  const run = async (...argv: readonly string[]) => {
    const io = memoryIo('', { env })
    const placed = argv.map((each) => (each.endsWith('.yaml') ? join(folder, each) : each))
    const code = await runCli(COMMANDS, ['apps', ...placed], io)
    return { code, out: io.out, err: io.err }
  }
  return { manage, run, file: (text: string) => writeFileSync(join(folder, 'apps.yaml'), text) }
}
