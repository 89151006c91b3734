import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { UpstreamGroup, upstreamCounters } from '../../src/proxy/upstream/upstream.ts'
import { dialPlain, dialTls } from './front.ts'
import { getRequest, headers, PREFACE, settings } from './http2-frames.ts'
import { dialHttp2 } from '../hostile/http2-peer.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'
import { opening } from './web-socket.ts'

/** Which status a request for a host gets, by each way in. */
const WAYS: Readonly<Record<string, (gate: Gate, authority: string) => Promise<number>>> = {
  'HTTP/1.1': (gate, authority) => told(gate, `GET / HTTP/1.1\r\nHost: ${authority}\r\n\r\n`),
  'HTTP/1.1, the parser of node:http': (gate, authority) =>
    told(gate, `GET / HTTP/1.1\r\nHost: ${authority}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
  'a URL as target': (gate, authority) =>
    told(gate, `GET http://${authority}/ HTTP/1.1\r\nHost: shop.example\r\n\r\n`),
  'HTTP/1.0': (gate, authority) => told(gate, `GET / HTTP/1.0\r\nHost: ${authority}\r\n\r\n`),
  'HTTP/1.0, a URL as target': (gate, authority) => told(gate, `GET http://${authority}/ HTTP/1.0\r\n\r\n`),
  'an upgrade': (gate, authority) => told(gate, opening('/', authority)),
  'HTTP/2': (gate, authority) => toldHttp2(gate, getRequest({ ':authority': authority })),
  'HTTP/2, host in place of :authority': (gate, authority) =>
    toldHttp2(gate, getRequest({ ':authority': null }, 'host', authority)),
}

const SERVED = [
  'shop.example',
  'SHOP.example',
  'shop.example.',
  'shop.example:8443',
  'Shop.Example.:443',
].concat(...['a.wild.example', '192.0.2.1:80', '[2001:db8::1]', '[2001:DB8:0::1]:8443'])
const UNKNOWN = ['other.example', 'shop.example.evil.test', 'evil-shop.example', 'wild.example'].concat(
  ...['a.b.wild.example', '192.0.2.2', '[2001:db8::2]', 'xn--shp-tna.example', 'localhost'],
)
const HOSTS = ['shop.example', '*.wild.example', '192.0.2.1', '[2001:db8::1]']

test('proxy.hosts: a request for another host is refused with 421, whichever way it comes', async (t) => {
  const { gate, seen } = await gateWithApp(t, { hosts: { hosts: HOSTS } })
  for (const [way, ask] of Object.entries(WAYS)) {
    const before = [seen.length, gate.unknownHosts]
    for (const authority of SERVED)
      assert.ok([200, 101].includes(await ask(gate, authority)), `${way}, ${authority}`)
    assert.deepEqual([seen.length - before[0]!, gate.unknownHosts - before[1]!], [SERVED.length, 0], way)
    for (const authority of UNKNOWN) assert.equal(await ask(gate, authority), 421, `${way}, ${authority}`)
    assert.deepEqual(
      [seen.length - before[0]!, gate.unknownHosts - before[1]!],
      [SERVED.length, UNKNOWN.length],
      way,
    )
  }
  const { rule, action, host } = gate.sightings.at(-1)!
  assert.deepEqual([rule, action, host], ['proxy.hosts', 'block', 'localhost'])
})

test('proxy.hosts: what was admitted on a connection admits nothing else', async (t) => {
  const { gate, seen } = await gateWithApp(t, { hosts: { hosts: HOSTS } })
  const hosts = [
    'shop.example',
    'shop.example',
    'other.example',
    'shop.example',
    'a.wild.example',
    'other.example',
  ]
  const peer = await dialTls(gate.secure.port)
  const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
  t.teardown(() => session.destroy())
  for (const [i, host] of hosts.entries()) {
    const expected = host === 'other.example' ? 421 : 200
    peer.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
    await peer.hears(() => statusesOf(peer.text).length > i)
    assert.equal(statusesOf(peer.text).at(-1), expected, host)
    const stream = session.request({ ':authority': host })
    const [head] = await once(stream, 'response')
    stream.close()
    assert.equal(head[':status'], expected, `HTTP/2, ${host}`)
  }
  peer.socket.destroy()
  assert.deepEqual(
    seen,
    hosts.filter((host) => host !== 'other.example').flatMap((host) => [host, host]),
  )
})

test('unknown_host pass: any host is passed on, and those that are not named are counted', async (t) => {
  const { gate, seen } = await gateWithApp(t, { hosts: { hosts: HOSTS, unknownHost: 'pass' } })
  for (const authority of [...SERVED, ...UNKNOWN, ...UNKNOWN])
    assert.equal(await WAYS['HTTP/1.1']!(gate, authority), 200, authority)
  assert.deepEqual([seen.length, gate.unknownHosts], [SERVED.length + 2 * UNKNOWN.length, 2 * UNKNOWN.length])
})

test('a host rule is walked around by no spelling of its host', async (t) => {
  const policy = {
    rules: [
      {
        name: 'by pattern',
        when: { host: ['shop.example', '192.0.2.1', '[2001:db8::1]', '*.wild.example'] },
        action: 'block',
      },
      { name: 'by expression', when: 'request.host == "api.example"', action: 'block' },
    ],
  }
  const { gate, seen } = await gateWithApp(t, { policy })
  const spellings = [...SERVED, 'api.example', 'API.Example.:1', 'api.example.']
  for (const [way, ask] of Object.entries(WAYS))
    for (const authority of spellings) assert.equal(await ask(gate, authority), 403, `${way}, ${authority}`)
  for (const authority of [
    'u@shop.example',
    'shop.example..',
    '.shop.example',
    'sho%70.example',
    'shop.example,b',
  ])
    assert.equal(await WAYS['HTTP/1.1']!(gate, authority), 400, authority)
  assert.deepEqual(seen, [])
})

test('HTTP/1.0 without a Host: rules judge the host that the app sees', async (t) => {
  const { gate, seen, authority } = await gateWithApp(t, {
    policy: { rules: [{ name: 'shop', when: { host: 'a.example.test' }, action: 'block' }] },
  })
  const bare = 'GET / HTTP/1.0\r\n\r\n'
  assert.equal(await told(gate, bare, { servername: 'A.Example.test' }), 403)
  assert.equal(await told(gate, bare, { servername: 'b.example.test' }), 200)
  assert.equal(await told(gate, bare), 200)
  assert.equal(await toldPlain(gate, bare), 200)
  assert.deepEqual(seen, ['b.example.test', authority, authority])
  assert.deepEqual(
    gate.sightings.map(({ host }) => host),
    ['A.Example.test', 'b.example.test', authority, authority],
  )
  gate.judgeBy({ rules: [{ name: 'own', when: { host: '127.0.0.1' }, action: 'block' }] })
  assert.equal(await toldPlain(gate, bare), 403)
})

test('HTTP/1.0 without a Host: the app of every upstream sees the host that was judged', async (t) => {
  const other = await appOf(t)
  const { gate, seen, authority } = await gateWithApp(
    t,
    {
      policy: { rules: [{ name: 'r', when: { path: '/other' }, action: { route: { upstream: 'other' } } }] },
    },
    [settingsFor([other.url], { name: 'other' })],
  )
  assert.equal(await toldPlain(gate, 'GET /other HTTP/1.0\r\n\r\n'), 200)
  assert.deepEqual([seen, other.seen], [[], [authority]])
})

test('HTTP/1.0 without a Host: proxy.hosts and sni_mismatch judge the supplied one', async (t) => {
  const { gate } = await gateWithApp(t, { hosts: { hosts: ['a.example.test'], sniMismatch: 'reject' } })
  const bare = 'GET / HTTP/1.0\r\n\r\n'
  assert.equal(await told(gate, bare, { servername: 'a.example.test' }), 200)
  assert.equal(await told(gate, bare, { servername: 'b.example.test' }), 421)
  assert.equal(await told(gate, bare), 421)
  assert.equal(await toldPlain(gate, bare), 421)
})

test('an invalid server name supplies no host', async (t) => {
  const { gate, seen, authority } = await gateWithApp(t, {})
  for (const servername of ['a b.example', 'a.example:80', 'u@a.example'])
    assert.equal(await told(gate, 'GET / HTTP/1.0\r\n\r\n', { servername }), 200, servername)
  assert.deepEqual(seen, [authority, authority, authority])
})

test('require_sni: a connection whose hello names no host serves none', async (t) => {
  const { gate, seen } = await gateWithApp(t, { hosts: { requireSni: true } })
  for (const protocol of ['HTTP/1.1', 'HTTP/1.0', 'an upgrade', 'HTTP/2'])
    assert.equal(await WAYS[protocol]!(gate, 'a.example.test'), 421, protocol)
  const { rule } = gate.sightings.at(-1)!
  assert.equal(rule, 'proxy.tls.require_sni')
  assert.deepEqual(seen, [])
  const get = 'GET / HTTP/1.1\r\nHost: b.example.test\r\n\r\n'
  assert.equal(await told(gate, get, { servername: 'a.example.test' }), 200)
  assert.equal(await toldPlain(gate, get), 200)
})

test('require_sni false: sni_mismatch reject leaves out connections without a name', async (t) => {
  const { gate } = await gateWithApp(t, { hosts: { sniMismatch: 'reject', requireSni: false } })
  const get = 'GET / HTTP/1.1\r\nHost: b.example.test\r\n\r\n'
  assert.equal(await told(gate, get), 200)
  assert.equal(await told(gate, get, { servername: 'a.example.test' }), 421)
})

test('HTTP/2: a connection is used for other hosts of its certificate, unless sni_mismatch is reject', async (t) => {
  const hosts = ['a.example.test', 'b.example.test']
  for (const [sniMismatch, statuses] of [
    ['allow', [200, 200, 200, 421]],
    ['reject', [200, 421, 200, 421]],
  ] as const) {
    const { gate } = await gateWithApp(t, { hosts: { hosts, sniMismatch, requireSni: true } })
    const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, {
      rejectUnauthorized: false,
      servername: 'a.example.test',
    })
    t.teardown(() => session.destroy())
    const got: number[] = []
    for (const authority of [...hosts, 'a.example.test', 'c.example.test']) {
      const stream = session.request({ ':authority': authority })
      const [head] = await once(stream, 'response')
      stream.close()
      got.push(head[':status'])
    }
    assert.deepEqual(got, statuses)
  }
})

