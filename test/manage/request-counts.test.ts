import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { sql } from 'kysely'
import { test } from 'tap'
import { statistics } from '../../src/manage/api/stats.ts'
import type { ProxyBus } from '../../src/plane/bus.ts'
import { readRequestCounts, type RequestCounts } from '../../src/plane/counts/request-counts.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { Recorder } from '../../src/proxy/worker/recorder.ts'
import type { Store } from '../../src/store/store.ts'
import { countedBatch } from '../contract/counted-batch.ts'
import { HOUR_MS, idOf, ingestInto, NOW_MS, seen } from '../contract/seen.ts'
import { addsUp } from '../contract/sightings.ts'
import { KINDS, openFresh } from '../store/databases.ts'

const APPS = ['default', 'shop', 'blog']
const requests = fc.record({
  app: fc.constantFrom(...APPS),
  verdict: fc.constantFrom('agent', 'automation', 'human', 'unknown'),
  agent: fc.constantFrom(null, 'gptbot', 'claudebot'),
  category: fc.constantFrom(null, 'crawler', 'nonsense'),
  purposes: fc.constantFrom([], ['search', 'training'], ['nonsense', 'more']),
  software: fc.constantFrom(null, 'curl', 'chrome'),
  confidence: fc.double({ min: 0, max: 1, noNaN: true }),
  verified: fc.constantFrom(null, 'ip-range', 'nonsense'),
  done: fc.constantFrom('tag', 'block', 'pass', 'rate_limit', 'nonsense'),
  seenAtMs: fc.integer({ min: NOW_MS - 23 * HOUR_MS, max: NOW_MS }),
})
const outcomes = fc.array(fc.constantFrom('taken', 'refused', 'answer lost', 'again later'), {
  maxLength: 20,
})
type Outcome = 'taken' | 'refused' | 'answer lost' | 'again later'

for (const kind of KINDS) {
  test(`${kind}: what proxies count is what their Sightings would be counted as`, async (t) => {
    const [told, counted] = await Promise.all([openFresh(kind, t), openFresh(kind, t)])
    const property = fc.asyncProperty(
      fc.array(requests, { minLength: 1, maxLength: 60 }),
      fc.record({ outcomes, room: fc.integer({ min: 1, max: 80 }), share: fc.constantFrom(1, 0.3, 0) }),
      async (made, { outcomes, room, share }) => {
        const all = requestsOf(made)
        await ingestInto(told).ingest.take(all.map((each) => ({ ...each })))
        const { ingest, metrics } = ingestInto(counted)
        const line = new Line(outcomes, (sightings, counts) => ingest.take(sightings, 'none', counts))
        await recorded(all, line, { room, countsFrom: 0, share })
        await line.late()
        await areEqual(told, counted)
        assert.equal(metrics.counts.stored, line.sent.size, 'each Sighting is stored once')
      },
    )
    await fc.assert(property, { numRuns: kind === 'sqlite' ? 30 : 6, interruptAfterTimeLimit: 10_000 })
  })

  test(`${kind}: in a rolling upgrade, either the proxy or the manager counts a request`, async (t) => {
    const [told, mixed] = await Promise.all([openFresh(kind, t), openFresh(kind, t)])
    const property = fc.asyncProperty(
      fc.array(requests, { minLength: 1, maxLength: 60 }),
      fc.record({ outcomes, countsFrom: fc.integer({ min: 0, max: 60 }), isOld: fc.array(fc.boolean()) }),
      async (made, { outcomes, countsFrom, isOld }) => {
        const all = requestsOf(made)
        await ingestInto(told).ingest.take(all.map((each) => ({ ...each })))
        const [old, current] = [earlierManagerWith(mixed), managerWith(mixed)]
        let batches = 0
        const manager: Manager = (...batch) => (isOld[batches++] === true ? old : current)(...batch)
        // A batch is sent again to the manager that had it: an earlier one does not know that its counts came.
        const line = new Line(
          outcomes.map((each) => (each === 'taken' ? each : 'refused')),
          manager,
        )
        await recorded(all, line, { room: 80, countsFrom, share: 1 })
        await areEqual(told, mixed)
      },
    )
    await fc.assert(property, { numRuns: kind === 'sqlite' ? 30 : 6, interruptAfterTimeLimit: 10_000 })
  })

  test(`${kind}: counts are taken under any pressure, and damaged ones count nothing`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest, metrics } = ingestInto(store)
    const all = Array.from({ length: 3_000 }, (_, number) => seen(number))
    const { sightings: batch, counts } = countedBatch(all)
    await ingest.take(batch, 'extreme', counts)
    await ingest.take(batch, 'extreme', counts)
    const total = async () => (await statistics(store, '24h', '1h', NOW_MS)).detection.requests
    assert.equal(await total(), 3_000)
    assert.equal(metrics.lost.total, 0)
    const { id } = seen(5_000)
    const bad = [null, 7, {}, { id, counts: 7 }, { id, counts: [null] }, { id: 'x', counts: [] }]
    const minute = { app: 'shop', atMs: NOW_MS, counts: { total: { all: [1, 0, 0] } } }
    const odd = [{ app: 'No slug' }, { atMs: -1 }, { atMs: 'x' }].map((each) => ({ ...minute, ...each }))
    const before = metrics.counts.refused
    await ingest.take([], 'none', [...bad, ...odd.map((each) => ({ id, counts: [each] }))])
    assert.equal(metrics.counts.refused - before, bad.length + odd.length)
    assert.equal(await total(), 3_000)
  })
}

