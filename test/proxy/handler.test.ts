import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { type Test, test } from 'tap'
import type { Sighting } from '../../src/plane/sighting.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import { createHandler } from '../../src/proxy/request/handler.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { dialPlain, dialTls, LOOPBACK } from './front.ts'
import { MemoryExchange } from './memory-exchange.ts'
import { type Gate, type GatePlan, startGate } from './test-gate.ts'
import { until } from './test-worker.ts'
import { settingsFor } from './upstream-fixture.ts'
import { opening } from './web-socket.ts'
import { timeBox } from '../time-box.ts'

const OURS = [
  ...['x-ja4-fingerprint', 'x-ja4h-fingerprint', 'x-ja4s-fingerprint', 'x-http2-fingerprint', 'x-ja4-source'],
  ...['x-agent-verdict', 'x-agent-name', 'x-agent-category', 'x-agent-purpose', 'x-agent-confidence'],
  'x-agent-verified',
  ...['x-agent-action', 'x-agent-decision-id', 'x-agent-signature', 'x-agent-anything'],
]
const FORWARDING = [
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-real-ip',
  'forwarded',
]
const CANARY = 'canary'
const PROTOCOLS = ['h1', 'h2'] as const

test('pass: the app sees the client’s own headers, its address, and no tags', async (t) => {
  const { gate, seen } = await gateWithApp(t, { policy: { rules: [], otherwise: 'pass' } })
  const own = ['User-AGENT', 'tester', 'accept', '*/*', 'X-Own', '1', 'x-own', '2', 'Cookie', 'a=b; c=d']
  await ask(gate, 'h1', { headers: [...own, ...forgeries()] })
  assert.deepEqual(seen.at(-1), ['Host', 'a.example.test', ...own, ...forwardedOf(gate)])
  await ask(gate, 'h2', { headers: ['user-agent', 'tester', ...forgeries()] })
  assert.deepEqual(seen.at(-1), ['Host', 'a.example.test', 'user-agent', 'tester', ...forwardedOf(gate)])
  assert.deepEqual(gate.done, Array(2).fill({ verdict: 'unknown', action: 'pass', status: 200 }))
})

test('pass: what a trusted hop says of the client goes on', async (t) => {
  const plan = { policy: { rules: [], otherwise: 'pass' }, options: { trusted: LOOPBACK } }
  const { gate, seen } = await gateWithApp(t, plan)
  const hop = ['X-Forwarded-For', '192.0.2.7', 'X-Forwarded-Proto', 'https', 'Forwarded', 'for=192.0.2.7']
  await ask(gate, 'h1', { headers: [...hop, 'X-Agent-Name', CANARY] })
  const told = headersOf(seen.at(-1)!)
  assert.equal(told['x-forwarded-for'], '192.0.2.7, 127.0.0.1')
  assert.equal(told['x-forwarded-proto'], 'https')
  assert.match(told['forwarded']!, /^for=192\.0\.2\.7;host="a\.example\.test";proto=https, for=127\.0\.0\.1;/)
  assert.equal(told['x-agent-name'], undefined)
  assert.equal(gate.sightings[0]!.address, '192.0.2.7')
})

test('a Sighting has the first of a text that a client may make as long as it likes', async (t) => {
  const { gate } = await gateWithApp(t, { policy: { rules: [], otherwise: 'pass' } })
  for (const protocol of PROTOCOLS)
    for (const long of ['x'.repeat(1_024), 'x'.repeat(1_025), 'x'.repeat(9_000)]) {
      await ask(gate, protocol, { path: `/${long}?q=1`, headers: ['user-agent', long] })
      const { path, userAgent, host } = gate.sightings.at(-1)!
      assert.deepEqual([path, userAgent], [`/${long}`.slice(0, 1_024), long.slice(0, 1_024)])
      assert.equal(host, 'a.example.test')
    }
  await ask(gate, 'h1', { path: `/short?${'q'.repeat(9_000)}`, headers: [] })
  assert.deepEqual([gate.sightings.at(-1)!.path, gate.sightings.at(-1)!.userAgent], ['/short', null])
})

