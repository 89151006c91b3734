import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { globSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { after, test } from 'tap'
import { silentLog } from '../../src/shared/log.ts'
import { JetStreamManageBus, JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import type { BusSettings } from '../../src/plane/jetstream/jetstream-connection.ts'
import { writeAnnouncement } from '../../src/plane/announcement.ts'
import type { SnapshotDocument } from '../../src/plane/snapshot.ts'
import { type BusUnderTest, busContract, document, sighting, until } from '../contract/bus.ts'
import { startNats } from '../e2e/engines.ts'
import { skipped } from '../e2e/programs.ts'
import { services, USUAL, withoutNats } from '../services/services.ts'
import { Relay } from '../store/relay.ts'

const NATS = services().nats ?? USUAL.nats
const needsNats = { skip: withoutNats() }
const log = silentLog()
const folders: string[] = []
const names: string[] = []

after(async () => {
  if (needsNats.skip) return
  await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })))
  const client = await connect({ servers: NATS })
  const { streams } = await jetstreamManager(client, { checkAPI: false })
  for await (const { config } of streams.list())
    if (names.some((name) => config.name.includes(name))) await streams.delete(config.name)
  await client.close()
})

busContract(
  'JetStream',
  async (): Promise<BusUnderTest> => {
    const fleet = await newFleet()
    return {
      manage: fleet.manage,
      isDirect: false,
      async join() {
        const { bus, relay } = await fleet.proxy()
        return { bus, lose: () => relay.stop() }
      },
      close: () => fleet.close(),
    }
  },
  needsNats,
)

test('a manager takes nothing for published that another one has overtaken', needsNats, async () => {
  const fleet = await newFleet()
  const other = await fleet.manager()
  const { bus } = await fleet.proxy()
  const numbers: number[] = []
  bus.onSnapshot(({ number }) => numbers.push(number))
  fleet.manage.publish(document(5))
  await until(() => numbers.includes(5))
  // Its clock is behind: the number rises all the same.
  other.publish({ ...document(3), hash: 'cd'.repeat(32), policy: { rules: [], otherwise: 'pass' } })
  await until(() => numbers.includes(6))
  assert.deepEqual(numbers, [5, 6])
  await until(() => fleet.manage.followed.inUse?.number === 6)
  await fleet.close()
})

test('does not announce a Snapshot twice, and keeps it complete', needsNats, async () => {
  const fleet = await newFleet()
  fleet.manage.publish(document(5))
  await until(() => fleet.manage.followed.inUse?.number === 5)
  // As after an answer that got lost: the same again, from the current leader.
  const other = await fleet.manager()
  other.publish(document(4))
  other.publish(document(5))
  const { bus } = await fleet.proxy()
  const numbers: number[] = []
  bus.onSnapshot(({ number }) => numbers.push(number))
  await until(() => numbers.length > 0)
  fleet.manage.publish({ ...document(6), hash: 'ef'.repeat(32) })
  await until(() => numbers.includes(6))
  assert.deepEqual(numbers, [5, 6])
  assert.equal(other.published, 0)
  await fleet.close()
})

for (const [what, message] of [
  ['is unreadable', Buffer.from('no announcement')],
  ['has the highest number', announcementOf(Number.MAX_SAFE_INTEGER)],
  ['has a number far in the future', announcementOf(Date.now() + 10 * 86_400_000)],
] as const)
  test(`an announcement that ${what} does not stop later Snapshots`, needsNats, async () => {
    const fleet = await newFleet()
    const other = await fleet.manager()
    const { bus } = await fleet.proxy()
    const numbers: number[] = []
    bus.onSnapshot(({ number }) => numbers.push(number))
    fleet.manage.publish(document(5))
    await until(() => numbers.includes(5) && other.followed.inUse?.number === 5)
    await fleet.announce(message)
    // Its clock is behind.
    other.publish({ ...document(3), hash: 'cd'.repeat(32), policy: { rules: [], otherwise: 'pass' } })
    await until(() => numbers.includes(6))
    fleet.manage.publish({ ...document(6), hash: 'ef'.repeat(32) })
    await until(() => numbers.includes(7))
    assert.deepEqual(numbers, [5, 6, 7])
    await fleet.close()
  })

