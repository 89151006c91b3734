import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import type { SignatureFilter, SignatureSort } from '../../src/store/catalogue/catalogue-lists.ts'
import type { Database, DatabaseKind, Queries } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { PageOf, Part, Position, StretchOf } from '../../src/store/engine/page.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt } from '../store/databases.ts'

/** Lists that are read behind a position: all there is, once, in the order of the pages, whatever comes and goes. */
export function partsContract(kind: DatabaseKind): void {
  const inEach = (title: string, rule: (list: List, store: Store, db: Database['db']) => Promise<void>) =>
    test(`${kind}: ${title}`, async (t) => {
      const url = await freshUrl(kind, t)
      const store = await openAt(t, url)
      const { db, close } = await openDatabase(url, null, async () => undefined)
      t.teardown(close)
      for (const list of LISTS)
        await t.test(list.name, async () => {
          await clear(db)
          await rule(list, store, db)
        })
    })
  inEach('the parts of a list joined are the list', joined)
  inEach('what comes and goes between parts moves nothing else', stable)
  inEach('refuses an invalid position of a list', refused)
}

async function joined(list: List, store: Store, db: Database['db']): Promise<void> {
  const sizes = fc.record({ rows: fc.nat({ max: 25 }), limits: LIMITS, seed: fc.nat() })
  await fc.assert(
    fc.asyncProperty(sizes, async ({ rows, limits, seed }) => {
      await clear(db)
      await addTo(list, db, 0, rows, randomFrom(seed))
      const page = (await list.part(store, { page: 1, limit: 200 })) as PageOf<unknown>
      assert.deepEqual([page.items.length, page.total], [rows, rows])
      assert.deepEqual(await walked(store, list, limits, async () => undefined), page.items)
    }),
    { numRuns: 15 },
  )
}

async function stable(list: List, store: Store, db: Database['db']): Promise<void> {
  const random = randomFrom(1)
  await addTo(list, db, 0, 60, random)
  const all = ((await list.part(store, { page: 1, limit: 200 })) as PageOf<unknown>).items.map(list.key)
  assert.equal(all.length, 60)
  const gone = new Set(all.filter((_, index) => index % 3 === 0))
  const left = [...gone]
  let number = 60
  const seen = await walked(store, list, [7], async () => {
    await addTo(list, db, number, 3, random)
    number += 3
    for (const key of left.splice(0, 4)) await list.remove(db, key)
  })
  const keys = seen.map(list.key)
  assert.equal(new Set(keys).size, keys.length, 'something came twice')
  const leftOut = all.filter((key) => !gone.has(key) && !keys.includes(key))
  assert.deepEqual(leftOut, [], 'something that was there throughout was left out')
}

async function refused(list: List, store: Store, db: Database['db']): Promise<void> {
  await addTo(list, db, 0, 3, randomFrom(2))
  const { next } = (await list.part(store, { after: null, limit: 1 })) as StretchOf<unknown>
  const bad: (readonly unknown[])[] = [[], [...next!, 1], next!.slice(1)]
  for (const index of next!.keys())
    for (const value of [null, {}, [], true, undefined, Number.NaN, Infinity, 'a\0', '\ud800', -1, 1e300])
      bad.push(next!.with(index, value as string))
  for (const position of bad) {
    const asked = list.part(store, { after: position as Position, limit: 1 })
    // A number of the right kind and any size is a position, be there something or not.
    if (position.length === next!.length && position.every((each, i) => isLike(each, next![i]!))) await asked
    else await assert.rejects(asked, { code: 'POSITION_INVALID' }, JSON.stringify(position))
  }
  for (const [index, value] of next!.entries())
    for (const far of typeof value === 'string' ? ['', '\u{10ffff}', "' or 1=1 --"] : [0, 2 ** 53 - 1])
      await list.part(store, { after: next!.with(index, far), limit: 5 })
}

/** Fractions and numbers below 0 are only in the order of `confidence`, whose values here are fractions. */
function isLike(given: unknown, own: string | number): boolean {
  if (typeof own === 'string')
    return typeof given === 'string' && given.isWellFormed() && !given.includes('\0')
  return own % 1 === 0 ? Number.isSafeInteger(given) && Number(given) >= 0 : Number.isFinite(given)
}

interface List {
  readonly name: string
  part(store: Store, part: Part): Promise<PageOf<unknown> | StretchOf<unknown>>
  /** Many have the same in all but their key. */
  add(db: Queries, number: number, random: Random): Promise<unknown>
  remove(db: Database['db'], key: string): Promise<unknown>
  readonly key: (item: unknown) => string
}

type Random = (below: number) => number

