import assert from 'node:assert/strict'
import { test } from 'tap'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import { UNTRIED, type WebhookRecord } from '../../src/store/events/webhooks.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** What keeping webhooks and their secrets has to do in either database. */
export function webhooksContract(kind: DatabaseKind): void {
  test(`${kind}: a webhook comes back as it was given, and changes only where it is told to`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await add(store, webhook('whk_a', 1))
    assert.deepEqual(await store.webhooks.byId('whk_a'), webhook('whk_a', 1))
    assert.equal(await store.webhooks.byId('whk_b'), null)
    // Two who change different things at once: neither takes the other's back.
    const changing = [{ isEnabled: false }, { description: null }, { events: ['new_agent'] as string[] }]
    for (const changes of changing)
      assert.equal(
        await store.transaction((queries) => store.webhooks.update('whk_a', changes, 7, queries)),
        true,
      )
    assert.deepEqual(await store.webhooks.byId('whk_a'), {
      ...webhook('whk_a', 1),
      ...{ isEnabled: false, description: null, events: ['new_agent'], updatedAtMs: 7 },
    })
    const other = await store.transaction((queries) => store.webhooks.update('whk_b', {}, 7, queries))
    assert.equal(other, false)
  })

  test(`${kind}: webhooks that are added at once by several processes stay within a limit`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url), await openAt(t, url)]
    const added = await Promise.all(
      stores.map((store, i) =>
        store.transaction(async (queries) => {
          if ((await store.webhooks.count(queries)) >= 1) return false
          const secret = { id: `whs_${i}`, sealed: 'sealed', createdAtMs: i }
          await store.webhooks.add(webhook(`whk_${i}`, i), secret, queries)
          return true
        }),
      ),
    )
    assert.equal(added.filter(Boolean).length, 1)
  })

  test(`${kind}: webhooks are listed newest first, and go with their secrets`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    for (const [id, atMs] of [
      ['whk_a', 1],
      ['whk_c', 3],
      ['whk_b', 3],
    ] as const)
      await add(store, webhook(id, atMs))
    const page = await store.webhooks.list({ page: 1, limit: 2 }, '*')
    assert.deepEqual([page.items.map(({ id }) => id), page.total], [['whk_c', 'whk_b'], 3])
    const remove = (id: string) => store.transaction((queries) => store.webhooks.remove(id, queries))
    assert.deepEqual([await remove('whk_b'), await remove('whk_b')], [true, false])
    const secrets = await store.webhooks.secrets(['whk_a', 'whk_b'], 0)
    assert.deepEqual(
      secrets.map(({ webhookId }) => webhookId),
      ['whk_a'],
    )
    assert.deepEqual(await store.webhooks.secrets([], 0), [])
    assert.equal(await store.transaction((queries) => store.webhooks.count(queries)), 2)
  })

  test(`${kind}: old secrets sign until they expire, the newest one for ever`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    await add(store, webhook('whk_a', 1))
    await add(store, webhook('whk_b', 1))
    const rotate = (id: string, atMs: number) =>
      store.transaction((queries) => {
        const secret = { id: `whs_${atMs}`, sealed: `sealed ${atMs}`, createdAtMs: atMs }
        return store.webhooks.rotate(id, secret, atMs + 100, queries)
      })
    const signing = async (nowMs: number) =>
      (await store.webhooks.secrets(['whk_a'], nowMs)).map(({ id }) => id)
    assert.equal(await rotate('whk_a', 10), 2)
    assert.equal(await rotate('whk_a', 20), 3)
    assert.deepEqual(await signing(20), ['whs_20', 'whs_10', 'whs_whk_a'])
    assert.deepEqual(await signing(109), ['whs_20', 'whs_10', 'whs_whk_a'])
    assert.deepEqual(await signing(110), ['whs_20', 'whs_10'])
    assert.deepEqual(await signing(120), ['whs_20'])
    assert.deepEqual(await signing(9_000_000_000_000), ['whs_20'])
    assert.equal(await rotate('whk_a', 115), 3, 'that of the beginning is forgotten')
    assert.equal(await rotate('whk_c', 30), 0)
    assert.equal((await store.webhooks.secrets(['whk_b'], 0)).length, 1)
  })

  test(`${kind}: of those that rotate at once one secret stays`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    await add(store, webhook('whk_a', 1))
    // Two connections to SQLite in one process would wait for each other.
    const stores = kind === 'sqlite' ? [store, store] : [store, await openAt(t, url)]
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => {
        const each = stores[index % 2]!
        return each.transaction((queries) => {
          const secret = { id: `whs_${index}`, sealed: 'x', createdAtMs: 5 }
          return each.webhooks.rotate('whk_a', secret, 105, queries)
        })
      }),
    )
    const secrets = await store.webhooks.secrets(['whk_a'], 5)
    assert.equal(secrets.length, 11)
    assert.deepEqual(
      secrets.filter(({ expiresAtMs }) => expiresAtMs === null),
      [secrets[0]],
    )
  })
}

function add(store: Store, record: WebhookRecord): Promise<void> {
  const secret = { id: `whs_${record.id}`, sealed: 'sealed', createdAtMs: record.createdAtMs }
  return store.transaction((queries) => store.webhooks.add(record, secret, queries))
}

function webhook(id: string, atMs: number): WebhookRecord {
  return {
    ...{ id, url: 'https://hooks.example/ä?b=1', events: ['new_agent', 'threat_detected'] },
    ...{ description: 'for "us"', isEnabled: true, createdAtMs: atMs, updatedAtMs: atMs },
    ...{ apps: '*', filters: { agents: ['gptbot'], min_confidence: 0.5 }, health: UNTRIED },
  }
}
