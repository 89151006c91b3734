import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { statistics } from '../../src/manage/api/stats.ts'
import {
  type KeeperSettings,
  SightingKeeper,
  type ObservedEvents,
} from '../../src/manage/intake/sighting-keeper.ts'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { RollupTally } from '../../src/plane/counts/rollup-tally.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { AgentsSeenStore } from '../../src/store/catalogue/agents-seen.ts'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import { FingerprintsSeenStore, FingerprintTally } from '../../src/store/catalogue/fingerprints-seen.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt, openFresh, type Owner } from '../store/databases.ts'
import {
  DAY_MS,
  HOUR_MS,
  idOf,
  ingestInto,
  MINUTE_MS,
  NOW_MS,
  RETENTION,
  SILENT,
  START_MS,
  seen,
} from './seen.ts'

/** What becomes of Sightings, in any store. */
export function sightingsContract(kind: DatabaseKind): void {
  test(`${kind}: a Sighting is counted once, however often and in whatever parts it comes`, async (t) => {
    const url = await freshUrl(kind, t)
    const one = ingestInto(await openAt(t, url))
    const other = ingestInto(await openAt(t, url))
    const all = Array.from({ length: 300 }, (_, number) => seen(number, number % 2 ? AGENT : {}))
    await Promise.all([
      one.ingest.take(all.slice(0, 200)),
      one.ingest.take(all.slice(100, 300).toReversed()),
      other.ingest.take(all),
      other.ingest.take([...all.slice(50, 60), ...all.slice(50, 60)]),
    ])
    await one.ingest.take(all)
    const store = await openAt(t, url)
    assert.equal(await requests(store), 300)
    assert.equal(one.metrics.counts.stored + other.metrics.counts.stored, 300)
    assert.equal(await store.sightings.rows(), 300)
    assert.deepEqual(await store.sightings.byId(all[7]!.id, '*'), all[7])
    assert.equal(await store.sightings.byId(idOf(1, 1), '*'), null)
    const [ja4] = await store.fingerprintsSeen.counts(0)
    assert.deepEqual(ja4, { type: 'ja4', count: 1, unnamed: 1 })
  })

  test(`${kind}: totals are what was sent, for any parts, order and repetition`, async (t) => {
    const store = await openFresh(kind, t)
    let second = 0
    const kinds = fc.record({
      verdict: fc.constantFrom('agent', 'automation', 'human', 'unknown'),
      agent: fc.constantFrom(null, 'gptbot', 'claudebot'),
      category: fc.constantFrom(null, 'crawler', 'llm-sdk', 'nonsense'),
      purposes: fc.constantFrom([], ['search'], ['search', 'training'], ['nonsense', 'more']),
      confidence: fc.double({ min: 0, max: 1, noNaN: true }),
      verified: fc.constantFrom(null, 'ip-range', 'nonsense'),
      action: fc.constantFrom('tag', 'block', 'pass', 'nonsense'),
      done: fc.constantFrom('tag', 'block', 'pass', 'rate_limit', 'nonsense'),
      seenAtMs: fc.integer({ min: NOW_MS - 24 * HOUR_MS, max: NOW_MS }),
    })
    const parts = fc.array(fc.array(fc.nat(), { maxLength: 30 }), { maxLength: 8 })
    const property = fc.asyncProperty(
      fc.array(kinds, { minLength: 1, maxLength: 40 }),
      parts,
      async (made, chosen) => {
        second++ // ids that no run before has had
        const all = made.map((changes, number) => seen(0, { ...changes, id: idOf(second * 1000, number) }))
        const before = await statistics(store, '7d', '1h', NOW_MS)
        const { ingest } = ingestInto(store)
        const batches = [...chosen.map((part) => part.map((at) => all[at % all.length]!)), all]
        await Promise.all(batches.map((batch) => ingest.take(batch)))
        await ingest.take(batches[0]!)
        const after = await statistics(store, '7d', '1h', NOW_MS)
        const grown = (of: (stats: typeof after) => number) => of(after) - of(before)
        const sent = (which: (each: Sighting) => boolean) => all.filter(which).length
        assert.equal(
          grown(({ detection }) => detection.requests),
          all.length,
        )
        assert.equal(
          grown(({ detection }) => detection.agents),
          sent(({ verdict }) => verdict === 'agent'),
        )
        assert.equal(
          grown(({ detection }) => detection.blocked),
          sent(({ done }) => done === 'block'),
        )
        assert.equal(
          grown(({ detection }) => detection.verified),
          sent(({ verified }) => verified !== null),
        )
        assert.equal(
          grown(({ detection }) => detection.by_purpose['training']!),
          sent(({ verdict, purposes }) => verdict === 'agent' && purposes.includes('training')),
        )
        addsUp(after)
      },
    )
    await fc.assert(property, { numRuns: kind === 'sqlite' ? 40 : 10, interruptAfterTimeLimit: 10_000 })
  })

  test(`${kind}: invalid Sightings are left out, and the others are stored`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest, metrics } = ingestInto(store)
    const bad: unknown[] = [
      ...[null, 1, 'text', [], {}, { id: {} }],
      ...[seen(1, { id: 'x' as never }), seen(1, { id: `${seen(1).id}0` as never })],
      ...[
        seen(1, { seenAtMs: Number.NaN }),
        seen(1, { confidence: 2 }),
        seen(1, { agent: "'; drop table rollups" }),
      ],
      Object.assign(Object.create({ id: seen(1).id }), { ...seen(1), id: undefined }),
    ]
    const odd: Sighting[] = [
      seen(2, {
        path: `/${'ä\0'.repeat(50_000)}`,
        userAgent: '\ud800',
        host: '\0',
        rule: '\udc00'.repeat(999),
      }),
      seen(3, { seenAtMs: 1e300 }),
      seen(4, { ja4: '\0'.repeat(9), ja4h: 'x'.repeat(1e6), ja4s: 'ü', ja4x: '' }),
      seen(5, { address: 'no address', forged: Array(9_999).fill('x'.repeat(9_999)), snapshot: 1e308 }),
      seen(6, {
        category: 'c'.repeat(1e5),
        purposes: ['p'.repeat(1e5), '\0', ...Array(9_999).fill('search')],
        verified: 'v',
        done: 'd',
        action: '\0',
        verdict: 'agent',
        agent: null,
      }),
      seen(7, { seenAtMs: 0 }),
    ]
    await ingest.take([...bad, ...odd, seen(8)])
    await ingest.take([...bad])
    for (const batch of [null, 'text', { length: 1 }, undefined]) await ingest.take(batch)
    assert.deepEqual(
      [metrics.counts.stored, metrics.counts.refused, metrics.counts.failures],
      [odd.length + 1, 2 * bad.length + 4, 0],
    )
    const stats = await statistics(store, '1h', '1m', NOW_MS)
    assert.equal(stats.detection.requests, odd.length) // the one of 1970 is long over
    assert.equal(stats.detection.by_action['other'], 1)
    assert.equal(stats.detection.by_category['other'], 1)
    assert.deepEqual([stats.detection.by_purpose['other'], stats.detection.by_purpose['search']], [1, 1])
    assert.equal(stats.fingerprints?.by_type.ja4h, 0)
    addsUp(stats)
    const kept = await store.sightings.byId(odd[0]!.id, '*')
    assert.equal(kept?.path.length, 1024)
    assert.deepEqual([kept.path.includes('\0'), kept.userAgent, kept.host], [false, '\ufffd', '\ufffd'])
    assert.ok(JSON.stringify(await store.sightings.byId(odd[3]!.id, '*')).length < 20_000)
  })

  test(`${kind}: one that cannot be stored holds up no other, and a database that cannot does`, async (t) => {
    const store = await openFresh(kind, t)
    let fault: Error | null = null
    const poison = seen(3).id
    const { ingest, metrics } = ingestInto(store, {
      counters: [
        async (batch) => {
          if (fault !== null) throw fault
          if (batch.some(({ id }) => id === poison)) throw new TypeError('a bug')
        },
      ],
    })
    await ingest.take(Array.from({ length: 10 }, (_, number) => seen(number)))
    assert.deepEqual([metrics.counts.stored, metrics.counts.refused], [9, 1])
    fault = new Fault('STORE_FULL', 'there is no room')
    await assert.rejects(ingest.take([seen(20)]), { code: 'STORE_FULL' })
    assert.equal(await requests(store), 9)
    // An unexpected error of the database loses nothing.
    fault = Object.assign(new Error('?'), { code: kind === 'sqlite' ? 'SQLITE_PROTOCOL' : 'XX000' })
    await assert.rejects(ingest.take([seen(20), null, seen(21)]), /\?/)
    fault = null
    await ingest.take([seen(20), seen(21)])
    assert.equal(await requests(store), 11)
    assert.deepEqual([metrics.counts.stored, metrics.counts.refused], [11, 1])
    await ingest.close()
    await assert.rejects(ingest.take([seen(22)]), { code: 'STORE_UNAVAILABLE' })
  })

  test(`${kind}: who counts along counts each once, and hears of the first of each agent`, async (t) => {
    const store = await openFresh(kind, t)
    const counted: string[] = []
    const firsts: (string | null)[] = []
    const { ingest } = ingestInto(store, {
      counters: [async (batch) => void counted.push(...batch.map(({ id }) => id))],
      events: async (_batch, _queries, first) => {
        const afterCommit = () => void firsts.push(...first.map(({ agent, id }) => `${agent} ${id}`))
        return { count: 0, afterCommit }
      },
    })
    const all = [seen(0), seen(2, AGENT), seen(1, AGENT), seen(3, { ...AGENT, agent: 'ccbot' })]
    await ingest.take(all)
    await ingest.take([...all, seen(4, AGENT)])
    assert.deepEqual(
      counted,
      [...all, seen(4)].map(({ id }) => id),
    )
    assert.deepEqual(firsts, [`gptbot ${seen(1).id}`, `ccbot ${seen(3).id}`])
    const { agents } = await statistics(store, '1h', '1m', NOW_MS)
    assert.deepEqual(agents, { total: 0, seen: 2, new: 2 })
  })

  test(`${kind}: a window ends now, begins with a bucket, and has nothing from beside it`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest } = ingestInto(store)
    const midnightMs = Date.UTC(2026, 10, 20)
    const edges = [
      ...[midnightMs - 29 * DAY_MS, midnightMs - 29 * DAY_MS - 1, midnightMs - 6 * DAY_MS - 1],
      ...[NOW_MS, NOW_MS + HOUR_MS, NOW_MS - HOUR_MS, Date.UTC(2026, 10, 20, 14, 43), midnightMs],
      Date.UTC(2026, 10, 20, 14, 43) - 1,
    ]
    await ingest.take(edges.map((seenAtMs, number) => seen(number, { seenAtMs })))
    const counts = async (...[window, bucket]: Asked) => {
      const stats = await statistics(store, window, bucket, NOW_MS)
      addsUp(stats)
      return [
        stats.detection.requests,
        stats.series.length,
        stats.series[0]!.at,
        stats.series.at(-1)!.requests,
      ]
    }
    // One comes from a clock that is an hour ahead: it was seen when it came.
    assert.deepEqual(await counts('1h', '1m'), [3, 60, '2026-11-20T14:43:00.000Z', 2])
    assert.deepEqual(await counts('1h', '15m'), [2, 4, '2026-11-20T14:45:00.000Z', 2])
    assert.deepEqual(await counts('24h', '1h'), [6, 24, '2026-11-19T16:00:00.000Z', 2])
    assert.deepEqual(await counts('24h', '5m'), [6, 288, '2026-11-19T15:45:00.000Z', 2])
    assert.deepEqual(await counts('7d', '1d'), [6, 7, '2026-11-14T00:00:00.000Z', 6])
    assert.deepEqual(await counts('7d', '6h'), [7, 28, '2026-11-13T18:00:00.000Z', 5])
    assert.deepEqual(await counts('30d', '1d'), [8, 30, '2026-10-22T00:00:00.000Z', 6])
    assert.deepEqual(await counts('30d', '1h'), [9, 720, '2026-10-21T16:00:00.000Z', 2])
  })

  test(`${kind}: a rule on trial blocks no request`, async (t) => {
    const store = await openFresh(kind, t)
    await ingestInto(store).ingest.take([
      seen(1, { action: 'block', dryRun: true, done: 'tag' }),
      seen(2, { action: 'tag', dryRun: true, done: 'block' }),
      seen(3, { action: 'block', dryRun: true, done: 'pass' }),
      seen(4, { action: 'block', done: 'block' }),
    ])
    const stats = await statistics(store, '1h', '1m', NOW_MS)
    addsUp(stats)
    assert.deepEqual([stats.detection.blocked, stats.detection.tagged], [2, 1])
  })

  test(`${kind}: what is old goes, and what was counted of it stays as long as its counts do`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest } = ingestInto(store)
    const ages = [0, 2 * HOUR_MS, 3 * DAY_MS, 20 * DAY_MS, 100 * DAY_MS]
    await ingest.take(ages.map((age, number) => seen(number, { seenAtMs: NOW_MS - age })))
    const before = await statistics(store, '30d', '1d', NOW_MS)
    const keep = keeper(store, { sightingsMs: HOUR_MS })
    await keep.forget(NOW_MS)
    assert.deepEqual(await statistics(store, '30d', '1d', NOW_MS), before)
    assert.equal(before.detection.requests, 4)
    assert.equal((await store.sightings.before(null, 10)).sightings.length, 1)
    await keep.forget(NOW_MS + 400 * DAY_MS)
    assert.equal((await store.sightings.before(null, 10)).sightings.length, 0)
    const days = await store.rollups.read(
      { fromMs: NOW_MS - (NOW_MS % DAY_MS) - 200 * DAY_MS, toMs: NOW_MS - (NOW_MS % DAY_MS) + DAY_MS },
      DAY_MS,
    )
    assert.equal(
      [...days.series.values()].reduce((sum, each) => sum + each.requests, 0),
      5,
    )
    await keep.forget(NOW_MS + 2000 * DAY_MS)
    assert.equal(await store.rollups.rows(), 0)
    // The notes of which Sightings came are gone, too.
    assert.equal((await statistics(store, '30d', '1d', NOW_MS)).detection.requests, 0)
    await ingest.take([seen(0)])
    assert.equal(await requests(store), 1)
  })

  test(`${kind}: sightings of a clock that is ahead do not keep expired ones behind them`, async (t) => {
    const store = await openFresh(kind, t)
    const ahead = Array.from({ length: 4_500 }, (_, number) => seen(number, { seenAtMs: NOW_MS + DAY_MS }))
    const expired = [5_000, 5_001].map((number) => seen(number, { seenAtMs: NOW_MS - 2 * HOUR_MS }))
    const current = seen(5_002, { seenAtMs: NOW_MS })
    await store.transaction((queries) =>
      store.sightings.add([...ahead, ...expired, current], Date.now(), queries),
    )
    await keeper(store, { sightingsMs: HOUR_MS }).forget(NOW_MS)
    assert.deepEqual(await Promise.all(expired.map(({ id }) => store.sightings.byId(id, '*'))), [null, null])
    assert.notEqual(await store.sightings.byId(current.id, '*'), null)
    assert.notEqual(await store.sightings.byId(ahead[0]!.id, '*'), null)
  })

  test(`${kind}: of Sightings there are only so many`, async (t) => {
    const store = await openFresh(kind, t)
    const { ingest } = ingestInto(store)
    await ingest.take(Array.from({ length: 5_000 }, (_, number) => seen(number)))
    await keeper(store, { sightingsMax: 1_000 }).forget(NOW_MS)
    assert.equal(await store.sightings.rows(), 1_000)
    const { sightings, next } = await store.sightings.before(null, 600)
    assert.deepEqual([sightings.length, sightings[0]!.id], [600, seen(4_999).id])
    const rest = await store.sightings.before(next, 600)
    assert.deepEqual([rest.sightings.length, rest.sightings[0]!.id, rest.next], [400, seen(4_399).id, null])
    // It is forgotten, and still known to have been counted.
    await ingest.take([seen(1)])
    assert.equal(await requests(store), 5_000)
  })

  test(`${kind}: whatever clients make up, no table grows without an end`, async (t) => {
    const { store, db } = await open(kind, t)
    const fingerprints = new FingerprintsSeenStore(db, 500)
    const agents = new AgentsSeenStore(db, 20)
    const often = seen(0, { ja4: 'seen_often_000000000000' })
    let number = 0
    for (let round = 0; round < 10; round++) {
      const flood = Array.from({ length: 200 }, () => {
        number++
        return seen(number, { ja4: `t13d${number}`, ja4h: `ge${number}`, ...AGENT, agent: `agent-${number}` })
      })
      const counted = new RollupTally()
      for (const each of flood) counted.add(each)
      const tally = new FingerprintTally()
      for (const each of [...flood, ...Array<Sighting>(20).fill(often)]) tally.add(each, number)
      await store.transaction(async (queries) => {
        await fingerprints.add(tally, queries)
        await agents.add(flood, counted, queries)
      })
      assert.ok((await fingerprints.rows()) <= 500, `${await fingerprints.rows()}`)
    }
    assert.ok((await fingerprints.rows()) <= 500, `${await fingerprints.rows()}`)
    assert.equal(await agents.rows(), 20)
    const rows = await db.selectFrom('fingerprints_seen').selectAll().execute()
    // What is seen often stays, and of the others the latest.
    assert.equal(rows.find(({ value }) => value === often.ja4)?.requests, 200)
    assert.ok(rows.some(({ value }) => value === `t13d${number}`))
    assert.ok(!rows.some(({ value }) => value === 't13d1'))

    const { ingest } = ingestInto(store)
    await ingest.take(
      Array.from({ length: 5_000 }, (_, each) => {
        const made = { agent: `maker-${each}`, category: `c${each}`, verified: `v${each}`, done: `d${each}` }
        return seen(20_000 + each, { verdict: 'agent', ...made, ja4: `flood${each}`, seenAtMs: NOW_MS })
      }),
    )
    assert.ok((await store.fingerprintsSeen.rows()) <= 500 + 3 * 512 + 2)
    assert.equal(await store.agentsSeen.rows(), 4_000)
    // Each agent, and each verified one.
    assert.ok((await store.rollups.rows()) <= 3 * 8_100, `${await store.rollups.rows()}`)
    addsUp(await statistics(store, '1h', '1m', NOW_MS))
  })

  test(`${kind}: an agent's versions are the most and the latest that clients name, and never more than some`, async (t) => {
    const { store } = await open(kind, t)
    const { ingest } = ingestInto(store, { versionOf: ({ userAgent }) => userAgent })
    const from = (number: number, userAgent: string | null, changes: Partial<Sighting> = {}) =>
      seen(number, { ...AGENT, agent: 'acme', userAgent, ...changes })
    const often = Array.from({ length: 20 }, (_, each) => from(each, each % 4 === 0 ? '1.0' : '1.1'))
    await ingest.take([...often, from(20, null), from(21, '7', { verdict: 'human' })])
    assert.deepEqual((await store.catalogueLists.agentSeen('acme'))?.versions, ['1.1', '1.0'])
    for (let round = 1; round <= 3; round++)
      await ingest.take(
        Array.from({ length: 900 }, (_, each) => from(round * 900 + each, `9.${round}.${each}`)),
      )
    const { versions = [], requests } = (await store.catalogueLists.agentSeen('acme')) ?? {}
    assert.deepEqual([versions.length, versions.slice(0, 2), requests], [64, ['1.1', '1.0'], 2721])
    await ingest.take([from(9_000, '2.0', { agent: 'other' })])
    assert.deepEqual((await store.catalogueLists.agentSeen('other'))?.versions, ['2.0'])
  })

  test(`${kind}: a tool of the catalogue is counted without becoming an agent`, async (t) => {
    const { store } = await open(kind, t)
    await store.transaction(async (queries) => {
      const tool = { id: 'curl', name: 'curl', kind: 'tool' }
      const agent = { id: 'acme', name: 'Acme', kind: 'agent', category: 'crawler' }
      for (const each of [tool, agent]) await store.catalogue.addSoftware(parseSoftware(each), 1, queries)
    })
    const { ingest } = ingestInto(store)
    const nowMs = NOW_MS
    const from = (number: number, software: string, changes: Partial<Sighting> = {}) =>
      seen(number, {
        verdict: 'automation',
        agent: null,
        category: null,
        software,
        seenAtMs: nowMs,
        ...changes,
      })
    await ingest.take([
      from(1, 'curl'),
      from(2, 'curl', { done: 'block' }),
      from(3, 'curl', { verdict: 'agent', seenAtMs: nowMs - 3 * DAY_MS }), // an agent without a name
      from(4, 'made-up'),
      from(5, 'acme'), // its software, without the verdict
    ])
    const curl = await store.catalogueLists.agentSeen('curl')
    assert.deepEqual([curl?.requests, curl?.lastSeenMs], [3, nowMs])
    assert.equal(await store.rollups.requestsOf('curl', nowMs - DAY_MS, nowMs), 2)
    assert.equal(await store.rollups.requestsOf('curl', nowMs - 7 * DAY_MS, nowMs), 3)
    const minutes = { fromMs: nowMs - (nowMs % MINUTE_MS) - MINUTE_MS, toMs: nowMs + MINUTE_MS }
    const series = await store.rollups.seriesOf('curl', minutes, MINUTE_MS)
    assert.deepEqual(
      [...series.values()].map(({ requests, blocked }) => [requests, blocked]),
      [[2, 1]],
    )
    const ofApps = (app: string) => store.appRollups.seriesOf('curl', new Set([app]), minutes, MINUTE_MS)
    assert.deepEqual(await ofApps('default'), series)
    assert.equal((await ofApps('other')).size, 0)
    for (const id of ['made-up', 'acme']) assert.equal(await store.catalogueLists.agentSeen(id), null)
    assert.equal(await store.agentsSeen.newSince(0), 0)
    const { agents, detection } = await statistics(store, '7d', '1h', nowMs)
    assert.deepEqual([agents.seen, agents.new, detection.by_agent], [0, 0, []])
    // The first request of an agent is news, also after one that was only of its software.
    const last = [from(6, 'acme', { verdict: 'agent', agent: 'acme' }), from(7, 'curl')]
    const tally = new RollupTally()
    for (const each of last) tally.add(each)
    const { named, firsts } = await store.transaction((queries) => store.agentsSeen.add(last, tally, queries))
    assert.deepEqual([[...named].sort(), firsts.map(({ agent }) => agent)], [['acme', 'curl'], ['acme']])
    assert.equal(await store.agentsSeen.newSince(0), 1)
    await keeper(store, {}).forget(nowMs + 2_000 * DAY_MS)
    assert.deepEqual([await store.rollups.rows(), await store.appRollups.rows()], [0, 0])
  })

  test(`${kind}: a frequent fingerprint without an owner becomes a signature`, async (t) => {
    const { store, db } = await open(kind, t)
    const signature = {
      status: 'active' as const,
      source: 'builtin' as const,
      provenance: '',
      observations: 1,
    }
    const named = {
      type: 'ja4' as const,
      value: 'named',
      software_id: 'curl',
      ...{ part_b: '', part_c: '' },
      first_seen_ms: 1,
      confidence: 1,
      is_decisive: 0 as const,
    }
    await db
      .insertInto('signatures')
      .values({ ...signature, ...named })
      .execute()
    const told: string[] = []
    const keep = keeper(store, {}, telling(told))
    const { ingest } = ingestInto(store, { stored: (_, unnamed) => keep.noticed(unnamed) })
    let number = 0
    const from = (ja4: string, addresses: readonly string[]) =>
      addresses.map((address) => seen(number++, { ja4, ja4s: 't130200_1301_a56c5b993250', address }))
    const five = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '2001:db8::1']
    const oneNetwork = [
      '2001:db8::1',
      '2001:db8::2',
      '2001:db8::3',
      '2001:db8:0:0:ffff::4',
      '2001:db8::5',
      '::ffff:192.0.2.1',
    ]
    await ingest.take([...from('many', five.slice(0, 3)), ...from('few', oneNetwork), ...from('named', five)])
    await keep.observe()
    assert.deepEqual(told, [])
    await ingest.take(from('many', five.slice(3)))
    await keep.observe()
    assert.deepEqual(told, [])
    await knowSomebody(db)
    await keep.observe()
    await ingest.take(from('many', five))
    await keep.observe()
    assert.deepEqual(told, ['many'])
    const rows = () => db.selectFrom('signatures').selectAll().where('source', '=', 'observed').execute()
    const [row, ...others] = await rows()
    assert.deepEqual(others, [])
    assert.deepEqual(row, {
      ...{ type: 'ja4', value: 'many', software_id: '', part_b: '', part_c: '' },
      ...{ status: 'unknown', source: 'observed' },
      ...{ provenance: 'live traffic', first_seen_ms: START_MS, observations: 5, confidence: 0 },
      is_decisive: 0,
    })
    const { fingerprints } = await statistics(store, '1h', '1m', NOW_MS)
    assert.deepEqual([fingerprints?.unique, fingerprints?.by_type.ja4, fingerprints?.unknown], [4, 3, 3])
    // It has an owner now.
    await db
      .insertInto('signatures')
      .values({ ...signature, ...named, value: 'many' })
      .execute()
    await keep.forget(NOW_MS)
    assert.deepEqual(await rows(), [])
  })

  test(`${kind}: of observed signatures those that are seen least make room`, async (t) => {
    const { store, db } = await open(kind, t)
    const told: string[] = []
    const keep = keeper(store, { observed: { addressesMin: 1, requestsMin: 1, max: 3 } }, telling(told))
    const { ingest } = ingestInto(store, { stored: (_, unnamed) => keep.noticed(unnamed) })
    let number = 0
    const times = (ja4: string, count: number) => Array.from({ length: count }, () => seen(number++, { ja4 }))
    await knowSomebody(db)
    await ingest.take([...times('b', 20), ...times('a', 10), ...times('c', 30)])
    await keep.observe()
    await ingest.take([...times('d', 40), ...times('e', 1)])
    await keep.observe()
    const rows = await db.selectFrom('signatures').select('value').orderBy('value').execute()
    assert.deepEqual(
      rows.map(({ value }) => value),
      ['b', 'c', 'd'],
    )
    assert.deepEqual(told.toSorted(), ['a', 'b', 'c', 'd'])
  })
}

