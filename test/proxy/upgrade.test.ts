import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { ClientConnection } from '../../src/proxy/connection/connection.ts'
import { Http1Upgrade } from '../../src/proxy/http/http1-upgrade.ts'
import type { UpgradeOutcome } from '../../src/proxy/request/upgrade.ts'
import type { UpstreamSettings } from '../../src/proxy/upstream/upstream.ts'
import { dialTls, listenOn, type Peer } from './front.ts'
import { testCa, testLeaf } from './test-certificates.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { until } from './test-worker.ts'
import { eachHead, settingsFor, upstream } from './upstream-fixture.ts'
import {
  acceptOf,
  agreement,
  BINARY,
  CLOSE,
  echoer,
  frame,
  KEY,
  maskedFrame,
  opening,
  TEXT,
} from './web-socket.ts'

const DECISION_ID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}/

test('a WebSocket client and server talk as if directly connected', async (t) => {
  const { gate } = await gateTo(t, echoApp)
  const socket = new WebSocket(`ws://127.0.0.1:${gate.plain.port}/chat?room=1`)
  socket.binaryType = 'arraybuffer'
  await event(socket, 'open')
  for (const message of ['hello', 'x'.repeat(70_000), 'grüße']) {
    socket.send(message)
    assert.equal((await event(socket, 'message')).data, message)
  }
  const bytes = Uint8Array.from({ length: 1_000_000 }, (_, index) => index % 251)
  socket.send(bytes)
  assert.deepEqual(new Uint8Array((await event(socket, 'message')).data as ArrayBuffer), bytes)
  assert.equal(gate.context.upgrades.count, 1)
  assert.equal(gate.plain.listener.counts.upgraded, 1)
  const closed = event(socket, 'close')
  socket.close(1000, 'enough')
  assert.equal((await closed).code, 1000)
  await untilNothingIsLeft(gate)
  assert.deepEqual(gate.done, [{ verdict: 'unknown', action: 'tag', status: 101 }])
  assert.equal(gate.context.defaultUpstream.counters.answered, 1)
})

test('bytes behind the request, and behind the answer, are not lost', async (t) => {
  for (const dial of [dialPlain, dialSecure]) {
    const { gate, app } = await gateTo(t, (socket, head) => {
      const first = frame(TEXT, Buffer.from('first'))
      echoApp(socket, head, first)
    })
    const peer = await dial(portOf(gate, dial))
    const early = maskedFrame(TEXT, Buffer.from('early'))
    peer.write(Buffer.concat([Buffer.from(opening('/', 'app.example.test')), early]))
    peer.write(maskedFrame(TEXT, Buffer.from('later')))
    await peer.hears('later')
    const frames = ['first', 'early', 'later'].map((text) =>
      frame(TEXT, Buffer.from(text)).toString('latin1'),
    )
    assert.ok(peer.text.endsWith(`\r\n\r\n${frames.join('')}`), JSON.stringify(peer.text))
    peer.write(maskedFrame(CLOSE, Buffer.alloc(0)))
    await peer.hears('\x88\x00')
    peer.socket.end()
    await peer.closed
    await untilNothingIsLeft(gate, app)
  }
})

