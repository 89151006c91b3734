import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http2 from 'node:http2'
import https from 'node:https'
import net from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import tls from 'node:tls'
import { type Test, test } from 'tap'
import { shareOf } from '../hostile/whole.ts'
import { FORWARDING, NOT_FROM_CLIENTS, ODD_CHARACTERS, OURS } from '../proxy/header-spellings.ts'
import { APP_SERVERS, type AppServer, type Told, variablesOf } from './app-servers.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { ARE_REQUIRED, temporaryFolder } from './programs.ts'

/** The requests and their servers: `app` is the number of the server. */
interface Asking {
  readonly gate: RunningGatehouse
  readonly app: number
  readonly names: readonly string[]
}

const IN_TRAILERS = 'HTTP/1.1, in trailers'
/** Ways to send headers. Each resolves with what the app was told. */
const WAYS = {
  'HTTP/1.1, fast lane': (asking: Asking) => askHttp1(asking, pairsOf(asking.names)),
  'HTTP/1.0, with a Connection header that lists ours': askHttp10,
  'HTTP/2': askHttp2,
  [IN_TRAILERS]: askWithTrailers,
  'HTTP/1.1, asking for an upgrade': (asking: Asking) =>
    askHttp1(asking, ['Connection', 'Upgrade', 'Upgrade', 'websocket', ...pairsOf(asking.names)]),
} as const

/** What no app may be told by a client. */
const PROTECTED = [...OURS, ...FORWARDING, ...NOT_FROM_CLIENTS]
/** Those of HTTP, which other spellings must not reach either. */
const OF_HTTP = ['Host', 'Cookie', 'Authorization', 'Content-Length', 'Content-Type', 'Transfer-Encoding']
const CANARY = 'canary'
/** The variables, and headers, in which an app reads one of them. */
const READ_AS: ReadonlySet<string> = new Set([...PROTECTED, ...OF_HTTP].flatMap(variablesOf))
/** Apache takes 100 headers, where it is not told otherwise. */
const BATCH = 60
/** Of these, a share is tried where there is little time. */
const NTH = 6

test('no spelling of a header tells an app anything in our name', { timeout: 900_000 }, async (t) => {
  const servers = installed()
  const urls = await Promise.all(servers.map((server) => server.start(t)))
  const all = spellings()
  assert.ok(all.length >= 2_000, `${all.length} spellings`)
  const share = shareOf(all, NTH, new Date().getUTCDate())

  await t.test('servers do take them for ours where no gateway is in front', async () => {
    const forged = await Promise.all(urls.map((url) => forgedWithout(url, all)))
    const counts = Object.fromEntries(servers.map(({ name }, index) => [name, forged[index]!.length]))
    for (const name of ['lighttpd with CGI', 'Caddy with PHP-FPM', 'gunicorn with WSGI'])
      assert.ok(!(name in counts) || counts[name]! > 10, JSON.stringify(counts))
  })

  for (const oddNames of ['drop', 'pass'] as const) {
    const gate = await gateBefore(t, urls, [`odd_header_names: ${oddNames}`])
    for (const [way, ask] of Object.entries(WAYS))
      for (const [app, { name, takesChunks }] of servers.entries()) {
        if (way === IN_TRAILERS && !takesChunks) continue
        await t.test(`${oddNames}: ${name} by ${way}`, async () => {
          let told = 0
          for (const names of batches(way === 'HTTP/2' ? lowered(share) : share)) {
            const answer = await ask({ gate, app, names })
            assert.ok(answer !== null, `${names}`)
            assertNotForged(answer, oddNames)
            told++
          }
          assert.ok(told >= share.length / BATCH / 3)
        })
      }
    await gate.stop()
  }
})

