import assert from 'node:assert/strict'
import http from 'node:http'
import http2 from 'node:http2'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { type Test, test } from 'tap'
import { McpMessageReader } from '../../src/proxy/request/mcp/message-reader.ts'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import type { McpReading } from '../../src/wire/mcp/mcp-message.ts'
import { until } from '../until.ts'
import { MemoryExchange, openBody } from './memory-exchange.ts'
import { type GatePlan, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

const POLICY = {
  rules: [
    { name: 'no deletes', when: { path: '/mcp', mcp_tool: 'delete_*' }, action: 'block' },
    { name: 'no secrets', when: { path: '/mcp', mcp_resource: 'file:///secret/*' }, action: 'block' },
    {
      name: 'no prompts',
      when: { expression: 'request.path == "/mcp" && request.mcp_method == "prompts/get"', path: '/mcp' },
      action: 'block',
    },
    {
      name: 'slow mail',
      when: { path: '/mcp', mcp_tool: ['send_*', 'post_*'] },
      action: { rate_limit: { per: 'address', per_tool: true, requests: 1, window: '1h' } },
    },
  ],
}
const call = (tool: string, id: unknown = 1) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: tool, arguments: { a: 'hush' } },
  })

test('rules decide by the call in the body, on HTTP/1 and HTTP/2', async (t) => {
  const { ask, gate, asked } = await startApp(t)
  for (const version of ['1', '2'] as const) {
    for (const [body, status] of [
      [call('echo'), 200],
      [call('delete_all', 'x"y'), 403],
      ['{"id":1,"m\\u0065thod":"tools/call","params":{"name":"d\\u0065lete_all"}}', 403],
      ['{"id":1,"method":"resources/read","params":{"uri":"file:///secret/a"}}', 403],
      ['{"id":1,"method":"resources/read","params":{"uri":"file:///open/a"}}', 200],
      ['{"id":1,"method":"prompts/get","params":{"name":"p"}}', 403],
      ['{"method":"notifications/initialized"}', 200],
      ['{"id":1,"result":{}}', 200],
      ['', 200],
      ['delete_all', 200],
    ] as const) {
      const answer = await ask(body, { version })
      assert.equal(answer.status, status, `${version} ${body}`)
      if (status === 200) assert.equal(asked.at(-1), body, 'the app gets the same bytes')
    }
  }
  const denied = await ask(call('delete_all', 'x"y'))
  const { decision_id: id } = JSON.parse(denied.body).error.data
  assert.deepEqual(JSON.parse(denied.body), {
    jsonrpc: '2.0',
    id: 'x"y',
    error: {
      code: -32_003,
      message: 'This request is not allowed here.',
      data: { code: 'blocked', decision_id: id },
    },
  })
  const { rule, mcpMethod, mcpTool } = gate.sightings.at(-1)!
  assert.deepEqual([rule, mcpMethod, mcpTool], ['no deletes', 'tools/call', 'delete_all'])
  assert.ok(!/hush|file:/.test(JSON.stringify(gate.sightings)), 'no argument, no resource')
})

