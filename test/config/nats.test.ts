import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { type Test, test } from 'tap'
import { silentLog } from '../../src/shared/log.ts'
import { JetStreamManageBus, JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import type { BusSettings } from '../../src/plane/jetstream/jetstream-connection.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { document, sighting, until } from '../contract/bus.ts'
import { folderFor } from '../e2e/engines.ts'
import { PASSWORDS, startGuardedNats } from './nats-server.ts'
import { skipped } from '../e2e/programs.ts'

const skip = skipped('nats-server')

const log = silentLog()

test('with config/nats.conf a fleet works, and a proxy may do no more than it needs', { skip }, async (t) => {
  const port = await startGuardedNats(t, (text) => text)
  const { manage, proxy } = buses(t, { url: `nats://127.0.0.1:${port}` })
  await works(manage, proxy)
  const client = await connect({
    servers: `127.0.0.1:${port}`,
    user: 'proxy',
    pass: PASSWORDS.proxy,
    ...INBOX,
  })
  t.teardown(() => client.close())
  const refused: string[] = []
  void watch(client, refused)
  const { streams } = await jetstreamManager(client, { checkAPI: false, timeout: 300 })
  const js = jetstream(client, { timeout: 300 })
  for (const tried of [
    () => js.publish('gatehouse.snapshot', 'mine'),
    () => streams.delete('gatehouse_sightings'),
    () => streams.purge('gatehouse_snapshots'),
    () => streams.add({ name: 'other', subjects: ['other'] }),
    () => js.consumers.get('gatehouse_sightings', 'ingest'),
    () => js.publish('$O.gatehouse_packages.M.x', 'mine'),
  ])
    await assert.rejects(tried)
  for (const subject of ['gatehouse.sightings.*', 'gatehouse.heartbeat.*', '_INBOX.gatehouse.manage.>', '>'])
    client.subscribe(subject)
  client.publish('gatehouse.nudge')
  for (const what of [
    ...['snapshot', 'STREAM.DELETE', 'STREAM.PURGE', 'STREAM.CREATE.other', 'gatehouse_sightings.ingest'],
    ...['_packages.M.x', 'sightings.*', 'heartbeat.*', 'manage.>', '">"', 'nudge'],
  ])
    await until(() => refused.some((said) => said.includes(what)))
  // The existing connection still works.
  proxy.sendHeartbeat(HEARTBEAT)
  await proxy.sendSightings([sighting(9)])
})

test('refuses a wrong password, and accepts the right one afterwards', { skip }, async (t) => {
  const port = await startGuardedNats(t, (text) => text)
  const said: string[] = []
  const spy = {
    ...log,
    warn: (_: string, fields: { error: Error }) => void said.push(fields.error.message),
    info: () => undefined,
  }
  const bus = new JetStreamProxyBus(
    settings({ url: `nats://127.0.0.1:${port}`, user: 'proxy', password: 'guess' }),
    'p',
    { folder: folderFor(t, 'bus') },
    spy as never,
  )
  t.teardown(() => bus.closed())
  await until(() => said.length > 0)
  assert.match(said[0]!, /Authorization Violation/)
  assert.ok(!said.join().includes('guess'))
})

test('over TLS the server says who it is, and nothing is sent to who cannot, or to who speaks without TLS', {
  skip,
}, async (t) => {
  const ca = await testCa()
  const leaf = await testLeaf(ca, ['localhost'])
  const folder = folderFor(t, 'tls')
  const file = (name: string, content: string) => {
    writeFileSync(join(folder, name), content, { mode: 0o600 })
    return join(folder, name)
  }
  const cert = file('tls.crt', leaf.certificate)
  const key = file('tls.key', leaf.key)
  const caFile = file('ca.crt', ca.certificate)
  const tls = `tls { cert_file: "${cert}", key_file: "${key}" }`
  const port = await startGuardedNats(t, (text) => `${tls}\n${text}`)
  const url = `tls://localhost:${port}`
  const { manage, proxy } = buses(t, { url, tls: { caFile, certificateFile: null, keyFile: null } })
  await works(manage, proxy)
  const refusals: string[] = []
  const spy = (name: string) =>
    ({ ...log, warn: () => void refusals.push(name), info: () => undefined }) as never
  const stranger = new JetStreamProxyBus(
    settings({ url, user: 'proxy', password: PASSWORDS.proxy }), // which trusts the CAs of the system
    's',
    { folder: folderFor(t, 'bus') },
    spy('stranger'),
  )
  t.teardown(() => stranger.closed())
  const plain = await startGuardedNats(t, (text) => text)
  const downgraded = new JetStreamProxyBus(
    settings({ url: `tls://localhost:${plain}`, user: 'proxy', password: PASSWORDS.proxy }),
    'd',
    { folder: folderFor(t, 'bus') },
    spy('downgraded'),
  )
  t.teardown(() => downgraded.closed())
  await until(() => refusals.includes('stranger') && refusals.includes('downgraded'))
  assert.deepEqual([stranger.connection.isUp, downgraded.connection.isUp], [false, false])
})

async function works(manage: JetStreamManageBus, proxy: JetStreamProxyBus): Promise<void> {
  const stored: number[] = []
  const heard: string[] = []
  const numbers: number[] = []
  manage.onSightings((batch) => void stored.push(...batch.map(({ snapshot }) => snapshot)))
  manage.onHeartbeat(({ id }) => heard.push(id))
  let nudges = 0
  manage.onNudge(() => nudges++)
  proxy.onSnapshot(({ number }) => numbers.push(number))
  manage.publish(document(1))
  await until(() => numbers.includes(1))
  manage.publish(document(2))
  manage.nudge()
  proxy.sendHeartbeat(HEARTBEAT)
  await proxy.sendSightings([sighting(5)])
  await until(() => numbers.includes(2) && stored.includes(5) && heard.includes('p') && nudges > 0)
}

const HEARTBEAT = {
  ...{ id: 'p', host: 'h', version: '0', configHash: '0'.repeat(64), startedAtMs: 0, everyMs: 1_000 },
  ...{ snapshot: null, source: 'bus' as const, refused: null, workers: [] },
  ...{ sightings: { waiting: 0, dropped: 0 }, isLast: false },
}

function buses(t: Test, place: Partial<BusSettings> & { readonly url: string }) {
  const options = { spreadMs: 10, askMs: 300 }
  const manage = new JetStreamManageBus(
    settings({ ...place, user: 'manage', password: PASSWORDS.manage }),
    {
      ...{ ...options, folder: folderFor(t, 'bus'), sightingsBytesMax: 8 * 1024 ** 2, replicas: 1 },
      mayPublish: async () => true,
    },
    log,
  )
  const proxy = new JetStreamProxyBus(
    settings({ ...place, user: 'proxy', password: PASSWORDS.proxy }),
    'p',
    { ...options, folder: folderFor(t, 'bus') },
    log,
  )
  t.teardown(() => Promise.all([manage.closed(), proxy.closed()]))
  return { manage, proxy }
}

function settings({ url, ...more }: Partial<BusSettings> & { readonly url: string }): BusSettings {
  return {
    ...{ urls: [url], name: 'gatehouse', credentialsFile: null, user: null, password: null, token: null },
    ...{ tls: { caFile: null, certificateFile: null, keyFile: null }, retryMs: 100 },
    ...more,
  }
}

async function watch(client: NatsConnection, refused: string[]): Promise<void> {
  for await (const status of client.status())
    if (status.type === 'error' && /permission/i.test(status.error.message))
      refused.push(status.error.message)
}

const INBOX = { inboxPrefix: '_INBOX.gatehouse.proxy' }