test('a listed hop says the JA4 of its client, once and as a JA4', async (t) => {
  const ja4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
  const { gate, seen } = await gateWithApp(t, { options: { ja4Hops: LOOPBACK } })
  const cases: readonly [headers: readonly string[], isBelieved: boolean][] = [
    [['X-JA4-Fingerprint', ja4], true],
    [['X-JA4-Fingerprint', ja4, 'X-JA4-Fingerprint', ja4], false],
    [['X-JA4-Fingerprint', 'none'], false],
    [['X_JA4_Fingerprint', ja4], false],
  ]
  for (const [headers, isBelieved] of cases) {
    await ask(gate, 'h1', { headers: [...headers, 'X-JA4-Source', 'own'] })
    const { 'x-ja4-fingerprint': told, 'x-ja4-source': source } = headersOf(seen.at(-1)!)
    assert.deepEqual([told === ja4, source], [isBelieved, isBelieved ? 'hop' : undefined], headers.join())
    assert.equal(gate.sightings.at(-1)!.ja4, told)
  }
})

test('whose order of headers it is says something, but not where JA4+ is off, nor of what a hop passes on', async (t) => {
  const headers = Array.from({ length: 12 }, (_, i) => [`x-${i}`, '1']).flat()
  let known: string | null = null
  for (const [plan, isFound] of [
    [{}, true],
    [{ context: { ja4plus: false } }, false],
    [{ options: { trusted: LOOPBACK } }, false],
  ] as const) {
    const { gate } = await gateWithApp(t, plan)
    await ask(gate, 'h1', { headers })
    known ??= gate.sightings[0]!.ja4h!.replace(/_0+_0+$/, '_*_*')
    const knowledge = knowledgeOf(parseSoftwareList([agentWith(known)]), parseWeights({ temperature: 1 }))
    gate.context.snapshot = { ...gate.context.snapshot, knowledge }
    await ask(gate, 'h1', { headers })
    assert.equal(gate.sightings[1]!.evidence.includes('headers-of-agents'), isFound, JSON.stringify(plan))
  }
})

function agentWith(ja4h: string): object {
  const measured = { ja4h, source: 'made for this test', date: '2026-11-21', observations: 1 }
  return { id: 'acme', name: 'Acme', kind: 'agent', category: 'llm-sdk', signatures: [measured] }
}

test('tag: the app gets everything that is known, and the headers of the rule', async (t) => {
  const { gate, seen } = await gateWithApp(t, {
    policy: { rules: [], otherwise: { tag: { headers: { 'X-Agent-Plan': 'free' } } } },
  })
  for (const protocol of PROTOCOLS) {
    await ask(gate, protocol, { headers: ['user-agent', 'tester', ...forgeries()] })
    const told = headersOf(seen.at(-1)!)
    const sighting = gate.sightings.at(-1)!
    assert.equal(told['x-ja4-fingerprint'], sighting.ja4)
    assert.equal(told['x-ja4h-fingerprint'], sighting.ja4h)
    assert.equal(told['x-ja4s-fingerprint'], sighting.ja4s)
    assert.equal(told['x-http2-fingerprint'], sighting.http2 ?? undefined)
    assert.equal(told['x-http2-fingerprint'] !== undefined, protocol === 'h2')
    assert.equal(told['x-agent-decision-id'], sighting.id)
    const { 'x-agent-verdict': verdict, 'x-agent-action': action, 'x-agent-plan': plan } = told
    assert.deepEqual([verdict, action, plan], ['unknown', 'tag', 'free'])
    const { 'x-forwarded-for': address, 'x-forwarded-proto': proto, 'x-forwarded-host': host } = told
    assert.deepEqual([address, proto, host], ['127.0.0.1', 'https', 'a.example.test'])
    assert.equal(told['x-agent-name'], undefined)
  }
})

