import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { DecisionIds } from '../../src/proxy/connection/decision-id.ts'
import { AddressSketch } from '../../src/store/engine/address-sketch.ts'
import { parts } from '../../src/store/engine/bulk.ts'
import { idPlace, PlaceRanges } from '../../src/store/catalogue/place-ranges.ts'

test('ranges know what a set knows', async () => {
  const property = fc.property(fc.array(fc.nat(60), { maxLength: 100 }), fc.nat(100), (places, cut) => {
    const taken = new Set<number>()
    let ranges = new PlaceRanges()
    for (const [at, place] of places.entries()) {
      if (at === cut) ranges = new PlaceRanges(ranges.text)
      assert.equal(ranges.add(place), taken.has(place) ? 'taken' : 'fresh')
      taken.add(place)
    }
    const bounds = JSON.parse(ranges.text) as number[]
    // As few as there can be, in order, none touching another.
    for (let at = 1; at < bounds.length; at++)
      assert.ok(bounds[at]! - bounds[at - 1]! >= (at % 2 === 0 ? 2 : 0))
  })
  fc.assert(property, { numRuns: 500 })
})

test('what a process counts is one range, and what it cannot have counted is refused', async () => {
  const ranges = new PlaceRanges()
  for (let place = 0; place < 100_000; place++) assert.equal(ranges.add(place), 'fresh')
  assert.equal(ranges.text, '[0,99999]')
  const crowded = new PlaceRanges()
  const outcomes = Array.from({ length: 5_000 }, (_, at) => crowded.add(at * 2))
  assert.deepEqual([outcomes.indexOf('crowded'), outcomes.lastIndexOf('fresh')], [4_000, 3_999])
  assert.ok(crowded.text.length < 100_000)
  assert.deepEqual([crowded.add(0), crowded.add(1)], ['taken', 'fresh'])
})

test('ids of a proxy have places of their own', async () => {
  const ids = [new DecisionIds(1_790_000_000_000), new DecisionIds(1_790_000_000_000)]
  const places = new Set<string>()
  for (let beat = 0; beat < 30; beat++) {
    for (const each of ids) {
      each.beat(1_790_000_000_000 + beat * 100)
      for (let i = 0; i < 300; i++) places.add(JSON.stringify(idPlace(each.next())))
    }
  }
  assert.equal(places.size, 30 * 2 * 300)
  const slots = new Set([...places].map((place) => JSON.parse(place).slot))
  assert.equal(slots.size, 3 * 2)
  const id = ids[0]!.next()
  for (const other of [
    id.toUpperCase(),
    `${id}0`,
    id.slice(1),
    `${id.slice(0, 14)}4${id.slice(15)}`,
    ` ${id}`,
    `${id}\n`,
    '',
  ])
    assert.equal(idPlace(other), null, other)
})

test('a sketch of addresses is exact while they are few, and near when they are many', async () => {
  let chance = 1
  const hash = () => {
    chance = Math.imul(chance ^ (chance >>> 15), 0x2c1b3c6d) + 0x9e3779b9
    return (Math.imul(chance ^ (chance >>> 13), 0x297a2d39) ^ (chance >>> 16)) >>> 0
  }
  for (const count of [0, 1, 5, 16, 17, 50, 200, 1_000, 20_000]) {
    const errors: number[] = []
    for (let round = 0; round < 30; round++) {
      const hashes = Array.from({ length: count }, hash)
      const whole = new AddressSketch()
      const halves = [new AddressSketch(), new AddressSketch()] as const
      for (const [at, each] of hashes.entries()) {
        whole.add(each)
        whole.add(each)
        halves[at % 2]!.add(each)
      }
      halves[0].join(AddressSketch.parse(halves[1].text))
      // Once in a thousand addresses the half of a hash says less than all of it.
      assert.ok(Math.abs(halves[0].count / Math.max(whole.count, 1) - 1) < 0.1 || count === 0)
      assert.equal(AddressSketch.parse(whole.text).count, whole.count)
      assert.ok(whole.text.length <= 4 + 16 * 4)
      if (count <= 16) assert.equal(whole.count, count)
      errors.push(whole.count / Math.max(count, 1) - 1)
    }
    const mean = errors.reduce((sum, each) => sum + each, 0) / errors.length
    if (count > 16) assert.ok(Math.abs(mean) < 0.12, `${count}: ${mean}`)
    assert.ok(count <= 16 || errors.every((error) => Math.abs(error) < 0.6), `${count}: ${errors}`)
  }
})

test('rows come in parts of few sizes, all of them and in order', async () => {
  for (const length of [0, 1, 2, 3, 127, 128, 129, 1000]) {
    const rows = Array.from({ length }, (_, at) => at)
    const all = [...parts(rows)]
    assert.deepEqual(all.flat(), rows)
    for (const part of all) assert.ok([1, 2, 4, 8, 16, 32, 64, 128].includes(part.length))
  }
})
