import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, type get, request } from 'node:https'
import { connect as connectTcp, createServer as createTcpServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { type Test, test } from 'tap'
import { metricsText } from '../../src/shared/metrics.ts'
import type { LiveState } from '../../src/proxy/worker/data-plane.ts'
import { SingleWorker } from '../../src/proxy/worker/single-worker.ts'
import type { WorkerSettings } from '../../src/proxy/worker/worker-settings.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { CA, goodPair, liveState, surroundings, until } from './test-worker.ts'
import type { ListenAddress } from '../../src/shared/listen-address.ts'

const pair = await goodPair()
const otherPair = await goodPair()

test('a request goes through, is told what is known, and becomes a Sighting', async (t) => {
  const { ask, sightings } = await serving(t)
  const response = await ask('/x?secret=1', {
    headers: { 'user-agent': 'tester', cookie: 'a=b', 'x-agent-name': 'me' },
  })
  const seen = JSON.parse(response.body)
  assert.match(seen['x-ja4-fingerprint'], /^t13d\d{4}[a-z0-9]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/)
  assert.equal(seen['x-agent-name'], undefined)
  await until(() => sightings.length === 1)
  const [sighting] = sightings
  assert.match(sighting!.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(sighting!.ja4, seen['x-ja4-fingerprint'])
  assert.deepEqual([sighting!.path, sighting!.userAgent, sighting!.snapshot], ['/x', 'tester', 1])
  assert.ok(!JSON.stringify(sightings).includes('a=b') && !JSON.stringify(sightings).includes('secret'))
  assert.ok(Math.abs(sighting!.seenAtMs - Date.now()) < 10_000)
})

test('rules see the address of a client, and a Sighting and the access log its forms only', async (t) => {
  const file = join(temporaryFolder(t), 'access.log')
  const privacy = {
    addresses: 'keyed_hash',
    userAgents: 'product',
    paths: 'pattern',
    key: 'k'.repeat(32),
  } as const
  const { ask, sightings, judgeBy } = await serving(t, {
    change: (settings) => ({
      ...settings,
      privacy,
      trustedProxies: ['127.0.0.0/8'],
      accessLog: { format: 'json', file, sample: 1 },
    }),
  })
  judgeBy({ rules: [{ name: 'known', when: { address: '203.0.113.77' }, action: 'block' }] })
  const headers = { 'x-forwarded-for': '203.0.113.77', 'user-agent': 'reader/3.14 (ann@example.com)' }
  await untilStatus((path) => ask(path, { headers }), '/users/ann/orders/1234', 403)
  await until(
    () => sightings.some(({ rule }) => rule === 'known') && readFileSync(file, 'utf8').includes('known'),
  )
  const { address, path, userAgent } = sightings.at(-1)!
  assert.match(address, /^hash:[\w-]{16}$/)
  assert.deepEqual([path, userAgent], ['/users/[id]/orders/[id]', 'reader/3'])
  const logged = readFileSync(file, 'utf8')
  assert.deepEqual(JSON.parse(logged.trim().split('\n').at(-1)!).address, address)
  for (const text of [logged, JSON.stringify(sightings)])
    assert.doesNotMatch(text, /203\.0\.113|ann|3\.14|1234/)
})

test('the JA4 from a listed hop replaces that of the hop, is marked so, and is not a forgery', async (t) => {
  const ja4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
  const headers = { 'x-ja4-fingerprint': ja4, 'x-ja4-source': 'own' }
  const ja4Hops = { addresses: ['127.0.0.0/8'], header: 'X-JA4-Fingerprint' }
  const { ask, sightings } = await serving(t, { change: (settings) => ({ ...settings, ja4Hops }) })
  const seen = JSON.parse((await ask('/', { headers })).body)
  assert.deepEqual([seen['x-ja4-fingerprint'], seen['x-ja4-source']], [ja4, 'hop'])
  assert.deepEqual([seen['x-ja4s-fingerprint'], seen['x-http2-fingerprint']], [undefined, undefined])
  await until(() => sightings.length === 1)
  const { ja4Source, stable, forged } = sightings[0]!
  assert.deepEqual(
    { ja4Source, stable, forged },
    { ja4Source: 'hop', stable: null, forged: ['x-ja4-source'] },
  )

  const other = await serving(t)
  const own = JSON.parse((await other.ask('/', { headers })).body)
  assert.notEqual(own['x-ja4-fingerprint'], ja4)
  assert.equal(own['x-ja4-source'], undefined)
  await until(() => other.sightings.length === 1)
  assert.equal(other.sightings[0]!.ja4Source, 'own')
  assert.deepEqual(other.sightings[0]!.forged, ['x-ja4-fingerprint', 'x-ja4-source'])
})

test('a body of HTTP/2 that ends empty, at once and in a frame of its own, ends for the app as well', async (t) => {
  const { address } = await serving(t, {
    app: (message, response) => message.resume().on('end', () => response.end('all there')),
  })
  const session = connectHttp2(`https://localhost:${address.port}`, { ca: CA.certificate })
  t.teardown(() => session.destroy())
  for (const method of ['GET', 'POST']) {
    const stream = session.request({ ':method': method }, { endStream: false })
    stream.end()
    assert.equal(await text(stream), 'all there', method)
  }
})

test('the next request is judged by a new Snapshot; one that cannot be read changes nothing', async (t) => {
  const { ask, judgeBy, bus, lines } = await serving(t)
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  assert.equal((await ask('/', { agent })).status, 200)
  judgeBy({ rules: [{ name: 'no', when: { path: '/no*' }, action: { block: { status: 451 } } }] })
  await untilStatus(ask, '/no', 451)
  bus.publish({
    number: 99,
    hash: 'x',
    madeAtMs: 0,
    policy: { rules: [{ name: 'half a ru' }] },
    signatures: null,
  })
  await until(() => lines().some(({ message }) => message === 'a snapshot cannot be used'))
  assert.equal((await ask('/no', { agent })).status, 451)
  assert.equal((await ask('/', { agent })).status, 200)
})

test('certificates change between two handshakes, and no request notices', async (t) => {
  const { ask, plane, address, state } = await serving(t)
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })
  t.teardown(() => agent.destroy())
  let running = true
  let answered = 0
  const load = Array.from({ length: 4 }, async () => {
    while (running) {
      assert.equal((await ask('/', { agent })).status, 200)
      answered++
    }
  })
  assert.equal(await certificateOf(address), pair.chain)
  for (let i = 0; i < 10; i++) {
    const keyPairs = [i % 2 === 0 ? otherPair : pair]
    plane.use({ ...state, keyPairs })
    assert.equal(await certificateOf(address), keyPairs[0]!.chain)
    assert.equal(await certificateOf(address, 'app.example.test'), keyPairs[0]!.chain)
  }
  await until(() => answered > 50)
  running = false
  await Promise.all(load)
  const before = answered
  assert.throws(() => plane.use({ ...state, keyPairs: [{ ...pair, key: otherPair.key }] }))
  assert.equal(await certificateOf(address), pair.chain)
  assert.equal((await ask('/')).status, 200)
  assert.ok(before > 50)
})