test('no spelling of a header of ours reaches the app from a client, and each is counted', async (t) => {
  const { gate, seen } = await gateWithApp(t)
  const session = dialHttp2(gate)
  t.teardown(() => session.destroy())
  const ways: readonly ((headers: readonly string[]) => Promise<void>)[] = [
    async (headers) => void (await ask(gate, 'h1', { headers })),
    async (headers) => {
      const list = headers.map((each, i) => (i % 2 === 0 ? each.toLowerCase() : each))
      const fields = Object.fromEntries(pairsOf(list))
      const stream = session.request({ ...fields, ':authority': 'a.example.test' })
      stream.resume().end()
      await once(stream, 'close')
    },
    async (headers) => {
      const peer = await dialPlain(gate.plain.port)
      peer.write(
        opening('/', 'a.example.test', ...pairsOf(headers).map(([name, value]) => `${name}: ${value}`)),
      )
      await peer.hears('101 Switching')
      peer.socket.destroy()
    },
  ]
  const property = fc.asyncProperty(
    fc.uniqueArray(spelling(), { minLength: 1, maxLength: 12, selector: (name) => name.toLowerCase() }),
    fc.constantFrom('pass', 'tag'),
    fc.nat(ways.length - 1),
    async (names, otherwise, way) => {
      gate.judgeBy({ rules: [], otherwise })
      const [before, forgedBefore] = [seen.length, gate.forged]
      await ways[way]!(names.flatMap((name) => [name, CANARY]))
      assert.equal(seen.length, before + 1)
      assert.ok(!seen.at(-1)!.join('\n').includes(CANARY), `${names} as ${seen.at(-1)}`)
      // An earlier proxy may well write the forwarding headers: only their odd spelling is a forgery.
      const forged = names.filter((name) => name.includes('_') || !FORWARDING.includes(name.toLowerCase()))
      const plain = forged.map((name) => name.toLowerCase().replaceAll('_', '-'))
      assert.deepEqual(gate.sightings.at(-1)!.forged, plain)
      assert.equal(gate.forged - forgedBefore, forged.length)
    },
  )
  await fc.assert(property, timeBox(1_000, 10_000))
})

test('block: a page for people, problem+json for programs, with the id of the decision', async (t) => {
  const { gate, seen } = await gateWithApp(t, { policy: rule({ block: { status: 451, title: 'Not here' } }) })
  for (const protocol of PROTOCOLS) {
    const page = await ask(gate, protocol, { headers: ['accept', 'text/html,*/*;q=0.8'] })
    assert.equal(page.status, 451)
    assert.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    assert.match(page.body, /<h1>Not here<\/h1>/)
    const problem = await ask(gate, protocol, { method: 'POST', body: 'x'.repeat(1000) })
    assert.equal(problem.headers['content-type'], 'application/problem+json')
    const { title, status, decision_id: id } = JSON.parse(problem.body)
    assert.deepEqual([title, status, id], ['Not here', 451, gate.sightings.at(-1)!.id])
    for (const answer of [page, problem]) {
      const { id } = gate.sightings.at(answer === page ? -2 : -1)!
      assert.equal(answer.headers['x-agent-decision-id'], id)
      assert.ok(answer.body.includes(id))
      assert.equal(answer.headers['content-length'], String(Buffer.byteLength(answer.body)))
    }
    const head = await ask(gate, protocol, { method: 'HEAD' })
    assert.deepEqual([head.status, head.body], [451, ''])
    assert.ok(Number(head.headers['content-length']) > 100)
  }
  assert.equal(seen.length, 0)
  assert.deepEqual(gate.done, Array(6).fill({ verdict: 'unknown', action: 'block', status: 451 }))
})

test('block: in the operator’s own words', async (t) => {
  const { gate } = await gateWithApp(t)
  for (const [body, type] of [
    ['Bitte höflich fragen', 'text/plain; charset=utf-8'],
    ['{"sorry":true}', 'application/json'],
  ] as const) {
    gate.judgeBy(rule({ block: { body } }))
    for (const protocol of PROTOCOLS) {
      const answer = await ask(gate, protocol, { headers: ['accept', 'text/html'] })
      assert.deepEqual([answer.status, answer.headers['content-type'], answer.body], [403, type, body])
    }
  }
})

