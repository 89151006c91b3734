import assert from 'node:assert/strict'
import { test } from 'tap'
import { createLogTo } from '../../src/shared/log.ts'
import { type UnhealthyTarget, UpstreamLog } from '../../src/proxy/upstream/upstream-log.ts'

const DOWN: UnhealthyTarget = { upstream: 'app', target: 'http://127.0.0.1:1', failure: 'refused' }
const OTHER: UnhealthyTarget = { ...DOWN, target: 'http://127.0.0.1:2', failure: 'check' }

test('one line for each direction, however many workers say it and however often', async () => {
  const { log, lines } = kept()
  const upstreams = new UpstreamLog(log)
  for (let beat = 0; beat < 5; beat++) for (const worker of [0, 1, 2]) upstreams.heard(worker, [DOWN])
  upstreams.heard(0, [])
  upstreams.heard(1, [])
  upstreams.heard(1, [DOWN])
  assert.deepEqual(lines(), ['an upstream target is unhealthy http://127.0.0.1:1 refused'])
  for (const worker of [0, 1, 2, 0]) upstreams.heard(worker, [])
  assert.deepEqual(lines().slice(1), ['an upstream target is healthy again http://127.0.0.1:1 undefined'])
  upstreams.heard(2, [DOWN])
  assert.equal(lines().length, 3, 'the next outage is logged again')
})

test('targets are told apart, and what is unhealthy is logged with what to do', async () => {
  const { log, lines, written } = kept()
  const upstreams = new UpstreamLog(log)
  upstreams.heard(0, [DOWN, OTHER])
  upstreams.heard(0, [OTHER])
  assert.deepEqual(lines(), [
    'an upstream target is unhealthy http://127.0.0.1:1 refused',
    'an upstream target is unhealthy http://127.0.0.1:2 check',
    'an upstream target is healthy again http://127.0.0.1:1 undefined',
  ])
  assert.match(written[0]!, /"level":"warn".*gatehouse doctor/)
})

function kept() {
  const written: string[] = []
  const log = createLogTo('info', { write: (line) => void written.push(line) })
  const lines = () =>
    written
      .map((line) => JSON.parse(line))
      .map(({ message, target, failure }) => `${message} ${target} ${failure}`)
  return { log, lines, written }
}
