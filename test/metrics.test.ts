import assert from 'node:assert/strict'
import { test } from 'tap'
import {
  departed,
  DurationHistogram,
  METRICS_TYPE,
  Metrics,
  metricsText,
  metricsTypeFor,
  OPENMETRICS_TYPE,
  LabelledCounter,
} from '../src/shared/metrics.ts'

const zeros = [
  'agent/pass/2xx',
  'agent/pass/4xx',
  'agent/block/2xx',
  'human/pass/4xx',
  'human/block/2xx',
  'human/block/4xx',
]

test('a tally counts by labels known in advance; unknown values count as other', async () => {
  const tally = new LabelledCounter({
    verdict: ['agent', 'human'],
    action: ['pass', 'block'],
    status: ['2xx', '4xx'],
  })
  tally.add('agent', 'block', '4xx')
  tally.add('agent', 'block', '4xx')
  for (let i = 0; i < 3; i++) tally.add('human', 'pass', '2xx')
  tally.add('<script>', 'pass', '9xx')
  assert.deepEqual(samplesOf(tally), {
    'agent/block/4xx': 2,
    'human/pass/2xx': 3,
    'other/pass/other': 1,
    ...Object.fromEntries(zeros.map((labels) => [labels, 0])),
  })
})

test('every combination of labels has a number of its own', async () => {
  const labels = { a: ['1', '2', '3'], b: ['x', 'y'], c: ['k', 'l'], d: ['p', 'q'] }
  const tally = new LabelledCounter(labels)
  let by = 1
  const expected: Record<string, number> = {}
  for (const a of [...labels.a, 'other']) {
    for (const b of [...labels.b, 'other']) {
      for (const c of [...labels.c, 'other'])
        for (const d of [...labels.d, 'other']) {
          expected[`${a}/${b}/${c}/${d}`] = by
          for (let i = 0; i < by; i++) tally.add(a, b, c, d)
          by++
        }
    }
  }
  assert.deepEqual(samplesOf(tally), expected)
})

test('no text of a client makes another series', async () => {
  const tally = new LabelledCounter({ reason: ['reset', 'timeout'] })
  for (let i = 0; i < 1000; i++) tally.add(`reason ${i}`)
  tally.add('__proto__')
  assert.deepEqual(samplesOf(tally), { reset: 0, timeout: 0, other: 1001 })
})

test('a large tally leaves out what never happened', async () => {
  const names = Array.from({ length: 10 }, (_, index) => String(index))
  const tally = new LabelledCounter({ a: names, b: names })
  tally.add('3', '4')
  assert.deepEqual(samplesOf(tally), { '3/4': 1 })
})

test('durations are counted in buckets that hold all below them', async () => {
  const histogram = new DurationHistogram([10, 100])
  for (const durationMs of [0, 10, 10.5, 100, 5000]) histogram.observe(durationMs)
  const metrics = new Metrics()
  metrics.histogram('x_seconds', 'X.', histogram)
  assert.equal(
    await metricsText([await metrics.read()]),
    [
      '# HELP gatehouse_x_seconds X.',
      '# TYPE gatehouse_x_seconds histogram',
      'gatehouse_x_seconds_bucket{le="0.01"} 2',
      'gatehouse_x_seconds_bucket{le="0.1"} 4',
      'gatehouse_x_seconds_bucket{le="+Inf"} 5',
      'gatehouse_x_seconds_sum 5.1205',
      'gatehouse_x_seconds_count 5',
      '',
    ].join('\n'),
  )
})

test('the readings of several processes are one, each as its metric says', async () => {
  const [one, other] = [worker(3, 0.5, 7), worker(4, 0.2, 7)]
  assert.deepEqual(valuesIn(await metricsText([await one.read(), await other.read()])), {
    'gatehouse_requests_total{kind="a"}': 7,
    'gatehouse_requests_total{kind="b"}': 1,
    gatehouse_open: 7,
    gatehouse_delay_seconds: 0.5,
    gatehouse_version: 7,
    'gatehouse_time_seconds_bucket{le="0.01"}': 2,
    'gatehouse_time_seconds_bucket{le="+Inf"}': 2,
    gatehouse_time_seconds_sum: 0.007,
    gatehouse_time_seconds_count: 2,
  })
})

