import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { type Test, test } from 'tap'
import { SightingKeeper } from '../../src/manage/intake/sighting-keeper.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { numberOf, SightingPartitions } from '../../src/store/traffic/sighting-partitions.ts'
import { DAY_MS, HOUR_MS, idOf, MINUTE_MS, RETENTION, seen, SILENT } from '../contract/seen.ts'
import { until } from '../until.ts'
import { freshUrl, openAt } from './databases.ts'
import { inDatabase, roles } from './roles.ts'

test('partitions are made ahead, each for a 24th of the retention', async (t) => {
  const { store, partitions } = await opened(t)
  assert.deepEqual(
    (await partitions.list()).map(({ first }) => first),
    [0],
  )
  await store.sightings.prepare(START_MS, DAY_MS)
  const made = await partitions.list()
  const aheadMs = made.at(-1)!.beyond * MINUTE_MS - START_MS
  assert.ok(aheadMs >= 4 * HOUR_MS && aheadMs < 5 * HOUR_MS, `${aheadMs / HOUR_MS} h`)
  for (const [at, { first, beyond }] of made.entries()) {
    assert.equal(beyond > first, true)
    if (at > 0) assert.ok(first >= made[at - 1]!.beyond)
    if (at > 1) assert.equal(beyond - first, 60)
  }
  await store.sightings.prepare(START_MS, DAY_MS)
  assert.deepEqual(await partitions.list(), made)
  await store.sightings.prepare(START_MS + HOUR_MS, DAY_MS)
  assert.equal((await partitions.list()).length, made.length + 1)
})

test('a value that is missing is looked up in its index, whatever the database expects of it', async (t) => {
  const { store, url, add, db } = await opened(t)
  await add(0, 1)
  // Of twenty apps each has so many that the planner hopes to find another one soon, row by row.
  await inDatabase(
    url,
    `insert into sightings
      select at * 4, gen_random_uuid(), seen_at_ms, profile, 'app-' || at % 20, host, address, address_key, method, path,
        ja4h_cookies, snapshot, request_kind, header_order, target, campaign, sampled, mcp_method, mcp_tool
      from sightings, generate_series(1000, 60000) as at;
    insert into sighting_parts select number >> 16, max(number), min(seen_at_ms), max(seen_at_ms) from sightings
      group by number >> 16 on conflict (number) do nothing`,
  )
  await inDatabase(url, 'analyze')
  const read = async (index: string) => {
    const { rows } = await sql<{ scans: number; rows: number }>`select sum(idx_scan)::int as scans,
      sum(idx_tup_read)::int as rows from pg_stat_user_indexes where indexrelname like ${index}`.execute(db)
    return rows[0]!
  }
  const before = await read('sightings%')
  const { found } = await store.sightings.search({ apps: new Set(['none']) }, () => true, null, 50)
  assert.deepEqual(found, [])
  // PostgreSQL counts what a transaction has read up to a second later.
  await until(async () => (await read('sightings%')).scans > before.scans)
  const rows = (await read('sightings%')).rows - before.rows
  assert.ok(rows < 10_000, `${rows} rows were read`)
})

test('expired partitions are dropped whole, and no Sighting is deleted by itself', async (t) => {
  const { store, partitions, add, forget, url } = await opened(t)
  const hours = 30
  for (let hour = 0; hour < hours; hour++) {
    await store.sightings.prepare(START_MS + hour * HOUR_MS, DAY_MS)
    await add(hour, 20)
  }
  await inDatabase(url, NO_DELETE)
  await forget(START_MS + hours * HOUR_MS)
  const left = await store.sightings.newest(null, 1_000)
  const oldest = START_MS + hours * HOUR_MS - left.at(-1)!.document.seenAtMs
  assert.ok(oldest > 23 * HOUR_MS && oldest <= 25 * HOUR_MS, `${oldest / HOUR_MS} h`)
  assert.equal(await store.sightings.rows(), left.length)
  assert.equal(left.length % 20, 0)
  const numbers = left.map(({ number }) => number)
  assert.deepEqual(
    numbers,
    numbers.toSorted((one, other) => other - one),
  )
  assert.ok((await partitions.list()).length <= 24 + 6)
  // A page and a search go on from one partition to the next.
  const { sightings, next } = await store.sightings.before(null, 30)
  const rest = await store.sightings.before(next, 1_000)
  assert.equal(sightings.length + rest.sightings.length, left.length)
  const { found } = await store.sightings.search({ apps: '*', host: 'x.example' }, () => true, null, 1_000)
  assert.equal(found.length, left.length)
  const { id } = left.at(-1)!.document
  assert.equal((await store.sightings.byId(id, '*'))?.id, id)
})

