import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { test } from 'tap'
import { Agent, WebSocket } from 'undici'
import { startGatehouse } from '../e2e/gatehouse.ts'
import { skippedLibrary } from '../e2e/programs.ts'
import { startGate } from '../proxy/test-gate.ts'
import { settingsFor } from '../proxy/upstream-fixture.ts'
import { until } from '../until.ts'
import { CONVERSATION, expectedTalk, headMap, startSocketApp } from './socket-app.ts'

test('undici and ws: WebSockets are the same over HTTP/2 and HTTP/1.1', async (t) => {
  for (const deflates of [true, false]) {
    const heads: ReadonlyMap<string, string>[] = []
    for (const allowH2 of [true, false]) {
      const app = await startSocketApp(t, { deflates })
      const gate = await startGate(t, { upstreams: [settingsFor([app.url])], options: { http2: 'own' } })
      const dispatcher = new Agent({
        allowH2,
        connect: { rejectUnauthorized: false, servername: 'a.example.test' },
      })
      t.teardown(() => dispatcher.destroy())
      const talk = new Function('WebSocket', `return ${CONVERSATION}`)(WebSocket)
      const options = { protocols: ['chat', 'other'], dispatcher }
      const said = await talk(`wss://127.0.0.1:${gate.secure.port}`, options)
      assert.deepEqual(JSON.parse(said), expectedTalk(deflates ? 'permessage-deflate' : ''))
      await until(() => app.ended.length === 2 && gate.context.upgrades.count === 0)
      assert.deepEqual(app.ended, [
        [4001, 'that is all', 6],
        [4002, '', 100], // undici answers a close without a reason
      ])
      assert.deepEqual(
        gate.sightings.map(({ method, path, ja4h }) => [method, path, ja4h!.slice(0, 4)]),
        ['/one', '/two'].map((path) => ['GET', path, allowH2 ? 'ge20' : 'ge11']),
      )
      assert.deepEqual(
        gate.done.map(({ status }) => status),
        [101, 101],
      )
      heads.push(headMap(app.handshakes[0]!))
    }
    const [over2, over1] = heads.map((head) =>
      [...head].filter(([name]) => !/^(x-|forwarded|host|sec-websocket-key)/.test(name)).sort(),
    )
    assert.deepEqual(over2, over1)
  }
})

test('a stopping gateway gives a WebSocket over HTTP/2 its grace, and then ends', async (t) => {
  const app = await startSocketApp(t)
  const gate = await startGatehouse(t, { upstream: app.url, settings: ['http2: own', 'websocket_grace: 2s'] })
  const dispatcher = new Agent({ allowH2: true, connect: { ca: gate.ca } })
  t.teardown(() => dispatcher.destroy())
  const socket = new WebSocket(`${gate.url.replace('http', 'ws')}/socket`, { dispatcher })
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  const begunMs = performance.now()
  const stopped = gate.stop()
  await until(() => gate.said().includes('"message":"stopping"'))
  const heard = new Promise((resolve) => socket.addEventListener('message', ({ data }) => resolve(data)))
  socket.send('still here')
  assert.equal(await heard, 'still here')
  const closed = new Promise<number>((resolve) =>
    socket.addEventListener('close', ({ code }) => resolve(code)),
  )
  await stopped
  const tookMs = performance.now() - begunMs
  assert.equal(await closed, 1006)
  assert.ok(tookMs > 1_900 && tookMs < 10_000, `${tookMs}`)
})

const H2 = '/usr/lib/python3/dist-packages/h2/__init__.py'

test('Python\u2019s h2: a WebSocket over extended CONNECT', {
  skip: skippedLibrary(H2, 'python3-h2'),
}, async (t) => {
  const app = await startSocketApp(t)
  const gate = await startGate(t, { upstreams: [settingsFor([app.url])], options: { http2: 'own' } })
  const program = new URL('web_socket.py', import.meta.url).pathname
  const { stdout } = await promisify(execFile)('/usr/bin/python3', [program, String(gate.plain.port)], {
    timeout: 30_000,
  })
  assert.deepEqual(JSON.parse(stdout), {
    offered: 1,
    status: '200',
    message: '8105' + Buffer.from('hello').toString('hex'),
  })
  await until(() => app.ended.length === 1)
  assert.equal(app.ended[0]![0], 1000)
})
