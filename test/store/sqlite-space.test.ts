import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import SqliteConnection from 'better-sqlite3'
import { type Test, test } from 'tap'
import { SightingKeeper } from '../../src/manage/intake/sighting-keeper.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { backupSqlite, restoreSqlite } from '../../src/store/engine/sqlite-backup.ts'
import { Store } from '../../src/store/store.ts'
import { DAY_MS, ingestInto, NOW_MS, RETENTION, seen, SILENT } from '../contract/seen.ts'
import { freshUrl, openAt } from './databases.ts'

test('the file shrinks when Sightings are deleted, except a reserve', async (t) => {
  const { store, file, pages } = await opened(t)
  await fill(store, 20_000)
  const full = pages()
  await keeper(store, { sightingsMax: 1_000 }).forget(NOW_MS)
  assert.equal(pages().file, full.file, 'deleted rows leave free pages')
  await keeper(store).fit()
  const { used, free } = pages()
  assert.ok(used < full.used / 4, `${used} of ${full.used} pages`)
  assert.ok(free < used / 8 + 256, `${free} free pages`)
  checkpoint(file)
  assert.equal(statSync(file).size, pages().file * PAGE)
  assert.equal(await store.sightings.rows(), 1_000)
  assert.equal(intact(file), 'ok')
})

test('a file at its limit stays within an eighth of it, and keeps the newest Sightings', async (t) => {
  const { store, pages } = await opened(t)
  await fill(store, 2_000)
  const bytesMax = pages().file * PAGE * 3
  const keep = keeper(store, { bytesMax })
  for (let round = 1; round <= 12; round++) {
    // Each with a User-Agent of its own, so that profiles take most of the space.
    await fill(store, 1_500, round)
    await keep.fit()
    const bytes = pages().file * PAGE
    assert.ok(bytes <= bytesMax * 1.125, `${bytes} of ${bytesMax} bytes`)
  }
  const { sightings } = await store.sightings.before(null, 1)
  assert.equal(sightings[0]!.userAgent, 'round 12, client 1499')
  const rows = await store.sightings.rows()
  assert.ok(rows > 1_000 && rows < 15_000, `${rows} Sightings`)
  assert.ok((await store.sightings.profiles()) <= rows)
})

test('a limit below the rest of the database leaves a thousand Sightings', async (t) => {
  const { store } = await opened(t)
  await fill(store, 5_000)
  await keeper(store, { bytesMax: 1 }).fit()
  assert.equal(await store.sightings.rows(), 1_000)
})

test('a file of an earlier version is rewritten once, and loses nothing', async (t) => {
  const { file, url } = await withoutShrinking(t)
  const store = await openAt(t, url)
  const before = await store.sightings.before(null, 10)
  await store.space!.prepare(SILENT, 1_000)
  assert.equal(modeOf(file), 0, 'too large')
  await store.space!.prepare(SILENT)
  assert.equal(modeOf(file), 2)
  assert.deepEqual(await store.sightings.before(null, 10), before)
  assert.equal(intact(file), 'ok')
})

test('a file that cannot be rewritten now is used as it is', async (t) => {
  const { file, url } = await withoutShrinking(t)
  const store = await openAt(t, url)
  const other = new SqliteConnection(file)
  t.teardown(() => other.close())
  other.exec('begin immediate')
  await store.space!.prepare(SILENT)
  other.exec('rollback')
  assert.equal(modeOf(file), 0)
  await fill(store, 10, 1)
  assert.equal(await store.sightings.rows(), 5_010)
})

for (const [name, earlier, later] of [
  ['that shrinks gets a backup that does not', opened, withoutShrinking],
  ['that does not shrink gets a backup that does', withoutShrinking, opened],
] as const)
  test(`a store in use ${name}, and goes on`, async (t) => {
    const live = await earlier(t)
    const other = await later(t)
    const backup = `${other.file}.backup`
    await backupSqlite(other.file, backup)
    const store = await openAt(t, live.url)
    await fill(store, 3_000, 1)
    await restoreSqlite(backup, live.file)
    assert.equal(modeOf(live.file), 2)
    await fill(store, 20_000, 2)
    await keeper(store, { sightingsMax: 1_000 }).forget(NOW_MS)
    await keeper(store).fit()
    await fill(store, 5_000, 3)
    assert.equal(intact(live.file), 'ok')
  })

async function opened(t: Test) {
  const url = await freshUrl('sqlite', t)
  const file = url.slice('sqlite:'.length)
  const store = await openAt(t, url)
  return { store, file, url, pages: () => pagesOf(file) }
}

/** As earlier versions have made it. */
async function withoutShrinking(t: Test) {
  const url = await freshUrl('sqlite', t)
  const file = url.slice('sqlite:'.length)
  const store = await Store.open(url)
  await fill(store, 5_000)
  await store.close()
  const connection = new SqliteConnection(file)
  connection.pragma('journal_mode = delete')
  connection.pragma('auto_vacuum = none')
  connection.exec('vacuum')
  connection.close()
  assert.equal(modeOf(file), 0)
  return { file, url }
}

/** `round`: with ids and clients of its own. */
async function fill(store: Store, count: number, round = 0): Promise<void> {
  const of = (number: number): Partial<Sighting> =>
    round === 0 ? {} : { userAgent: `round ${round}, client ${number}`, path: `/${'long'.repeat(50)}` }
  const some = Array.from({ length: count }, (_, number) => seen(round * 100_000 + number, of(number)))
  await ingestInto(store, { nowMs: () => NOW_MS + DAY_MS }).ingest.take(some)
}

function keeper(store: Store, changes: { sightingsMax?: number; bytesMax?: number } = {}): SightingKeeper {
  const limits = { addressesMin: 5, requestsMin: 5, max: 100 }
  const times = { sightingsMs: 100 * DAY_MS, rollups: RETENTION }
  const settings = { ...times, sightingsMax: 1e6, bytesMax: null, observed: limits, ...changes }
  const observed = async () => () => undefined
  const metrics = new IngestMetrics()
  return new SightingKeeper({ store, settings, observed, metrics, log: SILENT, isLeading: () => true })
}

function read<Result>(file: string, work: (connection: SqliteConnection.Database) => Result): Result {
  const connection = new SqliteConnection(file)
  try {
    return work(connection)
  } finally {
    connection.close()
  }
}

function pagesOf(file: string) {
  return read(file, (connection) => {
    const number = (name: string) => Number(connection.pragma(name, { simple: true }))
    const free = number('freelist_count')
    return { file: number('page_count'), free, used: number('page_count') - free }
  })
}

function modeOf(file: string): number {
  return read(file, (connection) => Number(connection.pragma('auto_vacuum', { simple: true })))
}

function intact(file: string): string {
  return read(file, (connection) => String(connection.pragma('integrity_check', { simple: true })))
}

function checkpoint(file: string): void {
  read(file, (connection) => connection.pragma('wal_checkpoint(truncate)'))
}

const PAGE = 4_096
