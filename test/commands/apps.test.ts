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
  return { run, file: (text: string) => writeFileSync(join(folder, 'apps.yaml'), text) }
}