test('the app is asked what the client asked, and the client is answered what the app answered', async (t) => {
  const answer = [
    'HTTP/1.1 101 Switching Protocols',
    'uPgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Accept: ${acceptOf(KEY)}`,
    'Set-Cookie: a=1; Path=/',
    'X-Twice: one',
    'Set-Cookie: b=2; Expires=Thu, 01 Jan 2026 00:00:00 GMT',
    'Age: 1',
    'Age: 2',
    'x-twice: two, three',
    'X-Latin: caf\xe9',
  ]
  const { gate, heads } = await gateTo(t, (socket) => {
    socket.write(`${answer.join('\r\n')}\r\n\r\n`, 'latin1')
  })
  const path = `/a{b}//c/%2e%2e/..;/d\\e?q='x'&u=http://y|z^\`"<>`
  const peer = await dialPlain(gate.plain.port)
  const more = ['Sec-WebSocket-Protocol: one, two', 'X-Latin: caf\xe9', 'Cookie: c=3', 'Expect: 100-continue']
  peer.write(opening(path, 'App.example.test:8443', ...more))
  await peer.hears('\r\n\r\n')
  assert.deepEqual(sorted(peer.text.trimEnd().split('\r\n')), sorted(answer))
  const head = heads[0]!.split('\r\n')
  assert.equal(head[0], `GET ${path} HTTP/1.1`)
  const kept = ['Host: App.example.test:8443', 'Upgrade: websocket', 'Connection: Upgrade']
  for (const line of [...kept, ...more.slice(0, 3), `Sec-WebSocket-Key: ${KEY}`]) {
    assert.equal(head.filter((each) => each === line).length, 1, line)
  }
  assert.ok(!head.some((line) => /^expect:/i.test(line)))
  peer.socket.destroy()
  await untilNothingIsLeft(gate)
})

test('whatever bytes a request has, it is carried or refused, and breaks nothing', async (t) => {
  const { gate, app } = await gateTo(t, (socket) =>
    socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${agreement('')}`),
  )
  const lines: string[] = []
  for (let code = 0; code < 256; code++) {
    const character = String.fromCharCode(code)
    lines.push(`X-Odd: a${character}b`, `X${character}Odd: a`, `Upgrade: ${character}`)
  }
  lines.push('Upgrade: a, b', 'Expect: 100-continue', 'Expect: x', 'TE: trailers', 'Trailer: a', 'Cookie: a')
  for (const line of lines) {
    const peer = await dialPlain(gate.plain.port)
    peer.socket.end(Buffer.from(opening('/', 'a.example.test', 'Cookie: b', line), 'latin1'))
    await peer.closed
    // A client that closed its side may leave before the answer.
    assert.match(peer.text, /^(?:HTTP\/1\.1 (?:101|[45]\d\d) |$)/, JSON.stringify(line))
  }
  await untilNothingIsLeft(gate, app)
})

test('a request that cannot be written is refused, and nothing is thrown', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const { upgrades, defaultUpstream } = gate.context
  const socket = net.connect(app.port, '127.0.0.1')
  const outcomes: UpgradeOutcome[] = []
  const connection = new ClientConnection(1, socket, false, '127.0.0.1')
  const head = { method: 'GET', target: '/', version: '11', rawHeaders: [], hasOddNames: false } as const
  upgrades.carry({
    ...{ upgrade: new Http1Upgrade(connection, head, 'a', 'websocket', Buffer.alloc(0)), idleMs: 0 },
    headers: ['Host', 'a.example.test', 'X-Odd', 'a\nb'],
    target: defaultUpstream.pick([])!.address,
    times: { connectTimeoutMs: 0, headTimeoutMs: 0, idleTimeoutMs: 0 },
    idled: () => assert.fail('it has not begun'),
    done: (outcome) => void outcomes.push(outcome),
  })
  assert.deepEqual(outcomes, [{ kind: 'failed', reason: 'bad-request' }])
  assert.equal(upgrades.count, 0)
  socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('an app that declines is heard to its end, whatever its answer is like', async (t) => {
  const long = 'x'.repeat(1_000_000)
  const chunked = `${(900_000).toString(16)}\r\n${'x'.repeat(900_000)}\r\n186a0\r\n${'x'.repeat(100_000)}\r\n0\r\n\r\n`
  const answers: readonly [title: string, answer: string, body: string][] = [
    [
      'a length',
      `HTTP/1.1 403 No\r\nContent-Length: 1000000\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n${long}`,
      long,
    ],
    ['chunks', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Latin: \xe9\r\n\r\n${chunked}`, long],
    ['an end', `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${long}`, long],
    ['no body', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', ''],
    ['HTTP/1.0', 'HTTP/1.0 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno', 'no'],
  ]
  let answer = ''
  const { gate, app } = await gateTo(t, (socket) => {
    if (answer.includes('Connection: close')) socket.end(answer, 'latin1')
    else socket.write(answer, 'latin1')
  })
  for (const [title, bytes, body] of answers) {
    answer = bytes
    const before = gate.done.length
    for (const dial of [dialPlain, dialSecure]) {
      const peer = await dial(portOf(gate, dial), { allowHalfOpen: title === 'no body' })
      peer.write(opening('/', 'app.example.test'))
      await once(peer.socket, 'end')
      await untilNothingIsLeft(gate, app)
      const [head, ...rest] = peer.text.split('\r\n\r\n')
      assert.equal(rest.join('\r\n\r\n') === body, true, `${title}: ${peer.byteCount} bytes`)
      assert.match(head!, /\r\nConnection: close$/, title)
      assert.doesNotMatch(head!, /Transfer-Encoding/i, title)
      assert.equal(head!.match(/Set-Cookie/g)?.length ?? 0, title === 'a length' ? 2 : 0)
    }
    const status = Number(bytes.slice(9, 12))
    assert.deepEqual(
      gate.done.slice(before).map((each) => each.status),
      [status, status],
      title,
    )
  }
})

