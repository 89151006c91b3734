import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Purpose } from '../../src/classify/known/software.ts'
import type { SignatureFilter } from '../../src/store/catalogue/catalogue-lists.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt } from '../store/databases.ts'
import { JA4, signatureOf, softwareOf } from './catalogue.ts'

const ALL: SignatureFilter = {
  ...{ type: null, unknownOnly: false, softwareId: null, text: null, confidenceMin: 0 },
  sort: { by: 'fingerprint', isDescending: false },
}
const PAGE = { page: 1, limit: 50 }
const OTHER = JA4.replace('8daaf', '00000')
const STARS = 'po11nn192a00_9b1a6c96d1f4_*_*'

/** Browsing and lookups: test/manage/catalogue.test.ts says more of them, on one database. */
export function catalogueListsContract(kind: DatabaseKind): void {
  test(`${kind}: lists and lookups find the same in both databases`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const { catalogueLists, catalogueLookup } = store
    await fill(store, url)
    const agents = async (text: string | null, seenSinceMs: number | null = null) => {
      const found = await catalogueLists.agents({ ...EVERY, text, seenSinceMs }, PAGE)
      assert.equal(found.items.length, found.total)
      return found.items.map(({ id, lastSeenMs }) => [id, lastSeenMs])
    }
    assert.deepEqual(await agents(null), [
      ['acme', 7],
      ['per-cent', null],
    ])
    assert.deepEqual(await agents('ÜNÏ_100%'), [['per-cent', null]])
    assert.deepEqual(await agents('UNI_100%'), [])
    assert.deepEqual(await agents(null, 7), [['acme', 7]])
    assert.deepEqual(await agents(null, 8), [])
    for (const [ids, expected] of [
      [['per-cent', 'none', 'curl'], ['per-cent']],
      [[], []],
    ] as const) {
      const { items, total } = await catalogueLists.agents({ ...EVERY, ids }, PAGE)
      assert.deepEqual([items.map(({ id }) => id), total], [expected, expected.length])
      assert.equal((await catalogueLists.agents({ ...EVERY, ids }, { after: null, limit: 1 })).next, null)
    }
    const withPurpose = async (purpose: Purpose) => {
      const { items } = await catalogueLists.agents({ ...EVERY, purpose }, PAGE)
      return items.map(({ id, purposes }) => [id, purposes])
    }
    assert.deepEqual(await withPurpose('search'), [['acme', ['search', 'training']]])
    assert.deepEqual(await withPurpose('training'), [['acme', ['search', 'training']]])
    assert.deepEqual(await withPurpose('archive'), [], 'a description does not count')
    const named = await store.agentsSeen.names(['acme', 'per-cent', 'curl'])
    assert.deepEqual(named.get('acme'), {
      ...{ name: 'Acme', kind: 'agent', category: 'custom' },
      purposes: ['search', 'training'],
    })
    assert.deepEqual([named.get('per-cent')!.purposes, named.get('curl')!.purposes], [[], []])
    const lists = await catalogueLists.fingerprintsOf(['acme', 'per-cent', "x' --"], 1)
    assert.deepEqual(lists.get('acme'), { ja4: [OTHER], ja4s: [], ja4h: [STARS], ja4x: [] })
    assert.deepEqual(lists.get("x' --"), { ja4: [], ja4s: [], ja4h: [], ja4x: [] })
    const listed = async (filter: Partial<SignatureFilter>) => {
      const found = await catalogueLists.signatures({ ...ALL, ...filter }, PAGE)
      assert.equal(found.items.length, found.total)
      return found.items.map(({ value, software }) => `${value.slice(0, 16)} ${software?.id}`)
    }
    assert.deepEqual(await listed({}), [
      't13d1516h2_00000 acme',
      't13d1516h2_8daaf acme',
      't13d1516h2_8daaf curl',
      'po11nn192a00_9b1 acme',
    ])
    for (const by of ['first_seen', 'confidence', 'observations'] as const)
      assert.equal((await listed({ sort: { by, isDescending: true } })).length, 4)
    assert.deepEqual(await listed({ text: '9b1a6' }), ['po11nn192a00_9b1 acme'])
    assert.deepEqual(await listed({ text: 'curl', confidenceMin: 0.01, type: 'ja4' }), [
      't13d1516h2_8daaf curl',
    ])
    assert.deepEqual(await listed({ text: '9b1a6', softwareId: 'curl' }), [])
    assert.deepEqual(await listed({ unknownOnly: true }), ['t13d1516h2_11111 undefined'])
    assert.deepEqual(
      await listed({ unknownOnly: true, text: 't13d', sort: { by: 'observations', isDescending: true } }),
      ['t13d1516h2_11111 undefined'],
    )
    const exact = await catalogueLookup.exact([
      { type: 'ja4', value: JA4 },
      { type: 'ja4h', value: SEEN_BY_STARS },
    ])
    assert.deepEqual(
      exact.map(({ value, software, requestsSeen }) => [value, software?.id, requestsSeen]).sort(),
      [
        [JA4, 'acme', 5],
        [JA4, 'curl', 5],
        [STARS, 'acme', 0],
      ].sort(),
    )
    const partial = await catalogueLookup.partial([{ type: 'ja4', value: JA4 }])
    assert.deepEqual(
      partial.map(({ value, score }) => [value, score]),
      [
        [JA4, 1],
        [JA4, 1],
        [OTHER, 0.45],
      ],
    )
    assert.deepEqual(
      (await catalogueLookup.exact([{ type: 'ja4', value: UNKNOWN }])).map(({ software, status }) => [
        software,
        status,
      ]),
      [[null, 'unknown']],
    )
    assert.deepEqual(await catalogueLists.agentSeen('acme'), { lastSeenMs: 7, requests: 3, versions: [] })
    assert.equal(await catalogueLists.agentSeen('curl'), null)
  })
}

