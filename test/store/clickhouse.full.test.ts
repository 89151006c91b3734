import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import { statistics } from '../../src/manage/api/stats.ts'
import { AddressHasher, wantedAddresses } from '../../src/plane/privacy/address-form.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { CLICKHOUSE_DATA } from '../../src/store/data-map/traffic-data.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { Store } from '../../src/store/store.ts'
import { ClickHouse, clickHousePlace } from '../../src/store/traffic/clickhouse/clickhouse.ts'
import type { ClickHouseSightings } from '../../src/store/traffic/clickhouse/clickhouse-sightings.ts'
import { conditionsIn } from '../../src/store/traffic/clickhouse/request-conditions.ts'
import { INTO, tableStatements } from '../../src/store/traffic/clickhouse/request-table.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import type { ScannedRow } from '../../src/store/traffic/request-search.ts'
import { anything, everything, filters, fits, idsOf, made } from '../contract/request-samples.ts'
import { DAY_MS, ingestInto, MINUTE_MS, NOW_MS, seen, START_MS } from '../contract/seen.ts'
import { folderFor } from '../e2e/engines.ts'
import { exampleWith } from '../e2e/manual/examples.ts'
import { type Chdb, skippedChdb, startChdb } from '../services/chdb.ts'
import { rowsOf } from '../manage/parquet-rows.ts'
import { startSink } from '../manage/request-sink.ts'
import { until } from '../until.ts'
import { freshUrl, KINDS, type Owner } from './databases.ts'

const skip = skippedChdb()

test('any Sighting is read as it was stored', { skip }, async (t) => {
  const { sightings, add } = await open(t)
  let number = 0
  const property = fc.asyncProperty(fc.array(anything, { minLength: 1, maxLength: 20 }), async (changes) => {
    const all = changes.map((each) => seen(number++, each))
    await add(all)
    const newest = await sightings.newest(null, all.length)
    assert.deepEqual(
      newest.map(({ document }) => document),
      all.toReversed(),
    )
    assert.deepEqual(await sightings.byId(all[0]!.id, ALL_APPS), all[0])
    assert.equal(await sightings.byId(all[0]!.id, new Set(['another'])), null)
  })
  await fc.assert(property, { numRuns: 30, interruptAfterTimeLimit: 20_000 })
})

test('a search finds what its filter says, page by page, and a scan sees the same', { skip }, async (t) => {
  const { sightings, add } = await open(t)
  const all = Array.from({ length: 1_200 }, (_, at) => made(at))
  // Stored minutes, hours and days apart.
  for (const [at, laterMs] of [0, 30 * MINUTE_MS, DAY_MS, 5 * DAY_MS].entries())
    await add(all.slice(300 * at, 300 * (at + 1)), NOW_MS + laterMs)
  const property = fc.asyncProperty(filters, fc.integer({ min: 1, max: 200 }), async (filter, limit) => {
    const expected = all.filter(fits(filter)).toReversed()
    assert.deepEqual(idsOf(await everything(sightings, filter, limit)), idsOf(expected))
    const oldest = await everything(sightings, filter, limit, 'oldest')
    assert.deepEqual(idsOf(oldest), idsOf(expected.toReversed()))
    const rows: ScannedRow[] = []
    assert.equal(await sightings.scan(filter, (row) => rows.push(row)), null)
    const facts = await sightings.profileFacts([...new Set(rows.map(({ profile }) => profile))])
    assert.deepEqual(
      rows.map(({ path, profile }) => [path, facts.get(profile)?.agent, facts.get(profile)?.purposes]),
      expected.map(({ path, agent, purposes }) => [path, agent, purposes]),
    )
  })
  await fc.assert(property, { numRuns: 40, interruptAfterTimeLimit: 40_000 })
  const last = await sightings.lastNumber()
  const { found, count } = await sightings.between(0, last, new Set(['one']), 10)
  const ofOne = all.filter(({ app }) => app === 'one')
  assert.deepEqual([count, idsOf(found)], [ofOne.length, idsOf(ofOne.toReversed().slice(0, 10))])
})