test('rate_limit: a burst comes through, then who waits as long as it is told', async (t) => {
  const { gate, seen } = await gateWithApp(t, { policy: rule(limit({ burst: 2 })) })
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) statuses.push((await ask(gate, 'h1')).status)
  assert.deepEqual(statuses, [200, 200, 429])
  assert.equal(headersOf(seen[0]!)['x-agent-action'], 'rate_limit')
  const refused = await ask(gate, 'h2')
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '6'])
  assert.equal(JSON.parse(refused.body).code, 'rate_limited')
  gate.clock.nowMs += 5999
  assert.equal((await ask(gate, 'h1')).headers['retry-after'], '1')
  gate.clock.nowMs += 1
  assert.equal((await ask(gate, 'h1')).status, 200)
  assert.equal((await ask(gate, 'h1')).status, 429)
  assert.ok(gate.sightings.every(({ action }) => action === 'rate_limit'))
  assert.ok(gate.sightings.every(({ limited }, at) => limited === (gate.done[at]!.status === 429)))
  assert.deepEqual(new Set(gate.sightings.map(({ limited }) => limited)), new Set([false, true]))
})

test('rate_limit: what happens over the limit is the rule’s to say', async (t) => {
  const { gate } = await gateWithApp(t)
  gate.judgeBy(rule(limitThen({ block: { status: 503, body: 'later' } })))
  assert.equal((await ask(gate, 'h1')).status, 200)
  const blocked = await ask(gate, 'h1')
  assert.deepEqual([blocked.status, blocked.body, blocked.headers['retry-after']], [503, 'later', '6'])
  gate.judgeBy(rule(limitThen({ tarpit: { delay: '50ms' } }), 'another'))
  assert.equal((await ask(gate, 'h1')).status, 200)
  const startedMs = performance.now()
  const held = await ask(gate, 'h1')
  assert.ok(performance.now() - startedMs > 45)
  assert.deepEqual([held.status, held.headers['retry-after']], [429, '6'])
  assert.equal(gate.context.tarpit.held, 0)
})

test('rate_limit: each rule counts for itself', async (t) => {
  const paths = ['/one', '/two']
  const rules = paths.map((path) => ({ name: path, when: { path }, action: limit({ burst: 3 }) }))
  const { gate } = await gateWithApp(t, { policy: { rules } })
  for (const path of paths) {
    const statuses: number[] = []
    for (let i = 0; i < 4; i++) statuses.push((await ask(gate, 'h1', { path })).status)
    assert.deepEqual(statuses, [200, 200, 200, 429], path)
  }
})

test('rate_limit: addresses are counted apart; of IPv6 the network a client has to itself', async (t) => {
  const { gate } = await gateWithApp(t, { policy: rule(limit({})), options: { trusted: LOOPBACK } })
  const statusFor = async (address: string) =>
    (await ask(gate, 'h1', { headers: ['X-Forwarded-For', address] })).status
  const answers: number[] = []
  const addresses = ['192.0.2.1', '192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2', '2001:db8:0:1::1']
  for (const address of addresses) answers.push(await statusFor(address))
  assert.deepEqual(answers, [200, 429, 200, 200, 429, 200])
})

test('rate_limit: counts by fingerprint, and clients without one by address', async (t) => {
  for (const per of ['fingerprint', 'agent']) {
    const { gate } = await gateWithApp(t, { policy: rule(limit({ per })) })
    const statusBy = async (ciphers: string) => (await ask(gate, 'h1', { tls: { ciphers } })).status
    const [one, other] = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384']
    const answers = [await statusBy(one!), await statusBy(one!), await statusBy(other!)]
    // No agent is known yet, so all of them count by address.
    assert.deepEqual(answers, per === 'agent' ? [200, 429, 429] : [200, 429, 200])
    const plain = [await askPlain(gate), await askPlain(gate)]
    assert.deepEqual(plain, per === 'agent' ? [429, 429] : [200, 429])
  }
})

