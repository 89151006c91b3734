import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { parsePolicyText } from '../../src/runtime/policy-source.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { dialPlain } from './front.ts'
import { headerV1, headerV2 } from './proxy-header.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

const KNOWLEDGE = await loadKnowledge(null, null)
const GPTBOT = KNOWLEDGE.list.find(({ id }) => id === 'gptbot')!
const PUBLISHED = GPTBOT.verification.ranges!
/** What comes with Gatehouse, as it is the day after it was read. */
const NOW_MS = Date.parse(PUBLISHED.date) + 86_400_000
const OWN = PUBLISHED.prefixes[0]!.split('/')[0]!
const LIAR = '198.51.100.7'
const USER_AGENT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; GPTBot/1.2; +https://openai.com/gptbot'
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

const BEHIND_PROXY = { proxyProtocol: 'optional', trusted: AddressSet.parse(['127.0.0.1'])! } as const

/** How a proxy in front tells where a client is. */
const WAYS: Readonly<Record<string, (gate: Gate, address: string) => Promise<number>>> = {
  'X-Forwarded-For over HTTP/1': async (gate, address) => {
    const client = await forwarding(gate)
    const { status } = await client.ask(USER_AGENT, address)
    client.close()
    return status
  },
  'X-Forwarded-For over HTTP/2': async (gate, address) => {
    const session = dialHttp2(gate)
    const status = await askHttp2(session, address)
    session.close()
    return status
  },
  'a PROXY header, version 1': (gate, address) =>
    proxied(gate, headerV1(`TCP4 ${address} 192.0.2.1 4711 443`)),
  'a PROXY header, version 2': (gate, address) => proxied(gate, headerV2({ source: address, port: 4711 })),
}

const TURNED_AWAY = { 'allow-verified-only.yaml': 403, 'block-unverified-crawlers.yaml': 503 } as const

for (const [file, status] of Object.entries(TURNED_AWAY)) {
  test(`config/${file} allows GPTBot from its published addresses, and no client that only claims to be it`, async (t) => {
    const { document } = parsePolicyText(readFileSync(`config/${file}`, 'utf8'), file)
    for (const [way, ask] of Object.entries(WAYS)) {
      const { gate, seen } = await gateWithApp(t, { policy: document, options: BEHIND_PROXY })
      assert.equal(await ask(gate, OWN), 200, way)
      assert.equal(seen.at(-1)?.['x-agent-verified'], 'ip-range', way)
      assert.equal(seen.at(-1)?.['x-agent-name'], 'GPTBot', way)
      assert.equal(await ask(gate, LIAR), status, way)
      assert.equal(seen.length, 1, way)
      const [proven, foreign] = gate.sightings
      assert.deepEqual([proven?.address, proven?.verified], [OWN, 'ip-range'], way)
      assert.ok(proven?.evidence.includes('address-published'), way)
      assert.deepEqual([foreign?.address, foreign?.verified, foreign?.agent], [LIAR, null, 'gptbot'], way)
      assert.ok(foreign?.evidence.includes('address-foreign'), way)
    }
  })
}

test('on one connection of a trusted proxy, each request is judged by its own address', async (t) => {
  const { gate, seen } = await gateWithApp(t, { options: BEHIND_PROXY })
  const addresses = [OWN, LIAR, OWN, OWN, '10.0.0.1', OWN, 'unknown', LIAR, '', OWN]
  const expected = addresses.map((address) => (address === OWN ? 'ip-range' : undefined))
  const client = await forwarding(gate)
  for (const address of addresses) await client.ask(USER_AGENT, address)
  client.close()
  assert.deepEqual(
    seen.map((headers) => headers['x-agent-verified']),
    expected,
    'HTTP/1',
  )
  seen.length = 0
  const session = dialHttp2(gate)
  for (const address of addresses) await askHttp2(session, address)
  assert.deepEqual(
    seen.map((headers) => headers['x-agent-verified']),
    expected,
    'HTTP/2',
  )
  const before = gate.sightings.length
  await Promise.all(addresses.map((address) => askHttp2(session, address)))
  session.close()
  const together = gate.sightings.slice(before)
  assert.equal(together.length, addresses.length)
  for (const { address, verified } of together) assert.equal(verified, address === OWN ? 'ip-range' : null)
})

