import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import { openAt } from '../store/databases.ts'
import { addEvents, EventReader, newEvent, until } from './event-reader.ts'
import { TestManagement } from './management.ts'

test('500 who listen at once are all told, again and again, and memory stays flat', async (t) => {
  const manage = await TestManagement.start(t)
  const store = await openAt(t, manage.storeUrl)
  const keys = await Promise.all([1, 2, 3, 4, 5].map((n) => manage.key({ name: `k${n}`, scopes: ['read'] })))
  const rest: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = heapBytes()
    const readers = await Promise.all(
      Array.from({ length: 500 }, (_, at) =>
        EventReader.open(`${manage.url}/v1/events`, { key: keys[at % 5]! }),
      ),
    )
    await until(() => readers.every(({ events }) => events.length === 1))
    const each = (heapBytes() - before) / 500
    // Both ends of the connection are in this process.
    assert.ok(each < 100_000, `a stream takes ${Math.round(each)} bytes`)
    await addEvents(store, ...Array.from({ length: 20 }, (_, at) => newEvent(`evt_${round}_${at}`)))
    await until(() => readers.every(({ told }) => told.length === 20))
    for (const reader of readers) reader.leave()
    await until(() => readers.every(({ hasEnded }) => hasEnded))
    rest.push(heapBytes())
  }
  const grown = rest.at(-1)! - rest[0]!
  assert.ok(grown < 4_000_000, `after three rounds ${rest.map((bytes) => Math.round(bytes / 1_000))} kB`)
  assert.deepEqual(manage.failures, [])
})

test('who does not read is not written to, holds nobody up, and misses nothing', async (t) => {
  const manage = await TestManagement.start(t)
  const store = await openAt(t, manage.storeUrl)
  const ask = { key: manage.adminKey, lastEventId: '0' }
  const slow = await EventReader.open(`${manage.url}/v1/events`, ask)
  slow.pause()
  const quick = await EventReader.open(`${manage.url}/v1/events`, ask)
  const before = heapBytes()
  const data = JSON.stringify({ text: 'x'.repeat(20_000) })
  const atOnce = 500
  for (let round = 0; round < 5; round++) {
    const ids = Array.from({ length: atOnce }, (_, at) => `evt_${round * atOnce + at}`)
    await addEvents(store, ...ids.map((id) => newEvent(id, { data })))
    await until(() => quick.seen === (round + 1) * atOnce)
    quick.forget()
  }
  const grown = heapBytes() - before
  // All are 50 MB; the newest four are kept, as they are and as texts.
  assert.ok(grown < 20_000_000, `${grown} bytes more`)
  quick.leave()
  slow.resume()
  await until(() => slow.seen === 5 * atOnce)
  assert.deepEqual(
    slow.ids(),
    Array.from({ length: 5 * atOnce }, (_, at) => `evt_${at}`),
  )
  slow.leave()
})

function heapBytes(): number {
  collect()
  return process.memoryUsage().heapUsed
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
