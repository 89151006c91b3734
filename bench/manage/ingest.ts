import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import SqliteConnection from 'better-sqlite3'
import pg from 'pg'
import { createLogTo, type Log } from '../../src/shared/log.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { EventMetrics } from '../../src/manage/events/event-metrics.ts'
import { EventSources } from '../../src/manage/events/event-sources.ts'
import { Ingest } from '../../src/manage/intake/ingest.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { REASONS } from '../../src/manage/events/threats/threat.ts'
import { Store } from '../../src/store/store.ts'
import { ClickHouse } from '../../src/store/traffic/clickhouse/clickhouse.ts'
import { type RequestCounts, requestCounts } from '../../src/plane/counts/request-counts.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import type { Sighting, SightingId } from '../../src/plane/sighting.ts'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'
import { SightingSource } from './sightings.ts'

/**
 * How many Sightings a second the management plane stores, from a batch as it comes to a commit that outlives the
 * machine: read, told apart from those that came before, counted in rollups, fingerprints and agents. Eight proxies
 * send batches of 512, each the next one when it hears of the last. `npm run bench:ingest -- [--no-events]
 * [--blocks N] [--apps N] [--rounds N] [--counted] [--share S] [POSTGRES-URL | CLICKHOUSE-URL]`, of a database that is empty;
 * every Nth request is blocked (0: none), threats are told, and the requests are for so many apps. With `--counted`, the
 * senders have counted them, and send Sightings of this share (1: all). With ClickHouse, the rest is in SQLite, and
 * each round is sent in one insert, which is measured by itself. Says at the end how much of the disk a row takes, and how much of the write-ahead log: that
 * of the whole server, so nothing else may write to it.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      'no-events': { type: 'boolean' },
      blocks: { type: 'string', default: '0' },
      apps: { type: 'string', default: '1' },
      rounds: { type: 'string', default: '5' },
      counted: { type: 'boolean' },
      share: { type: 'string', default: '1' },
    },
    allowPositionals: true,
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-ingest-'))
  const beside = `sqlite:${join(folder, 'gatehouse.db')}`
  const url = positionals[0] ?? beside
  const isClickHouse = url.startsWith('clickhouse')
  const store = isClickHouse ? await Store.open(beside, null, { url, login: null }) : await Store.open(url)
  const rounds = Number(values.rounds)
  const before = await spaceOf(url)
  try {
    const source = new SightingSource(Date.now() - 3_600_000, Number(values.blocks), Number(values.apps))
    const metrics = new IngestMetrics()
    const log = createLogTo('error', process.stderr)
    const sources = values['no-events'] ? null : eventSources(store, log)
    const events = sources?.sightings ?? null
    const stored = () => undefined
    const rest = { counters: [], events, waitsForDisk: true, stored, versionOf: () => null, nowMs: Date.now }
    const options = { retention: RETENTION, ...rest }
    const ingest = new Ingest(store, options, metrics, log)
    say(
      `${isClickHouse ? 'clickhouse' : store.kind}: requests a second, and those of a second of processor time of this process`,
    )
    for (let round = 1; round <= rounds; round++) {
      // Making them is not measured.
      const share = values.counted ? Number(values.share) : null
      const batches = Array.from({ length: ROUND / BATCH }, () => batchOf(source.batch(BATCH), share))
      const before = metrics.counts.stored
      const startedMs = performance.now()
      const cpu = process.cpuUsage()
      await Promise.all(Array.from({ length: PROXIES }, () => send(ingest, batches)))
      const { user, system } = process.cpuUsage(cpu)
      const stored = metrics.counts.stored - before
      const rate = (ROUND / (performance.now() - startedMs)) * 1000
      const sentMs = performance.now()
      while (await store.sightings.send());
      const inserts = Math.round((stored / (performance.now() - sentMs)) * 1000)
      say(
        `round ${round}: ${Math.round(rate)} ${Math.round((ROUND / (user + system)) * 1e6)} (${stored} of ${ROUND} stored)${isClickHouse ? `, sent ${inserts} a second` : ''}`,
      )
    }
    const after = await spaceOf(url)
    const each = (bytes: number) => Math.round(bytes / (rounds * ROUND))
    say(`bytes a row: ${each(after.disk - before.disk)} on disk, ${each(after.log - before.log)} of log`)
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

/** SQLite: the whole file, and no log. ClickHouse: what it has, merged or not. */
async function spaceOf(url: string): Promise<{ readonly disk: number; readonly log: number }> {
  if (url.startsWith('sqlite:')) {
    const file = new SqliteConnection(url.slice('sqlite:'.length))
    const disk = Number(file.pragma('page_count', { simple: true })) * 4096
    file.close()
    return { disk, log: 0 }
  }
  if (url.startsWith('clickhouse')) {
    const clickHouse = new ClickHouse(url, null)
    const text = `SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'requests'`
    const [[disk] = [0]] = await clickHouse.rows<[number]>({ text })
    await clickHouse.close()
    return { disk, log: 0 }
  }
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as log,
    sum(pg_total_relation_size(oid))::float8 as disk from pg_class
    where relkind = 'r' and (relispartition or relname in ('sightings', 'sighting_profiles'))`)
  await client.end()
  return rows[0]
}

function eventSources(store: Store, log: Log): EventSources {
  const metrics = new EventMetrics()
  const settings = {
    ...{ windowMs: 300_000, eventsPerMinute: 30, reasons: new Set(REASONS) },
    ...{
      anomaly: { factor: 10, requestsMin: 300 },
      robots: { file: null, upstream: null, isPublished: false },
    },
  }
  const events = new EventLog(store)
  const management = { store, events, snapshot: () => null, log, nowMs: Date.now }
  return new EventSources(management, settings, metrics)
}

interface Batch {
  readonly sightings: readonly Sighting[]
  readonly counts: readonly RequestCounts[]
}

/** `null`: the receiver counts. */
function batchOf(all: readonly Sighting[], share: number | null): Batch {
  if (share === null) return { sightings: all, counts: [] }
  const tally = new RollupTally()
  for (const each of all) tally.add(each)
  const every = Math.round(1 / share)
  const sightings = all.filter((_, at) => at % every === 0).map((each) => ({ ...each, sampled: share }))
  return { sightings, counts: [requestCounts(ids.next() as string as SightingId, tally)] }
}

async function send(ingest: Ingest, batches: Batch[]): Promise<void> {
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift())
    await ingest.take(batch.sightings, 'none', batch.counts)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const ids = new DecisionIds(Date.now())
const ROUND = 65_536
const BATCH = 512
const PROXIES = 8
const RETENTION = { minutesMs: 172_800_000, hoursMs: 90 * 86_400_000, daysMs: 1825 * 86_400_000 }

await main()
