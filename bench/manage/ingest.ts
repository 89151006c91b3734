import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogTo } from '../../src/log.ts'
import { Ingest } from '../../src/manage/ingest.ts'
import { IngestMetrics } from '../../src/manage/ingest-metrics.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from './sightings.ts'

/**
 * How many Sightings a second the management plane stores, from a batch as it comes to a commit that outlives the
 * machine: read, told apart from those that came before, counted in rollups, fingerprints and agents. Eight proxies
 * send batches of 512, each the next one when it hears of the last. `npm run bench:ingest -- [POSTGRES-URL]`, of a
 * database that is empty.
 */
async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-ingest-'))
  const store = await Store.open(process.argv[2] ?? `sqlite:${join(folder, 'gatehouse.db')}`)
  try {
    const source = new SightingSource(Date.now() - 3_600_000)
    const metrics = new IngestMetrics()
    const nothing = { counters: [], stored: () => undefined, versionOf: () => null }
    const options = { retention: RETENTION, ...nothing, nowMs: Date.now }
    const ingest = new Ingest(store, options, metrics, createLogTo('error', process.stderr))
    say(`${store.kind}: Sightings a second, and those of a second of processor time of this process`)
    for (let round = 1; round <= ROUNDS; round++) {
      // What makes them is no part of it.
      const batches = Array.from({ length: ROUND / BATCH }, () => source.batch(BATCH))
      const before = metrics.counts.stored
      const startedMs = performance.now()
      const cpu = process.cpuUsage()
      await Promise.all(Array.from({ length: PROXIES }, () => send(ingest, batches)))
      const { user, system } = process.cpuUsage(cpu)
      const stored = metrics.counts.stored - before
      const rate = (stored / (performance.now() - startedMs)) * 1000
      say(
        `round ${round}: ${Math.round(rate)} ${Math.round((stored / (user + system)) * 1e6)} (${stored} of ${ROUND})`,
      )
    }
  } finally {
    await store.close()
    rmSync(folder, { recursive: true })
  }
}

async function send(ingest: Ingest, batches: (readonly unknown[])[]): Promise<void> {
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) await ingest.take(batch)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

const ROUNDS = 5
const ROUND = 65_536
const BATCH = 512
const PROXIES = 8
const RETENTION = { minutesMs: 172_800_000, hoursMs: 90 * 86_400_000, daysMs: 1825 * 86_400_000 }

await main()
