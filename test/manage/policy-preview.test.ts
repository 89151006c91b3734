import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { type ReadSightings, tryPolicy } from '../../src/manage/publish/policy-preview.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { Store } from '../../src/store/store.ts'
import { memoryIo } from '../commands/memory-io.ts'
import { sighting } from '../contract/bus.ts'
import { TestManagement } from './management.ts'

const CRAWLER = { verdict: 'agent', agent: 'gptbot', category: 'crawler', software: 'gptbot' } as const
const POLICY = {
  rules: [
    { name: 'keyed', when: { path: '/keyed', header: { 'x-key': 'a' } }, action: 'pass' },
    { name: 'crawlers', when: { category: 'crawler', path: '/api/*' }, action: 'block' },
    { name: 'trial', when: { category: 'crawler' }, action: 'block', dry_run: true },
    {
      name: 'curl',
      when: { software: 'curl' },
      action: { rate_limit: { per: 'address', requests: 5, window: '1m' } },
    },
  ],
}

test('a preview says what gatehouse check --replay says of the same requests', async (t) => {
  const manage = await TestManagement.start(t)
  const seen = sightings(1_700)
  await record(manage, seen)
  const { status, body } = await manage.ask('POST', '/v1/policy/preview', { policy: POLICY, window: '24h' })
  assert.equal(status, 200)
  const { app, window, against, from, to, complete, left_out, warnings, counted: _n, ...report } = body
  assert.deepEqual([app, warnings], [null, []])
  assert.deepEqual([window, against, complete, left_out], ['24h', 'recorded', true, 0])
  assert.deepEqual([Date.parse(from), Date.parse(to)], [seen[0]!.seenAtMs, seen.at(-1)!.seenAtMs])
  assert.ok(report.changed > 0 && report.unchanged > 0 && report.unjudged > 0)
  assert.deepEqual(report, await replayed(manage, seen, []))
  assert.deepEqual(manage.policies, [], 'nothing is put in force')

  await manage.ask('PUT', '/v1/policy', OLD, { 'if-match': '*' })
  const current = await manage.ask('POST', '/v1/policy/preview', { policy: POLICY, against: 'current' })
  const old = join(manage.folder, 'old.json')
  writeFileSync(old, JSON.stringify(OLD))
  const { app: _p, window: _w, against: _a, from: _f, to: _t, complete: _c, ...rest } = current.body
  const { left_out: _l, warnings: _w2, counted: _n2, ...other } = rest
  assert.deepEqual(other, await replayed(manage, seen, ['--against', old]))
  assert.match(JSON.stringify(other), /"from":"block 451"/)
  assert.deepEqual(manage.failures, [])
})

test('only what was seen in the window counts', async (t) => {
  const manage = await TestManagement.start(t)
  const nowMs = Date.now()
  const ages = [30, 2 * 3600, 25 * 3600, 8 * 86_400, 31 * 86_400]
  await record(
    manage,
    ages.map((age, index) => ({ ...sighting(index), seenAtMs: nowMs - age * 1000 })),
  )
  for (const [window, count] of [
    ['1h', 1],
    ['24h', 2],
    ['7d', 3],
    ['30d', 4],
  ] as const) {
    const { body } = await manage.ask('POST', '/v1/policy/preview', { policy: {}, window })
    assert.deepEqual([body.sightings, body.complete], [count, true], window)
  }
})

test('however many requests are older than the window, it is complete', async (t) => {
  const manage = await TestManagement.start(t)
  const nowMs = Date.now()
  await record(
    manage,
    Array.from({ length: 20_000 }, (_, index) => ({ ...sighting(index), seenAtMs: nowMs - 2 * 86_400_000 })),
  )
  await record(
    manage,
    [20_001, 20_002].map((index) => ({ ...sighting(index), seenAtMs: nowMs })),
  )
  const asked = { policy: {}, window: '1h', time_ms: 50 }
  const { body } = await manage.ask('POST', '/v1/policy/preview', asked)
  assert.deepEqual([body.sightings, body.complete], [2, true])
})