test('workers with the same ticket keys continue each others sessions; with new keys there is a handshake', async (t) => {
  const one = await serving(t)
  const two = await serving(t, { state: one.state })
  for (const servername of ['localhost', 'app.example.test']) {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const session = await sessionOf(one.address, servername, maxVersion)
      assert.equal(
        await resumes(two.address, servername, maxVersion, session),
        true,
        `${servername} ${maxVersion}`,
      )
      one.plane.use(liveState([pair]))
      assert.equal(
        await resumes(one.address, servername, maxVersion, session),
        false,
        `${servername} ${maxVersion}`,
      )
      one.plane.use(one.state)
      assert.equal(
        await resumes(one.address, servername, maxVersion, session),
        true,
        `${servername} ${maxVersion}`,
      )
    }
  }
})

test('a drain answers what is under way, takes nothing more, and leaves nothing', async (t) => {
  const held: (() => void)[] = []
  const { ask, plane, address, sightings } = await serving(t, {
    app: (_, response) => void held.push(() => response.end('late')),
  })
  const session = connectHttp2(`https://localhost:${address.port}`, { ca: CA.certificate })
  session.on('error', () => undefined)
  const stream = session.request({ ':path': '/h2' })
  const [h1, h2] = [ask('/h1'), text(stream)]
  await until(() => held.length === 2)
  const idle = connectTcp(address.port, address.host)
  await once(idle, 'connect')
  const drained = plane.drain(5000)
  await once(idle, 'close')
  await assert.rejects(ask('/'), { code: 'ECONNREFUSED' })
  for (const answer of held) answer()
  assert.deepEqual([(await h1).body, await h2], ['late', 'late'])
  await drained
  assert.equal(sightings.length, 2, 'the last ones are delivered')
})