test('an answer that is cut off is seen to be cut off', async (t) => {
  const heads = ['Content-Length: 1000', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc']
  for (const head of heads) {
    for (const dial of [dialPlain, dialSecure]) {
      const parts: net.Socket[] = []
      const { gate, app } = await gateTo(t, (socket) => {
        parts.push(socket)
        socket.write(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n`)
      })
      const peer = await dial(portOf(gate, dial))
      let hasEnded = false
      peer.socket.on('end', () => (hasEnded = true))
      peer.write(opening('/', 'app.example.test'))
      await peer.hears(head.endsWith('abc') ? 'abc' : '\r\n\r\n')
      parts[0]!.resetAndDestroy()
      const error = await peer.closed
      // TLS says by its close_notify whether it was the end; TCP by a reset.
      if (dial === dialPlain) assert.equal(error, 'ECONNRESET')
      assert.ok(!hasEnded || dial === dialSecure)
      await untilNothingIsLeft(gate, app)
    }
  }
})

test('a client that leaves while it is declined lets go of the app', async (t) => {
  const { gate, app } = await gateTo(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n')
  })
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.hears('abc')
  peer.socket.resetAndDestroy()
  await untilNothingIsLeft(gate, app)
})

test('an unreachable app is reported, with the decision id', async (t) => {
  const { gate } = await gateTo(t, echoApp)
  const closed = await closedPort()
  const { gate: lost } = await gateAt(t, [settingsFor([`http://127.0.0.1:${closed}`])])
  for (const accept of ['text/html', 'application/json']) {
    const peer = await dialSecure(lost.secure.port, { allowHalfOpen: true })
    peer.write(opening('/', 'app.example.test', `Accept: ${accept}`))
    await once(peer.socket, 'end')
    assert.match(peer.text, /^HTTP\/1\.1 502 Bad Gateway\r\n/)
    const id = DECISION_ID.exec(peer.text)?.[0]
    assert.equal(peer.text.split(id!).length, 3, 'in a header and in the body')
    if (accept === 'text/html') assert.match(peer.text, /<!doctype html>/)
    else assert.match(peer.text, /"code":"upstream_refused"/)
  }
  await untilNothingIsLeft(lost)
  assert.deepEqual(
    lost.done.map(({ status }) => status),
    [502, 502],
  )
  assert.equal(lost.context.defaultUpstream.counters.failed.refused, 2)
  assert.equal(gate.done.length, 0)
})

test('where one target cannot be reached, another one is asked', async (t) => {
  const app = await upstream((socket) => eachHead(socket, (head) => echoApp(socket, head)))
  t.teardown(() => app.settled())
  for (const other of [`http://127.0.0.1:${await closedPort()}`, 'h2c://127.0.0.1:1']) {
    const { gate } = await gateAt(t, [settingsFor([other, app.url])])
    for (let i = 0; i < 2; i++) {
      const peer = await dialPlain(gate.plain.port)
      const early = maskedFrame(TEXT, Buffer.from('early')).toString('latin1')
      peer.write(opening('/', 'app.example.test') + early)
      await peer.hears(frame(TEXT, Buffer.from('early')).toString('latin1'))
      peer.socket.destroy()
    }
    await untilNothingIsLeft(gate, app)
    assert.ok(gate.context.defaultUpstream.counters.retries > 0)
  }
})

test('an app that does not answer in time is reported', async (t) => {
  const { gate, app } = await gateTo(t, () => {}, { headTimeoutMs: 60 })
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.closed
  assert.match(peer.text, /^HTTP\/1\.1 504 .*"code":"upstream_head_timeout"/s)
  await untilNothingIsLeft(gate, app)
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [504],
  )
})

test('an app that never finishes its TLS handshake is reported', async (t) => {
  const app = await upstream((socket) => void socket.resume())
  t.teardown(() => app.settled())
  const url = app.url.replace('http:', 'https:')
  const { gate } = await gateAt(t, [settingsFor([url], { connectTimeoutMs: 60, headTimeoutMs: 0 })])
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.closed
  assert.match(peer.text, /^HTTP\/1\.1 504 .*"code":"upstream_connect_timeout"/s)
  await untilNothingIsLeft(gate, app)
})

test('an app that does not speak HTTP is a bad gateway', async (t) => {
  for (const [answer, code] of [
    ['SSH-2.0-x\r\n\r\n', 'upstream_bad_response'],
    ['', 'upstream_reset'],
  ] as const) {
    const { gate, app } = await gateTo(t, (socket) => void socket.end(answer))
    const peer = await dialPlain(gate.plain.port)
    peer.write(opening('/', 'app.example.test'))
    await peer.closed
    assert.match(peer.text, /^HTTP\/1\.1 502 /)
    assert.match(peer.text, new RegExp(`"code":"${code}"`))
    await untilNothingIsLeft(gate, app)
  }
})

test('a client that leaves before the answer takes the request back', async (t) => {
  const ways: readonly ((peer: Peer) => void)[] = [
    (peer) => peer.socket.destroy(),
    (peer) => peer.socket.resetAndDestroy(),
    (peer) => peer.socket.end(),
  ]
  for (const leave of ways) {
    for (const dial of [dialPlain, dialSecure]) {
      const { gate, app, heads } = await gateTo(t, () => {}, { headTimeoutMs: 0 })
      const peer = await dial(portOf(gate, dial), { allowHalfOpen: true })
      peer.write(`${opening('/', 'app.example.test')}early`)
      await until(() => heads.length === 1)
      if (dial === dialSecure && leave === ways[1]) peer.socket.destroy()
      else leave(peer)
      await untilNothingIsLeft(gate, app)
      assert.deepEqual(gate.done, [{ verdict: 'unknown', action: 'tag', status: 0 }])
      assert.equal(gate.context.defaultUpstream.counters.clientGone, 1)
    }
  }
})

test('the end of one side ends the other, and no HTTP is written after the upgrade', async (t) => {
  const ways: readonly [string, (client: net.Socket, app: net.Socket) => void][] = [
    ['client ends', (client) => client.end()],
    ['client goes', (client) => client.destroy()],
    ['app ends', (_, app) => app.end()],
    ['app resets', (_, app) => app.resetAndDestroy()],
    ['client resets', (client) => client.resetAndDestroy()],
  ]
  for (const [title, leave] of ways) {
    for (const dial of title === 'client resets' ? [dialPlain] : [dialPlain, dialSecure]) {
      const sockets: net.Socket[] = []
      const { gate, app } = await gateTo(t, (socket, head) => {
        sockets.push(socket)
        socket.on('end', () => socket.end())
        socket.write(agreement(head))
      })
      const peer = await dial(portOf(gate, dial))
      peer.write(opening('/', 'app.example.test'))
      await peer.hears('\r\n\r\n')
      const before = peer.text
      assert.equal(gate.context.upgrades.count, 1, title)
      leave(peer.socket, sockets[0]!)
      await peer.closed
      assert.equal(peer.text, before, title)
      await untilNothingIsLeft(gate, app)
      assert.deepEqual(
        gate.done.map(({ status }) => status),
        [101],
        title,
      )
    }
  }
})

test('what one side said last arrives before its end', async (t) => {
  const last = 'y'.repeat(2_000_000)
  const { gate, app } = await gateTo(t, (socket, head) => {
    socket.write(agreement(head))
    socket.end(last)
  })
  for (const dial of [dialPlain, dialSecure]) {
    const peer = await dial(portOf(gate, dial))
    peer.write(opening('/', 'app.example.test'))
    await peer.closed
    assert.equal(peer.text.length - peer.text.indexOf('\r\n\r\n') - 4, last.length)
  }
  await untilNothingIsLeft(gate, app)
})

test('a WebSocket that is silent too long is ended; one that talks is not', async (t) => {
  const { gate, app } = await gateTo(t, echoApp, {}, { context: { upgradeIdleTimeoutMs: 1000 } })
  const [silent, talking] = [await dialPlain(gate.plain.port), await dialPlain(gate.plain.port)]
  for (const peer of [silent, talking]) peer.write(opening('/', 'app.example.test'))
  await talking.hears('\r\n\r\n')
  const timer = setInterval(() => talking.write(maskedFrame(TEXT, Buffer.from('x'))), 20)
  t.teardown(() => clearInterval(timer))
  await silent.closed
  await until(() => gate.context.upgrades.count === 1)
  assert.equal(talking.socket.destroyed, false)
  clearInterval(timer)
  await talking.closed
  await untilNothingIsLeft(gate, app)
})

test('a drain gives a WebSocket its grace, and a request to become one its answer', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.hears('\r\n\r\n')
  const drained = gate.plain.listener.drain(20_000, 1500)
  peer.write(maskedFrame(BINARY, Buffer.from('still here')))
  await peer.hears('still here')
  await drained
  await untilNothingIsLeft(gate, app)
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [101],
  )
})

test('what is still going on can be ended', async (t) => {
  const { gate, app } = await gateTo(t, echoApp)
  const peer = await dialSecure(gate.secure.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.hears('\r\n\r\n')
  gate.context.upgrades.close()
  await peer.closed
  await untilNothingIsLeft(gate, app)
})

test('an app behind TLS is known by the name in its URL, whatever host the client asks for', async (t) => {
  const ca = await testCa()
  const names: (string | false)[] = []
  const app = https.createServer({ ...(await certificateOf(ca, ['localhost'])) })
  app.on('secureConnection', (socket) => names.push(socket.servername ?? false))
  const port = await serving(t, app)
  const trusting = { verify: true, ca: ca.certificate, serverName: null }
  const cases: readonly [url: string, tls: UpstreamSettings['tls'], name: string | false | null][] = [
    [`https://localhost:${port}`, trusting, 'localhost'],
    [`https://127.0.0.1:${port}`, trusting, false],
    [`https://127.0.0.1:${port}`, { ...trusting, serverName: 'localhost' }, 'localhost'],
    [`https://localhost:${port}`, { ...trusting, serverName: 'other.example.test' }, null],
    [`https://localhost:${port}`, { ...trusting, ca: null }, null],
    [`https://localhost:${port}`, { ...trusting, ca: null, verify: false }, 'localhost'],
  ]
  for (const [url, tls, name] of cases) {
    const { gate } = await gateAt(t, [settingsFor([url], { tls, retries: 0 })])
    const peer = await dialPlain(gate.plain.port)
    peer.write(opening('/', 'shop.example.test'))
    await peer.hears('\r\n\r\n')
    assert.match(peer.text, name === null ? /^HTTP\/1\.1 502 .*"code":"upstream_tls"/s : /^HTTP\/1\.1 101 /)
    if (name !== null) {
      assert.equal(names.at(-1), name, url)
      peer.write(maskedFrame(TEXT, Buffer.from('hello')))
      await peer.hears('hello')
    }
    peer.socket.destroy()
    await untilNothingIsLeft(gate)
  }
})

test('an app at a socket of the file system is spoken to as well', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'app')
  await serving(t, http.createServer(), path)
  const { gate } = await gateAt(t, [settingsFor([`unix:${path}`])])
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'app.example.test'))
  await peer.hears('101 Switching')
  peer.socket.destroy()
  await untilNothingIsLeft(gate)
})

