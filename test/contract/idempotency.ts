import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import type { RunningRequest, IdempotencyStore } from '../../src/store/work/idempotency.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'

/** What any Store must do about requests that come twice. `open` with the same URL is another process. */
export function idempotencyContract(
  name: string,
  freshUrl: (t: Test) => Promise<string>,
  open: (t: Test, url: string) => Promise<Store>,
): void {
  const fresh = async (t: Test) => (await open(t, await freshUrl(t))).idempotency

  test(`${name}: a request is done once, and answered alike`, async (t) => {
    const store = await fresh(t)
    const begun = await isNew(store, 'a', 0)
    assert.equal((await store.begin('me', 'a', 'hash', 1)).kind, 'running')
    assert.equal((await store.begin('me', 'a', 'another hash', 1)).kind, 'conflict')
    assert.equal((await store.begin('you', 'a', 'another hash', 1)).kind, 'new')
    assert.ok(await store.finish(begun, ANSWER))
    assert.deepEqual(await store.begin('me', 'a', 'hash', 2), { kind: 'done', answer: ANSWER })
    assert.equal((await store.begin('me', 'a', 'another hash', 2)).kind, 'conflict')
    assert.equal(await store.finish(begun, { ...ANSWER, status: 500 }), false)
    await store.abandon(begun) // what is done stays done
    assert.deepEqual(await store.begin('me', 'a', 'hash', 2), { kind: 'done', answer: ANSWER })
  })

  test(`${name}: an answer cannot be read from the database alone`, async (t) => {
    const url = await freshUrl(t)
    const store = await open(t, url)
    await store.idempotency.finish(await isNew(store.idempotency, 'idem-1234', 0), ANSWER)
    const { db, close } = await openDatabase(url, null, migrate)
    const rows = await db.selectFrom('idempotency').selectAll().execute().finally(close)
    for (const secret of ['idem-1234', 'Location', '"name"'])
      assert.ok(!JSON.stringify(rows).includes(secret), secret)
  })

  test(`${name}: a request that came to nothing can be made again`, async (t) => {
    const store = await fresh(t)
    await store.abandon(await isNew(store, 'a', 0))
    await isNew(store, 'a', 1)
  })

  test(`${name}: what a killed process was at is taken over by one, and no more by it`, async (t) => {
    const store = await fresh(t)
    const killed = await isNew(store, 'a', 0)
    assert.equal((await store.begin('me', 'a', 'hash', 299_999)).kind, 'running')
    const taken = await Promise.all([1, 2, 3].map((more) => store.begin('me', 'a', 'hash', 300_000 + more)))
    assert.deepEqual(taken.map(({ kind }) => kind).sort(), ['new', 'running', 'running'])
    assert.equal(await store.finish(killed, ANSWER), false)
    await store.abandon(killed)
    assert.equal((await store.begin('me', 'a', 'hash', 300_010)).kind, 'running')
  })

  test(`${name}: of many at once in several processes one does it`, async (t) => {
    const url = await freshUrl(t)
    const stores = [await open(t, url), await open(t, url), await open(t, url)]
    for (const key of ['a', 'b', 'c', 'd']) {
      const all = stores.flatMap(({ idempotency }) =>
        Array.from({ length: 5 }, () => idempotency.begin('me', key, 'hash', 0)),
      )
      const kinds = (await Promise.all(all)).map(({ kind }) => kind)
      assert.deepEqual([kinds.filter((kind) => kind === 'new').length, new Set(kinds).size], [1, 2])
    }
  })

  test(`${name}: after a day it is a new request, and is forgotten in slices`, async (t) => {
    const store = await fresh(t)
    for (const key of ['a', 'b', 'c', 'd']) await store.finish(await isNew(store, key, 0), ANSWER)
    await isNew(store, 'e', 1)
    const begun = await isNew(store, 'a', DAY_MS, 'another hash')
    assert.equal(await store.forget(DAY_MS - 1, 2), 0)
    assert.deepEqual([await store.forget(DAY_MS, 2), await store.forget(DAY_MS, 2)], [2, 1])
    assert.ok(await store.finish(begun, { ...ANSWER, body: null }))
  })
}

async function isNew(
  store: IdempotencyStore,
  key: string,
  nowMs: number,
  hash = 'hash',
): Promise<RunningRequest> {
  const beginning = await store.begin('me', key, hash, nowMs)
  assert.equal(beginning.kind, 'new')
  return (beginning as { begun: RunningRequest }).begun
}

const ANSWER = { status: 201, headers: { Location: '/v1/x' }, body: '{"name":"ä\\u0000"}' }
const DAY_MS = 86_400_000
