import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import { test } from 'tap'
import { statistics } from '../../src/manage/api/stats.ts'
import { ManagementPlane } from '../../src/manage/management-plane.ts'
import { networkHash, takeIn } from '../../src/manage/intake/sighting-intake.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { addsUp } from '../contract/sightings.ts'
import { countedBatch } from '../contract/counted-batch.ts'
import { ingestInto, NOW_MS, seen, SILENT } from '../contract/seen.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { idleLinks } from './idle-links.ts'
import { SETTINGS } from './management.ts'

for (const [kind, isCounted] of KINDS.flatMap((kind) => [[kind, false] as const, [kind, true] as const])) {
  const what = isCounted ? 'with counts of proxies' : 'with Sightings'
  test(`${kind}: a process that is killed has lost nothing it has acknowledged, and nothing counts twice, ${what}`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const acknowledged = new Set<string>()
    for (const killedAfter of isCounted ? [3] : [1, 12]) {
      const child = spawn(
        process.execPath,
        [PROGRAM, url, String(COUNT), ...(isCounted ? ['counted'] : [])],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      const exit = once(child, 'exit')
      let lines = 0
      for await (const line of createInterface({ input: child.stdout })) {
        for (const id of line.split(' ')) acknowledged.add(id)
        if (++lines === killedAfter) child.kill('SIGKILL')
      }
      assert.deepEqual(await exit, [null, 'SIGKILL'])
      for (const id of acknowledged)
        assert.ok((await store.sightings.byId(id, '*')) !== null, `${id} is lost`)
      const stats = await statistics(store, '1h', '1m', NOW_MS)
      addsUp(stats)
      assert.ok(stats.detection.requests >= acknowledged.size && stats.detection.requests < COUNT)
    }
    // Everything is sent once more, as proxies that heard no answer do.
    const { ingest } = ingestInto(store)
    const batches = Array.from({ length: COUNT / 10 }, (_, at) => {
      const batch = Array.from({ length: 10 }, (_, number) => seen(at * 10 + number))
      return isCounted ? countedBatch(batch) : { sightings: batch, counts: [] }
    })
    await Promise.all(batches.map(({ sightings, counts }) => ingest.take(sightings, 'none', counts)))
    assert.equal((await statistics(store, '1h', '1m', NOW_MS)).detection.requests, COUNT)
    assert.equal(await store.sightings.rows(), COUNT)
  })
}

test('statistics add up while batches are stored', async (t) => {
  const store = await openAt(t, await freshUrl('sqlite', t))
  const { ingest } = ingestInto(store)
  let isOver = false
  const writing = (async () => {
    for (let at = 0; at < 3_000; at += 30)
      await ingest.take(Array.from({ length: 30 }, (_, number) => seen(at + number)))
    isOver = true
  })()
  let last = 0
  while (!isOver) {
    await turn()
    const stats = await statistics(store, '24h', '5m', NOW_MS)
    addsUp(stats)
    assert.ok(stats.detection.requests >= last && stats.detection.requests % 30 === 0)
    last = stats.detection.requests
  }
  await writing
})

test('whose address it is, is told apart by what one client is given', async () => {
  const same = (one: string, other: string) =>
    assert.equal(networkHash(one), networkHash(other), `${one} ${other}`)
  same('2001:db8::1', '2001:db8:0:0:ffff:ffff:ffff:ffff')
  same('::ffff:192.0.2.1', '192.0.2.1')
  const hashes = new Set<number>()
  for (let a = 0; a < 256; a++) for (let b = 0; b < 256; b++) hashes.add(networkHash(`10.0.${a}.${b}`))
  for (let a = 0; a < 256; a++) hashes.add(networkHash(`2001:db8:0:${a.toString(16)}::1`))
  assert.ok(hashes.size > 65_536 + 256 - 3, `${hashes.size}`)
})

test('a Sighting as a proxy makes it is kept as it is', async () => {
  const whole = seen(1, {
    ja4: 't13d1516h2_8daaf6152771_b186095e22b6',
    stable: 'gs1-t13d1516h2-8daaf6152771-b186095e22b6',
    ja4s: 't130200_1301_a56c5b993250',
    ja4h: 'ge11cr06enus_5774cb0d1aa9_000000000000_e3b0c44298fc',
    ja4x: 'a373a9f83c6b_2bab15409345_7bf9a7bf7029',
    userAgent: 'Mozilla/5.0 (ä; 😀)',
    ...{ agent: 'gptbot', verdict: 'agent', category: 'crawler', verified: 'web-bot-auth' },
  })
  assert.deepEqual(takeIn(whole, NOW_MS), whole)
})

test('no text of a Sighting has what PostgreSQL refuses, or is long', async () => {
  const hostile = `a\0\ud800${'x'.repeat(100_000)}`
  const whole = seen(1, { mcpMethod: 'tools/call', mcpTool: 'search' })
  const fields = Object.keys(whole) as (keyof Sighting)[]
  let taken = 0
  for (const field of fields) {
    for (const value of [hostile, [hostile]]) {
      const sighting = takeIn({ ...whole, [field]: value }, NOW_MS)
      if (typeof sighting === 'string') continue
      taken++
      const text = JSON.stringify(sighting[field]) ?? ''
      assert.ok(!/\\u0000|\\ud800/.test(text) && text.length < 5_000, field)
    }
  }
  assert.ok(taken > 15, `${taken}`)
})

const PROGRAM = new URL('ingest-process.ts', import.meta.url).pathname
const COUNT = 2_000

