import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type Test, test } from 'tap'
import { freshUrl } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'
import { type App, startApp } from './app.ts'
import { folderFor, freshBusName, startNats, startPostgres } from './engines.ts'
import {
  asked,
  counted,
  eventually,
  type FleetPlace,
  requested,
  startFleetProxy,
  startLoad,
  startManager,
} from './fleet.ts'
import type { RunningGatehouse } from './gatehouse.ts'

const NATS = 'nats://127.0.0.1:4222'
/** The database is away, and whoever asks for it says so. */
const OF_A_LOST_DATABASE = /STORE_|cannot be stored|database|ECONNREFUSED|tidied up/

test('what one manager accepts decides in every proxy; another one leads when the leader dies', async (t) => {
  const place = { ...(await sharedPlace(t)), expects: OF_A_LOST_DATABASE }
  const app = await echoApp(t)
  const managers = [await startManager(t, place), await startManager(t, place)]
  const proxies = [
    await startFleetProxy(t, place, app.url, folderFor(t, 'proxy')),
    await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'), { GATEHOUSE_PROXY_WORKERS: '2' }),
  ]
  let leads: boolean[] = []
  await eventually(async () => {
    leads = await Promise.all(managers.map(async (each) => (await asked(each, 'GET', '/v1/fleet'))['leads']))
    return leads.includes(true)
  })
  assert.deepEqual(leads.toSorted(), [false, true])
  const leader = managers[leads.indexOf(true)]!
  const other = managers[leads.indexOf(false)]!
  const { headers } = await requested(proxies[0]!, '/')
  const ja4 = headers['x-ja4-fingerprint']!
  const accept = async (name: string) => {
    const submission = { fingerprint: ja4, type: 'ja4', agent_name: name, category: 'orchestrator' }
    const [{ id }] = (await asked(other, 'POST', '/v1/signatures/submit', submission))['submissions']
    await asked(other, 'POST', `/v1/submissions/${id}/review`, { decision: 'accept' })
    for (const proxy of proxies)
      await eventually(async () => (await requested(proxy, '/')).headers['x-agent-name'] === name)
    return id
  }
  const id = await accept('Acme Bot')
  await asked(other, 'POST', `/v1/submissions/${id}/review`, { decision: 'rollback' })
  for (const proxy of proxies)
    await eventually(async () => (await requested(proxy, '/')).headers['x-agent-name'] === undefined)
  await leader.kill()
  await accept('Another Bot')
  assert.equal((await asked(other, 'GET', '/v1/fleet'))['leads'], true)
  await eventually(async () => (await asked(other, 'GET', '/v1/fleet'))['proxies'].current === 2)
  const { proxies: list } = await asked(other, 'GET', '/v1/fleet/proxies')
  assert.deepEqual(
    list
      .map(({ state, current, snapshot_source, workers }: Shown) => {
        return [state, current, snapshot_source, workers.length]
      })
      .sort(),
    [
      ['serving', true, 'bus', 1],
      ['serving', true, 'bus', 2],
    ],
  )
  // One that is stopped says so, and one that dies is missed.
  await proxies[0]!.stop()
  await eventually(async () => (await asked(other, 'GET', '/v1/fleet'))['proxies'].total === 1)
})

test('a proxy serves while nothing else is there: by what comes with it, then by what it had last', async (t) => {
  const place = await sharedPlace(t)
  const nowhere = { nats: 'nats://127.0.0.1:9', bus: place.bus }
  const app = await echoApp(t)
  const data = folderFor(t, 'proxy')
  const first = await startFleetProxy(t, nowhere, app.url, data)
  assert.equal((await requested(first, '/')).status, 200)
  await first.stop()
  const manager = await startManager(t, place)
  await asked(
    manager,
    'PUT',
    '/v1/policy',
    {
      rules: [{ name: 'closed', when: { path: '/closed' }, action: 'block' }],
    },
    { 'if-match': '*' },
  )
  const second = await startFleetProxy(t, place, app.url, data)
  await eventually(async () => (await requestedText(second, '/closed')) === 403)
  await second.stop()
  await manager.stop()
  const third = await startFleetProxy(t, nowhere, app.url, data)
  assert.equal(await requestedText(third, '/closed'), 403)
  assert.equal((await requested(third, '/')).status, 200)
})

test('NATS dies and comes back: no request fails, and each is counted once', async (t) => {
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
  await eventually(async () => (await counted(managers[0]!)) > 200)
  for (let round = 0; round < 2; round++) {
    await nats.kill()
    await wait(2_000)
    await nats.start()
    await wait(1_000)
  }
  const sent = await load.stop()
  await eventually(async () => (await counted(managers[0]!)) === sent)
  await wait(1_500)
  assert.equal(await counted(managers[1]!), sent)
})

