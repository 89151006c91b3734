import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import tls from 'node:tls'
import { test } from 'tap'
import { run, skipped } from '../e2e/programs.ts'
import { startHolder } from './holder.ts'
import { PATIENCE_MS, tell } from './tell.ts'
import { startVictim, startWitness, type Victim } from './victim.ts'
import { IS_WHOLE } from './whole.ts'

/** So that nothing has to be waited for long. */
const LIMITS = {
  headerTimeoutMs: 300,
  keepAliveTimeoutMs: 300,
  bodyIdleTimeoutMs: 300,
  answerUnreadTimeoutMs: 1_000,
}
const HOST = 'Host: a.example.test\r\n'
const get = (path = '/', more = '') => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`
const post = (framing: string) => `POST / HTTP/1.1\r\n${HOST}${framing}\r\n\r\n`

interface Slowness {
  readonly name: string
  /** Everything that is sent at first. */
  readonly first: string
  /** And this again and again, until the connection is gone. */
  readonly drip?: string
  /** The client does not read. */
  readonly isDeaf?: boolean
  /** What it has got in the end; the connection is gone. */
  readonly gets?: RegExp
}

const SLOWNESSES: readonly Slowness[] = [
  { name: 'nothing', first: '', gets: /^$/ },
  { name: 'half a request line', first: 'GET / HT', gets: /^(?:HTTP\/1\.1 408 |$)/ },
  { name: 'a head without an end', first: `GET / HTTP/1.1\r\n${HOST}`, gets: /^HTTP\/1\.1 408 / },
  {
    name: 'a head line by line',
    first: `GET / HTTP/1.1\r\n${HOST}`,
    drip: 'X: y\r\n',
    gets: /^HTTP\/1\.1 408 /,
  },
  {
    name: 'a header byte by byte',
    first: `GET / HTTP/1.1\r\n${HOST}X: `,
    drip: 'y',
    gets: /^HTTP\/1\.1 408 /,
  },
  { name: 'lines before a request', first: '', drip: '\r\n' },
  { name: 'no second request', first: get(), gets: /^HTTP\/1\.1 200 / },
  { name: 'half of a second one', first: `${get()}GET / HTTP/1.1\r\nX`, gets: /^(?:HTTP\/1\.1 |$)/ },
  { name: 'a body that does not come', first: post('Content-Length: 10'), gets: /^HTTP\/1\.1 408 / },
  { name: 'a body that stops', first: `${post('Content-Length: 10')}half`, gets: /^HTTP\/1\.1 408 / },
  {
    name: 'a chunk that stops',
    first: `${post('Transfer-Encoding: chunked')}ff\r\nhalf`,
    gets: /^HTTP\/1\.1 408 /,
  },
  {
    name: 'a size of a chunk that stops',
    first: `${post('Transfer-Encoding: chunked')}f`,
    gets: /^HTTP\/1\.1 408 /,
  },
  {
    name: 'a chunk of extensions without an end',
    first: `${post('Transfer-Encoding: chunked')}1`,
    drip: `;${'x'.repeat(4_000)}`,
  },
  {
    name: 'trailers without an end',
    first: `${post('Transfer-Encoding: chunked')}0\r\n`,
    drip: `X: ${'y'.repeat(4_000)}\r\n`,
  },
  {
    name: 'a body that is announced, and does not come',
    first: post('Content-Length: 10\r\nExpect: 100-continue'),
    gets: /^HTTP\/1\.1 (?:100 Continue\r\n\r\nHTTP\/1\.1 )?408 /,
  },
  { name: 'an unread answer', first: get('/large'), isDeaf: true },
  { name: 'unread answers', first: get('/large').repeat(10), isDeaf: true },
  {
    name: 'a thousand requests at once, and no answer read',
    first: get('/large').repeat(1_000),
    isDeaf: true,
  },
]

/** What is too much is refused at once. */
const BOMBS: readonly (readonly [name: string, sent: string, status: number])[] = [
  ['a target of 64 KiB', get(`/${'a'.repeat(65_000)}`), 414],
  ['a header of 70 KB', get('/', `X: ${'a'.repeat(70_000)}\r\n`), 431],
  ['a header of 10 MB', `GET / HTTP/1.1\r\n${HOST}X: ${'a'.repeat(10_000_000)}`, 431],
  ['300 headers', get('/', 'X: y\r\n'.repeat(300)), 431],
  ['60,000 headers', get('/', 'X: y\r\n'.repeat(60_000)), 431],
  ['cookies of 70 KB', get('/', `Cookie: ${'a=b; '.repeat(14_000)}\r\n`), 431],
  ['300 fields of cookies', get('/', 'Cookie: a=b\r\n'.repeat(300)), 431],
  ['names of 70 KB', get('/', `${'n'.repeat(70_000)}: a\r\n`), 431],
]

for (const fastLane of [true, false])
  test(`HTTP/1.1 that is slow, ${fastLane ? 'with the fast lane' : 'without it'}`, {
    timeout: 300_000,
  }, async (t) => {
    const app = await startHolder(t)
    const victim = await startVictim(t, { upstream: app.url, limits: LIMITS, settings: { fastLane } })
    await t.test(
      'a client that is slow, or never reads, is disconnected, and everything it held is freed',
      async (t) => {
        const witness = startWitness(victim.port)
        await Promise.all(
          SLOWNESSES.flatMap((slowness) => [true, false].map((isTls) => beSlow(victim, slowness, isTls))),
        )
        assert.ok((await witness.leave()) > 0)
        await victim.settles('connections_open h1', 0)
        await app.settles()
        t.comment(`${SLOWNESSES.length * 2} connections`)
      },
    )
    await t.test('heads that are too much are refused, and nothing is kept of them', async (t) => {
      // Those of others: a client that sends much is not slow.
      const victim = await startVictim(t, { upstream: app.url, settings: { fastLane } })
      const round = async (times: number) => {
        for (let time = 0; time < times; time++)
          for (const [name, sent, status] of BOMBS) {
            const heard = await tell(victim.plainPort, sent)
            assert.match(heard, new RegExp(`^HTTP/1\\.1 ${status} |^$`), name)
          }
        await victim.settles('connections_open h1', 0)
        return victim.read()
      }
      const before = await round(1)
      const after = await round(IS_WHOLE ? 50 : 2)
      const more = after.heldBytes - before.heldBytes
      t.comment(`${(more / 1e6).toFixed(1)} MB more`)
      assert.ok(more < 10_000_000, `${more} bytes`)
    })
  })

test('connections over their limits are refused while others are served', { timeout: 300_000 }, async (t) => {
  const app = await startHolder(t)
  const limits = { connectionsPerAddressMax: 200, connectionsMax: 500, headerTimeoutMs: 60_000 }
  const victim = await startVictim(t, { upstream: app.url, limits })
  const witness = startWitness(victim.port)
  const sockets: net.Socket[] = []
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (const localAddress of ['127.0.0.7', '127.0.0.8'])
    for (let index = 0; index < 300; index++) {
      const socket = net.connect({ port: victim.plainPort, host: '127.0.0.1', localAddress })
      socket.on('error', () => undefined).resume()
      sockets.push(socket)
      await once(socket, 'connect')
      socket.write('GET / HTTP/1.1\r\n')
    }
  await victim.settles('connection_failures_total too-many-connections', { above: 199 })
  assert.ok((await witness.leave()) > 0, 'from another address')
  for (const socket of sockets) socket.destroy()
  await victim.settles('connections_open h1', 0)
})

/** By its option: slow heads, slow bodies, ranges, slow reads. */
const MODES = { '-H': 'slow heads', '-B': 'slow bodies', '-X': 'slow reads', '-R': 'ranges' } as const
test('slowhttptest', { skip: skipped('slowhttptest'), timeout: 600_000 }, async (t) => {
  const app = await startHolder(t)
  const victim = await startVictim(t, {
    upstream: app.url,
    limits: { ...LIMITS, connectionsPerAddressMax: 2_000 },
  })
  const count = IS_WHOLE ? 1_000 : 200
  for (const [mode, name] of Object.entries(MODES).slice(0, IS_WHOLE ? undefined : 1)) {
    const witness = startWitness(victim.port)
    const url = `http://127.0.0.1:${victim.plainPort}${mode === '-X' ? '/large' : '/'}`
    const argv = [
      mode,
      '-c',
      String(count),
      '-r',
      String(count),
      '-i',
      '1',
      '-l',
      IS_WHOLE ? '20' : '3',
      '-u',
      url,
    ]
    const { stdout } = await run('slowhttptest', [...argv, '-p', '10'], {
      env: { PATH: process.env['PATH'] },
    })
    const served = await witness.leave()
    assert.ok(served > 0, name)
    assert.doesNotMatch(stdout, /service available:\s+NO/i, name)
    await victim.settles('connections_open h1', 0)
    await app.settles()
    t.comment(`${name}: ${count} connections, ${served} answers for another client`)
  }
})

