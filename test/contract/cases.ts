import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { CaseDraft, CaseFilter } from '../../src/store/events/cases.ts'
import type { Store } from '../../src/store/store.ts'

/** What any Store must do about cases. `open` with the same URL is another process. */
export function casesContract(
  name: string,
  freshUrl: (t: Test) => Promise<string>,
  open: (t: Test, url: string) => Promise<Store>,
): void {
  const file = (store: Store, ...drafts: readonly CaseDraft[]) =>
    store.transaction((queries) => store.cases.file(drafts, queries))
  const listed = async (store: Store, filter: Partial<CaseFilter> = {}) =>
    (await store.cases.list({ page: 1, limit: 50 }, { ...ANY, ...filter })).items.map(({ id }) => id)

  test(`${name}: threats of one identity are one case, whichever process stores them`, async (t) => {
    const url = await freshUrl(t)
    const stores = [await open(t, url), await open(t, url)]
    const filed = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        file(
          stores[i % 2]!,
          draft({ id: `cas_a${i}`, firstAtMs: 1_000 + i, lastAtMs: 1_000 + i, requests: 3 }),
          draft({ id: `cas_b${i}`, identity: 'b' }),
        ),
      ),
    )
    const ids = new Set(filed.map((each) => each.get('a')))
    assert.equal(ids.size, 1)
    const found = await stores[0]!.cases.byId([...ids][0]!, ALL_APPS)
    assert.deepEqual(
      [found?.events, found?.requests, found?.firstAtMs, found?.lastAtMs, found?.status],
      [20, 60, 1_000, 1_019, 'open'],
    )
    assert.equal((await listed(stores[1]!)).length, 2)
  })

  test(`${name}: a transaction that fails leaves no case`, async (t) => {
    const store = await open(t, await freshUrl(t))
    const failure = new Error('no')
    const failing = store.transaction(async (queries) => {
      await store.cases.file([draft({})], queries)
      throw failure
    })
    await assert.rejects(failing, failure)
    assert.deepEqual(await listed(store), [])
  })

  test(`${name}: of parallel changes to a version of a case, one succeeds`, async (t) => {
    const store = await open(t, await freshUrl(t))
    await file(store, draft({}))
    const change = { status: 'accepted', note: 'known', feedback: 0, by: 'key_1', atMs: 9 } as const
    const done = await Promise.all(
      Array.from({ length: 4 }, () =>
        store.transaction((queries) => store.cases.change('cas_1', 0, change, queries)),
      ),
    )
    assert.deepEqual(done.filter(Boolean), [true])
    await file(store, draft({ id: 'cas_2', firstAtMs: 5, lastAtMs: 2_000 }))
    const found = await store.cases.byId('cas_1', ALL_APPS)
    assert.deepEqual(
      [found?.status, found?.note, found?.version, found?.changedBy, found?.changedAtMs],
      ['accepted', 'known', 1, 'key_1', 9],
    )
    assert.deepEqual([found?.firstAtMs, found?.lastAtMs, found?.events], [5, 2_000, 2])
  })

  test(`${name}: cases are filtered, and seen only with their app`, async (t) => {
    const store = await open(t, await freshUrl(t))
    await file(
      store,
      draft({ id: 'cas_1', identity: '1', app: 'shop', lastAtMs: 1_500 }),
      draft({ id: 'cas_2', identity: '2', app: null, reason: 'crawl_campaign', lastAtMs: 1_700 }),
      draft({ id: 'cas_3', identity: '3', app: 'blog', firstAtMs: 3_000, lastAtMs: 3_000 }),
    )
    const change = { status: 'false_alarm', note: null, feedback: 2, by: 'key_1', atMs: 9 } as const
    await store.transaction((queries) => store.cases.change('cas_3', 0, change, queries))
    assert.deepEqual(await listed(store), ['cas_3', 'cas_2', 'cas_1'])
    assert.deepEqual(await listed(store, { status: 'open' }), ['cas_2', 'cas_1'])
    assert.deepEqual(await listed(store, { reasons: ['crawl_campaign'] }), ['cas_2'])
    assert.deepEqual(await listed(store, { sinceMs: 1_600 }), ['cas_3', 'cas_2'])
    assert.deepEqual(await listed(store, { untilMs: 3_000 }), ['cas_2', 'cas_1'])
    assert.deepEqual(await listed(store, { scope: new Set(['shop', 'other']) }), ['cas_1'])
    assert.deepEqual(await listed(store, { scope: new Set() }), [])
    assert.equal(await store.cases.byId('cas_3', new Set(['shop'])), null)
    assert.equal(await store.cases.byId('cas_2', new Set(['shop'])), null)
    assert.equal((await store.cases.byId('cas_3', new Set(['blog'])))?.feedback, 2)
  })

  test(`${name}: old cases are forgotten, and those beyond the limit`, async (t) => {
    const store = await open(t, await freshUrl(t))
    const drafts = Array.from({ length: 9 }, (_, i) =>
      draft({ id: `cas_${i}`, identity: `${i}`, lastAtMs: 1_000 + i }),
    )
    await file(store, ...drafts)
    assert.equal(await store.cases.forget(1_003, 100, 2), 2)
    assert.equal(await store.cases.forget(1_003, 100, 2), 1)
    assert.equal(await store.cases.forget(1_003, 100, 2), 0)
    assert.equal(await store.cases.forget(0, 4, 100), 2)
    assert.deepEqual(await listed(store), ['cas_8', 'cas_7', 'cas_6', 'cas_5'])
  })

  test(`${name}: the network of an erased client is blanked, and its next threat is a new case`, async (t) => {
    const store = await open(t, await freshUrl(t))
    const network = { ja4: null, address: '192.0.2.0/24' }
    await file(store, draft(network), draft({ id: 'cas_2', identity: 'b', ...network, address: '::/48' }))
    const isWanted = (address: string) => address === network.address
    assert.equal(await store.recordErasure.cases(isWanted, true), 1)
    assert.equal((await store.cases.byId('cas_1', ALL_APPS))?.address, network.address)
    assert.equal(await store.recordErasure.cases(isWanted, false), 1)
    assert.equal((await store.cases.byId('cas_1', ALL_APPS))?.address, null)
    assert.equal((await file(store, draft({ id: 'cas_3', ...network }))).get('a'), 'cas_3')
  })
}

function draft(more: Partial<CaseDraft>): CaseDraft {
  return {
    ...{ id: 'cas_1', identity: 'a', app: 'shop', reason: 'blocked', severity: 'low' },
    ...{ campaign: null, agent: null, ja4: 't13d', address: null },
    ...{ firstAtMs: 1_000, lastAtMs: 1_000, events: 1, requests: 1, ...more },
  }
}

const ANY: CaseFilter = { scope: ALL_APPS, status: null, reasons: null, sinceMs: null, untilMs: null }