test('an upstream with a host of its own is asked by that', async (t) => {
  const { gate, app, heads } = await gateTo(t, echoApp, { host: 'upstream' })
  const peer = await dialPlain(gate.plain.port)
  peer.write(opening('/', 'shop.example.test'))
  await peer.hears('\r\n\r\n')
  const hosts = heads[0]!.split('\r\n').filter((line) => /^host:/i.test(line))
  assert.deepEqual(hosts, [`Host: 127.0.0.1:${app.port}`])
  assert.match(heads[0]!, /^X-Forwarded-Host: shop.example.test\r$/m)
  peer.socket.destroy()
  await untilNothingIsLeft(gate, app)
})

test('HTTP/2 to an upstream carries no upgrade: that is reported, and counts against no target', async (t) => {
  const { gate } = await gateAt(t, [settingsFor(['h2c://127.0.0.1:1', 'h2c://127.0.0.1:2'])])
  for (let i = 0; i < 10; i++) {
    const peer = await dialPlain(gate.plain.port)
    peer.write(opening('/', 'app.example.test'))
    await peer.closed
    assert.match(peer.text, /^HTTP\/1\.1 502 /)
  }
  assert.ok(gate.context.defaultUpstream.status.every(({ isHealthy }) => isHealthy))
  await untilNothingIsLeft(gate)
})