test('tarpit: a request is held and then blocked; over its bound at once', async (t) => {
  const { gate, seen } = await gateWithApp(t)
  for (const protocol of PROTOCOLS) {
    gate.judgeBy(rule({ tarpit: { delay: '5m', connections_max: 1 } }))
    const holder = await holding(gate, protocol)
    const over = await ask(gate, protocol)
    assert.deepEqual([over.status, JSON.parse(over.body).code], [403, 'blocked'])
    assert.equal(gate.context.tarpit.held, 1)
    holder.leave()
    await until(() => gate.context.tarpit.held === 0)
    gate.judgeBy(rule({ tarpit: { delay: '50ms', connections_max: 1 } }))
    const startedMs = performance.now()
    assert.equal((await ask(gate, protocol)).status, 403)
    assert.ok(performance.now() - startedMs > 45)
    assert.equal(gate.context.tarpit.held, 0)
  }
  assert.equal(seen.length, 0)
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [403, 0, 403, 403, 0, 403],
  )
})

test('tarpit: a client that leaves is counted down once, whenever it leaves', async (t) => {
  const { gate } = await gateWithApp(t)
  const { request } = createHandler(gate.context)
  const { tarpit } = gate.context
  gate.judgeBy(rule({ tarpit: { delay: '20ms', connections_max: 2 } }))
  for (const event of ['answered', 'written', 'ended'] as const) {
    const exchange = new MemoryExchange()
    exchange.on(event, () => exchange.leave())
    request(exchange)
    assert.equal(tarpit.held, 1)
    await exchange.until('ended')
    assert.equal(tarpit.held, 0, event)
    exchange.leave()
    assert.equal(tarpit.held, 0, event)
    assert.deepEqual(exchange.wrongs, [])
  }
  const [gone, patient] = [new MemoryExchange(), new MemoryExchange()]
  request(gone)
  request(patient)
  gone.leave()
  gone.leave()
  assert.equal(tarpit.held, 1)
  await patient.until('ended')
  assert.deepEqual([tarpit.held, patient.status, gone.status], [0, 403, 0])
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [403, 403, 403, 0, 403],
  )
})

test('redirect: to a path or a URL, with the status of the rule', async (t) => {
  const { gate, seen } = await gateWithApp(t)
  for (const [to, status] of [
    ['/docs?for=agents', 302],
    ['https://docs.example.test/a', 308],
  ] as const) {
    gate.judgeBy(rule({ redirect: { to, status } }))
    for (const protocol of PROTOCOLS) {
      const answer = await ask(gate, protocol)
      assert.deepEqual([answer.status, answer.headers['location']], [status, to])
      assert.equal(answer.headers['x-agent-decision-id'], gate.sightings.at(-1)!.id)
    }
  }
  assert.equal(seen.length, 0)
})

test('route: to another upstream, tagged', async (t) => {
  const other = await appOf(t)
  const { gate, seen } = await gateWithApp(t, { policy: rule({ route: { upstream: 'other' } }) }, [
    settingsFor([other.url], { name: 'other' }),
  ])
  for (const protocol of PROTOCOLS) assert.equal((await ask(gate, protocol)).status, 200)
  const actions = other.seen.map((headers) => headersOf(headers)['x-agent-action'])
  assert.deepEqual([seen.length, actions], [0, ['route', 'route']])
})

