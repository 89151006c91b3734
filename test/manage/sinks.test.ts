import assert from 'node:assert/strict'
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { SinkRunner } from '../../src/manage/events/sinks/sink-runner.ts'
import { newCounts, SinkMetrics } from '../../src/manage/events/sinks/sink-metrics.ts'
import { eventSource, lineOf, Sinks, type SinkSettings } from '../../src/manage/events/sinks/sinks.ts'
import { SyslogStreamSink } from '../../src/manage/events/sinks/stream-sink.ts'
import { datagramOf } from '../../src/manage/events/sinks/udp-sink.ts'
import { sinkKinds } from '../../src/manage/export/request-sinks.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import type { Store } from '../../src/store/store.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { freshUrl, KINDS, openAt, openFresh, type Owner } from '../store/databases.ts'
import { addEvents, newEvent, until } from './event-reader.ts'
import { streamReceiver, udpReceiver } from './syslog-receiver.ts'

for (const kind of KINDS) {
  test(`${kind}: a file has each event as a line, from the first start on, and goes on after the next`, async (t) => {
    const store = await openFresh(kind, t)
    const file = join(await folder(t), 'events.jsonl')
    await addEvents(store, newEvent('before'))
    const first = await started(t, store, { file: { file, format: 'json' }, syslog: null })
    await first.add(newEvent('a', { atMs: 0 }), newEvent('test', { type: 'test' }), newEvent('b'))
    await until(async () => (await ids(file)).length === 2)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
    const [line] = (await readFile(file, 'utf8')).split('\n')
    assert.equal(
      line,
      '{"id":"a","type":"new_signature","timestamp":"1970-01-01T00:00:00.000Z","data":{"signature":{"id":"x"}}}',
    )
    await first.sinks.close()
    await addEvents(store, newEvent('c'))
    await appendFile(file, '{"half":') // as who was killed may leave it
    const second = await started(t, store, { file: { file, format: 'json' }, syslog: null })
    await until(async () => (await ids(file)).includes('c'))
    assert.deepEqual(await ids(file), ['a', 'b', null, 'c'])
    await second.sinks.close()
  })

  test(`${kind}: a file has the events of its apps only, and goes on behind those it left out`, async (t) => {
    const store = await openFresh(kind, t)
    const file = join(await folder(t), 'events.jsonl')
    const settings: SinkSettings = { file: { file, format: 'json' }, syslog: null, apps: ['shop', 'default'] }
    const { add, sinks, text } = await started(t, store, settings)
    const apps = ['blog', 'shop', null, 'default', 'blog'] as const
    await add(...apps.map((app, at) => newEvent(`${at}`, { app })))
    await until(async () => (await ids(file)).length === 2)
    assert.deepEqual(await ids(file), ['1', '3'])
    const position = async () =>
      (await store.eventPositions.claim(
        { name: `file ${file}`, holder: 'own' },
        { nowMs: 0, untilMs: Number.MAX_SAFE_INTEGER },
        0,
      )) as number
    if (kind === 'sqlite') await until(async () => (await position()) === (await store.events.last()))
    await until(async () => (await text()).includes('gatehouse_sink_events_total{sink="file"} 2\n'))
    await sinks.close()
    await addEvents(store, newEvent('away', { app: 'shop' }), newEvent('not', { app: 'blog' }))
    const again = await started(t, store, settings)
    await again.add(newEvent('later', { app: 'shop' }))
    await until(async () => (await ids(file)).includes('later'))
    assert.deepEqual(await ids(file), ['1', '3', 'away', 'later'])
    await again.sinks.close()
  })

  test(`${kind}: whoever dies before it is written down hands on again, and misses nothing`, async (t) => {
    const store = await openFresh(kind, t)
    const file = join(await folder(t), 'events.jsonl')
    const settings = { file: { file, format: 'json' as const }, syslog: null }
    const death = Promise.withResolvers<never>()
    death.promise.catch(() => undefined)
    const first = await started(t, dyingAt(store, death.promise), settings)
    await first.add(...many(250))
    await until(async () => (await ids(file)).length >= 100)
    const closed = first.sinks.close()
    death.reject(new Error('killed'))
    await closed
    const second = await started(t, store, settings)
    await until(async () => new Set(await ids(file)).size === 250)
    assert.deepEqual(
      (await ids(file)).slice(-250),
      many(250).map(({ id }) => id),
    )
    await second.sinks.close()
  })
}