test('a drain ends at its deadline, whatever is still going on', async (t) => {
  const { ask, plane, upstream } = await serving(t, { app: () => undefined })
  const lost = assert.rejects(ask('/'), { code: 'ECONNRESET' })
  await once(upstream, 'request')
  const startedMs = performance.now()
  await plane.drain(50)
  assert.ok(performance.now() - startedMs < 2000)
  await lost
})

test('a port that is taken is said, and nothing is left behind', async (t) => {
  const other = createTcpServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const { settings, bus, log } = await surroundings(t, () => undefined, {
    listen: { host: '127.0.0.1', port },
  })
  const plane = new SingleWorker(settings, bus, log)
  await assert.rejects(plane.start(liveState([pair])), {
    code: 'LISTEN_PORT_TAKEN',
    message: new RegExp(`${port}`),
  })
  const plain = new SingleWorker(
    { ...settings, listen: { host: '127.0.0.1', port: 0 }, plainListen: { host: '127.0.0.1', port } },
    bus,
    log,
  )
  await assert.rejects(plain.start(liveState([pair])), { code: 'LISTEN_PORT_TAKEN' })
})

for (const ready of ['always', 'upstream'] as const)
  test(`proxy.ready: ${ready} while no target of an upstream is healthy`, async (t) => {
    const health = { path: '/health', intervalMs: 20, timeoutMs: 1000, unhealthyAfter: 1, healthyAfter: 1 }
    let isWell = false
    const { plane, lines } = await serving(t, {
      app: (_, response) => response.writeHead(isWell ? 200 : 500).end(),
      change: (settings) => ({
        ...settings,
        ready,
        upstreams: settings.upstreams.map((each) => ({ ...each, health })),
      }),
    })
    const said = (message: string) => lines().filter((line) => line['message'] === message).length
    await until(() => said('an upstream target is unhealthy') === 1)
    const reason = { code: 'upstream', detail: 'upstream default: no target is healthy' }
    assert.deepEqual(plane.unready(), ready === 'always' ? [] : [reason])
    assert.deepEqual(plane.workers()[0]!.unready, ready === 'always' ? [] : [reason.detail])
    isWell = true
    await until(() => said('an upstream target is healthy again') === 1)
    assert.deepEqual(plane.unready(), [])
    assert.equal(said('an upstream target is unhealthy'), 1)
  })

test('plain HTTP, where it is asked for, has the same handler', async (t) => {
  const { plainAddress, judgeBy } = await serving(t, {
    change: (settings) => ({ ...settings, plainListen: { host: '127.0.0.1', port: 0 } }),
  })
  const at = `http://127.0.0.1:${plainAddress!.port}/`
  assert.equal((await fetch(at)).status, 200)
  judgeBy({ rules: [{ name: 'all', when: { hello: 'not-tls' }, action: { block: {} } }] })
  let status = 200
  while (status === 200) status = (await fetch(at)).status
  assert.equal(status, 403)
})