test('dry_run: what a rule would have done is said, and the next rule is tried', async (t) => {
  const trial = { when: {}, action: { block: { status: 451 } }, dry_run: true }
  const { gate, seen } = await gateWithApp(t, {
    policy: {
      rules: [
        { ...trial, name: 'on trial' },
        { ...trial, name: 'second', action: { tarpit: { delay: '5m' } } },
        { name: 'real', when: { path: '/stop' }, action: { block: { status: 404 } } },
      ],
    },
  })
  for (const [path, status] of [
    ['/', 200],
    ['/stop', 404],
  ] as const) {
    assert.equal((await ask(gate, 'h1', { path })).status, status)
    const { rule, action, dryRun, done } = gate.sightings.at(-1)!
    assert.deepEqual([rule, action, dryRun, done], ['on trial', 'block', true, gate.done.at(-1)!.action])
  }
  assert.equal(headersOf(seen[0]!)['x-agent-action'], 'tag')
  assert.deepEqual(
    gate.done.map(({ action }) => action),
    ['tag', 'block'],
  )
})

test('fail closed: refuses TLS clients without a fingerprint', async (t) => {
  const { gate, seen } = await gateWithApp(t, { context: { fail: 'closed' } })
  const exchange = new MemoryExchange()
  createHandler(gate.context).request(exchange)
  assert.equal(exchange.status, 403)
  assert.equal(JSON.parse(exchange.text).code, 'no_fingerprint')
  const { rule, action } = gate.sightings.at(-1)!
  assert.deepEqual([rule, action], ['proxy.fail', 'block'])
  assert.deepEqual(gate.done.at(-1), { verdict: 'unknown', action: 'block', status: 403 })
  assert.equal((await ask(gate, 'h1')).status, 200)
  assert.equal(await askPlain(gate), 200)
  assert.equal(seen.length, 2)
})

test('sni_mismatch reject: a connection serves the host it was opened for', async (t) => {
  const { gate, seen } = await gateWithApp(t, { hosts: { sniMismatch: 'reject' } })
  for (const protocol of PROTOCOLS) {
    const statusFor = async (host: string) =>
      (await ask(gate, protocol, { host, tls: { servername: 'a.example.test' } })).status
    assert.deepEqual(
      [
        await statusFor('a.example.test'),
        await statusFor('A.Example.test:8443'),
        await statusFor('b.example.test'),
      ],
      [200, 200, 421],
    )
  }
  assert.equal(seen.length, 4)
})

test('an unreachable app is reported, with the id of the decision', async (t) => {
  const { gate } = await gateWithApp(t, { policy: rule({ route: { upstream: 'gone' } }) }, [
    settingsFor(['http://127.0.0.1:1'], { name: 'gone' }),
  ])
  for (const protocol of PROTOCOLS) {
    const page = await ask(gate, protocol, { headers: ['accept', 'text/html'] })
    assert.equal(page.status, 502)
    assert.ok(page.body.startsWith('<!doctype html>') && page.body.includes(gate.sightings.at(-1)!.id))
    const problem = await ask(gate, protocol)
    assert.equal(JSON.parse(problem.body).code, 'upstream_refused')
  }
  assert.deepEqual(gate.done, Array(4).fill({ verdict: 'unknown', action: 'route', status: 502 }))
})

test('a client that leaves before its answer is one that got none', async (t) => {
  const { gate } = await gateWithApp(t, {}, [], () => {})
  for (const protocol of PROTOCOLS) {
    const before = gate.done.length
    const holder = await holding(
      gate,
      protocol,
      () => gate.context.defaultUpstream.status[0]!.connections > 0,
    )
    holder.leave()
    await until(() => gate.done.length > before)
    await until(() => gate.context.defaultUpstream.status[0]!.connections === 0)
  }
  assert.deepEqual(
    gate.done.map(({ status }) => status),
    [0, 0],
  )
})