test('postgres: of two processes one at a time tells syslog, and the other when that one is gone', async (t) => {
  const url = await freshUrl('postgres', t)
  const [one, other] = [await openAt(t, url), await openAt(t, url)]
  const receiver = await streamReceiver()
  t.teardown(() => receiver.die().catch(() => undefined))
  const place = { protocol: 'tcp', host: '127.0.0.1', port: receiver.port, ca: null } as const
  const runner = (store: Store, holder: string, tally: ReturnType<typeof newCounts>) => {
    const sink = new SyslogStreamSink(place, lineOf('json', '1'))
    const source = eventSource({ store, events: new EventLog(store) }, [])
    const settings = { name: 'syslog', holder, isShared: true, pollMs: 20, turnMs: 600 }
    return new SinkRunner({ sink, source }, settings, { store, log: SILENT, nowMs: Date.now }, tally)
  }
  const tallies = [newCounts(), newCounts()]
  const runners = [runner(one, 'one', tallies[0]!), runner(other, 'other', tallies[1]!)]
  for (const each of runners) await each.start()
  await addEvents(one, ...many(20))
  await until(() => receiver.messages.length === 20)
  assert.deepEqual(
    tallies.map(({ sent }) => sent),
    [20, 0],
  )
  await runners[0]!.close()
  await addEvents(one, newEvent('z'))
  await until(() => receiver.messages.some((message) => message.includes('"id":"z"')))
  assert.ok(tallies[1]!.sent > 0)
  await runners[1]!.close()
})

test('a file that is moved away is begun anew, and one whose folder is missing is waited for', async (t) => {
  const store = await openFresh('sqlite', t)
  const place = join(await folder(t), 'later')
  const file = join(place, 'events.cef')
  const { add, sinks, said, text } = await started(t, store, { file: { file, format: 'cef' }, syslog: null })
  await add(newEvent('a'))
  await until(() => said().length === 1)
  assert.match(said()[0]!, /ENOENT.*takes no events/)
  await until(async () => /gatehouse_sink_failures_total\{sink="file"\} [1-9]/.test(await text()))
  assert.match(await text(), /gatehouse_sink_lag_seconds\{sink="file"\} [\d.e-]*[1-9]/)
  await mkdir(place)
  await until(async () => (await lines(file)).length === 1)
  await rename(file, `${file}.1`)
  await add(newEvent('b'))
  await until(async () => (await lines(file)).length === 1)
  await rm(file)
  await add(newEvent('c'))
  await until(async () => (await lines(file)).length === 1)
  assert.match((await lines(file))[0]!, /^CEF:0\|Gatehouse\|Gatehouse\|9\.9\|new_signature\|.*externalId=c$/)
  assert.match((await lines(`${file}.1`))[0]!, /externalId=a$/)
  await writeFile(file, '') // as copying and cutting does
  await add(newEvent('d'))
  await until(async () => (await lines(file)).length === 1)
  assert.match(await text(), /gatehouse_sink_lag_seconds\{sink="file"\} 0/)
  assert.deepEqual(
    said().map((line) => JSON.parse(line).message),
    ['a sink takes no events; it is tried again', 'a sink takes events again'],
  )
  await sinks.close()
})

test('a receiver that dies, hangs and comes back has every event, over TCP and over TLS', async (t) => {
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['localhost'])
  const protocols = [
    ['tcp', null],
    ['tls', { cert: leaf.certificate, key: leaf.key }],
  ] as const
  for (const [protocol, tls] of protocols) {
    const store = await openFresh('sqlite', t)
    let receiver = await streamReceiver(0, tls)
    const { port } = receiver
    const url = `${protocol}://localhost:${port}`
    const { add, sinks } = await started(t, store, {
      ...{ file: null, syslog: { url, format: 'json', ca: tls && ca.certificate } },
    })
    const got: string[] = []
    for (let round = 0; round < 3; round++) {
      await add(...many(150, round))
      await until(() => receiver.messages.length >= 100)
      got.push(...receiver.messages)
      if (round === 1) receiver.hang()
      await add(newEvent(`late_${round}`))
      await receiver.die()
      got.push(...receiver.messages)
      receiver = await streamReceiver(port, tls)
    }
    const wanted = [
      ...[0, 1, 2].flatMap((round) => many(150, round)),
      ...[0, 1, 2].map((n) => newEvent(`late_${n}`)),
    ]
    const has = () => new Set([...got, ...receiver.messages].map(idIn))
    await until(() => wanted.every(({ id }) => has().has(id)))
    assert.equal(has().size, wanted.length)
    await sinks.close()
    await receiver.die()
  }
})

test('a receiver of datagrams that comes back has what was sent while it was away', async (t) => {
  const store = await openFresh('sqlite', t)
  let receiver = await udpReceiver()
  const { port } = receiver
  const { add, sinks, sinkMetrics } = await started(t, store, {
    ...{ file: null, syslog: { url: `udp://127.0.0.1:${port}`, format: 'cef', ca: null } },
  })
  await add(newEvent('a'))
  await until(() => receiver.messages.length === 1)
  assert.match(receiver.messages[0]!, /^<134>1 \S+ \S+ gatehouse \d+ new_signature - CEF:0\|/)
  await receiver.die()
  await add(newEvent('b'))
  await until(() => sinkMetrics.of('syslog').failures > 0)
  receiver = await udpReceiver(port)
  await until(() => receiver.messages.some((message) => message.includes('externalId=b')))
  await add(newEvent('long', { data: JSON.stringify({ reason: 'x'.repeat(100_000) }) }))
  await until(() => receiver.messages.some((message) => message.includes('externalId=long')))
  await sinks.close()
  await receiver.die()
})

