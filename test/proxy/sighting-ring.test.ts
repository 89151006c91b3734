import assert from 'node:assert/strict'
import { test } from 'tap'
import { SightingRing } from '../../src/proxy/worker/sighting-ring.ts'
import { seen } from '../contract/seen.ts'

let number = 0

test('what waits comes out in order', async () => {
  const ring = new SightingRing(5)
  const added = ['a', 'b', 'a', 'c'].map((app) => put(ring, app))
  assert.deepEqual(ring.take(2), added.slice(0, 2))
  for (const app of ['d', 'e', 'f']) added.push(put(ring, app))
  assert.equal(ring.length, 5)
  assert.deepEqual(ring.take(9), added.slice(2))
  assert.equal(ring.length, 0)
})

test('a full ring drops new Sightings of the app that has the most', async () => {
  const ring = full(10, 'noisy')
  const late = seen(1, { app: 'noisy' })
  assert.equal(ring.add(late), late)
})

test('an app that has less takes the places of the one that has the most, up to the same number', async () => {
  const ring = full(10, 'noisy')
  const losers = Array.from({ length: 8 }, () => ring.add(seen(number++, { app: 'quiet' }))?.app)
  assert.deepEqual(losers.slice(0, 4), new Array(4).fill('noisy'))
  assert.deepEqual(new Set(losers.slice(5)), new Set(['quiet']))
  const apps = ring.take(10).map(({ app }) => app)
  assert.deepEqual(apps.slice(0, 5), new Array(5).fill('noisy'))
  assert.ok(apps.filter((app) => app === 'quiet').length >= 4)
})

test('with 1,000 apps and any order, an app below its part loses none', async () => {
  const ring = new SightingRing(2_000)
  const kept = new Map<string, number>()
  for (let each = 0; each < 60_000; each++) {
    const random = Math.imul(each + 1, 0x9e3779b1) >>> 0
    const isQuiet = random % 100 === 0 && kept.size < 500
    const app = isQuiet ? `quiet-${kept.size}` : 'noisy'
    const loser = ring.add(seen(0, { app }))?.app ?? null
    if (isQuiet) kept.set(app, 1)
    assert.ok(loser === null || loser === 'noisy', `${loser}`)
  }
  const apps = new Set(ring.take(2_000).map(({ app }) => app))
  for (const app of kept.keys()) assert.ok(apps.has(app), app)
})

function put(ring: SightingRing, app: string) {
  const sighting = seen(number++, { app })
  assert.equal(ring.add(sighting), null)
  return sighting
}

function full(size: number, app: string): SightingRing {
  const ring = new SightingRing(size)
  for (let each = 0; each < size; each++) put(ring, app)
  return ring
}