for (const kind of KINDS)
  test(`${kind}: sampled Sightings say of which share they are, and leave one note for each batch`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest, metrics } = ingestInto(store)
    const all = Array.from({ length: 400 }, (_, number) => seen(number))
    const { counts } = countedBatch(all)
    const sampled = all
      .filter((_, at) => at % 10 === 0)
      .map((each, at) => ({ ...each, sampled: at % 2 === 0 ? 1 : 0.1 }))
    await ingest.take(sampled, 'none', counts)
    await Promise.all([ingest.take(sampled, 'none', counts), ingest.take(sampled, 'none', counts)])
    assert.deepEqual([metrics.counts.stored, metrics.counts.duplicates], [40, 80])
    assert.equal((await statistics(store, '24h', '1h', NOW_MS)).detection.requests, 400)
    assert.equal((await store.sightings.byId(sampled[1]!.id, '*'))?.sampled, 0.1)
    await store.transaction(async (queries) => {
      const { rows } = await sql<{ ranges: string }>`select ranges from sightings_taken`.execute(queries)
      assert.deepEqual(
        rows.map(({ ranges }) => JSON.parse(ranges).length),
        [2],
      )
    })
    // Without their counts, they are recognized by their own ids.
    const alone = seen(1_000, { sampled: 0.1 })
    await ingest.take([alone, alone])
    await ingest.take([alone])
    assert.deepEqual([metrics.counts.stored, metrics.counts.duplicates], [41, 82])
  })

test('a proxy cannot make up keys, nor count in the future', async () => {
  const { id } = seen(1)
  const one = [1, 1, 0]
  const counts = {
    ...{ total: { x: one }, verdict: { made: one, agent: one }, action: { made: one } },
    ...{ agent: { gptbot: one, '../x': one }, tool: { 'a b': one }, category: { '': one } },
    ...{ purpose: { made: [-1, 0, 0] }, confidence: { '7': one }, verified: { y: one }, made: { up: one } },
  }
  const read = readRequestCounts(
    { id, counts: [{ app: 'shop', atMs: NOW_MS + 9 * HOUR_MS, counts }] },
    NOW_MS,
  )
  assert.ok(typeof read !== 'string')
  const rows = [...read.tally.rows(60_000, 0)].map(({ atMs, dimension, key }) => {
    assert.equal(atMs, NOW_MS - (NOW_MS % 60_000))
    return `${dimension} ${key}`
  })
  assert.deepEqual(rows, [
    ...['total all', 'verdict other', 'verdict agent', 'action other', 'confidence other'],
    ...['verified other', 'agent gptbot', 'agent other', 'tool other', 'category other'],
  ])
})

