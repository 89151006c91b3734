import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstreamManager, StorageType } from '@nats-io/jetstream'
import { connect, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { test } from 'tap'
import type { NatsSinkSettings } from '../../src/manage/export/nats-sink.ts'
import { ingestInto, NOW_MS, seen } from '../contract/seen.ts'
import { folderFor } from '../e2e/engines.ts'
import { skipped } from '../e2e/programs.ts'
import { GuardedNats } from '../plane/guarded-nats.ts'
import { services, USUAL, withoutNats } from '../services/services.ts'
import { freshUrl, KINDS, openAt, openFresh, type Owner } from '../store/databases.ts'
import { until } from './event-reader.ts'
import { dyingAt, startSink } from './request-sink.ts'

const NATS = services().nats ?? USUAL.nats
const skip = withoutNats()

for (const kind of KINDS)
  test(`${kind}: a stream has each request of these apps once, by app`, { skip }, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest } = ingestInto(store)
    const { name, stored } = await newStream(t)
    await ingest.take([seen(0, { app: 'shop', path: '/before' })])
    const nats = settingsFor(`${name}.{app}`)
    const apps = ['shop', 'blog']
    const first = await startSink(t, store, { nats, apps })
    const sightings = Array.from({ length: 60 }, (_, at) =>
      seen(at + 1, { app: ['shop', 'blog', 'default'][at % 3]!, sampled: at % 2 === 0 ? 0.25 : null }),
    )
    await ingest.take(sightings)
    await until(() => first.counts().sent === 40)
    const wanted = sightings.filter(({ app }) => app !== 'default')
    const messages = await stored()
    assert.deepEqual(
      messages.map(({ header, body, subject }) => [header.get('Nats-Msg-Id'), body['id'], subject]),
      wanted.map(({ id, app }) => [id, id, `${name}.${app}`]),
    )
    assert.deepEqual(Object.keys(messages[0]!.body).slice(0, 4), ['id', 'seen_at', 'app', 'proxy'])
    assert.equal(messages[0]!.body['weight'], 4)
    assert.ok(!('agent_name' in messages[0]!.body))
    await first.sinks.close()
    await ingest.take([seen(100, { app: 'shop', path: '/later' })])
    const second = await startSink(t, store, { nats, apps })
    await until(() => second.counts().sent === 1 && second.counts().waiting === 0)
    assert.equal((await stored()).at(-1)!.body['path'], '/later')
    assert.match(await second.text(), /gatehouse_sink_requests_total\{sink="nats"\} 1\n/)
    await second.sinks.close()
  })

test('a process that dies before it has noted its position sends again, and the stream drops the repeats', {
  skip,
}, async (t) => {
  const store = await openFresh('sqlite', t)
  const { name, stored } = await newStream(t)
  const nats = settingsFor(`${name}.all`)
  const dying = await startSink(t, dyingAt(store), { nats })
  const { ingest } = ingestInto(store)
  const sightings = Array.from({ length: 700 }, (_, at) => seen(at))
  await ingest.take(sightings)
  await until(() => dying.counts().failures > 1)
  await dying.sinks.close()
  const next = await startSink(t, store, { nats })
  await until(() => next.counts().sent === 700)
  assert.deepEqual(
    (await stored()).map(({ body }) => body['id']),
    sightings.map(({ id }) => id),
  )
  await next.sinks.close()
})

test('postgres: of two processes one at a time sends, and the second when the first is gone', {
  skip,
}, async (t) => {
  const url = await freshUrl('postgres', t)
  const [one, other] = [await openAt(t, url), await openAt(t, url)]
  const { name, stored } = await newStream(t)
  const nats = settingsFor(`${name}.all`)
  const sinks = [await startSink(t, one, { nats }), await startSink(t, other, { nats })]
  const { ingest } = ingestInto(one)
  const sightings = Array.from({ length: 40 }, (_, at) => seen(at))
  await ingest.take(sightings.slice(0, 20))
  await until(() => sinks.reduce((sum, each) => sum + each.counts().sent, 0) === 20)
  assert.equal(Math.min(...sinks.map((each) => each.counts().sent)), 0)
  const [first, second] = sinks[0]!.counts().sent === 20 ? sinks : sinks.toReversed()
  await first!.sinks.close()
  await ingest.take(sightings.slice(20))
  await until(() => second!.counts().sent === 20)
  assert.deepEqual((await stored()).length, 40)
  await second!.sinks.close()
})

test('without JetStream, consumers that are connected get each request', { skip }, async (t) => {
  const store = await openFresh('sqlite', t)
  const name = newName()
  const client = await clientOf(t)
  const received: Msg[] = []
  client.subscribe(`${name}.>`, { callback: (_error, message) => void received.push(message) })
  await client.flush()
  const { counts, sinks } = await startSink(t, store, {
    nats: { ...settingsFor(`${name}.{app}`), isStream: false },
  })
  const { ingest } = ingestInto(store)
  const hostile = ['\0', '\ud800x', 'é€😀\u202e', '\r\n"', '\u{fffd}', 'x'.repeat(5_000), '']
  await ingest.take(
    hostile.map((text, at) =>
      seen(at, { path: `/${text}`, userAgent: text, host: text || null, evidence: [text] }),
    ),
  )
  await until(() => received.length === hostile.length && counts().sent === hostile.length)
  const documents = (await store.sightings.newest(null, 100)).map(({ document }) => document).reverse()
  for (const [at, message] of received.entries()) {
    const { id, path, userAgent, host, evidence } = documents[at]!
    const body = message.json<Record<string, unknown>>()
    assert.deepEqual([body['path'], body['user_agent'], body['host']], [path, userAgent, host])
    assert.deepEqual([body['id'], message.headers?.get('Nats-Msg-Id'), body['evidence']], [id, id, evidence])
  }
  await sinks.close()
})

