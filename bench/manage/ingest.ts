import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLogTo, type Log } from '../../src/shared/log.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { EventMetrics } from '../../src/manage/events/event-metrics.ts'
import { EventSources } from '../../src/manage/events/event-sources.ts'
import { Ingest } from '../../src/manage/intake/ingest.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { REASONS } from '../../src/manage/events/threats/threat.ts'
import { Store } from '../../src/store/store.ts'
import { SightingSource } from './sightings.ts'

/**
 * How many Sightings a second the management plane stores, from a batch as it comes to a commit that outlives the
 * machine: read, told apart from those that came before, counted in rollups, fingerprints and agents. Eight proxies
 * send batches of 512, each the next one when it hears of the last. `npm run bench:ingest -- [--no-events]
 * [--blocks N] [POSTGRES-URL]`, of a database that is empty; every Nth request is blocked (0: none), and threats are told.
 */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { 'no-events': { type: 'boolean' }, blocks: { type: 'string', default: '0' } },
    allowPositionals: true,
  })
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-ingest-'))
  const store = await Store.open(positionals[0] ?? `sqlite:${join(folder, 'gatehouse.db')}`)
  try {
    const source = new SightingSource(Date.now() - 3_600_000, Number(values.blocks))
    const metrics = new IngestMetrics()
    const log = createLogTo('error', process.stderr)
    const sources = values['no-events'] ? null : eventSources(store, log)
    const events = sources?.sightings ?? null
    const stored = () => undefined
    const rest = { counters: [], events, stored, versionOf: () => null, nowMs: Date.now }
    const options = { retention: RETENTION, ...rest }
    const ingest = new Ingest(store, options, metrics, log)
    say(`${store.kind}: Sightings a second, and those of a second of processor time of this process`)
    for (let round = 1; round <= ROUNDS; round++) {
      // Making them is not measured.
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

function eventSources(store: Store, log: Log): EventSources {
  const metrics = new EventMetrics()
  const settings = {
    ...{ windowMs: 300_000, eventsPerMinute: 30, reasons: new Set(REASONS) },
    ...{ anomaly: { factor: 10, requestsMin: 300 }, robots: { file: null, upstream: null } },
  }
  const events = new EventLog(store)
  const management = { store, events, snapshot: () => null, log, nowMs: Date.now }
  return new EventSources(management, settings, metrics)
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
