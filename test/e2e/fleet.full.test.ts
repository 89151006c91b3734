import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { test } from 'tap'
import { hashOf } from '../../src/manage/publish/policy-keeper.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'
import { openAt } from '../store/databases.ts'
import { folderFor } from './engines.ts'
import {
  asked,
  counted,
  echoApp,
  eventually,
  OF_A_LOST_DATABASE,
  requested,
  sharedPlace,
  startFleetProxy,
  startLoad,
  startManager,
  statusOf,
} from './fleet.ts'
import { withoutNats } from '../services/services.ts'

const skip = withoutNats()

const CLOSED = { name: 'closed', when: { path: '/closed' }, action: 'block' }

test('what one manager accepts decides in every proxy; another one leads when the leader dies', {
  skip,
}, async (t) => {
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
  // A change without a notification, because the process that made it is gone.
  const store = await openAt(t, place.postgres)
  const key = { type: 'ja4', value: ja4, softwareId: 'untold' } as const
  await store.transaction(async (queries) => {
    await store.catalogue.addSoftware(softwareOf({ id: 'untold', name: 'Untold Bot' }), Date.now(), queries)
    await store.catalogue.addSignature(signatureOf(key), queries)
    const document = JSON.stringify({ rules: [CLOSED] })
    const policy = { version: 1, hash: hashOf(document), author: 'none', restoredVersion: null }
    await store.policies.add({ ...policy, comment: null, createdAtMs: Date.now(), document }, 50, queries)
  })
  for (const proxy of proxies) {
    await eventually(async () => (await requested(proxy, '/')).headers['x-agent-name'] === 'Untold Bot')
    await eventually(async () => (await statusOf(proxy, '/closed')) === 403)
  }
  await store.transaction((queries) => store.catalogue.setStatus(key, 'retired', queries))
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

test('a proxy serves while nothing else is there: by what comes with it, then by what it had last', {
  skip,
}, async (t) => {
  const place = await sharedPlace(t)
  const nowhere = { nats: 'nats://127.0.0.1:9', bus: place.bus }
  const app = await echoApp(t)
  const data = folderFor(t, 'proxy')
  const first = await startFleetProxy(t, nowhere, app.url, data, { GATEHOUSE_BUS_FIRST_SNAPSHOT: 'serve' })
  assert.equal((await requested(first, '/')).status, 200)
  await first.stop()
  const manager = await startManager(t, place)
  await asked(
    manager,
    'PUT',
    '/v1/policy',
    {
      rules: [CLOSED],
    },
    { 'if-match': '*' },
  )
  const second = await startFleetProxy(t, place, app.url, data)
  await eventually(async () => (await statusOf(second, '/closed')) === 403)
  await second.stop()
  await manager.stop()
  const third = await startFleetProxy(t, nowhere, app.url, data)
  assert.equal(await statusOf(third, '/closed'), 403)
  assert.equal((await requested(third, '/')).status, 200)
})

test('a proxy dies: what it had sent is counted, the others serve, and it comes back as the same one', {
  skip,
}, async (t) => {
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
  await load.until(async () => (await ids()).length === 2)
  const before = await ids()
  for (let each = 0; each < 20; each++) await requested(doomed, '/')
  await load.until(async () => (await counted(manager)) > 200)
  await doomed.kill()
  const again = await startFleetProxy(t, place, app.url, data)
  for (let each = 0; each < 20; each++) await requested(again, '/')
  const sent = (await load.stop()) + 40
  await eventually(async () => (await counted(manager)) === sent)
  assert.deepEqual(await ids(), before)
})

test('repeated and reordered batches are counted once; invalid ones are discarded', { skip }, async (t) => {
  const place = await sharedPlace(t)
  const app = await echoApp(t)
  const settings = { GATEHOUSE_BUS_FIRST_SNAPSHOT: 'serve' } // no manager is there yet
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'), settings)
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

interface Shown {
  readonly state: string
  readonly current: boolean
  readonly snapshot_source: string
  readonly workers: readonly unknown[]
}
