import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { ApiKeys, hashOfKey, newKey } from '../../src/manage/auth/api-keys.ts'
import { MinuteThrottle } from '../../src/manage/auth/minute-throttle.ts'
import { Periodic } from '../../src/manage/jobs/periodic.ts'
import { StoreWatch } from '../../src/manage/store-watch.ts'
import { openFresh } from '../store/databases.ts'
import { newKey as record } from '../store/samples.ts'

test('failures count by address and minute; all of a /64 are one, and IPv4 is itself however it is written', async () => {
  const throttle = new MinuteThrottle(2)
  const failed = (address: string, nowMs: number) => {
    const throttled = throttle.count(address, nowMs)
    return throttled.kind === 'may' ? 'may' : `${throttled.retryAfterS}${throttled.isFirst ? ' first' : ''}`
  }
  assert.deepEqual(
    [0, 1, 2, 30_000, 59_999].map((nowMs) => failed('192.0.2.1', nowMs)),
    ['may', 'may', '60 first', '30', '1'],
  )
  assert.equal(failed('::ffff:192.0.2.1', 59_999), '1')
  assert.equal(failed('192.0.2.2', 59_999), 'may')
  assert.equal(failed('192.0.2.1', 60_000), 'may')
  const v6 = ['2001:db8::1', '2001:db8:0:0:ffff::1', '2001:db8::2', '2001:db8:0:1::1', 'fe80::1%eth0', '']
  assert.deepEqual(
    v6.map((address) => failed(address, 0)),
    ['may', 'may', '60 first', 'may', 'may', 'may'],
  )
})

test('when a key was used is written once a minute, by nobody who waits, and tried again', async (t) => {
  const { keys } = await openFresh('sqlite', t)
  const key = newKey()
  await keys.add({ ...record(1), hash: hashOfKey(key) })
  const written: ReadonlyMap<string, number>[] = []
  let fails = true
  const apiKeys = new ApiKeys(
    Object.assign(Object.create(keys), {
      byHash: (hash: string) => keys.byHash(hash),
      used: async (uses: ReadonlyMap<string, number>) => {
        if (fails) throw new Error('no')
        written.push(uses)
        await keys.used(uses)
      },
    }),
  )
  const useAt = async (nowMs: number) => apiKeys.used((await apiKeys.find(key, nowMs))!, nowMs)
  for (const nowMs of [100_000, 100_001, 130_000]) await useAt(nowMs)
  await assert.rejects(apiKeys.writeUsed())
  fails = false
  await apiKeys.writeUsed()
  await apiKeys.writeUsed()
  await useAt(159_999)
  await apiKeys.writeUsed()
  await useAt(160_000)
  await apiKeys.writeUsed()
  assert.deepEqual(
    written.map((uses) => uses.get('key_1')),
    [100_000, 160_000],
  )
  assert.equal((await keys.byId('key_1'))?.lastUsedAtMs, 160_000)
})

test('periodic jobs go on after failures, say each once, never run twice at once, and end', async () => {
  const lines: string[] = []
  const periodic = new Periodic(createLogTo('warn', { write: (line) => void lines.push(line) }))
  let [runs, underWay, most] = [0, 0, 0]
  const job = {
    name: 'try',
    everyMs: 5,
    async run() {
      most = Math.max(most, ++underWay)
      await wait(10)
      underWay--
      runs++
      if (runs <= 3) throw new Error('no')
      return runs === 4 ? ('more' as const) : ('done' as const)
    },
  }
  periodic.start([job])
  while (runs < 6) await wait(5)
  await periodic.close()
  assert.equal(underWay, 0)
  const ended = runs
  await wait(40)
  assert.deepEqual([runs, most, lines.length], [ended, 1, 1])
  assert.match(lines[0]!, /"job":"try"/)
})

test('an operator hears once that the database is away, and once that it is back', async (t) => {
  const store = await openFresh('sqlite', t)
  const lines: string[] = []
  let isAway = false
  const isThere = async () => {
    if (isAway) throw new Fault('STORE_UNAVAILABLE', 'the database cannot be reached')
    await store.isThere()
  }
  const log = createLogTo('info', { write: (line) => void lines.push(JSON.parse(line).message) })
  const watch = new StoreWatch(Object.assign(Object.create(store), { isThere }), log)
  const seen: boolean[] = []
  for (isAway of [false, true, true, false, false, true]) {
    await watch.job.run(0)
    seen.push(watch.isUp)
  }
  assert.deepEqual(seen, [true, false, false, true, true, false])
  const [away, back] = ['the database cannot be used; proxies go on', 'the database can be used again']
  assert.deepEqual(lines, [away, back, away])
})
