import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { until } from '../until.ts'
import { SETTINGS, TestManagement } from './management.ts'

const GPTBOT = { verdict: 'agent', agent: 'gptbot', category: 'crawler' } as const
const NO_DRAFTS = {
  rules: [{ name: 'drafts', when: { category: 'crawler', path: '/drafts/*' }, action: 'block' }],
}
const ROBOTS = '/v1/agents/gptbot/robots'

for (const kind of KINDS)
  test(`${kind}: the requests of an agent are compared with the published robots.txt`, async (t) => {
    const manage = await started(t, { isPublished: true, storeUrl: await freshUrl(kind, t) })
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    await manage.ask('PUT', '/v1/apps/shop/policy', NO_DRAFTS, { 'if-match': '*' })
    const seenAtMs = Date.now()
    const of = { ...GPTBOT, seenAtMs, app: 'shop' } as const
    await manage.take([
      seen(1, { ...of, path: '/robots.txt' }),
      seen(2, { ...of, path: '/drafts/a' }),
      seen(3, { ...of, path: '/drafts/a', done: 'block' }),
      seen(4, { ...of, path: '/drafts/b', sampled: 0.5 }),
      seen(5, { ...of, path: '/open' }),
      seen(6, { ...of, path: '/drafts/a', app: 'blog' }),
      seen(7, { ...of, path: '/drafts/a', agent: 'claudebot' }),
      seen(8, { ...of, path: '/drafts/a', seenAtMs: seenAtMs - 2 * 3_600_000 }),
    ])
    const { status, body } = await manage.ask('GET', `${ROBOTS}?window=1h`)
    assert.equal(status, 200, JSON.stringify(body))
    const { paths, ...counts } = body
    const line = 'Disallow: /drafts/'
    assert.deepEqual(counts, {
      ...{ agent_id: 'gptbot', window: '1h', robots_token: 'GPTBot', requests: 6, estimated: 7 },
      ...{ robots_requests: 1, compared: 5, disallowed: 3, share: 4 / 6, stopped_at: null },
    })
    const host = paths[0].host
    assert.deepEqual(paths, [
      { app: 'shop', host, path: '/drafts/a', line, requests: 2 },
      { app: 'shop', host, path: '/drafts/b', line, requests: 1 },
    ])
    assert.equal((await manage.ask('GET', ROBOTS)).body.disallowed, 4)
    const one = (await manage.ask('GET', `${ROBOTS}?app=blog`)).body
    assert.deepEqual([one.compared, one.disallowed, one.share, one.paths], [1, 0, 0, []])
    // A team sees its own apps only.
    const authorization = `Bearer ${await manage.key({ apps: ['blog'], scopes: ['read'] })}`
    const mine = (await manage.ask('GET', ROBOTS, undefined, { authorization })).body
    assert.deepEqual([mine.requests, mine.robots_requests, mine.paths], [1, 0, []])
    assert.equal((await manage.ask('GET', '/v1/agents/no-such-agent/robots')).status, 404)
  })

test("the app's own robots.txt is compared, alone and with the policy", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'robots-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'robots.txt')
  writeFileSync(file, 'User-agent: *\nDisallow: /cart\n\nUser-agent: GPTBot\nDisallow: /secret/\n')
  for (const isPublished of [false, true]) {
    const manage = await started(t, { isPublished, file })
    await manage.publish({ rules: [] })
    const seenAtMs = Date.now()
    const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U'
    await manage.take([
      seen(1, { ...GPTBOT, seenAtMs, path: '/cart' }),
      seen(2, { ...GPTBOT, seenAtMs, path: '/secret/a' }),
      seen(3, { ...GPTBOT, seenAtMs, path: `/secret/${token}` }),
    ])
    const read = async () => (await manage.ask('GET', ROBOTS)).body
    await until(async () => (await read()).disallowed === 2, 20_000)
    const authorization = `Bearer ${await manage.key({ scopes: ['read'] })}`
    const { paths } = (await manage.ask('GET', ROBOTS, undefined, { authorization })).body
    assert.ok(!JSON.stringify(paths).includes(token))
    assert.ok(JSON.stringify((await read()).paths).includes(token))
    await manage.stop()
  }
})

test('without a known robots.txt or a name in it nothing is compared', async (t) => {
  const manage = await started(t, { isPublished: false })
  await manage.take([seen(1, { ...GPTBOT, seenAtMs: Date.now(), path: '/robots.txt' })])
  const { body } = await manage.ask('GET', ROBOTS)
  assert.deepEqual(
    [body.requests, body.robots_requests, body.compared, body.disallowed, body.share],
    [1, 1, 0, 0, null],
  )
  const tool = (await manage.ask('GET', '/v1/agents/curl/robots')).body
  assert.deepEqual([tool.robots_token, tool.requests, tool.share], [null, 0, null])
  assert.equal((await manage.ask('GET', `${ROBOTS}?window=2h`)).status, 400)
})

test('hosts, files and paths are compared up to a limit', async (t) => {
  const manage = await started(t, { isPublished: true })
  await manage.ask('PUT', '/v1/policy', NO_DRAFTS, { 'if-match': '*' })
  const seenAtMs = Date.now()
  await manage.take(
    Array.from({ length: 1_100 }, (_, n) =>
      seen(n, { ...GPTBOT, seenAtMs, path: '/drafts/a', host: `h${n}.example` }),
    ),
  )
  const { body } = await manage.ask('GET', ROBOTS)
  assert.deepEqual([body.requests, body.compared, body.paths.length], [1_100, 1_000, 10])
})

async function started(
  t: Test,
  { isPublished, file = null, storeUrl }: { isPublished: boolean; file?: string | null; storeUrl?: string },
): Promise<TestManagement> {
  const robots = { file, upstream: null, isPublished }
  const manage = await TestManagement.start(t, {
    knows: true,
    threats: { ...SETTINGS.threats, robots },
    ...(storeUrl !== undefined && { storeUrl }),
  })
  await manage.fillCatalogue()
  return manage
}