test('headers that apps commonly trust are the gateway’s word', { timeout: 300_000 }, async (t) => {
  const servers = installed()
  const urls = await Promise.all(servers.map((server) => server.start(t)))
  const overrides = ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override']
  const trusted = [...NOT_FROM_CLIENTS, 'X-Forwarded-Prefix', 'X-Forwarded-Ssl', 'X-Real-IP', 'Forwarded']

  await t.test('from a client', async () => {
    const gate = await gateBefore(t, urls, [])
    for (const app of servers.keys()) {
      const told = await askHttp1(
        { gate, app, names: [] },
        pairsOf([...trusted, ...FORWARDING, ...overrides]),
      )
      assertNotForged(told, 'pass')
      assert.equal(read(told, 'X-Real-IP'), '127.0.0.1')
      assert.match(read(told, 'X-HTTP-Method-Override')!, /^canary/)
    }
    await gate.stop()
  })

  await t.test(
    'through a proxy that writes X-Forwarded-For, with a policy that asks for the method',
    async () => {
      const rule = { name: 'no deleting', when: { method: 'DELETE' }, action: 'block' }
      const gate = await gateBefore(t, urls, ['trusted_proxies: 127.0.0.1'], [rule])
      const sent = pairsOf([...trusted, 'X-Forwarded-Host', ...overrides])
      for (const app of servers.keys()) {
        const told = await askHttp1({ gate, app, names: [] }, ['X-Forwarded-For', '192.0.2.1', ...sent])
        assertNotForged(told, 'pass')
        for (const name of overrides) assert.equal(read(told, name), undefined)
        assert.equal(read(told, 'X-Real-IP'), '192.0.2.1')
        assert.equal(read(told, 'X-Forwarded-Host'), `localhost:${gate.port}`)
        assert.match(read(told, 'Forwarded')!, /^for=192\.0\.2\.1;host="localhost:\d+", for=127\.0\.0\.1;/)
      }
      await gate.stop()
    },
  )
})

/** Those that are there; in CI all are. */
function installed(): readonly AppServer[] {
  return APP_SERVERS.filter((server) => {
    const lacking = server.isMissing()
    if (lacking !== false && !ARE_REQUIRED) process.stderr.write(`${server.name} is left out: ${lacking}\n`)
    return lacking === false || ARE_REQUIRED
  })
}

/** A gateway in a process of its own, with a path for each app. */
async function gateBefore(
  t: Test,
  urls: readonly string[],
  settings: readonly string[],
  rules: readonly object[] = [],
): Promise<RunningGatehouse> {
  const policy = join(temporaryFolder(t), 'policy.yaml')
  const routes = urls.map((_, app) => {
    return { name: `app ${app}`, when: { path: `/${app}` }, action: { route: { upstream: `app${app}` } } }
  })
  writeFileSync(policy, JSON.stringify({ rules: [...rules, ...routes] }))
  const upstreams = urls.flatMap((url, app) => [`  - name: app${app}`, `    urls: ${url}`])
  return startGatehouse(t, {
    settings: ['upstreams:', ...upstreams, ...settings],
    variables: { GATEHOUSE_POLICY_FILE: policy },
  })
}

/**
 * Every protected name with every odd character that can stand in a name: instead of each hyphen, of all of them,
 * beside each, at the beginning and at the end; and with hyphens doubled, which no server folds.
 */
function spellings(): readonly string[] {
  const made = new Set<string>()
  for (const name of PROTECTED) {
    const hyphens = [...name.matchAll(/-/g)].map(({ index }) => index)
    made.add(name.replaceAll('-', '--')).add(`-${name}`).add(`${name}-`)
    for (const character of ODD_CHARACTERS) {
      const all = name.replaceAll('-', character)
      for (const at of hyphens) {
        made.add(name.slice(0, at) + character + name.slice(at + 1))
        made.add(name.slice(0, at) + character + name.slice(at))
      }
      for (const each of [all, all.toLowerCase(), all.toUpperCase(), character + name, name + character])
        made.add(each)
    }
  }
  for (const name of OF_HTTP)
    for (const character of ODD_CHARACTERS) made.add(name.replaceAll('-', character)).add(name + character)
  for (const name of [...PROTECTED, ...OF_HTTP]) made.delete(name)
  return [...made]
}

function lowered(names: readonly string[]): readonly string[] {
  return [...new Set(names.map((name) => name.toLowerCase()))].filter((name) => !READ_AS.has(name))
}

