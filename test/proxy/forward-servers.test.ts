import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import type net from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { test } from 'tap'
import { answerOf, ask, assertClean, groupOf, HEADERS } from './upstream-fixture.ts'

const PEM = readFileSync(new URL('../vectors/localhost.pem', import.meta.url), 'utf8')
const KEY_PAIR = { key: PEM, cert: PEM }
const TRUSTING = { verify: true, ca: PEM, serverName: null }

/** Answers with what it got: the body's hash, headers and trailers; HTTP by Node's own hands. */
function echo(request: http.IncomingMessage, response: http.ServerResponse): void {
  const hash = createHash('sha256')
  request.on('data', (bytes) => hash.update(bytes))
  request.on('end', () => {
    const said = { headers: request.headers, hash: hash.digest('hex'), trailers: request.trailers }
    response.setHeader('Trailer', 'X-End')
    response.setHeader('Set-Cookie', ['a=1', 'b=2; Expires=Thu, 01 Jan 2026 00:00:00 GMT'])
    response.write(JSON.stringify(said))
    response.addTrailers({ 'X-End': 'yes' })
    response.end()
  })
}

async function listening(server: net.Server, where: net.ListenOptions = { port: 0, host: '127.0.0.1' }) {
  server.listen(where)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function stopped(server: http.Server | https.Server): Promise<void> {
  const closing = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closing
}

async function exchangesBodies(group: ReturnType<typeof groupOf>): Promise<void> {
  for (const length of [0, 1, 70_000, 3_000_000]) {
    for (const bodyLength of length === 0 ? [0] : [length, null]) {
      const body = randomBytes(length)
      const trailers = bodyLength === null ? ['X-Sum', '1'] : []
      const asking = ask(group, { method: 'POST', body, bodyLength, trailers, acceptsTrailers: true }, [
        ...HEADERS,
        'TE',
        'trailers',
      ])
      assert.equal((await asking.outcome).kind, 'answered')
      assertClean(asking)
      const said = JSON.parse(asking.exchange.text)
      assert.equal(said.hash, createHash('sha256').update(body).digest('hex'))
      assert.equal(said.headers.host, 'app.example.test')
      assert.deepEqual(said.trailers, bodyLength === null ? { 'x-sum': '1' } : {})
      assert.deepEqual(asking.exchange.endTrailers, ['X-End', 'yes'])
      const { headers } = asking.exchange
      const cookies = headers.filter((_, i) => i % 2 === 1 && headers[i - 1] === 'Set-Cookie')
      assert.deepEqual(cookies, ['a=1', 'b=2; Expires=Thu, 01 Jan 2026 00:00:00 GMT'])
    }
  }
}

test('an app of node:http', async () => {
  const server = http.createServer(echo)
  const port = await listening(server)
  const group = groupOf([`http://127.0.0.1:${port}`])
  await exchangesBodies(group)
  assert.equal(group.counters.connectionsOpened, 1)
  group.close()
  await stopped(server)
})

test('an app that is found by name, on whichever address it listens', async () => {
  const server = http.createServer(echo)
  const port = await listening(server)
  const group = groupOf([`http://localhost:${port}`])
  await exchangesBodies(group)
  group.close()
  await stopped(server)
})

test('an app on a unix socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'upstream-'))
  const server = http.createServer(echo)
  await listening(server, { path: join(folder, 'app.sock') })
  const group = groupOf([`unix:${join(folder, 'app.sock')}`])
  await exchangesBodies(group)
  group.close()
  await stopped(server)
  rmSync(folder, { recursive: true })
})

