import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { CatalogueSync } from '../../src/runtime/signatures/catalogue-sync.ts'
import { createLogTo, silentLog } from '../../src/shared/log.ts'
import { openFresh } from '../store/databases.ts'
import { until } from '../until.ts'

const NOTHING = { software: [], names: [], signatures: [] }

test('what has changed is merged, once, and one at a time', async (t) => {
  const store = await openFresh('sqlite', t)
  let hash: string | null = null
  const merged: string[] = []
  let underWay = 0
  const said: string[] = []
  const sync = new CatalogueSync(
    {
      hash: async () => hash,
      merge: async (wanted) => {
        assert.equal(++underWay, 1)
        if (wanted === 'bad') throw new Error('the files are bad')
        merged.push(wanted)
        const how = { hash: wanted, nowMs: 1, pause: () => wait(1) }
        return store.catalogueMerge.merge(NOTHING, how).finally(() => underWay--)
      },
    },
    createLogTo('info', { write: (line: string) => void said.push(line) }),
  )
  sync.nudge() // there is no database
  sync.attach(store) // and no hash
  await wait(50)
  assert.deepEqual([merged, sync.isFilled], [[], false])
  hash = 'one'
  sync.nudge()
  sync.nudge()
  await until(() => merged.length === 1)
  await sync.firstEnd
  assert.equal(sync.isFilled, true)
  sync.nudge()
  await wait(50)
  assert.deepEqual(merged, ['one'])
  hash = 'two'
  sync.nudge()
  await until(() => merged.length === 2)
  await wait(50)
  hash = 'bad'
  sync.nudge()
  await until(() => said.some((line) => line.includes('the files are bad')))
  assert.equal(await store.catalogueMerge.hash(), 'two')
  assert.equal(sync.isFilled, true, 'it was filled, and is not emptied by files that are bad later')
  sync.close()
  sync.nudge()
})

test('it is not filled while the first merge runs, nor after one that failed', async (t) => {
  const store = await openFresh('sqlite', t)
  const merging = Promise.withResolvers<never>()
  const links = { hash: async () => 'one', merge: () => merging.promise }
  const sync = new CatalogueSync(links, silentLog())
  t.teardown(() => sync.close())
  sync.attach(store)
  await wait(50)
  assert.equal(sync.isFilled, false)
  merging.reject(new Error('the disk is full'))
  await sync.firstEnd
  assert.equal(sync.isFilled, false)
})

test('who does not lead finds out that another process has filled it', async (t) => {
  const store = await openFresh('sqlite', t)
  const links = { hash: async () => null, merge: () => assert.fail('it does not lead') }
  const sync = new CatalogueSync(links, silentLog())
  t.teardown(() => sync.close())
  sync.attach(store)
  await wait(50)
  assert.equal(sync.isFilled, false)
  await store.catalogueMerge.merge(NOTHING, { hash: 'of the one that leads', nowMs: 1, pause: () => wait(1) })
  await sync.firstEnd
  assert.equal(sync.isFilled, true)
})