test('a body that contradicts its headers or cannot be read is refused', async (t) => {
  const { ask, asked, gate } = await startApp(t, { messages: new McpMessageReader(2_000) })
  for (const [body, headers, status, code] of [
    [call('echo'), { 'Mcp-Method': 'tools/list' }, 400, -32_020],
    [call('delete_all'), { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' }, 400, -32_020],
    ['', { 'Mcp-Method': 'tools/call' }, 400, -32_020],
    ['a=b', { 'Mcp-Method': 'tools/call' }, 400, -32_020],
    [`[${call('delete_all')}]`, {}, 400, -32_600],
    ['{"method":"ping","method":"tools/call"}', {}, 400, -32_600],
    ['{"method":', {}, 400, -32_700],
    [`\ufeff${call('delete_all')}`, {}, 400, -32_700],
    [Buffer.from(call('delete_all'), 'utf16le'), {}, 400, -32_700],
    [gzipSync(call('delete_all')), { 'Content-Encoding': 'gzip' }, 415, -32_600],
    [call('x'.repeat(3_000)), {}, 413, -32_600],
    [' '.repeat(3_000), {}, 413, -32_600],
  ] as const) {
    const before = asked.length
    const answer = await ask(body, { headers })
    assert.equal(answer.status, status, String(body))
    assert.equal(JSON.parse(answer.body).error.code, code, String(body))
    assert.equal(asked.length, before, 'the app is not asked')
    const chunked = await ask(body, { headers, isChunked: true })
    assert.equal(chunked.status, body.length === 0 ? 400 : status, `chunked ${body}`)
  }
  assert.equal(gate.sightings.at(-1)!.rule, 'mcp.message')
  const upload = 'x'.repeat(300_000)
  assert.equal((await ask(upload)).status, 200)
  assert.equal(asked.at(-1), upload, 'a body that is not JSON is streamed on')
  assert.equal((await ask(`[${'1,'.repeat(3_000)}1]`, { path: '/other' })).status, 200, 'no rule asks here')
})

test('a message may come in pieces of any size', async (t) => {
  const denied = call('delete_all')
  for (let at = 0; at <= denied.length; at++) {
    const { reading, passed } = await readPieces([denied.slice(0, at), denied.slice(at)])
    assert.equal(reading.kind === 'message' && reading.tool, 'delete_all', `cut at ${at}`)
    assert.equal(passed, denied, `cut at ${at}`)
  }
  assert.equal((await readPieces([...denied])).passed, denied)
  const { ask, asked } = await startApp(t)
  const allowed = call('echo')
  for (const version of ['1', '2'] as const) {
    assert.equal((await ask([...denied], { version })).status, 403, version)
    assert.equal((await ask([...allowed], { version })).status, 200, version)
    assert.equal(asked.at(-1), allowed)
  }
})

test('a client that leaves or waits for a 100 is served as before', async (t) => {
  const { ask, gate, port } = await startApp(t)
  const leaving = http.request({ port, method: 'POST', path: '/mcp', headers: { 'Content-Length': 100 } })
  const left = new Promise((resolve) => leaving.on('error', resolve))
  leaving.write('{"method":')
  await once(leaving, 'socket')
  setTimeout(() => leaving.destroy(), 50) // once the first piece is there
  await left
  const expecting = http.request({ port, method: 'POST', path: '/mcp', headers: { Expect: '100-continue' } })
  expecting.flushHeaders()
  await once(expecting, 'continue')
  expecting.end(call('delete_all'))
  const [answer] = (await once(expecting, 'response')) as [http.IncomingMessage]
  assert.equal(answer.statusCode, 403)
  assert.equal((await ask(call('echo'))).status, 200)
  await until(() => gate.done.filter(({ status }) => status === 0).length === 1)
})

test('each tool has a limit of its own', async (t) => {
  const { ask } = await startApp(t)
  const statuses: number[] = []
  for (const tool of ['send_mail', 'send_mail', 'post_note', 'post_note', 'echo', 'echo'])
    statuses.push((await ask(call(tool))).status)
  assert.deepEqual(statuses, [200, 429, 200, 429, 200, 200])
})

async function readPieces(pieces: readonly string[]): Promise<{ reading: McpReading; passed: string }> {
  const body = openBody()
  const exchange = new MemoryExchange({ method: 'POST', body, bodyLength: null })
  const read = new Promise<[McpReading, Exchange]>((resolve) => {
    new McpMessageReader(10_000).read(exchange, (reading, whole) => resolve([reading, whole]))
  })
  for (const piece of pieces) if (piece !== '') body.write(piece)
  body.end()
  const [reading, whole] = await read
  return { reading, passed: await text(whole.body) }
}

interface Sent {
  readonly version?: '1' | '2'
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly isChunked?: boolean
}

async function startApp(t: Test, context: NonNullable<GatePlan['context']> = {}) {
  const asked: string[] = []
  const app = http.createServer(async (request, response) => {
    asked.push(await text(request))
    response.end('{}')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.close())
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const gate = await startGate(t, { upstreams: [settingsFor([url])], policy: POLICY, context })
  const { port } = gate.plain
  const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
  t.teardown(() => session.close())
  /** A list is sent piece by piece. */
  const ask = async (body: string | Uint8Array | readonly string[], sent: Sent = {}) => {
    const { version = '1', path = '/mcp', headers = {}, isChunked = Array.isArray(body) } = sent
    const pieces = Array.isArray(body) ? (body as readonly string[]) : [body as string]
    const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0)
    const own = { ...(!isChunked && { 'Content-Length': String(bytes) }), ...headers }
    if (version === '2') {
      const stream = session.request({ ':method': 'POST', ':path': path, ...own })
      await sendAll(stream, pieces)
      const [head] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
      return { status: Number(head[':status']), body: await text(stream) }
    }
    const request = http.request({ port, method: 'POST', path, headers: own, agent: false })
    request.on('error', () => {}) // the proxy closes the connection of a long body
    await sendAll(request, pieces)
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    return { status: response.statusCode!, body: await text(response) }
  }
  return { ask, asked, gate, port }
}

async function sendAll(to: NodeJS.WritableStream, pieces: readonly (string | Uint8Array)[]): Promise<void> {
  if ('setNoDelay' in to) (to as http.ClientRequest).setNoDelay(true)
  for (const piece of pieces) {
    if (piece.length > 0) to.write(piece)
    if (pieces.length > 1) await new Promise(setImmediate)
  }
  to.end()
}