test('a short preview says how many of the requests it has examined', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  const seen = sightings(20_000).map((each, index) => ({
    ...each,
    app: index % 2 === 0 ? 'shop' : 'default',
  }))
  for (let at = 0; at < seen.length; at += 2_000) await manage.take(seen.slice(at, at + 2_000))
  const expression = `${'request.path.contains("zzzz") || '.repeat(50)}false`
  const policy = { rules: [{ name: 'slow', when: { expression }, action: 'block' }] }
  const short = (await manage.ask('POST', '/v1/policy/preview', { policy, time_ms: 50 })).body
  assert.deepEqual([short.complete, short.counted], [false, 20_000])
  assert.ok(short.sightings > 0 && short.sightings < 20_000)
  assert.equal(Date.parse(short.to), seen.at(-1)!.seenAtMs, 'the newest requests')
  const shop = await manage.ask('POST', '/v1/policy/preview', { policy, app: 'shop', time_ms: 50 })
  assert.equal(shop.body.counted, 10_000)
  const authorization = `Bearer ${await manage.key({ apps: ['shop'] })}`
  const team = await manage.ask('POST', '/v1/policy/preview', { policy: {} }, { authorization })
  assert.equal(team.body.counted, 10_000)
  for (const time_ms of [49, 1_001, '100']) {
    const wrong = await manage.ask('POST', '/v1/policy/preview', { policy, time_ms })
    assert.deepEqual([wrong.status, wrong.body.errors[0].pointer], [400, '/time_ms'])
  }
})

test('what a preview is refused for', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [body, pointer] of [
    [{}, '/policy'],
    [{ policy: null }, '/policy'],
    [{ policy: { rules: [{ name: 'a', when: { pth: 1 }, action: 'block' }] } }, '/policy/rules/0/when/pth'],
    [{ policy: {}, window: '2h' }, '/window'],
    [{ policy: {}, against: 'old' }, '/against'],
    [{ policy: {}, windw: '1h' }, '/windw'],
  ] as const) {
    const { status, body: problem } = await manage.ask('POST', '/v1/policy/preview', body)
    assert.deepEqual([status, problem.errors[0].pointer], [400, pointer])
  }
  const empty = await manage.ask('POST', '/v1/policy/preview', { policy: POLICY })
  assert.deepEqual([empty.status, empty.body.sightings, empty.body.from], [200, 0, null])
})

test('each request is judged with the rules of its app', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['shop', 'blog', 'calm']) await manage.ask('POST', '/v1/apps', { id })
  const block = (name: string) => ({ rules: [{ name, when: { path: '/x' }, action: 'block' }] })
  await manage.ask('PUT', '/v1/apps/shop/policy', block('paths'), { 'if-match': '*' })
  await manage.ask('PUT', '/v1/apps/blog/policy', block('paths'), { 'if-match': '*' })
  const apps = ['shop', 'shop', 'blog', 'calm', 'gone']
  await record(
    manage,
    apps.map((app, index) => ({ ...sighting(index), app, path: '/x', seenAtMs: Date.now() })),
  )
  const first = { first: [{ name: 'paths', when: { host: 'other.test' }, action: 'pass' }] }
  const { body } = await manage.ask('POST', '/v1/policy/preview', { policy: first })
  assert.deepEqual([body.app, body.sightings, body.changed], [null, 5, 3])
  assert.deepEqual(rowsOf(body), [...['first paths 0', 'last otherwise 2', 'shop paths 2', 'blog paths 1']])
  const current = await manage.ask('POST', '/v1/policy/preview', { policy: first, against: 'current' })
  assert.deepEqual([current.body.changed, current.body.rules.at(-1).before], [0, 1])
  const shop = await manage.ask('POST', '/v1/policy/preview', { policy: first, app: 'shop' })
  assert.deepEqual([shop.body.app, shop.body.sightings, shop.body.changed], ['shop', 2, 2])
  for (const app of ['gone', 'other', '*']) {
    const refused = await manage.ask('POST', '/v1/policy/preview', { policy: first, app })
    assert.deepEqual([refused.status, refused.body.detail], [404, `app "${app}" not found`])
  }
  assert.deepEqual(manage.failures, [])
})

