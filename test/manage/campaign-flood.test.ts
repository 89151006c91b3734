import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type Test, test } from 'tap'
import { FOUND_MAX } from '../../src/classify/campaign/finder.ts'
import { CAMPAIGNS_MAX } from '../../src/classify/campaign/members.ts'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import { Campaigns } from '../../src/manage/intake/campaigns.ts'
import { takeIn } from '../../src/manage/intake/sighting-intake.ts'
import { JetStreamManageBus, JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import type { BusSettings } from '../../src/plane/jetstream/jetstream-connection.ts'
import { type Sighting, SIGHTING_TEXT_MAX } from '../../src/plane/sighting.ts'
import { parseSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { memoryInUse } from '../capture/memory.ts'
import { document } from '../contract/bus.ts'
import { seen, SILENT } from '../contract/seen.ts'
import { services, USUAL, withoutNats } from '../services/services.ts'
import { openFresh } from '../store/databases.ts'
import { until } from '../until.ts'
import { crawled, CRAWLED_MS } from './crawled.ts'

const NATS = services().nats ?? USUAL.nats
const needsNats = { skip: withoutNats() }

test(
  'a flood of invented visitors over the bus costs a fixed memory and hides no crawler',
  needsNats,
  async (t) => {
    const { manage, proxy } = await fleet(t)
    const store = await openFresh('sqlite', t)
    let reported = 0
    const campaigns = new Campaigns({
      ...{ store, log: SILENT, isShared: false, publish: () => undefined },
      report: async (active) => {
        reported += active.filter(({ isNew }) => isNew).length
      },
    })
    await campaigns.run(CRAWLED_MS)
    let arrived = 0
    manage.onSightings((batch) => {
      arrived += batch.length
      campaigns.take(batch.map((each) => taken(each)))
    })
    const send = async (batch: readonly Sighting[]) => {
      const before = arrived
      await proxy.sendSightings(batch)
      await until(() => arrived === before + batch.length)
    }
    const before = memoryInUse()
    for (let round = 0; round < 18; round++) await send(flood(round))
    // 4,096 names of browsers, each as long as a stored text may be.
    const grown = memoryInUse() - before
    assert.ok(grown < 4_096 * 2 * SIGHTING_TEXT_MAX, `${grown} bytes`)
    await send(crawled(800, CRAWLED_MS + 20_000))
    for (let second = 0; second < 12; second++) await campaigns.run(CRAWLED_MS + 110_000 + second * 1_000)
    assert.ok(campaigns.running.some(({ members }) => members.size === 200))
    assert.ok(campaigns.running.length <= CAMPAIGNS_MAX)
    assert.ok(reported > 0 && reported <= 12 * FOUND_MAX, `${reported} events`)
  },
)

test('a hostile list of campaigns leaves a proxy with the policy and no campaign', needsNats, async (t) => {
  const { manage, proxy } = await fleet(t)
  const arrived: SnapshotDocument[] = []
  proxy.onSnapshot((snapshot) => void arrived.push(snapshot))
  const good = { id: 'cmp_1', program: 1, members: [1] }
  const lists: unknown[] = [
    ...[
      [{ ...good, members: [2 ** 40] }],
      [{ ...good, members: ['1'] }],
      [good, null],
      [{ ...good, id: '\r\n' }],
    ],
    ...['x', { length: 1 }, Array.from({ length: CAMPAIGNS_MAX + 1 }, () => good)],
  ]
  for (const [i, list] of lists.entries()) {
    const campaigns = { salt: 1, campaigns: list } as SnapshotDocument['campaigns']
    manage.publish({ ...document(i + 1), campaigns: campaigns! })
    await until(() => arrived.some(({ number }) => number === i + 1))
    const snapshot = parseSnapshot(arrived.at(-1)!)
    assert.deepEqual([snapshot.number, snapshot.campaigns], [i + 1, null])
  }
  manage.publish({ ...document(99), campaigns: { salt: 1, campaigns: [good] } })
  await until(() => arrived.some(({ number }) => number === 99))
  assert.notEqual(parseSnapshot(arrived.at(-1)!).campaigns, null)
})

/** Each request is of another network, another browser and another site, with a text longer than is kept. */
function flood(round: number): readonly Sighting[] {
  return Array.from({ length: 1_000 }, (_, i) => {
    const number = round * 1_000 + i
    return seen(number, {
      ...{ seenAtMs: CRAWLED_MS + number, program: number, headerOrder: number, target: number },
      address: `2001:db8:${number.toString(16)}::1`,
      host: `${number}.example`,
      userAgent: `${number} ${'x'.repeat(4_000)}`,
      requestKind: REQUEST_KIND.page,
    })
  })
}

function taken(value: unknown): Sighting {
  const sighting = takeIn(value, CRAWLED_MS + 3_600_000)
  assert.ok(typeof sighting !== 'string', String(sighting))
  return sighting
}

/** A manager and a proxy on a bus of their own. */
async function fleet(t: Test) {
  const name = `test-${randomBytes(6).toString('hex')}`
  const settings: BusSettings = {
    ...{ urls: [NATS], name, retryMs: 50, credentialsFile: null, user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  }
  const folders = await Promise.all([0, 1].map(() => mkdtemp(join(tmpdir(), 'flood-'))))
  const limits = { sightingsBytesMax: 64 * 1024 ** 2, replicas: 1, spreadMs: 20, askMs: 500 }
  const manage = new JetStreamManageBus(
    settings,
    { ...limits, folder: folders[0]!, mayPublish: async () => true },
    SILENT,
  )
  await until(() => manage.connection.isUp)
  const proxy = new JetStreamProxyBus(
    settings,
    'p1',
    { folder: folders[1]!, spreadMs: 20, askMs: 500 },
    SILENT,
  )
  await until(() => proxy.connection.isUp)
  t.teardown(async () => {
    await Promise.all([manage.closed(), proxy.closed()])
    const client = await connect({ servers: NATS })
    const { streams } = await jetstreamManager(client, { checkAPI: false })
    for await (const { config } of streams.list())
      if (config.name.includes(name)) await streams.delete(config.name)
    await client.close()
    await Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true })))
  })
  return { manage, proxy }
}
