import assert from 'node:assert/strict'
import fc from 'fast-check'
import { sql } from 'kysely'
import { test } from 'tap'
import { confidenceOf } from '../../src/classify/verdict/confidence.ts'
import { allNames } from '../../src/classify/known/software-names.ts'
import { type SignatureRow, signatureRow, softwareRow } from '../../src/store/catalogue/catalogue.ts'
import { type CatalogueRows, compareBytes } from '../../src/store/catalogue/catalogue-merge.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, openAt } from '../store/databases.ts'
import { signatureOf, softwareOf } from './catalogue.ts'

/** The tables become what files say, whatever they were before; what the API has made stays. */
export function catalogueMergeContract(kind: DatabaseKind): void {
  test(`${kind}: any catalogue becomes any other, and what the API has made stays`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const { db, close } = await openDatabase(url, null, async () => undefined)
    t.teardown(close)
    const tables = async () => ({
      software: await db.selectFrom('software').selectAll().execute(),
      names: await db.selectFrom('software_names').selectAll().execute(),
      signatures: await db.selectFrom('signatures').selectAll().execute(),
    })
    await fc.assert(
      fc.asyncProperty(
        someFiles,
        someFiles,
        someOfApi,
        fc.nat(4),
        async (before, after, ofApi, killedAfter) => {
          for (const table of ['software', 'software_names', 'signatures'] as const)
            await db.deleteFrom(table).execute()
          await merge(store, rowsOf(before))
          for (const signature of ofApi)
            await store.transaction((queries) => store.catalogue.addSignature(signature, queries))
          const made = (await tables()).signatures.filter(({ source }) => source !== 'builtin')
          const wanted = rowsOf(after)
          await merge(store, wanted, killedAfter).catch(() => undefined)
          await merge(store, wanted)
          const found = await tables()
          const keys = (rows: readonly SignatureRow[]) => rows.map(keyOf).sort()
          // Signatures: those of files but where the API has one, and all those of the API.
          const isMade = new Set(keys(made))
          const ofFiles = found.signatures.filter(({ source }) => source === 'builtin')
          assert.deepEqual(
            keys(ofFiles),
            keys(wanted.signatures).filter((key) => !isMade.has(key)),
          )
          const left = found.signatures.filter(({ source }) => source !== 'builtin')
          assert.deepEqual(left.map(withoutConfidence).sort(byKey), made.map(withoutConfidence).sort(byKey))
          const wantedByKey = new Map(wanted.signatures.map((row) => [keyOf(row), row]))
          for (const row of ofFiles)
            assert.deepEqual(withoutConfidence(row), withoutConfidence(wantedByKey.get(keyOf(row))!))
          for (const row of found.signatures) assertConfidence(row, found.signatures)
          // Software: what files know, and what the API's signatures are of.
          const kept = new Set(found.software.filter(({ origin }) => origin === 'api').map(({ id }) => id))
          for (const id of kept)
            assert.ok(
              left.some(({ software_id }) => software_id === id),
              id,
            )
          const byId = (one: { id: string }, other: { id: string }) => compareBytes(one.id, other.id)
          assert.deepEqual(found.software.filter(({ id }) => !kept.has(id)).sort(byId), [...wanted.software])
          const owners = new Set([...wanted.software.map(({ id }) => id), ...kept])
          for (const { software_id } of left)
            if (before.some(({ id }) => id === software_id))
              assert.ok(owners.has(software_id), 'it has no owner')
          const names = new Map(found.names.map(({ name, software_id }) => [name, software_id]))
          for (const { name, software_id } of wanted.names) assert.equal(names.get(name), software_id, name)
          for (const { software_id } of found.names) assert.ok(owners.has(software_id), software_id)
          // A second merge changes nothing.
          await merge(store, wanted)
          assert.deepEqual(sorted(await tables()), sorted(found))
        },
      ),
      { numRuns: kind === 'sqlite' ? 40 : 12 },
    )
  })

  test(`${kind}: whether a signature decides is as its file says`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const files = rowsOf([{ id: 's1', name: 'x', has: [{ value: VALUES[0]!, observations: 4 }] }])
    for (const is_decisive of [0, 1, 0] as const) {
      await merge(store, { ...files, signatures: files.signatures.map((row) => ({ ...row, is_decisive })) })
      assert.equal((await store.catalogue.signaturesOf('ja4', VALUES[0]!))[0]!.is_decisive, is_decisive)
    }
  })

  if (kind === 'postgres')
    test('postgres: it knows how large the table is once many signatures have come', async (t) => {
      const url = await freshUrl(kind, t)
      const store = await openAt(t, url)
      const value = (number: number) => `t13d1516h2_${String(number).padStart(12, '0')}_e5627efa2ab1`
      const has = Array.from({ length: 1_000 }, (_, number) => ({ value: value(number), observations: 1 }))
      await merge(store, rowsOf([{ id: 's1', name: 'x', has }]))
      const { db, close } = await openDatabase(url, null, async () => undefined)
      t.teardown(close)
      const { rows } = await sql<{ reltuples: number }>`
        select reltuples from pg_class where relname = 'signatures'`.execute(db)
      assert.deepEqual(rows, [{ reltuples: 1_000 }])
    })

  test(`${kind}: what was taken back comes again with a file, and is the file's`, async (t) => {
    const store = await openAt(t, await freshUrl(kind, t))
    const signature = signatureOf({ softwareId: 's1', value: VALUES[0]! })
    await store.transaction((queries) => store.catalogue.addSignature(signature, queries))
    const files = rowsOf([{ id: 's1', name: 'x', has: [{ value: VALUES[0]!, observations: 4 }] }])
    await merge(store, files)
    assert.equal((await store.catalogue.signaturesOf('ja4', VALUES[0]!))[0]!.source, 'submitted')
    await store.transaction((queries) => store.catalogue.setStatus(signature, 'retired', queries))
    await merge(store, files)
    const [row] = await store.catalogue.signaturesOf('ja4', VALUES[0]!)
    assert.deepEqual([row!.source, row!.status, row!.observations], ['builtin', 'active', 4])
    assert.equal(await store.catalogueMerge.hash(), 'h')
  })
}

