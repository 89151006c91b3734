import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { parseApps } from '../../src/apps/app.ts'
import { Store } from '../../src/store/store.ts'
import { TestManagement } from '../manage/management.ts'
import { memoryIo } from './memory-io.ts'

const POLICY = 'rules:\n  - {name: closed, when: {path: /closed}, action: block}\n'

test('a Snapshot made from files has the policy of the file, number 1, and is for its owner', async (t) => {
  const { at, run } = bench(t)
  writeFileSync(at('policy.yaml'), POLICY)
  writeFileSync(at('g.yaml'), `policy: {file: ${at('policy.yaml')}}\ndata: {dir: ${at('data')}}\n`)
  const argv = ['export', '--config', at('g.yaml'), '--output', at('out.snapshot'), '--json']
  const exported = await run(argv)
  assert.equal(exported.code, 0, exported.err)
  const { file, number, bytes, digest } = JSON.parse(exported.out)
  assert.deepEqual([file, number, bytes], [at('out.snapshot'), 1, statSync(at('out.snapshot')).size])
  assert.equal(statSync(at('out.snapshot')).mode & 0o777, 0o600)
  const shown = JSON.parse((await run(['show', at('out.snapshot'), '--json'])).out)
  assert.deepEqual([shown.number, shown.digest, shown.policy.rules.length], [1, digest, 1])
  assert.ok(shown.software > 1_000)
  const text = await run(['show', at('out.snapshot')])
  assert.match(
    text.out,
    /^Snapshot +1\n.*\nPolicy +1 rules\nApps +0 defined, 0 with a policy\nSignatures +of \d+ agents/,
  )
})

test('a policy that is invalid is not exported', async (t) => {
  const { at, run } = bench(t)
  writeFileSync(at('policy.yaml'), 'rules:\n  - {name: closed, when: {pth: /closed}, action: block}\n')
  writeFileSync(at('g.yaml'), `policy: {file: ${at('policy.yaml')}}\ndata: {dir: ${at('data')}}\n`)
  const { code, err } = await run(['export', '--config', at('g.yaml'), '--output', at('out.snapshot')])
  assert.equal(code, 1)
  assert.match(err, /policy\.yaml:2:\d+/)
  assert.throws(() => statSync(at('out.snapshot')), { code: 'ENOENT' })
})

test('a Snapshot from the database has its apps and their policies', async (t) => {
  const { at, run } = bench(t)
  const apps = parseApps([{ id: 'fixed', hosts: ['fixed.test'] }])
  const manage = await TestManagement.start(t, { apps })
  await manage.ask('POST', '/v1/apps', { id: 'shop', hosts: ['shop.test'] })
  const policy = { rules: [{ name: 'a', when: { path: '/a' }, action: 'block' }] }
  for (const id of ['shop', 'fixed', 'default'])
    assert.equal((await manage.ask('PUT', `/v1/apps/${id}/policy`, policy, { 'if-match': '*' })).status, 200)
  const settings = `store: {url: ${JSON.stringify(manage.storeUrl)}}\ndata: {dir: ${at('data')}}\n`
  // The settings have taken a host meanwhile.
  writeFileSync(at('g.yaml'), `${settings}apps: [{id: fixed, hosts: [fixed.test, shop.test]}]\n`)
  const argv = ['export', '--from', 'store', '--config', at('g.yaml'), '--output', at('out.snapshot')]
  const exported = await run(argv)
  assert.equal(exported.code, 0, exported.err)
  const shown = JSON.parse((await run(['show', at('out.snapshot'), '--json'])).out)
  assert.deepEqual(
    shown.apps.map(({ id, hosts }: { id: string; hosts: string[] }) => [id, hosts]),
    [
      ['fixed', ['fixed.test', 'shop.test']],
      ['shop', []],
    ],
  )
  assert.deepEqual(
    shown.app_policies,
    ['default', 'fixed', 'shop'].map((app) => ({ app, policy })),
  )
  assert.match((await run(['show', at('out.snapshot')])).out, /^Apps +2 defined, 3 with a policy$/m)
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
  const refused = await run(argv)
  assert.equal(refused.code, 1)
  assert.match(refused.err, /the policy of the app "shop"/)
})

test('a Snapshot file that is damaged is shown as such, with exit code 1', async (t) => {
  const { at, run } = bench(t)
  assert.equal((await run(['export', '--data', at('data'), '--output', at('out.snapshot')])).code, 0)
  const whole = readFileSync(at('out.snapshot'))
  writeFileSync(at('cut.snapshot'), whole.subarray(0, -1))
  whole[whole.length - 1]! ^= 1
  writeFileSync(at('changed.snapshot'), whole)
  for (const [name, what] of [
    [
      'cut.snapshot',
      /cut\.snapshot has \d+ bytes after its first line instead of \d+; copy or export it again/,
    ],
    ['changed.snapshot', /changed\.snapshot is damaged: its checksum is wrong/],
    ['missing.snapshot', /missing\.snapshot cannot be read \(ENOENT\)/],
  ] as const) {
    const { code, err } = await run(['show', at(name)])
    assert.equal(code, 1, name)
    assert.match(err, what)
  }
})

test('what an export needs and does not have is said with what to do', async (t) => {
  const { at, run } = bench(t)
  const cases: [readonly string[], number, RegExp][] = [
    [['--json'], 2, /--json needs --output/],
    [['--from', 'disk', '--data', at('data')], 1, /newest\.snapshot cannot be read.*--data/s],
    [['--from', 'fleet', '--data', at('data')], 1, /bus\.url is missing/],
    [
      ['--data', at('data'), '--output', '/nowhere/x'],
      1,
      /\/nowhere\/x cannot be written \(ENOENT\); give --output/,
    ],
  ]
  for (const [argv, wanted, what] of cases) {
    const { code, err } = await run(['export', ...argv])
    assert.deepEqual([code, what.test(err)], [wanted, true], err)
  }
  const { code, err } = await run(['export', '--data', at('data')], { isTerminal: true })
  assert.deepEqual([code, /a Snapshot is not for a terminal; give --output/.test(err)], [2, true], err)
})

function bench(t: Test) {
  const folder = temporaryFolder(t)
  const run = async (argv: readonly string[], settings: Parameters<typeof memoryIo>[1] = {}) => {
    const io = memoryIo('', settings)
    const code = await runCli(COMMANDS, ['snapshot', ...argv], io)
    return { code, out: io.out, err: io.err.replace(/\n */g, ' ') }
  }
  return { at: (name: string) => join(folder, name), run }
}
