import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { LookupFunction } from 'node:net'
import { test } from 'tap'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import { DocumentServer, TEST_CA } from '../identity/document-server.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { type Answering, HookReceiver } from './webhook-receiver.ts'
import { event, WebhookSite } from './webhook-site.ts'

for (const kind of KINDS) {
  test(`${kind}: whoever verifies what comes with standardwebhooks, or svix, takes it`, async (t) => {
    const receiver = await HookReceiver.start(t)
    const site = await WebhookSite.start(t, await openFresh(kind, t))
    const { id, secret } = await site.webhook(`${receiver.url}/hook?x=1`)
    receiver.secret = secret
    const told = Array.from({ length: 40 }, () => event())
    const data = { text: 'ä "quoted" \u2028 \u0000 🎈', nested: [1, null, { a: 1.5 }] }
    await site.add(...told.slice(0, 39), { ...told[39]!, data: JSON.stringify(data) })
    await receiver.has(40)
    const deliveries = await site.until(id, (all) => all.every(({ status }) => status === 'delivered'))
    assert.equal(deliveries.length, 40)
    assert.deepEqual(receiver.unverified, [])
    assert.deepEqual(new Set(receiver.ids), new Set(told.map(({ id }) => id)))
    const last = receiver.all.find((each) => each.id === told[39]!.id)!
    assert.deepEqual(last.body, {
      ...{ type: 'new_signature', timestamp: new Date(told[39]!.atMs).toISOString(), data },
    })
    assert.deepEqual([last.path, last.headers['content-type']], ['/hook?x=1', 'application/json'])
    assert.ok(Math.abs(Number(last.headers['webhook-timestamp']) * 1000 - Date.now()) < 20_000)
    const connections = receiver.connections
    await site.add(event())
    await receiver.has(41)
    assert.equal(receiver.connections, connections, 'connections are kept')
    await site.until(id, (all) => all.every(({ status }) => status === 'delivered'))
    assert.equal((await site.store.deliveries.countPending()).count, 0)
    const { health } = (await site.store.webhooks.byId(id))!
    assert.ok(health.lastDeliveryAtMs! > Date.now() - 20_000)
    assert.match(await site.metrics(), /gatehouse_webhook_latency_seconds_count 41\n/)
    // What has ended is forgotten a slice at a time; what has not is kept.
    receiver.answer = (response) => response.writeHead(500).end()
    await site.add(event())
    await site.until(id, ([newest]) => newest!.attempts > 0)
    const { deliveryLog } = site.store
    assert.equal(await deliveryLog.forget(Date.now() - 3_600_000, 100), 0)
    const later = Date.now() + 1_000
    assert.deepEqual([await deliveryLog.forget(later, 30), await deliveryLog.forget(later, 30)], [30, 11])
    assert.deepEqual(
      (await site.deliveries(id)).map(({ status }) => status),
      ['pending'],
    )
  })
}

for (const kind of KINDS)
  test(`${kind}: each delivery is sent by one, however many processes send`, async (t) => {
    const receiver = await HookReceiver.start(t)
    const url = await freshUrl(kind, t)
    const first = await openAt(t, url)
    // One process alone opens SQLite's file.
    const stores =
      kind === 'sqlite' ? [first, first, first] : [first, await openAt(t, url), await openAt(t, url)]
    const sites = await Promise.all(stores.map((store) => WebhookSite.start(t, store)))
    const { id } = await sites[0]!.webhook(receiver.url)
    const told = Array.from({ length: 150 }, () => event())
    await Promise.all(sites.map((site, index) => site.add(...told.slice(index * 50, (index + 1) * 50))))
    await receiver.has(150)
    await sites[0]!.until(id, (all) => all.every(({ status }) => status === 'delivered'))
    assert.deepEqual([...receiver.ids].sort(), told.map(({ id }) => id).sort())
  })

