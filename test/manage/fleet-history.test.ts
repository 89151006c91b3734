import assert from 'node:assert/strict'
import { test } from 'tap'
import { FleetView } from '../../src/manage/publish/fleet-view.ts'
import type { Heartbeat } from '../../src/plane/heartbeat.ts'
import type { WorkerStatus } from '../../src/plane/worker-status.ts'
import { TestManagement } from './management.ts'

const MINUTE_MS = 60_000
/** The beginning of five minutes. */
const START_MS = Math.floor(Date.UTC(2026, 10, 20) / 300_000) * 300_000
const WORKER: WorkerStatus = {
  ...{ number: 0, pid: 1, state: 'serving', sinceMs: 1, snapshot: 7, dropped: 0, unready: [] },
}

/** A fleet with a clock. `beat`: heartbeats of a proxy, one a minute, for so long. */
function fleetAt(nowMs: number) {
  const clock = { nowMs }
  const view = new FleetView(() => clock.nowMs)
  view.published(7)
  const say = (given: Partial<Heartbeat> = {}) =>
    view.hear({
      ...{ id: 'p1', host: 'edge', version: '1.0.0', configHash: 'a'.repeat(64), startedAtMs: 1 },
      ...{ everyMs: 30_000, snapshot: { number: 7, hash: 'h', madeAtMs: 1 }, source: 'bus', refused: null },
      ...{ workers: [WORKER], sightings: { waiting: 0, dropped: 0 }, isLast: false },
      ...given,
    })
  const beat = (minutes: number, given: Partial<Heartbeat> = {}) => {
    for (let minute = 0; minute < minutes; minute++) {
      say(given)
      clock.nowMs += MINUTE_MS
    }
  }
  const runs = () =>
    view.historyOf('p1').map(({ fromMs, toMs, state, ...flags }) => {
      const said = Object.entries(flags).flatMap(([name, is]) => (is ? [name] : []))
      return [(fromMs - START_MS) / MINUTE_MS, (toMs - START_MS) / MINUTE_MS, state, ...said]
    })
  return { clock, view, say, beat, runs }
}

test('the history of a proxy has its states, and begins with its first heartbeat', async () => {
  const { clock, beat, runs, say } = fleetAt(START_MS)
  assert.deepEqual(runs(), [])
  beat(10)
  beat(5, { workers: [{ ...WORKER, state: 'starting' }] })
  beat(5, { workers: [WORKER, { ...WORKER, unready: ['port is taken'] }] })
  beat(5, { snapshot: { number: 6, hash: 'g', madeAtMs: 1 } })
  beat(5, { refused: { number: 7, why: 'is too new' } })
  assert.deepEqual(runs(), [
    [0, 10, 'serving'],
    [10, 15, 'starting'],
    [15, 20, 'unready'],
    [20, 25, 'serving', 'isBehind'],
    [25, 30, 'serving', 'isRefusing'],
  ])
  // A Snapshot that arrives within the five minutes.
  beat(2, { snapshot: { number: 6, hash: 'g', madeAtMs: 1 } })
  beat(3)
  assert.deepEqual(runs().at(-1), [30, 35, 'serving'])
  // Nothing for a while, and it comes back.
  clock.nowMs += 11 * MINUTE_MS
  say()
  clock.nowMs += MINUTE_MS
  assert.deepEqual(runs().slice(-3), [
    [30, 35, 'serving'],
    [35, 45, 'away'],
    [45, 47, 'stale'],
  ])
})

test('lost Sightings are marked when they are lost, also after a start', async () => {
  const { beat, runs } = fleetAt(START_MS)
  // From before this manager.
  beat(5, { sightings: { waiting: 0, dropped: 40 } })
  beat(5, { sightings: { waiting: 9, dropped: 50 } })
  beat(5, { sightings: { waiting: 0, dropped: 50 } })
  beat(5, { sightings: { waiting: 0, dropped: 0 } })
  beat(5, { sightings: { waiting: 0, dropped: 3 } })
  assert.deepEqual(runs(), [
    [0, 5, 'serving'],
    [5, 10, 'serving', 'isLosing'],
    [10, 20, 'serving'],
    [20, 25, 'serving', 'isLosing'],
  ])
})

test('a proxy that stops and starts again was away, and was not stale', async () => {
  const { clock, beat, runs, say, view } = fleetAt(START_MS)
  beat(5)
  say({ isLast: true })
  assert.equal(view.summary().total, 0)
  clock.nowMs += 10 * MINUTE_MS
  beat(5)
  assert.deepEqual(runs(), [
    [0, 5, 'serving'],
    [5, 15, 'away'],
    [15, 20, 'serving'],
  ])
})

test('a history is 24 hours long', async () => {
  const { clock, beat, runs } = fleetAt(START_MS)
  beat(30 * 60)
  assert.deepEqual(runs(), [[6 * 60 + 5, 30 * 60, 'serving']])
  clock.nowMs += 3 * 24 * 60 * MINUTE_MS
  beat(5)
  const [gone, back, ...more] = runs()
  assert.deepEqual([gone![2], back![2], more], ['away', 'stale', []])
})

test('proxies are listed with their history', async (t) => {
  const { view, beat, clock } = fleetAt(START_MS)
  beat(10)
  beat(5, { refused: { number: 8, why: 'is too new' }, sightings: { waiting: 0, dropped: 2 } })
  const fleet = { isLeading: () => true, view }
  const manage = await TestManagement.start(t, { fleet, nowMs: () => clock.nowMs })
  const { status, body } = await manage.ask('GET', '/v1/fleet/proxies')
  assert.equal(status, 200)
  const at = (minute: number) => new Date(START_MS + minute * MINUTE_MS).toISOString()
  const calm = { behind: false, refusing: false, losing: false }
  assert.deepEqual(body.proxies[0].history, [
    { ...calm, from: at(0), to: at(10), state: 'serving' },
    { ...calm, from: at(10), to: at(15), state: 'serving', refusing: true, losing: true },
  ])
  const authorization = `Bearer ${await manage.key({ apps: ['shop'] })}`
  const team = await manage.ask('GET', '/v1/fleet/proxies', undefined, { authorization })
  assert.equal(team.status, 403, 'a team does not see the fleet')
})