test('a search for one address or for a time reads its index', { skip }, async (t) => {
  const { chdb, add } = await open(t)
  await add([seen(1)])
  const clickHouse = new ClickHouse(chdb.url, null)
  t.teardown(() => clickHouse.close())
  const indexes = async (filter: Partial<RequestFilter>) => {
    const { texts, values } = conditionsIn({ apps: ALL_APPS, ...filter })
    const text = `EXPLAIN indexes = 1 SELECT id FROM requests WHERE ${texts.join(' AND ')}`
    return (await clickHouse.rows<[string]>({ text, values })).flatMap(([line]) => line.trim())
  }
  const address = await indexes({ addresses: [['4cb007107', '4cb007107']] })
  assert.ok(address.includes('Name: by_address_key'))
  const network = await indexes({ addresses: [['4cb007100', '4cb0071ff']] })
  assert.ok(!network.includes('Name: by_address_key'))
  assert.ok((await indexes({ sinceMs: NOW_MS })).includes('Name: by_seen_at'))
  assert.ok((await indexes({ untilMs: NOW_MS })).includes('Name: by_seen_at'))
})

test('a table of an earlier version gets the columns and indexes of this one', { skip }, async (t) => {
  const { chdb, add } = await open(t)
  const clickHouse = new ClickHouse(chdb.url, null)
  t.teardown(() => clickHouse.close())
  const [create = ''] = tableStatements(clickHousePlace(chdb.url))
  const before = create
    .replace(/,[^,]*INDEX by_seen_at[^,)]*/, '')
    .replace(/, mcp_tool LowCardinality\(Nullable\(String\)\)/, '')
  assert.doesNotMatch(before, /by_seen_at|mcp_tool/)
  await clickHouse.run({ text: before })
  await add([seen(1, { mcpTool: 'search' })])
  const [[table] = ['']] = await clickHouse.rows<[string]>({ text: 'SHOW CREATE TABLE requests' })
  assert.match(table, /INDEX by_seen_at seen_at_ms TYPE minmax GRANULARITY 1/)
  assert.match(table, /`mcp_tool` LowCardinality\(Nullable\(String\)\)/)
})

test('requests that come one after the other share an insert', { skip }, async (t) => {
  const { store, sightings } = await open(t)
  const add = (number: number) =>
    store.transaction((queries) => sightings.add([seen(number)], NOW_MS, queries, []))
  await add(1)
  await add(2)
  assert.equal(await sightings.send(), false, 'what comes now waits for the next second')
  assert.equal(await sightings.rows(), 2)
  await add(3)
  assert.notEqual(await sightings.outbox.next(), null)
  await add(4)
  assert.equal(await sightings.send(), true, 'behind a group that a manager left behind, there may be more')
  assert.equal(await sightings.rows(), 3)
  assert.equal(await sightings.send(), false)
  assert.equal(await sightings.rows(), 4)
})

for (const kind of KINDS)
  test(`${kind}: an outage of ClickHouse delays requests, and none is lost or kept twice`, {
    skip,
  }, async (t) => {
    const { store, chdb, sightings } = await open(t, kind)
    const { ingest } = ingestInto(store)
    const all = Array.from({ length: 600 }, (_, at) => seen(at))
    await ingest.take(all.slice(0, 200))
    await sendAll(sightings)
    await chdb.kill()
    await ingest.take(all.slice(200, 400))
    await assert.rejects(sightings.send(), { code: 'STORE_UNAVAILABLE' })
    assert.equal((await statistics(store, '1h', '1m', NOW_MS)).detection.requests, 400)
    await ingest.take(all.slice(400))
    await chdb.start()
    // What a manager that is killed after the insert leaves behind: the next one sends it again.
    const group = (await sightings.outbox.next())!
    const clickHouse = new ClickHouse(chdb.url, null)
    t.teardown(() => clickHouse.close())
    await clickHouse.insert(INTO, group.lines, String(group.until))
    assert.equal(await sightings.rows(), 200 + group.requests)
    await sendAll(sightings)
    assert.equal(await sightings.outbox.waiting(), 0)
    assert.equal(await sightings.rows(), 600)
    assert.deepEqual(idsOf(await everything(sightings, { apps: ALL_APPS }, 500)), idsOf(all.toReversed()))
    assert.equal((await statistics(store, '1h', '1m', NOW_MS)).detection.requests, 600)
    // They are durable as soon as the outbox no longer has them.
    await chdb.kill()
    await chdb.start()
    assert.equal(await sightings.rows(), 600)
  })