test('no client makes a metric of its own, and all metrics keep to the budget', async (t) => {
  const { ask, address, plane } = await serving(t, {
    app: (request, response) => response.writeHead(200 + Number(request.url!.length % 300)).end(),
  })
  for (let i = 0; i < 40; i++) {
    const mark = `canary${i}`
    await ask(`/${mark}${'x'.repeat(i * 10)}`, {
      method: i % 2 === 0 ? 'GET' : 'PROPFIND',
      headers: { host: `${mark}.example.test`, 'user-agent': mark, 'x-agent-name': mark },
    })
    await broken(address, `${mark} not TLS at all\r\n\r\n`)
    await broken(address, Buffer.from(`16030100050100000${i % 10}aa`, 'hex'))
  }
  const lines = (await metricsText(await plane.read()))
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.ok(!lines.some((line) => line.includes('canary')))
  assert.ok(lines.length < 300, `${lines.length} series`)
  for (const line of lines)
    assert.match(line, /^gatehouse_[a-z0-9_]+(\{([a-z_0-9]+="[\w.+/ -]+",?)+\})? [\d.e+-]+$/)
  assert.ok(
    lines.some((line) => /connection_failures_total\{reason="not-tls"\} 40$/.test(line)),
    lines.join('\n'),
  )
  assert.ok(lines.some((line) => /forged_headers_total 40$/.test(line)))
})

interface Wish {
  readonly app?: Parameters<typeof surroundings>[1]
  readonly state?: LiveState
  readonly change?: (settings: WorkerSettings) => WorkerSettings
}

/** A worker that serves; by itself the app answers with the headers it got. */
async function serving(
  t: Test,
  { app = echo, state = liveState([pair]), change = (same) => same }: Wish = {},
) {
  const around = await surroundings(t, app)
  const plane = new SingleWorker(change(around.settings), around.bus, around.log)
  const { listen: address, plainListen: plainAddress } = await plane.start(state)
  t.teardown(() => plane.drain(0))
  const ask = (path: string, options: Parameters<typeof get>[1] = {}) => asked(address, path, options)
  return { ...around, plane, address, plainAddress, state, ask }
}

function echo(message: IncomingMessage, response: ServerResponse): void {
  response.end(JSON.stringify(message.headers))
}

async function asked(
  { port }: ListenAddress,
  path: string,
  options: object,
): Promise<{ status: number; body: string }> {
  const outgoing = request(`https://localhost:${port}${path}`, {
    ca: CA.certificate,
    servername: 'localhost',
    ...options,
  }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: response.statusCode!, body: await text(response) }
}

/** A Snapshot takes a turn to arrive. */
async function untilStatus(
  ask: (path: string) => Promise<{ status: number }>,
  path: string,
  status: number,
): Promise<void> {
  for (let i = 0; i < 100; i++) if ((await ask(path)).status === status) return
  assert.fail(`${path} never answered ${status}`)
}

async function certificateOf({ port, host }: ListenAddress, servername = ''): Promise<string> {
  const socket = connectTls({ port, host, servername, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const pem = socket.getPeerX509Certificate()!.toString()
  socket.destroy()
  return pem
}

type Version = 'TLSv1.2' | 'TLSv1.3'

async function sessionOf(
  { port, host }: ListenAddress,
  servername: string,
  maxVersion: Version,
): Promise<Buffer> {
  const socket = connectTls({ port, host, servername, maxVersion, rejectUnauthorized: false })
  const [session] = await once(socket, 'session')
  socket.destroy()
  return session
}

async function resumes(
  { port, host }: ListenAddress,
  servername: string,
  maxVersion: Version,
  session: Buffer,
): Promise<boolean> {
  const socket = connectTls({ port, host, servername, maxVersion, session, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const reused = socket.isSessionReused()
  socket.destroy()
  return reused
}

async function broken({ port, host }: ListenAddress, bytes: string | Buffer): Promise<void> {
  const socket = connectTcp(port, host)
  socket.on('error', () => undefined)
  socket.end(bytes)
  socket.resume()
  await once(socket, 'close')
}