const EVERY = { category: null, purpose: null, text: null, seenSinceMs: null, ids: null }
const UNKNOWN = JA4.replace('8daaf', '11111')
const SEEN_BY_STARS = 'po11nn192a00_9b1a6c96d1f4_000000000000_0123456789ab'

async function fill(store: Store, url: string): Promise<void> {
  await store.transaction(async (queries) => {
    const software = (document: Readonly<Record<string, unknown>>) =>
      store.catalogue.addSoftware(softwareOf(document), 1, queries)
    const from = { source: 'acme.test', date: '2026-11-21' }
    const purpose = [
      { is: 'search', ...from },
      { is: 'training', ...from },
    ]
    const description = 'It says {"is":"archive",'
    await software({ id: 'acme', name: 'Acme', category: 'custom', purpose, description })
    await software({ id: 'per-cent', name: 'ünï_100%' })
    await software({ id: 'curl', name: 'curl', kind: 'tool' })
    const signatures = [
      { softwareId: 'acme', observations: 4, firstSeenMs: 3 },
      { softwareId: 'curl', observations: 2, firstSeenMs: 2 },
      { softwareId: 'acme', value: OTHER },
      { softwareId: 'acme', value: STARS, type: 'ja4h' as const },
    ]
    for (const each of signatures) await store.catalogue.addSignature(signatureOf(each), queries)
  })
  const { db, close } = await openDatabase(url, null, async () => undefined)
  await db
    .insertInto('agents_seen')
    .values({ software_id: 'acme', first_seen_ms: 1, last_seen_ms: 7, requests: 3 })
    .execute()
  const seen = {
    first_seen_ms: 1,
    last_seen_ms: 2,
    requests: 5,
    addresses: 1,
    sketch: '',
    is_named: 0 as const,
    rank: 1,
  }
  await db
    .insertInto('fingerprints_seen')
    .values([
      { ...seen, type: 'ja4', value: JA4 },
      { ...seen, type: 'ja4', value: UNKNOWN },
      { ...seen, type: 'ja4h', value: SEEN_BY_STARS },
    ])
    .execute()
  await close()
}
