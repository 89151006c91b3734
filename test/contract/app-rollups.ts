import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { statistics } from '../../src/manage/api/stats.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { AppRollupStore } from '../../src/store/traffic/app-rollups.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt, openFresh, type Owner } from '../store/databases.ts'
import { DAY_MS, HOUR_MS, idOf, ingestInto, MINUTE_MS, NOW_MS, RETENTION, seen } from './seen.ts'
import { addsUp } from './sightings.ts'

/** What counting the requests of each app has to do in either database. */
export function appRollupsContract(kind: DatabaseKind): void {
  test(`${kind}: the statistics of all apps add up to those without an app`, async (t) => {
    const store = await openFresh(kind, t)
    let second = 0
    const made = fc.record({
      app: fc.constantFrom(...APPS),
      verdict: fc.constantFrom('agent', 'human', 'unknown'),
      agent: fc.constantFrom(null, 'gptbot', 'claudebot'),
      category: fc.constantFrom(null, 'crawler'),
      purposes: fc.constantFrom([], ['search', 'training']),
      confidence: fc.double({ min: 0, max: 1, noNaN: true }),
      verified: fc.constantFrom(null, 'ip-range'),
      done: fc.constantFrom('tag', 'block', 'pass'),
      seenAtMs: fc.integer({ min: NOW_MS - 23 * HOUR_MS, max: NOW_MS }),
    })
    const property = fc.asyncProperty(fc.array(made, { minLength: 1, maxLength: 40 }), async (changes) => {
      second++
      const all = changes.map((each, number) => seen(0, { ...each, id: idOf(second * 1000, number) }))
      const { ingest } = ingestInto(store)
      await Promise.all([ingest.take(all), ingest.take(all.slice(5)), ingest.take(all.toReversed())])
      for (const [window, bucket] of WINDOWS) {
        const whole = await statistics(store, window, bucket, NOW_MS)
        const ofApps = await Promise.all(
          APPS.map((app) => statistics(store, window, bucket, NOW_MS, new Set([app]))),
        )
        for (const each of ofApps) addsUp(each)
        assert.deepEqual(ofApps.map(countsIn).reduce(sum), countsIn(whole))
      }
    })
    await fc.assert(property, { numRuns: kind === 'sqlite' ? 20 : 5, interruptAfterTimeLimit: 10_000 })
  })

  test(`${kind}: processes that count the same app at once lose nothing`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = await Promise.all([1, 2].map(() => openAt(t, url)))
    const batch = (from: number) =>
      Array.from({ length: 50 }, (_, at) => seen(from + at, { app: at % 2 ? 'shop' : 'blog' }))
    await Promise.all(
      stores.flatMap((store, at) => {
        const { ingest } = ingestInto(store)
        return [0, 1, 2, 3].map((round) => ingest.take(batch((round * 2 + at) * 50)))
      }),
    )
    assert.equal(await requestsOf(stores[0]!, 'shop'), 200)
    assert.equal(await requestsOf(stores[1]!, 'blog'), 200)
    assert.equal(await requestsOf(stores[0]!, 'none'), 0)
  })

  test(`${kind}: an app has one row in each minute, hour and day, and apps and agents beyond the limit share one`, async (t) => {
    const { store, db } = await open(kind, t)
    const rollups = new AppRollupStore(db, 3)
    const add = (sightings: readonly Sighting[]) => counted(store, rollups, sightings)
    await add([seen(0, { app: 'one' }), seen(1, { app: 'two' })])
    await add(['three', 'four', 'five', 'one', 'five'].map((app, at) => seen(2 + at, { app })))
    await add([seen(9, { app: 'four' }), seen(10, { app: 'other' })])
    assert.deepEqual(
      await Promise.all(['one', 'two', 'three', 'four', 'five', 'other'].map((app) => totalOf(rollups, app))),
      [2, 1, 1, 0, 0, 5],
    )
    assert.equal(await rollups.rows(), 3 * 4)
    // In the next hour, there is room again.
    const later = { seenAtMs: NOW_MS + HOUR_MS }
    await add(['four', 'five', 'six', 'seven'].map((app, at) => seen(20 + at, { app, ...later })))
    const span = { fromMs: NOW_MS, toMs: NOW_MS + 2 * HOUR_MS }
    assert.equal((await rollups.read(new Set(['four']), span, MINUTE_MS)).series.size, 1)

    const crowd = Array.from({ length: 300 }, (_, at) => seen(at, { ...AGENT, agent: `agent-${at}` }))
    const often = Array.from({ length: 5 }, (_, at) => seen(400 + at, { ...AGENT, agent: 'gptbot' }))
    const ofCrowd = { app: 'two', seenAtMs: NOW_MS }
    for (const some of [crowd.slice(0, 150), [...crowd.slice(150), ...often], often])
      await add(some.map((each) => ({ ...each, ...ofCrowd })))
    const { sums } = await rollups.read(new Set(['two']), { fromMs: 0, toMs: NOW_MS + DAY_MS }, HOUR_MS)
    const agents = sums.get('agent')!
    assert.deepEqual([agents.size, agents.get('gptbot')?.requests], [100, 10])
    assert.equal(
      [...agents.values()].reduce((all, { requests }) => all + requests, 0),
      310,
    )
  })

  test(`${kind}: counts of apps expire with those of all apps, and damaged ones count nothing`, async (t) => {
    const { store, db } = await open(kind, t)
    const ages = [0, 3 * DAY_MS, 100 * DAY_MS]
    for (const [number, age] of ages.entries())
      await counted(store, store.appRollups, [seen(number, { app: 'shop', seenAtMs: NOW_MS - age })])
    const grainsOf = async () => {
      const rows = await db.selectFrom('app_rollups').select('grain_ms').orderBy('grain_ms').execute()
      return rows.map(({ grain_ms }) => grain_ms)
    }
    assert.deepEqual(await grainsOf(), [MINUTE_MS, HOUR_MS, HOUR_MS, DAY_MS, DAY_MS, DAY_MS])
    const forget = async (nowMs: number) => {
      for (let more = true; more; ) more = await store.appRollups.forget(RETENTION, nowMs)
    }
    await forget(NOW_MS + 3 * DAY_MS)
    assert.deepEqual(await grainsOf(), [HOUR_MS, HOUR_MS, DAY_MS, DAY_MS, DAY_MS])
    for (const counts of ['no JSON', 'null', '[1]', '{"total":{"all":["x",1,2]},"verdict":7}']) {
      await db.updateTable('app_rollups').set({ counts }).where('grain_ms', '=', DAY_MS).execute()
      const stats = await statistics(store, '30d', '1d', NOW_MS, new Set(['shop']))
      addsUp(stats)
      assert.equal(stats.detection.requests, 0, counts)
    }
    await counted(store, store.appRollups, [seen(5, { app: 'shop', seenAtMs: NOW_MS })])
    assert.equal((await statistics(store, '30d', '1d', NOW_MS, new Set(['shop']))).detection.requests, 1)
    await forget(NOW_MS + 2_000 * DAY_MS)
    assert.equal(await store.appRollups.rows(), 0)
  })

  test(`${kind}: the agents of an app are those that it was asked by since then`, async (t) => {
    const store = await openFresh(kind, t)
    const agentAt = (number: number, agent: string | null, age: number, app = 'shop') =>
      seen(number, { ...AGENT, agent, app, seenAtMs: NOW_MS - age })
    await ingestInto(store).ingest.take([
      agentAt(0, 'gptbot', 0),
      agentAt(1, 'ccbot', 5 * HOUR_MS),
      agentAt(2, 'claudebot', 20 * DAY_MS),
      agentAt(3, 'bingbot', 0, 'blog'),
      agentAt(4, null, 0),
      seen(5, { app: 'shop', verdict: 'human', seenAtMs: NOW_MS }),
    ])
    const since = async (age: number) =>
      [...(await store.appRollups.agentsOf(new Set(['shop']), NOW_MS - age, NOW_MS)).keys()].toSorted()
    assert.deepEqual(await since(0), ['gptbot'])
    assert.deepEqual(await since(5 * HOUR_MS), ['ccbot', 'gptbot'])
    assert.deepEqual(await since(30 * DAY_MS), ['ccbot', 'claudebot', 'gptbot'])
    assert.deepEqual([...(await store.appRollups.agentsOf(new Set(['none']), 0, NOW_MS))], [])
  })
}