function* batches(names: readonly string[]): Generator<readonly string[]> {
  for (let from = 0; from < names.length; from += BATCH) yield names.slice(from, from + BATCH)
}

function pairsOf(names: readonly string[]): string[] {
  return names.flatMap((name, index) => [name, `${CANARY}${index}`])
}

/** Under `drop` no odd name arrives at all; under `pass` none that the app reads as one that is protected. */
function assertNotForged(told: Told, oddNames: 'drop' | 'pass'): void {
  for (const [name, value] of Object.entries(told)) {
    if (!value.includes(CANARY)) continue
    assert.ok(!READ_AS.has(name) && !READ_AS.has(name.toLowerCase()), `the app was told ${name}: ${value}`)
    if (oddNames === 'drop')
      assert.match(name.replace(/^raw |^HTTP_/, ''), /^[A-Za-z0-9_-]+$/, `${name} has reached the app`)
  }
  assert.ok(variablesOf('X-Agent-Verdict').some((name) => told[name] === 'unknown' || name in told))
}

function read(told: Told, name: string): string | undefined {
  return variablesOf(name)
    .map((each) => told[each])
    .find((value) => value !== undefined)
}

/** Spellings that an app takes for another header, each asked for alone where there is no gateway. */
async function forgedWithout(url: string, names: readonly string[]): Promise<readonly string[]> {
  const forged: string[] = []
  for (const batch of batches(names.filter((name) => !/^(?:host|content|transfer)/i.test(name)))) {
    const lines = pairsOf(batch).map((part, i) => (i % 2 === 0 ? `${part}: ` : `${part}\r\n`))
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(`GET / HTTP/1.0\r\nHost: a\r\n${lines.join('')}\r\n`)
    const answer = await text(socket)
    const told = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)) as Told
    for (const [name, value] of Object.entries(told))
      if (value.includes(CANARY) && READ_AS.has(name)) forged.push(name)
  }
  return forged
}

async function askHttp1({ gate, app }: Asking, headers: readonly string[]): Promise<Told> {
  const request = https.request({
    ...{ port: gate.port, host: 'localhost', ca: gate.ca, path: `/${app}`, agent: false },
    headers: ['Host', `localhost:${gate.port}`, ...headers],
  })
  request.end()
  const [response] = await once(request, 'response')
  return JSON.parse(await text(response))
}

async function askWithTrailers({ gate, app, names }: Asking): Promise<Told> {
  const request = https.request({
    ...{ port: gate.port, host: 'localhost', ca: gate.ca, path: `/${app}`, agent: false, method: 'POST' },
    headers: { Host: `localhost:${gate.port}`, TE: 'trailers', 'Transfer-Encoding': 'chunked' },
  })
  request.write('x')
  const pairs = pairsOf(names)
  request.addTrailers(names.map((name, index) => [name, pairs[2 * index + 1]!] as const))
  request.end()
  const [response] = await once(request, 'response')
  return JSON.parse(await text(response))
}

async function askHttp10({ gate, app, names }: Asking): Promise<Told> {
  const socket = tls.connect({ port: gate.port, host: 'localhost', ca: gate.ca, servername: 'localhost' })
  const listed = 'Connection: close, X-Agent-Verdict, X-Real-IP, X-Forwarded-For, Forwarded\r\n'
  const lines = pairsOf(names).map((part, i) => (i % 2 === 0 ? `${part}: ` : `${part}\r\n`))
  socket.write(`GET /${app} HTTP/1.0\r\nHost: localhost:${gate.port}\r\n${listed}${lines.join('')}\r\n`)
  const answer = await text(socket)
  return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))
}

async function askHttp2({ gate, app, names }: Asking): Promise<Told> {
  const session = http2.connect(gate.url, { ca: gate.ca })
  const fields = Object.fromEntries(names.map((name, index) => [name, `${CANARY}${index}`]))
  const stream = session.request({ ...fields, ':path': `/${app}` })
  const answer = await text(stream)
  session.close()
  return JSON.parse(answer)
}
