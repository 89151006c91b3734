import { RequestSinks, type RequestSinkSettings, sinkKinds } from '../../src/manage/export/request-sinks.ts'
import { SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import type { Store } from '../../src/store/store.ts'
import { folderFor } from '../e2e/engines.ts'
import type { Owner } from '../store/databases.ts'

export const NO_SINKS: RequestSinkSettings = { parquet: null, nats: null, otlp: null, apps: [] }

/** One sink of requests, which has begun. */
export async function startSink(t: Owner, store: Store, settings: Partial<RequestSinkSettings>) {
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => written.push(line) })
  const all = { ...NO_SINKS, ...settings }
  const { apps: _apps, ...sinksByKind } = all
  const kinds = sinkKinds(sinksByKind)
  const sinkMetrics = new SinkMetrics(kinds)
  const pace = { pollMs: 20, retryBaseMs: 20 }
  const sinks = new RequestSinks(all, sinkMetrics, folderFor(t, 'sink'), pace)
  const metrics = new Metrics()
  sinkMetrics.addTo(metrics)
  const alive = setInterval(() => undefined, 1_000) // what hands on does not keep a process alive
  t.teardown(() => clearInterval(alive))
  t.teardown(() => sinks.close())
  await sinks.start({ store, log, nowMs: Date.now })
  const text = async () => metricsText([await metrics.read()])
  return { sinks, counts: () => sinkMetrics.of(kinds[0]!), said: () => written, text }
}

/** Of a process that is killed when it is about to write down how far it has come. */
export function dyingAt(store: Store): Store {
  const positions = store.eventPositions
  const eventPositions = {
    claim: positions.claim.bind(positions),
    plan: positions.plan.bind(positions),
    planned: positions.planned.bind(positions),
    move: () => Promise.reject(new Error('killed')),
    leave: positions.leave.bind(positions),
  }
  return { sightings: store.sightings, eventPositions, kind: store.kind } as unknown as Store
}