test('a request that is refused ends its connection, also when the client does not, and said more', async (t) => {
  const { gate, heads } = await gateTo(t, echoApp)
  gate.judgeBy({ rules: [{ name: 'no', when: {}, action: { block: { status: 451 } } }] })
  for (const dial of [dialPlain, dialSecure]) {
    for (const more of ['', 'x'.repeat(1000)]) {
      const peer = await dial(portOf(gate, dial), { allowHalfOpen: true })
      peer.write(opening('/', 'app.example.test', 'Accept: text/html') + more)
      await peer.hears('</html>')
      assert.match(peer.text, /^HTTP\/1\.1 451 .*X-Content-Type-Options: nosniff.*Connection: close/s)
      peer.socket.write('and more')
    }
  }
  await untilNothingIsLeft(gate)
  assert.equal(heads.length, 0)
  assert.ok(gate.done.every(({ action, status }) => action === 'block' && status === 451))
})

test('a request that is held is answered in the end, and let go when the client leaves', async (t) => {
  const { gate } = await gateTo(t, echoApp)
  const tarpit = (delay: string) =>
    gate.judgeBy({ rules: [{ name: 'slow', when: {}, action: { tarpit: { delay, connections_max: 2 } } }] })
  tarpit('50ms')
  const patient = await dialPlain(gate.plain.port)
  patient.write(opening('/', 'app.example.test'))
  await patient.hears('HTTP/1.1 403')
  assert.equal(gate.context.tarpit.held, 0)
  tarpit('5m')
  for (const leave of ['destroy', 'end', 'resetAndDestroy'] as const) {
    for (const dial of leave === 'resetAndDestroy' ? [dialPlain] : [dialPlain, dialSecure]) {
      const peer = await dial(portOf(gate, dial), { allowHalfOpen: true })
      peer.write(`${opening('/', 'app.example.test')}early`)
      await until(() => gate.context.tarpit.held === 1)
      peer.socket[leave]()
      await until(() => gate.context.tarpit.held === 0)
    }
  }
  await untilNothingIsLeft(gate)
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [403, 0, 0, 0, 0, 0],
  )
})