async function walked(
  store: Store,
  list: List,
  limits: readonly number[],
  between: () => Promise<void>,
): Promise<readonly unknown[]> {
  const items: unknown[] = []
  let after: Position | null = null
  for (let turn = 0; ; turn++) {
    const limit = limits[turn % limits.length]!
    const part = (await list.part(store, { after, limit })) as StretchOf<unknown>
    items.push(...part.items)
    assert.ok(items.length < 1_000, 'it comes to no end')
    if (part.next === null) return items
    assert.equal(part.items.length, limit)
    // As a cursor has it.
    after = JSON.parse(JSON.stringify(part.next)) as Position
    await between()
  }
}

async function addTo(list: List, db: Database['db'], from: number, count: number, random: Random) {
  await db.transaction().execute(async (queries) => {
    for (let number = from; number < from + count; number++) await list.add(queries, number, random)
  })
}

async function clear(db: Database['db']): Promise<void> {
  for (const table of TABLES) await db.deleteFrom(table).execute()
}

function randomFrom(seed: number): Random {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const TABLES = [
  ...([
    'api_keys',
    'webhooks',
    'trust',
    'audit',
    'submissions',
    'policies',
    'cases',
    'software',
    'signatures',
  ] as const),
  'fingerprints_seen',
] as const
const LIMITS = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 })
const ANY: SignatureFilter = {
  ...{ type: null, unknownOnly: false, softwareId: null, text: null, confidenceMin: 0 },
  sort: { by: 'fingerprint', isDescending: false },
}
const TYPES = ['ja4', 'ja4s', 'ja4h', 'ja4x'] as const

function idOf(item: unknown): string {
  return (item as { readonly id: string }).id
}

function signatureKey(item: unknown): string {
  const { type, value, software } = item as {
    readonly type: string
    readonly value: string
    readonly software: { readonly id: string } | null
  }
  return [type, value, software?.id ?? ''].join(' ')
}

