import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What counting has to do in either database. */
export function rateLimitsContract(kind: DatabaseKind): void {
  test(`${kind}: counts go on within a window, and begin anew after it`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const add = (nowMs: number) => store.rateLimits.add('standard:key_1', 1, 1_000, nowMs)
    assert.deepEqual(await add(5_000), { key: 'standard:key_1', points: 1, endsAtMs: 6_000 })
    assert.deepEqual(await add(5_999), { key: 'standard:key_1', points: 2, endsAtMs: 6_000 })
    assert.deepEqual(await add(6_000), { key: 'standard:key_1', points: 1, endsAtMs: 7_000 })
    assert.equal((await store.rateLimits.add('free:key_1', 1, 1_000, 6_000)).points, 1)
    assert.equal((await store.rateLimits.current(6_999)).length, 2)
    assert.deepEqual(await store.rateLimits.current(7_000), [])
  })

  test(`${kind}: counts every one of many concurrent requests`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url)]
    const adding = Array.from({ length: 60 }, (_, i) => stores[i % 2]!.rateLimits.add('k', 1, 60_000, 1_000))
    const points = (await Promise.all(adding)).map((count) => count.points)
    assert.deepEqual(
      points.toSorted((a, b) => a - b),
      Array.from({ length: 60 }, (_, i) => i + 1),
    )
  })

  test(`${kind}: several counts are added at once, each in its own window, by many at once`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url)]
    const [a, b] = [
      { key: 'app minute:a', points: 1, windowMs: 60_000 },
      { key: 'app day:b', points: 1, windowMs: 86_400_000 },
    ]
    const adding = Array.from({ length: 40 }, (_, i) =>
      stores[i % 2]!.rateLimits.addAll(i % 3 === 0 ? [a, b] : [b, a], 1_000),
    )
    const added = await Promise.all(adding)
    for (const [i, counts] of added.entries()) {
      const ends = counts.map(({ key, endsAtMs }) => [key, endsAtMs])
      const expected = [
        ['app minute:a', 61_000],
        ['app day:b', 86_401_000],
      ]
      assert.deepEqual(ends, i % 3 === 0 ? expected : expected.toReversed())
    }
    assert.deepEqual(
      added.map((counts) => Math.max(...counts.map(({ points }) => points))).toSorted((x, y) => x - y),
      Array.from({ length: 40 }, (_, i) => i + 1),
    )
  })

  test(`${kind}: what was counted elsewhere is kept, and what is over is swept away`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await Store.open(url)
    await store.transaction(async (queries) => {
      await store.rateLimits.keep({ key: 'a', points: 5, endsAtMs: 2_000 }, queries)
      await store.rateLimits.keep({ key: 'a', points: 7, endsAtMs: 2_000 }, queries)
      await store.rateLimits.keep({ key: 'b', points: 1, endsAtMs: 1_000 }, queries)
    })
    await store.rateLimits.sweep(1_000)
    await store.close()
    const later = await openAt(t, url)
    assert.deepEqual(await later.rateLimits.current(0), [{ key: 'a', points: 7, endsAtMs: 2_000 }])
  })
}