test('a proof does not extend to others behind the same proxy', async (t) => {
  const { gate, seen } = await gateWithApp(t, { options: BEHIND_PROXY })
  const client = await forwarding(gate)
  await client.ask(USER_AGENT, OWN)
  await client.ask(CHROME, LIAR)
  await client.ask(CHROME, OWN)
  client.close()
  assert.deepEqual(
    seen.map((headers) => headers['x-agent-name']),
    ['GPTBot', undefined, undefined],
  )
  const [, elsewhere, inRange] = gate.sightings
  assert.deepEqual(
    [inRange?.verdict, inRange?.confidence, inRange?.evidence],
    [elsewhere?.verdict, elsewhere?.confidence, elsewhere?.evidence],
  )
})

test('an address that the client claims proves nothing', async (t) => {
  const { gate, seen } = await gateWithApp(t, {})
  const client = await forwarding(gate)
  await client.ask(USER_AGENT, OWN, ['X-Agent-Verified', 'ip-range'])
  client.close()
  assert.equal(seen.at(-1)?.['x-agent-verified'], undefined)
  const [sighting] = gate.sightings
  assert.deepEqual([sighting?.address, sighting?.verified], ['127.0.0.1', null])
  assert.ok(!sighting!.evidence.some((kind) => kind.startsWith('address-')), 'and contradicts nothing')
})

test('a rule can test for a foreign address', async (t) => {
  const policy = { rules: [{ name: 'liars', when: { evidence: 'address-foreign' }, action: 'block' }] }
  const { gate } = await gateWithApp(t, { policy, options: BEHIND_PROXY })
  const client = await forwarding(gate)
  assert.equal((await client.ask(USER_AGENT, LIAR)).status, 403)
  assert.equal((await client.ask(USER_AGENT, OWN)).status, 200)
  gate.clock.nowMs = NOW_MS + 91 * 86_400_000
  assert.equal((await client.ask(USER_AGENT, LIAR)).status, 200, 'lists change')
  client.close()
})

async function gateWithApp(t: Test, plan: Partial<GatePlan>) {
  const seen: http.IncomingHttpHeaders[] = []
  const app = http.createServer((request, response) => {
    seen.push(request.headers)
    response.end('fine')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const policy = { rules: [], otherwise: 'tag' }
  const gate = await startGate(t, {
    policy,
    ...plan,
    knowledge: KNOWLEDGE,
    upstreams: [settingsFor([url])],
  })
  gate.clock.nowMs = NOW_MS
  return { gate, seen }
}

/** One connection with many requests, one after the other. */
async function forwarding(gate: Gate) {
  const peer = await dialPlain(gate.plain.port)
  let heard = 0
  return {
    async ask(userAgent: string, address: string, more: readonly string[] = []) {
      const headers = ['Host', 'a.example.test', 'User-Agent', userAgent, 'Accept', '*/*', ...more]
      if (address !== '') headers.push('X-Forwarded-For', address)
      peer.write(`GET /page HTTP/1.1\r\n${linesOf(headers)}\r\n`)
      const isWhole = () => /\r\n\r\n(?:fine|\{.*\}\n)$/s.test(peer.text.slice(heard))
      await peer.hears(isWhole)
      const answer = peer.text.slice(heard)
      heard = peer.text.length
      return { status: Number(answer.split(' ')[1]) }
    },
    close: () => void peer.socket.destroy(),
  }
}

/** Without a word of where it is from but in front. */
async function proxied(gate: Gate, header: Buffer): Promise<number> {
  const peer = await dialPlain(gate.plain.port)
  peer.write(header)
  const headers = ['Host', 'a.example.test', 'User-Agent', USER_AGENT, 'Connection', 'close']
  peer.write(`GET /page HTTP/1.1\r\n${linesOf(headers)}\r\n`)
  await peer.closed
  return Number(peer.text.split(' ')[1])
}

function dialHttp2(gate: Gate): http2.ClientHttp2Session {
  return http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
}

async function askHttp2(session: http2.ClientHttp2Session, address: string): Promise<number> {
  const stream = session.request({
    ...{ ':path': '/page', ':authority': 'a.example.test', 'user-agent': USER_AGENT },
    ...(address !== '' && { 'x-forwarded-for': address }),
  })
  const [answer] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders]
  await text(stream)
  return Number(answer[':status'])
}

function linesOf(headers: readonly string[]): string {
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`
  return lines
}
