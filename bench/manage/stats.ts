import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { statistics } from '../../src/manage/api/stats.ts'
import { FingerprintTally } from '../../src/store/catalogue/fingerprints-seen.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from './sightings.ts'

/**
 * How long GET /v1/stats takes the database and this process with a hundred million requests in the last 30 days, of 40
 * agents in every minute, and 100,000 fingerprints. `npm run bench:stats -- [POSTGRES-URL]`, of a database that is empty.
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-stats-'))
  const store = await Store.open(process.argv[2] ?? `sqlite:${join(folder, 'gatehouse.db')}`)
  try {
    const nowMs = Date.now()
    await fill(store, nowMs)
    await fillFingerprints(store, nowMs)
    say(
      `${store.kind}: ${await store.rollups.rows()} rollups, ${await store.fingerprintsSeen.rows()} fingerprints`,
    )
    for (const [window, bucket] of ASKED) {
      const times: number[] = []
      let requests = 0
      for (let round = 0; round < ROUNDS; round++) {
        const startedMs = performance.now()
        const stats = await statistics(store, window, bucket, nowMs)
        times.push(performance.now() - startedMs)
        requests = stats.detection.requests
      }
      times.sort((one, other) => one - other)
      const [best, median, worst] = [times[0]!, times[ROUNDS >> 1]!, times.at(-1)!].map((ms) => ms.toFixed(1))
      say(
        `${window.padStart(3)} by ${bucket.padStart(3)}: ${best} / ${median} / ${worst} ms (${requests} requests)`,
      )
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

/** The same counts in every minute: of 600 Sightings, as often as it takes. */
async function fill(store: Store, nowMs: number): Promise<void> {
  const source = new SightingSource(nowMs)
  const some = source.batch(600)
  for (let dayMs = nowMs - (nowMs % DAY_MS) - 30 * DAY_MS; dayMs < nowMs; dayMs += DAY_MS) {
    const tally = new RollupTally()
    for (let minuteMs = dayMs; minuteMs < dayMs + DAY_MS && minuteMs < nowMs; minuteMs += MINUTE_MS)
      for (const sighting of some) tally.add({ ...sighting, seenAtMs: minuteMs })
    for (let factor = 1; factor <= FACTOR; factor++)
      await store.transaction((queries) => store.rollups.add(tally, RETENTION, nowMs, queries))
  }
}

async function fillFingerprints(store: Store, nowMs: number): Promise<void> {
  const [sighting] = new SightingSource(nowMs).batch(1)
  for (let at = 0; at < 100_000; at += 500) {
    const tally = new FingerprintTally()
    for (let number = at; number < at + 500; number++)
      tally.add(
        { ...sighting!, seenAtMs: nowMs - number * 20_000, ja4: null, ja4s: null, ja4h: `ge20nn${number}` },
        number,
      )
    await store.transaction((queries) => store.fingerprintsSeen.add(tally, queries))
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const ASKED = [
  ['1h', '1m'],
  ['24h', '5m'],
  ['24h', '1h'],
  ['7d', '1h'],
  ['30d', '1h'],
  ['30d', '1d'],
] as const
const ROUNDS = 21
const FACTOR = 4
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000
const RETENTION = { minutesMs: 2 * DAY_MS, hoursMs: 90 * DAY_MS, daysMs: 1825 * DAY_MS }

await main()
