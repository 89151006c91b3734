import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { type TraceSpan, SpanExporter } from '../../src/proxy/request/span-exporter.ts'
import { until } from './test-worker.ts'

test('spans are posted in batches, with the token, and what is left at the end', async (t) => {
  const { exporter, posts, lines } = await bench(t)
  for (let i = 0; i < 1_000; i++) exporter.add(span(i))
  await until(() => exporter.counts.exported === 1_000)
  for (let i = 0; i < 3; i++) exporter.add(span(i))
  await exporter.close(5_000)
  assert.deepEqual(exporter.counts, { exported: 1_003, dropped: 0, refused: 0 })
  assert.deepEqual(
    posts.map(({ spans }) => spans.length),
    [512, 488, 3],
  )
  assert.equal(posts[0]!.authorization, 'Bearer the-token')
  assert.deepEqual(lines, [])
})

test('while the collector is away they wait, as many as there is room for, and it is said once', async (t) => {
  const { exporter, posts, lines, answer } = await bench(t)
  answer.status = 503
  exporter.add(span(0))
  await until(() => posts.length > 3)
  for (let i = 1; i < 5_000; i++) exporter.add(span(i))
  assert.equal(exporter.counts.dropped, 5_000 - 4_096)
  answer.status = 200
  await until(() => exporter.counts.exported === 4_096)
  assert.deepEqual(
    lines.map((line) => JSON.parse(line).message),
    ['traces are not taken', 'traces are taken again'],
  )
  assert.ok(!lines.join().includes('the-token'))
  await exporter.close(0)
})

test('what it does not want is not sent again', async (t) => {
  const { exporter, posts, answer } = await bench(t)
  answer.status = 400
  exporter.add(span(0))
  await until(() => exporter.counts.refused === 1)
  await wait(60)
  assert.equal(posts.length, 1)
  await exporter.close(0)
})

test('one that never answers holds up neither the end nor what comes', async (t) => {
  const { exporter, posts, answer } = await bench(t, 100)
  answer.status = 0
  exporter.add(span(0))
  await until(() => posts.length === 2)
  exporter.add(span(1))
  const startedMs = performance.now()
  await exporter.close(300)
  assert.ok(performance.now() - startedMs < 2_000)
  assert.deepEqual(exporter.counts, { exported: 0, dropped: 2, refused: 0 })
})

test('redirects are not followed', async (t) => {
  const { exporter, posts, answer } = await bench(t)
  answer.status = 307
  exporter.add(span(0))
  await until(() => posts.length > 1)
  assert.equal(exporter.counts.exported, 0)
  await exporter.close(0)
})

function span(number: number): TraceSpan {
  return {
    ...{
      traceId: 'a'.repeat(32),
      spanId: number.toString(16).padStart(16, '0'),
      parentSpanId: '',
      name: 'GET',
    },
    ...{
      kind: 2,
      startTimeUnixNano: '1',
      endTimeUnixNano: '2',
      attributes: [],
      links: [],
      status: { code: 0 },
    },
  }
}

interface Post {
  readonly authorization: string | undefined
  readonly spans: readonly TraceSpan[]
}

/** `timeoutMs`: a request without an answer by then is sent again, however busy the machine. */
async function bench(t: Test, timeoutMs = 30_000) {
  const posts: Post[] = []
  /** 0: none. */
  const answer = { status: 200 }
  const server = createServer(async (request, response) => {
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const body = (await json(request)) as any
    posts.push({
      authorization: request.headers.authorization,
      spans: body.resourceSpans[0].scopeSpans[0].spans,
    })
    if (answer.status === 307) response.setHeader('location', '/elsewhere')
    if (answer.status !== 0) response.writeHead(answer.status).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
  const lines: string[] = []
  const log = createLogTo('info', { write: (line) => void lines.push(line) })
  const settings = { endpoint, token: 'the-token', resource: [], everyMs: 20, timeoutMs }
  return { exporter: new SpanExporter(settings, log), posts, lines, answer }
}
