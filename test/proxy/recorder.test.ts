import assert from 'node:assert/strict'
import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import type { ProxyBus } from '../../src/plane/bus.ts'
import type { RequestCounts } from '../../src/plane/counts/request-counts.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { Recorder } from '../../src/proxy/worker/recorder.ts'
import { sighting } from '../contract/bus.ts'
import { idOf } from '../contract/seen.ts'

const NEVER = 1_000_000
let ids = 0
const nextId = () => idOf(1_000, ids++)

class FakeBus implements Pick<ProxyBus, 'batchMax' | 'sendSightings'> {
  readonly batchMax = 512
  readonly batches: (readonly Sighting[])[] = []
  readonly counts: (readonly RequestCounts[])[] = []
  readonly taken: number[] = []
  answer: 'take' | 'refuse' | 'hold' = 'take'
  #held = Promise.withResolvers<void>()
  #came = Promise.withResolvers<void>()

  onSnapshot(): void {}

  async sendSightings(batch: readonly Sighting[], counts: readonly RequestCounts[]): Promise<void> {
    this.batches.push(batch)
    this.counts.push(counts)
    this.#came.resolve()
    this.#came = Promise.withResolvers()
    if (this.answer === 'hold') await this.#held.promise
    if (this.answer === 'refuse') throw new Error('refused')
    this.taken.push(...batch.map(({ snapshot }) => snapshot))
  }

  close(): void {}

  /** The next one that comes. */
  batch(): Promise<void> {
    return this.#came.promise
  }

  release(): void {
    this.#held.resolve()
  }

  numbers(): number[] {
    return this.batches.flat().map(({ snapshot }) => snapshot)
  }
}

test('Sightings leave on the beat, in order, and not before', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  const recorder = new Recorder(bus, nextId, { beatMs: 5 })
  for (let number = 0; number < 100; number++) recorder.record(sighting(number))
  assert.equal(bus.batches.length, 0)
  await bus.batch()
  assert.deepEqual(bus.numbers(), range(100))
  await recorder.close(NEVER)
  assert.deepEqual(recorder.counts, { recorded: 100, delivered: 100, dropped: 0, sampledOut: 0, counted: 0 })
})

test('a full batch does not wait for the beat', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  const recorder = new Recorder(bus, nextId, { beatMs: NEVER })
  for (let number = 0; number < 2000; number++) recorder.record(sighting(number))
  while (recorder.counts.delivered < 1536) await turn()
  assert.ok(bus.batches.every(({ length }) => length <= 512))
  await recorder.close(NEVER)
  assert.deepEqual(bus.numbers(), range(2000))
  assert.deepEqual(recorder.counts, {
    recorded: 2000,
    delivered: 2000,
    dropped: 0,
    sampledOut: 0,
    counted: 0,
  })
})

test('what is refused waits and is sent again; what finds no room is dropped and counted', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  bus.answer = 'refuse'
  const recorder = new Recorder(bus, nextId, { waitingMax: 10, beatMs: 2 })
  for (let number = 0; number < 15; number++) recorder.record(sighting(number))
  await bus.batch()
  await bus.batch()
  bus.answer = 'take'
  const before = bus.batches.length
  await bus.batch()
  assert.deepEqual(
    bus.batches[before]!.map(({ snapshot }) => snapshot),
    range(10),
  )
  while (recorder.counts.delivered < 10) await turn()
  // The ring goes round.
  for (let number = 100; number < 107; number++) recorder.record(sighting(number))
  await recorder.close(NEVER)
  assert.deepEqual(
    bus.batches.at(-1)!.map(({ snapshot }) => snapshot),
    range(107).slice(100),
  )
  assert.deepEqual(recorder.counts, { recorded: 22, delivered: 17, dropped: 5, sampledOut: 0, counted: 0 })
})

test('one batch is under way at a time', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  bus.answer = 'hold'
  const recorder = new Recorder(bus, nextId, { beatMs: 1 })
  recorder.record(sighting(1))
  await bus.batch()
  for (let number = 0; number < 1000; number++) recorder.record(sighting(number))
  for (let i = 0; i < 20; i++) await turn()
  assert.equal(bus.batches.length, 1)
  bus.answer = 'take'
  bus.release()
  await recorder.close(NEVER)
  assert.equal(recorder.counts.delivered, 1001)
})

test('close ends in time, and says what was lost', async (t) => {
  stayAwake(t)
  for (const answer of ['refuse', 'hold'] as const) {
    const bus = new FakeBus()
    bus.answer = answer
    const recorder = new Recorder(bus, nextId, { beatMs: NEVER })
    for (let number = 0; number < 5; number++) recorder.record(sighting(number))
    await recorder.close(answer === 'hold' ? 5 : NEVER)
    recorder.record(sighting(6))
    assert.deepEqual(recorder.counts, { recorded: 6, delivered: 0, dropped: 6, sampledOut: 0, counted: 0 })
    bus.release()
    await turn()
    assert.deepEqual(
      recorder.counts,
      { recorded: 6, delivered: 0, dropped: 6, sampledOut: 0, counted: 0 },
      'each is counted once',
    )
    await recorder.close(NEVER)
  }
})