test('each request becomes one Sighting, without cookie, query or token in it', async (t) => {
  const actions = [
    ...['pass', 'tag', { block: {} }, { redirect: { to: '/x' } }, { route: { upstream: 'default' } }],
    ...[{ tarpit: { delay: '1ms' } }, limit({}), limitThen({ tarpit: { delay: '1ms' } })],
  ]
  const names = ['pass', 'tag', 'block', 'redirect', 'route', 'tarpit', 'rate_limit', 'rate_limit']
  const { gate } = await gateWithApp(t, { options: { trusted: AddressSet.parse(['127.0.0.1'])! } })
  const secrets = ['c00kie', 'qu3ry', 't0ken', 'b0dy', 'k3y']
  for (const [index, action] of actions.entries()) {
    gate.judgeBy(rule(action, `rule ${index}`))
    for (const protocol of PROTOCOLS) {
      const before = gate.sightings.length
      await ask(gate, protocol, {
        method: 'POST',
        path: '/account/7?secret=qu3ry',
        body: 'b0dy',
        headers: [
          ...['user-agent', 'tester/1.0', 'cookie', 'session=c00kie', 'authorization', 'Bearer t0ken'],
          ...['x-api-key', 'k3y', 'x-forwarded-for', '192.0.2.9', 'x_agent_name', 'me'],
        ],
      })
      assert.equal(gate.sightings.length, before + 1)
      const sighting = gate.sightings.at(-1)!
      const expected: Partial<Sighting> = {
        ...{ seenAtMs: gate.clock.nowMs, proxy: 'gate.example.test', address: '192.0.2.9', method: 'POST' },
        ...{ host: 'a.example.test', path: '/account/7', userAgent: 'tester/1.0', verdict: 'unknown' },
        ...{
          agent: null,
          confidence: 0,
          rule: `rule ${index}`,
          action: names[index]!,
          dryRun: false,
          done: names[index]!,
        },
        ...{ forged: ['x-agent-name'], snapshot: gate.context.snapshot.number },
      }
      for (const [key, value] of Object.entries(expected)) {
        assert.deepEqual(sighting[key as keyof Sighting], value, `${names[index]} ${key}`)
      }
      assert.match(sighting.ja4!, /^t13[di]/)
      assert.match(sighting.ja4h!, protocol === 'h1' ? /^po11c/ : /^po20c/)
    }
  }
  const all = JSON.stringify(gate.sightings)
  for (const secret of secrets) assert.ok(!all.includes(secret), secret)
  assert.equal(new Set(gate.sightings.map(({ id }) => id)).size, gate.sightings.length)
})

interface Asked {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly string[]
  readonly body?: string
  readonly tls?: object
}

interface Answer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

function ask(gate: Gate, protocol: 'h1' | 'h2', asked: Asked = {}): Promise<Answer> {
  return protocol === 'h1' ? askHttp1(gate, asked) : askHttp2(gate, asked)
}

/** Byte for byte, so that names keep their case and order. */
async function askHttp1(gate: Gate, asked: Asked): Promise<Answer> {
  const { method = 'GET', path = '/', host = 'a.example.test', headers = [], body = '', tls = {} } = asked
  const peer = await dialTls(gate.secure.port, tls)
  const lines = pairsOf(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
  peer.write(
    `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}${length}Connection: close\r\n\r\n${body}`,
  )
  await peer.closed
  const heard = peer.bytes.toString()
  const end = heard.indexOf('\r\n\r\n')
  const [first = '', ...rest] = heard.slice(0, end).split('\r\n')
  const fields = rest.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])
  return { status: Number(first.split(' ')[1]), headers: headersOf(fields), body: heard.slice(end + 4) }
}