async function beSlow(victim: Victim, { name, first, drip, isDeaf = false, gets }: Slowness, isTls: boolean) {
  const socket = isTls
    ? tls.connect({ port: victim.port, host: '127.0.0.1', rejectUnauthorized: false })
    : net.connect(victim.plainPort, '127.0.0.1')
  let heard = ''
  let isGone = false
  socket
    .on('error', () => undefined)
    .on('close', () => {
      isGone = true
    })
  await once(socket, isTls ? 'secureConnect' : 'connect')
  if (!isDeaf) socket.setEncoding('latin1').on('data', (text) => (heard += text.slice(0, 1_000)))
  socket.write(first)
  const endMs = Date.now() + PATIENCE_MS
  // A client that does not read notices the end when it sends.
  while (!isGone && Date.now() < endMs) {
    await wait(20)
    if (drip !== undefined && socket.writableLength < 1_000_000) socket.write(drip)
    if (isDeaf && (await isLetGo(victim))) break
  }
  socket.destroy()
  assert.ok(isDeaf || isGone, `${name}: not let go of; heard ${heard.slice(0, 200)}`)
  if (gets !== undefined) assert.match(heard, gets, name)
}

/** Only those remain that nothing waits for. */
async function isLetGo(victim: Victim): Promise<boolean> {
  await wait(50)
  return (await victim.read(false)).metrics['connections_open h1'] === 0
}