test('any mix of records, refusals and rounds loses nothing that is not counted', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  const recorder = new Recorder(bus, nextId, { waitingMax: 37, beatMs: 1 })
  const accepted: number[] = []
  const chance = (number: number) => (Math.imul(number + 7, 2654435761) >>> 0) / 2 ** 32
  for (let number = 0; number < 3000; number++) {
    if (number % 20 === 0) bus.answer = chance(number) < 0.4 ? 'refuse' : 'take'
    const before = recorder.counts.dropped
    recorder.record(sighting(number))
    if (recorder.counts.dropped === before) accepted.push(number)
    if (chance(-number) < 0.1) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  bus.answer = 'take'
  await recorder.close(NEVER)
  assert.deepEqual(bus.taken, accepted)
  assert.ok(recorder.counts.dropped > 0 && accepted.length > 100)
  assert.equal(recorder.counts.recorded, recorder.counts.delivered + recorder.counts.dropped)
})

test('each request is counted once: with its Sighting, or with the next batch if it is lost', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  bus.answer = 'refuse'
  const recorder = new Recorder(bus, nextId, { waitingMax: 10, beatMs: 2 })
  recorder.takesCounts = true
  for (let number = 0; number < 15; number++) recorder.record(sighting(number))
  assert.equal(recorder.waitingCounts, 5)
  await bus.batch()
  await bus.batch()
  const [first, again] = bus.counts
  assert.deepEqual(again, first, 'a batch that may have arrived stays as it is')
  assert.deepEqual(first!.map(requestsIn), [15])
  assert.ok(bus.batches[0]!.every(({ sampled }) => sampled === 1))
  assert.equal(recorder.waitingCounts, 15)
  bus.answer = 'take'
  recorder.record(sighting(20))
  while (recorder.counts.counted < 15) await turn()
  await recorder.close(NEVER)
  assert.deepEqual(bus.counts.at(-1)!.map(requestsIn), [1])
  assert.deepEqual([recorder.counts.counted, recorder.waitingCounts], [16, 0])
})

test('nothing is counted for a management plane that takes no counts', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  const recorder = new Recorder(bus, nextId, { waitingMax: 10, beatMs: NEVER })
  for (let number = 0; number < 15; number++) recorder.record(sighting(number))
  recorder.takesCounts = true
  recorder.record(sighting(15))
  await recorder.close(NEVER)
  assert.deepEqual(bus.counts.flat().map(requestsIn), [11], 'those that are dropped before are lost')
})

test('counts that wait for long take a limited amount of memory', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  bus.answer = 'refuse'
  const recorder = new Recorder(bus, nextId, { waitingMax: 1, beatMs: NEVER })
  recorder.takesCounts = true
  for (let number = 0; number < 20_000; number++) {
    const app = `app-${number % 2_000}`
    recorder.record({ ...sighting(number), app, seenAtMs: number * 60_000 })
  }
  bus.answer = 'take'
  await recorder.close(NEVER)
  const counts = bus.counts.flat()
  assert.equal(
    counts.map(requestsIn).reduce((all, each) => all + each),
    20_000,
  )
  assert.ok(JSON.stringify(counts).length < 1_000_000)
})

test('requests without a Sighting are counted, and for a management plane that takes no counts all have one', async (t) => {
  stayAwake(t)
  for (const takesCounts of [true, false]) {
    const bus = new FakeBus()
    const shares = { default: 0, agent: null, automation: null, human: null, unknown: null, blocked: 1 }
    const recorder = new Recorder(bus, nextId, { beatMs: 1, sampling: { shares, perSecond: null } })
    recorder.takesCounts = takesCounts
    for (let number = 0; number < 3_000; number++) {
      recorder.record({ ...sighting(number), forged: [], done: number % 100 === 0 ? 'block' : 'pass' })
      if (number % 50 === 0) await turn()
    }
    await recorder.close(NEVER)
    const { delivered, sampledOut, counted } = recorder.counts
    assert.equal(delivered + sampledOut, 3_000)
    // The blocked ones, and the first one of the tool, which is one of them.
    assert.deepEqual([delivered, counted], takesCounts ? [30, 3_000] : [3_000, 0])
    const requests = bus.counts.flat().map(requestsIn)
    assert.equal(
      requests.reduce((all, each) => all + each, 0),
      counted,
    )
  }
})

test('a limit chooses from all waiting Sightings', async (t) => {
  stayAwake(t)
  const bus = new FakeBus()
  const shares = { default: 1, agent: null, automation: null, human: null, unknown: null, blocked: 1 }
  const recorder = new Recorder(bus, nextId, { beatMs: NEVER, sampling: { shares, perSecond: 1_000 } })
  recorder.takesCounts = true
  for (let number = 0; number < 8_000; number++) recorder.record(sighting(number))
  await recorder.close(NEVER)
  const { delivered, sampledOut, counted } = recorder.counts
  assert.deepEqual([delivered + sampledOut, counted], [8_000, 8_000])
  assert.ok(delivered < 8_000, `${delivered}`)
})

function requestsIn({ counts }: RequestCounts): number {
  return counts.reduce((all, { counts: { total } }) => all + total!['all']![0], 0)
}

/** The recorder's own beat keeps no process alive. */
function stayAwake(t: Test): void {
  const timer = setInterval(() => undefined, NEVER)
  t.teardown(() => clearInterval(timer))
}

function range(end: number): number[] {
  return Array.from({ length: end }, (_, number) => number)
}
