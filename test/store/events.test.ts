import assert from 'node:assert/strict'
import { test } from 'tap'
import type { EventListFilter, NewEvent } from '../../src/store/events/events.ts'
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
    assert.deepEqual(await store.events.byId('b', '*'), all[1])
    assert.equal(await store.events.byId('d', '*'), null)
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
    assert.deepEqual([await store.events.forget(2000, 9, 1), await store.events.forget(9999, 9, 10)], [1, 2])
    await add(store, event('e', 3000))
    assert.ok((await store.events.last()) > last)
  })

  test(`${kind}: events are forgotten from the first on, and how far is known for good`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    assert.deepEqual(await store.events.kept(), { forgotten: 0, last: 0 })
    assert.equal(await store.events.forget(9999, 1, 10), 0)
    await add(store, event('a', 1), event('b', 2), event('c', 9), event('d', 3), event('e', 4))
    const [a, b, c, d, e] = (await store.events.after(0, 10)).map(({ number }) => number)
    assert.equal(await store.events.forget(5, 100, 10), 2) // the third is not old yet
    assert.deepEqual(await store.events.kept(), { forgotten: b, last: e })
    assert.equal(await store.events.forget(0, 2, 10), 1) // two are kept
    assert.deepEqual(await store.events.kept(), { forgotten: c, last: e })
    assert.deepEqual(
      [await store.events.before(4), await store.events.before(0), await store.events.before(5)],
      [e! - 1, d! - 1, null],
    )
    assert.equal(await store.events.forget(99, 100, 10), 2)
    assert.deepEqual(await store.events.kept(), { forgotten: e, last: e })
    if (kind === 'sqlite') await store.close()
    const again = kind === 'sqlite' ? await openAt(t, url) : store
    assert.deepEqual(await again.events.kept(), { forgotten: e, last: e })
    await add(again, event('f', 1))
    assert.ok((await again.events.last()) > e! && a! < b!)
  })

  test(`${kind}: the list has what fits, newest first, in pages and behind a place`, async (t) => {
    const store = await openFresh(kind, t)
    const all = [
      ...severities.map((severity, at) => ({ ...event(`s${at}`, at), severity, confidence: at / 10 })),
      { ...event('bot', 20), ...BOT, type: 'threat_detected' as const },
      { ...event('test', 30), type: 'test' as const },
    ]
    await add(store, ...all)
    const listed = async (filter: Partial<EventListFilter>) => {
      const { items, total } = await store.events.list({ page: 1, limit: 99 }, { ...ALL, ...filter }, '*')
      assert.equal(items.length, total)
      return ids(items)
    }
    assert.deepEqual(await listed({}), ['bot', 's4', 's3', 's2', 's1', 's0'])
    assert.deepEqual(await listed({ types: ['threat_detected', 'new_agent'] }), ['bot'])
    assert.deepEqual(await listed({ agents: ['gptbot', 'x'], categories: ['crawler'] }), ['bot'])
    assert.deepEqual(await listed({ apps: ['shop', 'blog'] }), ['bot'])
    assert.deepEqual(await listed({ apps: ['blog'] }), [])
    assert.deepEqual(await listed({ severities: ['high', 'critical'] }), ['bot', 's4', 's3', 's0'])
    assert.deepEqual(await listed({ minConfidence: 0.3, severities: ['low', 'high'] }), ['bot', 's3'])
    assert.deepEqual(await listed({ sinceMs: 2, untilMs: 4 }), ['s3', 's2'])
    const first = await store.events.list({ after: null, limit: 4 }, ALL, '*')
    const second = await store.events.list({ after: first.next, limit: 4 }, ALL, '*')
    assert.deepEqual([ids(first.items), ids(second.items)].flat(), ['bot', 's4', 's3', 's2', 's1', 's0'])
    assert.equal(second.next, null)
  })

  test(`${kind}: one alone reads on, from where it was, and another when its time is up`, async (t) => {
    const { eventPositions } = await openFresh(kind, t)
    const [one, other] = [
      { name: 's', holder: 'one' },
      { name: 's', holder: 'other' },
    ] as const
    assert.equal(await eventPositions.claim(one, { nowMs: 0, untilMs: 10 }, 7), 7)
    assert.equal(await eventPositions.claim(other, { nowMs: 9, untilMs: 20 }, 1), null)
    assert.equal(await eventPositions.claim({ ...other, name: 't' }, { nowMs: 9, untilMs: 20 }, 1), 1)
    assert.deepEqual([await eventPositions.move(one, 8), await eventPositions.move(other, 5)], [true, false])
    assert.equal(await eventPositions.claim(one, { nowMs: 9, untilMs: 15 }, 1), 8)
    assert.equal(await eventPositions.claim(other, { nowMs: 15, untilMs: 30 }, 1), 8)
    assert.equal(await eventPositions.move(one, 9), false)
    await eventPositions.leave(one) // it is not its any more
    assert.equal(await eventPositions.claim(one, { nowMs: 16, untilMs: 40 }, 1), null)
    await eventPositions.leave(other)
    assert.equal(await eventPositions.claim(one, { nowMs: 16, untilMs: 40 }, 1), 8)
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
  const about = { agent: null, category: null, severity: null, confidence: null, app: null }
  return { id, type: 'new_signature', atMs, subject: 'ja4 x', ...about, data: '{"a":1}' }
}

const BOT = { agent: 'gptbot', category: 'crawler', app: 'shop' }
const severities = [null, 'low', 'medium', 'high', 'critical'] as const
const ALL: EventListFilter = {
  ...{ types: [], categories: [], agents: [], apps: [], severities: null },
  ...{ minConfidence: null, sinceMs: null, untilMs: null, caseId: null },
}
