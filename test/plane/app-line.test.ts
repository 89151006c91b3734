import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { type Test, test } from 'tap'
import { parseApps } from '../../src/apps/app.ts'
import { JetStreamManageBus, JetStreamProxyBus } from '../../src/plane/jetstream/jetstream-bus.ts'
import type { BusSettings } from '../../src/plane/jetstream/jetstream-connection.ts'
import { makeSnapshot, type SnapshotDocument } from '../../src/plane/snapshot.ts'
import { silentLog } from '../../src/shared/log.ts'
import { PASSWORDS, startGuardedNats } from '../config/nats-server.ts'
import { folderFor } from '../e2e/engines.ts'
import { skipped } from '../e2e/programs.ts'
import { until } from '../until.ts'

const skip = skipped('nats-server')
const log = silentLog()

test('a proxy of one app may read only what all apps share and its own', { skip }, async (t) => {
  const fleet = await startFleet(t)
  const shop = fleet.proxy('shop', 'proxy-shop')
  fleet.manage.publish(snapshot(5, { shop: 'a', wiki: 'secret-rule' }))
  await until(() => shop.seen.length > 0)
  assert.deepEqual(appsOf(shop.seen.at(-1)), ['shop a'])
  // A change of another app sends its number only.
  fleet.manage.publish(snapshot(6, { shop: 'a', wiki: 'other-secret' }))
  await until(() => shop.bus.followed.inUse?.number === 6)
  fleet.manage.publish(snapshot(7, { shop: 'b', wiki: 'other-secret' }))
  await until(() => appsOf(shop.seen.at(-1))[0] === 'shop b')
  // What all apps share.
  fleet.manage.publish(snapshot(8, { shop: 'b', wiki: 'other-secret' }, 'block'))
  await until(() => shop.bus.followed.inUse?.number === 8)
  assert.deepEqual(shop.seen.at(-1)!.policy, { otherwise: 'block', rules: [] })
  await shop.bus.closed()
  assert.doesNotMatch(contentOf(shop.folder), /wiki|secret/)

  // The next start is from disk, without NATS.
  const again = new JetStreamProxyBus(nowhere(), 'p', { folder: shop.folder, app: 'shop' }, log)
  t.teardown(() => again.closed())
  assert.ok(await again.restore())
  assert.deepEqual(appsOf(again.followed.inUse), ['shop b'])
  // The copy of another app is of no use.
  const other = new JetStreamProxyBus(nowhere(), 'p', { folder: shop.folder, app: 'wiki' }, log)
  t.teardown(() => other.closed())
  assert.ok(!(await other.restore()))

  const client = await fleet.client('proxy-shop', { inboxPrefix: '_INBOX.gatehouse.proxy.shop' })
  const { direct } = await jetstreamManager(client, { checkAPI: false, timeout: 300 })
  const read = (subject: string) => direct.getMessage('gatehouse_parts', { last_by_subj: subject })
  assert.ok(await read('gatehouse.parts.app.shop'))
  await assert.rejects(read('gatehouse.parts.app.wiki'))
  await assert.rejects(direct.getMessage('gatehouse_parts', { seq: 1 }))
  await assert.rejects(direct.getMessage('gatehouse_snapshots', { last_by_subj: 'gatehouse.snapshot' }))
  await assert.rejects(jetstream(client, { timeout: 300 }).publish('gatehouse.parts.app.shop', 'mine'))
})

test('an app that is deleted loses its policy, and has one again when it is created again', {
  skip,
}, async (t) => {
  const fleet = await startFleet(t)
  const shop = fleet.proxy('shop')
  fleet.manage.publish(snapshot(5, { shop: 'a', wiki: 'x' }))
  await until(() => shop.seen.length > 0)
  fleet.manage.publish(snapshot(6, { wiki: 'x' }))
  await until(() => shop.bus.followed.inUse?.number === 6)
  assert.deepEqual(appsOf(shop.seen.at(-1)), [])
  // A proxy that comes now finds no part.
  const late = fleet.proxy('shop')
  await until(() => late.bus.followed.inUse?.number === 6)
  assert.deepEqual(appsOf(late.seen.at(-1)), [])
  fleet.manage.publish(snapshot(7, { shop: 'new' }))
  for (const { seen } of [shop, late]) await until(() => appsOf(seen.at(-1))[0] === 'shop new')
})

test('another manager goes on, and what a proxy has missed it asks for', { skip }, async (t) => {
  const fleet = await startFleet(t)
  const shop = fleet.proxy('shop')
  fleet.manage.publish(snapshot(5, { shop: 'a', wiki: 'x' }))
  await until(() => shop.bus.followed.inUse?.number === 5)
  const other = fleet.manager()
  await until(() => other.followed.inUse?.number === 5)
  await fleet.manage.closed()
  await shop.bus.closed()
  other.publish(snapshot(6, { shop: 'b' }, 'block'))
  await until(() => other.followed.inUse?.number === 6)
  other.publish(snapshot(7, { shop: 'c' }, 'block'))
  const late = fleet.proxy('shop', 'proxy', shop.folder)
  assert.ok(await late.bus.restore())
  await until(() => appsOf(late.seen.at(-1))[0] === 'shop c')
  assert.deepEqual(late.bus.followed.inUse!.number, 7)
})

