import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'tap'
import type { MetricsReading } from '../../src/shared/metrics.ts'
import type { FailureReason } from '../../src/proxy/connection/connection.ts'
import type { DoneRequest } from '../../src/proxy/request/context.ts'
import { CountsByApp } from '../../src/apps/counts-by-app.ts'
import { type CountSources, WorkerMetrics } from '../../src/proxy/worker/worker-metrics.ts'
import { groupOf } from './upstream-fixture.ts'

test('requests are counted by verdict, category, action and class of status, and timed', async () => {
  const metrics = new WorkerMetrics(sources())
  metrics.nameApps(['default'])
  metrics.requestDone(request('unknown', null, 'tag'), 200, 3, 0, null)
  metrics.requestDone(request('unknown', null, 'tag'), 204, 30, 0, null)
  metrics.requestDone(request('agent', 'crawler', 'block'), 451, 1, 0, null)
  metrics.requestDone(request('agent', null, 'tarpit'), 0, 70_000, 0, null)
  metrics.requestDone(request('human', null, 'route'), 101, 5, 0, null)
  const reading = await metrics.read()
  assert.deepEqual(valuesOf(reading, 'requests_total'), {
    'unknown none tag 2xx default': 2,
    'agent crawler block 4xx default': 1,
    'agent none tarpit none default': 1,
    'human none route 1xx default': 1,
  })
  const durations = samplesOf(reading, 'request_duration_seconds')
  assert.equal(durations.find(({ metricName }) => metricName?.endsWith('_count'))?.value, 5)
  assert.equal(durations.find(({ metricName }) => metricName?.endsWith('_sum'))?.value, 70.039)
})

test('an unexpected status or name makes no series of its own', async () => {
  const metrics = new WorkerMetrics(sources())
  for (let i = 0; i < 500; i++)
    metrics.requestDone(request(`verdict ${i}`, `category ${i}`, `action ${i}`), i * 1000 + 600, 1, 0, null)
  assert.equal(Object.keys(valuesOf(await metrics.read(), 'requests_total')).length, 1)
})

test('requests are counted by app, and those of more apps than have names together', async () => {
  const metrics = new WorkerMetrics(sources())
  const apps = Array.from({ length: 510 }, (_, at) => `app-${at}`)
  metrics.nameApps(['default', ...apps.slice(0, 300)])
  const count = (app: string) => metrics.requestDone(request('human', null, 'pass', app), 200, 1, 0, null)
  for (const app of ['app-0', 'app-499', 'unnamed']) count(app)
  // Apps are added, and some are removed. The names of earlier ones stay.
  metrics.nameApps(['default', ...apps.slice(100)])
  for (const app of [...apps, 'default', 'app-0', 'unnamed']) count(app)
  const counts = valuesOf(await metrics.read(), 'requests_total')
  const of = (app: string) => counts[`human none pass 2xx ${app}`]
  assert.equal(Object.keys(counts).length, 502)
  assert.deepEqual(['default', 'app-0', 'app-1', 'app-498'].map(of), [1, 3, 1, 1])
  // What was counted before an app had a name stays where it is.
  assert.deepEqual(['app-499', 'app-500', 'unnamed', 'other'].map(of), [1, undefined, undefined, 13])
})

test('handshakes are counted by what they came to, and the time of one detection in 64 is taken', async () => {
  const metrics = new WorkerMetrics(sources())
  const secured = { version: 'TLSv1.3', isResumed: true, protocol: 'h2', durationMs: 3 } as const
  metrics.connectionSecured(secured)
  metrics.connectionSecured({ ...secured, version: 'SSLv9' })
  for (let i = 0; i < 640; i++) {
    const begunMs = metrics.detectionBegins()
    if (begunMs > 0) metrics.detectionDone(begunMs)
  }
  const reading = await metrics.read()
  const handshakes = valuesOf(reading, 'handshakes_total')
  assert.deepEqual([handshakes['TLSv1.3 true h2'], handshakes['other true h2']], [1, 1])
  const count = (name: string) =>
    samplesOf(reading, name).find(({ metricName }) => metricName?.endsWith('_count'))?.value
  assert.deepEqual([count('handshake_duration_seconds'), count('detection_duration_seconds')], [2, 10])
})

test('a process without a file descriptor left says what it can of itself, and goes on', async () => {
  const said = execFileSync(
    'sh',
    ['-c', `ulimit -n 100 && exec "$0" "$@"`, process.execPath, ...SPENDTHRIFT],
    {
      encoding: 'utf8',
    },
  )
  const [before, after] = said.trim().split('\n').map(Number) as [number, number]
  assert.ok(before > 1_000_000, said)
  assert.equal(after, before, 'what is resident is what it was when it could be asked for')
})

test('failures are counted by reason, and those of TLS by what TLS says', async () => {
  const metrics = new WorkerMetrics(sources())
  const fail = (reason: FailureReason, code: string | null) =>
    metrics.connectionFailed({ reason, code, address: '192.0.2.1', isTls: true })
  fail('handshake', 'ERR_SSL_NO_SHARED_CIPHER')
  fail('malformed-hello', 'made up by the peer')
  fail('handshake', null)
  fail('bad-request', 'ERR_SSL_NO_SHARED_CIPHER')
  fail('h2-protocol', 'many-resets')
  fail('h2-protocol', 'ERR_HTTP2_ERROR')
  metrics.forgedHeaders(2)
  metrics.forgedHeaders(3)
  const reading = await metrics.read()
  const failures = valuesOf(reading, 'connection_failures_total')
  const { handshake, 'malformed-hello': malformed, 'bad-request': bad, gone } = failures
  assert.deepEqual([handshake, malformed, bad, gone], [2, 1, 1, 0])
  const { ERR_SSL_NO_SHARED_CIPHER: noCipher, other } = valuesOf(reading, 'handshake_failures_total')
  assert.deepEqual([noCipher, other], [1, 2])
  const {
    'many-resets': resets,
    'frame-size': sizes,
    other: ofNode,
  } = valuesOf(reading, 'http2_failures_total')
  assert.deepEqual([resets, sizes, ofNode], [1, 0, 1])
  assert.deepEqual(valuesOf(reading, 'forged_headers_total'), { '': 5 })
})

