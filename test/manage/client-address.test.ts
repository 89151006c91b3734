import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { type Test, test } from 'tap'
import { createManageServer, FRONT_DEFAULTS, type FrontSettings } from '../../src/manage/app.ts'
import type { ProxyHeaderFault } from '../../src/manage/http/front/proxy-header.ts'
import { useCertificate } from '../../src/manage/http/front/server.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { TestManagement } from './management.ts'

const LOOPBACK = ['127.0.0.0/8']

test('without trusted proxies no header says where a request comes from', async (t) => {
  const front = await listening(t, {})
  await front.send(requestWith('X-Forwarded-For: 203.0.113.9', 'Forwarded: for=203.0.113.9'))
  await front.send(requestWith('X-Real-IP: 203.0.113.9', 'True-Client-IP: 203.0.113.9'))
  assert.deepEqual(front.addresses, ['127.0.0.1', '127.0.0.1'])
})

test('behind a trusted proxy the client is the last address that is not a trusted proxy', async (t) => {
  const front = await listening(t, { trustedProxies: [...LOOPBACK, '10.0.0.0/8', '2001:db8:f::/48'] })
  const cases: readonly (readonly [headers: readonly string[], address: string])[] = [
    [['X-Forwarded-For: 203.0.113.9'], '203.0.113.9'],
    [['X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.1.2.3'], '203.0.113.9'],
    [['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-For: 203.0.113.9'], '203.0.113.9'],
    [['x-forwarded-for: 2001:DB8:1::5, 2001:db8:f::1'], '2001:db8:1::5'],
    [['X-Forwarded-For: [2001:db8:1::5]:4711'], '2001:db8:1::5'],
    [['X-Forwarded-For: ::ffff:203.0.113.9'], '203.0.113.9'],
    [['Forwarded: for=1.1.1.1, for="203.0.113.9:80";proto=https'], '203.0.113.9'],
    [['Forwarded: for=1.1.1.1', 'X-Forwarded-For: 203.0.113.9'], '203.0.113.9'],
    [['X-Forwarded-For: unknown'], '127.0.0.1'],
    [['X-Forwarded-For: '], '127.0.0.1'],
    [['Forwarded: for=1.1.1.1;for=2.2.2.2'], '127.0.0.1'],
    [['X-Forwarded-For: 203.0.113.9, <script>'], '127.0.0.1'],
    [[], '127.0.0.1'],
  ]
  for (const [headers, address] of cases) {
    await front.send(requestWith(...headers))
    assert.equal(front.addresses.at(-1), address, headers.join())
  }
})

test('requests of two clients over one connection of a load balancer have an address each', async (t) => {
  const front = await listening(t, { trustedProxies: LOOPBACK })
  const one = requestWith('X-Forwarded-For: 203.0.113.9').replace('Connection: close\r\n', '')
  const nobody = requestWith().replace('Connection: close\r\n', '')
  await front.send(one + nobody + requestWith('X-Forwarded-For: 203.0.113.10'))
  assert.deepEqual(front.addresses, ['203.0.113.9', '127.0.0.1', '203.0.113.10'])
})

test('more headers than are read cannot push out the one of the proxy', async (t) => {
  const front = await listening(t, { trustedProxies: LOOPBACK })
  const many = Array.from({ length: 150 }, (_, number) => `X-${number}: x`)
  assert.match(await front.send(requestWith(...many, 'X-Forwarded-For: 203.0.113.9')), /^HTTP\/1\.1 431 /)
  assert.match(
    await front.send(requestWith(...many.slice(0, 97), 'X-Forwarded-For: 203.0.113.9')),
    /^HTTP\/1\.1 200 /,
  )
  assert.equal(front.addresses.at(-1), '203.0.113.9')
})

test('a PROXY header names the client of all requests on its connection', async (t) => {
  for (const isTls of [false, true]) {
    const front = await listening(t, { trustedProxies: LOOPBACK, proxyProtocol: 'required' }, isTls)
    for (const [header, address] of [
      ['PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n', '203.0.113.9'],
      ['PROXY TCP6 2001:db8:1::5 2001:db8::1 4711 443\r\n', '2001:db8:1::5'],
      ['PROXY UNKNOWN\r\n', '127.0.0.1'],
      [VERSION_2, '203.0.113.7'],
    ] as const) {
      const spoofed = 'X-Forwarded-For: 198.51.100.1'
      assert.match(await front.send(requestWith(spoofed), header), /^HTTP\/1\.1 200 /, header)
      const isOwn = address === '127.0.0.1'
      // A client that is not a trusted proxy says nothing of others; a proxy that speaks for itself does.
      assert.equal(front.addresses.at(-1), isOwn ? '198.51.100.1' : address)
    }
    const twice = requestWith().replace('Connection: close\r\n', '') + requestWith()
    await front.send(twice, 'PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n')
    assert.deepEqual(front.addresses.slice(-2), ['203.0.113.9', '203.0.113.9'])
    assert.deepEqual(front.faults, [])
  }
})

test('a PROXY header that comes a byte at a time, or together with the request, is read', async (t) => {
  const front = await listening(t, { trustedProxies: LOOPBACK, proxyProtocol: 'optional' })
  const all = `PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n${requestWith()}`
  const socket = await front.dial()
  for (const byte of all) {
    socket.write(byte, 'latin1')
    await new Promise(setImmediate)
  }
  assert.match(await text(socket), /^HTTP\/1\.1 200 /)
  assert.equal(front.addresses.at(-1), '203.0.113.9')
})

test('an optional PROXY header may be missing', async (t) => {
  for (const isTls of [false, true]) {
    const front = await listening(t, { trustedProxies: LOOPBACK, proxyProtocol: 'optional' }, isTls)
    await front.send(requestWith('X-Forwarded-For: 203.0.113.9'))
    assert.deepEqual(front.addresses, ['203.0.113.9'])
  }
})

