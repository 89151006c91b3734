import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { writeFileSync } from 'node:fs'
import { type Test, test } from 'tap'
import { type App, startApp } from './app.ts'
import { curl } from './curl.ts'
import { type GatehouseOptions, startGatehouse } from './gatehouse.ts'
import { skipped, temporaryFolder } from './programs.ts'

const skip = skipped('curl')
const [TRACE, SPAN] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']

test('a request is a trace: what was decided, and what the app hangs its own on', { skip }, async (t) => {
  const { gate, app, ask, spans } = await bench(t, { command: 'up', argv: ['--workers', '1'] })
  await ask('/shop?secret=1', '-A', 'GPTBot/1.2', '-H', 'Cookie: a=b')
  const told = headersOf(app)['traceparent']!
  const [, traceId, appSpanId, flags] = told.split('-') as [string, string, string, string]
  assert.equal(flags, '01')
  const [server, client] = await spans(2)
  assert.deepEqual([server.traceId, server.kind, server.parentSpanId, server.links], [traceId, 2, '', []])
  assert.deepEqual(
    [client.traceId, client.kind, client.spanId, client.parentSpanId],
    [...[traceId, 3, appSpanId, server.spanId]],
  )
  const { 'gatehouse.evidence': evidence, 'gatehouse.ja4': ja4, ...said } = attributesOf(server)
  assert.deepEqual(said['gatehouse.purpose'], ['training'])
  assert.match(String(ja4), /^t13d/)
  assert.ok(String(evidence).includes('names-agent'))
  assert.deepEqual(
    [
      said['url.path'],
      said['http.response.status_code'],
      said['user_agent.original'],
      said['gatehouse.agent'],
    ],
    ['/shop', '200', 'GPTBot/1.2', 'gptbot'],
  )
  assert.equal(said['gatehouse.app'], 'default')
  assert.deepEqual([said['gatehouse.action'], said['gatehouse.verdict']], ['tag', 'agent'])
  assert.equal(said['gatehouse.decision_id'], headersOf(app)['x-agent-decision-id'])
  assert.equal(String(said['gatehouse.decision_id']).replaceAll('-', ''), traceId)
  assert.ok(!JSON.stringify(server).includes('secret'), 'no query and no cookie')
  assert.ok(BigInt(server.startTimeUnixNano) <= BigInt(client.startTimeUnixNano))
  assert.ok(BigInt(client.endTimeUnixNano) >= BigInt(client.startTimeUnixNano))
  assert.ok(Math.abs(Number(server.startTimeUnixNano) / 1e6 - Date.now()) < 60_000)
  const page = await (
    await fetch(`${gate.manage}/metrics`, { headers: { accept: 'application/openmetrics-text' } })
  ).text()
  assert.match(page, new RegExp(`# \\{decision_id="[0-9a-f-]{36}",trace_id="${traceId}"\\}`))
  assert.match(page, /gatehouse_spans_total\{outcome="exported"\} 2/)
})

test('an untrusted client cannot start a trace', { skip }, async (t) => {
  const { app, ask, spans } = await bench(t)
  await ask('/', '-H', `traceparent: 00-${TRACE}-${SPAN}-00`, '-H', 'tracestate: a=b')
  const told = headersOf(app)
  assert.ok(!told['traceparent']!.includes(TRACE) && told['traceparent']!.endsWith('-01'))
  assert.equal(told['tracestate'], undefined)
  const [server] = await spans(2)
  assert.notEqual(server.traceId, TRACE)
  assert.deepEqual(server.links, [{ traceId: TRACE, spanId: SPAN }])
})

test('a trusted hop’s trace goes on, and it decides whether it is recorded', { skip }, async (t) => {
  const settings = ['trusted_proxies: [127.0.0.1]']
  const { app, ask, spans } = await bench(t, { settings })
  await ask('/', '-H', `traceparent: 00-${TRACE}-${SPAN}-00`)
  assert.match(headersOf(app)['traceparent']!, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`))
  await ask('/', '-H', `traceparent: 00-${TRACE}-${SPAN}-01`, '-H', 'tracestate: a=b')
  const told = headersOf(app)
  assert.match(told['traceparent']!, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`))
  assert.equal(told['tracestate'], 'a=b')
  const [server, client, ...more] = await spans(2)
  assert.deepEqual([server.parentSpanId, client.traceId, more.length], [SPAN, TRACE, 0])
})

test('what is blocked has one span, and an app that is away an error', { skip }, async (t) => {
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, 'rules: [{name: closed, when: {path: /closed}, action: block}]\n')
  const { ask, spans } = await bench(t, { argv: ['--policy', policy], upstream: 'http://127.0.0.1:9' })
  await ask('/closed')
  const [blocked, ...none] = await spans(1)
  const { 'gatehouse.rule': rule, 'http.response.status_code': status } = attributesOf(blocked)
  assert.deepEqual([rule, status, blocked.status.code, none.length], ['closed', '403', 0, 0])
  await ask('/')
  const all = await spans(3)
  assert.deepEqual(
    all.slice(1).map((span) => [attributesOf(span)['http.response.status_code'], span.status.code]),
    [
      ['502', 2],
      ['502', 2],
    ],
  )
})

test('an unsampled trace is passed on as such, and without a collector contexts pass unchanged', {
  skip,
}, async (t) => {
  const none = await bench(t, { variables: { GATEHOUSE_TRACING_SAMPLE: '0' } })
  await none.ask('/')
  assert.match(headersOf(none.app)['traceparent']!, /-00$/)
  const off = await bench(t, { variables: { GATEHOUSE_TRACING_ENDPOINT: '' } })
  await off.ask('/', '-H', `traceparent: 00-${TRACE}-${SPAN}-00`)
  assert.equal(headersOf(off.app)['traceparent'], `00-${TRACE}-${SPAN}-00`)
})

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
type Json = any

async function bench(t: Test, options: Partial<GatehouseOptions> = {}) {
  const app = await startApp(t)
  const found: Json[] = []
  const collector = createServer(async (request, response) => {
    const body = (await json(request)) as Json
    for (const { scopeSpans } of body.resourceSpans) for (const { spans } of scopeSpans) found.push(...spans)
    response.setHeader('content-type', 'application/json').end('{"partialSuccess":{}}')
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  t.teardown(() => collector.close())
  const { port } = collector.address() as AddressInfo
  const gate = await startGatehouse(t, {
    upstream: app.url,
    ...options,
    variables: {
      GATEHOUSE_TRACING_ENDPOINT: `http://127.0.0.1:${port}/v1/traces`,
      GATEHOUSE_TRACING_SAMPLE: '1',
      ...options.variables,
    },
  })
  const folder = temporaryFolder(t)
  return {
    ...{ gate, app },
    ask: (path: string, ...argv: readonly string[]) =>
      curl(folder, ['--cacert', gate.caFile, ...argv, `${gate.url}${path}`]),
    /** Resolves with all there are, when there are as many; those of a request in their order. */
    async spans(count: number): Promise<Json[]> {
      while (found.length < count) await new Promise((resolve) => setTimeout(resolve, 20))
      return found
    },
  }
}

function headersOf({ asked }: App): Record<string, string | undefined> {
  const { rawHeaders } = asked.at(-1)!
  return Object.fromEntries(
    rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), rawHeaders[i + 1]!]] : [])),
  )
}

function attributesOf({ attributes }: Json): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }: Json) => [
      key,
      value.arrayValue?.values.map((each: Json) => each.stringValue) ??
        value.stringValue ??
        value.intValue ??
        value.doubleValue,
    ]),
  )
}
