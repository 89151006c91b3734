import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { until } from '../until.ts'
import { TestManagement } from './management.ts'
import { event } from './webhook-site.ts'

for (const kind of KINDS) {
  test(`${kind}: the sinks say whether events arrive`, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'gatehouse-sinks-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'events.jsonl')
    // Port 1 is closed.
    const syslog = { url: 'tcp://127.0.0.1:1', format: 'json', ca: null } as const
    const storeUrl = await freshUrl(kind, t)
    const sinks = { file: { file, format: 'json' }, syslog } as const
    const manage = await TestManagement.start(t, { storeUrl, sinks })
    const listed = async () => (await manage.ask('GET', '/v1/sinks')).body.sinks
    const idle = { state: 'current', waiting: 0, oldest_waiting_at: null }
    assert.deepEqual(await listed(), [
      { kind: 'file', place: file, ...idle },
      { kind: 'syslog', place: 'tcp://127.0.0.1:1', ...idle },
    ])
    const store = await openAt(t, storeUrl)
    const atMs = Date.now() - 31_000
    const old = [event({ atMs }), event({ atMs: atMs + 1 }), event({ atMs, type: 'test' })]
    await store.transaction((queries) => new EventLog(store).add(old, queries))
    await until(async () => (await listed())[0].waiting === 0 && (await listed())[1].waiting === 2)
    const [written, waiting] = await listed()
    assert.equal(written.state, 'current')
    assert.deepEqual([waiting.state, waiting.oldest_waiting_at], ['behind', new Date(atMs).toISOString()])
    assert.deepEqual(await store.events.waiting(0, 1), { count: 1, oldestAtMs: atMs })
    const own = { authorization: `Bearer ${await manage.key({ scopes: ['admin'], apps: ['default'] })}` }
    assert.equal((await manage.ask('GET', '/v1/sinks', undefined, own)).body.code, 'needs_all_apps')
  })
}