async function counted(store: Store, rollups: AppRollupStore, sightings: readonly Sighting[]): Promise<void> {
  const tally = new RollupTally()
  for (const each of sightings) tally.add(each)
  await store.transaction(async (queries) => {
    await store.sightings.lock(queries)
    await rollups.add(tally, RETENTION, NOW_MS, queries)
  })
}

async function open(kind: DatabaseKind, t: Owner) {
  const url = await freshUrl(kind, t)
  const database: Database = await openDatabase(url, null, migrate)
  t.teardown(() => database.close())
  return { store: await openAt(t, url), db: database.db }
}

async function totalOf(rollups: AppRollupStore, app: string): Promise<number> {
  const { series } = await rollups.read(new Set([app]), { fromMs: NOW_MS - DAY_MS, toMs: NOW_MS }, MINUTE_MS)
  return [...series.values()].reduce((all, { requests }) => all + requests, 0)
}

async function requestsOf(store: Store, app: string): Promise<number> {
  return (await statistics(store, '1h', '1m', NOW_MS, new Set([app]))).detection.requests
}

/** All counts by name, without zeros and what does not add up. */
function countsIn({ detection, series }: Statistics): Record<string, number> {
  const { by_agent, ...counts } = detection
  const agents = by_agent.map(({ agent_id, requests, blocked }) => [agent_id, { requests, blocked }])
  const all = { ...counts, by_agent: Object.fromEntries(agents), series: { ...series } }
  return flat(all, '')
}

function flat(value: object, name: string): Record<string, number> {
  const members = Object.entries(value).filter(([member]) => member !== 'rate' && member !== 'at')
  const parts = members.map(([member, each]) =>
    typeof each === 'number'
      ? each === 0
        ? {}
        : { [`${name} ${member}`]: each }
      : flat(each, `${name} ${member}`),
  )
  return Object.assign({}, ...parts)
}

function sum(one: Record<string, number>, other: Record<string, number>): Record<string, number> {
  const all = { ...one }
  for (const [name, count] of Object.entries(other)) all[name] = (all[name] ?? 0) + count
  return all
}

type Statistics = Pick<Awaited<ReturnType<typeof statistics>>, 'detection' | 'series'>

const APPS = ['default', 'shop', 'blog'] as const
const AGENT = { verdict: 'agent', agent: 'gptbot', category: 'crawler' }
const WINDOWS = [
  ['24h', '1h'],
  ['24h', '5m'],
  ['7d', '1d'],
] as const
