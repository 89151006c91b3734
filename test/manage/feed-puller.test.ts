import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createPlainServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { sign } from 'node:crypto'
import { createLogTo } from '../../src/shared/log.ts'
import { FeedPuller, type FeedSettings, nextPullMs } from '../../src/manage/publish/feed-puller.ts'
import { FeedStore } from '../../src/manage/publish/feed-store.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import {
  type FeedContent,
  feedKeyOf,
  makeFeedPrivateKey,
  parseFeedPrivateKey,
  signFeed,
} from '../../src/plane/feed.ts'
import { Secret } from '../../src/shared/secret.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
const key = parseFeedPrivateKey(makeFeedPrivateKey())
const other = parseFeedPrivateKey(makeFeedPrivateKey())
const SECRET = 'never-to-be-shown'
const SOFTWARE = [{ id: 'curl', name: 'curl', kind: 'tool' }]

test('a good feed is taken, kept as it was signed, and told of once', async (t) => {
  const { puller, serve, folder, inUse, lines, changes, requests } = await bench(t)
  const text = signed({ version: 3 })
  serve(body(text))
  await puller.pull()
  assert.equal(await inUse(), 3)
  assert.equal(changes(), 1)
  assert.deepEqual(readdirSync(folder), ['vendor@3.json'])
  assert.equal(readFileSync(join(folder, 'vendor@3.json'), 'utf8'), text)
  await puller.pull()
  assert.equal(changes(), 1, 'the same again is nothing new')
  assert.deepEqual(
    lines().map(({ message, version }) => [message, version]),
    [['a feed has a new version', 3]],
  )
  assert.equal(requests[0]!.headers.authorization, `Bearer ${SECRET}`)
  assert.ok(!JSON.stringify(lines()).includes(SECRET))
})

test('what has not changed is not sent again, and a removed file is fetched again', async (t) => {
  const { puller, serve, folder, requests, inUse, state } = await bench(t)
  const text = signed({ version: 3 })
  serve((request, response) => {
    const isSame = request.headers['if-none-match'] === '"three"'
    response.writeHead(isSame ? 304 : 200, { etag: '"three"' }).end(isSame ? '' : text)
  })
  await puller.pull()
  await puller.pull()
  assert.deepEqual(
    requests.map(({ headers }) => headers['if-none-match']),
    [undefined, '"three"'],
  )
  assert.equal((await state()).failures, 0)
  rmSync(folder, { recursive: true })
  await puller.pull()
  assert.equal(requests[2]!.headers['if-none-match'], undefined)
  assert.equal(await inUse(), 3)
})

test('304 to who has nothing is a failure', async (t) => {
  const { puller, serve, state } = await bench(t)
  serve((_, response) => response.writeHead(304).end())
  await puller.pull()
  assert.deepEqual((await state()).reasons, ['status'])
})

test('whatever is wrong with what comes, the last good one stays', async (t) => {
  const good = signed({ version: 3 })
  const envelope = JSON.parse(signed({ version: 4 }))
  const tampered = Buffer.from(envelope.payload, 'base64').toString('utf8').replace('"curl"', '"evil"')
  const cases: readonly (readonly [string, string, Answer, RegExp])[] = [
    ['an older version', 'rolled-back', body(signed({ version: 2 })), /version 2 is offered, and version 3/],
    ['other bytes', 'conflict', body(signed({ version: 3, software: [] })), /version 3 was here with other/],
    ['another key', 'signature', body(signFeed(content({ version: 4 }), [other])), /no key of the config/],
    [
      'a tampered payload',
      'signature',
      body(JSON.stringify({ ...envelope, payload: Buffer.from(tampered).toString('base64') })),
      /not of these bytes/,
    ],
    ['another feed', 'content', body(signed({ name: 'rival', version: 4 })), /this feed is "vendor"/],
    ['half a document', 'malformed', body(signed({ version: 4 }).slice(0, 200)), /is not JSON in UTF-8/],
    ['a page', 'malformed', body('<!doctype html>'), /is not JSON in UTF-8/],
    ['nothing', 'malformed', body(''), /is not JSON in UTF-8/],
    ['expired', 'expired', body(signed({ version: 4, expires: '2026-01-01T00:00:00Z' })), /expired on 2026/],
    ['an error', 'status', (_, response) => response.writeHead(500).end(good), /it answers 500/],
    ['no content', 'status', (_, response) => response.writeHead(204).end(), /it answers 204/],
    [
      'a redirect',
      'redirect',
      (_, response) => response.writeHead(302, { location: '/again' }).end(),
      /it answers 302/,
    ],
    [
      'an end too early',
      'network',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100000' }).write('{')
        setImmediate(() => response.destroy())
      },
      /cannot be fetched/,
    ],
    ['a body that never ends', 'too-large', endless, /longer than bytes_max, 4096 bytes/],
    ['a byte now and then', 'timeout', dripping, /not come within 300 ms/],
    ['no answer', 'timeout', () => undefined, /not come within 300 ms/],
    [
      'one that is half written',
      'network',
      (request) => void request.socket.destroy(),
      /cannot be fetched \(UND_ERR_SOCKET\)/,
    ],
  ]
  for (const [title, reason, answer, expected] of cases) {
    t.test(title, async (t) => {
      const { puller, serve, inUse, lines, state, changes } = await bench(t, { bytesMax: 4096 })
      serve(body(good))
      await puller.pull()
      serve(answer, reason === 'timeout')
      await puller.pull()
      await puller.pull()
      assert.equal(await inUse(), 3)
      assert.equal(changes(), 1)
      assert.deepEqual(await state(), { reasons: [reason], failures: 2 })
      const [line, ...more] = lines().slice(1)
      assert.deepEqual([line!['level'], line!['feed'], line!['reason']], ['warn', 'vendor', reason])
      assert.match((line!['problems'] as string[]).join('\n'), expected)
      assert.deepEqual(more, [], 'it is said once')
      serve(body(good))
      await puller.pull()
      assert.equal(lines().at(-1)!['message'], 'a feed is available again')
    })
  }
})