test('the effect of a policy of an app is that in its place', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
  const organisation = {
    first: [{ name: 'open', when: { path: '/open' }, action: 'pass' }],
    last: [{ name: 'rest', when: {}, action: { block: { status: 404 } } }],
  }
  await manage.ask('PUT', '/v1/policy', organisation, { 'if-match': '*' })
  const paths = ['/open', '/a', '/b']
  const of = (app: string) => paths.map((path) => ({ app, path, seenAtMs: Date.now() }))
  await record(
    manage,
    [...of('shop'), ...of('blog')].map((each, index) => ({ ...sighting(index), ...each })),
  )
  const policy = { rules: [{ name: 'open', when: { path: ['/open', '/a'] }, action: 'block' }] }
  const path = '/v1/apps/shop/policy/preview'
  const { status, body } = await manage.ask('POST', path, { policy, against: 'current' })
  assert.deepEqual([status, body.app, body.sightings, body.changed], [200, 'shop', 3, 1])
  assert.deepEqual(rowsOf(body), ['first open 1', 'shop open 1', 'last rest 1', 'last otherwise 0'])
  assert.deepEqual(body.transitions, [{ from: 'block 404', to: 'block 403', count: 1 }])
  for (const [wrong, pointer] of [
    [{}, '/policy'],
    [{ policy: organisation }, '/policy/first'],
    [{ policy, app: 'blog' }, '/app'],
  ] as const) {
    const refused = await manage.ask('POST', path, wrong)
    assert.deepEqual([refused.status, refused.body.errors[0].pointer], [400, pointer])
  }
  assert.equal((await manage.ask('POST', '/v1/apps/gone/policy/preview', { policy })).status, 404)
})

test('a team sees the effect on its own apps, and no rule that is about others', async (t) => {
  const manage = await TestManagement.start(t)
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
  const authorization = `Bearer ${await manage.key({ apps: ['shop'] })}`
  const ask = (path: string, body: object) => manage.ask('POST', path, body, { authorization })
  const rest = { name: 'rest', when: { path: '/a', header: { 'x-secret': 'y' } }, action: 'block' }
  const launch = {
    name: 'blog-launch',
    when: { path: '/launch', header: { 'x-secret': 'y' } },
    action: 'tag',
  }
  await manage.ask('PUT', '/v1/policy', { rules: [launch, rest] }, { 'if-match': '*' })
  const seen = ['shop', 'blog'].map((app, index) => ({ ...sighting(index), app, path: '/a' }))
  await record(
    manage,
    seen.map((each) => ({ ...each, seenAtMs: Date.now() })),
  )
  for (const [path, policy] of [
    ['/v1/policy/preview', {}],
    ['/v1/apps/shop/policy/preview', {}],
    ['/v1/policy/preview', { rules: [{ name: 'never', when: { path: '/n' }, action: 'block' }] }],
  ] as const) {
    const { status, body } = await ask(path, { policy, against: 'current' })
    assert.deepEqual([status, body.sightings], [200, 1])
    const text = JSON.stringify(body)
    assert.ok(text.includes('"rest"'), text)
    assert.ok(!text.includes('blog') && !text.includes('secret'), text)
    assert.equal(text.includes('"never"'), 'rules' in policy)
  }
  const missed = await ask('/v1/policy/preview', { policy: {}, app: 'gone' })
  const theirs = await ask('/v1/policy/preview', { policy: {}, app: 'blog' })
  assert.deepEqual([theirs.status, theirs.body.detail], [404, 'app "blog" not found'])
  assert.equal(missed.body.detail, 'app "gone" not found')
  assert.equal((await ask('/v1/apps/blog/policy/preview', { policy: {} })).status, 404)
})

test('policies of more apps than there is room for are left out', async (t) => {
  const manage = await TestManagement.start(t)
  const many = Array.from({ length: 1_000 }, (_, index) => `/${'x'.repeat(800)}${index}`)
  const large = { rules: [{ name: 'large', when: { path: [...many, '/x'] }, action: 'block' }] }
  const apps = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  for (const id of apps) {
    await manage.ask('POST', '/v1/apps', { id })
    const put = await manage.ask('PUT', `/v1/apps/${id}/policy`, large, { 'if-match': '*' })
    assert.equal(put.status, 200)
  }
  await record(
    manage,
    apps.map((app, index) => ({ ...sighting(index), app, path: '/x', seenAtMs: Date.now() })),
  )
  const { body } = await manage.ask('POST', '/v1/policy/preview', { policy: {}, against: 'current' })
  assert.deepEqual([body.sightings, body.unchanged, body.unjudged], [7, 5, 2])
})

