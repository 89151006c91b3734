import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { BEAT_MS, Beat } from '../../src/proxy/connection/beat.ts'
import { HealthCheck } from '../../src/proxy/upstream/health-check.ts'
import { UpstreamGroup, upstreamCounters } from '../../src/proxy/upstream/upstream.ts'
import { parseUpstreamUrl } from '../../src/proxy/upstream/upstream-dial.ts'
import type { Pool } from '../../src/proxy/upstream/upstream-pool.ts'
import { TargetHealth } from '../../src/proxy/upstream/upstream-health.ts'
import {
  answering,
  answerOf,
  ask,
  assertClean,
  closed,
  eachHead,
  groupOf,
  settingsFor,
  upstream,
} from './upstream-fixture.ts'

const TLS = { verify: true, ca: null, serverName: null }
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

test('where an upstream is', async () => {
  const cases: readonly (readonly [string, Partial<ReturnType<typeof parseUpstreamUrl>>])[] = [
    ['http://app', { protocol: 'h1', host: 'app', port: 80, authority: 'app', tls: null }],
    ['http://app:8080/', { host: 'app', port: 8080, authority: 'app:8080' }],
    ['HTTPS://App.Example.test', { protocol: 'h1', port: 443, authority: 'App.Example.test', tls: TLS }],
    ['https://app:80', { port: 80, authority: 'app:80', tls: TLS }],
    ['h2c://app', { protocol: 'h2', port: 80, authority: 'app', tls: null }],
    ['h2://app:444', { protocol: 'h2', port: 444, authority: 'app:444', tls: TLS }],
    ['http://[::1]:3000', { host: '::1', port: 3000, authority: '[::1]:3000' }],
    ['http://127.0.0.1:65535', { host: '127.0.0.1', port: 65_535 }],
    [
      'unix:/run/app.sock',
      { protocol: 'h1', socketPath: '/run/app.sock', authority: 'localhost', tls: null },
    ],
  ]
  for (const [url, expected] of cases) {
    const address = parseUpstreamUrl(url, TLS)
    assert.deepEqual({ ...address, ...expected, url }, address, url)
  }
  const bad = [
    ...[
      '',
      'app',
      'app:80',
      'http:app',
      'http:///',
      'http://',
      'ftp://app',
      'http://app:0',
      'http://app:65536',
    ],
    ...[
      'http://app:',
      'http://app:x',
      'http://user@app',
      'http://user:word@app',
      'http://app/path',
      'http://app?q',
    ],
    ...['http://app#x', 'http://a b', 'http://app\n', 'http://[::1', 'unix:app.sock', 'unix:', ' http://app'],
  ]
  for (const url of bad) assert.throws(() => parseUpstreamUrl(url, TLS), Fault, JSON.stringify(url))
})

test('reports an invalid URL at once', async () => {
  assert.throws(() => groupOf(['http://127.0.0.1:1', 'nonsense']), { code: 'UPSTREAM_INVALID' })
})

test('the coarse clock: never early, not very late, and stopped when unused', async () => {
  const alive = setTimeout(() => {}, 60_000) // the clock's own timer keeps no process alive
  const beat = new Beat()
  const start = performance.now()
  const at = await new Promise<number>((resolve) => {
    const member = {
      deadlineMs: 0,
      sweep(nowMs: number) {
        if (nowMs < this.deadlineMs) return
        beat.leave(member)
        resolve(performance.now())
      },
    }
    beat.join(member)
    beat.join(member)
    member.deadlineMs = beat.after(50)
  })
  clearTimeout(alive)
  assert.ok(at - start >= 50 && at - start < 50 + 5 * BEAT_MS, `${at - start} ms`)
  assert.equal(beat.after(0), Number.POSITIVE_INFINITY)
  const still = beat.nowMs
  await new Promise((resolve) => setTimeout(resolve, 2 * BEAT_MS))
  assert.equal(beat.nowMs, still)
})

test('health: failures in a row take a target out, and one request at a time brings it back', async () => {
  const health = new TargetHealth({ unhealthyAfter: 3, healthyAfter: 1 })
  health.failed(0, 0, 'refused')
  health.failed(0, 0, 'refused')
  health.succeeded()
  health.failed(0, 0, 'refused')
  health.failed(0, 0, 'refused')
  assert.ok(health.mayTry(0) && health.isHealthy)
  assert.equal(health.failed(0, 0, 'refused'), true)
  assert.ok(!health.mayTry(999) && !health.isHealthy)
  assert.equal(health.failed(500, 0, 'refused'), false, 'what was under way says nothing new')
  assert.ok(health.mayTry(1000))
  health.tried()
  assert.ok(!health.mayTry(1000), 'one at a time')
  health.abstained()
  assert.ok(health.mayTry(1000), 'the client had gone')
  health.tried()
  assert.equal(health.failed(1000, 0, 'refused'), false, 'it was out before')
  assert.ok(!health.mayTry(2999) && health.mayTry(3000), 'and for longer')
  health.tried()
  health.succeeded()
  assert.ok(health.isHealthy && health.mayTry(3000))
  health.tried()
  assert.ok(health.mayTry(3000), 'many at a time again')
})