test('software with problems: all of them are said, ten at most', async (t) => {
  const { puller, serve, inUse, lines } = await bench(t)
  serve(
    body(sealedSoftware(Array.from({ length: 12 }, (_, at) => ({ id: `x${at}`, name: at, kind: 'tool' })))),
  )
  await puller.pull()
  assert.equal(await inUse(), null)
  const problems = lines()[0]!['problems'] as string[]
  assert.deepEqual([problems.length, problems[9]], [10, 'software "x9": 9.name: is 9; expected a name'])
})

test('of a huge body no more is read than may be', async (t) => {
  const { puller, serve, state } = await bench(t, { bytesMax: 1024 * 1024 })
  let written = 0
  serve((request, response) => endless(request, response, (bytes) => (written += bytes)))
  await puller.pull()
  assert.deepEqual((await state()).reasons, ['too-large'])
  assert.ok(written < 64 * 1024 * 1024, `${written}`)
})

test('a server that is not who it says, or speaks no TLS', async (t) => {
  const plain = createPlainServer((_, response) => response.end(signed({ version: 1 })))
  plain.listen(0, '127.0.0.1')
  await once(plain, 'listening')
  t.teardown(() => plain.close())
  const { port } = plain.address() as AddressInfo
  for (const more of [
    { caFile: null }, // the system trusts no such CA
    { url: `https://localhost:${port}/feed` },
    { url: 'https://localhost:1/feed' },
  ]) {
    const { puller, serve, state, inUse } = await bench(t, more)
    serve(body(signed({ version: 1 })))
    await puller.pull()
    assert.deepEqual([(await state()).reasons, await inUse()], [['network'], null])
  }
  const { puller, state, lines } = await bench(t, { caFile: '/nowhere/ca.pem' })
  await puller.pull()
  assert.deepEqual((await state()).reasons, ['configuration'])
  assert.deepEqual(lines()[0]!['problems'], ['/nowhere/ca.pem cannot be read (ENOENT)'])
})

test('a private address is refused when the connection is made, as a name and as it is', async (t) => {
  for (const host of ['localhost', '127.0.0.1', '[::ffff:127.0.0.1]', '0x7f.1']) {
    const { puller, serve, state, requests, lines } = await bench(t, { allowPrivate: false }, host)
    serve(body(signed({ version: 1 })))
    await puller.pull()
    assert.deepEqual(await state(), { reasons: ['address'], failures: 1 }, host)
    assert.match(String(lines()[0]!['problems']), /is not on the public internet; allow_private: true allows/)
    assert.deepEqual(requests, [])
  }
})

test('with the server down, a restart goes on with what was kept', async (t) => {
  const first = await bench(t)
  first.serve(body(signed({ version: 3 })))
  await first.puller.pull()
  const second = await bench(t, { url: 'https://localhost:1/feed' }, 'localhost', first.folder)
  await second.puller.pull()
  assert.equal(await second.inUse(), 3)
  assert.deepEqual((await second.state()).reasons, ['network'])
  const third = await bench(t, {}, 'localhost', first.folder)
  third.serve(body(signed({ version: 2 })))
  await third.puller.pull()
  assert.deepEqual((await third.state()).reasons, ['rolled-back'], 'also a new process knows what it had')
})