test('what a process has begun that was killed, another one sends; what one has begun that ends, at once', async (t) => {
  let answer: () => void = () => undefined
  const receiver = await HookReceiver.start(t, (response, number) => {
    if (number === 1) answer = () => response.end()
    else response.end()
  })
  const store = await openFresh('postgres', t)
  const killed = await WebhookSite.start(t, store, { heldMs: 300 })
  const { id } = await killed.webhook(receiver.url)
  const told = event()
  await killed.add(told)
  await receiver.has(1)
  const other = await WebhookSite.start(t, store)
  // The first does not hear of its answer before the other has it.
  await receiver.has(2)
  await other.until(id, ([only]) => only!.status === 'delivered')
  answer()
  await killed.deliverer.close()
  const [only] = await other.deliveries(id)
  assert.deepEqual([only!.attempts, only!.log.length, receiver.ids], [1, 1, [told.id, told.id]])

  receiver.answer = () => undefined // it hangs
  await other.add(event())
  await receiver.has(3)
  await other.deliverer.close()
  const [left] = await other.deliveries(id)
  assert.deepEqual([left!.status, left!.isHeld, left!.attempts], ['pending', false, 0])
  assert.ok(left!.nextAtMs! <= Date.now())
})

test('while a secret is rotated every delivery has a signature by the one that its receiver knows', async (t) => {
  const receiver = await HookReceiver.start(t)
  const site = await WebhookSite.start(t, await openFresh('sqlite', t))
  const { id, secret: old } = await site.webhook(receiver.url)
  receiver.secret = old
  await site.add(...Array.from({ length: 20 }, () => event()))
  const secret = await site.rotate(id, Date.now() + 60_000)
  await site.add(...Array.from({ length: 20 }, () => event()))
  await receiver.has(40)
  receiver.secret = secret
  await site.add(...Array.from({ length: 20 }, () => event()))
  const all = await receiver.has(60)
  assert.deepEqual(receiver.unverified, [])
  const signatures = all.map(({ headers }) => String(headers['webhook-signature']).split(' '))
  assert.equal(signatures.at(-1)!.length, 2)
  assert.ok(signatures.flat().every((each) => /^v1,[A-Za-z0-9+/]{43}=$/.test(each)))
  // One that has expired signs no more; the oldest one, and the newest, do.
  await site.until(id, (deliveries) => deliveries.every(({ status }) => status === 'delivered'))
  await site.rotate(id, Date.now() - 1)
  await site.add(event())
  const last = (await receiver.has(61)).at(-1)!
  assert.equal(String(last.headers['webhook-signature']).split(' ').length, 2)
})

/** What a receiver does, and what the log says of it. */
const RECEIVERS: readonly [string, Answering, number | null, RegExp][] = [
  ['500', (response) => response.writeHead(500).end('no\u0007 \u202e"way"'), 500, /^it answers 500$/],
  ['404', (response) => response.writeHead(404).end(), 404, /^it answers 404$/],
  ['304', (response) => response.writeHead(304).end(), 304, /^it answers 304$/],
  ['a redirect', redirect, 307, /^it answers 307, and no redirect is followed$/],
  ['a cut connection', (response) => response.destroy(), null, /^it cannot be fetched/],
  ['a cut head', (response) => response.socket!.end('HTTP/1.1 200 OK\r\nContent-'), null, /^it cannot be/],
  ['no HTTP', (response) => response.socket!.end('hello\r\n\r\n'), null, /^it cannot be fetched/],
  ['nothing', () => undefined, null, /^it has not come within 1000 ms$/],
  ['slow headers', slowHead, null, /^it has not come within 1000 ms$/],
  ['a body that does not end', slowBody, null, /^it has not come within 1000 ms$/],
]
test('what each receiver has not taken it gets again', async (t) => {
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), { timeoutMs: 1_000 })
  const elsewhere = await HookReceiver.start(t)
  const told = event()
  const asked = await Promise.all(
    RECEIVERS.map(async ([name, answer, status, error]) => {
      const receiver = await HookReceiver.start(t, (response, number, delivered) => {
        response.setHeader('location', elsewhere.url)
        if (number === 1) answer(response, number, delivered)
        else response.end('thanks')
      })
      return { name, status, error, receiver, id: (await site.webhook(receiver.url)).id }
    }),
  )
  await site.add(told)
  for (const { name, status, error, receiver, id } of asked) {
    const [delivery] = await site.until(id, ([only]) => only!.status === 'delivered')
    assert.deepEqual([delivery!.attempts, receiver.ids], [2, [told.id, told.id]], name)
    const [failed, taken] = delivery!.log
    assert.equal(failed!.status, status, name)
    assert.match(failed!.error!, error, name)
    if (name === '500') assert.equal(failed!.response, 'no "way"')
    assert.deepEqual([taken!.status, taken!.error, taken!.response], [200, null, 'thanks'], name)
    assert.equal(receiver.all[0]!.text, receiver.all[1]!.text, 'the same bytes')
  }
  assert.equal(elsewhere.all.length, 0)
})