test('who may no longer publish does not', needsNats, async () => {
  const fleet = await newFleet()
  const deposed = await fleet.manager(async () => false)
  const { bus } = await fleet.proxy()
  const numbers: number[] = []
  bus.onSnapshot(({ number }) => numbers.push(number))
  deposed.publish(document(7))
  fleet.manage.publish(document(8))
  await until(() => numbers.length > 0)
  assert.deepEqual(numbers, [8])
  assert.equal(deposed.published, 0)
  await fleet.close()
})

test('a small change travels as a change, and what was missed is asked for', needsNats, async () => {
  const fleet = await newFleet()
  const { bus, relay } = await fleet.proxy()
  const seen: SnapshotDocument[] = []
  bus.onSnapshot((each) => seen.push(each))
  fleet.manage.publish(large(1, 'a'))
  await until(() => seen.length === 1)
  fleet.manage.publish(large(2, 'b'))
  await until(() => seen.length === 2)
  assert.deepEqual(seen[1], large(2, 'b'))
  await relay.stop()
  fleet.manage.publish(large(3, 'c'))
  await until(() => fleet.manage.followed.inUse?.number === 3)
  await relay.start()
  await until(() => seen.length === 3)
  assert.deepEqual(seen[2], large(3, 'c'))
  await fleet.close()
})

test('a proxy starts with what it had, while there is no NATS', needsNats, async () => {
  const fleet = await newFleet()
  const { bus, folder } = await fleet.proxy()
  bus.onSnapshot(() => undefined)
  fleet.manage.publish(large(4, 'd'))
  await until(() => bus.followed.inUse?.number === 4)
  await bus.closed()
  await fleet.close()
  const alone = new JetStreamProxyBus(nowhere(), 'alone', { folder }, log)
  assert.equal(await alone.restore(), true)
  const seen: SnapshotDocument[] = []
  alone.onSnapshot((each) => seen.push(each))
  assert.deepEqual(seen, [large(4, 'd')])
  await assert.rejects(alone.sendSightings([sighting(1)]), { code: 'BUS_CLOSED' })
  await alone.closed()
})

test('what a dead manager had taken and not stored goes to another one', needsNats, async () => {
  const fleet = await newFleet()
  const { bus } = await fleet.proxy()
  fleet.manage.onSightings(() => Promise.reject(new Error('no database')))
  await bus.sendSightings([sighting(1), sighting(2)])
  await until(() => fleet.manage.counts.returned > 0)
  const other = await fleet.manager()
  const stored: number[] = []
  other.onSightings((batch) => void stored.push(...batch.map(({ snapshot }) => snapshot)))
  await fleet.manage.closed()
  await until(() => stored.length > 0)
  assert.deepEqual(stored, [1, 2])
  await fleet.close()
})

test(
  'what proxies say of themselves is heard by every manager, also by one that comes later',
  needsNats,
  async () => {
    const fleet = await newFleet()
    const { bus } = await fleet.proxy()
    const heartbeat = {
      ...{
        id: 'a1',
        host: 'one',
        version: '0.1.0',
        configHash: 'ab'.repeat(32),
        startedAtMs: 1,
        everyMs: 1_000,
      },
      ...{ snapshot: { number: 3, hash: 'x', madeAtMs: 2 }, source: 'bus' as const, refused: null },
      workers: [
        {
          number: 0,
          pid: 7,
          state: 'serving' as const,
          sinceMs: 5,
          snapshot: 3,
          dropped: 2,
          unready: ['no'],
        },
      ],
      ...{ sightings: { waiting: 1, dropped: 2 }, isLast: false },
    }
    const heard: unknown[] = []
    fleet.manage.onHeartbeat((each) => heard.push(each))
    await until(() => {
      bus.sendHeartbeat(heartbeat)
      return heard.length > 0
    })
    const late: unknown[] = []
    const other = await fleet.manager()
    other.onHeartbeat((each) => late.push(each))
    await until(() => late.length > 0)
    assert.deepEqual(heard[0], heartbeat)
    assert.deepEqual(late[0], heartbeat)
    await fleet.close()
  },
)

