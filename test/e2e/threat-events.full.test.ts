import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { detectionResult } from '../../src/manage/api/detect.ts'
import { Store } from '../../src/store/store.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { plainEnvironment, run, skipped, temporaryFolder } from './programs.ts'
import { until } from '../until.ts'

const POLICY = `rules:
  - {name: blocked, when: {path: /blocked}, action: block}
  - {name: few, when: {path: /limited}, action: {rate_limit: {per: address, requests: 1, window: 1m}}}
`
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'

test('what curl does behind a policy is told at once, each threat once', {
  skip: skipped('curl'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, POLICY)
  const app = await startApp(t)
  const gatehouse = await startGatehouse(t, {
    ...{ command: 'up', upstream: app.url },
    argv: ['--policy', policy, '--data', folder, '--workers', '1'],
  })
  await until(async () => (await events(gatehouse)).get('up') === 1)
  const startedMs = Date.now()
  await curl(gatehouse, '/blocked?token=secret')
  await until(async () => (await events(gatehouse)).get('threat_detected') === 1)
  const latencyMs = Date.now() - startedMs
  assert.ok(latencyMs < 2_000, `${latencyMs} ms`)

  await curl(gatehouse, '/blocked')
  await curl(gatehouse, '/limited')
  await curl(gatehouse, '/limited')
  await curl(gatehouse, '/', '-H', 'x-agent-name: forged', '-H', 'cookie: session=secret')
  await curl(gatehouse, '/', '-A', CHROME)
  await curl(gatehouse, '/', '-A', 'GPTBot/1.2 (+https://openai.com/gptbot)')
  await until(async () => (await events(gatehouse)).get('new_agent') === 1)
  await until(async () => (await events(gatehouse)).get('sightings') === 7)
  await gatehouse.stop()

  const store = await Store.open(`sqlite:${join(folder, 'gatehouse.db')}`)
  t.teardown(() => store.close())
  const told = await store.events.after(0, 100)
  const byReason = new Map(told.map(({ type, data }) => [JSON.parse(data).reason ?? type, JSON.parse(data)]))
  assert.equal(byReason.size, told.length)
  assert.deepEqual([...byReason.keys()].sort(), [
    ...['blocked', 'forged_headers', 'new_agent', 'rate_limited', 'spoofed_browser'],
  ])
  for (const { data } of told) assert.doesNotMatch(data, /secret/)
  const [blocked, spoofed] = ['blocked', 'spoofed_browser'].map((reason) => byReason.get(reason))
  assert.deepEqual(blocked.request, {
    ...{ method: 'GET', host: new URL(gatehouse.url).host, path: '/blocked', address: '127.0.0.1' },
  })
  assert.deepEqual([blocked.action, blocked.detection.software.id], ['block', 'curl'])
  for (const { detection } of [blocked, spoofed]) {
    detectionResult.parse(detection)
    assert.ok(detection.evidence.some(({ weight }: { weight: number }) => weight !== 0))
  }
  assert.equal(spoofed.detection.evidence[0].kind, 'spoofed-browser')
})

async function curl({ url, caFile }: RunningGatehouse, path: string, ...argv: string[]): Promise<void> {
  const given = ['-sS', '-o', '/dev/null', '--cacert', caFile, ...argv, url + path]
  assert.equal((await run('curl', given, { env: plainEnvironment(tmpdir()) })).status, 0)
}

async function events({ manage }: RunningGatehouse): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  const counts = text.matchAll(/^gatehouse_events_total\{type="(\w+)"\} (\d+)$/gm)
  const stored = /^gatehouse_sightings_stored_total (\d+)$/m.exec(text)?.[1]
  const isUp = /^gatehouse_store_up 1$/m.test(text)
  return new Map([
    ...Array.from(counts, ([, type, value]) => [type!, Number(value)] as const),
    ['sightings', Number(stored)],
    ['up', Number(isUp)],
  ])
}