test('health: the pause grows to a bound, and chance only shortens it', async () => {
  const pauses = (chance: number) => {
    const health = new TargetHealth({ unhealthyAfter: 1, healthyAfter: 1 })
    const found: number[] = []
    for (let nowMs = 0; found.length < 8; ) {
      health.failed(nowMs, chance, 'refused')
      let low = 0
      for (let high = 100_000; low < high; ) {
        const middle = (low + high) >> 1
        if (health.mayTry(nowMs + middle)) high = middle
        else low = middle + 1
      }
      found.push(low)
      nowMs += low
      health.tried()
    }
    return found
  }
  assert.deepEqual(pauses(0), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  const shortest = pauses(0.999)
  for (const [i, pause] of pauses(0).entries()) assert.ok(shortest[i]! >= pause * 0.8 && shortest[i]! < pause)
})

test('health: active checks in a row take a target out and bring it back', async () => {
  const health = new TargetHealth({ unhealthyAfter: 2, healthyAfter: 3 })
  const answers = [false, true, false, false, true, true, false, true, true, true]
  const healthy = answers.map((isWell) => {
    health.checked(isWell)
    return health.mayTry(0)
  })
  assert.deepEqual(healthy, [true, true, true, false, false, false, false, false, false, true])
})

test('health: whatever happens, a target comes back when it is well', async () => {
  const event = fc.constantFrom('tried', 'failed', 'succeeded', 'abstained', 'well', 'unwell', 'wait')
  const property = fc.property(fc.array(event, { maxLength: 60, size: 'max' }), (events) => {
    const health = new TargetHealth({ unhealthyAfter: 2, healthyAfter: 2 })
    let nowMs = 0
    const happen = (name: string) => {
      if (name === 'failed') health.failed(nowMs, 0.5, 'refused')
      else if (name === 'well' || name === 'unwell') health.checked(name === 'well')
      else if (name === 'wait') nowMs += 700
      else health[name as 'tried' | 'succeeded' | 'abstained']()
    }
    for (const name of events) happen(name)
    happen('abstained') // each attempt has reported its result
    for (const name of ['well', 'well']) happen(name)
    nowMs += 30_000
    assert.ok(health.mayTry(nowMs))
    happen('tried')
    happen('succeeded')
    assert.ok(health.isHealthy && health.mayTry(nowMs))
  })
  fc.assert(property, { numRuns: 500 })
})

test('targets take turns', async () => {
  const counts = [0, 0, 0]
  const servers = await Promise.all(
    counts.map((_, i) => {
      return upstream((socket) => {
        eachHead(socket, () => {
          counts[i]!++
          socket.write(OK)
        })
      })
    }),
  )
  const group = groupOf(servers.map(({ url }) => url))
  for (let i = 0; i < 30; i++) await answerOf(group)
  assert.deepEqual(counts, [10, 10, 10])
  await closed(group, ...servers)
})

test('a target that fails is left out, and asked again', async () => {
  let isBroken = true
  let asked = 0
  const flaky = await upstream((socket) => {
    eachHead(socket, () => {
      asked++
      if (isBroken) socket.end('nonsense')
      else socket.write(OK)
    })
  })
  const steady = await upstream(answering(OK))
  const group = groupOf([flaky.url, steady.url])
  let failures = 0
  for (let i = 0; i < 40; i++) if ((await ask(group).outcome).kind === 'failed') failures++
  assert.equal(failures, 3, 'after three it is out')
  assert.equal(asked, 3)
  assert.deepEqual(
    group.status.map(({ isHealthy }) => isHealthy),
    [false, true],
  )
  assert.equal(group.counters.targetsTakenOut, 1)
  assert.ok(group.isHealthy)
  isBroken = false
  while (asked === 3) {
    await answerOf(group)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.ok(group.status.every(({ isHealthy }) => isHealthy))
  await closed(group, flaky, steady)
})

test('when all are out, they are asked all the same', async () => {
  let isBroken = true
  const serve = () =>
    upstream((socket) => eachHead(socket, () => (isBroken ? socket.destroy() : socket.write(OK))))
  const servers = [await serve(), await serve()]
  const group = groupOf(servers.map(({ url }) => url))
  for (let i = 0; i < 10; i++) assert.equal((await ask(group).outcome).kind, 'failed')
  assert.ok(!group.isHealthy)
  isBroken = false
  assert.equal((await answerOf(group)).text, 'ok')
  await closed(group, ...servers)
})

test('the failures of the only target show, and it is asked all the same', async () => {
  let isBroken = true
  let asked = 0
  const server = await upstream((socket) =>
    eachHead(socket, () => {
      asked++
      if (isBroken) socket.destroy()
      else socket.write(OK)
    }),
  )
  const group = groupOf([server.url])
  for (let i = 0; i < 2; i++) await ask(group).outcome
  assert.deepEqual([group.isHealthy, group.unhealthy], [true, []])
  for (let i = 0; i < 8; i++) assert.equal((await ask(group).outcome).kind, 'failed')
  assert.equal(asked, 10, 'no request is refused for what others found')
  assert.equal(group.isHealthy, false)
  assert.deepEqual(group.unhealthy, [{ upstream: group.name, target: server.url, failure: 'reset' }])
  assert.equal(group.counters.targetsTakenOut, 1)
  isBroken = false
  assert.equal((await answerOf(group)).text, 'ok')
  assert.deepEqual([group.isHealthy, group.unhealthy], [true, []])
  await closed(group, server)
})

test('an app that listens again is found by connecting, without a request', async () => {
  const first = await upstream(answering(OK))
  const { url, port } = first
  await first.settled()
  const group = groupOf([url])
  for (let i = 0; i < 3; i++) assert.equal((await ask(group).outcome).kind, 'failed')
  assert.deepEqual(group.unhealthy, [{ upstream: group.name, target: url, failure: 'refused' }])
  let connections = 0
  const again = createServer((socket) => {
    connections++
    socket.on('error', () => undefined).resume()
  })
  again.listen(port, '127.0.0.1')
  while (!group.isHealthy) await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal(connections, 1)
  group.close()
  again.close()
})

test('health: checks bring back what requests took out, unless requests go on failing', async () => {
  const health = new TargetHealth({ unhealthyAfter: 1, healthyAfter: 2 })
  health.failed(0, 0, 'reset')
  health.checked(true)
  health.failed(10, 0, 'reset')
  health.checked(true)
  assert.equal(health.isHealthy, false)
  assert.equal(health.checked(true), true)
  assert.equal(health.isHealthy, true)
})

test('health: a target that is out is worth a try after a minute without one, unless checks fail', async () => {
  const health = new TargetHealth({ unhealthyAfter: 1, healthyAfter: 1 })
  assert.ok(health.isWorthTrying(0))
  health.failed(0, 0, 'head-timeout')
  assert.deepEqual([health.isWorthTrying(59_000), health.isWorthTrying(60_000)], [false, true])
  health.failed(60_000, 0, 'head-timeout')
  assert.deepEqual([health.isWorthTrying(61_000), health.isWorthTrying(120_000)], [false, true])
  health.checked(false)
  assert.deepEqual([health.isWorthTrying(999_000), health.lastFailure], [false, 'check'])
})

test('only faults of the target count against it', async () => {
  const server = await upstream((socket) => {
    eachHead(socket, (_, nth) => (nth === 0 ? socket.write(OK) : socket.resetAndDestroy()))
  })
  const other = await upstream((socket) => socket.resume())
  const group = groupOf([server.url, server.url])
  await answerOf(group)
  await answerOf(group)
  for (let i = 0; i < 10; i++) {
    const asking = ask(group, { method: 'POST' }) // on a connection that has died of age
    await asking.outcome
  }
  const waiting = groupOf([other.url, other.url])
  for (let i = 0; i < 10; i++) {
    const asking = ask(waiting)
    asking.exchange.leave()
    assert.equal((await asking.outcome).kind, 'client-gone')
    ask(waiting, { target: 'bad target' })
  }
  for (const one of [group, waiting]) assert.ok(one.status.every(({ isHealthy }) => isHealthy))
  await closed(group, server)
  await closed(waiting, other)
})

test('a target with no connection to spare lets the next one have its turn', async () => {
  const stuck = await upstream((socket) => socket.resume())
  const quick = await upstream(answering(OK))
  const group = groupOf([stuck.url, quick.url], { connectionsMax: 1 })
  const first = ask(group)
  for (let i = 0; i < 6; i++) await answerOf(group)
  assert.equal(group.counters.waits, 0)
  first.exchange.leave()
  await closed(group, stuck, quick)
})

test('active checks', async () => {
  let status = 200
  let checks = 0
  const server = http.createServer((request, response) => {
    if (request.url === '/health?deep') {
      checks++
      assert.equal(request.headers['user-agent'], 'gatehouse-health-check')
      response.statusCode = status
      response.end('an unread body')
      server.emit('checked')
    } else response.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const health = { path: '/health?deep', intervalMs: 20, timeoutMs: 1000, unhealthyAfter: 2, healthyAfter: 2 }
  const group = groupOf([url], { health })
  const until = async (isHealthy: boolean) => {
    while (group.isHealthy !== isHealthy) await once(server, 'checked')
  }
  await once(server, 'checked')
  assert.ok(group.isHealthy)
  status = 503
  await until(false)
  assert.equal((await answerOf(group)).text, 'ok', 'all out: asked all the same')
  status = 204
  await until(true)
  assert.ok(checks >= 4)
  group.close()
  const before = checks
  await new Promise((resolve) => setTimeout(resolve, 60))
  assert.equal(checks, before, 'no checks after the end')
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
})

test('active checks of a target that says nothing, or is not there', async () => {
  const silent = await upstream((socket) => socket.resume())
  const gone = await upstream(() => {})
  await gone.settled()
  const h2c = (url: string) => url.replace('http', 'h2c')
  const health = { path: '/', intervalMs: 10, timeoutMs: 30, unhealthyAfter: 1, healthyAfter: 1 }
  const group = groupOf([silent.url, h2c(silent.url), gone.url, h2c(gone.url)], { health })
  while (group.status.some(({ isHealthy }) => isHealthy)) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  assert.equal(group.counters.targetsTakenOut, 4)
  group.close()
  await silent.settled()
})

test('an active check that the pool has no room for says nothing about the target', async () => {
  const found: boolean[] = []
  let asked = 0
  const probe = () => {
    asked++
    return null
  }
  const full = { probe } as unknown as Pool
  const settings = { path: '/', intervalMs: 5, timeoutMs: 5 }
  const check = new HealthCheck(full, settings, (isWell) => found.push(isWell))
  while (asked < 5) await new Promise((resolve) => setTimeout(resolve, 5))
  check.close()
  assert.deepEqual(found, [])
})

test('draining lets what is under way come to its end, and keeps nothing', async () => {
  let socket: { write(text: string): unknown } | null = null
  const server = await upstream((found) =>
    eachHead(found, (_, nth) => {
      if (nth === 0) found.write(OK)
      else socket = found
    }),
  )
  const group = groupOf([server.url])
  await Promise.all([answerOf(group), answerOf(group)])
  const last = ask(group)
  let isDrained = false
  const drained = group.drain().then(() => {
    isDrained = true
  })
  assert.deepEqual([group.status[0]!.connections, group.status[0]!.idle], [1, 0])
  while (socket === null) await new Promise(setImmediate)
  assert.equal(isDrained, false)
  ;(socket as { write(text: string): unknown }).write(OK)
  assert.equal((await last.outcome).kind, 'answered')
  assertClean(last)
  await drained
  assert.equal(group.status[0]!.connections, 0)
  await group.drain()
  await closed(group, server)
})

test('closing fails what is under way, and what comes later', async () => {
  const server = await upstream((socket) => {
    eachHead(socket, (head) => {
      if (head.includes('/half')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')
    })
  })
  const group = groupOf([server.url])
  const silent = ask(group)
  const half = ask(group, { target: '/half' })
  await half.exchange.until('written')
  group.close()
  const outcome = await silent.outcome
  assert.equal(outcome.kind === 'failed' && `${outcome.reason} ${outcome.status}`, 'closing 503')
  const broken = await half.outcome
  assert.equal(broken.kind === 'broken-off' && broken.reason, 'closing')
  const late = ask(group)
  const refused = await late.outcome
  assert.equal(refused.kind === 'failed' && `${refused.reason} ${refused.status}`, 'closing 503')
  for (const asking of [silent, half, late]) assertClean(asking)
  await closed(group, server)
})

test('everything is counted', async () => {
  const gone = await upstream(() => {})
  await gone.settled()
  const server = await upstream(answering(OK))
  const counters = upstreamCounters()
  const group = new UpstreamGroup(settingsFor([server.url]), counters)
  const other = new UpstreamGroup(settingsFor([gone.url]), counters)
  await answerOf(group)
  await answerOf(group)
  await ask(other).outcome
  await ask(group, { target: '' }).outcome
  const leaving = ask(group)
  leaving.exchange.leave()
  const zeros = Object.fromEntries(Object.keys(counters.failed).map((reason) => [reason, 0]))
  assert.deepEqual(counters, {
    connectionsOpened: 2,
    connectionsReused: 2,
    waits: 0,
    answered: 2,
    clientGone: 1,
    brokenOff: 0,
    failed: { ...zeros, refused: 1, 'bad-request': 1 },
    retries: 0,
    targetsTakenOut: 0,
  })
  other.close()
  await closed(group, server)
})