test('of an answer that never ends the beginning is read, and it has been taken', async (t) => {
  let sent = 0
  const receiver = await HookReceiver.start(t, (response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536))) sent += 65_536
      if (!response.destroyed) response.once('drain', more)
    }
    more()
  })
  const site = await WebhookSite.start(t, await openFresh('sqlite', t))
  const { id } = await site.webhook(receiver.url)
  await site.add(event(), event(), event())
  const deliveries = await site.until(id, (all) => all.every(({ status }) => status === 'delivered'))
  assert.equal(deliveries[0]!.log[0]!.response, 'x'.repeat(300))
  assert.ok(sent < 50_000_000, String(sent))
})

test('Retry-After of 429 and 503 is heeded, for all that waits for the same webhook', async (t) => {
  const receiver = await HookReceiver.start(t, (response, number) => {
    if (number === 1) response.writeHead(429, { 'retry-after': '1' })
    response.end()
  })
  const site = await WebhookSite.start(t, await openFresh('sqlite', t))
  const { id } = await site.webhook(receiver.url)
  await site.add(event())
  await site.until(id, ([only]) => only!.attempts === 1)
  await site.add(event())
  const [first, ...later] = await receiver.has(3)
  assert.equal(later.length, 2)
  for (const { atMs } of later) assert.ok(atMs - first!.atMs >= 950, String(atMs - first!.atMs))
  await site.health(id, ({ failures }) => failures === 0)
})

test('what is given up after ten attempts is said: in the log, by metric, and where deliveries are listed', async (t) => {
  const receiver = await HookReceiver.start(t, (response) => response.writeHead(500).end())
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), { retryBaseMs: 0 })
  const { id } = await site.webhook(`${receiver.url}/secret-path`)
  await site.add(event())
  const [delivery] = await site.until(id, ([only]) => only!.status === 'failed')
  assert.deepEqual([delivery!.attempts, delivery!.log.length, receiver.all.length], [10, 10, 10])
  assert.ok(site.said.some((line) => line.includes('given up') && line.includes(delivery!.id)))
  assert.doesNotMatch(site.said.join(), /secret-path/)
  const metrics = await site.metrics()
  assert.match(metrics, /gatehouse_webhook_deliveries_total\{outcome="failed"\} 1\n/)
  assert.match(metrics, /gatehouse_webhook_attempts_total\{outcome="status"\} 10\n/)
})

test('nothing is sent to an address that is not on the public internet, whatever it was when it was registered', async (t) => {
  const receiver = await HookReceiver.start(t)
  const { port } = new URL(receiver.url)
  const lookup: LookupFunction = (name, _options, callback) => {
    callback(
      null,
      NAMES[name]!.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )
  }
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), {
    ...{ lookup, allowPrivate: false, retryBaseMs: 3_600_000 },
  })
  const urls = [
    ...Object.keys(NAMES).map((name) => `https://${name}:${port}/`),
    ...ADDRESSES.map((address) => `https://${address}:${port}/`),
    receiver.url, // http
  ]
  const ids: string[] = []
  for (const url of urls) ids.push((await site.webhook(url)).id)
  await site.add(event())
  for (const [index, id] of ids.entries()) {
    const [only] = await site.until(id, ([only]) => only!.attempts === 1)
    assert.match(only!.log[0]!.error!, /is not on the public internet|not https/, urls[index])
    assert.equal(only!.log[0]!.status, null)
  }
  assert.equal(receiver.connections, 0)
  assert.match(await site.metrics(), new RegExp(`attempts_total\\{outcome="address"\\} ${urls.length}\n`))
})

