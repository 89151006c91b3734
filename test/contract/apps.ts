import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import type { AppRecord } from '../../src/store/work/apps.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping apps has to do in either database. */
export function appsContract(kind: DatabaseKind): void {
  test(`${kind}: apps are read as they were stored`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const shop = record('shop', ['Shop.example', '*.shop.example', '[2001:db8::1]'])
    const bare = { ...record('a', []), team: null, upstream: null, labels: [], quota: null }
    assert.deepEqual([await store.apps.all(), await store.apps.byId('shop')], [[], null])
    await put(store, shop)
    await put(store, bare)
    assert.deepEqual(await store.apps.all(), [bare, shop])
    assert.deepEqual([await store.apps.byId('shop'), await store.apps.byId('a')], [shop, bare])
    assert.equal(await store.transaction((queries) => store.apps.count(queries)), 2)
    const hosts = (id: string) => store.transaction((queries) => store.apps.hostCount({ id }, queries))
    assert.deepEqual([await hosts('a'), await hosts('shop')], [3, 0])
  })

  test(`${kind}: apps are sorted by id as bytes`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    for (const id of ['b', 'a-b', 'ab', 'a', '1']) await put(store, record(id, []))
    assert.deepEqual(
      (await store.apps.all()).map(({ id }) => id),
      ['1', 'a', 'a-b', 'ab', 'b'],
    )
  })

  test(`${kind}: a stored app is replaced whole and keeps its time of creation`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const before = record('shop', ['b.example', 'a.example'])
    await put(store, before)
    const after = { ...before, ...{ name: 'Löden', team: null, hosts: ['c.example', 'b.example'] } }
    await put(store, { ...after, createdAtMs: 9, updatedAtMs: 10 })
    assert.deepEqual(await store.apps.all(), [{ ...after, updatedAtMs: 10 }])
  })

  test(`${kind}: a removed app frees its hosts`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await put(store, record('shop', ['a.example']))
    const remove = (id: string) => store.transaction((queries) => store.apps.remove(id, queries))
    assert.deepEqual([await remove('shop'), await remove('shop')], [true, false])
    await put(store, record('blog', ['a.example']))
    assert.deepEqual(
      (await store.apps.all()).map(({ id }) => id),
      ['blog'],
    )
  })

  test(`${kind}: a host of another app is found in any spelling`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await put(store, record('shop', ['Shop.example', '*.shop.example']))
    const taken = (id: string, ...hosts: readonly string[]) =>
      store.transaction((queries) => store.apps.takenHost({ id, hosts }, queries))
    assert.deepEqual(await taken('blog', 'x.example', 'SHOP.example.'), {
      ...{ pattern: 'SHOP.example.', app: 'shop' },
    })
    assert.deepEqual(await taken('blog', '*.Shop.Example'), { pattern: '*.Shop.Example', app: 'shop' })
    for (const host of ['*.example', 'a.shop.example', 'shop.example.org'])
      assert.equal(await taken('blog', host), null, host)
    assert.equal(await taken('shop', 'shop.example'), null)
    assert.equal(await taken('blog'), null)
  })

  test(`${kind}: the database refuses a host that another app has`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await put(store, record('shop', ['a.example']))
    await assert.rejects(put(store, record('blog', ['A.example'])))
    assert.equal(await store.apps.byId('blog'), null)
  })

  test(`${kind}: of several processes that take the same host, one gets it`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const stores = kind === 'sqlite' ? [store, store] : [store, await openAt(t, url)]
    const taken = await Promise.all(
      Array.from({ length: 8 }, (_, index) => {
        const each = stores[index % 2]!
        return each.transaction(async (queries) => {
          await each.apps.lock(queries)
          const app = record(`app-${index}`, ['same.example'])
          if ((await each.apps.takenHost(app, queries)) !== null) return false
          await each.apps.put(app, queries)
          return true
        })
      }),
    )
    assert.deepEqual(taken.filter(Boolean), [true])
  })
}

function put(store: Store, app: AppRecord): Promise<void> {
  return store.transaction((queries) => store.apps.put(app, queries))
}

function record(id: string, hosts: readonly string[]): AppRecord {
  return {
    ...{ id, hosts, name: 'The "shop" ä', team: 'retail', upstream: 'app' },
    ...{
      labels: ['eu', 'tier 1'],
      quota: { minute: 60, day: 1_000_000_000 },
      createdAtMs: 1_800_000_000_000,
      updatedAtMs: 1_800_000_000_001,
    },
  }
}
