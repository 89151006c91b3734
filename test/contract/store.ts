import assert from 'node:assert/strict'
import { sql } from 'kysely'
import { type Test, test } from 'tap'
import type { AppList, AppScope } from '../../src/apps/app-scope.ts'
import { principalOf } from '../../src/manage/auth/api-keys.ts'
import type { AuditEntry, AuditFilter } from '../../src/store/people/audit.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { entry, newKey } from '../store/samples.ts'

/** What any Store must do. `open` with the same URL is another process. */
export function storeContract(
  name: string,
  freshUrl: (t: Test) => Promise<string>,
  open: (t: Test, url: string) => Promise<Store>,
): void {
  const fresh = async (t: Test) => open(t, await freshUrl(t))

  test(`${name}: a key is found by its hash, and as it was made`, async (t) => {
    const { keys } = await fresh(t)
    const { hash, ...key } = newKey(1)
    await keys.add({ hash, ...key })
    const record = { ...key, revokedAtMs: null, lastUsedAtMs: null }
    assert.deepEqual(await keys.byHash(hash), record)
    assert.deepEqual(await keys.byId(key.id), record)
    assert.equal(await keys.byHash('another'), null)
    await assert.rejects(keys.add({ ...newKey(2), hash }), isNoFault)
  })

  test(`${name}: a key is revoked once, and listed no more`, async (t) => {
    const { keys } = await fresh(t)
    for (const number of [1, 2, 3]) await keys.add(newKey(number))
    const revoked = await Promise.all([5, 6, 7].map((atMs) => keys.revoke('key_2', atMs)))
    assert.deepEqual(revoked.filter(Boolean), [true])
    assert.equal(await keys.revoke('key_9', 5), false)
    const { items, total } = await keys.list({ page: 1, limit: 50 }, '*')
    assert.deepEqual([items.map(({ id }) => id), total], [['key_3', 'key_1'], 2])
    assert.notEqual((await keys.byHash('hash 2'))?.revokedAtMs, null)
  })

  test(`${name}: when a key was used last never goes back`, async (t) => {
    const { keys } = await fresh(t)
    await keys.add(newKey(1))
    await keys.add(newKey(2))
    await keys.used(new Map([['key_1', 2_000_000_000_002]]))
    const later = { key_9: 1, key_2: 7, key_1: 2_000_000_000_001 }
    await Promise.all([keys.used(new Map(Object.entries(later))), keys.used(new Map([['key_2', 5]]))])
    const used = async (id: string) => (await keys.byId(id))?.lastUsedAtMs
    assert.deepEqual([await used('key_1'), await used('key_2')], [2_000_000_000_002, 7])
  })

  test(`${name}: pages have all there is, once, newest first`, async (t) => {
    const { keys } = await fresh(t)
    // Many at the same moment: their order has to be one all the same.
    for (let number = 1; number <= 25; number++)
      await keys.add({ ...newKey(number), createdAtMs: number % 3 })
    const seen: string[] = []
    for (const [page, count] of [10, 10, 5, 0].entries()) {
      const { items, total } = await keys.list({ page: page + 1, limit: 10 }, '*')
      assert.deepEqual([items.length, total], [count, 25])
      seen.push(...items.map(({ id }) => id))
    }
    assert.equal(new Set(seen).size, 25)
    assert.deepEqual((await keys.list({ page: 1_000_000, limit: 200 }, '*')).items, [])
  })

  test(`${name}: all of a transaction, or nothing`, async (t) => {
    const store = await fresh(t)
    const failure = new Error('no')
    await assert.rejects(
      store.transaction(async (queries) => {
        await store.keys.add(newKey(1), queries)
        await store.audit.add(entry(1), queries)
        throw failure
      }),
      failure,
    )
    await assert.rejects(
      store.transaction(async (queries) => {
        await store.audit.add(entry(1), queries)
        await store.audit.add(entry(1), queries)
      }),
      isNoFault,
    )
    assert.deepEqual(
      [(await store.keys.list(FIRST, '*')).total, (await store.audit.list(FIRST)).total],
      [0, 0],
    )
    const made = await store.transaction(async (queries) => {
      await store.keys.add(newKey(1), queries)
      await store.audit.add(entry(1), queries)
      return 'made'
    })
    assert.equal(made, 'made')
    assert.deepEqual(
      [(await store.keys.list(FIRST, '*')).total, (await store.audit.list(FIRST)).items],
      [1, [entry(1)]],
    )
  })

  test(`${name}: a half-done change is invisible, here and in another process`, async (t) => {
    const url = await freshUrl(t)
    const [store, other] = [await open(t, url), await open(t, url)]
    const [isWritten, maySay] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const work = store.transaction(async (queries) => {
      await store.keys.add(newKey(1), queries)
      isWritten.resolve()
      await maySay.promise
    })
    await isWritten.promise
    const here = store.keys.byId('key_1') // waits, where there is one connection; and sees all of it then
    assert.equal(await other.keys.byId('key_1'), null)
    maySay.resolve()
    await work
    assert.ok((await here) === null || (await here)?.id === 'key_1')
    assert.equal((await other.keys.byId('key_1'))?.id, 'key_1')
  })

  test(`${name}: many who write at once, in several processes, all get their turn`, async (t) => {
    const url = await freshUrl(t)
    const stores = [await open(t, url), await open(t, url), await open(t, url)]
    const writes = stores.flatMap((store, process) =>
      Array.from({ length: 20 }, (_, number) =>
        store.transaction(async (queries) => {
          await store.keys.add(newKey(process * 100 + number), queries)
          await store.settings.put('count', number, null, 0, queries)
        }),
      ),
    )
    await Promise.all(writes)
    assert.equal((await stores[0]!.keys.list(FIRST, '*')).total, 60)
    assert.equal((await stores[1]!.settings.get('count'))?.version, 60)
  })

  test(`${name}: the audit log, newest first, by action, principal and time; forgotten in slices`, async (t) => {
    const store = await fresh(t)
    const { audit } = store
    const add = (more: Partial<AuditEntry>, number: number) =>
      store.transaction((queries) => audit.add({ ...entry(number), ...more }, queries))
    for (let number = 1; number <= 9; number++)
      await add(
        { action: `action${number % 2}`, principal: `key_${number % 3}`, atMs: Math.ceil(number / 2) },
        number,
      )
    const found = async (filter: Partial<AuditFilter>) => {
      const { items, total } = await audit.list(FIRST, {
        apps: '*',
        app: null,
        action: null,
        principal: null,
        sinceMs: null,
        ...filter,
      })
      assert.equal(items.length, total)
      return items.map(({ id }) => id.slice(4)).join('')
    }
    assert.equal(await found({}), '987654321')
    assert.equal(await found({ action: 'action1' }), '97531')
    assert.equal(await found({ action: 'action1', principal: 'key_0' }), '93')
    assert.equal(await found({ sinceMs: 4 }), '987')
    assert.equal(await found({ action: 'action' }), '')
    assert.deepEqual(
      [await audit.forget(4, 4), await audit.forget(4, 4), await audit.forget(4, 4)],
      [4, 2, 0],
    )
    assert.equal(await found({}), '987')
  })

  test(`${name}: the audit log of some apps has the entries whose apps are all among them`, async (t) => {
    const store = await fresh(t)
    const { audit } = store
    const lists: readonly AppList[] = ['*', [], ['shop'], ['blog'], ['shop', 'blog'], ['*']]
    for (const [number, apps] of lists.entries())
      await store.transaction((queries) => audit.add({ ...entry(number), apps }, queries))
    const found = async (apps: AppScope, app: string | null = null) => {
      const filter = { apps, app, action: null, principal: null, sinceMs: null }
      const { items, total } = await audit.list(FIRST, filter)
      assert.equal(items.length, total)
      for (const each of items) assert.deepEqual(each.apps, lists[Number(each.id.slice(4))])
      return items.map(({ id }) => id.slice(4)).join('')
    }
    assert.equal(await found('*'), '543210')
    assert.equal(await found(new Set(['shop'])), '2')
    assert.equal(await found(new Set(['shop', 'blog'])), '432')
    assert.equal(await found(new Set()), '')
    assert.equal(await found('*', 'shop'), '42')
    assert.equal(await found(new Set(['shop']), 'shop'), '2')
    assert.equal(await found(new Set(['shop']), 'blog'), '')
    assert.equal(await found('*', '*'), '5')
    assert.equal(await found('*', "'"), '')
  })

  test(`${name}: content that the program did not write is reported as damage and grants nothing`, async (t) => {
    const url = await freshUrl(t)
    const store = await open(t, url)
    await store.keys.add(newKey(1))
    await store.settings.put('x', 1, 0, 0)
    await store.transaction((queries) => store.audit.add(entry(1), queries))
    for (const text of ['["read"', '{"a":1}', '[1]', 'null', '']) {
      const list = text.startsWith('{') ? '[1]' : text
      await spoiled(t, url, `update api_keys set scopes = '${text}'`)
      await spoiled(t, url, `update audit set detail = '${list}'`)
      await assert.rejects(store.keys.byId('key_1'), { name: 'Fault', code: 'STORE_DAMAGED' })
      await assert.rejects(store.keys.list(FIRST, '*'), { name: 'Fault', code: 'STORE_DAMAGED' })
      await assert.rejects(store.audit.list(FIRST), { name: 'Fault', code: 'STORE_DAMAGED' })
    }
    await spoiled(t, url, "update settings set value = '{'")
    await assert.rejects(store.settings.get('x'), { name: 'Fault', code: 'STORE_DAMAGED' })
    await spoiled(t, url, `update api_keys set scopes = '["root","read"]', plan = 'gold'`)
    const { scopes, plan } = principalOf((await store.keys.byId('key_1'))!)
    assert.deepEqual([[...scopes], plan], [['read'], 'free'])
  })

  test(`${name}: a setting is as it was put, and counts its changes`, async (t) => {
    const { settings } = await fresh(t)
    assert.equal(await settings.get('policy'), null)
    for (const [version, value] of VALUES.entries()) {
      assert.deepEqual(await settings.put('policy', value, version, version), {
        kind: 'saved',
        version: version + 1,
      })
      assert.deepEqual(await settings.get('policy'), {
        name: 'policy',
        value,
        version: version + 1,
        changedAtMs: version,
      })
    }
    assert.deepEqual(await settings.put('another', null, null, 7), { kind: 'saved', version: 1 })
    assert.deepEqual(await settings.put('another', 2, null, 8), { kind: 'saved', version: 2 })
    assert.deepEqual(
      (await settings.all()).map(({ name, version }) => [name, version]),
      [
        ['another', 2],
        ['policy', VALUES.length],
      ],
    )
  })

  test(`${name}: of two who change a setting at once, one is told`, async (t) => {
    const url = await freshUrl(t)
    const [one, other] = [await open(t, url), await open(t, url)]
    assert.deepEqual(await one.settings.put('policy', 1, 3, 0), { kind: 'conflict', version: 0 })
    for (let version = 0; version < 10; version++) {
      const puts = [one, other, one].map((store, who) => store.settings.put('policy', who, version, 0))
      const kinds = (await Promise.all(puts)).map(({ kind }) => kind).sort()
      assert.deepEqual(kinds, ['conflict', 'conflict', 'saved'])
    }
    assert.deepEqual(await one.settings.put('policy', 1, 0, 0), { kind: 'conflict', version: 10 })
  })
}

/** Changes rows behind the back of the store. */
async function spoiled(t: Test, url: string, statement: string): Promise<void> {
  const { db, close } = await openDatabase(url, null, migrate)
  t.teardown(close)
  await sql.raw(statement).execute(db)
}

/** A broken constraint is a bug of ours, and none of the world's failures. */
function isNoFault(error: unknown): boolean {
  return error instanceof Error && error.name !== 'Fault'
}

const FIRST = { page: 1, limit: 50 }
const VALUES = [null, false, 0, '', 'ä\u0000', [1, { a: [] }], { rules: [{ 'x.y': 1e-7 }] }, 2 ** 53]