test('https is https, whatever NODE_TLS_REJECT_UNAUTHORIZED says; a CA of the operator is taken', async (t) => {
  const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const server = await DocumentServer.start(t)
  server.serve('/hook', (_request, response) => response.end())
  const url = `https://localhost:${server.port}/hook`
  for (const [ca, error] of [
    [null, 'it cannot be fetched (UNABLE_TO_VERIFY_LEAF_SIGNATURE)'],
    [TEST_CA, null],
  ] as const) {
    const site = await WebhookSite.start(t, await openFresh('sqlite', t), { ca, retryBaseMs: 60_000 })
    const { id } = await site.webhook(url)
    await site.add(event())
    const [only] = await site.until(id, ([only]) => only!.attempts === 1)
    assert.equal(only!.log[0]!.error, error)
  }
  assert.equal(server.asked.length, 1)
})

test('what cannot be signed is not sent, and says why', async (t) => {
  const receiver = await HookReceiver.start(t)
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), { retryBaseMs: 60_000 })
  const { id } = await site.webhook(receiver.url)
  await site.rotate(
    id,
    Date.now() + 60_000,
    new Sealer([new Secret('some other key that nobody has')], 'none'),
  )
  await site.add(event())
  const [only] = await site.until(id, ([only]) => only!.attempts === 1)
  assert.match(
    only!.log[0]!.error!,
    /^a stored secret is encrypted with the key [0-9a-f]{8}, which is not in store\.encryption_keys/,
  )
  assert.equal(receiver.connections, 0)
})

/** Names that lead here by now. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'rebinding.example': ['127.0.0.1'],
  'mixed.example': ['93.184.216.34', '10.0.0.1'],
  'metadata.example': ['169.254.169.254'],
  'six.example': ['::1'],
  'nat64.example': ['64:ff9b::7f00:1'],
  'six-to-four.example': ['2002:7f00:1::'],
  'mapped.example': ['::ffff:10.0.0.1'],
}
/** Those that were registered while it was allowed. */
const ADDRESSES = [
  ...['127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '0.0.0.0'],
  ...['224.0.0.1', '255.255.255.255', '192.0.2.1', '127.1', '2130706433', '0x7f000001', '017700000001'],
  ...[
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    '[fe80::1]',
    '[fd00::1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
  ],
  'localhost',
]

function redirect(response: ServerResponse): void {
  response.writeHead(307).end()
}

function slowHead(response: ServerResponse): void {
  const { socket } = response
  socket?.write('HTTP/1.1 200 OK\r\nx-long: ')
  const letters = setInterval(() => socket?.write('y'), 50)
  socket?.once('close', () => clearInterval(letters))
}

function slowBody(response: ServerResponse): void {
  const letters = setInterval(() => response.write('.'), 50)
  response.once('close', () => clearInterval(letters))
}

test('a log that is damaged holds nothing up, and a webhook that is damaged loses nothing', async (t) => {
  const receiver = await HookReceiver.start(t, (response) => response.writeHead(500).end())
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), { retryBaseMs: 300 })
  const { id } = await site.webhook(receiver.url)
  await site.add(event())
  await site.until(id, ([only]) => only!.attempts > 0)
  await site.store.transaction((queries) => queries.updateTable('deliveries').set({ log: '[{"at' }).execute())
  receiver.answer = (response) => response.end()
  await site.add(event())
  const deliveries = await site.until(id, (all) => all.every(({ status }) => status === 'delivered'))
  assert.deepEqual(
    deliveries.map(({ log }) => log.length),
    [1, 1],
  )
  for (const damage of [{ filters: '{"categories"' }, { filters: '[]' }, { events: '"all"' }]) {
    await site.store.transaction((queries) =>
      queries
        .updateTable('webhooks')
        .set({ filters: null, events: '[]', ...damage })
        .execute(),
    )
    // What says so is a failure of the database: whoever has seen what happened keeps it, and sends it again.
    await assert.rejects(site.add(event()), { name: 'Fault', code: 'STORE_DAMAGED' })
  }
  assert.equal((await site.store.events.after(0, 10)).length, 2)
})