test('what was kept is not believed for that: the newest good one is used, and the bad said once', async (t) => {
  const { puller, serve, folder, inUse, lines } = await bench(t)
  for (const version of [1, 2, 3]) {
    serve(body(signed({ version })))
    await puller.pull()
  }
  const said = lines().length
  writeFileSync(join(folder, 'vendor@3.json'), signFeed(content({ version: 3 }), [other]))
  assert.equal(await inUse(), 2)
  writeFileSync(join(folder, 'vendor@9.json'), signed({ version: 2 }))
  assert.equal(await inUse(), 2)
  mkdirSync(join(folder, 'vendor@8.json'))
  writeFileSync(join(folder, 'vendor@99999999999999999999.json'), '')
  writeFileSync(join(folder, 'vendor@-1.json'), '')
  assert.equal(await inUse(), 2)
  assert.equal(await inUse(), 2)
  assert.deepEqual(
    lines()
      .slice(said)
      .map(({ file, problems }) => [String(file).replace(/.*\//, ''), String(problems).replace(/:.*/, '')]),
    [
      ['vendor@3.json', 'no key of the configuration has signed it'],
      ['vendor@9.json', 'the file of version 9 has version 2'],
      ['vendor@8.json', lines()[said + 2]!['problems']!.toString()],
    ],
  )
})

test('a version that expires while it is in use stays, and shows', async (t) => {
  const { puller, serve, state, inUse, metric, folder } = await bench(t)
  mkdirSync(folder)
  writeFileSync(join(folder, 'vendor@3.json'), signed({ version: 3, expires: '2026-01-01T00:00:00Z' }))
  serve((_, response) => response.writeHead(304).end())
  assert.equal(await inUse(), 3)
  assert.equal(await metric('feed_expired'), 1)
  serve(body(signed({ version: 3, expires: '2026-01-01T00:00:00Z' })))
  await puller.pull()
  assert.deepEqual((await state()).reasons, ['expired'])
  serve(body(signed({ version: 4 })))
  await puller.pull()
  assert.equal(await inUse(), 4)
  assert.equal(await metric('feed_expired'), 0)
})

test('a server that says 304 for ever cannot keep an expired version from being noticed', async (t) => {
  const { puller, serve, state } = await bench(t)
  const expires = new Date(Date.now() + 1500).toISOString()
  const text = signed({ version: 3, expires })
  serve((request, response) => {
    const isSame = request.headers['if-none-match'] !== undefined
    response.writeHead(isSame ? 304 : 200, { etag: '"x"' }).end(isSame ? '' : text)
  })
  await puller.pull()
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, Date.parse(expires) - Date.now()) + 1))
  await puller.pull()
  assert.deepEqual((await state()).reasons, ['expired'])
})

test('keys change: both at first, and then only the new one', async (t) => {
  const { puller, serve, folder, inUse } = await bench(t)
  serve(body(signed({ version: 3 })))
  await puller.pull()
  const both = signFeed(content({ version: 3 }), [key, other])
  serve(body(both))
  await puller.pull()
  assert.equal(readFileSync(join(folder, 'vendor@3.json'), 'utf8'), both, 'the same, signed once more')
  const later = await bench(t, { keys: [feedKeyOf(other)] }, 'localhost', folder)
  assert.equal(await later.inUse(), 3)
  later.serve(body(signFeed(content({ version: 4 }), [other])))
  await later.puller.pull()
  assert.equal(await later.inUse(), 4)
  assert.equal(await inUse(), 3, 'who knows the old key only goes on with the old one')
  const between = await bench(t, { keys: [feedKeyOf(key), feedKeyOf(other)] }, 'localhost', folder)
  assert.equal(await between.inUse(), 4)
})

test('a key that is no longer trusted cannot hold the version up', async (t) => {
  const { puller, serve, folder } = await bench(t)
  serve(body(signed({ version: Number.MAX_SAFE_INTEGER })))
  await puller.pull()
  const later = await bench(t, { keys: [feedKeyOf(other)] }, 'localhost', folder)
  later.serve(body(signFeed(content({ version: 4 }), [other])))
  await later.puller.pull()
  assert.equal(await later.inUse(), 4)
})

