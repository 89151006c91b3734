import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { type EventFilter, isWanted, severitiesFrom } from '../../src/manage/events/event-filter.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { EventTail } from '../../src/manage/events/event-tail.ts'
import { eventTexts } from '../../src/manage/events/event-texts.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import type { Store } from '../../src/store/store.ts'
import { SEVERITIES } from '../../src/store/engine/tables/events.ts'
import { KINDS, openFresh } from '../store/databases.ts'
import { addEvents, newEvent, until } from './event-reader.ts'

for (const kind of KINDS) {
  test(`${kind}: wherever the connection breaks, nothing is missed, and nothing comes twice behind the last id`, async (t) => {
    const store = await openFresh(kind, t)
    const { tail, add } = followed(store, t)
    let number = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat({ max: 900 }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 8 }),
        async (cuts, batches) => {
          const listener = new Listener(tail, (await store.events.kept()).last)
          const events = batches.map((size) =>
            Array.from({ length: size }, () => newEvent(`evt_${number++}`)),
          )
          const adding = (async () => {
            for (const some of events) await add(...some)
          })()
          const isOver = () => listener.heard.length >= events.flat().length
          for (const cut of cuts) await listener.hear(isOver, cut)
          await listener.hear(isOver)
          await adding
          assert.deepEqual(listener.heard, ids(events.flat()))
        },
      ),
      { numRuns: 25 },
    )
  })

  test(`${kind}: who has been away for long reads on from the database, the others from memory`, async (t) => {
    const store = await openFresh(kind, t)
    const { tail, add, asked } = followed(store, t)
    await add(...many(1_500))
    const late = new Listener(tail, 0)
    await late.hear(() => late.heard.length === 1_500)
    assert.deepEqual(late.heard, ids(many(1_500)))
    const { last } = await store.events.kept()
    const readers = Array.from({ length: 500 }, () => new Listener(tail, last))
    const hearing = readers.map((reader) => reader.hear(() => reader.heard.length === 60))
    await until(() => tail.followers === 500)
    const before = asked()
    for (let round = 0; round < 6; round++) await add(...many(10, round))
    await Promise.all(hearing)
    const all = Array.from({ length: 6 }, (_, round) => ids(many(10, round))).flat()
    for (const reader of readers) assert.deepEqual(reader.heard, all)
    assert.ok(asked() - before < 50, `the database was asked ${asked() - before} times`)
    await until(() => tail.followers === 0)
  })
}

test('while nobody listens the database is not asked, and who comes then misses nothing', async (t) => {
  const store = await openFresh('sqlite', t)
  const { tail, add, asked } = followed(store, t, 1)
  const one = new Listener(tail, 0)
  await add(newEvent('a'))
  await one.hear(() => one.heard.length === 1)
  await until(async () => {
    const before = asked()
    await new Promise((resolve) => setTimeout(resolve, 20))
    return asked() === before
  })
  await add(newEvent('b'), newEvent('c', { type: 'test' }))
  await one.hear(() => one.heard.length === 2)
  const behind = new Listener(tail, (await store.events.kept()).last)
  const hearing = behind.hear(() => behind.heard.length === 1)
  await add(newEvent('d', { type: 'test' }), newEvent('e'))
  await hearing
  assert.deepEqual([one.heard, behind.heard], [['a', 'b'], ['e']])
})

test('while the database is away nothing is told, and then all', async (t) => {
  const store = await openFresh('sqlite', t)
  let isAway = true
  const events = {
    last: () => (isAway ? Promise.reject(new Error('away')) : store.events.last()),
    after: (number: number, limit: number) =>
      isAway ? Promise.reject(new Error('away')) : store.events.after(number, limit),
  }
  const tail = new EventTail({ events } as unknown as Store, new EventLog(store), 5)
  keepAlive(t)
  t.teardown(() => tail.close())
  await addEvents(store, newEvent('a'), newEvent('b'))
  const listener = new Listener(tail, 0)
  const hearing = listener.hear(() => listener.heard.length === 3)
  await new Promise((resolve) => setTimeout(resolve, 30))
  isAway = false
  await until(() => listener.heard.length === 2)
  isAway = true
  await addEvents(store, newEvent('c'))
  await new Promise((resolve) => setTimeout(resolve, 30))
  isAway = false
  await hearing
  assert.deepEqual(listener.heard, ['a', 'b', 'c'])
})

test('a restored database ends what goes by the numbers of the one before', async (t) => {
  const store = await openFresh('sqlite', t)
  const { tail } = followed(store, t)
  const listener = new Listener(tail, 7)
  const hearing = listener.hear(() => false)
  await until(() => tail.followers === 1)
  tail.restored()
  await hearing
  assert.equal(tail.followers, 0)
})

