import { setTimeout as wait } from 'node:timers/promises'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { RequestSinks } from '../../src/manage/export/request-sinks.ts'
import { Store } from '../../src/store/store.ts'
import { ingestInto, seen, SILENT } from '../contract/seen.ts'

// For parquet-drill.full.test.ts, which kills it: stores requests from a number on, says what is acknowledged, and writes
// Parquet files meanwhile.
const [url, folder, from] = process.argv.slice(2)
const BATCH = 100
const store = await Store.open(url!)
const { ingest } = ingestInto(store)
const parquet = { place: { folder: folder! }, everyMs: 50, rowsMax: 300 }
const pace = { pollMs: 10, retryBaseMs: 20 }
const sinks = new RequestSinks({ parquet, apps: [] }, new SinkMetrics(['parquet']), folder!, pace)
await sinks.start({ store, log: SILENT, nowMs: Date.now })
for (let next = Number(from); ; next += BATCH) {
  const batch = Array.from({ length: BATCH }, (_, at) =>
    seen(next + at, { app: ['shop', 'blog', 'default'][at % 3]! }),
  )
  // Files keep pace.
  await wait(30)
  await ingest.take(batch)
  process.stdout.write(`${batch.map(({ id }) => id).join(' ')}\n`)
}
