import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { type Test, test } from 'tap'
import { LOCKS } from '../../src/store/engine/locks.ts'
import { freshUrl } from '../store/databases.ts'
import { until } from '../until.ts'
import { startApp } from './app.ts'
import { folderFor, freshBusName, startNats } from './engines.ts'
import { asked, eventually, type FleetPlace, startFleetProxy, startManager, statusOf } from './fleet.ts'
import type { ServingProcess } from './gatehouse.ts'
import { skipped } from './programs.ts'

const skip = skipped('nats-server')

// Changes that are made while the leader changes, or while an announcement is under way.

test('a policy that is changed while no manager leads is in force as soon as one leads', {
  skip,
}, async (t) => {
  const place = await placeFor(t)
  const signatures = join(folderFor(t, 'signatures'), 'own.ndjson')
  writeFileSync(signatures, '')
  const manager = await startManager(t, place, { GATEHOUSE_SIGNATURES: signatures })
  await eventually(() => leads(manager))
  const app = await startApp(t)
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))
  assert.equal(await statusOf(proxy, '/closed'), 200)
  const lock = await heldLock(t, place.postgres)
  await eventually(async () => !(await leads(manager)))
  await put(manager, [CLOSED])
  // A file that cannot be used must not keep the policy back.
  writeFileSync(signatures, 'nonsense')
  await lock.end()
  await eventually(() => leads(manager))
  await eventually(async () => (await statusOf(proxy, '/closed')) === 403)
})

test('a policy that is changed and changed back at once ends as it was', { skip }, async (t) => {
  const place = await placeFor(t)
  const manager = await startManager(t, place)
  const app = await startApp(t)
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'proxy'))
  await put(manager, [CLOSED])
  await eventually(async () => (await statusOf(proxy, '/closed')) === 403)
  for (let time = 0; time < 10; time++) {
    await put(manager, [])
    await put(manager, [CLOSED])
  }
  await settled(manager)
  assert.equal(await statusOf(proxy, '/closed'), 403)
})

async function placeFor(t: Test): Promise<FleetPlace> {
  const { url: nats } = await startNats(t)
  return {
    nats,
    postgres: await freshUrl('postgres', t),
    bus: freshBusName(),
    expects: /"what":"signatures"|leads|database/,
  }
}

async function leads(manager: ServingProcess): Promise<boolean> {
  return (await asked(manager, 'GET', '/v1/fleet'))['leads']
}

function put(manager: ServingProcess, rules: readonly unknown[]): Promise<unknown> {
  return asked(manager, 'PUT', '/v1/policy', { rules }, { 'if-match': '*' })
}

/** Takes the lock of the leader away from the managers. */
async function heldLock(t: Test, url: string): Promise<pg.Client> {
  const [client, other] = [new pg.Client(url), new pg.Client(url)]
  await client.connect()
  t.teardown(() => client.end().catch(() => undefined))
  const taken = client.query('select pg_advisory_lock($1)', [LOCKS.leader])
  await other.connect()
  await until(async () => {
    const { rows } = await other.query(
      `select from pg_locks where locktype = 'advisory' and not granted and pid <> pg_backend_pid()`,
    )
    return rows.length > 0
  })
  await other.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where application_name = 'gatehouse leader' and datname = current_database()`,
  )
  await taken
  await other.end()
  return client
}

/** Resolves when no Snapshot has been announced for a while. */
async function settled({ manage }: ServingProcess): Promise<void> {
  let before = ''
  await eventually(async () => {
    await wait(300)
    const metrics = await (await fetch(`${manage}/metrics`)).text()
    const [line = ''] = /^gatehouse_snapshots_announced_total .*$/m.exec(metrics) ?? []
    const isSettled = line !== '' && line === before
    before = line
    return isSettled
  })
}

const CLOSED = { name: 'closed', when: { path: '/closed' }, action: 'block' }