test('a PROXY header of a peer that is not trusted is an invalid request', async (t) => {
  const front = await listening(t, { trustedProxies: ['192.0.2.1'], proxyProtocol: 'optional' })
  assert.match(await front.send(requestWith(), PROXY_HEADER), /^HTTP\/1\.1 400 /)
  await front.send(requestWith())
  assert.deepEqual(front.addresses, ['127.0.0.1'])
})

test('a connection without the PROXY header that is required is closed, and counted', async (t) => {
  const front = await listening(t, { trustedProxies: LOOPBACK, proxyProtocol: 'required' })
  assert.equal(await front.send(requestWith()), '')
  assert.equal(await front.send(requestWith(), 'PROXY TCP4 203.0.113.9\r\n'), '')
  const socket = await front.dial()
  socket.end('PROXY TCP4 ')
  assert.equal(await text(socket), '')
  const untrusted = await listening(t, { trustedProxies: ['192.0.2.1'], proxyProtocol: 'required' })
  assert.equal(await untrusted.send(requestWith(), PROXY_HEADER), '')
  assert.deepEqual(
    [...front.faults, ...untrusted.faults],
    [...['missing', 'malformed', 'incomplete', 'untrusted']],
  )
  assert.deepEqual([...front.addresses, ...untrusted.addresses], [])
})

test('a connection that is silent where a PROXY header is due is closed', async (t) => {
  const settings = { trustedProxies: LOOPBACK, proxyProtocol: 'required', requestTimeoutMs: 300 } as const
  const front = await listening(t, settings)
  const socket = await front.dial()
  assert.equal(await text(socket), '')
  assert.deepEqual(front.faults, ['incomplete'])
})

test('refused credentials of one client behind a proxy do not throttle another client', async (t) => {
  const manage = await TestManagement.start(t, {
    authFailuresPerMinute: 3,
    front: { trustedProxies: LOOPBACK },
  })
  const guess = async (address: string) => {
    const headers = { authorization: 'Bearer wrong', 'x-forwarded-for': address }
    return (await manage.ask('GET', '/v1/keys', undefined, headers)).status
  }
  for (const status of [401, 401, 401, 429]) assert.equal(await guess('203.0.113.9'), status)
  assert.equal(await guess('203.0.113.10'), 401)
  // In IPv6 a client is a /64.
  for (const [at, status] of [401, 401, 401, 429].entries())
    assert.equal(await guess(`2001:db8:1:2::${at}`), status)
  assert.equal(await guess('2001:db8:1:3::1'), 401)
  const { body } = await manage.ask('GET', '/v1/audit?action=throttleAuthentication')
  const addresses = body.audit.map(({ address }: { address: string }) => address)
  assert.deepEqual(addresses.sort(), ['2001:db8:1:2::3', '203.0.113.9'])
})

test('the audit log and the access log have the address of the client behind a proxy', async (t) => {
  const visits: string[] = []
  const manage = await TestManagement.start(t, {
    front: { trustedProxies: LOOPBACK },
    answered: ({ address }) => visits.push(address),
  })
  const headers = { forwarded: 'for="[2001:db8:1::5]:4711"' }
  await manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' }, headers)
  const { body } = await manage.ask('GET', '/v1/audit?action=createKey')
  assert.equal(body.audit[0].address, '2001:db8:1::5')
  assert.equal(visits[0], '2001:db8:1::5')
})

interface Front {
  /** Of the requests that were answered, in their order. */
  readonly addresses: string[]
  readonly faults: ProxyHeaderFault[]
  dial(): Promise<Socket>
  /** Sends a header in plain text, then bytes, over TLS where the port speaks it; resolves to all that comes back. */
  send(bytes: string, header?: string): Promise<string>
}

async function listening(t: Test, settings: Partial<FrontSettings>, isTls = false): Promise<Front> {
  const addresses: string[] = []
  const faults: ProxyHeaderFault[] = []
  const server = createManageServer(
    {
      unready: () => [],
      metrics: async () => '',
      failed: (error) => t.error(error),
      answered: ({ address, status }) => status === 200 && addresses.push(address),
      refusedProxyHeader: (fault) => faults.push(fault),
    },
    { ...FRONT_DEFAULTS, ...settings, hasTls: isTls },
  )
  if (isTls) useCertificate(server, await CERTIFICATE)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const dial = async () => {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return socket
  }
  const send = async (bytes: string, header = '') => {
    const raw = await dial()
    if (header !== '') raw.write(header, 'latin1')
    const socket = isTls ? connectTls({ socket: raw, rejectUnauthorized: false }) : raw
    socket.write(bytes, 'latin1')
    const said = await text(socket).catch(() => '')
    const count = said.split('HTTP/1.1 200').length - 1
    // The end of an answer is reported a moment after its bytes are here.
    for (let tries = 0; addresses.length < count && tries < 200; tries++) await wait(5)
    return said
  }
  return { addresses, faults, dial, send }
}

function requestWith(...headers: readonly string[]): string {
  return [`GET /health/live HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n')
}

const PROXY_HEADER = 'PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n'
/** Signature, PROXY over TCP4, 12 bytes: 203.0.113.7 port 4711 to 192.0.2.1 port 443. */
const VERSION_2 = Buffer.from('0d0a0d0a000d0a515549540a2111000ccb007107c0000201126701bb', 'hex').toString(
  'latin1',
)
const CERTIFICATE = (async () => {
  const { certificate, key } = await testLeaf(await testCa(), ['localhost'])
  return { chain: certificate, key }
})()