test('Sightings arrive after NATS has lost the numbers of a stream', {
  skip: skipped('nats-server'),
}, async (t) => {
  const nats = await startNats(t)
  const fleet = await newFleet(nats.url)
  const taken: number[] = []
  fleet.manage.onSightings((batch) => void taken.push(...batch.map(({ snapshot }) => snapshot)))
  const { bus } = await fleet.proxy()
  for (const number of [1, 2, 3]) await bus.sendSightings([sighting(number)])
  await until(() => fleet.manage.counts.taken === 3)
  await nats.stop()
  // As after a full disk: NATS removes the file that it could not write, and the last number with it.
  const files = globSync(joinPath(nats.folder, 'store/**/*_sightings/msgs/*'))
  assert.ok(files.length > 0)
  for (const file of files) rmSync(file)
  await nats.start()
  await until(() => bus.connection.isUp)
  for (const number of [4, 5]) await bus.sendSightings([sighting(number)])
  await until(() => taken.length === 5)
  assert.deepEqual(taken, [1, 2, 3, 4, 5])
  await fleet.close()
})

test('who publishes hears that it is nudged', needsNats, async () => {
  const fleet = await newFleet()
  const other = await fleet.manager()
  await until(() => other.connection.isUp)
  let nudges = 0
  fleet.manage.onNudge(() => nudges++)
  await until(() => {
    other.nudge()
    return nudges > 0
  })
  assert.ok(nudges > 0)
  await fleet.close()
})

/** Its package does not exist. */
function announcementOf(number: number): Buffer {
  const [hash, digest] = ['cd'.repeat(32), 'ab'.repeat(32)]
  return writeAnnouncement({ number, hash, madeAtMs: 1, digest, bytes: 10, delta: null })
}

/** Hardly to be compressed by itself. */
function large(number: number, letter: string): SnapshotDocument {
  const rules = FILLING.map((name) => ({ name, when: { path: `/${letter}` }, action: 'tag' }))
  return { ...document(number), policy: { rules } }
}

const FILLING = Array.from({ length: 1_000 }, () => randomBytes(24).toString('hex'))

async function newFleet(nats = NATS) {
  const name = `test-${randomBytes(6).toString('hex')}`
  names.push(name)
  const settings = (url: string): BusSettings => ({
    ...{ urls: [url], name, retryMs: 50 },
    ...{ credentialsFile: null, user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  })
  const limits = { sightingsBytesMax: 16 * 1024 ** 2, replicas: 1, spreadMs: 20, askMs: 500 }
  const open: { closed(): Promise<void> }[] = []
  const manager = async (mayPublish = async () => true) => {
    const bus = new JetStreamManageBus(
      settings(nats),
      { ...limits, folder: await newFolder(), mayPublish },
      log,
    )
    open.push(bus)
    return bus
  }
  const manage = await manager()
  await until(() => manage.connection.isUp)
  await streamsOf(name, nats)
  return {
    manage,
    manager,
    async proxy() {
      const relay = await Relay.before(nats)
      const folder = await newFolder()
      const id = randomBytes(4).toString('hex')
      const bus = new JetStreamProxyBus(settings(relay.url), id, { folder, spreadMs: 20, askMs: 500 }, log)
      open.push({ closed: () => bus.closed().finally(() => relay.stop()) })
      await until(() => bus.connection.isUp)
      return { bus, relay, folder }
    },
    async announce(message: Buffer) {
      const client = await connect({ servers: nats })
      await jetstream(client).publish(`${name}.snapshot`, message)
      await client.close()
    },
    async close() {
      await Promise.all(open.map((each) => each.closed()))
    },
  }
}

/** The first manager makes the streams: until it has, nothing is taken. */
async function streamsOf(name: string, nats: string): Promise<void> {
  const client = await connect({ servers: nats })
  const { consumers } = await jetstreamManager(client, { checkAPI: false })
  for (;;) {
    const found = await consumers.info(`${name}_sightings`, 'ingest').catch(() => null)
    if (found !== null) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await client.close()
}

function nowhere(): BusSettings {
  return {
    ...{ urls: ['nats://127.0.0.1:9'], name: 'nowhere', credentialsFile: null },
    ...{ user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  }
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(joinPath(tmpdir(), 'gatehouse-bus-'))
  folders.push(folder)
  return folder
}