test('a pin holds newer versions back, and they are kept for later', async (t) => {
  const { puller, serve, store, inUse, metric, folder } = await bench(t)
  const publish = async (version: number) => {
    serve(body(signed({ version })))
    await puller.pull()
  }
  await publish(1)
  await publish(2)
  await store.setPin('vendor', 1)
  assert.equal(await inUse(), 1)
  assert.deepEqual([await metric('feed_version'), await metric('feed_pinned')], [1, 1])
  for (const version of [3, 4, 5, 6, 7, 8]) await publish(version)
  assert.equal(await inUse(), 1)
  assert.deepEqual(await store.versions('vendor'), [8, 7, 6, 5, 4, 1], 'the last few, and the one in use')
  serve(body(signed({ version: 2 })))
  await puller.pull()
  assert.equal(await inUse(), 1)
  writeFileSync(join(folder, 'vendor@pin.json'), '{"version": "1"}')
  assert.equal(await inUse(), 8, 'a pin that cannot be read is none')
  await store.setPin('vendor', 4)
  assert.equal(await inUse(), 4)
  await store.setPin('vendor', null)
  assert.deepEqual([await inUse(), await metric('feed_pinned')], [8, 0])
  await publish(9)
  assert.deepEqual(await store.versions('vendor'), [9, 8, 7, 6, 5])
})

test('a disk that does not take it: the feed is tried again, and nothing half written stays', async (t) => {
  const { puller, serve, state, inUse, folder, changes } = await bench(t)
  writeFileSync(folder, 'a file in the place of the folder')
  serve(body(signed({ version: 3 })))
  await puller.pull()
  assert.deepEqual([(await state()).reasons, changes()], [['storage'], 0])
  rmSync(folder)
  mkdirSync(join(folder, 'vendor@3.json'), { recursive: true })
  await puller.pull()
  assert.deepEqual(readdirSync(folder), ['vendor@3.json'])
  assert.deepEqual(await state(), { reasons: ['storage'], failures: 2 })
  rmSync(folder, { recursive: true })
  await puller.pull()
  assert.deepEqual([await inUse(), changes()], [3, 1])
})

test('feeds whose names begin alike are kept apart', async (t) => {
  const { folder, serve, puller } = await bench(t)
  serve(body(signed({ version: 3 })))
  await puller.pull()
  const short = new FeedStore(folder, [{ name: 'vend', keys: [feedKeyOf(key)] }], silent().log)
  assert.deepEqual([await short.versions('vend'), await short.files()], [[], [`${folder}/.`]])
})