function signatures(name: string, given: Partial<SignatureFilter>): List {
  return {
    name: `signatures ${name}`,
    part: (store, part) => store.catalogueLists.signatures({ ...ANY, ...given }, part),
    add: async (db, number, random) => {
      const type = given.type ?? TYPES[random(4)]!
      const owner = given.softwareId ?? `owner-${random(5)}`
      await db
        .insertInto('software')
        .values({
          ...{ id: owner, name: owner, kind: 'agent', category: 'custom', description: null, search: owner },
          ...{ document: '{}', origin: 'api', first_seen_ms: 1 },
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .execute()
      await db
        .insertInto('signatures')
        .values({
          ...{ type, value: `t13d_${random(9)}_${number}`, software_id: owner, part_b: 'b', part_c: 'c' },
          ...{ status: 'active', source: 'submitted', provenance: '', first_seen_ms: random(4) },
          ...{ observations: random(3), confidence: (random(3) + 0.1) / 3, is_decisive: 0 as const },
        })
        .execute()
    },
    remove: (db, key) => {
      const [type, value, owner] = key.split(' ') as [(typeof TYPES)[number], string, string]
      return db
        .deleteFrom('signatures')
        .where('type', '=', type)
        .where('value', '=', value)
        .where('software_id', '=', owner)
        .execute()
    },
    key: signatureKey,
  }
}

function unknown(sort: SignatureSort): List {
  return {
    name: `unknown fingerprints by ${sort.by}`,
    part: (store, part) => store.catalogueLists.signatures({ ...ANY, unknownOnly: true, sort }, part),
    add: (db, number, random) =>
      db
        .insertInto('fingerprints_seen')
        .values({
          ...{ type: TYPES[random(4)]!, value: `t13d_${random(9)}_${number}`, first_seen_ms: random(4) },
          ...{ last_seen_ms: 9, requests: random(3), addresses: 1, sketch: '', is_named: 0, rank: 1 },
        })
        .execute(),
    remove: (db, key) => db.deleteFrom('fingerprints_seen').where('value', '=', key.split(' ')[1]!).execute(),
    key: signatureKey,
  }
}

const LISTS: readonly List[] = [
  {
    name: 'keys',
    part: ({ keys }, part) => keys.list(part, '*'),
    add: (db, number, random) =>
      db
        .insertInto('api_keys')
        .values({
          ...{
            id: `key_${random(9)}_${number}`,
            hash: String(number),
            name: 'a',
            scopes: '[]',
            plan: 'free',
          },
          ...{ created_at_ms: random(3), expires_at_ms: null, revoked_at_ms: null, last_used_at_ms: null },
        })
        .execute(),
    remove: (db, id) => db.updateTable('api_keys').set({ revoked_at_ms: 5 }).where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'webhooks',
    part: ({ webhooks }, part) => webhooks.list(part, '*'),
    add: (db, number, random) =>
      db
        .insertInto('webhooks')
        .values({
          ...{ id: `whk_${random(9)}_${number}`, url: 'https://a.example', events: '[]', description: null },
          ...{ enabled: 1, created_at_ms: random(3), updated_at_ms: 1 },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('webhooks').where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'trust',
    part: ({ trust }, part) => trust.list(part, '*'),
    add: (db, number, random) =>
      db
        .insertInto('trust')
        .values({
          ...{ id: `trs_${random(9)}_${number}`, kind: 'agent', subject: `https://a.example/${number}` },
          ...{ name: null, scopes: '[]', plan: 'free', document: null, created_at_ms: random(3) },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('trust').where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'audit',
    part: ({ audit }, part) =>
      audit.list(part, { apps: '*', app: null, action: 'a', principal: null, sinceMs: 0 }),
    add: (db, number, random) =>
      db
        .insertInto('audit')
        .values({
          ...{ id: `aud_${random(9)}_${number}`, at_ms: random(3), principal: 'p', action: 'a' },
          ...{ subject: null, detail: '{}', apps: '"*"', address: null, request_id: null },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('audit').where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'submissions',
    part: ({ submissions }, part) => submissions.list({ status: 'pending', type: null, text: 'T13' }, part),
    add: (db, number, random) =>
      db
        .insertInto('submissions')
        .values({
          ...{ id: `sub_${random(9)}_${number}`, created_at_ms: random(3), principal: 'p', type: 'ja4' },
          ...{ value: 't13', agent_name: null, software_id: null, category: null, purposes: '[]' },
          ...{
            user_agent: null,
            notes: null,
            status: 'pending',
            reasons: '[]',
            duplicate_of: null,
            made_software: 0,
          },
          ...{ decided_at_ms: null, decided_by: null, rolled_back_at_ms: null },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('submissions').where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'policies',
    part: ({ policies }, part) => policies.list(part),
    add: (db, number) =>
      db
        .insertInto('policies')
        .values({
          ...{ app: '*', version: number + 1, document: '{}', hash: '', author: 'p', restored_version: null },
          created_at_ms: 1,
        })
        .execute(),
    remove: (db, version) => db.deleteFrom('policies').where('version', '=', Number(version)).execute(),
    key: (item) => String((item as { readonly version: number }).version),
  },
  {
    name: 'cases',
    part: ({ cases }, part) =>
      cases.list(part, { scope: '*', status: 'open', reasons: null, sinceMs: null, untilMs: null }),
    add: (db, number, random) =>
      db
        .insertInto('cases')
        .values({
          ...{ id: `cas_${random(9)}_${number}`, identity: `${number}`, app: null, reason: 'blocked' },
          ...{ severity: 'low', campaign: null, agent: null, ja4: null, address: null },
          ...{ first_at_ms: 1, last_at_ms: random(3), events: 1, requests: 1, status: 'open', version: 0 },
          ...{ changed_at_ms: null, changed_by: null, note: null, feedback: 0 },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('cases').where('id', '=', id).execute(),
    key: idOf,
  },
  {
    name: 'agents',
    part: ({ catalogueLists }, part) =>
      catalogueLists.agents(
        { category: 'custom', purpose: null, text: 'a', seenSinceMs: null, ids: null },
        part,
      ),
    add: (db, number, random) =>
      db
        .insertInto('software')
        .values({
          ...{ id: `agent-${random(9)}-${number}`, name: 'a', kind: 'agent', category: 'custom' },
          ...{ description: null, search: 'a', document: '{}', origin: 'api', first_seen_ms: 1 },
        })
        .execute(),
    remove: (db, id) => db.deleteFrom('software').where('id', '=', id).execute(),
    key: idOf,
  },
  signatures('by fingerprint', {}),
  signatures('by first_seen', { sort: { by: 'first_seen', isDescending: true } }),
  signatures('by confidence', { sort: { by: 'confidence', isDescending: false }, confidenceMin: 0.001 }),
  signatures('by observations of a type', {
    type: 'ja4h',
    sort: { by: 'observations', isDescending: true },
  }),
  signatures('of an agent', {
    softwareId: 'acme',
    sort: { by: 'first_seen', isDescending: false },
  }),
  signatures('about a text', { text: 'owner', sort: { by: 'confidence', isDescending: true } }),
  unknown({ by: 'first_seen', isDescending: true }),
  unknown({ by: 'observations', isDescending: false }),
  unknown({ by: 'confidence', isDescending: true }),
]
