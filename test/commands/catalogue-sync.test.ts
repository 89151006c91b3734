import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { CatalogueSync } from '../../src/commands/catalogue-sync.ts'
import { createLogTo } from '../../src/log.ts'
import { openFresh } from '../store/databases.ts'

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
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await wait(5)
  }
  sync.nudge() // there is no database
  sync.attach(store) // and no hash
  await wait(50)
  assert.deepEqual(merged, [])
  hash = 'one'
  sync.nudge()
  sync.nudge()
  await until(() => merged.length === 1)
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
  sync.close()
  sync.nudge()
})
