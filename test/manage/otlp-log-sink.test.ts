import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'tap'
import type { OtlpLogSettings } from '../../src/manage/export/otlp-log-sink.ts'
import { ingestInto, seen } from '../contract/seen.ts'
import { KINDS, openFresh, type Owner } from '../store/databases.ts'
import { until } from './event-reader.ts'
import { recordsIn } from './otlp-reader.ts'
import { dyingAt, startSink } from './request-sink.ts'

for (const kind of KINDS)
  test(`${kind}: a collector has each request of these apps once`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest } = ingestInto(store)
    const { messages, records, otlp } = await collector(t)
    await ingest.take([seen(0, { app: 'shop', path: '/before' })])
    const apps = ['shop', 'blog']
    const first = await startSink(t, store, { otlp, apps })
    const sightings = Array.from({ length: 60 }, (_, at) =>
      seen(at + 1, { app: ['shop', 'blog', 'default'][at % 3]!, sampled: at % 2 === 0 ? 0.25 : null }),
    )
    await ingest.take(sightings)
    await until(() => first.counts().sent === 40)
    const wanted = sightings.filter(({ app }) => app !== 'default')
    assert.deepEqual(
      records().map(({ attributes }) => attributes['log.record.uid']),
      wanted.map(({ id }) => id),
    )
    const [one] = records()
    assert.deepEqual(
      [one!.atMs, one!.eventName, one!.severity, one!.service, one!.attributes['gatehouse.weight']],
      [wanted[0]!.seenAtMs, 'gatehouse.request', 'INFO', 'gate', 4],
    )
    assert.deepEqual(
      [one!.attributes['http.request.method'], one!.attributes['gatehouse.verdict'], one!.body],
      [wanted[0]!.method, wanted[0]!.verdict, `${wanted[0]!.method} /`],
    )
    assert.deepEqual(
      [messages[0]!.header('x-key'), messages[0]!.header('content-type')],
      ['the-token', 'application/json'],
    )
    await first.sinks.close()
    await ingest.take([seen(100, { app: 'shop', path: '/later' })])
    const second = await startSink(t, store, { otlp, apps })
    await until(() => second.counts().sent === 1 && second.counts().waiting === 0)
    assert.equal(records().at(-1)!.attributes['url.path'], '/later')
    assert.match(await second.text(), /gatehouse_sink_requests_total\{sink="otlp"\} 1\n/)
    await second.sinks.close()
  })

test('a process that dies before it has noted its position sends the same again', async (t) => {
  const store = await openFresh('sqlite', t)
  const { records, otlp } = await collector(t)
  const dying = await startSink(t, dyingAt(store), { otlp })
  const { ingest } = ingestInto(store)
  const sightings = Array.from({ length: 30 }, (_, at) => seen(at))
  await ingest.take(sightings)
  await until(() => dying.counts().failures > 1)
  await dying.sinks.close()
  const next = await startSink(t, store, { otlp })
  await until(() => next.counts().sent === 30)
  const ids = records().map(({ attributes }) => attributes['log.record.uid'])
  assert.ok(ids.length > 30)
  assert.deepEqual(new Set(ids), new Set(sightings.map(({ id }) => id)))
  await next.sinks.close()
})

test('requests wait while the collector is overloaded, denies or hangs, and one line says so', async (t) => {
  const store = await openFresh('sqlite', t)
  const { records, otlp, answer } = await collector(t)
  const { counts, said, sinks } = await startSink(t, store, { otlp: { ...otlp, timeoutMs: 200 } })
  const { ingest } = ingestInto(store)
  for (const [at, status] of [503, 429, 401, 307, 400, 0].entries()) {
    answer.status = status
    const failures = counts().failures
    await ingest.take([seen(2 * at), seen(2 * at + 1)])
    await until(() => counts().failures > failures)
  }
  assert.deepEqual([counts().sent, counts().lost, records().length], [0, 0, 0])
  answer.status = 200
  await until(() => counts().sent === 12)
  assert.equal(records().length, 12)
  assert.deepEqual(
    said().map((line) => JSON.parse(line).message),
    ['a sink takes no requests; it is tried again', 'a sink takes requests again'],
  )
  assert.match(said()[0]!, /the receiver of OTLP logs answered 503/)
  assert.ok(!said().join().includes('the-token'))
  await sinks.close()
})

test('a record that the collector refuses is counted, and holds up no other', async (t) => {
  const store = await openFresh('sqlite', t)
  const { records, otlp, answer } = await collector(t)
  answer.refuses = '/bad'
  const { counts, said, sinks } = await startSink(t, store, { otlp })
  const { ingest } = ingestInto(store)
  await ingest.take(Array.from({ length: 50 }, (_, at) => seen(at, { path: at % 20 === 7 ? '/bad' : '/' })))
  await until(() => counts().sent === 47)
  assert.deepEqual([counts().lost, records().length], [3, 47])
  answer.rejects = 2
  await ingest.take(Array.from({ length: 10 }, (_, at) => seen(100 + at)))
  await until(() => counts().sent === 55)
  assert.equal(counts().lost, 5)
  assert.equal(said().filter((line) => line.includes('has refused requests for good')).length, 1)
  await sinks.close()
})

test('hostile values arrive as they are stored', async (t) => {
  const store = await openFresh('sqlite', t)
  const { records, otlp } = await collector(t)
  const { counts, sinks } = await startSink(t, store, { otlp })
  const { ingest } = ingestInto(store)
  const hostile = ['\0', '\ud800x', 'é€😀\u202e', '\r\n"', '\u{fffd}', 'x'.repeat(5_000), '', '{"a":1}']
  await ingest.take(
    hostile.map((each, at) =>
      seen(at, { path: `/${each}`, userAgent: each, host: each || null, evidence: [each, each] }),
    ),
  )
  await until(() => counts().sent === hostile.length)
  const documents = (await store.sightings.newest(null, 100)).map(({ document }) => document).reverse()
  for (const [at, { attributes }] of records().entries()) {
    const { path, userAgent, evidence } = documents[at]!
    assert.equal(attributes['url.path'], path.toWellFormed())
    assert.equal(attributes['user_agent.original'], userAgent?.toWellFormed() || undefined)
    assert.deepEqual(
      attributes['gatehouse.evidence'],
      evidence.map((each) => each.toWellFormed()),
    )
  }
  await sinks.close()
})

/** A collector that reads what it gets by the schema of OTLP. */
async function collector(t: Owner) {
  const messages: { readonly message: object; header(name: string): unknown }[] = []
  const answer = { status: 200, refuses: null as string | null, rejects: 0 }
  const server = createServer(async (asked, answered) => {
    const message = JSON.parse(await text(asked)) as object
    const { status, refuses, rejects } = answer
    if (status === 0) return
    const isRefused =
      refuses !== null && recordsIn(message).some(({ attributes }) => attributes['url.path'] === refuses)
    answered.statusCode = isRefused ? 400 : status
    answered.setHeader('location', '/elsewhere')
    if (answered.statusCode === 200) messages.push({ message, header: (name) => asked.headers[name] })
    const rejected = { partialSuccess: { rejectedLogRecords: String(rejects), errorMessage: 'no' } }
    answered.end(rejects > 0 ? JSON.stringify(rejected) : '{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const otlp: OtlpLogSettings = {
    endpoint: `http://127.0.0.1:${port}/v1/logs`,
    headers: async () => ({ 'x-key': 'the-token' }),
    service: 'gate',
    ca: null,
  }
  return { messages, records: () => messages.flatMap(({ message }) => recordsIn(message)), answer, otlp }
}