type Serve = (socket: net.Socket, head: string) => void

/** A gate before an app that does this once it has been asked. */
async function gateTo(
  t: Test,
  serve: Serve,
  changes: Partial<UpstreamSettings> = {},
  plan: Partial<GatePlan> = {},
) {
  const heads: string[] = []
  const app = await upstream((socket) => {
    eachHead(socket, (head, index) => {
      if (index > 0) return
      heads.push(head)
      serve(socket, head)
    })
  })
  const found = await gateAt(t, [settingsFor([app.url], changes)], plan)
  t.teardown(() => app.settled())
  return { ...found, app, heads }
}

async function gateAt(t: Test, upstreams: readonly UpstreamSettings[], plan: Partial<GatePlan> = {}) {
  return { gate: await startGate(t, { ...plan, upstreams }) }
}

/** RFC 6455, by hand. */
function echoApp(socket: net.Socket, head: string, first: Uint8Array = Buffer.alloc(0)): void {
  const echo = echoer(() => socket.end()) // the server is the first to close (RFC 6455 §7.1.1)
  socket.removeAllListeners('data')
  socket.on('data', (bytes: Buffer) => socket.write(echo(bytes)))
  socket.on('end', () => socket.end())
  socket.write(Buffer.concat([Buffer.from(agreement(head)), first]))
}

