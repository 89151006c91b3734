import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'

const POLICY = {
  rules: [
    { name: 'open', when: { path: '/robots.txt' }, action: 'pass' },
    { name: 'trial', when: { method: 'POST' }, action: { tarpit: { delay: '2s' } }, dry_run: true },
    { name: 'over', when: { method: 'GET' }, action: 'block', expires: '2020-01-01T00:00:00Z' },
    { name: 'crawlers', when: { category: 'crawler' }, action: { block: { status: 451 } } },
    { name: 'told', when: 'request.headers["x-plan"] == "free"', action: 'tag' },
  ],
  unknown_signer: { wait: '1s' },
}
const CRAWLER = {
  ...{ method: 'POST', path: '/api/items?x=1', address: '192.0.2.7', http: '1.1' },
  headers: [
    ['Host', 'shop.test'],
    ['User-Agent', 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'],
    ['X-Plan', 'free'],
  ],
}

test('a policy is explained as gatehouse check --explain does it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const folder = t.testdir({})
  for (const request of [
    CRAWLER,
    { ...CRAWLER, verdict: { kind: 'human' } },
    { ...CRAWLER, path: '/robots.txt' },
    { method: 'GET', path: '/%2e%2e/x' },
    {},
  ]) {
    const { status, body } = await manage.ask('POST', '/v1/policy/explain', { request, policy: POLICY })
    assert.equal(status, 200, JSON.stringify(body))
    writeFileSync(join(folder, 'policy.json'), JSON.stringify(POLICY))
    writeFileSync(join(folder, 'request.json'), JSON.stringify(request))
    const io = memoryIo()
    const files = ['--policy', join(folder, 'policy.json'), '--explain', join(folder, 'request.json')]
    assert.equal(await runCli(COMMANDS, ['check', ...files, '--json'], io), 0, io.err)
    const said = JSON.parse(io.out)
    assert.deepEqual(body.rules, said.rules)
    assert.deepEqual(
      [body.decision.rule, body.decision.action, body.verdict.kind, body.verdict.given],
      [said.decision.rule, said.decision.action.kind, said.verdict.kind, said.verdict.assumed],
    )
  }
})

test('which rule decides, and why the others do not', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const explain = async (request: unknown) =>
    (await manage.ask('POST', '/v1/policy/explain', { request, policy: POLICY })).body
  const { verdict, rules, decision, unknown_signer_wait_ms } = await explain(CRAWLER)
  assert.deepEqual([verdict.kind, verdict.agent.id, verdict.given], ['agent', 'gptbot', false])
  assert.ok(verdict.evidence.some(({ kind, detail }: { kind: string; detail: string }) => kind && detail))
  assert.deepEqual(decision, {
    rule: 'crawlers',
    layer: 'last',
    action: 'block',
    would_have: { rule: 'trial', layer: 'last', action: 'tarpit' },
  })
  assert.deepEqual(
    rules.map(({ rule, why }: { rule: string; why: string }) => `${rule}: ${why}`),
    [
      'open: path is /api/items, expected /robots.txt',
      'trial: matches, but is a dry run (dry_run)',
      'over: has expired',
      'crawlers: decides',
      'told: matches, but an earlier rule decides',
    ],
  )
  assert.equal(unknown_signer_wait_ms, null)
  const signed = { headers: { 'Signature-Input': 'sig1=();tag="web-bot-auth"' } }
  assert.equal((await explain(signed)).unknown_signer_wait_ms, 1_000)
  const given = await explain({ ...CRAWLER, verdict: { kind: 'human' } })
  assert.deepEqual([given.verdict.kind, given.decision.rule], ['human', 'told'])
})

test('without a policy it is the one in force, and nothing is changed or recorded', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const before = await manage.ask('POST', '/v1/policy/explain', { request: CRAWLER })
  assert.deepEqual([before.body.decision.rule, before.body.decision.action], ['otherwise', 'tag'])
  await manage.ask('PUT', '/v1/policy', POLICY, { 'if-match': '*' })
  const policies = [...manage.policies]
  const after = await manage.ask('POST', '/v1/policy/explain', { request: CRAWLER })
  assert.equal(after.body.decision.rule, 'crawlers')
  assert.deepEqual(manage.policies, policies)
  const { body } = await manage.ask('GET', '/v1/audit')
  assert.ok(!JSON.stringify(body).includes('explain'))
})

