import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { freshUrl } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'
import { folderFor, freshBusName, startNats, startPostgres } from './engines.ts'
import {
  asked,
  counted,
  echoApp,
  eventually,
  OF_A_LOST_DATABASE,
  sharedPlace,
  startFleetProxy,
  startLoad,
  startManager,
} from './fleet.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server')

test('NATS dies and comes back: no request fails, and each is counted once', { skip }, async (t) => {
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: await freshUrl('postgres', t), bus: freshBusName() }
  const app = await echoApp(t)
  const managers = [await startManager(t, place), await startManager(t, place)]
  const proxies = [
    await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'), {
      GATEHOUSE_SIGHTINGS_SPOOL_BYTES: '16MiB',
    }),
    await startFleetProxy(t, place, app.url, folderFor(t, 'proxy')),
  ]
  const load = startLoad(proxies)
  await load.until(async () => (await counted(managers[0]!)) > 200)
  for (let round = 0; round < 2; round++) {
    await nats.kill()
    await wait(2_000) // an outage of this length
    await nats.start()
    await wait(1_000) // a new outage may begin while it recovers
  }
  const sent = await load.stop()
  await eventually(async () => (await counted(managers[0]!)) === sent)
  await wait(1_500) // nothing is counted a second time
  assert.equal(await counted(managers[1]!), sent)
})

test('PostgreSQL and managers die and come back: no request fails, and each is counted once', {
  skip,
}, async (t) => {
  const postgres = await startPostgres(t)
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: postgres.url, bus: freshBusName(), expects: OF_A_LOST_DATABASE }
  const app = await echoApp(t)
  const doomed = await startManager(t, place)
  const manager = await startManager(t, place)
  const proxies = [await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))]
  const load = startLoad(proxies)
  await load.until(async () => (await counted(manager)) > 200)
  await postgres.kill()
  await wait(1_500) // an outage of this length
  await doomed.kill()
  await postgres.start()
  await load.until(async () => (await asked(manager, 'GET', '/v1/fleet'))['leads'])
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  await wait(1_500) // nothing is counted a second time
  assert.equal(await counted(manager), sent)
})

test('a network that swallows what a proxy sends: it serves, and all arrives when that is over', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const relay = await Relay.before(place.nats)
  t.teardown(() => relay.stop())
  const app = await echoApp(t)
  const manager = await startManager(t, place)
  const proxy = await startFleetProxy(t, { ...place, nats: relay.url }, app.url, folderFor(t, 'proxy'))
  const load = startLoad([proxy])
  await load.until(async () => (await counted(manager)) > 100)
  relay.stall(true)
  await wait(3_000) // an outage of this length
  relay.stall(false)
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
})

test('NATS and PostgreSQL that take a tenth of a second for each answer: no request waits for them, and each is counted once', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const relays = [await Relay.before(place.nats), await Relay.before(place.postgres)]
  for (const relay of relays) t.teardown(() => relay.stop())
  const [nats, postgres] = relays.map(({ url }) => url)
  const slow = { ...place, nats: nats!, postgres: postgres! }
  const app = await echoApp(t)
  const manager = await startManager(t, slow)
  const proxy = await startFleetProxy(t, slow, app.url, folderFor(t, 'proxy'))
  for (const relay of relays) relay.delay(50)
  const load = startLoad([proxy])
  await load.until(async () => (await counted(manager)) > 300)
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  for (const relay of relays) relay.delay(0)
  await wait(1_500) // nothing is counted a second time
  assert.equal(await counted(manager), sent)
})
