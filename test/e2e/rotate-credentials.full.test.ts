import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { test } from 'tap'
import { GuardedNats } from '../plane/guarded-nats.ts'
import { folderFor, startPostgres } from './engines.ts'
import { ADMIN_KEY, echoApp, requested, startFleetProxy, startManager } from './fleet.ts'
import { MountedSecret } from './mounted-secret.ts'
import { skipped } from './programs.ts'
import { until } from '../until.ts'

test('a fleet goes on while the passwords of NATS and PostgreSQL are replaced under it', {
  skip: skipped('nats-server'),
}, async (t) => {
  const nats = await GuardedNats.start(t, natsUsers('one', 'two'))
  const postgres = await startPostgres(t)
  const admin = new pg.Client({ connectionString: postgres.url })
  admin.on('error', () => undefined)
  await admin.connect()
  t.teardown(() => admin.end())
  await admin.query("create role app login password 'one'")
  await admin.query('create database app owner app')
  writeFileSync(
    join(postgres.folder, 'data', 'pg_hba.conf'),
    'host all gatehouse 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  )
  await admin.query('select pg_reload_conf()')
  const content = (user: string, password: string, database: string) => ({ user, password, database })
  const secret = new MountedSecret(join(folderFor(t, 'secret'), 'mounted'), content('a', 'one', 'one'))
  const ofBus = {
    GATEHOUSE_BUS_USER_FILE: secret.file('user'),
    GATEHOUSE_BUS_PASSWORD_FILE: secret.file('password'),
  }
  const place = {
    nats: `nats://127.0.0.1:${nats.port}`,
    postgres: `postgres://app@127.0.0.1:${postgres.port}/app`,
    bus: 'rotated',
    // Between the change in the server and that of the Secret, new connections are refused.
    expects: /not reloaded|does not let us in/,
  }
  const manager = await startManager(t, place, {
    ...ofBus,
    GATEHOUSE_STORE_PASSWORD_FILE: secret.file('database'),
  })
  const app = await echoApp(t)
  const proxy = await startFleetProxy(t, place, app.url, folderFor(t, 'data'), ofBus)
  const version = async ({ manage }: { readonly manage: string }, what: string) => {
    const text = await (await fetch(`${manage}/metrics`)).text()
    return (name: string) =>
      Number(new RegExp(`^gatehouse_${name}\\{what="${what}"\\} (\\d+)$`, 'm').exec(text)?.[1])
  }
  let visits = 0
  const worksAs = async (user: string) => {
    await nats.untilUsers([user, user])
    const before = await stored(manager)
    visits++
    await requested(proxy, `/${visits}`)
    await until(async () => (await stored(manager)) > before)
  }
  await worksAs('a')

  secret.swap(content('b', 'wrong', 'wrong'))
  for (const [process, what] of [
    [manager, 'bus-credentials'],
    [proxy, 'bus-credentials'],
    [manager, 'store-credentials'],
  ] as const)
    await until(async () => (await version(process, what))('reload_current') === 0)
  await worksAs('a')

  await admin.query("alter role app password 'two'")
  secret.swap(content('b', 'two', 'two'))
  for (const [process, what] of [
    [manager, 'bus-credentials'],
    [proxy, 'bus-credentials'],
    [manager, 'store-credentials'],
  ] as const)
    await until(async () => (await version(process, what))('reload_current') === 1)
  await worksAs('b')
  // Every old connection is closed: new queries need new connections, with the new password.
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'app'")
  await until(async () => (await fetch(`${manager.manage}/v1/agents`, { headers: KEY })).status === 200)
  await worksAs('b')
  for (const { said } of [manager, proxy]) assert.ok(!/"(?:one|two|wrong)"/.test(said()))
})

async function stored(manager: { readonly manage: string }): Promise<number> {
  const text = await (await fetch(`${manager.manage}/metrics`)).text()
  return Number(/^gatehouse_bus_batches_total\{outcome="stored"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}

function natsUsers(first: string, second: string): string {
  return `jetstream: {store_dir: "{store}"}
authorization { users: [{user: a, password: ${first}}, {user: b, password: ${second}}] }`
}

const KEY = { authorization: `Bearer ${ADMIN_KEY}` }