test('with managers of an earlier version, whole Snapshots are followed until there are parts', {
  skip,
}, async (t) => {
  const fleet = await startFleet(t)
  fleet.manage.publish(snapshot(5, { shop: 'a', wiki: 'x' }))
  await until(() => fleet.manage.followed.inUse?.number === 5)
  // As such managers leave it.
  const client = await fleet.client('manage', { inboxPrefix: '_INBOX.gatehouse.manage' })
  const { streams } = await jetstreamManager(client, { checkAPI: false })
  await until(async () => (await streams.info('gatehouse_parts')).state.messages === 4)
  await streams.purge('gatehouse_parts')
  const shop = fleet.proxy('shop')
  await until(() => shop.bus.followed.inUse?.number === 5, 10_000)
  assert.deepEqual(appsOf(shop.seen.at(-1)), ['shop a'])
  await until(() => readdirSync(shop.folder).includes('newest.snapshot'))
  // A manager of this version: the copy with all apps is deleted.
  await fleet.manage.closed()
  fleet.manager().publish(snapshot(6, { shop: 'b', wiki: 'x' }))
  await until(() => appsOf(shop.seen.at(-1))[0] === 'shop b')
  await until(() => !readdirSync(shop.folder).includes('newest.snapshot'))
})

test('without a stream of parts, whole Snapshots are followed', { skip }, async (t) => {
  const fleet = await startFleet(t)
  fleet.manage.publish(snapshot(5, { shop: 'a', wiki: 'x' }))
  await until(() => fleet.manage.followed.inUse?.number === 5)
  const client = await fleet.client('admin', { inboxPrefix: '_INBOX.admin' })
  const { streams } = await jetstreamManager(client, { checkAPI: false })
  await until(async () => (await streams.info('gatehouse_parts')).state.messages === 4)
  await streams.delete('gatehouse_parts')
  const shop = fleet.proxy('shop')
  await until(() => appsOf(shop.bus.followed.inUse)[0] === 'shop a', 20_000)
})

test('a part that cannot be used leaves the Snapshot before in use', { skip }, async (t) => {
  const fleet = await startFleet(t)
  const shop = fleet.proxy('shop')
  fleet.manage.publish(snapshot(5, { shop: 'a' }))
  await until(() => shop.bus.followed.inUse?.number === 5)
  const client = await fleet.client('manage', { inboxPrefix: '_INBOX.gatehouse.manage' })
  await jetstream(client).publish('gatehouse.parts.app.shop', '{"format":2}\nx')
  await until(() => shop.bus.followed.refused !== null)
  assert.match(shop.bus.followed.refused!.why, /format 2/)
  fleet.manage.publish(snapshot(6, { shop: 'b' }))
  await until(() => shop.bus.followed.inUse?.number === 6)
  assert.deepEqual([appsOf(shop.seen.at(-1)), shop.bus.followed.refused], [['shop b'], null])
})

/** The rule of each app has the name given. */
function snapshot(
  number: number,
  rules: Readonly<Record<string, string>>,
  otherwise = 'pass',
): SnapshotDocument {
  const apps = parseApps(Object.keys(rules).map((id) => ({ id, hosts: [`${id}.example`] })))
  const appPolicies = Object.entries(rules).map(([app, name]) => ({
    app,
    document: JSON.stringify({ rules: [{ name, when: { path: '/x' }, action: 'block' }] }),
  }))
  return makeSnapshot(number, { otherwise, rules: [] }, 1, null, { apps, appPolicies })
}

function appsOf(document: SnapshotDocument | null | undefined): readonly string[] {
  const { apps = [], appPolicies = [] } = document ?? {}
  assert.deepEqual(
    apps.map(({ id }) => id),
    appPolicies.map(({ app }) => app),
  )
  return appPolicies.map(({ app, document: text }) => `${app} ${JSON.parse(text).rules[0].name}`)
}

/** All files in the folder, and below it. */
function contentOf(folder: string): string {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
}

async function startFleet(t: Test) {
  const port = await startGuardedNats(t, (text) =>
    text.replaceAll('#: ', '').replace('users: [', 'users: [{ user: admin, password: admin }'),
  )
  const as = (user: keyof typeof PASSWORDS): BusSettings => ({
    ...nowhere(),
    ...{ urls: [`nats://127.0.0.1:${port}`], user, password: PASSWORDS[user] },
  })
  const options = { spreadMs: 10, askMs: 500 }
  const manager = () => {
    const limits = { sightingsBytesMax: 8 * 1024 ** 2, replicas: 1, mayPublish: async () => true }
    const bus = new JetStreamManageBus(
      as('manage'),
      { ...options, ...limits, folder: folderFor(t, 'bus') },
      log,
    )
    t.teardown(() => bus.closed())
    return bus
  }
  return {
    manage: manager(),
    manager,
    proxy(app: string, user: keyof typeof PASSWORDS = 'proxy', folder = folderFor(t, 'bus')) {
      const bus = new JetStreamProxyBus(as(user), 'p', { ...options, folder, app }, log)
      t.teardown(() => bus.closed())
      const seen: SnapshotDocument[] = []
      bus.onSnapshot((document) => seen.push(document))
      return { bus, seen, folder }
    },
    async client(user: keyof typeof PASSWORDS | 'admin', more: { readonly inboxPrefix: string }) {
      const client = await connect({
        servers: `127.0.0.1:${port}`,
        user,
        pass: user === 'admin' ? user : PASSWORDS[user],
        ...more,
      })
      t.teardown(() => client.close())
      return client
    },
  }
}

function nowhere(): BusSettings {
  return {
    ...{ urls: ['nats://127.0.0.1:9'], name: 'gatehouse', retryMs: 100, credentialsFile: null },
    ...{ user: null, password: null, token: null },
    tls: { caFile: null, certificateFile: null, keyFile: null },
  }
}