test('a reading survives the way between processes', async () => {
  const reading = await worker(3, 0.5, 7).read()
  assert.equal(await metricsText([structuredClone(reading)]), await metricsText([reading]))
  assert.equal(await metricsText([JSON.parse(JSON.stringify(reading))]), await metricsText([reading]))
})

test('what a process that is gone has counted stays, through any number of them', async () => {
  let gone = departed([])
  for (let i = 0; i < 3; i++) gone = departed([gone, await worker(3, 9, 9).read()])
  const values = valuesIn(await metricsText([await worker(1, 0.1, 8).read(), gone]))
  assert.equal(values['gatehouse_requests_total{kind="a"}'], 10)
  assert.equal(values['gatehouse_time_seconds_count'], 4)
  assert.deepEqual([values['gatehouse_open'], values['gatehouse_delay_seconds']], [1, 0.1])
})

test('nothing at all is a valid page too', async () => {
  assert.equal(await metricsText([]), '\n')
  assert.equal(await metricsText([], OPENMETRICS_TYPE), '\n# EOF\n')
})

test('in OpenMetrics a bucket names one that fell into it: the latest of all processes, and one a second', async () => {
  const of = (observed: readonly (readonly [durationMs: number, id: string, atMs: number])[]) => {
    const metrics = new Metrics()
    const time = new DurationHistogram([10, 100])
    for (const [durationMs, id, atMs] of observed)
      time.observeAs(durationMs, atMs, id, id === 'new' ? '7d' : null)
    metrics.histograms('time_seconds', 'Time.', () => [{ labels: { upstream: 'app' }, histogram: time }])
    metrics.counter('requests_total', 'Requests.', () => [{ labels: {}, value: observed.length }])
    return metrics.read()
  }
  const readings = [
    await of([
      [5, 'first', 1_000],
      [6, 'too-soon', 1_500],
      [50, 'old', 1_000],
    ]),
    JSON.parse(JSON.stringify(await of([[60, 'new', 2_000]]))),
  ]
  assert.equal(
    await metricsText(readings, OPENMETRICS_TYPE),
    [
      '# HELP gatehouse_time_seconds Time.',
      '# TYPE gatehouse_time_seconds histogram',
      'gatehouse_time_seconds_bucket{upstream="app",le="0.01"} 2 # {decision_id="first"} 0.005 1',
      'gatehouse_time_seconds_bucket{upstream="app",le="0.1"} 4 # {decision_id="new",trace_id="7d"} 0.06 2',
      'gatehouse_time_seconds_bucket{upstream="app",le="+Inf"} 4',
      'gatehouse_time_seconds_sum{upstream="app"} 0.121',
      'gatehouse_time_seconds_count{upstream="app"} 4',
      '# HELP gatehouse_requests Requests.',
      '# TYPE gatehouse_requests counter',
      'gatehouse_requests_total 4',
      '# EOF',
      '',
    ].join('\n'),
  )
  assert.ok(!(await metricsText(readings)).includes('decision_id'))
})

test('answers in OpenMetrics if the request names it', async () => {
  const prometheus =
    'application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.1'
  assert.equal(metricsTypeFor(prometheus), OPENMETRICS_TYPE)
  for (const accept of [undefined, '', '*/*', 'text/plain', 'text/html, */*'])
    assert.equal(metricsTypeFor(accept), METRICS_TYPE)
})

function worker(requests: number, delay: number, version: number): Metrics {
  const metrics = new Metrics()
  const tally = new LabelledCounter({ kind: ['a', 'b'] })
  for (let i = 0; i < requests; i++) tally.add('a')
  if (requests === 3) tally.add('b')
  const time = new DurationHistogram([10])
  time.observe(requests)
  metrics.counter('requests_total', 'Requests.', () => tally.samples())
  metrics.gauge('open', 'Open.', 'sum', () => [{ labels: {}, value: requests }])
  metrics.gauge('delay_seconds', 'Delay.', 'max', () => [{ labels: {}, value: delay }])
  metrics.gauge('version', 'Version.', 'first', () => [{ labels: {}, value: version }])
  metrics.histogram('time_seconds', 'Time.', time)
  return metrics
}

function samplesOf(tally: LabelledCounter): Record<string, number> {
  return Object.fromEntries(
    [...tally.samples()].map(({ labels, value }) => [Object.values(labels).join('/'), value]),
  )
}

function valuesIn(text: string): Record<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(' ')),
      Number(line.slice(line.lastIndexOf(' ') + 1)),
    ]),
  )
}