test('a drop that a reader keeps waiting is tried again, and stops nothing else', async (t) => {
  const { store, partitions, add, forget, url } = await opened(t)
  await store.sightings.prepare(START_MS, DAY_MS)
  await add(1, 5)
  const before = await partitions.list()
  const reader = await openDatabase(url, null, migrate)
  t.teardown(() => reader.close())
  await reader.db.transaction().execute(async (queries) => {
    await queries.selectFrom('sightings').select('number').execute()
    await forget(START_MS + 40 * HOUR_MS)
    assert.equal((await partitions.list())[0]?.first, before[0]!.first)
  })
  await forget(START_MS + 40 * HOUR_MS)
  assert.ok((await partitions.list())[0]!.first > before[0]!.first)
})

test('a partition that another process drops meanwhile is not listed', async (t) => {
  const { store, partitions, url } = await opened(t)
  await store.sightings.prepare(START_MS, DAY_MS)
  const [first, ...others] = await partitions.list()
  const reader = await openDatabase(url, null, migrate)
  t.teardown(() => reader.close())
  await reader.db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(async (queries) => {
      await sql`select count(*) from pg_class`.execute(queries)
      assert.ok(await partitions.drop(first!))
      // The catalogue of this transaction has it still, and its bounds are gone.
      assert.deepEqual(await new SightingPartitions(queries).list(), others)
    })
})

test('Sightings that come late are deleted when they expire', async (t) => {
  const { store, add, forget } = await opened(t)
  await store.sightings.prepare(START_MS, DAY_MS)
  await store.sightings.prepare(START_MS + HOUR_MS, DAY_MS)
  const atMs = START_MS + HOUR_MS
  await add(1, 3, { seenAtMs: atMs - 30 * HOUR_MS })
  await add(1, 3, { seenAtMs: atMs - 5 * HOUR_MS })
  await forget(atMs)
  assert.equal((await store.sightings.newest(null, 10)).length, 3)
  await forget(atMs + 20 * HOUR_MS)
  assert.equal((await store.sightings.newest(null, 10)).length, 0)
})

test('a clock that is ahead does not make the retention walk through the gap before the partitions', {
  timeout: 20_000,
}, async (t) => {
  const { store, add, forget } = await opened(t)
  await add(0, 5, { seenAtMs: START_MS + HOUR_MS })
  await store.sightings.prepare(START_MS, DAY_MS)
  await add(0, 5)
  await forget(START_MS)
  assert.equal((await store.sightings.newest(null, 20)).length, 10)
  await forget(START_MS + 26 * HOUR_MS)
  assert.equal((await store.sightings.newest(null, 20)).length, 0)
})

test('too many Sightings are dropped with their partition, and those of a flood deleted', async (t) => {
  const { store, partitions, add, forget } = await opened(t)
  for (let hour = 0; hour < 4; hour++) {
    await store.sightings.prepare(START_MS + hour * HOUR_MS, DAY_MS)
    await add(hour, 400)
  }
  const before = (await partitions.list()).length
  await forget(START_MS + 4 * HOUR_MS, 1_000)
  assert.equal(await store.sightings.rows(), 1_200)
  assert.equal((await partitions.list()).length < before + 1, true)
  await add(4, 3_000)
  await forget(START_MS + 4 * HOUR_MS, 1_000)
  assert.equal(await store.sightings.rows(), 1_250)
})