test('however much there is and however costly a policy, it ends, with the newest ones', async () => {
  const all = sightings(10_000)
  const read: ReadSightings = async (next, limit) => {
    const end = next ?? all.length
    const start = Math.max(end - limit, 0)
    return { sightings: all.slice(start, end).reverse(), next: start === 0 ? null : start }
  }
  const parsed = parsePolicy(POLICY)
  const whatIf = { after: () => parsed, before: null, sinceMs: 0, nowMs: Date.now() }
  const whole = await tryPolicy(read, whatIf, { timeMs: 60_000 })
  assert.deepEqual([whole.report.sightings, whole.isComplete], [10_000, true])
  const some = await tryPolicy(read, whatIf, { sightingsMax: 1_200 })
  assert.deepEqual(
    [some.report.sightings, some.isComplete, some.newestMs],
    [1_200, false, all.at(-1)!.seenAtMs],
  )
  assert.equal(some.oldestMs, all.at(-1_200)!.seenAtMs)
  const expression = `${'request.path.contains("zzzz") || '.repeat(50)}false`
  const rules = Array.from({ length: 100 }, (_, index) => ({
    name: `r${index}`,
    when: { expression },
    action: 'block',
  }))
  let turns = 0
  const beat = setInterval(() => turns++, 1)
  const slow = parsePolicy({ rules })
  const costly = await tryPolicy(read, { ...whatIf, after: () => slow }, { timeMs: 1_000 })
  clearInterval(beat)
  assert.ok(!costly.isComplete && costly.report.sightings > 0 && costly.report.sightings < 10_000)
  assert.ok(turns > 3, 'others have their turns')
})

test('what is no Sighting is left out, and counted', async () => {
  const broken = [null, 5, {}, { ...sighting(1), evidence: 'x' }, sighting(2)] as Sighting[]
  const read: ReadSightings = async () => ({ sightings: broken, next: null })
  const tags = parsePolicy({})
  const found = await tryPolicy(read, { after: () => tags, before: null, sinceMs: 0, nowMs: 0 })
  assert.deepEqual([found.report.sightings, found.leftOut], [1, 4])
})

function sightings(count: number): Sighting[] {
  const startMs = Date.now() - 60_000
  return Array.from({ length: count }, (_, index) => {
    const kinds = [
      { ...CRAWLER, path: `/api/${index % 7}` },
      { ...CRAWLER, path: '/' },
      { software: 'curl', path: '/a' },
      { software: null, path: '/keyed' },
      { software: null, rule: 'proxy.fail', action: 'block', path: '/x' },
      { ...CRAWLER, path: '/api/b', rule: 'crawlers', action: 'block' },
    ]
    return { ...sighting(index), ...kinds[index % kinds.length], seenAtMs: startMs + index }
  })
}

/** The rules of a preview, and how often each would decide. */
function rowsOf({ rules }: { readonly rules: readonly PreviewRow[] }): string[] {
  return rules.map(({ rule, layer, app, after }) => `${app ?? layer} ${rule} ${after}`)
}

interface PreviewRow {
  readonly rule: string
  readonly layer: string
  readonly app: string | null
  readonly after: number | null
}

async function record(manage: TestManagement, seen: readonly Sighting[]): Promise<void> {
  const store = await Store.open(manage.storeUrl)
  await store.transaction((queries) => store.sightings.add(seen, Date.now(), queries))
  await store.close()
}

async function replayed(
  manage: TestManagement,
  seen: readonly Sighting[],
  more: readonly string[],
): Promise<unknown> {
  const file = join(manage.folder, 'sightings.jsonl')
  // Newest first, as the database gives them: what is equally frequent is in the order in which it came.
  writeFileSync(
    file,
    seen
      .toReversed()
      .map((each) => `${JSON.stringify(each)}\n`)
      .join(''),
  )
  const policy = join(manage.folder, 'policy-new.json')
  writeFileSync(policy, JSON.stringify(POLICY))
  const io = memoryIo()
  assert.equal(
    await runCli(COMMANDS, ['check', '--replay', file, '--policy', policy, '--json', ...more], io),
    0,
  )
  const { policy: _, against, left_out, ...report } = JSON.parse(io.out)
  return report
}

const OLD = {
  rules: [{ name: 'crawlers', when: { category: 'crawler' }, action: { block: { status: 451 } } }],
}
