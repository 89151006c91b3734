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
    assert.deepEqual(
      [items[0], items.map(({ version }) => version), total],
      [{ ...shown, app: '*' }, [5, 4], 3],
    )
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

  test(`${kind}: each app has versions of its own, and they end with it`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const [shop, blog] = [store.policies.of('shop'), store.policies.of('blog')]
    const put = (of: typeof shop, version: number) =>
      store.transaction((queries) => of.add(policy(version), 2, queries))
    await add(store, policy(1), 50)
    for (const version of [1, 2, 3]) assert.equal(await put(shop, version), true)
    assert.equal(await put(shop, 3), false)
    assert.equal(await put(blog, 1), true)
    assert.deepEqual(await store.policies.newestOfApps(), [
      { app: 'blog', version: 1, hash: policy(1).hash },
      { app: 'shop', version: 3, hash: policy(3).hash },
    ])
    assert.deepEqual([await shop.byVersion(1), (await shop.byVersion(2))?.version], [null, 2])
    assert.deepEqual([await store.policies.byVersion(2), await blog.byVersion(2)], [null, null])
    assert.equal((await shop.list({ page: 1, limit: 9 })).total, 2)
    const { length } = policy(1).document
    assert.equal(await store.transaction((queries) => shop.lengthOfOthers(queries)), length)
    assert.equal(
      await store.transaction((queries) => store.policies.of('x').lengthOfOthers(queries)),
      2 * length,
    )
    assert.equal(await store.transaction((queries) => shop.remove(queries)), 2)
    assert.equal(await shop.newest(), null)
    assert.deepEqual([(await blog.newest())?.version, (await store.policies.newest())?.version], [1, 1])
  })
}

function add(store: Store, record: PolicyRecord, versionsMax: number): Promise<boolean> {
  return store.transaction((queries) => store.policies.add(record, versionsMax, queries))
}

function policy(version: number): PolicyRecord {
  return {
    ...{ version, document: `{"rules": [], "x": "ä${version}"}`, hash: 'f'.repeat(64), author: 'key_a' },
    ...{ restoredVersion: version % 2 === 0 ? version - 1 : null, createdAtMs: 1_800_000_000_000 + version },
    comment: version % 2 === 0 ? null : `“ä” <b> ${version}`,
  }
}