async function askHttp2(gate: Gate, asked: Asked): Promise<Answer> {
  const { method = 'GET', path = '/', host = 'a.example.test', headers = [], body = '', tls = {} } = asked
  const session = dialHttp2(gate, tls)
  const fields = Object.fromEntries(pairsOf(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const pseudo = { ':method': method, ':path': path, ':authority': host }
  const stream = session.request({ ...fields, ...pseudo }, { endStream: body === '' })
  if (body !== '') stream.end(body)
  const [answer] = (await once(stream, 'response')) as [Record<string, string>]
  const heard = await text(stream)
  session.close()
  return { status: Number(answer[':status']), headers: answer, body: heard }
}

function dialHttp2(gate: Gate, tls: object = {}): http2.ClientHttp2Session {
  const session = http2.connect(`https://127.0.0.1:${gate.secure.port}`, {
    rejectUnauthorized: false,
    ...tls,
  })
  return session.on('error', () => {}) // its streams say what matters
}

async function askPlain(gate: Gate): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${gate.plain.port}/`)
  await answer.text()
  return answer.status
}

/** A client that has asked, and waits. */
async function holding(gate: Gate, protocol: 'h1' | 'h2', isHeld = () => gate.context.tarpit.held > 0) {
  if (protocol === 'h1') {
    const peer = await dialTls(gate.secure.port)
    peer.write('GET / HTTP/1.1\r\nHost: a.example.test\r\n\r\n')
    await until(isHeld)
    return { leave: () => void peer.socket.destroy() }
  }
  const session = dialHttp2(gate)
  const stream = session.request({ ':authority': 'a.example.test' })
  stream.on('error', () => {})
  await until(isHeld)
  const leave = () => {
    stream.close(http2.constants.NGHTTP2_CANCEL)
    session.close()
  }
  return { leave }
}

async function gateWithApp(
  t: Test,
  plan: Partial<GatePlan> = {},
  others: GatePlan['upstreams'] = [],
  answer?: http.RequestListener,
) {
  const { url, seen } = await appOf(t, answer)
  const gate = await startGate(t, { ...plan, upstreams: [settingsFor([url]), ...others] })
  return { gate, seen }
}

/** Keeps the headers of each request, without those that frame it. */
async function appOf(t: Test, answer: http.RequestListener = (_, response) => response.end('fine')) {
  const seen: string[][] = []
  const see = ({ rawHeaders }: http.IncomingMessage) => {
    seen.push(
      pairsOf(rawHeaders)
        .filter(([name]) => !/^(content-length|connection|upgrade|sec-.*)$/i.test(name))
        .flat(),
    )
  }
  const app = http.createServer((request, response) => {
    see(request)
    request.resume()
    answer(request, response)
  })
  app.on('upgrade', (request, socket) => {
    see(request)
    socket.on('error', () => {})
    socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.closeAllConnections()
    app.close()
  })
  return { url: `http://127.0.0.1:${(app.address() as AddressInfo).port}`, seen }
}

/** One rule that always holds. */
function rule(action: unknown, name = 'all') {
  return { rules: [{ name, when: {}, action }] }
}

function limit(changes: object) {
  return { rate_limit: { per: 'address', requests: 10, window: '1m', burst: 1, ...changes } }
}

function limitThen(action: unknown) {
  return limit(Object.fromEntries([['then', action]]))
}

function forgeries(): string[] {
  return [...OURS, ...FORWARDING].flatMap((name) => [name, CANARY])
}

/** One of our names, with its letters in any case and its hyphens as underscores or not. */
function spelling(): fc.Arbitrary<string> {
  const name = fc.oneof(
    fc.constantFrom(...OURS, ...FORWARDING),
    fc.stringMatching(/^[a-z0-9_-]{1,12}$/).map((end) => `x-agent-${end}`),
  )
  return fc.tuple(name, fc.infiniteStream(fc.boolean())).map(([plain, choices]) =>
    Array.from(plain, (character) => {
      const isOther = choices.next().value
      if (!isOther) return character
      return character === '-' ? '_' : character.toUpperCase()
    }).join(''),
  )
}

function pairsOf(flat: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i]!, flat[i + 1]!])
  return pairs
}

/** What every app behind a proxy has to be told, of a client on this machine. */
function forwardedOf(gate: Gate): string[] {
  const host = 'a.example.test'
  return [
    ...['X-Forwarded-For', '127.0.0.1', 'X-Forwarded-Proto', 'https', 'X-Forwarded-Host', host],
    ...[
      'X-Forwarded-Port',
      String(gate.secure.port),
      'X-Real-IP',
      '127.0.0.1',
      'Forwarded',
      `for=127.0.0.1;host="${host}";proto=https`,
    ],
  ]
}

function headersOf(flat: readonly string[]): Record<string, string> {
  return Object.fromEntries(pairsOf(flat).map(([name, value]) => [name.toLowerCase(), value]))
}