test('an upstream is named by its first URL where it has several', async (t) => {
  const group = new UpstreamGroup(settingsFor(['http://one.test:81', 'http://two.test']), upstreamCounters())
  t.teardown(() => group.close())
  assert.equal(group.authority, 'one.test:81')
})

function statusesOf(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))
}

async function told(gate: Gate, request: string, tls: object = {}): Promise<number> {
  const peer = await dialTls(gate.secure.port, tls)
  peer.write(request)
  return statusOf(peer)
}

async function toldPlain(gate: Gate, request: string): Promise<number> {
  const peer = await dialPlain(gate.plain.port)
  peer.write(request)
  return statusOf(peer)
}

async function statusOf(peer: Awaited<ReturnType<typeof dialPlain>>): Promise<number> {
  await peer.hears('\r\n\r\n')
  peer.socket.destroy()
  return statusesOf(peer.text)[0]!
}

async function toldHttp2(gate: Gate, fields: readonly string[]): Promise<number> {
  const peer = await dialHttp2(gate.secure.port)
  peer.write(PREFACE, settings(), headers(1, fields))
  await peer.until(() => peer.isAnswered(1))
  peer.socket.destroy()
  return peer.statusOf(1)!
}

async function gateWithApp(t: Test, plan: Partial<GatePlan>, others: GatePlan['upstreams'] = []) {
  const { url, seen, authority } = await appOf(t)
  const gate = await startGate(t, { ...plan, upstreams: [settingsFor([url]), ...others] })
  return { gate, seen, authority }
}

/** Says which hosts it has seen. */
async function appOf(t: Test) {
  const seen: string[] = []
  const app = http.createServer((request, response) => {
    seen.push(request.headers.host ?? '')
    request.resume()
    response.end('fine')
  })
  app.on('upgrade', (request, socket) => {
    seen.push(request.headers.host ?? '')
    socket.on('error', () => {})
    socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  const authority = `127.0.0.1:${(app.address() as AddressInfo).port}`
  return { url: `http://${authority}`, seen, authority }
}
