import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:http2'
import { request } from 'node:https'
import type { Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { plainEnvironment, run, temporaryFolder } from './programs.ts'

const VERSIONS = ['HTTP/1.1', 'HTTP/2'] as const

test('server-sent events: each arrives before the next is sent, and silence ends nothing', async (t) => {
  const streams = new Map<string, ServerResponse>()
  const app = await startApp(t, {
    '/events': (request, response) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
      response.flushHeaders()
      streams.set(request.headers['x-version'] as string, response)
    },
  })
  const gatehouse = await startGatehouse(t, {
    settings: [
      `upstreams: [{urls: ['${app.url}'], head_timeout: 2s, keep_alive: 1s}]`,
      'limits: {body_idle_timeout: 1s, header_timeout: 1s, keep_alive_timeout: 1s}',
    ],
  })
  for (const version of VERSIONS) {
    t.test(version, async (t) => {
      const events = await eventsOver(version, gatehouse, '/events')
      t.teardown(() => events.close())
      const stream = streams.get(version)!
      const heard = async (text: string): Promise<void> => {
        stream.write(text)
        let got = ''
        while (got.length < text.length) got += await events.next()
        assert.equal(got, text)
      }
      for (let i = 0; i < 300; i++) await heard(`id: ${i}\ndata: ${'x'.repeat(i % 50)}\n\n`)
      await wait(2500) // longer than each of the limits above
      await heard('data: still there\n\n')
      const gone = once(stream, 'close')
      events.close()
      await gone
    })
  }
})

test('trailers of a request reach the app', async (t) => {
  const app = await startApp(t)
  const gatehouse = await startGatehouse(t, { upstream: app.url })
  const outgoing = request(`${gatehouse.url}/`, {
    ca: gatehouse.ca,
    method: 'POST',
    headers: { Trailer: 'X-Sum' },
  })
  outgoing.write('body')
  outgoing.addTrailers([
    ['X-Sum', '7'],
    ['X-Agent-Name', 'forged'],
  ])
  outgoing.end()
  const [response] = (await once(outgoing, 'response')) as [Readable]
  await once(response.resume(), 'end')
  assert.deepEqual(app.asked.at(-1)!.rawTrailers, ['X-Sum', '7'])

  const session = connect(gatehouse.url, { ca: gatehouse.ca })
  t.teardown(() => session.destroy())
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { waitForTrailers: true } as object)
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '8', 'x-agent-name': 'forged' }))
  stream.end('body')
  await once(stream.resume(), 'end')
  assert.deepEqual(app.asked.at(-1)!.rawTrailers, ['x-sum', '8'])
})

test('WebSocket and fetch of Node: the same through the proxy as without it', async (t) => {
  const app = await startApp(t)
  const gatehouse = await startGatehouse(t, { upstream: app.url })
  const folder = temporaryFolder(t)
  const env = plainEnvironment(folder, { NODE_EXTRA_CA_CERTS: gatehouse.caFile })
  const said = async (url: string): Promise<unknown> => {
    const { stdout, stderr, status } = await run(process.execPath, ['-e', SCRIPT, url], { env })
    assert.equal(status, 0, stderr)
    return JSON.parse(stdout)
  }
  const direct = await said(app.url)
  assert.deepEqual(await said(gatehouse.url), direct)
  assert.deepEqual(direct, EXPECTED)
})

interface Events {
  next(): Promise<string>
  close(): void
}

/** Resolves with the head of the answer, before any event. */
async function eventsOver(
  version: (typeof VERSIONS)[number],
  { url, ca }: RunningGatehouse,
  path: string,
): Promise<Events> {
  const headers = { 'x-version': version, accept: 'text/event-stream' }
  if (version === 'HTTP/1.1') {
    const outgoing = request(url + path, { ca, headers, agent: false }).end()
    const [response] = (await once(outgoing, 'response')) as [Readable]
    return { next: nextOf(response), close: () => outgoing.destroy() }
  }
  const session = connect(url, { ca })
  const stream = session.request({ ':path': path, ...headers })
  await once(stream, 'response')
  return { next: nextOf(stream), close: () => session.destroy() }
}

function nextOf(stream: Readable): () => Promise<string> {
  stream.setEncoding('utf8').on('error', () => undefined)
  const chunks = stream[Symbol.asyncIterator]()
  return async () => {
    const { value, done } = await chunks.next()
    assert.ok(!done, 'the stream has ended')
    return value
  }
}

/** What a page's script would do, and what came of it. */
const SCRIPT = `
  const url = process.argv[1]
  const socket = new WebSocket(url.replace('http', 'ws') + '/socket', ['chat', 'other'])
  socket.binaryType = 'arraybuffer'
  const messages = Array.from({ length: 200 }, (_, i) => i % 2 ? 'text ' + i : new Uint8Array(i * 1000).fill(i))
  const heard = []
  socket.onopen = () => messages.forEach((message) => socket.send(message))
  socket.onmessage = ({ data }) => {
    heard.push(typeof data === 'string' ? data : [data.byteLength, new Uint8Array(data).at(-1) ?? null])
    if (heard.length === messages.length) socket.close(4001, 'that is all')
  }
  socket.onerror = ({ message }) => console.log(JSON.stringify({ message }))
  socket.onclose = async ({ code, reason, wasClean }) => {
    const response = await fetch(url + '/fetch', { method: 'POST', body: new Blob(['x'.repeat(100000)]).stream(), duplex: 'half' })
    const fetched = [response.status, await response.text()]
    console.log(JSON.stringify({ protocol: socket.protocol, heard, code, reason, wasClean, fetched }))
  }`
const EXPECTED = {
  protocol: 'chat',
  heard: Array.from({ length: 200 }, (_, i) => (i % 2 === 1 ? `text ${i}` : [i * 1000, i === 0 ? null : i])),
  ...{ code: 4001, reason: 'that is all', wasClean: true },
  fetched: [200, 'ok'],
}
