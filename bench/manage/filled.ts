import { Ingest } from '../../src/manage/intake/ingest.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { createLogTo } from '../../src/shared/log.ts'
import type { Store } from '../../src/store/store.ts'
import { clickHousePlace } from '../../src/store/traffic/clickhouse/clickhouse.ts'
import type { ClickHouseSightings } from '../../src/store/traffic/clickhouse/clickhouse-sightings.ts'
import { NUMBERS_PER_MS } from '../../src/store/traffic/clickhouse/request-table.ts'
import { SightingSource } from './sightings.ts'

/** How long the requests of a database have come in. */
export const SQL_DAYS = 1
export const CLICKHOUSE_DAYS = 30

/**
 * Stores so many requests of a day, until now. The first five are of an agent, a rule and a path that never come again. With
 * SQLite, everything else that a manager stores is there too: counts, agents and fingerprints.
 */
export async function fill(store: Store, rows: number): Promise<void> {
  const spanMs = SQL_DAYS * DAY_MS
  const source = new SightingSource(Date.now() - spanMs, 0, APPS, (rows * 100) / spanMs)
  const ingest = store.kind === 'sqlite' ? ingestOf(store, () => source.nowMs) : null
  let preparedMs = 0
  for (let done = 0; done < rows; done += BATCH) {
    const batch = source.batch(BATCH).map((each, at) => (done === 0 && at < 5 ? { ...each, ...OLD } : each))
    if (source.nowMs >= preparedMs + HOUR_MS) {
      preparedMs = source.nowMs
      await store.sightings.prepare(preparedMs, spanMs)
    }
    await (ingest?.take(batch) ??
      store.transaction(async (queries) => {
        await store.sightings.commitSoon(queries)
        await store.sightings.add(batch, source.nowMs, queries, [])
      }))
    if (done % 1_000_000 < BATCH) process.stderr.write(`${done} rows\n`)
  }
}

/** The same of 30 days in ClickHouse: a million is sent by a manager, and ClickHouse copies it to earlier times. */
export async function fillClickHouse(store: Store, url: string, rows: number): Promise<void> {
  const size = Math.min(rows, 1_000_000)
  const copies = Math.ceil(rows / size)
  const spanMs = (CLICKHOUSE_DAYS * DAY_MS) / copies
  const source = new SightingSource(Date.now() - spanMs, 0, APPS, (size * 100) / spanMs)
  let from: number | null = null
  const sightings = store.sightings as ClickHouseSightings
  const add = (batch: ReturnType<SightingSource['batch']>, nowMs: number) =>
    store.transaction((queries) => sightings.add(batch, nowMs, queries, []))
  const oldMs = source.nowMs - (copies - 1) * spanMs
  const old = new SightingSource(oldMs, 0, APPS).batch(5).map((each) => ({ ...each, ...OLD }))
  await add(old, oldMs)
  for (let done = 0; done < size; done += BATCH) {
    const batch = source.batch(BATCH)
    await add(batch, source.nowMs)
    // No copy reaches as far as the first batch.
    from ??= source.nowMs * NUMBERS_PER_MS
    if (done % 100_000 < BATCH) await sendAll(sightings)
  }
  await sendAll(sightings)
  const { url: origin, user, database } = clickHousePlace(url)
  const asked = `${origin}/?${new URLSearchParams({ user, database })}`
  for (let copy = 1; copy < copies; copy++) {
    // A copy may take longer than a manager waits.
    const answer = await fetch(asked, {
      method: 'POST',
      body: copied(Math.round(copy * spanMs), copy, from!),
    })
    if (!answer.ok) throw new Error(await answer.text())
    if (copy % 10 === 0) process.stderr.write(`${copy * size} rows\n`)
  }
}

/** As a manager does: what a busy ClickHouse has not taken in time is sent again. */
async function sendAll(sightings: ClickHouseSightings): Promise<void> {
  for (let isMore = true, tries = 0; isMore; )
    try {
      isMore = await sightings.send()
    } catch (error) {
      if (++tries === TRIES) throw error
    }
}

/** As if the clients of other networks had sent the newest requests so much earlier. */
function copied(earlierMs: number, copy: number, from: number): string {
  const time = `lower(hex(toUInt64(seen_at_ms - ${earlierMs})))`
  const octet = FIRST_OCTET + copy
  return `INSERT INTO requests SELECT * REPLACE (
      toUInt64(number - ${earlierMs * NUMBERS_PER_MS}) AS number,
      toUUID(concat(substring(${time}, 1, 8), '-', substring(${time}, 9, 4), substring(toString(id), 14))) AS id,
      seen_at_ms - ${earlierMs} AS seen_at_ms,
      concat('198.${octet}.', substring(address, 8)) AS address,
      concat('4c6${octet.toString(16)}', substring(address_key, 6)) AS address_key)
    FROM (SELECT * FROM requests WHERE number >= ${from})`
}

function ingestOf(store: Store, nowMs: () => number): Ingest {
  const rest = {
    counters: [],
    events: null,
    waitsForDisk: true,
    stored: () => undefined,
    versionOf: () => null,
  }
  const options = { retention: RETENTION, ...rest, nowMs }
  return new Ingest(store, options, new IngestMetrics(), createLogTo('error', process.stderr))
}

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const RETENTION = { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS }
const APPS = 20
const BATCH = 4_000
const TRIES = 20
const OLD = { agent: 'agent-old', rule: 'old', path: '/old' }
/** The second one of the addresses of a SightingSource. */
const FIRST_OCTET = 51