type Manager = (sightings: readonly Sighting[], counts: readonly RequestCounts[]) => Promise<void>

/** Takes batches as they come over a wire, with any fate. */
class Line implements Pick<ProxyBus, 'batchMax' | 'sendSightings'> {
  readonly batchMax = 7
  readonly #outcomes: Outcome[]
  readonly #manager: Manager
  readonly #again: (() => Promise<void>)[] = []
  #sending: Promise<void> = Promise.resolve()
  /** The ids of the Sightings that have arrived. */
  readonly sent = new Set<string>()

  constructor(outcomes: readonly Outcome[], manager: Manager) {
    this.#outcomes = [...outcomes]
    this.#manager = manager
  }

  async sendSightings(batch: readonly Sighting[], counts: readonly RequestCounts[]): Promise<void> {
    const sending = this.#send(batch, counts)
    this.#sending = sending.catch(() => undefined)
    return sending
  }

  async #send(batch: readonly Sighting[], counts: readonly RequestCounts[]): Promise<void> {
    const outcome = this.#outcomes.shift() ?? 'taken'
    if (outcome === 'refused') throw new Error('refused')
    const sent = JSON.parse(JSON.stringify([batch, counts])) as Parameters<Manager>
    await this.#manager(...sent)
    for (const { id } of batch) this.sent.add(id)
    if (outcome === 'again later') this.#again.push(() => this.#manager(...sent))
    if (outcome === 'answer lost') throw new Error('no answer')
  }

  /** What comes a second time. */
  async late(): Promise<void> {
    for (const take of this.#again) await take()
  }

  /** From now on, all is taken. */
  async settle(): Promise<void> {
    this.#outcomes.length = 0
    await this.#sending
  }

  onSnapshot(): void {}
  close(): void {}
}

interface Recording {
  readonly room: number
  /** The number of requests before the Snapshot that says that the manager takes counts. */
  readonly countsFrom: number
  /** Of the Sightings that are sent. */
  readonly share: number
}

async function recorded(all: readonly Sighting[], line: Line, { room, countsFrom, share }: Recording) {
  const shares = { default: share, agent: null, automation: null, human: null, unknown: null, blocked: 1 }
  const sampling = share === 1 ? null : { shares, perSecond: null }
  const recorder = new Recorder(line, nextId, { waitingMax: room, beatMs: 1, sampling })
  for (const [at, each] of all.entries()) {
    if (at === countsFrom) recorder.takesCounts = true
    recorder.record({ ...each })
    if (at % 11 === 0) await turn()
  }
  await line.settle()
  await recorder.close(60_000)
  assert.equal(recorder.waitingCounts, 0)
}

function managerWith(store: Store): Manager {
  const { ingest } = ingestInto(store)
  return (sightings, counts) => ingest.take(sightings, 'none', counts)
}

/** A version that knows no counts: to it, they are Sightings that it cannot read. */
function earlierManagerWith(store: Store): Manager {
  const { ingest } = ingestInto(store)
  return (sightings, counts) => ingest.take([...sightings.map(withoutShare), ...counts])
}

function withoutShare({ sampled, ...rest }: Sighting): Partial<Sighting> {
  return rest
}

let runs = 0
let ids = 0
const nextId = () => idOf(1_000, ids++, 'c'.repeat(12))

/** With ids that no run before has had. */
function requestsOf(made: readonly Partial<Sighting>[]): readonly Sighting[] {
  runs++
  return made.map((changes, number) => seen(0, { ...changes, id: idOf(runs * 1000, number) }))
}

async function areEqual(told: Store, counted: Store): Promise<void> {
  for (const apps of ['*' as const, ...APPS.map((app) => new Set([app]))]) {
    const [one, other] = await Promise.all(
      [told, counted].map((store) => statistics(store, '24h', '5m', NOW_MS, apps)),
    )
    addsUp(other!)
    assert.deepEqual([other!.detection, other!.series], [one!.detection, one!.series])
  }
}