for (const kind of KINDS)
  test(`${kind}: a client is erased where requests wait, where they are being sent, and in ClickHouse`, {
    skip,
  }, async (t) => {
    const { store, sightings, add } = await open(t, kind)
    const hasher = new AddressHasher('the key of this test')
    const forms = ['203.0.113.7', '203.0.113.0/24', hasher.hashOf('203.0.113.7')]
    const ja4h = 'ge11nn060000_4e59edc1297a_4da5efaf0cbd_c00c1ec00c1e'
    let number = 0
    const batch = () => [...forms, '203.0.113.8'].map((address) => seen(number++, { address, ja4h }))
    await add(batch())
    // What a manager that is killed before the insert leaves behind.
    await store.transaction((queries) => sightings.add(batch(), NOW_MS, queries, []))
    assert.notEqual(await sightings.outbox.next(), null)
    await store.transaction((queries) => sightings.add(batch(), NOW_MS, queries, []))

    const wanted = wantedAddresses('203.0.113.7', [hasher])!
    const rows = async (isDry: boolean) => {
      const sums = { traffic_outbox: 0, requests: 0 }
      for await (const erased of sightings.erase(wanted, isDry))
        for (const [table, count] of erased) if (table in sums) sums[table as keyof typeof sums] += count
      return sums
    }
    assert.deepEqual(await rows(true), { traffic_outbox: 3, requests: 3 })
    assert.equal(await sightings.outbox.waiting(), 8)
    assert.deepEqual(await rows(false), { traffic_outbox: 3, requests: 6 })
    await sendAll(sightings)
    const left = await sightings.newest(null, 100)
    assert.deepEqual(
      left.map(({ document }) => document.address),
      ['203.0.113.8', '203.0.113.8', '203.0.113.8'],
    )
    assert.deepEqual(await rows(false), { traffic_outbox: 0, requests: 0 })
  })

test('the data map has every column of the table', { skip }, async (t) => {
  const { add, chdb } = await open(t)
  await add([seen(0)])
  const clickHouse = new ClickHouse(chdb.url, null)
  t.teardown(() => clickHouse.close())
  const columns = await clickHouse.rows<[string]>({
    text: `SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'requests' AND default_kind != 'ALIAS'`,
  })
  const { personal, others } = CLICKHOUSE_DATA
  assert.deepEqual(columns.map(([name]) => name).sort(), [...Object.keys(personal), ...others].sort())
})

test('sinks get what ClickHouse has, oldest first', { skip }, async (t) => {
  const { store, sightings, add } = await open(t)
  const folder = folderFor(t, 'parquet')
  await add([seen(0, { path: '/before' })])
  const parquet = { place: { folder }, everyMs: 50, rowsMax: 150 }
  const { counts, sinks } = await startSink(t, store, { parquet })
  const all = Array.from({ length: 600 }, (_, at) => seen(at + 1, { app: at % 3 === 0 ? 'blog' : 'shop' }))
  for (let at = 0; at < 600; at += 200) await add(all.slice(at, at + 200), NOW_MS + at)
  await until(() => counts().sent === 600 && counts().waiting === 0)
  const files = globSync('app=*/**/*.parquet', { cwd: folder }).sort()
  const rows = await Promise.all(files.map((file) => rowsOf(readFileSync(join(folder, file)))))
  assert.deepEqual(
    rows
      .flat()
      .map(({ id }) => id)
      .sort(),
    all.map(({ id }) => id).sort(),
  )
  await sinks.close()
  const { last } = await sightings.stored()
  const [first] = await sightings.placesAfter(0, last, 1)
  const next = await sightings.after(first!.number, 250)
  assert.deepEqual(
    next.map(({ document }) => document),
    all.slice(0, 250),
  )
  assert.deepEqual(await sightings.numbered(next.slice(5, 8).map(({ number }) => number)), all.slice(5, 8))
  assert.deepEqual([await sightings.rowsAfter(first!.number), await sightings.after(last, 5)], [600, []])
})

