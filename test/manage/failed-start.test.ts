import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { ManagementPlane } from '../../src/manage/management-plane.ts'
import { DEFAULT_POLICY } from '../../src/manage/publish/policy-keeper.ts'
import type { Store } from '../../src/store/store.ts'
import { SILENT } from '../contract/seen.ts'
import { freshUrl } from '../store/databases.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { idleLinks } from './idle-links.ts'
import { SETTINGS } from './management.ts'

test('a start that fails late ends its background work, and the next start begins one set', async (t) => {
  const stores: Store[] = []
  const polls = new Map<Store, number>()
  const folder = temporaryFolder(t)
  const plane = new ManagementPlane(
    { ...SETTINGS, dataFolder: folder, storeUrl: await freshUrl('sqlite', t) },
    SILENT,
    {
      ...idleLinks(folder),
      policy: { kind: 'file', inForce: () => DEFAULT_POLICY },
      // By now, all parts have started.
      opened: (store) => {
        stores.push(store)
        Object.assign(store.taskCallbacks, {
          claim: async () => {
            polls.set(store, (polls.get(store) ?? 0) + 1)
            return []
          },
        })
        if (stores.length === 1) throw new Error('not this time')
      },
    },
  )
  t.teardown(() => plane.close())
  const listen = { host: '127.0.0.1', port: 1 }
  await plane.start(listen)
  const [first] = stores as [Store]
  assert.equal(plane.isOpen, false)
  const before = polls.get(first) ?? 0
  await plane.start(listen)
  assert.equal(plane.isOpen, true)
  const second = stores[1]!
  while ((polls.get(second) ?? 0) < 3) await wait(50)
  assert.equal(polls.get(first) ?? 0, before)
  assert.equal(stores.length, 2)
})
