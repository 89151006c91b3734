import assert from 'node:assert/strict'
import { test } from 'tap'
import type { NewEvent } from '../../src/store/events.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, openAt, openFresh } from './databases.ts'

for (const kind of KINDS) {
  test(`${kind}: events are read in the order in which they were added, and as they were`, async (t) => {
    const store = await openFresh(kind, t)
    assert.equal(await store.events.last(), 0)
    assert.deepEqual(await store.events.after(0, 10), [])
    const full = {
      ...event('a', 1000),
      ...{ agent: 'gptbot', category: 'crawler', severity: 'high' as const, confidence: 0.9 },
    }
    await add(store, full, event('b', 900))
    await add(store, event('c', 2000))
    const all = await store.events.after(0, 10)
    assert.deepEqual(ids(all), ['a', 'b', 'c'])
    assert.deepEqual({ ...all[0], number: undefined }, { ...full, number: undefined })
    assert.deepEqual(ids(await store.events.after(all[0]!.number, 1)), ['b'])
    assert.equal(await store.events.last(), all[2]!.number)
    assert.deepEqual(await store.events.byId('b'), all[1])
    assert.equal(await store.events.byId('d'), null)
  })

  test(`${kind}: what one alone is told stands in no list`, async (t) => {
    const store = await openFresh(kind, t)
    await add(store, { ...event('a', 1000), type: 'test' }, event('b', 1000))
    assert.deepEqual(ids(await store.events.after(0, 10)), ['b'])
  })

  test(`${kind}: events that are not committed were never there; old ones are forgotten, and numbers rise on`, async (t) => {
    const store = await openFresh(kind, t)
    const failed = store.transaction(async (queries) => {
      await store.events.add([event('a', 1000)], queries)
      throw new Error('no')
    })
    await assert.rejects(failed, /no/)
    assert.deepEqual(await store.events.after(0, 10), [])
    await add(store, event('b', 1000), event('c', 1001), event('d', 2000))
    const last = await store.events.last()
    assert.deepEqual([await store.events.forget(2000, 1), await store.events.forget(9999, 10)], [1, 2])
    await add(store, event('e', 3000))
    assert.ok((await store.events.last()) > last)
  })

  test(`${kind}: who reads on from what can be seen misses nothing, however many add at once`, async (t) => {
    const url = await freshUrl(kind, t)
    const reader = await openAt(t, url)
    // One process alone opens SQLite's file.
    const another = () => (kind === 'sqlite' ? reader : openAt(t, url))
    const stores = await Promise.all([1, 2, 3].map(another))
    const read: string[] = []
    let isOver = false
    const reading = (async () => {
      for (let from = 0; ; ) {
        const isLast = isOver
        const some = await reader.events.after(from, 1000)
        read.push(...ids(some))
        from = some.at(-1)?.number ?? from
        if (isLast) return
      }
    })()
    const adding = stores.map(async (store, writer) => {
      for (let round = 0; round < 25; round++) {
        // A number that is drawn early and committed late is what a reader would miss.
        await store.transaction(async (queries) => {
          await store.events.add([event(`${writer} ${round} a`, 1)], queries)
          await store.events.add([event(`${writer} ${round} b`, 1)], queries)
        })
      }
    })
    await Promise.all(adding)
    isOver = true
    await reading
    assert.equal(read.length, 150)
    assert.equal(new Set(read).size, 150)
  })
}

async function add(store: Store, ...events: readonly NewEvent[]): Promise<void> {
  await store.transaction((queries) => store.events.add(events, queries))
}

function ids(events: readonly { readonly id: string }[]): readonly string[] {
  return events.map(({ id }) => id)
}

function event(id: string, atMs: number): NewEvent {
  const about = { agent: null, category: null, severity: null, confidence: null }
  return { id, type: 'new_signature', atMs, subject: 'ja4 x', ...about, data: '{"a":1}' }
}
