import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import { migrate } from '../../src/store/engine/migrations.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { RequestFilter } from '../../src/store/traffic/request-filter.ts'
import { RequestSearch, type ScannedRow } from '../../src/store/traffic/request-search.ts'
import { PART_SIZE } from '../../src/store/traffic/sighting-parts.ts'
import { SightingStore } from '../../src/store/traffic/sightings.ts'
import { parseAddressRange, rangeKeys } from '../../src/wire/address-ranges.ts'
import { freshUrl, type Owner } from '../store/databases.ts'
import { anything, everything, filters, fits, idsOf, made, RARE } from './request-samples.ts'
import { DAY_MS, HOUR_MS, NOW_MS, seen } from './seen.ts'

/** How Sightings are stored and found, in any store. */
export function requestSearchContract(kind: DatabaseKind): void {
  test(`${kind}: any Sighting is read as it was stored`, async (t) => {
    const { store, add } = await open(kind, t)
    let number = 0
    const property = fc.asyncProperty(
      fc.array(anything, { minLength: 1, maxLength: 20 }),
      async (changes) => {
        const all = changes.map((each) => seen(number++, each))
        await add(all)
        assert.deepEqual(
          (await store.newest(null, all.length)).map(({ document }) => document),
          all.toReversed(),
        )
        assert.deepEqual(await store.byId(all[0]!.id, ALL_APPS), all[0])
      },
    )
    await fc.assert(property, { numRuns: kind === 'sqlite' ? 100 : 30, interruptAfterTimeLimit: 10_000 })
  })

  test(`${kind}: a Sighting that is stored already stays as it is`, async (t) => {
    const { store, add } = await open(kind, t)
    await add([seen(1), seen(2)])
    await add([seen(3), seen(2, { path: '/other' }), seen(4)])
    const paths = (await store.newest(null, 10)).map(({ document }) => `${document.id} ${document.path}`)
    assert.deepEqual(
      paths,
      [4, 3, 2, 1].map((each) => `${seen(each).id} /`),
    )
  })

  test(`${kind}: a search finds what its filter says, page by page, in any number of parts`, async (t) => {
    const { store, add, skipPart, db } = await open(kind, t)
    const all: Sighting[] = []
    for (let part = 0; part < 4; part++) {
      const some = Array.from({ length: 300 }, (_, at) => made(1000 * part + at))
      all.push(...some)
      await add(some)
      await skipPart()
    }
    const hasty = new RequestSearch(db, kind, -1)
    const property = fc.asyncProperty(filters, fc.integer({ min: 1, max: 200 }), async (filter, limit) => {
      const expected = idsOf(all.filter(fits(filter)))
      for (const search of [store, { search: hasty.find.bind(hasty) }]) {
        assert.deepEqual(idsOf(await everything(search, filter, limit)), expected.toReversed())
        assert.deepEqual(idsOf(await everything(search, filter, limit, 'oldest')), expected)
      }
    })
    await fc.assert(property, { numRuns: 60, interruptAfterTimeLimit: 15_000 })
  })

  test(`${kind}: a rare value is found at once and a frequent one in the newest part`, async (t) => {
    const { store, add, skipPart, db } = await open(kind, t)
    for (let part = 0; part < 12; part++) {
      await add(
        Array.from({ length: 1_500 }, (_, at) =>
          seen(part * 2_000 + at, part === 2 && at < 3 ? RARE : { host: 'busy.example', app: 'busy' }),
        ),
      )
      await skipPart()
    }
    // A search that may not look at all still finds them.
    const hasty = new RequestSearch(db, kind, -1)
    const rare: readonly Omit<RequestFilter, 'apps'>[] = [
      { host: RARE.host },
      { id: seen(4_001).id },
      { addresses: [rangeKeys(parseAddressRange('198.51.100.0/24')!)] },
      { profile: { agent: RARE.agent } },
      { profile: { ja4: RARE.ja4, verdict: 'agent' } },
      { ja4h: RARE.ja4h },
      { purpose: 'training' },
      { verified: 'ip-range' },
      { verified: true },
      { httpVersion: '30' },
      { campaign: { id: 'cmp_rare', pages: { program: 77, host: 'none.example' } } },
    ]
    for (const filter of rare) {
      const { found, next } = await hasty.find({ apps: ALL_APPS, ...filter }, () => true, null, 50)
      assert.deepEqual([found.length, next], [filter.id === undefined ? 3 : 1, null], JSON.stringify(filter))
    }
    assert.equal((await hasty.find({ apps: new Set([RARE.app]) }, () => true, null, 50)).found.length, 3)
    const none = await hasty.find({ apps: ALL_APPS, host: 'none.example' }, () => true, null, 50)
    assert.deepEqual(none, { found: [], next: null, stoppedAtMs: null })
    // Nothing in the newest part: the search says how far it came.
    const stopped = await hasty.find({ apps: ALL_APPS, pathPrefix: '/none' }, () => true, null, 50)
    assert.deepEqual([stopped.found, stopped.next], [[], 11 * PART_SIZE])
    assert.equal(stopped.stoppedAtMs, seen(10 * 2_000 + 1_499).seenAtMs)
    const { found, next } = await store.search({ apps: ALL_APPS, host: 'busy.example' }, () => true, null, 50)
    assert.deepEqual([found.length, next !== null], [50, true])
  })

  test(`${kind}: a scan sees what a search finds, and says where its time was over`, async (t) => {
    const { store, add, skipPart, db } = await open(kind, t)
    const all: Sighting[] = []
    for (let part = 0; part < 3; part++) {
      const some = Array.from({ length: 2_100 }, (_, at) => made(10_000 * part + at))
      all.push(...some)
      await add(some)
      await skipPart()
    }
    const filter: RequestFilter = { apps: new Set(['one', 'rare']), verified: false }
    const seenRows: ScannedRow[] = []
    const patient = new RequestSearch(db, kind, 60_000)
    assert.equal(await patient.scan(filter, (row) => seenRows.push(row)), null)
    const expected = all.filter(fits(filter)).toReversed()
    const profiles = await store.profileFacts([...new Set(seenRows.map(({ profile }) => profile))])
    assert.deepEqual(
      seenRows.map(({ profile, ja4h_cookies: cookies, seen_at_ms, ...row }) => {
        const { app, host, path, address, campaign } = row
        const { ja4h, ...facts } = profiles.get(profile)!
        return {
          app,
          host,
          path,
          address,
          campaign,
          ...facts,
          seen_at_ms,
          ja4h: cookies === null ? ja4h : `${ja4h}_${cookies}`,
        }
      }),
      expected.map(({ app, host, path, address, campaign, ...rest }) => {
        const { verdict, agent, category, purposes, done, rule, verified, ja4, http2, proxy } = rest
        const { ja4h, evidence, seenAtMs } = rest
        const own = { verdict, agent, category, purposes, done, rule, verified, ja4, http2, proxy, ja4h }
        return { app, host, path, address, campaign, ...own, evidence, seen_at_ms: seenAtMs }
      }),
    )
    let rows = 0
    const stoppedAtMs = await new RequestSearch(db, kind, -1).scan({ apps: ALL_APPS }, () => rows++)
    assert.equal(rows, 2_000, 'a page of the newest part')
    assert.equal(stoppedAtMs, all.at(-2_001)!.seenAtMs)
  })

  test(`${kind}: numbers go on when all Sightings are gone, and profiles go after them`, async (t) => {
    const { store, add, db } = await open(kind, t)
    await add([seen(1), seen(2)])
    while (await store.forget(NOW_MS + DAY_MS, NOW_MS, 100));
    const profiles = () => db.selectFrom('sighting_profiles').select('id').execute()
    assert.equal(await store.forgetProfiles(NOW_MS + HOUR_MS), false)
    assert.equal((await profiles()).length > 0, true)
    assert.equal(await store.forgetProfiles(NOW_MS + 3 * HOUR_MS), true)
    assert.deepEqual(await profiles(), [])
    await add([seen(3)])
    assert.deepEqual(
      (await store.newest(null, 10)).map(({ number }) => number),
      [3],
    )
  })

  test(`${kind}: clients that each say something of their own leave no more profiles than Sightings`, async (t) => {
    const { store, add, skipPart, db } = await open(kind, t)
    const own = (first: number) =>
      Array.from({ length: 700 }, (_, at) => seen(first + at, { userAgent: `client ${first + at}` }))
    await add([seen(1), ...own(1_000)])
    await skipPart()
    await add([seen(2), ...own(2_000), ...own(3_000)])
    const tidyUp = async (max: number) => {
      for await (const _ of store.forgetUnusedProfiles(max));
      return store.profiles()
    }
    assert.equal(await tidyUp(100), 2_101, 'each has a Sighting')
    const last = await store.lastNumber()
    await db
      .deleteFrom('sightings')
      .where('number', '<=', last - 800)
      .execute()
    assert.equal(await tidyUp(2_101), 2_101, 'there is room')
    assert.equal(await tidyUp(2_100), 800)
    const left = await store.newest(null, 2_000)
    assert.equal(left.length, 800)
    assert.equal(new Set(left.map(({ document }) => document.userAgent)).size, 800)
    await add([seen(3), ...own(1_000)])
    assert.equal((await store.newest(null, 2_000)).length, 1_501)
  })
}

/** The search of the store, and another way to its rows. */
async function open(kind: DatabaseKind, t: Owner) {
  const { db, close }: Database = await openDatabase(await freshUrl(kind, t), null, (each) =>
    migrate(each, kind),
  )
  t.teardown(close)
  const store = new SightingStore(db, kind)
  const add = (sightings: readonly Sighting[]) =>
    db.transaction().execute((queries) => store.add(sightings, NOW_MS, queries))
  /** As if the newest part was full. */
  const skipPart = async () => {
    const [last] = await db.selectFrom('sighting_parts').selectAll().orderBy('number', 'desc').execute()
    const change = { last_sighting: (last!.number + 1) * PART_SIZE - 1 }
    await db.updateTable('sighting_parts').set(change).where('number', '=', last!.number).execute()
  }
  return { store, add, skipPart, db }
}
