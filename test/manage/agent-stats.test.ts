import assert from 'node:assert/strict'
import { test } from 'tap'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import { Store } from '../../src/store/store.ts'
import { HOUR_MS, seen } from '../contract/seen.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const GPTBOT = { verdict: 'agent', agent: 'gptbot', category: 'crawler' } as const
const CLAUDE = { ...GPTBOT, agent: 'claudebot' } as const
const STATS = '/v1/stats/agents'

for (const kind of KINDS) {
  test(`${kind}: the agents that were here are listed with counts, trend, vendor and verified share`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    await manage.fillCatalogue()
    for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
    const seenAtMs = Date.now()
    const of = { seenAtMs, app: 'shop' } as const
    await manage.take([
      seen(1, { ...GPTBOT, ...of, verified: 'ip-range' }),
      seen(2, { ...GPTBOT, ...of, done: 'block' }),
      seen(3, { ...GPTBOT, ...of, seenAtMs: seenAtMs - 2 * HOUR_MS }),
      seen(4, { ...CLAUDE, ...of, app: 'blog', verified: 'reverse-dns' }),
      seen(5, { ...GPTBOT, ...of, agent: null }),
      seen(6, { ...of, verdict: 'human', agent: null, category: null }),
      seen(7, { ...CLAUDE, ...of, app: 'blog', seenAtMs: seenAtMs - 5 * 24 * HOUR_MS }),
    ])
    const { status, body } = await manage.ask('GET', STATS)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.window, body.bucket, body.total], ['24h', '1h', 2])
    const [first, second] = body.agents
    const { series, last_seen, ...counts } = first
    assert.deepEqual(counts, {
      ...{ agent_id: 'gptbot', agent_name: 'GPTBot', agent_category: 'crawler' },
      ...{ agent_purpose: ['training'], vendor: 'OpenAI', requests: 3, blocked: 1, verified: 1 },
    })
    assert.equal(Date.parse(last_seen), seenAtMs)
    assert.deepEqual([series.length, series.at(-1), series.at(-3)], [24, 2, 1])
    assert.equal(
      series.reduce((sum: number, each: number) => sum + each, 0),
      3,
    )
    assert.deepEqual([second.agent_id, second.requests, second.verified], ['claudebot', 1, 1])
    const idsOf = async (query: string, headers = {}) => {
      const { body } = await manage.ask('GET', `${STATS}?${query}`, undefined, headers)
      return [body.total, ...body.agents.map((each: { agent_id: string }) => each.agent_id)]
    }
    assert.deepEqual(await idsOf('limit=1'), [2, 'gptbot'])
    assert.deepEqual(await idsOf('q=claude'), [1, 'claudebot'])
    assert.deepEqual(await idsOf('purpose=training&limit=1'), [2, 'gptbot'])
    assert.deepEqual(await idsOf('category=llm-sdk'), [0])
    assert.deepEqual(await idsOf('app=blog'), [1, 'claudebot'])
    const week = (await manage.ask('GET', `${STATS}?window=7d&app=blog`)).body
    assert.deepEqual([week.bucket, week.agents[0].series.length, week.agents[0].requests], ['6h', 28, 2])
    assert.deepEqual((await manage.ask('GET', `${STATS}?window=7d`)).body.agents[1].requests, 2)
    // A team sees its own apps only.
    const authorization = `Bearer ${await manage.key({ apps: ['blog'], scopes: ['read'] })}`
    assert.deepEqual(await idsOf('', { authorization }), [1, 'claudebot'])
    assert.deepEqual(await idsOf('app=shop', { authorization }), [0])
  })

  test(`${kind}: without counts of the verified requests of each agent, the share is unknown`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    await manage.fillCatalogue()
    await manage.ask('POST', '/v1/apps', { id: 'shop' })
    const seenAtMs = Date.now()
    await manage.take([seen(1, { ...GPTBOT, seenAtMs, app: 'shop', verified: 'ip-range' })])
    const store = await Store.open(manage.storeUrl)
    t.teardown(() => store.close())
    // As an earlier version counts.
    const tally = new RollupTally()
    tally.add(seen(2, { ...GPTBOT, seenAtMs, app: 'shop', verified: 'ip-range' }))
    for (const { buckets } of tally.minutes()) buckets.verified_agent.clear()
    const kept = { minutesMs: HOUR_MS * 48, hoursMs: HOUR_MS * 48, daysMs: HOUR_MS * 48 }
    await store.transaction(async (queries) => {
      await store.rollups.add(tally, kept, seenAtMs, queries)
      await store.appRollups.add(tally, kept, seenAtMs, queries)
    })
    for (const query of ['', '?app=shop']) {
      const [agent] = (await manage.ask('GET', STATS + query)).body.agents
      assert.deepEqual([agent.requests, agent.verified], [2, null], query)
    }
  })
}