test('requests wait until a stream has their subject, and until it has room', { skip }, async (t) => {
  const store = await openFresh('sqlite', t)
  const name = newName()
  const { counts, said, sinks, text } = await startSink(t, store, { nats: settingsFor(`${name}.{app}`) })
  const { ingest } = ingestInto(store)
  await ingest.take(Array.from({ length: 30 }, (_, at) => seen(at)))
  await until(() => counts().failures > 1 && counts().waiting === 30)
  assert.match(said()[0]!, /no stream has the subject gh-[0-9a-f]+\.default/)
  while (await store.sightings.forget(0, NOW_MS, 10));
  await until(() => counts().lost === 20)
  assert.match(await text(), /gatehouse_sink_requests_lost_total\{sink="nats"\} 20\n/)
  const { stored } = await newStream(t, { name, max_msgs: 4, discard: 'new' })
  const failures = counts().failures
  await until(() => counts().failures > failures + 2)
  assert.deepEqual([(await stored()).length, counts().sent], [4, 0])
  const manager = await jetstreamManager(await clientOf(t))
  await manager.streams.update(name, { max_msgs: -1 })
  await until(() => counts().sent === 10)
  assert.equal((await stored()).length, 10)
  assert.equal(said().filter((line) => line.includes('a sink takes no requests')).length, 1)
  await sinks.close()
})

test('a request that is too long for its stream is counted, and holds up no other', { skip }, async (t) => {
  const store = await openFresh('sqlite', t)
  const { name, stored } = await newStream(t, { max_msg_size: 1_200 })
  const { counts, said, sinks } = await startSink(t, store, { nats: settingsFor(`${name}.all`) })
  const { ingest } = ingestInto(store)
  await ingest.take(
    Array.from({ length: 9 }, (_, at) => seen(at, { userAgent: 'x'.repeat(at === 4 ? 900 : 9) })),
  )
  await until(() => counts().sent === 8)
  assert.deepEqual([counts().lost, (await stored()).length], [1, 8])
  assert.equal(said().filter((line) => line.includes('has refused requests for good')).length, 1)
  await sinks.close()
})

test('a server that refuses the subject gets nothing, and a new login in the file is used', {
  skip: skipped('nats-server'),
}, async (t) => {
  const users = (...lines: readonly string[]) => `authorization: {users: [${lines.join(',')}]}`
  const reader = '{user: reader, password: r}'
  const denied = '{user: gate, password: one, permissions: {publish: "elsewhere.>"}}'
  const allowed = '{user: gate, password: two, permissions: {publish: "requests.>"}}'
  const server = await GuardedNats.start(t, users(reader, denied, allowed.replace('gate', 'other')))
  const url = `nats://127.0.0.1:${server.port}`
  const passwordFile = join(folderFor(t, 'login'), 'password')
  writeFileSync(passwordFile, 'one\n')
  const client = await clientOf(t, { servers: url, user: 'reader', pass: 'r' })
  const received: string[] = []
  client.subscribe('requests.>', {
    callback: (_error, message) => void received.push(message.json<{ id: string }>().id),
  })
  await client.flush()
  const login = {
    ...NO_LOGIN,
    user: 'gate',
    secretFiles: { user: null, password: passwordFile, token: null },
  }
  const nats = { urls: [url], subject: 'requests.{app}', isStream: false, login }
  const store = await openFresh('sqlite', t)
  const { counts, said, sinks } = await startSink(t, store, { nats })
  const { ingest } = ingestInto(store)
  await ingest.take([seen(1), seen(2)])
  await until(() => counts().failures > 0)
  assert.match(said()[0]!, /Permissions Violation/i)
  assert.deepEqual([received, counts().sent], [[], 0])
  writeFileSync(passwordFile, 'two\n')
  server.reload(users(reader, allowed))
  await until(() => received.length >= 2 && counts().sent === 2)
  assert.deepEqual(new Set(received), new Set([seen(1).id, seen(2).id]))
  assert.ok(!said().join().includes('two'))
  await sinks.close()
})

interface StoredMessage {
  readonly subject: string
  readonly header: { get(name: string): string }
  readonly body: Readonly<Record<string, unknown>>
}

/** A stream of the test's own, in memory, for all subjects below its name. */
async function newStream(t: Owner, limits: Record<string, unknown> = {}) {
  const name = typeof limits['name'] === 'string' ? limits['name'] : newName()
  const client = await clientOf(t)
  const manager = await jetstreamManager(client)
  await manager.streams.add({ name, subjects: [`${name}.>`], storage: StorageType.Memory, ...limits })
  t.teardown(() => manager.streams.delete(name))
  const stored = async (): Promise<readonly StoredMessage[]> => {
    const { state } = await manager.streams.info(name)
    const numbers = Array.from({ length: state.messages }, (_, at) => state.first_seq + at)
    const messages = await Promise.all(numbers.map((seq) => manager.streams.getMessage(name, { seq })))
    return messages.map((each) => ({ subject: each!.subject, header: each!.header, body: each!.json() }))
  }
  return { name, stored }
}

async function clientOf(
  t: Owner,
  options: Parameters<typeof connect>[0] = { servers: NATS },
): Promise<NatsConnection> {
  const client = await connect(options)
  t.teardown(() => client.close())
  return client
}

function settingsFor(subject: string): NatsSinkSettings {
  return { urls: [NATS], subject, isStream: true, login: NO_LOGIN }
}

function newName(): string {
  return `gh-${randomUUID().replaceAll('-', '')}`
}

const NO_LOGIN = {
  ...{ credentialsFile: null, user: null, password: null, token: null },
  tls: { caFile: null, certificateFile: null, keyFile: null },
}
