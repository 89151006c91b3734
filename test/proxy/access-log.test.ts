import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { AppIndex } from '../../src/apps/app-index.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { silentLog } from '../../src/shared/log.ts'
import { ClientPrivacy, FULL_PRIVACY } from '../../src/plane/privacy/client-privacy.ts'
import { AccessLog, type AccessEntry, commonLine, jsonLine } from '../../src/proxy/request/access-log.ts'
import type { DecisionId } from '../../src/proxy/connection/decision-id.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { startGate } from './test-gate.ts'
import { until } from './test-worker.ts'
import { settingsFor } from './upstream-fixture.ts'

const FULL = new ClientPrivacy(FULL_PRIVACY)
const ENTRY: AccessEntry = {
  endedMs: Date.UTC(2026, 10, 26, 8, 7, 6, 5),
  head: {
    method: 'GET',
    target: '/shop?token=secret',
    version: '11',
    rawHeaders: ['Host', 'a.example', 'User-Agent', 'curl/8.0'],
  },
  authority: 'a.example',
  judged: {
    id: '0199-id' as DecisionId,
    address: '192.0.2.1',
    app: new AppIndex([], 'shop').appOf('a.example'),
    verdict: UNKNOWN,
    decision: { action: { kind: 'block' }, rule: 'no bots' } as AccessEntry['judged']['decision'],
    print: { connection: { ja4: null } },
    mcp: null,
  },
  status: 403,
  bytes: null,
  durationMs: 12.3456,
  upstreamMs: null,
}

test('a line in the common log format has the decision behind it, and no query', async () => {
  assert.equal(
    commonLine(ENTRY, FULL),
    '192.0.2.1 - - [26/Nov/2026:08:07:06 +0000] "GET /shop HTTP/1.1" 403 - "curl/8.0" "a.example" ' +
      '0199-id unknown - block 0.012 -\n',
  )
  const passed = { ...ENTRY, status: 200, bytes: 5, upstreamMs: 10 }
  assert.match(commonLine(passed, FULL), / 200 5 .* 0\.012 0\.010\n$/)
  assert.match(commonLine({ ...ENTRY, status: 0 }, FULL), /HTTP\/1\.1" - - /)
})

test('a line of JSON has the same and more', async () => {
  const { time, path, status, decision_id, rule, action, duration_ms, upstream_ms } = JSON.parse(
    jsonLine(ENTRY, FULL),
  )
  assert.deepEqual(
    [time, path, status, decision_id, rule, action, duration_ms, upstream_ms],
    ['2026-11-26T08:07:06.005Z', '/shop', 403, '0199-id', 'no bots', 'block', 12.346, null],
  )
  assert.equal(JSON.parse(jsonLine(ENTRY, FULL)).app, 'shop')
  assert.doesNotMatch(jsonLine(ENTRY, FULL), /secret/)
  const agent = { id: 'bot', name: 'Bot', category: 'crawler', purposes: ['search', 'training'] }
  const named = { ...ENTRY, judged: { ...ENTRY.judged, verdict: { ...UNKNOWN, agent } } }
  const { category, purpose } = JSON.parse(jsonLine(named, FULL))
  assert.deepEqual([category, purpose], ['crawler', ['search', 'training']])
  assert.deepEqual(JSON.parse(jsonLine(ENTRY, FULL)).purpose, [])
})

test('bytes of a client cannot begin another line or field', async () => {
  const rawHeaders = ['User-Agent', 'a" "b\\\u0080\t\u00ff']
  const head = { ...ENTRY.head, target: '/\u00e9"\\', rawHeaders }
  assert.match(
    commonLine({ ...ENTRY, head }, FULL),
    / "GET \/\\xe9\\"\\\\ HTTP\/1\.1" 403 - "a\\" \\"b\\\\\\x80\\x09\\xff" /,
  )
  assert.equal(jsonLine({ ...ENTRY, head }, FULL).split('\n').length, 2)
})

test('requests are written when they are over, whatever became of them', async (t) => {
  const file = join(temporaryFolder(t), 'access.log')
  const log = new AccessLog({ format: 'json', file, sample: 1 }, silentLog(), FULL)
  t.teardown(() => log.close())
  const gate = await startGate(t, {
    upstreams: [settingsFor([await appUrl(t)])],
    policy: { rules: [{ name: 'shut', when: { path: '/shut' }, action: 'block' }] },
    context: { accessLog: log },
  })
  for (const path of ['/open?q=1', '/shut']) {
    const request = http.get({ host: '127.0.0.1', port: gate.plain.port, path, agent: false })
    const [response] = await once(request, 'response')
    await once(response.resume(), 'end')
  }
  await until(() => linesIn(file).length === 2)
  const [open, shut] = linesIn(file)
  assert.deepEqual(
    [open!['path'], open!['status'], open!['bytes'], open!['action'], typeof open!['upstream_ms']],
    ['/open', 200, 6, 'tag', 'number'],
  )
  assert.deepEqual(
    [shut!['path'], shut!['status'], shut!['action'], shut!['upstream_ms']],
    ['/shut', 403, 'block', null],
  )
  assert.equal(open!['decision_id'], gate.sightings[0]!.id)
})

test('a file that was moved away is opened anew, and no line is lost', async (t) => {
  const file = join(temporaryFolder(t), 'access.log')
  const log = new AccessLog({ format: 'json', file, sample: 1 }, silentLog(), FULL)
  add(log)
  await until(() => linesIn(file).length === 1)
  renameSync(file, `${file}.1`)
  await until(() => existsSync(file))
  add(log)
  log.close()
  assert.deepEqual([linesIn(`${file}.1`).length, linesIn(file).length], [1, 1])
})

test('a share of the requests is written', async (t) => {
  const file = join(temporaryFolder(t), 'access.log')
  const log = new AccessLog({ format: 'common', file, sample: 0.1 }, silentLog(), FULL)
  for (let i = 0; i < 1_000; i++) add(log)
  log.close()
  const count = readFileSync(file, 'utf8').split('\n').length - 1
  assert.ok(count > 40 && count < 200, String(count))
})

test('waiting lines are bounded, and dropped ones are counted', async (t) => {
  const file = join(temporaryFolder(t), 'access.log')
  const log = new AccessLog({ format: 'common', file, sample: 1 }, silentLog(), FULL)
  for (let i = 0; i < 80_000; i++) add(log)
  assert.ok(log.dropped > 0)
  const { dropped } = log
  log.close()
  assert.equal(readFileSync(file, 'utf8').split('\n').length - 1, 80_000 - dropped)
})

test('a file that cannot be written is a fault that names the setting', async (t) => {
  const file = join(temporaryFolder(t), 'missing', 'access.log')
  assert.throws(
    () => new AccessLog({ format: 'json', file, sample: 1 }, silentLog(), FULL),
    /proxy\.access_log_file: .*missing\/access\.log cannot be written \(ENOENT\)/,
  )
})

function add(log: AccessLog): void {
  const { head, authority, judged, status, bytes, durationMs, endedMs } = ENTRY
  log.add({ head, authority }, { judged, status, bytes, durationMs, askedMs: 0 }, endedMs)
}

function linesIn(file: string): Record<string, unknown>[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return lines.map((line) => JSON.parse(line))
}

async function appUrl(t: Test): Promise<string> {
  const app = http.createServer((_, response) => response.end('a page')).listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.close())
  return `http://127.0.0.1:${(app.address() as AddressInfo).port}`
}
