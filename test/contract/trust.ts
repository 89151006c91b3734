import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { TrustRecord } from '../../src/store/people/trust.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping trust has to do in either database. */
export function trustContract(kind: DatabaseKind): void {
  test(`${kind}: trust is read as it was stored, by its id and by its subject`, async (t) => {
    const { trust } = await openAt(t, await freshUrl(kind, t))
    const agent = record('trs_a', 1)
    const key: TrustRecord = {
      ...record('trs_b', 2),
      ...{ kind: 'key', subject: agent.subject, name: null, document: { kty: 'OKP', ä: '"' } },
    }
    assert.deepEqual([await trust.add(agent), await trust.add(key)], [true, true])
    assert.deepEqual([await trust.byId('trs_a'), await trust.byId('trs_b')], [agent, key])
    assert.deepEqual(
      [await trust.of('agent', agent.subject), await trust.of('key', agent.subject)],
      [agent, key],
    )
    for (const other of [agent.subject.toUpperCase(), `${agent.subject}/`, agent.subject.slice(1), ''])
      assert.equal(await trust.of('agent', other), null)
    assert.equal(await trust.byId('trs_c'), null)
    const { items, total } = await trust.list({ page: 1, limit: 1 }, '*')
    assert.deepEqual([items, total], [[key], 2])
    assert.deepEqual([await trust.remove('trs_a'), await trust.remove('trs_a')], [true, false])
    assert.deepEqual(
      [await trust.of('agent', agent.subject), await trust.of('key', key.subject)],
      [null, key],
    )
  })

  test(`${kind}: entries that are added at once by several processes stay within a limit`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url), await openAt(t, url)]
    const added = await Promise.all(
      stores.map((store, i) =>
        store.transaction(async (queries) => {
          if ((await store.trust.count(queries)) >= 1) return false
          await store.trust.add({ ...record(`trs_${i}`, i), subject: `https://agent.example/${i}` }, queries)
          return true
        }),
      ),
    )
    assert.equal(added.filter(Boolean).length, 1)
  })

  test(`${kind}: of those who trust the same agent at once, one does`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    // Two connections to SQLite in one process would wait for each other.
    const stores = kind === 'sqlite' ? [store, store] : [store, await openAt(t, url)]
    const added = await Promise.all(
      Array.from({ length: 10 }, (_, index) => {
        const each = stores[index % 2]!
        return each.transaction((queries) => each.trust.add(record(`trs_${index}`, index), queries))
      }),
    )
    assert.deepEqual(added.filter(Boolean), [true])
    assert.equal(await store.transaction((queries) => store.trust.count(queries)), 1)
  })
}

function record(id: string, createdAtMs: number): TrustRecord {
  return {
    ...{ id, kind: 'agent', subject: 'https://agent.example/ä?b=1', name: 'for "us"' },
    ...{ apps: '*', scopes: ['read', 'detect'], plan: 'standard', document: null, createdAtMs },
  }
}