test('no request at all is not one of which nothing is known', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const path of ['/v1/policy/explain', '/v2/policy/explain']) {
    for (const body of [{ request: null }, {}, { policy: { rules: [] } }]) {
      const { status, body: problem } = await manage.ask('POST', path, body)
      assert.deepEqual([status, problem.errors[0].pointer], [400, '/request'], JSON.stringify(body))
    }
    assert.equal((await manage.ask('POST', path, { request: {} })).status, 200)
    const none = await manage.ask('POST', path, { request: {}, policy: null })
    assert.deepEqual([none.status, none.body.errors[0].pointer], [400, '/policy'])
  }
  const preview = await manage.ask('POST', '/v1/policy/preview', {})
  assert.deepEqual([preview.status, preview.body.errors[0].pointer], [400, '/policy'])
  assert.deepEqual(manage.failures, [])
})

test('all that is wrong is said at once, and where', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const request = {
    ...{ metod: 'GET', path: 'x', ja4: 'no', http2: 'no', ja4h: '*_*_*_*', stable: 7 },
    verdict: { kind: 'agent', software: { id: 'x', kind: 'toy' }, agent: { id: 'x', category: 'pets' } },
  }
  const { status, body } = await manage.ask('POST', '/v1/policy/explain', { request })
  assert.equal(status, 400)
  assert.deepEqual(body.errors.map(({ pointer }: { pointer: string }) => pointer).sort(), [
    ...['/request/http2', '/request/ja4', '/request/ja4h', '/request/metod', '/request/path'],
    ...['/request/stable', '/request/verdict/agent/category', '/request/verdict/software/kind'],
  ])
  for (const [wrong, pointer] of [
    [{}, '/request'],
    [{ request: 7 }, '/request'],
    [{ request: [] }, '/request'],
    [{ request: {}, policy: { rules: 7 } }, '/policy/rules'],
    [{ request: {}, policy: null }, '/policy'],
    [{ request: {}, polcy: {} }, '/polcy'],
  ] as const) {
    const { status, body } = await manage.ask('POST', '/v1/policy/explain', wrong)
    assert.deepEqual([status, body.errors?.[0]?.pointer], [400, pointer], JSON.stringify(wrong))
  }
})

const ORGANISATION = {
  first: [{ name: 'open', when: { path: '/open' }, action: 'pass' }],
  last: [
    { name: 'blog only', when: { host: 'blog.test' }, action: 'block' },
    { name: 'rest', when: { method: 'POST' }, action: { block: { status: 404 } } },
  ],
}
const OF_SHOP = { rules: [{ name: 'open', when: { path: '/' }, action: 'block' }], otherwise: 'pass' }

test('the rules of the app of the request are tried between those of the organisation', async (t) => {
  const { manage } = await twoApps(t)
  const explain = async (body: object, path = '/v1/policy/explain') =>
    decided((await manage.ask('POST', path, body)).body)
  const at = (host: string, path = '/') => ({ request: { host, path, method: 'POST' } })
  assert.deepEqual(await explain(at('shop.test:8443')), 'shop app open')
  assert.deepEqual(await explain(at('SHOP.test', '/open')), 'shop first open')
  assert.deepEqual(await explain(at('shop.test', '/a')), 'shop last rest')
  assert.deepEqual(await explain({ request: { host: 'shop.test', path: '/a' } }), 'shop app otherwise')
  assert.deepEqual(await explain(at('blog.test')), 'blog last blog only')
  assert.deepEqual(await explain(at('none.test')), 'default last rest')
  assert.deepEqual(await explain({ request: { method: 'POST' } }), 'default last rest')
  assert.deepEqual(await explain({ ...at('none.test'), app: 'shop' }), 'shop app open')
  assert.deepEqual(await explain({ ...at('shop.test'), app: 'default' }), 'default last rest')
  const first = { first: [{ name: 'all', when: {}, action: 'tag' }] }
  assert.deepEqual(await explain({ ...at('shop.test'), policy: first }), 'shop first all')
  assert.deepEqual(await explain({ ...at('shop.test'), policy: {} }), 'shop app open')
  const own = '/v1/apps/shop/policy/explain'
  assert.deepEqual(await explain(at('none.test'), own), 'shop app open')
  assert.deepEqual(await explain({ ...at('none.test'), policy: {} }, own), 'shop last rest')
  const { body } = await manage.ask('POST', own, at('none.test', '/open'))
  assert.deepEqual(
    body.rules.map(({ rule, layer, why }: Record<string, string>) => `${layer} ${rule}: ${why}`),
    [
      'first open: decides',
      'app open: path is /open, expected /',
      'last blog only: host is none.test, expected blog.test',
      'last rest: matches, but an earlier rule decides',
    ],
  )
  for (const [path, body, pointer] of [
    [own, { ...at('x.test'), policy: ORGANISATION }, '/policy/first'],
    [own, { ...at('x.test'), app: 'shop' }, '/app'],
    [own, {}, '/request'],
  ] as const) {
    const refused = await manage.ask('POST', path, body)
    assert.deepEqual([refused.status, refused.body.errors[0].pointer], [400, pointer])
  }
  assert.deepEqual(manage.failures, [])
})

