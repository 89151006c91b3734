import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
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
    action: 'block',
    would_have: { rule: 'trial', action: 'tarpit' },
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
