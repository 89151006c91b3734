import assert from 'node:assert/strict'
import { test } from 'tap'
import type { WorkerStatus } from '../../src/plane/worker-status.ts'
import { TestManagement } from './management.ts'

test('the workers there are, and what they judge by', async (t) => {
  const serving: WorkerStatus = {
    ...{
      number: 0,
      pid: 100,
      state: 'serving',
      sinceMs: 1_800_000_000_000,
      snapshot: 1,
      dropped: 0,
      unready: [],
    },
  }
  const workers: readonly WorkerStatus[] = [
    serving,
    { ...serving, number: 1, snapshot: 7, unready: ['upstream app: no target is healthy'] },
    { number: 2, pid: null, state: 'gone', sinceMs: null, snapshot: null, dropped: 0, unready: [] },
  ]
  const manage = await TestManagement.start(t, { workers, knows: true })
  const { status, body } = await manage.ask('GET', '/v1/fleet')
  assert.equal(status, 200)
  assert.deepEqual([body.version, body.snapshot.number], ['1.2.3', 1])
  const since = '2027-01-15T08:00:00.000Z'
  assert.deepEqual(body.instances, [
    { id: 'worker-0', pid: 100, state: 'serving', since, snapshot: 1, current: true, reasons: [] },
    {
      ...{ id: 'worker-1', pid: 100, state: 'unready', since, snapshot: 7, current: false },
      reasons: ['upstream app: no target is healthy'],
    },
    { id: 'worker-2', pid: null, state: 'gone', since: null, snapshot: null, current: false, reasons: [] },
  ])
  const none = await TestManagement.start(t)
  assert.deepEqual((await none.ask('GET', '/v1/fleet')).body, {
    version: '1.2.3',
    leads: true,
    snapshot: null,
    instances: [],
    proxies: null,
  })
  const authorization = `Bearer ${await none.key({ scopes: ['read'] })}`
  assert.equal((await none.ask('GET', '/v1/fleet', undefined, { authorization })).status, 403)
})