test('counts of listeners and targets are read on request, and summed', async () => {
  const counts = { connections: 0, opening: 1, handshakes: 2, h1: 3, h2: 4, upgraded: 5, streams: 6 }
  const group = groupOf(['http://127.0.0.1:1', 'http://127.0.0.1:2'], { name: 'shop' })
  const counted = { recorded: 9, delivered: 7, dropped: 1, sampledOut: 4, counted: 6 }
  const recorder = { counts: counted, droppedByApp: new CountsByApp(), waitingCounts: 2 }
  const metrics = new WorkerMetrics({
    listeners: [{ counts }, { counts: { ...counts, h1: 30 } }],
    upstreams: [group],
    recorder,
    traffic: { size: 12 },
    expressions: { failures: 0, overruns: 0 },
    spans: { counts: { exported: 5, dropped: 4, refused: 3 } },
    accessLog: { dropped: 8 },
    waiting: () => 3,
  })
  await metrics.read()
  group.counters.failed['head-timeout'] += 2
  group.counters.clientGone++
  recorder.counts.delivered = 8
  const reading = await metrics.read()
  assert.deepEqual(valuesOf(reading, 'connections_open'), {
    opening: 2,
    handshakes: 4,
    h1: 33,
    h2: 8,
    upgraded: 10,
  })
  assert.deepEqual(valuesOf(reading, 'streams_open'), { '': 12 })
  const outcomes = valuesOf(reading, 'upstream_requests_total')
  assert.deepEqual([outcomes['shop head-timeout'], outcomes['shop client-gone']], [2, 1])
  assert.equal(outcomes['shop answered'], 0)
  assert.deepEqual(valuesOf(reading, 'upstream_targets_healthy'), { shop: 2 })
  assert.deepEqual(valuesOf(reading, 'sightings_total'), {
    ...{ recorded: 9, delivered: 8, dropped: 1, sampled_out: 4 },
  })
  assert.deepEqual(valuesOf(reading, 'requests_counted_total'), { '': 6 })
  assert.deepEqual(valuesOf(reading, 'requests_counted_waiting'), { '': 2 })
  assert.deepEqual(valuesOf(reading, 'traffic_remembered'), { '': 12 })
  assert.deepEqual(valuesOf(reading, 'signatures_waiting'), { '': 3 })
  assert.deepEqual(valuesOf(reading, 'spans_total'), { exported: 5, dropped: 4, refused: 3 })
  group.close()
})

test('a process tells of its memory, its processor time and its delay', async () => {
  const reading = await new WorkerMetrics(sources()).read()
  for (const name of ['memory_resident_bytes', 'memory_heap_bytes', 'cpu_seconds_total']) {
    assert.ok(valuesOf(reading, name)['']! > 0, name)
  }
  const delays = valuesOf(reading, 'event_loop_delay_seconds')
  assert.deepEqual(Object.keys(delays).sort(), ['100', '50', '99'])
  for (const value of Object.values(delays)) assert.ok(value >= 0 && value < 3600, String(value))
})

function request(kind: string, category: string | null, action: string, app = 'default'): DoneRequest {
  return {
    id: 'an id',
    app: { id: app },
    verdict: { kind, agent: category === null ? null : { id: 'x', name: 'X', category } },
    decision: { action: { kind: action } },
  } as unknown as DoneRequest
}

function sources(): CountSources {
  const counts = { connections: 0, opening: 0, handshakes: 0, h1: 0, h2: 0, upgraded: 0, streams: 0 }
  return {
    listeners: [{ counts }],
    upstreams: [],
    recorder: {
      counts: { recorded: 0, delivered: 0, dropped: 0, sampledOut: 0, counted: 0 },
      droppedByApp: new CountsByApp(),
      waitingCounts: 0,
    },
    traffic: { size: 0 },
    expressions: { failures: 0, overruns: 0 },
    spans: null,
    accessLog: null,
    waiting: () => 0,
  }
}

function samplesOf(reading: MetricsReading, name: string): MetricsReading[number]['values'] {
  const metric = reading.find((each) => each.name === `gatehouse_${name}`)
  assert.ok(metric !== undefined, name)
  return metric.values
}

/** By the values of the labels. */
function valuesOf(reading: MetricsReading, name: string): Record<string, number> {
  const entries = samplesOf(reading, name).map(({ labels, value }) => [
    Object.values(labels).join(' '),
    value,
  ])
  return Object.fromEntries(entries)
}

/** Reads its metrics, uses up what it has of descriptors, and reads them again. */
const SPENDTHRIFT = [
  '--input-type=module',
  '--eval',
  `import { openSync } from 'node:fs'
import { Metrics } from '${new URL('../../src/shared/metrics.ts', import.meta.url)}'
import { addProcessMetrics } from '${new URL('../../src/proxy/worker/worker-metrics.ts', import.meta.url)}'
const metrics = new Metrics()
addProcessMetrics(metrics)
const say = async () => {
  const reading = await metrics.read()
  process.stdout.write(reading.find(({ name }) => name.endsWith('memory_resident_bytes')).values[0].value + '\\n')
}
await say()
for (;;) try { openSync('/dev/null') } catch (error) { if (error.code !== 'EMFILE') throw error; break }
await say()
process.exit()`,
]
