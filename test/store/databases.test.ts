import assert from 'node:assert/strict'
import { test } from 'tap'
import type { NewEvent } from '../../src/store/events/events.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, type Owner } from './databases.ts'
import { inDatabase } from './roles.ts'
import { newKey } from './samples.ts'

const FIRST = { page: 1, limit: 10 }

for (const kind of KINDS) {
  test(`${kind}: tests at the same time have databases of their own`, async (t) => {
    const urls = await Promise.all([1, 2, 3].map(() => freshUrl(kind, t)))
    assert.equal(new Set(urls).size, 3)
  })

  test(`${kind}: rows of a test are gone for the next one, and numbers start again`, async () => {
    for (let round = 0; round < 2; round++)
      await asTest(async (t) => {
        const store = await Store.open(await freshUrl(kind, t))
        assert.equal((await store.keys.list(FIRST, '*')).total, 0)
        await store.keys.add(newKey(1))
        const [event] = await store.transaction((queries) => store.events.add([EVENT], queries))
        assert.equal(event?.number, 1)
        await store.close()
      })
  })
}

test('a database whose tables a test has changed is not used again', async () => {
  // The second time, it fails if the database has the change already.
  for (const change of [
    'alter table settings add column x text',
    "insert into migrations (name, at_ms) values ('9999-later', 0)",
  ])
    for (let round = 0; round < 2; round++)
      await assert.doesNotReject(asTest(async (t) => inDatabase(await freshUrl('postgres', t), change)))
})

const EVENT: NewEvent = {
  ...{ id: 'a', type: 'new_signature', atMs: 1, subject: 'ja4 x', data: '{}' },
  ...{ agent: null, category: null, severity: null, confidence: null, app: null },
}

/** Runs work as a test of its own, which ends with it. */
async function asTest(work: (t: Owner) => Promise<unknown>): Promise<void> {
  const teardowns: (() => unknown)[] = []
  try {
    await work({ teardown: (teardown) => teardowns.unshift(teardown) })
  } finally {
    for (const teardown of teardowns) await teardown()
  }
}