interface FileSoftware {
  readonly id: string
  readonly name: string
  readonly has: readonly { readonly value: string; readonly observations: number }[]
}

const VALUES = ['0', '1', '2', '3', '4', '5', '6', '7'].map(
  (digit) => `t13d1516h2_8daaf615277${digit}_e5627efa2ab1`,
)
const IDS = Array.from({ length: 8 }, (_, number) => `s${number}`)

const someFiles: fc.Arbitrary<readonly FileSoftware[]> = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom(...IDS),
    name: fc.constantFrom('x', 'Ünï', '日本', '💥', '\ud800', 'a\0b', '\uffee', "'; --", 'X'.repeat(900)),
    has: fc.uniqueArray(fc.record({ value: fc.constantFrom(...VALUES), observations: fc.nat(3) }), {
      selector: ({ value }) => value,
    }),
  }),
  { selector: ({ id }) => id },
)

const someOfApi = fc
  .uniqueArray(
    fc.record({
      softwareId: fc.constantFrom('', 'unknown', ...IDS),
      value: fc.constantFrom(...VALUES),
      observations: fc.nat(3),
    }),
    { selector: ({ softwareId, value }) => `${value} ${softwareId}`, maxLength: 6 },
  )
  .map((list) =>
    list.map((each) =>
      signatureOf(each.softwareId === '' ? { ...each, status: 'unknown', source: 'observed' } : each),
    ),
  )

interface Rows extends CatalogueRows {
  readonly software: ReturnType<typeof softwareRow>[]
  readonly names: { name: string; software_id: string }[]
  readonly signatures: SignatureRow[]
}

function rowsOf(files: readonly FileSoftware[]): Rows {
  const list = files.map(({ id, name }) => softwareOf({ id, name }))
  const names = new Map<string, string>(list.map(({ id }) => [id, id]))
  for (const software of list)
    for (const name of allNames(software)) if (!names.has(name)) names.set(name, software.id)
  return {
    software: list
      .map((software) => softwareRow(software, 'own', 5))
      .sort((one, other) => compareBytes(one.id, other.id)),
    names: [...names]
      .map(([name, software_id]) => ({ name, software_id }))
      .sort((one, other) => compareBytes(one.name, other.name)),
    signatures: signatureRows(files).sort(byKey),
  }
}

function signatureRows(files: readonly FileSoftware[]): SignatureRow[] {
  const all = files.flatMap(({ id, has }) => has.map((each) => ({ ...each, softwareId: id })))
  return all.map((each) => {
    const owners = all.filter(({ value }) => value === each.value)
    const total = owners.reduce((sum, { observations }) => sum + observations, 0)
    const confidence = confidenceOf(each.observations, total, owners.length)
    return { ...signatureRow(signatureOf(each)), source: 'builtin', confidence }
  })
}

/** In the order of their keys, in which no database has to give them. */
function sorted(tables: Readonly<Record<string, readonly object[]>>): unknown {
  const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row)).sort()
  return Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, lines(rows)]))
}

/** After so many transactions it is killed. */
function merge(store: Store, rows: CatalogueRows, killedAfter = Number.POSITIVE_INFINITY) {
  let left = killedAfter
  const pause = async () => {
    if (--left < 0) throw new Error('killed')
  }
  return store.catalogueMerge.merge(rows, { hash: 'h', nowMs: 1, pause })
}

function assertConfidence(row: SignatureRow, all: readonly SignatureRow[]): void {
  const owners = all.filter((each) => each.value === row.value && each.status === 'active')
  const total = owners.reduce((sum, { observations }) => sum + observations, 0)
  const expected = row.software_id === '' ? 0 : confidenceOf(row.observations, total, owners.length)
  assert.ok(Math.abs(row.confidence - expected) < 1e-9, `${keyOf(row)}: ${row.confidence}, not ${expected}`)
}

function withoutConfidence({ confidence: _, ...row }: SignatureRow) {
  return row
}

type Keyed = Pick<SignatureRow, 'type' | 'value' | 'software_id'>

function keyOf({ type, value, software_id }: Keyed): string {
  return `${type}\t${value}\t${software_id}`
}

function byKey(one: Keyed, other: Keyed): number {
  return keyOf(one) < keyOf(other) ? -1 : 1
}