type Asked = [Parameters<typeof statistics>[1], Parameters<typeof statistics>[2]]

/** Every number of statistics that says the same as others does. */
export function addsUp(stats: Awaited<ReturnType<typeof statistics>>): void {
  const { detection, series, fingerprints } = stats
  const total = (counts: Readonly<Record<string, number>>) =>
    Object.values(counts).reduce((sum, each) => sum + each, 0)
  const inSeries = (name: 'requests' | 'agents' | 'blocked') =>
    series.reduce((sum, each) => sum + each[name], 0)
  assert.equal(total(detection.by_action), detection.requests)
  assert.equal(total(detection.by_confidence), detection.requests)
  assert.equal(total(detection.by_category), detection.agents)
  // A request can have several purposes, so the purposes do not add up to the requests.
  const purposes = new Map<string, number>()
  for (const { by_purpose } of series)
    for (const [purpose, count] of Object.entries(by_purpose))
      purposes.set(purpose, (purposes.get(purpose) ?? 0) + count)
  const occurred = Object.entries(detection.by_purpose).filter(([, count]) => count > 0)
  assert.deepEqual(new Map(occurred.toSorted()), new Map([...purposes].toSorted()))
  for (const [purpose, count] of occurred) assert.ok(count <= detection.agents, purpose)
  assert.deepEqual(
    [inSeries('requests'), inSeries('agents'), inSeries('blocked')],
    [detection.requests, detection.agents, detection.blocked],
  )
  assert.equal(detection.by_action['block'], detection.blocked)
  // Only the whole installation has them.
  if (fingerprints !== null) assert.equal(total(fingerprints.by_type), fingerprints.unique)
  assert.equal(detection.rate, detection.requests === 0 ? 0 : detection.agents / detection.requests)
}