test('metrics', async (t) => {
  const { puller, serve, store, metric, text } = await bench(t)
  assert.equal(await metric('feed_version'), 0)
  assert.doesNotMatch(await text(), /feed_last_success_timestamp_seconds\{/)
  const created = new Date(Date.now() - 3_600_000).toISOString()
  serve(body(signed({ version: 3, created })))
  await puller.pull()
  const loaded = await store.load()
  assert.equal(await metric('feed_version'), 0, 'no request is judged with it yet')
  store.use(loaded)
  assert.equal(await metric('feed_version'), 3)
  assert.ok(Math.abs((await metric('feed_age_seconds')) - 3600) < 60)
  assert.ok(Math.abs((await metric('feed_last_success_timestamp_seconds')) - Date.now() / 1000) < 60)
  assert.match(await text(), /^gatehouse_feed_failures_total\{feed="vendor",reason="timeout"\} 0$/m)
})

test('it goes on by itself, and stops when it is told to', async (t) => {
  const { puller, serve, requests, inUse, state } = await bench(t, { refreshMs: 20 })
  serve(body(signed({ version: 3 })))
  puller.start()
  const alive = setInterval(() => undefined, 1000) // its timers keep no process alive
  t.teardown(() => clearInterval(alive))
  while (requests.length < 3) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.equal(await inUse(), 3)
  const asked = Promise.withResolvers<void>()
  serve(() => asked.resolve())
  await asked.promise
  puller.close()
  await puller.pull()
  assert.equal((await state()).failures, 0, 'what was given up is no failure')
  const { length } = requests
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.equal(requests.length, length)
})

test('whoever asks while a feed is on its way gets what its server has by then, all of them by one more fetch', async (t) => {
  const { puller, serve, requests, inUse } = await bench(t)
  const asked = Promise.withResolvers<ServerResponse>()
  serve((_, response) => asked.resolve(response))
  const first = puller.pull()
  const response = await asked.promise
  serve(body(signed({ version: 4 })))
  const others = [puller.pull(), puller.pull(), puller.pull()]
  response.end(signed({ version: 3 }))
  await first
  await Promise.all(others)
  assert.equal(await inUse(), 4)
  assert.equal(requests.length, 2)
})

test('how long it waits: about the refresh time, after failures less and then more', async () => {
  const hour = 3_600_000
  assert.deepEqual([nextPullMs(0, hour, 0), nextPullMs(0, hour, 0.5)], [0.9 * hour, hour])
  assert.deepEqual(
    [nextPullMs(1, hour, 0), nextPullMs(2, hour, 0), nextPullMs(3, hour, 0)],
    [7500, 15e3, 3e4],
  )
  assert.equal(nextPullMs(50, hour, 0.5), 0.75 * hour)
  assert.ok(nextPullMs(2000, hour, 0.999) <= hour)
  assert.ok(nextPullMs(1, 60_000, 0.999) <= 15_000)
})

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

/** A server with a certificate of the test CA, and a puller that looks after the feed there. */
async function bench(t: Test, more: Partial<FeedSettings> = {}, host = 'localhost', kept?: string) {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-feed-'))
  const folder = kept ?? join(base, 'feeds')
  const caFile = join(base, 'ca.pem')
  writeFileSync(caFile, ca.certificate)
  let answer: Answer = (_, response) => response.writeHead(404).end()
  const requests: IncomingMessage[] = []
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (request, response) => {
    requests.push(request)
    answer(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const settings = {
    ...{ name: 'vendor', url: `https://${host}:${port}/feed`, keys: [feedKeyOf(key)] },
    ...{ refreshMs: 3_600_000, timeoutMs: 30_000, bytesMax: 1024 * 1024 },
    ...{ token: new Secret(SECRET), caFile, allowPrivate: true, ...more },
  }
  const { log, lines } = silent()
  const store = new FeedStore(folder, [settings], log)
  let changed = 0
  const puller = new FeedPuller([settings], store, log, () => changed++)
  t.teardown(() => {
    puller.close()
    server.close()
    server.closeAllConnections()
    rmSync(base, { recursive: true })
  })
  const metrics = new Metrics()
  puller.addMetrics(metrics)
  const text = async () => metricsText([await metrics.read()])
  const failing = /^gatehouse_feed_failures_total\{feed="vendor",reason="(.*)"\} ([1-9]\d*)$/gm
  return {
    ...{ puller, store, folder, requests, lines, text },
    /** `isHasty`: where the time-out is what is tried. */
    serve(next: Answer, isHasty = false) {
      answer = next
      Object.assign(settings, { timeoutMs: isHasty ? 300 : 30_000 })
    },
    changes: () => changed,
    /** The version in use. */
    async inUse() {
      store.use(await store.load())
      return store.inUse('vendor').feed?.version ?? null
    },
    async state() {
      const found = [...(await text()).matchAll(failing)]
      const failures = found.reduce((sum, [, , count]) => sum + Number(count), 0)
      return { reasons: found.map(([, reason]) => reason), failures }
    },
    async metric(name: string) {
      const [, value] =
        new RegExp(`^gatehouse_${name}\\{feed="vendor"\\} (.*)$`, 'm').exec(await text()) ?? []
      return Number(value)
    },
  }
}

function silent() {
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  return { log, lines: (): Record<string, unknown>[] => written.map((line) => JSON.parse(line)) }
}

function body(text: string): Answer {
  return (_, response) => response.end(text)
}

function endless(
  _: IncomingMessage,
  response: ServerResponse,
  count: (bytes: number) => void = () => undefined,
): void {
  const piece = Buffer.alloc(65_536, ' ')
  const write = () => {
    if (response.destroyed) return
    count(piece.length)
    if (response.write(piece)) setImmediate(write)
    else response.once('drain', write)
  }
  write()
}

function dripping(_: IncomingMessage, response: ServerResponse): void {
  response.write('{')
  const drip = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(drip))
}

function content(more: Partial<FeedContent>): FeedContent {
  const created = '2026-11-21T10:00:00Z'
  return { name: 'vendor', version: 1, created, expires: null, software: SOFTWARE, ...more }
}

function signed(more: Partial<FeedContent>): string {
  return signFeed(content(more), [key])
}

/** What no publisher's program would sign. */
function sealedSoftware(software: readonly unknown[]): string {
  const envelope = JSON.parse(signed({}))
  const payload = Buffer.from(JSON.stringify({ ...content({}), expires: undefined, software }))
  const head = `DSSEv1 ${envelope.payloadType.length} ${envelope.payloadType} ${payload.length} `
  const sig = sign(null, Buffer.concat([Buffer.from(head), payload]), key).toString('base64')
  return JSON.stringify({ ...envelope, payload: payload.toString('base64'), signatures: [{ sig }] })
}