test('old requests go: those that expire, and the oldest days beyond the limit', { skip }, async (t) => {
  const { sightings, add, chdb } = await open(t)
  const nowMs = Date.now()
  for (const [at, ageMs] of [4 * DAY_MS, 3 * DAY_MS, DAY_MS, 0].entries())
    await add(
      Array.from({ length: 10 }, (_, each) => seen(at * 10 + each)),
      nowMs - ageMs,
    )
  assert.equal(await sightings.forget(nowMs - 10 * DAY_MS, nowMs, 1_000), false)
  assert.equal(await sightings.rows(), 40)
  while (await sightings.forget(nowMs - 10 * DAY_MS, nowMs, 25));
  assert.equal(await sightings.rows(), 30, 'as few days as possible')
  while (await sightings.forget(nowMs - 1.5 * DAY_MS, nowMs, 1_000));
  assert.equal(await sightings.rows(), 20)
  while (await sightings.forget(nowMs + DAY_MS, nowMs, 1));
  assert.equal(await sightings.rows(), 10, 'the newest day stays')
  await sightings.prepare(nowMs, 2 * DAY_MS)
  await sightings.prepare(nowMs, DAY_MS)
  const clickHouse = new ClickHouse(chdb.url, null)
  t.teardown(() => clickHouse.close())
  const [[table] = ['']] = await clickHouse.rows<[string]>({ text: 'SHOW CREATE TABLE requests' })
  assert.match(table, /TTL toDateTime\(intDiv\(number, 4096000\)\) \+ toIntervalSecond\(86400\)/)
})

test('requests that ClickHouse does not take are bounded, and the proxies keep the rest', {
  skip,
}, async (t) => {
  const { store, chdb } = await open(t)
  await chdb.kill()
  await store.transaction(async (queries) => {
    await queries
      .insertInto('traffic_outbox')
      .values({ last_number: 1, requests: 1_000_001, lines: Buffer.alloc(0) })
      .execute()
  })
  const { ingest, metrics } = ingestInto(store, { nowMs: () => START_MS })
  await assert.rejects(ingest.take([seen(1)]), { code: 'STORE_LOCKED' })
  assert.equal(metrics.counts.stored, 0)
})

test('a failure names ClickHouse and what to do', { skip }, async (t) => {
  const { url } = await startChdb(t)
  const none = new ClickHouse(url.replace('/gatehouse', '/none'), null)
  t.teardown(() => none.close())
  await assert.rejects(none.rows({ text: 'SELECT 1 FROM requests' }), {
    code: 'STORE_UNAVAILABLE',
    message: /^ClickHouse at http:\/\/127\.0\.0\.1:\d+ has no such database: make it with CREATE DATABASE /,
  })
})

test('the table of a cluster is one that ClickHouse understands', { skip }, async (t) => {
  const { url } = await startChdb(t)
  const clickHouse = new ClickHouse(url, null)
  t.teardown(() => clickHouse.close())
  const statements = tableStatements(clickHousePlace(`${url}?cluster=main`))
  for (const text of statements) {
    const read = (await clickHouse.rows<[string]>({ text: `EXPLAIN AST ${text}` })).join()
    assert.match(read, /^(?:Create|Alter)Query/)
  }
  assert.match(
    statements.join(),
    /ReplicatedMergeTree.*Distributed\('main', currentDatabase\(\), requests_here/s,
  )
})

test('the statements of the manual are those of ClickHouse', { skip }, async (t) => {
  const { add, chdb } = await open(t)
  await add([seen(1, { app: 'shop', verdict: 'agent', agent: 'gptbot' }), seen(2, { app: 'shop' })])
  const clickHouse = new ClickHouse(chdb.url, null)
  t.teardown(() => clickHouse.close())
  const [[, agent, requests] = []] = await clickHouse.rows<unknown[]>({
    text: exampleWith(PAGE, 'toStartOfHour'),
  })
  assert.deepEqual([agent, requests], ['gptbot', 1])
  for (const text of exampleWith(PAGE, 'CREATE DATABASE').trim().split(';\n'))
    assert.ok((await clickHouse.rows({ text: `EXPLAIN AST ${text.replace(/;$/, '')}` })).length > 0)
})

const PAGE = 'config/guide/clickhouse.md'

async function open(t: Owner, kind: DatabaseKind = 'sqlite') {
  const chdb: Chdb = await startChdb(t)
  const store = await Store.open(await freshUrl(kind, t), null, {
    url: chdb.url,
    login: null,
    lookMs: 60_000,
  })
  t.teardown(() => store.close())
  const sightings = store.sightings as ClickHouseSightings
  const add = async (some: readonly Sighting[], nowMs = NOW_MS) => {
    await store.transaction((queries) => sightings.add(some, nowMs, queries, []))
    await sendAll(sightings)
  }
  return { store, chdb, sightings, add }
}

async function sendAll(sightings: ClickHouseSightings): Promise<void> {
  while (await sightings.send());
}