test('an app with TLS', async (t) => {
  const reused: boolean[] = []
  const names: (string | false | null)[] = []
  const server = https.createServer({ ...KEY_PAIR, ALPNProtocols: ['http/1.1'] }, echo)
  server.on('secureConnection', (socket: TLSSocket) => {
    reused.push(socket.isSessionReused())
    names.push((socket as TLSSocket & { servername: string | false }).servername)
  })
  const port = await listening(server, { port: 0 })
  t.test('bodies, and sessions that are resumed', async () => {
    const group = groupOf([`https://localhost:${port}`], { tls: TRUSTING, connectionsIdleMax: 0 })
    await exchangesBodies(group)
    assert.equal(reused[0], false)
    assert.ok(reused.slice(1).every(Boolean), 'each later handshake is a short one')
    assert.ok(names.every((name) => name === 'localhost'))
    group.close()
  })
  const refusals: Readonly<Record<string, Parameters<typeof groupOf>[1]>> = {
    'an untrusted certificate': { tls: { verify: true, ca: null, serverName: null } },
    'a certificate for another name': { tls: { verify: true, ca: PEM, serverName: 'other.example.test' } },
  }
  for (const [name, changes] of Object.entries(refusals)) {
    t.test(name, async () => {
      const group = groupOf([`https://localhost:${port}`], changes)
      const outcome = await ask(group).outcome
      assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'tls 502')
      group.close()
    })
  }
  t.test('its name told apart from where it is', async () => {
    const group = groupOf([`https://127.0.0.1:${port}`], { tls: { ...TRUSTING, serverName: 'localhost' } })
    await answerOf(group)
    group.close()
  })
  t.test('unchecked, where the operator says so', async () => {
    const group = groupOf([`https://127.0.0.1:${port}`], {
      tls: { verify: false, ca: null, serverName: null },
    })
    await answerOf(group)
    group.close()
  })
  t.test('a slow client, and a last record that comes although it was told to wait', async () => {
    const app = https.createServer(KEY_PAIR, (_, response) => response.end(Buffer.alloc(40_000)))
    const group = groupOf([`https://localhost:${await listening(app, { port: 0 })}`], {
      tls: TRUSTING,
      headTimeoutMs: 2000,
    })
    for (let i = 0; i < 5; i++) {
      const asking = ask(group)
      asking.exchange.isSlow = true
      while (asking.outcomes.length === 0) {
        await new Promise(setImmediate)
        asking.exchange.onDrain?.()
      }
      assert.equal(asking.outcomes[0]!.kind, 'answered')
      assert.equal(Buffer.concat(asking.exchange.chunks).length, 40_000)
    }
    assert.equal(group.counters.connectionsOpened, 1)
    group.close()
    await stopped(app)
  })
  t.test('plain text to it, and TLS to a server without TLS', async () => {
    const plain = groupOf([`http://localhost:${port}`])
    const first = await ask(plain).outcome
    assert.equal(first.kind, 'failed')
    plain.close()
    const app = http.createServer(echo)
    const tls = groupOf([`https://localhost:${await listening(app)}`])
    const second = await ask(tls).outcome
    assert.equal(second.kind === 'failed' && second.reason, 'tls')
    tls.close()
    await stopped(app)
  })
  t.teardown(() => stopped(server))
})

test('an app that answers before it has read: 413 and a closed connection', async () => {
  const server = http.createServer((_, response) => {
    response.writeHead(413, { connection: 'close', 'content-length': 3 })
    response.end('big')
  })
  const port = await listening(server)
  const group = groupOf([`http://127.0.0.1:${port}`])
  for (let i = 0; i < 20; i++) {
    const body = new PassThrough()
    const { exchange, outcome } = ask(group, { method: 'POST', body, bodyLength: 1_000_000 })
    body.write(Buffer.alloc(1000))
    await exchange.until('answered')
    assert.equal((await outcome).kind, 'answered')
    assert.equal(exchange.text, 'big')
    body.destroy()
  }
  group.close()
  await stopped(server)
})

test('server-sent events come as they are sent, and go when the client does', async () => {
  let isOpen = false
  const server = http.createServer((_, response) => {
    isOpen = true
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 0\n\n')
    response.on('close', () => {
      isOpen = false
      server.emit('left')
    })
    server.on('more', (text: string) => response.write(text))
  })
  const port = await listening(server)
  const group = groupOf([`http://127.0.0.1:${port}`], { headTimeoutMs: 200, keepAliveMs: 200 })
  const { exchange, outcome } = ask(group)
  await exchange.until('written')
  for (let i = 1; i <= 3; i++) {
    await new Promise((resolve) => setTimeout(resolve, 150))
    server.emit('more', `data: ${i}\n\n`)
    await exchange.until('written')
  }
  assert.equal(exchange.text, 'data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\n')
  assert.equal(isOpen, true)
  exchange.leave()
  assert.equal((await outcome).kind, 'client-gone')
  await once(server, 'left')
  group.close()
  await stopped(server)
})

test('an idle connection is kept for ever where nothing says how long, and no longer than the app says', async () => {
  for (const [keepAliveTimeout, opened] of [
    [0, 1],
    [2_000, 1],
    [1_000, 2], // which is what we stay away from its end
  ] as const) {
    const server = http.createServer({ keepAliveTimeout }, echo)
    const port = await listening(server)
    const group = groupOf([`http://127.0.0.1:${port}`], { keepAliveMs: 0 })
    await answerOf(group)
    await new Promise((resolve) => setTimeout(resolve, 400))
    assert.equal(group.status[0]!.idle, 2 - opened)
    await answerOf(group)
    assert.equal(group.counters.connectionsOpened, opened, `${keepAliveTimeout}`)
    group.close()
    await stopped(server)
  }
})

test('an app that is started again between two requests is not noticed', async () => {
  const first = http.createServer(echo)
  const port = await listening(first)
  const group = groupOf([`http://127.0.0.1:${port}`])
  await Promise.all([answerOf(group), answerOf(group), answerOf(group)])
  await stopped(first)
  const second = http.createServer(echo)
  await listening(second, { port, host: '127.0.0.1' })
  await Promise.all([answerOf(group), answerOf(group), answerOf(group)])
  group.close()
  await stopped(second)
})