/** The store, and another way to what is in it. */
async function open(
  kind: DatabaseKind,
  t: Owner,
): Promise<{ readonly store: Store; readonly db: Database['db'] }> {
  const url = await freshUrl(kind, t)
  const store = await openAt(t, url)
  const database = await openDatabase(url, null, migrate)
  t.teardown(() => database.close())
  return { store, db: database.db }
}

/** Nothing is observed while no software is known. */
async function knowSomebody(db: Database['db']): Promise<void> {
  const named = { id: 'gptbot', name: 'GPTBot', kind: 'agent' as const, category: 'crawler' as const }
  await db
    .insertInto('software')
    .values({
      ...named,
      description: null,
      search: 'gptbot',
      document: '{}',
      origin: 'builtin',
      first_seen_ms: 1,
    })
    .execute()
}

async function requests(store: Store): Promise<number> {
  const stats = await statistics(store, '1h', '1m', NOW_MS)
  addsUp(stats)
  return stats.detection.requests
}

function keeper(
  store: Store,
  changes: Partial<KeeperSettings>,
  observed: ObservedEvents = async () => () => undefined,
): SightingKeeper {
  const limits = { addressesMin: 5, requestsMin: 5, max: 100 }
  const settings = {
    sightingsMs: DAY_MS,
    sightingsMax: 1e6,
    bytesMax: null,
    rollups: RETENTION,
    observed: limits,
    ...changes,
  }
  const metrics = new IngestMetrics()
  return new SightingKeeper({ store, settings, observed, metrics, log: SILENT, isLeading: () => true })
}

function telling(told: string[]): ObservedEvents {
  return async (observed) => {
    told.push(...observed.map(({ value }) => value))
    return () => undefined
  }
}

const AGENT = { verdict: 'agent', agent: 'gptbot', category: 'crawler' }