test('without new partitions, Sightings go to the last one', async (t) => {
  const { store, partitions, add, forget } = await opened(t)
  await add(0, 5)
  await add(24 * 10, 5)
  assert.equal((await store.sightings.newest(null, 20)).length, 10)
  await store.sightings.prepare(START_MS, DAY_MS)
  const last = (await partitions.list()).at(-1)!
  await add(24 * 20, 5)
  const [newest] = await store.sightings.newest(null, 1)
  assert.ok(newest!.number >= numberOf(last.first) && newest!.number < numberOf(last.beyond))
  // The newest partition is kept.
  await forget(START_MS + 100 * DAY_MS)
  await add(24 * 101, 5)
  assert.equal((await store.sightings.newest(null, 20)).length, 5)
})

test('a stored Sighting whose record is deleted is not stored again', async (t) => {
  const { store, add, url } = await opened(t)
  await store.sightings.prepare(START_MS, DAY_MS)
  const some = await add(1, 5)
  await inDatabase(url, 'delete from sightings_taken')
  await store.transaction((queries) => store.sightings.add(some, START_MS + 2 * HOUR_MS, queries))
  assert.equal((await store.sightings.newest(null, 20)).length, 5)
})

test('the user of managers makes and drops partitions, and others may not', async (t) => {
  const { owner, runtime } = await roles(t)
  const migrated = await openDatabase(owner, null, migrate)
  await migrated.close()
  const database = await openDatabase(runtime, null, async () => undefined)
  t.teardown(() => database.close())
  const partitions = new SightingPartitions(database.db)
  await partitions.makeAhead(START_MS, DAY_MS)
  const made = await partitions.list()
  await partitions.drop(made[1]!)
  assert.equal((await partitions.list()).length, made.length - 1)
  await inDatabase(owner, `revoke delete on sightings from ${new URL(runtime).username}`)
  await assert.rejects(partitions.drop(made[2]!), /permission denied for table sightings/)
  // A table of its own does not stand for that of the owner.
  await assert.rejects(
    database.db.connection().execute(async (connection) => {
      await sql`create temporary table sightings (number bigint)`.execute(connection)
      await new SightingPartitions(connection).drop(made[2]!)
    }),
    /permission denied for table sightings/,
  )
})

async function opened(t: Test) {
  const url = await freshUrl('postgres', t)
  const store = await openAt(t, url)
  const database = await openDatabase(url, null, migrate)
  t.teardown(() => database.close())
  let count = 0
  /** Sightings that are stored in this hour, and seen then, unless the changes say so. */
  const add = async (hour: number, size: number, changes: Partial<Sighting> = {}) => {
    const atMs = START_MS + hour * HOUR_MS
    const some = Array.from({ length: size }, () => {
      const number = count++
      const own = { id: idOf(atMs, number), seenAtMs: atMs, host: 'x.example' }
      return seen(number, { ...own, ...changes })
    })
    await store.transaction(async (queries) => {
      await store.sightings.lock(queries)
      await store.sightings.add(some, atMs, queries)
    })
    return some
  }
  const forget = async (nowMs: number, sightingsMax = 1e6) => {
    const observed = { addressesMin: 5, requestsMin: 5, max: 100 }
    const kept = { sightingsMs: DAY_MS, sightingsMax, bytesMax: null }
    const settings = { ...kept, rollups: RETENTION, observed }
    const rest = { observed: async () => () => undefined, metrics: new IngestMetrics() }
    await new SightingKeeper({ store, settings, ...rest, log: SILENT, isLeading: () => true }).forget(nowMs)
  }
  const { db } = database
  return { url, store, db, partitions: new SightingPartitions(db), add, forget }
}

/** Later than the start of the partitions, which is when the database was made. */
const START_MS = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS + 10 * MINUTE_MS
const NO_DELETE = `
  create or replace function pg_temp_refuse() returns trigger language plpgsql as $$
  begin raise 'a Sighting is deleted'; end $$;
  create trigger refuse before delete on sightings for each statement execute function pg_temp_refuse()`
