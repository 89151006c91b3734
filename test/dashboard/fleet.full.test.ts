import assert from 'node:assert/strict'
import { test } from 'tap'
import type { WorkerStatus } from '../../src/plane/worker-status.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('a gateway shows its workers, and what is wrong with one', { skip }, async (t) => {
  const worker: WorkerStatus = {
    ...{ number: 0, pid: 100, state: 'serving', sinceMs: Date.now() - 60_000, snapshot: 1, dropped: 0 },
    unready: [],
  }
  const workers = [worker, { ...worker, number: 1, unready: ['upstream app: no target is healthy'] }]
  const { page, goTo } = await openDashboard(t, { workers, knows: true })
  await goTo('fleet')
  await page.getByRole('row', { name: /worker-0.* serving/ }).waitFor()
  await page.getByText('upstream app: no target is healthy').waitFor()
  await page.getByText('only the workers of this gateway (no fleet)').waitFor()
  await looksFine(page, 'fleet-alone')
})

test('a fleet shows its proxies, however many, and says what to do', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  const at = new Date().toISOString()
  const one = (number: number) => ({
    ...{
      id: `${number}`.padStart(16, '0'),
      host: `proxy-${number}`,
      version: '1.2.3',
      config_hash: 'c'.repeat(64),
    },
    ...{ state: number === 3 ? 'stale' : 'serving', started_at: at, heard_at: at, snapshot_source: 'bus' },
    snapshot: { number: 7, hash: 'h'.repeat(64), made_at: at, age_s: 90 },
    refused_snapshot: number === 2 ? { number: 8, reason: 'of a later version' } : null,
    ...{ current: number !== 2, workers: [], sightings: { waiting: 0, dropped: 0 } },
    history: number === 4 ? [] : past(number),
  })
  const proxies = {
    ...{ total: 10_000, serving: 9_999, unready: 0, starting: 0, stale: 1, current: 9_999 },
    ...{ by_version: { '1.2.3': 10_000 }, oldest_snapshot_made_at: at },
  }
  const fleet = { version: '1.2.3', leads: true, snapshot: null, instances: [], proxies }
  await page.route('**/v1/fleet', (route) => route.fulfill({ json: fleet }))
  const asked: string[] = []
  await page.route('**/v1/fleet/proxies*', (route) => {
    const query = new URL(route.request().url()).searchParams
    asked.push(query.toString())
    const [number, limit] = [Number(query.get('page')), Number(query.get('limit'))]
    const rows = Array.from({ length: limit }, (_, index) => one((number - 1) * limit + index))
    return route.fulfill({ json: { proxies: rows, total: 10_000, page: number, limit } })
  })
  await goTo('fleet')
  const table = page.getByRole('table', { name: 'Proxies' })
  await table.getByRole('row', { name: /^proxy-0 / }).waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '10001')
  await table.getByText('refuses Snapshot 8: of a later version').waitFor()
  await page.getByText(/Missed three heartbeats: 1 proxy/).waitFor()
  const strips = table.getByRole('img')
  assert.equal(await strips.nth(0).getAttribute('aria-label'), '6 h known: no trouble')
  const troubled = '6 h known: away for 10 min, stale for 5 min, older Snapshot for 5 min'
  await table.getByRole('img', { name: `${troubled}, lost sightings for 5 min` }).waitFor()
  assert.equal(
    await table
      .getByRole('row', { name: /^proxy-4 / })
      .getByRole('img')
      .count(),
    0,
  )
  const parts = strips.nth(3).locator('span')
  assert.deepEqual(await parts.evaluateAll((spans) => spans.map((span) => span.className)), [
    'past-good',
    'past-away',
    'past-bad',
    'past-warn',
    'past-bad',
    'past-good',
  ])
  const [strip, first] = [await strips.nth(3).boundingBox(), await parts.first().boundingBox()]
  assert.ok(Math.abs(first!.x - (strip!.x + 0.75 * strip!.width)) < 2, 'it begins where it is known')
  await looksFine(page, 'fleet')
  // By the keyboard, to the very end.
  await table.focus()
  await page.keyboard.press('End')
  // By itself, so that a failure says whether the table did not scroll or did not load.
  await page.waitForFunction(
    (view) => {
      const { scrollTop, clientHeight, scrollHeight } = view as unknown as Record<string, number>
      return scrollTop! + clientHeight! > scrollHeight! - 2
    },
    await table.elementHandle(),
  )
  await table.getByRole('row', { name: /^proxy-9999 / }).waitFor()
  // What is scrolled past is not waited for; of a hundred parts few are asked for.
  assert.ok(asked.length < 30, asked.join('\n'))
  await page.getByLabel('State').selectOption('stale')
  await page.waitForURL(/state=stale/)
  await table.getByRole('row', { name: /^proxy-0 / }).waitFor()
  assert.ok(asked.at(-1)!.includes('state=stale'))
})

/** Six hours; with some trouble of the third proxy. */
function past(number: number) {
  const calm = { state: 'serving', behind: false, refusing: false, losing: false }
  const lengths: readonly (readonly [minutes: number, run: object])[] =
    number === 3
      ? [
          ...([
            [60, {}],
            [10, { state: 'away' }],
            [5, { state: 'stale' }],
          ] as const),
          ...([
            [5, { behind: true }],
            [5, { losing: true }],
            [275, {}],
          ] as const),
        ]
      : [[360, {}]]
  let atMs = Date.now() - 6 * 3_600_000
  return lengths.map(([minutes, run]) => {
    const from = new Date(atMs).toISOString()
    atMs += minutes * 60_000
    return { ...calm, ...run, from, to: new Date(atMs).toISOString() }
  })
}
