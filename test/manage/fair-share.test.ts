import assert from 'node:assert/strict'
import { test } from 'tap'
import { fairShare } from '../../src/apps/fair-share.ts'

test('an app with less than its part keeps all, and the others share the rest', async () => {
  const kept = share({ noisy: 900, loud: 400, quiet: 30 }, 330)
  assert.deepEqual(kept, { noisy: 150, loud: 150, quiet: 30 })
})

test('where there is room, all is kept', async () => {
  assert.deepEqual(share({ noisy: 300, quiet: 30 }, 330), { noisy: 300, quiet: 30 })
})

test('one app alone has all the room', async () => {
  assert.deepEqual(share({ noisy: 5_000 }, 512), { noisy: 512 })
})

test('more apps than there is room for keep one each', async () => {
  const counts = Object.fromEntries(Array.from({ length: 600 }, (_, app) => [`app-${app}`, 3]))
  assert.deepEqual(new Set(Object.values(share(counts, 512))), new Set([1]))
})

test('what is kept is in order, and spread over all', async () => {
  const all = Array.from({ length: 1_000 }, (_, number) => number)
  const kept = fairShare(all, 100, () => 'noisy')
  assert.equal(kept.length, 100)
  for (const [place, number] of kept.entries()) assert.ok(Math.abs(number - place * 10) < 11, `${number}`)
})

function share(counts: Readonly<Record<string, number>>, max: number): Record<string, number> {
  const all = Object.entries(counts).flatMap(([app, count]) => Array.from({ length: count }, () => app))
  const kept = fairShare(all, max, (app) => app)
  return Object.fromEntries(
    Object.keys(counts).map((app) => [app, kept.filter((each) => each === app).length]),
  )
}
