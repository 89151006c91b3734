import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { foldHeaderName, isPlainName } from '../../src/wire/header-name.ts'
import { dialPlain } from './front.ts'
import { FORWARDING, NOT_FROM_CLIENTS, ODD_CHARACTERS, OURS } from './header-spellings.ts'
import { type Gate, startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'
import { opening } from './web-socket.ts'

/** What a client sends: our headers in other spellings, names of its own that are odd, and one that is not. */
const FORGED = [...OURS, ...FORWARDING, ...NOT_FROM_CLIENTS].flatMap((name, index) => {
  if (!name.includes('-')) return []
  const character = ODD_CHARACTERS[index % ODD_CHARACTERS.length]!
  return [name.replaceAll('-', character).toLowerCase(), name.replace('-', character).toLowerCase()]
})
const OWN_ODD = ['x_plan', 'x.plan', '_']
const SENT = [...FORGED, ...OWN_ODD, 'x-plan']

/** What an app got: its headers, and its trailers. */
interface Seen {
  readonly names: readonly string[]
  readonly trailers: readonly string[]
}

const APPS = { 'HTTP/1.1': http1App, h2c: http2App } as const
const WAYS = {
  'HTTP/1.1, fast lane': async (gate: Gate) => askHttp1(gate, ''),
  'HTTP/1.1, chunked with trailers': async (gate: Gate) => askHttp1(gate, 'Transfer-Encoding: chunked\r\n'),
  'HTTP/1.0': async (gate: Gate) => askHttp1(gate, '', '1.0'),
  'HTTP/2': askHttp2,
} as const

for (const [app, start] of Object.entries(APPS))
  for (const [way, ask] of Object.entries(WAYS))
    for (const oddNames of ['drop', 'pass', 'refuse'] as const)
      test(`odd header names over ${way} to an app of ${app}: ${oddNames}`, async (t) => {
        const { url, seen } = await start(t)
        const gate = await startGate(t, { upstreams: [settingsFor([url])], headers: { oddNames } })
        const status = await ask(gate)
        assert.ok(gate.oddNames >= SENT.length - 1)
        const forged = gate.sightings[0]!.forged
        assert.ok(FORGED.map(foldHeaderName).every((name) => forged.includes(name) || isUntrusted(name)))
        if (oddNames === 'refuse') {
          assert.deepEqual([status, seen.length, gate.sightings[0]!.rule], [400, 0, 'proxy.odd_header_names'])
          return
        }
        assert.equal(status, 200)
        const expected = oddNames === 'pass' ? [...OWN_ODD, 'x-plan'] : ['x-plan']
        const own = (names: readonly string[]) => names.filter((name) => SENT.includes(name))
        assert.deepEqual(own(seen[0]!.names), expected)
        assert.deepEqual(own(seen[0]!.trailers), way.includes('trailers') ? expected : [])
        if (oddNames === 'drop') assert.ok(seen[0]!.names.every(isPlainName))
      })

test('an upgrade tells the app nothing by an odd name, and can be refused for one', async (t) => {
  for (const oddNames of ['drop', 'pass', 'refuse'] as const) {
    const { url, seen } = await http1App(t)
    const gate = await startGate(t, { upstreams: [settingsFor([url])], headers: { oddNames } })
    const peer = await dialPlain(gate.plain.port)
    peer.write(opening('/', 'a.example.test', ...SENT.map((name) => `${name}: forged`)))
    await peer.closed
    const status = Number(peer.bytes.toString().split(' ')[1])
    if (oddNames === 'refuse') assert.deepEqual([status, seen.length], [400, 0])
    else {
      const own = seen[0]!.names.filter((name) => SENT.includes(name))
      assert.deepEqual(own, oddNames === 'pass' ? [...OWN_ODD, 'x-plan'] : ['x-plan'])
    }
  }
})

test('a refusal names its code, and the connection goes on', async (t) => {
  const { url } = await http1App(t)
  const gate = await startGate(t, { upstreams: [settingsFor([url])], headers: { oddNames: 'refuse' } })
  const peer = await dialPlain(gate.plain.port)
  const ask = (header: string) => `GET / HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n${header}: 1\r\n`
  peer.write(`${ask('X_Plan')}\r\n${ask('X-Plan')}Connection: close\r\n\r\n`)
  await peer.closed
  const heard = peer.bytes.toString()
  assert.match(heard, /^HTTP\/1\.1 400 .*"code":"odd_header_name".*HTTP\/1\.1 200 /s)
})

test('what a client says of its method reaches the app where no rule asks for the method', async (t) => {
  const { url, seen } = await http1App(t)
  const gate = await startGate(t, { upstreams: [settingsFor([url])] })
  const overrides = ['x-http-method-override', 'x-http-method', 'x-method-override']
  const told = async () => {
    const count = seen.length
    await fetch(`http://127.0.0.1:${gate.plain.port}/`, {
      headers: Object.fromEntries(overrides.map((name) => [name, 'DELETE'])),
    }).then((answer) => answer.text())
    return overrides.filter((name) => seen[count]!.names.includes(name))
  }
  assert.deepEqual(await told(), overrides)
  for (const when of [{ method: 'DELETE' }, { not: { method: 'GET' } }, 'request.method == "DELETE"']) {
    gate.judgeBy({ rules: [{ name: 'no deleting', when, action: 'block' }] })
    assert.deepEqual(await told(), [], JSON.stringify(when))
  }
  gate.judgeBy({ rules: [{ name: 'another', when: { path: '/x' }, action: 'block' }] })
  assert.deepEqual(await told(), overrides)
})

function isUntrusted(name: string): boolean {
  return NOT_FROM_CLIENTS.some((each) => each.toLowerCase() === name)
}

function lines(names: readonly string[]): string {
  return names.map((name) => `${name}: forged\r\n`).join('')
}

async function askHttp1(gate: Gate, framing: string, version = '1.1'): Promise<number> {
  const peer = await dialPlain(gate.plain.port)
  const body = framing === '' ? '' : `1\r\nx\r\n0\r\n${lines(SENT)}\r\n`
  const method = framing === '' ? 'GET' : 'POST'
  const head = `${method} / HTTP/${version}\r\nHost: a.example.test\r\nTE: trailers\r\n${framing}`
  peer.write(`${head}Connection: close\r\n${lines(SENT)}\r\n${body}`)
  await peer.closed
  return Number(peer.bytes.toString().split(' ')[1])
}

async function askHttp2(gate: Gate): Promise<number> {
  const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
  const fields = Object.fromEntries(SENT.map((name) => [name, 'forged']))
  const stream = session.on('error', () => {}).request({ ...fields, ':authority': 'a.example.test' })
  const [answer] = (await once(stream, 'response')) as [Record<string, string>]
  await text(stream)
  session.close()
  return Number(answer[':status'])
}

async function http1App(t: Test) {
  const seen: Seen[] = []
  const server = http.createServer((request, response) => {
    request.resume().on('end', () => {
      seen.push({ names: namesOf(request.rawHeaders), trailers: namesOf(request.rawTrailers) })
      response.end('fine')
    })
  })
  return { url: `http://127.0.0.1:${await listening(t, server)}`, seen }
}

async function http2App(t: Test) {
  const seen: Seen[] = []
  const server = http2.createServer()
  server.on('stream', (stream, _headers, _flags, rawHeaders) => {
    let trailers: readonly string[] = []
    stream.on('trailers', (_trailers, _more, raw) => {
      trailers = namesOf(raw)
    })
    stream.resume().on('end', () => {
      seen.push({ names: namesOf(rawHeaders).filter((name) => !name.startsWith(':')), trailers })
      stream.respond({ ':status': 200 })
      stream.end('fine')
    })
  })
  return { url: `h2c://127.0.0.1:${await listening(t, server)}`, seen }
}

async function listening(t: Test, server: http.Server | http2.Http2Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

function namesOf(raw: readonly string[]): string[] {
  return raw.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
}
