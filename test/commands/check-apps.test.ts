import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { sighting } from '../contract/bus.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { memoryIo } from './memory-io.ts'

const POLICY = `first: [{name: open, when: {path: /open}, action: pass}]
last: [{name: posts, when: {method: POST}, action: {block: {status: 404}}}]
`
const APPS = `apps:
  - id: shop
    hosts: [shop.test]
    policy:
      rules: [{name: carts, when: {path: /cart}, action: block}]
      otherwise: pass
  - {id: blog, hosts: [blog.test]}
policies:
  default: {rules: [{name: rest, when: {method: PUT}, action: block}]}
`

test('an explanation has the rules of the app of the request, and says their layers', async (t) => {
  const { explain } = workbench(t)
  const { code, out, err } = await explain({ host: 'shop.test:8443', path: '/cart', method: 'POST' })
  assert.deepEqual([code, err], [0, ''])
  for (const line of [
    'app      shop',
    'open       first  no   path is /cart, expected /open',
    'carts      app    yes  decides',
    'posts      last   yes  matches, but an earlier rule decides',
    'block, by rule "carts" (app)',
  ])
    assert.ok(out.split('\n').includes(line), `${line}\n${out}`)
  const { out: other } = await explain({ host: 'shop.test', path: '/' })
  assert.match(other, /^otherwise {2}app {4}yes {2}decides: no rule matches$/m)
  assert.match(other, /^pass, by otherwise \(app\)$/m)
})

test('the app is that of the host, or the one of --app', async (t) => {
  const { explain } = workbench(t)
  const decided = async (request: object, ...more: readonly string[]) => {
    const { app, decision } = JSON.parse((await explain(request, '--json', ...more)).out)
    return `${app} ${decision.layer} ${decision.rule}`
  }
  assert.equal(await decided({ host: 'blog.test', path: '/cart' }), 'blog last otherwise')
  assert.equal(await decided({ path: '/cart', method: 'PUT' }), 'default app rest')
  assert.equal(await decided({ host: 'blog.test', path: '/cart' }, '--app', 'shop'), 'shop app carts')
  assert.equal(await decided({ host: 'shop.test', path: '/open' }, '--app', 'blog'), 'blog first open')
})

test('an unknown app, and options that do not go together, are refused', async (t) => {
  const { explain, check } = workbench(t)
  const unknown = await explain({}, '--app', 'shpo')
  assert.equal(unknown.code, 2)
  assert.match(unknown.err, /--app: unknown app "shpo" \(did you mean "shop"\?\); --apps FILE names apps/)
  assert.match((await check('--app', 'shop')).err, /--apps and --app go with --explain, --replay or --robots/)
})

test('apps of the settings have no rules of their own, and proxy.app is the app of every request', async (t) => {
  const { at, check } = workbench(t)
  const request = at('r.json', JSON.stringify({ host: 'shop.test', method: 'POST' }))
  const settings =
    'proxy: {upstreams: [{name: app, urls: ["http://127.0.0.1:9"]}]}\napps: [{id: shop, hosts: [shop.test]}]\n'
  const config = at('c.yaml', settings)
  const policy = at('policy.yaml', POLICY)
  const one = await check('--explain', request, '--config', config, '--policy', policy)
  assert.equal(one.err, '')
  assert.match(one.out, /^app {6}shop$/m)
  assert.match(one.out, /^block, by rule "posts" \(last\)$/m)
  const own = at('own.yaml', 'rules: [{name: mine, when: {}, action: block}]')
  const sidecar = `proxy: {upstreams: [{name: app, urls: ["http://127.0.0.1:9"]}], app: cart}\npolicy: {file: ${JSON.stringify(own)}}\nbus: {url: "nats://127.0.0.1:4222"}\n`
  const two = await check('--explain', request, '--config', at('s.yaml', sidecar), '--json')
  const { app, decision } = JSON.parse(two.out)
  assert.deepEqual([app, decision.layer, decision.rule], ['cart', 'app', 'mine'])
})

test('a replay judges each Sighting with the rules of its app', async (t) => {
  const { at, check } = workbench(t)
  const seen = ['shop', 'shop', 'blog', 'default', 'gone'].map((app, index) => {
    return { ...sighting(index), app, path: '/cart', rule: 'otherwise', action: 'tag' }
  })
  const file = at('s.jsonl', seen.map((each) => `${JSON.stringify(each)}\n`).join(''))
  const given = ['--policy', at('policy.yaml', POLICY), '--apps', at('apps.yaml', APPS)]
  const replay = async (...more: readonly string[]) => (await check('--replay', file, ...given, ...more)).out
  const all = JSON.parse(await replay('--json'))
  assert.deepEqual([all.sightings, all.changed], [5, 2])
  assert.match(await replay(), /^carts +app shop +- +2$/m)
  const shop = JSON.parse(await replay('--json', '--app', 'shop'))
  assert.deepEqual([shop.sightings, shop.changed], [2, 2])
  const none = at('none.yaml', 'rules: []')
  const against = JSON.parse(await replay('--json', '--against', none))
  assert.deepEqual([against.changed, against.unchanged], [0, 5])
})

function workbench(t: Test) {
  const folder = temporaryFolder(t)
  const at = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const check = async (...argv: readonly string[]) => {
    const io = memoryIo()
    const code = await runCli(COMMANDS, ['check', ...argv], io)
    return { code, out: io.out, err: io.err }
  }
  const explain = (request: object, ...more: readonly string[]) => {
    const files = ['--policy', at('policy.yaml', POLICY), '--apps', at('apps.yaml', APPS)]
    return check('--explain', at('r.json', JSON.stringify(request)), ...files, ...more)
  }
  return { at, check, explain }
}