test('a datagram that is too long is cut between two characters', async () => {
  for (const character of ['x', 'é', '€', '😀'])
    for (let shift = 0; shift < 4; shift++) {
      const message = Buffer.from('x'.repeat(shift) + character.repeat(65_001))
      const datagram = datagramOf(message)
      assert.ok(!datagram.toString().includes('\ufffd'), `${character} ${shift}`)
      assert.ok(datagram.length <= 65_000 && datagram.length > 65_000 - Buffer.byteLength(character))
    }
  const short = Buffer.from('é'.repeat(32_500))
  assert.equal(datagramOf(short), short)
})

test('a receiver whose certificate is not trusted, or of another name, is told nothing', async (t) => {
  const [ca, other] = [await testCa(), await testCa()]
  const right = await testLeaf(ca, ['localhost'])
  const wrong = await testLeaf(ca, ['other.example.test'])
  const cases = [
    [right, other.certificate, /unable to verify|certificate/],
    [right, null, /unable to verify|certificate/],
    [wrong, ca.certificate, /Hostname\/IP does not match/],
  ] as const
  for (const [leaf, trusted, why] of cases) {
    const store = await openFresh('sqlite', t)
    const receiver = await streamReceiver(0, { cert: leaf.certificate, key: leaf.key })
    const url = `tls://localhost:${receiver.port}`
    const { add, sinks, said } = await started(t, store, {
      ...{ file: null, syslog: { url, format: 'cef', ca: trusted } },
    })
    await add(newEvent('a'))
    await until(() => said().length > 0)
    assert.match(said()[0]!, why)
    await sinks.close()
    await receiver.die()
    assert.deepEqual(receiver.messages, [])
  }
})

test('a restored database is read from where it stands', async (t) => {
  const store = await openFresh('sqlite', t)
  const file = join(await folder(t), 'events.jsonl')
  const { add, sinks } = await started(t, store, { file: { file, format: 'json' }, syslog: null })
  await add(newEvent('a'), newEvent('b'))
  await until(async () => (await ids(file)).length === 2)
  const [a, b] = await store.events.after(0, 2)
  const sink = { name: `file ${file}`, holder: 'own' }
  const times = { nowMs: 0, untilMs: Number.MAX_SAFE_INTEGER }
  await until(async () => (await store.eventPositions.claim(sink, times, 0)) === b!.number)
  await store.eventPositions.move(sink, a!.number)
  sinks.restored()
  await add(newEvent('c'))
  await until(async () => (await ids(file)).length === 4)
  assert.deepEqual(await ids(file), ['a', 'b', 'b', 'c'])
  await sinks.close()
})

async function started(t: Owner, store: Store, settings: SinkSettings) {
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => written.push(line) })
  const events = new EventLog(store)
  const sinkMetrics = new SinkMetrics(sinkKinds({ ...settings }))
  const sinks = new Sinks(settings, sinkMetrics, { pollMs: 50, retryBaseMs: 20 })
  const metrics = new Metrics()
  sinkMetrics.addTo(metrics)
  const alive = setInterval(() => undefined, 1_000) // what hands on does not keep a process alive
  t.teardown(() => clearInterval(alive))
  t.teardown(() => sinks.close())
  await sinks.start({ store, events, log, version: '9.9', nowMs: Date.now })
  const add = async (...some: readonly NewEvent[]) => {
    await addEvents(store, ...some)
    events.added()
  }
  const text = async () => metricsText([await metrics.read()])
  return { sinks, sinkMetrics, add, said: () => written, text }
}

/** Of a process that is killed when it is about to write down how far it has come. */
function dyingAt(store: Store, death: Promise<never>): Store {
  const eventPositions = {
    claim: store.eventPositions.claim.bind(store.eventPositions),
    move: () => death,
  }
  const transaction = store.transaction.bind(store)
  return { events: store.events, eventPositions, kind: store.kind, transaction } as unknown as Store
}

async function folder(t: Owner): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'gatehouse-sinks-'))
  t.teardown(() => rm(made, { recursive: true, force: true }))
  return made
}

async function lines(file: string): Promise<readonly string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text.split('\n').slice(0, -1)
}

/** `null`: a line that is none. */
async function ids(file: string): Promise<readonly (string | null)[]> {
  return (await lines(file)).map((line) => {
    try {
      return (JSON.parse(line) as { id: string }).id
    } catch {
      return null
    }
  })
}

function idIn(message: string): string {
  return /"id":"([^"]*)"/.exec(message)![1]!
}

function many(count: number, from: number | string = 'm'): readonly NewEvent[] {
  return Array.from({ length: count }, (_, at) => newEvent(`evt_${from}_${at}`))
}

const SILENT = createLogTo('silent', { write: () => undefined })
