import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { PolicyRecord } from '../../src/store/work/policies.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping policies has to do in either database. */
export function policiesContract(kind: DatabaseKind): void {
  test(`${kind}: policies come back as they were given, and the oldest are forgotten`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    assert.deepEqual([await store.policies.newest(), await store.policies.byVersion(1)], [null, null])
    for (let version = 1; version <= 5; version++) assert.equal(await add(store, policy(version), 3), true)
    assert.deepEqual(await store.policies.newest(), { version: 5, hash: policy(5).hash })
    assert.deepEqual(await store.policies.byVersion(5), policy(5))
    assert.equal(await store.policies.byVersion(2), null)
    const { items, total } = await store.policies.list({ page: 1, limit: 2 })
    const { document, ...shown } = policy(5)
    assert.deepEqual([items[0], items.map(({ version }) => version), total], [shown, [5, 4], 3])
  })

  test(`${kind}: a version is stored once, and a second writer changes nothing`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const stores = kind === 'sqlite' ? [store, store] : [store, await openAt(t, url)]
    const added = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        add(stores[index % 2]!, { ...policy(1), author: `${index}` }, 1),
      ),
    )
    assert.equal(added.filter(Boolean).length, 1)
    assert.equal((await store.policies.byVersion(1))?.author, `${added.indexOf(true)}`)
    // A refused one prunes nothing either.
    assert.equal(await add(store, policy(2), 50), true)
    assert.equal(await add(store, policy(2), 1), false)
    assert.equal((await store.policies.list({ page: 1, limit: 9 })).total, 2)
  })
}

function add(store: Store, record: PolicyRecord, versionsMax: number): Promise<boolean> {
  return store.transaction((queries) => store.policies.add(record, versionsMax, queries))
}

function policy(version: number): PolicyRecord {
  return {
    ...{ version, document: `{"rules": [], "x": "ä${version}"}`, hash: 'f'.repeat(64), author: 'key_a' },
    ...{ restoredVersion: version % 2 === 0 ? version - 1 : null, createdAtMs: 1_800_000_000_000 + version },
  }
}