test('what is wanted is the same for who listens and who looks back', async (t) => {
  const store = await openFresh('sqlite', t)
  const optional = <Value>(...values: readonly Value[]) => fc.constantFrom(null, ...values)
  const event = fc.record({
    type: fc.constantFrom('new_agent', 'threat_detected', 'new_signature'),
    category: optional('crawler', 'llm-sdk'),
    agent: optional('gptbot', 'curl'),
    severity: optional(...SEVERITIES),
    confidence: optional(0, 0.25, 0.5, 1),
    app: optional('shop', 'blog'),
  })
  const events = fc
    .sample(event, 120)
    .map((each, at) => newEvent(`e${at}`, { ...each, atMs: at } as NewEvent))
  await addEvents(store, ...events)
  const filter: fc.Arbitrary<EventFilter> = fc.record({
    types: fc.subarray(['new_agent', 'threat_detected'] as const),
    categories: fc.subarray(['crawler', 'llm-sdk']),
    agents: fc.subarray(['gptbot', 'curl']),
    apps: fc.subarray(['shop', 'blog']),
    minSeverity: optional(...SEVERITIES),
    minConfidence: optional(0, 0.5, 1),
  })
  await fc.assert(
    fc.asyncProperty(filter, async (wanted) => {
      const severities = wanted.minSeverity === null ? null : severitiesFrom(wanted.minSeverity)
      const rest = { sinceMs: null, untilMs: null, caseId: null }
      const part = { page: 1, limit: 200 }
      const listed = await store.events.list(part, { ...wanted, severities, ...rest }, '*')
      const told = events.filter((each) => isWanted(each, wanted)).toReversed()
      assert.deepEqual(ids(listed.items), ids(told))
    }),
  )
})

/** Somebody who listens, again and again, and keeps whole events only. */
class Listener {
  readonly heard: string[] = []
  readonly #tail: EventTail
  #last: number

  constructor(tail: EventTail, position: number) {
    this.#tail = tail
    this.#last = position
  }

  /** Until `isOver`, or the connection breaks behind so many letters: of an event that has come in part nothing is left. */
  async hear(isOver: () => boolean, lettersMax = Number.POSITIVE_INFINITY): Promise<void> {
    if (isOver()) return
    const stop = new AbortController()
    let left = lettersMax
    let rest = ''
    const view = { filter: EVERYTHING, apps: '*', sight: 'full' } as const
    const texts = eventTexts({ position: this.#last, reset: null }, view, this.#tail, stop.signal)
    for await (const piece of texts) {
      const blocks = `${rest}${piece.slice(0, left)}`.split('\n\n')
      left -= piece.length
      rest = blocks.pop()!
      for (const block of blocks) this.#read(block)
      if (left <= 0 || isOver()) return stop.abort()
    }
  }

  #read(block: string): void {
    const [, id] = /^id: (\d+)$/m.exec(block) ?? []
    const [, type] = /^event: (.*)$/m.exec(block) ?? []
    const [, data] = /^data: (.*)$/m.exec(block) ?? []
    assert.ok(Number(id) >= this.#last, `${id} came behind ${this.#last}`)
    this.#last = Number(id)
    if (type !== 'position') this.heard.push((JSON.parse(data!) as { id: string }).id)
  }
}

function followed(store: Store, t: { teardown(work: () => void): void }, pollMs = 5_000) {
  let asked = 0
  const counting = {
    last: () => ++asked && store.events.last(),
    after: (number: number, limit: number) => ++asked && store.events.after(number, limit),
  }
  const log = new EventLog(store)
  const tail = new EventTail({ events: counting } as unknown as Store, log, pollMs)
  keepAlive(t)
  t.teardown(() => tail.close())
  const add = async (...events: readonly NewEvent[]) => {
    await addEvents(store, ...events)
    log.added()
  }
  return { tail, add, asked: () => asked }
}

/** What listens does not. */
function keepAlive(t: { teardown(work: () => void): void }): void {
  const alive = setInterval(() => undefined, 1_000)
  t.teardown(() => clearInterval(alive))
}

function many(count: number, from: number | string = 'm'): readonly NewEvent[] {
  return Array.from({ length: count }, (_, at) => newEvent(`evt_${from}_${at}`))
}

function ids(events: readonly { readonly id: string }[]): readonly string[] {
  return events.map(({ id }) => id)
}

const EVERYTHING: EventFilter = {
  types: [],
  categories: [],
  agents: [],
  apps: [],
  minSeverity: null,
  minConfidence: null,
}
