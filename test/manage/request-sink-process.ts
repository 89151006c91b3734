import { setTimeout as wait } from 'node:timers/promises'
import { tmpdir } from 'node:os'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { RequestSinks, type RequestSinkSettings, sinkKinds } from '../../src/manage/export/request-sinks.ts'
import { Store } from '../../src/store/store.ts'
import { ingestInto, seen, SILENT } from '../contract/seen.ts'
import { NO_SINKS } from './request-sink.ts'

// For drills that kill it: stores requests from a number on, says what is acknowledged, and sends them to the sink in
// these settings meanwhile.
const [url, text, from] = process.argv.slice(2)
const BATCH = 100
const store = await Store.open(url!)
const { ingest } = ingestInto(store)
const given = JSON.parse(text!) as Partial<RequestSinkSettings>
const otlp = given.otlp == null ? null : { ...given.otlp, headers: async () => ({}) }
const settings = { ...given, otlp }
const pace = { pollMs: 10, retryBaseMs: 20 }
const metrics = new SinkMetrics(sinkKinds(settings))
const sinks = new RequestSinks({ ...NO_SINKS, ...settings }, metrics, tmpdir(), pace)
await sinks.start({ store, log: SILENT, nowMs: Date.now })
for (let next = Number(from); ; next += BATCH) {
  const batch = Array.from({ length: BATCH }, (_, at) =>
    seen(next + at, { app: ['shop', 'blog', 'default'][at % 3]! }),
  )
  // The sink keeps pace.
  await wait(30)
  await ingest.take(batch)
  process.stdout.write(`${batch.map(({ id }) => id).join(' ')}\n`)
}
