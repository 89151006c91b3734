import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'
import { until } from '../until.ts'

const CONNECTIONS_MAX = 4
/** Three of four. */
const UPLOADS_MAX = 3
/** More than any buffer keeps of an unread body. */
const LONG = Buffer.alloc(2 * 1024 * 1024, 'l')

/** A request whose body the test goes on with. */
interface Upload {
  readonly body: Writable
  readonly answer: Promise<string>
}

type Way = (port: number) => Upload

// In the fast lane a body has a length.
const announced = (length: number): Way => byHttp1({ 'content-length': length })

for (const [name, begin, whole, protocol] of [
  ['HTTP/1.1 with a length', announced(100_000), announced(5), 'http'],
  ['HTTP/1.1 in chunks', byHttp1({}), byHttp1({}), 'http'],
  ['HTTP/2', byHttp2, byHttp2, 'http'],
  ['HTTP/1.1 to an app of HTTP/2', byHttp1({}), byHttp1({}), 'h2c'],
  ['HTTP/2 to an app of HTTP/2', byHttp2, byHttp2, 'h2c'],
] as const)
  test(`bodies that are still coming leave room for others, over ${name}`, async (t) => {
    const { port, waiting, underWay } = await gateBeforeApp(t, protocol)
    const slow = Array.from({ length: UPLOADS_MAX }, () => begin(port))
    for (const { body } of slow) body.write('s')
    await until(async () => underWay() === UPLOADS_MAX)

    const long = begin(port)
    long.body.write('l')
    await until(async () => (await waiting()).waiting === 1)
    const short = whole(port)
    short.body.end('short')
    assert.equal(await short.answer, '200 5', 'it has come to its end unread')
    assert.equal((await waiting()).waiting, 1)
    assert.equal(await byHttp1({}, 'GET')(port).answer, '200 0')

    const rest = name === 'HTTP/1.1 with a length' ? LONG.subarray(0, 99_999) : LONG
    slow[0]!.body.end(rest)
    assert.equal(await slow[0]!.answer, `200 ${rest.length + 1}`)
    long.body.end(rest)
    assert.equal(await long.answer, `200 ${rest.length + 1}`, 'the place is its own now')
    for (const { body, answer } of slow.slice(1)) {
      body.end(rest)
      assert.equal(await answer, `200 ${rest.length + 1}`)
    }
    assert.deepEqual(await waiting(), {
      connections: (await waiting()).idle,
      idle: (await waiting()).idle,
      waiting: 0,
    })
  })

test('who leaves the line, or a place in it, makes room for the next', async (t) => {
  const { port, waiting } = await gateBeforeApp(t)
  const slow = Array.from({ length: UPLOADS_MAX + 2 }, () => byHttp1({})(port))
  for (const { body, answer } of slow) {
    body.write('s')
    answer.catch(() => undefined)
    body.on('error', () => undefined)
  }
  await until(async () => (await waiting()).waiting === 2)
  slow[4]!.body.destroy()
  await until(async () => (await waiting()).waiting === 1)
  slow[0]!.body.destroy()
  await until(async () => (await waiting()).waiting === 0)
  slow[3]!.body.end('s')
  assert.equal(await slow[3]!.answer, '200 2')
  for (const { body } of slow.slice(1, 3)) body.destroy()
  await until(async () => (await waiting()).connections === (await waiting()).idle)
})

/** An app that answers when it has all of a body, and says how long it was. */
async function gateBeforeApp(t: Test, protocol: 'http' | 'h2c' = 'http') {
  let underWay = 0
  const answer = async (request: Readable, response: Writable) => {
    underWay++
    try {
      response.end(String((await text(request)).length))
    } catch {
      // The client has gone.
    }
    underWay--
  }
  const app = protocol === 'http' ? http.createServer(answer) : http2.createServer(answer)
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    if ('closeAllConnections' in app) app.closeAllConnections()
    app.close()
  })
  const url = `${protocol}://127.0.0.1:${(app.address() as AddressInfo).port}`
  const settings = settingsFor([url], { connectionsMax: CONNECTIONS_MAX, connectTimeoutMs: 60_000 })
  const { secure, context } = await startGate(t, { upstreams: [settings] })
  const waiting = async () => {
    await wait(5)
    const { connections, idle, waiting } = context.defaultUpstream.status[0]!
    return { connections, idle, waiting }
  }
  return { port: secure.port, waiting, underWay: () => underWay }
}

function byHttp1(headers: http.OutgoingHttpHeaders, method = 'POST'): Way {
  return (port) => {
    const body = https.request({
      host: '127.0.0.1',
      port,
      method,
      headers,
      agent: false,
      rejectUnauthorized: false,
    })
    const answer = once(body, 'response').then(
      async ([response]) => `${response.statusCode} ${await text(response)}`,
    )
    if (method === 'GET') body.end()
    return { body, answer }
  }
}

function byHttp2(port: number): Upload {
  const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  const body = session.request({ ':method': 'POST', ':path': '/' }, { endStream: false })
  const answer = once(body, 'response').then(async ([head]) => `${head[':status']} ${await text(body)}`)
  void answer.finally(() => session.close()).catch(() => undefined)
  return { body, answer }
}
