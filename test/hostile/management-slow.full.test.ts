import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'tap'
import { run, skipped } from '../e2e/programs.ts'
import { TestManagement } from '../manage/management.ts'
import { ADMIN_KEY } from './management-estate.ts'
import { PATIENCE_MS, tell } from './tell.ts'
import { IS_WHOLE } from './whole.ts'

/** Connections are looked at once a second, see front/server.ts. */
const FRONT = { requestTimeoutMs: 1_000, connectionsMax: 100 }
const KEY = `Host: a\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nContent-Type: application/json\r\n`

/** What is sent at first, and then again and again. */
const SLOWNESSES: readonly (readonly [name: string, first: string, drip?: string])[] = [
  ['nothing', ''],
  ['half a request line', 'GET /v1/ag'],
  ['a head without an end', 'GET /v1/agents HTTP/1.1\r\nHost: a\r\n', 'X: y\r\n'],
  ['a body that stops', `POST /v1/detect HTTP/1.1\r\n${KEY}Content-Length: 100\r\n\r\n{`],
  ['a body byte by byte', `POST /v1/detect HTTP/1.1\r\n${KEY}Content-Length: 100000\r\n\r\n{`, ' '],
  ['a body without a key', 'POST /v1/detect HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{', ' '],
  ['chunks of a byte', `POST /v1/detect HTTP/1.1\r\n${KEY}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
  [
    'half of what is packed',
    `POST /v1/detect HTTP/1.1\r\n${KEY}Content-Encoding: gzip\r\nContent-Length: 90\r\n\r\n\x1f\x8b`,
  ],
  ['a call of MCP', `POST /mcp HTTP/1.1\r\n${KEY}Content-Length: 100000\r\n\r\n{`, ' '],
  [
    'a form',
    'POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9000\r\n\r\na=',
    'b',
  ],
]
const BOMBS: readonly (readonly [name: string, sent: string, status: RegExp])[] = [
  ['a target of 64 KiB', `GET /${'a'.repeat(65_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, /^HTTP\/1\.1 431 |^$/],
  ['a header of 10 MB', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(10_000_000)}`, /^HTTP\/1\.1 431 |^$/],
  ['60,000 headers', `GET / HTTP/1.1\r\nHost: a\r\n${'X: y\r\n'.repeat(60_000)}\r\n`, /^HTTP\/1\.1 431 |^$/],
  [
    'cookies of 15 KB',
    `GET /v1/me HTTP/1.1\r\nHost: a\r\nCookie: ${'a=b; '.repeat(3_000)}\r\nConnection: close\r\n\r\n`,
    /^HTTP\/1\.1 401 /,
  ],
  [
    'cookies of 70 KB',
    `GET /v1/me HTTP/1.1\r\nHost: a\r\nCookie: ${'a=b; '.repeat(14_000)}\r\n\r\n`,
    /^HTTP\/1\.1 431 |^$/,
  ],
]

test('a slow client of the management port is disconnected, and others are served meanwhile', {
  timeout: 300_000,
}, async (t) => {
  const manage = await TestManagement.start(t, { adminKey: ADMIN_KEY, front: FRONT })
  let isOver = false
  const served = (async () => {
    let count = 0
    for (; !isOver; count++) assert.equal((await manage.ask('GET', '/v1/me')).status, 200)
    return count
  })()
  const many = SLOWNESSES.flatMap((each) => Array.from({ length: IS_WHOLE ? 8 : 2 }, () => each))
  await Promise.all(many.map(([name, first, drip]) => beSlow(portOf(manage), name, first, drip)))
  isOver = true
  assert.ok((await served) > 0)
  assert.deepEqual(manage.failures, [])
  t.comment(`${many.length} connections`)
})

test('heads that are too much are refused there, too', { timeout: 300_000 }, async (t) => {
  const manage = await TestManagement.start(t, { adminKey: ADMIN_KEY })
  for (const [name, sent, status] of BOMBS) assert.match(await tell(portOf(manage), sent), status, name)
  assert.equal((await manage.ask('GET', '/v1/me')).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('connections over the limit are refused, and as soon as others have gone it goes on', {
  timeout: 300_000,
}, async (t) => {
  const manage = await TestManagement.start(t, { adminKey: ADMIN_KEY, front: FRONT })
  const sockets = Array.from({ length: 300 }, () => net.connect(portOf(manage), '127.0.0.1'))
  await Promise.all(
    sockets.map(async (socket) => {
      socket.on('error', () => undefined).resume()
      // Those over the limit at once, the others in their time.
      await new Promise((resolve) => socket.once('close', resolve))
    }),
  )
  assert.equal((await manage.ask('GET', '/v1/me')).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('slowhttptest at the management port', {
  skip: skipped('slowhttptest'),
  timeout: 600_000,
}, async (t) => {
  const manage = await TestManagement.start(t, { adminKey: ADMIN_KEY })
  for (const mode of IS_WHOLE ? ['-H', '-B', '-X'] : ['-B']) {
    const argv = [mode, '-c', IS_WHOLE ? '800' : '100', '-r', '500', '-i', '1', '-l', IS_WHOLE ? '20' : '3']
    const { stdout } = await run('slowhttptest', [...argv, '-p', '10', '-u', `${manage.url}/v1/detect`], {
      env: { PATH: process.env['PATH'] },
    })
    assert.doesNotMatch(stdout, /service available:\s+NO/i, mode)
    assert.equal((await manage.ask('GET', '/v1/me')).status, 200)
  }
  assert.deepEqual(manage.failures, [])
})

async function beSlow(port: number, name: string, first: string, drip?: string): Promise<void> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => undefined).resume()
  const gone = new Promise((resolve) => socket.once('close', resolve))
  await once(socket, 'connect')
  socket.write(first, 'latin1')
  const dripping = setInterval(() => drip !== undefined && socket.write(drip), 50)
  const timer = setTimeout(() => socket.destroy(new Error(name)), PATIENCE_MS)
  await gone
  assert.notEqual(socket.errored?.message, name, 'not let go of')
  clearInterval(dripping)
  clearTimeout(timer)
}

function portOf({ url }: TestManagement): number {
  return Number(new URL(url).port)
}
