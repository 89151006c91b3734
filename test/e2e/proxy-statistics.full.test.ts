import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { Store } from '../../src/store/store.ts'
import { addsUp } from '../contract/sightings.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'
import { workersOf } from '../processes.ts'
import { until } from '../until.ts'

const PATHS = ['/', '/blocked', '/trial']
const POLICY = `rules:
  - {name: trial, when: {path: /trial}, action: block, dry_run: true}
  - {name: blocked, when: {path: /blocked}, action: block}
  - {name: trial passes, when: {path: /trial}, action: pass}
`

test('statistics are what was sent, and what the metrics say, also when a worker dies', async (t) => {
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, POLICY)
  const key = await keyIn(`sqlite:${join(folder, 'gatehouse.db')}`)
  const app = await startApp(t)
  const gatehouse = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    expects: /a worker died/,
    argv: ['--policy', policy, '--data', folder, '--workers', '2'],
  })
  for (let round = 0; round < 10; round++) {
    await Promise.all(PATHS.map((path) => ask(gatehouse, path, 'curl/8.5.0')))
    await ask(gatehouse, '/', 'GPTBot/1.2 (+https://openai.com/gptbot)')
  }
  await agreed(gatehouse, key, 40)
  const [worker] = workersOf(gatehouse.pid)
  process.kill(worker!, 'SIGKILL')
  await until(async () => (await metrics(gatehouse)).get('worker_restarts_total') === 1)
  await until(async () => (await metrics(gatehouse)).get('workers_listening') === 2)
  for (let round = 0; round < 10; round++)
    await Promise.all(PATHS.map((path) => ask(gatehouse, path, 'curl/8.5.0')))
  const { detection, agents } = await agreed(gatehouse, key, 70)
  assert.equal(detection.blocked, 20) // and none by the rule on trial
  assert.equal(detection.by_action.pass, 20)
  assert.equal(agents.new, agents.seen)
  const headers = { authorization: `Bearer ${key}` }
  const gptbot = await fetch(`${gatehouse.manage}/v1/agents/gptbot`, { headers })
  assert.deepEqual(((await gptbot.json()) as { versions: unknown }).versions, ['1.2'])
})

test('statistics count all requests, and a share is recorded', async (t) => {
  const folder = temporaryFolder(t)
  const key = await keyIn(`sqlite:${join(folder, 'gatehouse.db')}`)
  const app = await startApp(t)
  const policy = join(folder, 'policy.yaml')
  writeFileSync(policy, POLICY)
  const gatehouse = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    argv: ['--policy', policy, '--data', folder, '--workers', '1'],
    variables: { GATEHOUSE_SIGHTINGS_SAMPLE_DEFAULT: '0' },
  })
  for (let round = 0; round < 20; round++)
    await Promise.all(PATHS.map((path) => ask(gatehouse, path, 'curl/8.5.0')))
  await until(async () => (await statsOf(gatehouse, key))?.detection.requests === 60)
  const { detection } = await statsOf(gatehouse, key)
  assert.deepEqual([detection.blocked, detection.by_action.pass, detection.by_action.tag], [20, 20, 20])
  const headers = { authorization: `Bearer ${key}` }
  const found = await fetch(`${gatehouse.manage}/v1/requests?limit=100`, { headers })
  const { requests } = (await found.json()) as { requests: { action: string; sampled: number }[] }
  // The blocked ones, and the first one of this client.
  assert.equal(requests.filter(({ action }) => action === 'block').length, 20)
  assert.ok(requests.length <= 21, `${requests.length}`)
  assert.ok(requests.every(({ sampled }) => sampled === 1))
  assert.equal((await metrics(gatehouse)).get('sightings_total outcome=sampled_out'), 60 - requests.length)
})

test('what was seen last before it is stopped is there when it runs again', async (t) => {
  const folder = temporaryFolder(t)
  const key = await keyIn(`sqlite:${join(folder, 'gatehouse.db')}`)
  const app = await startApp(t)
  const file = join(folder, 'seen.jsonl')
  const options = { command: 'up', upstream: app.url, argv: ['--data', folder, '--workers', '2'] } as const
  const first = await startGatehouse(t, { ...options, variables: { GATEHOUSE_SIGHTINGS_FILE: file } })
  for (let round = 0; round < 5; round++)
    await Promise.all(PATHS.map((path) => ask(first, path, 'curl/8.5.0')))
  await first.stop()
  const second = await startGatehouse(t, options)
  await until(async () => (await statsOf(second, key)) !== null)
  const { detection } = await statsOf(second, key)
  assert.equal(detection.requests, 15)
  assert.equal(readFileSync(file, 'utf8').trimEnd().split('\n').length, 15)
})

/** Waits until statistics have that many requests, then checks that the metrics say the same; resolves to them. */
async function agreed(gatehouse: RunningGatehouse, key: string, requests: number) {
  // What workers have counted is known here a little later.
  await until(async () => (await metrics(gatehouse)).get('requests_total') === requests)
  await until(async () => (await statsOf(gatehouse, key)).detection.requests >= requests)
  const found = await statsOf(gatehouse, key)
  const counted = await metrics(gatehouse)
  addsUp(found)
  assert.equal(found.detection.requests, requests)
  for (const name of ['sightings_received_total', 'sightings_stored_total'])
    assert.equal(counted.get(name), requests, name)
  for (const action of ['block', 'pass', 'tag'])
    assert.equal(
      counted.get(`requests_total action=${action}`) ?? 0,
      found.detection.by_action[action],
      action,
    )
  assert.equal(counted.get('requests_total verdict=agent') ?? 0, found.detection.agents)
  assert.equal(counted.get('ingest_failures_total'), 0)
  return found
}

/** `null`: the database is not open yet. */
async function statsOf({ manage }: RunningGatehouse, key: string) {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(`${manage}/v1/stats?window=1h`, { headers })
  if (response.status === 503) return null
  assert.equal(response.status, 200)
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  return (await response.json()) as any
}

/** Sums by name, and by name and label. */
async function metrics({ manage }: RunningGatehouse): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>()
  const text = await (await fetch(`${manage}/metrics`)).text()
  for (const [, name, labels = '', value] of text.matchAll(/^gatehouse_(\w+)(?:\{(.*)\})? (\S+)$/gm)) {
    const keys = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, of]) => `${name} ${label}=${of}`)
    for (const key of [name!, ...keys]) sums.set(key, (sums.get(key) ?? 0) + Number(value))
  }
  return sums
}

async function ask({ port, ca }: RunningGatehouse, path: string, userAgent: string): Promise<void> {
  const headers = { 'user-agent': userAgent }
  const sent = request({ host: '127.0.0.1', servername: 'localhost', port, path, ca, headers, agent: false })
  sent.end()
  const [response] = await once(sent, 'response')
  response.resume()
  await once(response, 'end')
}

async function keyIn(storeUrl: string): Promise<string> {
  const store = await Store.open(storeUrl)
  const wanted = {
    name: 'test',
    apps: '*' as const,
    scopes: ['read' as const],
    plan: 'unlimited' as const,
    expiresAtMs: null,
  }
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  return key
}