test('an app that does not exist is not found', async (t) => {
  const { manage } = await twoApps(t)
  for (const app of ['gone', 'other', '*', 'constructor']) {
    const named = await manage.ask('POST', '/v1/policy/explain', { request: {}, app })
    assert.deepEqual([named.status, named.body.detail], [404, `app "${app}" not found`])
    assert.equal((await manage.ask('POST', `/v1/apps/${app}/policy/explain`, { request: {} })).status, 404)
  }
})

test('proxy.app is the app of every request', async (t) => {
  const manage = await TestManagement.start(t, { knows: true, fixedApp: 'shop' })
  await manage.ask('POST', '/v1/apps', { id: 'blog', hosts: ['blog.test'] })
  await manage.publish({})
  const { body } = await manage.ask('POST', '/v1/policy/explain', { request: { host: 'blog.test' } })
  assert.equal(body.app, 'shop')
})

test('a team explains requests of its own apps, and learns nothing about others', async (t) => {
  const { manage, authorization } = await twoApps(t)
  const ask = (body: object, path = '/v1/policy/explain') => manage.ask('POST', path, body, { authorization })
  const request = { host: 'shop.test', path: '/a', method: 'POST' }
  for (const path of ['/v1/policy/explain', '/v1/apps/shop/policy/explain']) {
    const { body } = await ask({ request }, path)
    assert.equal(decided(body), 'shop last rest')
    assert.deepEqual(
      body.rules.map(({ layer, rule, conditions }: Record<string, unknown[]>) => {
        return `${layer} ${rule} ${conditions!.length}`
      }),
      ['app open 1', 'last rest 0'],
    )
  }
  const proposed = await ask({ request, policy: ORGANISATION })
  assert.deepEqual(
    proposed.body.rules.map(({ conditions }: { conditions: unknown[] }) => conditions.length),
    [1, 1, 1, 1],
  )
  const named = async (app: string) => {
    const { status, body } = await ask({ request, app })
    return [status, body.detail]
  }
  assert.deepEqual(await named('blog'), [404, 'app "blog" not found'])
  assert.deepEqual(await named('gone'), [404, 'app "gone" not found'])
  assert.deepEqual(await named('default'), [404, 'app "default" not found'])
  const [blog, none] = await Promise.all(['blog.test', 'none.test'].map((host) => ask({ request: { host } })))
  assert.deepEqual([blog!.status, blog!.body.detail], [404, none!.body.detail])
  assert.equal((await ask({ request }, '/v1/apps/blog/policy/explain')).status, 404)
})

async function twoApps(t: Parameters<typeof TestManagement.start>[0]) {
  const manage = await TestManagement.start(t, { knows: true })
  await manage.ask('POST', '/v1/apps', { id: 'shop', hosts: ['shop.test'] })
  await manage.ask('POST', '/v1/apps', { id: 'blog', hosts: ['blog.test'] })
  await manage.ask('PUT', '/v1/policy', ORGANISATION, { 'if-match': '*' })
  await manage.ask('PUT', '/v1/apps/shop/policy', OF_SHOP, { 'if-match': '*' })
  await until(() => manage.apps.at(-1)?.length === 2)
  await manage.publish(ORGANISATION)
  return { manage, authorization: `Bearer ${await manage.key({ apps: ['shop'] })}` }
}

function decided({ app, decision }: { app: string; decision: { layer: string; rule: string } }): string {
  return `${app} ${decision.layer} ${decision.rule}`
}