test('what comes before the database is open stays where it comes from', async (t) => {
  const folder = temporaryFolder(t)
  const told: Sighting[] = []
  const plane = (storeUrl: string) =>
    new ManagementPlane({ ...SETTINGS, dataFolder: folder, storeUrl }, SILENT, {
      ...idleLinks(folder),
      stored: (batch) => told.push(...batch),
      policy: { kind: 'file', inForce: () => assert.fail('nobody asks') },
    })
  const unable = plane(`sqlite:${folder}`)
  await unable.start({ host: '127.0.0.1', port: 1 })
  await assert.rejects(unable.take([seen(1)]), { code: 'STORE_UNAVAILABLE' })
  await unable.close()

  const storeUrl = `sqlite:${folder}/gatehouse.db`
  const able = plane(storeUrl)
  await assert.rejects(able.take([seen(1)]), { code: 'STORE_UNAVAILABLE' })
  await able.start({ host: '127.0.0.1', port: 1 })
  await able.take([seen(1), seen(2)])
  await able.take([seen(2), seen(3)])
  assert.deepEqual(told, [seen(1), seen(2), seen(3)])
  const last = able.take([seen(4)])
  await Promise.all([last, able.close()])
  await assert.rejects(able.take([seen(5)]), { code: 'STORE_UNAVAILABLE' })
  const store = await openAt(t, storeUrl)
  assert.deepEqual(await store.sightings.byId(seen(4).id, '*'), seen(4))
})

test('a disk that is full loses nothing, and counts nothing twice', async (t) => {
  const store = await openAt(t, await freshUrl('sqlite', t))
  const { ingest, metrics } = ingestInto(store)
  const room = (pages: number) =>
    store.transaction((queries) => sql`pragma max_page_count = ${sql.raw(String(pages))}`.execute(queries))
  const batch = (from: number) => Array.from({ length: 200 }, (_, number) => seen(from + number))
  await ingest.take(batch(0))
  await room(1) // it is as many as there are
  for (let from = 0; from < 1_000; from += 200) await ingest.take(batch(from)).catch(full)
  assert.ok(metrics.counts.failures > 0)
  await room(10_000)
  for (let from = 0; from < 1_000; from += 200) await ingest.take(batch(from))
  const stats = await statistics(store, '1h', '1m', NOW_MS)
  addsUp(stats)
  assert.equal(stats.detection.requests, 1_000)
  assert.equal(metrics.counts.stored, 1_000)
})

function full(error: { readonly code?: unknown }): void {
  assert.equal(error.code, 'STORE_FULL')
}

test('more than can wait is not taken', async (t) => {
  const store = await openAt(t, await freshUrl('sqlite', t))
  const { ingest, metrics } = ingestInto(store)
  const nothing = Array.from({ length: 60_000 }, () => null)
  const taken = ingest.take(nothing)
  await assert.rejects(ingest.take(nothing), { code: 'STORE_LOCKED' })
  await taken
  await ingest.close()
  assert.ok(metrics.counts.refused < 70_000)
})

for (const kind of KINDS) {
  test(`${kind}: under pressure all are counted, and each app has an equal part of what is stored`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const { ingest, metrics } = ingestInto(store)
    const batches = Array.from({ length: 4 }, (_, batch) =>
      Array.from({ length: 1_000 }, (_, each) =>
        seen(batch * 1_000 + each, { app: each < 990 ? 'noisy' : 'quiet' }),
      ),
    )
    await Promise.all(batches.map((batch) => ingest.take(batch, 'high')))
    await Promise.all(batches.map((batch) => ingest.take(batch))) // sent again: nothing counts twice
    const of = async (app: string) => {
      const stats = await statistics(store, '1h', '1m', NOW_MS, new Set([app]))
      return stats.detection.requests
    }
    assert.deepEqual([await of('quiet'), await of('noisy')], [40, 3_960])
    assert.equal((await store.sightings.before(null, 10_000, new Set(['quiet']))).sightings.length, 40)
    const kept = (await store.sightings.before(null, 10_000, '*')).sightings.length
    assert.ok(kept >= 512 && kept < 2_000, `${kept}`)
    const [ofQuiet, ofNoisy] = await Promise.all(
      ['quiet', 'noisy'].map(async (app) => {
        const { sightings } = await store.sightings.before(null, 10_000, new Set([app]))
        return sightings.reduce((sum, { sampled }) => sum + 1 / (sampled ?? 1), 0)
      }),
    )
    assert.deepEqual([ofQuiet, Math.round(ofNoisy!)], [40, 3_960], 'what is kept stands for all')
    assert.equal(metrics.counts.stored, kept)
    assert.equal(metrics.counts.duplicates, 4_000)
    const unkept = { labels: { app: 'noisy' }, value: 4_000 - kept }
    assert.deepEqual(metrics.onlyCounted.samples.slice(1), [unkept])
    assert.equal(metrics.lost.total, 0)
  })

  test(`${kind}: under extreme pressure an app with few requests loses none`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const { ingest, metrics } = ingestInto(store)
    const batches = Array.from({ length: 6 }, (_, batch) =>
      Array.from({ length: 1_000 }, (_, each) =>
        seen(batch * 1_000 + each, { app: each < 990 ? 'noisy' : 'quiet' }),
      ),
    )
    await Promise.all(batches.map((batch) => ingest.take([...batch, null, { app: {} }], 'extreme')))
    const stats = await statistics(store, '1h', '1m', NOW_MS)
    addsUp(stats)
    const [, lost] = metrics.lost.samples
    assert.equal(lost?.labels['app'], 'noisy')
    assert.equal(stats.detection.requests, 6_000 - lost!.value)
    assert.equal((await store.sightings.before(null, 10_000, new Set(['quiet']))).sightings.length, 60)
  })
}
