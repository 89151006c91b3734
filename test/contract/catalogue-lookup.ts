import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import {
  JA4_TYPES,
  type Ja4Type,
  partLengths,
  partsOfFingerprint,
} from '../../src/classify/known/fingerprint-form.ts'
import { likenessOf } from '../../src/classify/known/likeness.ts'
import { type SignatureRow, signatureRow, softwareRow } from '../../src/store/catalogue/catalogue.ts'
import { type LookupFingerprint, CatalogueLookup } from '../../src/store/catalogue/catalogue-lookup.ts'
import type { Database, DatabaseKind } from '../../src/store/engine/database.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { freshUrl, openAt, type Owner } from '../store/databases.ts'
import { signatureOf, softwareOf } from './catalogue.ts'

/** What is looked up by indexes, and given up once nothing better can come, is what reading everything finds. */
export function catalogueLookupContract(kind: DatabaseKind): void {
  test(`${kind}: lookups find what comparing with each signature finds`, async (t) => {
    const { db } = await opened(kind, t)
    const numRuns = kind === 'sqlite' ? 100 : 40
    let shortened = 0
    await fc.assert(
      fc.asyncProperty(
        someSignatures,
        fc.uniqueArray(someFingerprint, { maxLength: 6, selector: keyOf }),
        fc.uniqueArray(someFingerprint, { minLength: 1, maxLength: 5, selector: keyOf }),
        fc.integer({ min: 1, max: 8 }),
        async (rows, seen, asked, partialMax) => {
          await db.deleteFrom('signatures').execute()
          await db.deleteFrom('fingerprints_seen').execute()
          await db.insertInto('signatures').values(rows).execute()
          const seenRows = seen
            .filter(({ value }) => !value.includes('*'))
            .map((each) => ({ ...SEEN, ...each }))
          if (seenRows.length > 0) await db.insertInto('fingerprints_seen').values(seenRows).execute()
          const lookup = new CatalogueLookup(db, { exactMax: 500, partialMax, alikeMax: 500 })
          const all = compared(rows, seenRows, asked)
          const exact = all.filter(({ isExact }) => isExact).sort(surestFirst)
          assert.deepEqual((await lookup.exact(asked)).map(shown), exact.map(shown))
          const wanted = all.sort((one, other) => other.score - one.score || surestFirst(one, other))
          const found = await lookup.partial(asked)
          assert.deepEqual(
            found.map((each) => [...shown(each), each.score]),
            wanted.slice(0, partialMax).map((each) => [...shown(each), each.score]),
          )
          if (wanted.length > partialMax) shortened++
        },
      ),
      { numRuns },
    )
    assert.ok(shortened > numRuns / 5, `${shortened} answers were shortened`)
  })

  test(`${kind}: limits results for common parts, and lists all that share more`, async (t) => {
    const { db } = await opened(kind, t)
    const [a, b, c] = ['t13d1516h2', '8daaf6152771', 'e5627efa2ab1']
    const other = (number: number) => String(number).padStart(12, '0')
    const values = [
      ...Array.from({ length: 9 }, (_, i) => `t12i0101h1_${other(i)}_${c}`),
      ...['h1', 'h3'].map((alpn) => `t13d1516${alpn}_${b}_${c}`),
    ]
    const rows = values.map((value) => signatureRow(signatureOf({ value, softwareId: 's0' })))
    await db.insertInto('signatures').values(rows).execute()
    const lookup = new CatalogueLookup(db, { exactMax: 500, partialMax: 500, alikeMax: 4 })
    const scores = (await lookup.partial([{ type: 'ja4', value: `${a}_${b}_${c}` }])).map(
      ({ score }) => score,
    )
    assert.deepEqual(scores.slice(0, 2), [0.57, 0.57])
    const less = scores.slice(2)
    assert.ok(less.length >= 2 && less.length <= 4 && less.every((score) => score === 0.36), String(scores))
  })
}

