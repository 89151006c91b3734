import assert from 'node:assert/strict'
import pg from 'pg'
import { test } from 'tap'
import { silentLog, createLogTo } from '../../src/shared/log.ts'
import { Leadership } from '../../src/manage/publish/leadership.ts'
import { LeaderLock } from '../../src/store/engine/leader-lock.ts'
import { until } from '../contract/bus.ts'
import { freshUrl } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'

const log = silentLog()

test('one leads; when it leaves, another one does', async (t) => {
  const url = await freshUrl('postgres', t)
  const [one, other] = [leadership(url), leadership(url)]
  one.start()
  await until(() => one.isLeader)
  other.start()
  await new Promise((resolve) => setTimeout(resolve, 150))
  assert.deepEqual([one.isLeader, other.isLeader], [true, false])
  assert.deepEqual([await one.confirm(), await other.confirm()], [true, false])
  await one.close()
  await until(() => other.isLeader)
  assert.equal(one.isLeader, false)
  await other.close()
})

test('who is cut off from the database leads no more, and another one does', async (t) => {
  const url = await freshUrl('postgres', t)
  const relay = await Relay.before(url)
  t.teardown(() => relay.stop())
  const changes: boolean[] = []
  const one = leadership(relay.url)
  one.onChange((isLeader) => changes.push(isLeader))
  one.start()
  await until(() => one.isLeader)
  const other = leadership(url)
  other.start()
  await relay.stop()
  assert.equal(await one.confirm(), false)
  await until(() => other.isLeader)
  assert.deepEqual(changes, [true, false])
  await relay.start()
  await new Promise((resolve) => setTimeout(resolve, 150))
  assert.equal(one.isLeader, false)
  await other.close()
  await until(() => one.isLeader)
  await one.close()
})

test('whose session the database has ended does not lead, whatever it thinks', async (t) => {
  const url = await freshUrl('postgres', t)
  const one = leadership(url, 60_000)
  one.start()
  await until(() => one.isLeader)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'gatehouse leader' and datname = current_database()",
  )
  await client.end()
  assert.equal(await one.confirm(), false)
  assert.equal(one.isLeader, false)
  await one.close()
})

test('a lock that another session has is not held, and that is said once', async () => {
  const said: string[] = []
  let times = 0
  const pooled = {
    take: async () => ++times > 0,
    isHeld: async () => false,
    release: async () => undefined,
  }
  const one = new Leadership(pooled, createLogTo('info', { write: (line) => said.push(line) }), 20)
  one.start()
  await until(() => times > 3)
  assert.equal(one.isLeader, false)
  assert.equal(said.length, 1)
  assert.match(said[0]!, /has to lead to PostgreSQL itself/)
  await one.close()
})

function leadership(url: string, beatMs = 30): Leadership {
  return new Leadership(new LeaderLock(url, null), log, beatMs)
}