test('PostgreSQL and managers die and come back: no request fails, and each is counted once', async (t) => {
  const postgres = await startPostgres(t)
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: postgres.url, bus: freshBusName(), expects: OF_A_LOST_DATABASE }
  const app = await echoApp(t)
  const doomed = await startManager(t, place)
  const manager = await startManager(t, place)
  const proxies = [await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))]
  const load = startLoad(proxies)
  await eventually(async () => (await counted(manager)) > 200)
  await postgres.kill()
  await wait(1_500)
  await doomed.kill()
  await postgres.start()
  await eventually(async () => (await asked(manager, 'GET', '/v1/fleet'))['leads'])
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  await wait(1_500)
  assert.equal(await counted(manager), sent)
})

test('a proxy dies: what it had sent is counted, the others serve, and it comes back as the same one', async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const manager = await startManager(t, place)
  const data = folderFor(t, 'proxy')
  const doomed = await startFleetProxy(t, place, app.url, data)
  const other = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))
  const load = startLoad([other])
  const ids = async (): Promise<string[]> => {
    const { proxies } = await asked(manager, 'GET', '/v1/fleet/proxies')
    return proxies.map(({ id }: { readonly id: string }) => id).toSorted()
  }
  await eventually(async () => (await ids()).length === 2)
  const before = await ids()
  for (let each = 0; each < 20; each++) await requested(doomed, '/')
  await eventually(async () => (await counted(manager)) > 200)
  await doomed.kill()
  const again = await startFleetProxy(t, place, app.url, data)
  for (let each = 0; each < 20; each++) await requested(again, '/')
  const sent = (await load.stop()) + 40
  await eventually(async () => (await counted(manager)) === sent)
  assert.deepEqual(await ids(), before)
})

test('what comes twice, or in another order, is counted once; what is no batch is thrown away', async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))
  const client = await connect({ servers: place.nats })
  t.teardown(() => client.close())
  const copies: Uint8Array[] = []
  client.subscribe(`${place.bus}.sightings.*`, { callback: (_, { data }) => void copies.push(data) })
  const manager = await startManager(t, place)
  for (let each = 0; each < 30; each++) {
    await requested(proxy, `/${each}`)
    await wait(20)
  }
  await eventually(async () => (await counted(manager)) === 30)
  assert.ok(copies.length > 1)
  const js = jetstream(client)
  for (const copy of copies.toReversed()) await js.publish(`${place.bus}.sightings.3`, copy)
  for (const junk of ['', 'junk', '[]']) await js.publish(`${place.bus}.sightings.3`, Buffer.from(junk))
  await requested(proxy, '/last')
  await eventually(async () => (await counted(manager)) === 31)
  const { streams } = await jetstreamManager(client, { checkAPI: false })
  await eventually(async () => (await streams.info(`${place.bus}_sightings`)).state.messages === 0)
  assert.equal(await counted(manager), 31)
})

test('a network that swallows what a proxy sends: it serves, and all arrives when that is over', async (t) => {
  const place = await sharedPlace(t)
  const relay = await Relay.before(place.nats)
  t.teardown(() => relay.stop())
  const app = await echoApp(t)
  const manager = await startManager(t, place)
  const proxy = await startFleetProxy(t, { ...place, nats: relay.url }, app.url, folderFor(t, 'proxy'))
  const load = startLoad([proxy])
  await eventually(async () => (await counted(manager)) > 100)
  relay.stall(true)
  await wait(3_000)
  relay.stall(false)
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
})

test('NATS and PostgreSQL that take a tenth of a second for each answer: no request waits for them, and each is counted once', async (t) => {
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
  await eventually(async () => (await counted(manager)) > 300)
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  for (const relay of relays) relay.delay(0)
  await wait(1_500)
  assert.equal(await counted(manager), sent)
})

interface Shown {
  readonly state: string
  readonly current: boolean
  readonly snapshot_source: string
  readonly workers: readonly unknown[]
}

async function sharedPlace(t: Test): Promise<FleetPlace> {
  return { nats: NATS, postgres: await freshUrl('postgres', t), bus: await freshBus(t) }
}

async function freshBus(t: Test): Promise<string> {
  const bus = freshBusName()
  t.teardown(async () => {
    const client = await connect({ servers: NATS })
    const { streams } = await jetstreamManager(client, { checkAPI: false })
    for await (const { config } of streams.list())
      if (config.name.includes(bus)) await streams.delete(config.name)
    await client.close()
  })
  return bus
}

/** Tells what it is told. */
function echoApp(t: Test): Promise<App> {
  return startApp(t, {
    '/': ({ headers }, response) => void response.end(JSON.stringify(headers)),
    '/last': (_, response) => void response.end('{}'),
    ...Object.fromEntries(Array.from({ length: 30 }, (_, each) => [`/${each}`, answerEmpty])),
  })
}

function answerEmpty(_: unknown, response: { end(text: string): unknown }): void {
  response.end('{}')
}

async function requestedText({ port, ca }: RunningGatehouse, path: string): Promise<number> {
  const { get } = await import('node:https')
  return new Promise((resolve, reject) => {
    get({ host: 'localhost', port, path, ca, agent: false }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode!))
    }).on('error', reject)
  })
}