async function opened(kind: DatabaseKind, t: Owner): Promise<Database> {
  const url = await freshUrl(kind, t)
  await openAt(t, url) // makes the tables
  const database = await openDatabase(url, null, async () => undefined)
  t.teardown(() => database.close())
  const software = OWNERS.map((id) => softwareRow(softwareOf({ id, name: id }), 'own', 1))
  await database.db.insertInto('software').values(software).execute()
  return database
}

interface Compared {
  readonly value: string
  readonly software: { readonly id: string } | null
  readonly confidence: number
  readonly observations: number
  readonly isExact: boolean
  readonly score: number
}

/** With each there is, one after the other. */
function compared(
  rows: readonly SignatureRow[],
  seen: readonly (LookupFingerprint & { readonly requests: number })[],
  asked: readonly LookupFingerprint[],
): Compared[] {
  const found = rows.flatMap((row): Compared[] => {
    const parts = partsOfFingerprint(row.type, row.value)
    const others = asked
      .filter(({ type }) => type === row.type)
      .map(({ type, value }) => partsOfFingerprint(type, value))
    const isExact = others.some((each) => parts.every((part, i) => part === '*' || part === each[i]))
    const score = Math.max(0, ...others.map((each) => likenessOf(row.type, each, parts)))
    if (!isExact && score === 0) return []
    const software = OWNERS.includes(row.software_id) ? { id: row.software_id } : null
    const { value, confidence, observations } = row
    return [{ value, software, confidence, observations, isExact, score }]
  })
  const isSaid = ({ type, value }: LookupFingerprint) => {
    const parts = partsOfFingerprint(type, value)
    const ofType = rows.filter((row) => row.type === type)
    return ofType.some((row) =>
      partsOfFingerprint(type, row.value).every((part, i) => part === '*' || part === parts[i]),
    )
  }
  const unknown = seen.filter((each) => asked.some((one) => keyOf(one) === keyOf(each)) && !isSaid(each))
  return [
    ...found,
    ...unknown.map(({ value, requests: observations }) => ({
      ...{ value, software: null, confidence: 0, observations, isExact: true, score: 1 },
    })),
  ]
}

type Sure = Pick<Compared, 'value' | 'software' | 'confidence' | 'observations'>

function surestFirst(one: Sure, other: Sure): number {
  return (
    Number(one.software === null) - Number(other.software === null) ||
    other.confidence - one.confidence ||
    other.observations - one.observations ||
    (shown(one).join(' ') < shown(other).join(' ') ? -1 : 1)
  )
}

function shown({ value, software }: Sure): readonly string[] {
  return [value, software?.id ?? '']
}

function keyOf({ type, value }: LookupFingerprint): string {
  return `${type} ${value}`
}

const OWNERS = ['s0', 's1', 's2']
const SEEN = {
  ...{ first_seen_ms: 1, last_seen_ms: 2, requests: 5, addresses: 1 },
  ...{ sketch: '', is_named: 0 as const, rank: 1 },
}

/** Of few parts, so that much is alike. */
const someFingerprint: fc.Arbitrary<LookupFingerprint> = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: fc.constant<Ja4Type>('ja4') }, fc.constantFrom(...JA4_TYPES)),
    fc.array(fc.constantFrom('*', '1', '1', '2', '2', '3'), { minLength: 4, maxLength: 4 }),
  )
  .map(([type, digits]) => {
    const parts = partLengths(type).map((length, i) => (digits[i] === '*' ? '*' : digits[i]!.repeat(length)))
    if (parts.some((part) => part !== '*')) return { type, value: parts.join('_') }
    const [, ...others] = parts
    return { type, value: ['1'.repeat(partLengths(type)[0]!), ...others].join('_') }
  })

const someSignatures: fc.Arbitrary<readonly SignatureRow[]> = fc.uniqueArray(
  fc
    .tuple(someFingerprint, fc.constantFrom('', ...OWNERS), fc.nat(3), fc.constantFrom('active', 'trial'))
    .map(([{ type, value }, softwareId, observations, status]) =>
      signatureRow(
        signatureOf({ type, value, softwareId, observations, status: status as 'active' | 'trial' }),
      ),
    ),
  {
    minLength: 10,
    maxLength: 40,
    selector: ({ type, value, software_id }) => `${type} ${value} ${software_id}`,
  },
)
