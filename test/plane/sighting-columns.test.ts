import assert from 'node:assert/strict'
import { deserialize, serialize } from 'node:v8'
import fc from 'fast-check'
import { test } from 'tap'
import type { Sighting } from '../../src/plane/sighting.ts'
import { fromColumns, type SightingColumns, toColumns } from '../../src/plane/sighting-columns.ts'
import { sighting } from '../contract/bus.ts'
import { ANY_CHARACTER } from '../any-character.ts'
import { timeBox } from '../time-box.ts'

test('Sightings come out of columns as they went in, each field of each', async () => {
  const fields = Object.keys(sighting(0)) as (keyof Sighting)[]
  for (const field of fields) {
    const batch = Array.from({ length: 9 }, (_, i) => ({ ...sighting(0), ...another(field, i % 3) }))
    assert.deepEqual(overWire(batch), batch, field)
    const alone = batch.map((each, i) => (i === 4 ? { ...each, ...another(field, 7) } : each))
    assert.deepEqual(overWire(alone), alone, field)
  }
  assert.deepEqual(overWire([]), [])
  assert.deepEqual(overWire([sighting(1)]), [sighting(1)])
})

test('whatever they have in common', async () => {
  const text = fc.string({ unit: ANY_CHARACTER, maxLength: 20 })
  const few = fc.constantFrom(null, 'a', 'b', '')
  const name = fc.stringMatching(/^[a-z-]{1,12}$/)
  const changes = fc.record({
    seenAtMs: fc.integer(),
    address: fc.oneof(few.map(String), text),
    path: text,
    userAgent: fc.oneof(few, text),
    ja4h: few,
    confidence: fc.double({ min: 0, max: 1, noNaN: true }),
    nameConfidence: fc.constantFrom(0, 0.5, 0.999),
    evidence: fc.array(name, { maxLength: 3 }),
    forged: fc.array(name, { maxLength: 2 }),
    dryRun: fc.boolean(),
  })
  const property = fc.property(fc.array(changes, { maxLength: 60 }), (all) => {
    const batch = all.map((each, i) => ({ ...sighting(i), ...each }))
    assert.deepEqual(overWire(batch), batch)
  })
  fc.assert(property, timeBox(100_000, 2_000))
})

test('more than places can be told apart', async () => {
  const batch = Array.from({ length: 70_000 }, (_, i) => ({
    ...sighting(i),
    path: i % 2 === 0 ? '/' : '/other',
  }))
  assert.deepEqual(overWire(batch), batch)
})

test('what many have in common is said once', async () => {
  const batch = Array.from({ length: 512 }, (_, i) => ({
    ...sighting(i),
    snapshot: 1,
    userAgent: 'x'.repeat(200),
  }))
  assert.ok(serialize(toColumns(batch)).length < serialize(batch).length / 8)
})

function overWire(batch: readonly Sighting[]): readonly Sighting[] {
  return fromColumns(deserialize(serialize(toColumns(batch))) as SightingColumns)
}

/** Another value of the same kind. */
function another(field: keyof Sighting, number: number): Partial<Sighting> {
  const value = sighting(0)[field]
  if (typeof value === 'number') return { [field]: number / 4 }
  if (typeof value === 'boolean') return { [field]: number % 2 === 0 }
  if (Array.isArray(value)) return { [field]: Array.from({ length: number }, (_, i) => `${field}-${i}`) }
  return { [field]: value === null && number === 0 ? null : `${field} ${number}` }
}
