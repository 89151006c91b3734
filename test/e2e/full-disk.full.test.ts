import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type Test, test } from 'tap'
import { FLEET_FOLDER } from '../../src/plane/fleet-proxy.ts'
import { NEWEST_FILE } from '../../src/plane/snapshot-follower.ts'
import { documentIn } from '../../src/plane/snapshot-package.ts'
import { freshUrl } from '../store/databases.ts'
import { type App, startApp } from './app.ts'
import { folderFor, freshBusName, startNats, startPostgres } from './engines.ts'
import {
  ADMIN_KEY,
  asked,
  counted,
  eventually,
  sharedPlace,
  startFleetProxy,
  startLoad,
  startManager,
  statusOf,
} from './fleet.ts'
import { startGatehouse } from './gatehouse.ts'
import { mountSmallDisk } from './small-disk.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server')

const MEBIBYTE = 1024 ** 2
const CLOSED = { name: 'closed', when: { path: '/closed' }, action: 'block' }
const NOWHERE = 'nats://127.0.0.1:9'
const MAY_NOT_MOUNT = 'this user may not mount a disk to fill'

test('the disk of NATS is full: no request fails, and each is counted once when there is room', {
  skip,
}, async (t) => {
  const disk = mountSmallDisk(t, 'nats-disk', 48 * MEBIBYTE)
  if (disk === null) return void t.pass(MAY_NOT_MOUNT, { skip: MAY_NOT_MOUNT })
  const nats = await startNats(t, [], disk.folder)
  const place = { nats: nats.url, postgres: await freshUrl('postgres', t), bus: freshBusName(), expects: /./ }
  const app = await emptyApp(t)
  const manager = await startManager(t, place, { GATEHOUSE_BUS_SIGHTINGS_BYTES: '16MiB' })
  const load = startLoad([await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))])
  await load.until(async () => (await counted(manager)) > 200)
  disk.fill()
  const junk = await publisher(t, nats.url, `${place.bus}.sightings.3`)
  // It says so to some, and leaves others without an answer.
  await assert.rejects(() => repeatedly(junk), /no space left|timeout/)
  const before = await counted(manager)
  await wait(3_000) // a full disk for this long
  assert.equal(await counted(manager), before, 'NATS takes nothing')
  disk.free()
  // NATS 2.9 may hang after it has written a part of a record: start it again.
  await nats.kill()
  await nats.start()
  await load.until(async () => (await counted(manager)) > before + 50)
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  await wait(1_500) // nothing is counted a second time
  assert.equal(await counted(manager), sent)
})

test('the disk of PostgreSQL is full: what cannot be kept is refused, and nothing acknowledged is lost', {
  skip,
}, async (t) => {
  const disk = mountSmallDisk(t, 'postgres-disk', 200 * MEBIBYTE)
  if (disk === null) return void t.pass(MAY_NOT_MOUNT, { skip: MAY_NOT_MOUNT })
  const postgres = await startPostgres(t, disk.folder)
  const nats = await startNats(t)
  const place = { nats: nats.url, postgres: postgres.url, bus: freshBusName(), expects: /./ }
  const app = await emptyApp(t)
  const manager = await startManager(t, place)
  const load = startLoad([await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))])
  await load.until(async () => (await counted(manager)) > 200)
  const made: string[] = []
  const make = async () => {
    const name = `key ${made.length}`
    await asked(manager, 'POST', '/v1/keys', { name, scopes: ['read'] })
    made.push(name)
  }
  await make()
  disk.fill()
  await assert.rejects(() => repeatedly(make), /503 .*the database is out of disk space/)
  await wait(2_000) // a full disk for this long
  disk.free()
  // Without room for its log it may have ended itself: make room, and start it again.
  await postgres.kill()
  await postgres.start()
  await load.until(() => make().then(() => true))
  const sent = await load.stop()
  await eventually(async () => (await counted(manager)) === sent)
  await wait(1_500) // nothing is counted a second time
  assert.equal(await counted(manager), sent)
  const { keys } = await asked(manager, 'GET', '/v1/keys?limit=200')
  const there = new Set(keys.map(({ name }: { readonly name: string }) => name))
  assert.deepEqual(
    made.filter((name) => !there.has(name)),
    [],
  )
})

test('its own disk is full when it starts again: it serves, and knows what it knew when there is room', async (t) => {
  const disk = mountSmallDisk(t, 'disk', 48 * MEBIBYTE)
  if (disk === null) return void t.pass(MAY_NOT_MOUNT, { skip: MAY_NOT_MOUNT })
  const app = await emptyApp(t)
  const start = () =>
    startGatehouse(t, {
      ...{ command: 'up', upstream: app.url, expects: /./ },
      argv: ['--data', disk.folder],
      variables: { GATEHOUSE_ADMIN_KEY: ADMIN_KEY },
    })
  const first = await start()
  await asked(first, 'PUT', '/v1/policy', { rules: [CLOSED] }, { 'if-match': '*' })
  await asked(first, 'POST', '/v1/keys', { name: 'kept', scopes: ['read'] })
  await eventually(async () => (await statusOf(first, '/closed')) === 403)
  await first.kill()
  disk.fill()
  const again = await start()
  assert.deepEqual([await statusOf(again, '/'), await statusOf(again, '/closed')], [200, 403])
  disk.free()
  await eventually(async () => {
    const { keys } = await asked(again, 'GET', '/v1/keys')
    return keys.some(({ name }: { readonly name: string }) => name === 'kept')
  })
})

test("the disk of a fleet's proxy is full when it starts again: it serves by what it had last", {
  skip,
}, async (t) => {
  const disk = mountSmallDisk(t, 'disk', 48 * MEBIBYTE)
  if (disk === null) return void t.pass(MAY_NOT_MOUNT, { skip: MAY_NOT_MOUNT })
  const place = { ...(await sharedPlace(t)), expects: /./ }
  const app = await emptyApp(t)
  const manager = await startManager(t, place)
  const first = await startFleetProxy(t, place, app.url, disk.folder)
  await asked(manager, 'PUT', '/v1/policy', { rules: [CLOSED] }, { 'if-match': '*' })
  await eventually(async () => (await statusOf(first, '/closed')) === 403)
  // A policy is in force before its copy is on disk.
  const copy = join(disk.folder, FLEET_FOLDER, NEWEST_FILE)
  await eventually(async () =>
    JSON.stringify((await documentIn(await readFile(copy))).policy).includes(CLOSED.name),
  )
  await first.kill()
  disk.fill()
  const again = await startFleetProxy(t, { ...place, nats: NOWHERE }, app.url, disk.folder)
  assert.deepEqual([await statusOf(again, '/'), await statusOf(again, '/closed')], [200, 403])
})

function emptyApp(t: Test): Promise<App> {
  return startApp(t, { '/': (_, response) => void response.end('{}') })
}

/** Publishes something on the subject that is not a batch. */
async function publisher(t: Test, url: string, subject: string): Promise<() => Promise<unknown>> {
  const client = await connect({ servers: url })
  t.teardown(() => client.close())
  const js = jetstream(client, { timeout: 10_000 })
  const publish = () => js.publish(subject, Buffer.alloc(10_000))
  return () =>
    publish().catch((error: Error) => (error.name === 'TimeoutError' ? publish() : Promise.reject(error)))
}

/** Does it again and again, which ends when it rejects. */
async function repeatedly(work: () => Promise<unknown>): Promise<never> {
  for (;;) await work()
}