async function serving(t: Test, app: http.Server | https.Server, path?: string): Promise<number> {
  const open = new Set<net.Socket>()
  app.on('upgrade', (request: http.IncomingMessage, socket: net.Socket) => {
    open.add(socket)
    socket.on('error', () => {})
    echoApp(socket, `Sec-WebSocket-Key: ${request.headers['sec-websocket-key']}\r\n`)
  })
  if (path === undefined) app.listen(0)
  else app.listen(path)
  await once(app, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    app.closeAllConnections()
    app.close()
  })
  return path === undefined ? (app.address() as net.AddressInfo).port : 0
}

async function certificateOf(ca: Awaited<ReturnType<typeof testCa>>, names: readonly string[]) {
  const { certificate, key } = await testLeaf(ca, names)
  return { cert: certificate, key }
}

async function closedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function dialPlain(port: number, options: { allowHalfOpen?: boolean } = {}): Promise<Peer> {
  const socket = net.connect({ port, host: '127.0.0.1', ...options })
  const peer = listenOn(socket)
  await once(socket, 'connect')
  return peer
}

function dialSecure(port: number, options: object = {}): Promise<Peer> {
  return dialTls(port, options)
}

function portOf(gate: Gate, dial: typeof dialPlain | typeof dialSecure): number {
  return dial === dialPlain ? gate.plain.port : gate.secure.port
}

async function untilNothingIsLeft(
  gate: Gate,
  app?: { readonly sockets: ReadonlySet<net.Socket> },
): Promise<void> {
  const { upgrades, tarpit } = gate.context
  const open = () => gate.plain.listener.counts.connections + gate.secure.listener.counts.connections
  await until(
    () => upgrades.count === 0 && tarpit.held === 0 && open() === 0 && (app?.sockets.size ?? 0) === 0,
  )
}

async function event(
  socket: WebSocket,
  name: 'open' | 'message' | 'close',
): Promise<{ data?: unknown; code?: number }> {
  return new Promise((resolve, reject) => {
    socket.addEventListener(name, resolve as () => void, { once: true })
    socket.addEventListener('error', () => reject(new Error(`error before ${name}`)), { once: true })
  })
}

function sorted(lines: readonly string[]): string[] {
  return lines.map((line) => line.toLowerCase()).sort()
}
