import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import { Store } from '../../src/store/store.ts'
import { startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'
import { workersOf } from '../processes.ts'

const BLOCK = { rules: [{ name: 'no-entry', when: { path: '/no*' }, action: { block: { status: 451 } } }] }

test('a policy set through the API blocks in every worker, is taken back, and outlives a restart', async (t) => {
  const app = await startApp(t)
  const folder = temporaryFolder(t)
  const key = await keyIn(folder)
  const options = { command: 'up', upstream: app.url, argv: ['--workers', '2', '--data', folder] } as const
  const gatehouse = await startGatehouse(t, options)
  const api = client(gatehouse, key)
  const before = await api('GET', '/v1/policy')
  assert.deepEqual([before.status, before.body.source], [200, 'default'])
  assert.deepEqual(await statusesOfEach(gatehouse), [200, 200])

  const put = await api('PUT', '/v1/policy', BLOCK, { 'if-match': before.etag })
  assert.deepEqual([put.status, put.body.version], [200, 1])
  await soon(async () => assert.deepEqual(await statusesOfEach(gatehouse), [451, 451]))
  await soon(async () => {
    const { instances, snapshot } = (await api('GET', '/v1/fleet')).body
    const facts = instances.map(({ pid, state, snapshot: number }: Record<string, unknown>) => {
      return [pid, state, number]
    })
    const expected = workersOf(gatehouse.pid).map((pid) => [pid, 'serving', snapshot.number])
    assert.deepEqual(facts.toSorted(), expected.toSorted())
  })

  const bad = { rules: [...BLOCK.rules, { name: 'worse', when: { pth: '/' }, action: 'block' }] }
  const refused = await api('PUT', '/v1/policy', bad, { 'if-match': put.etag })
  assert.deepEqual(
    [refused.status, refused.body.errors],
    [400, [{ pointer: '/rules/1/when/pth', detail: 'rule "worse": unknown field (did you mean "path"?)' }]],
  )
  assert.deepEqual(await statusesOfEach(gatehouse), [451, 451])

  const passed = await api('PUT', '/v1/policy', { rules: [] }, { 'if-match': put.etag })
  assert.equal(passed.status, 200)
  await soon(async () => assert.deepEqual(await statusesOfEach(gatehouse), [200, 200]))
  const restored = await api('POST', '/v1/policy/versions/1/restore', undefined, { 'if-match': passed.etag })
  assert.deepEqual([restored.body.version, restored.body.restored_version], [3, 1])
  await soon(async () => assert.deepEqual(await statusesOfEach(gatehouse), [451, 451]))

  await gatehouse.stop()
  const again = await startGatehouse(t, options)
  assert.deepEqual(await statusesOfEach(again), [451, 451], 'from the first request on')
  const after = await client(again, key)('GET', '/v1/policy')
  assert.deepEqual([after.body.policy, after.body.source, after.body.version], [BLOCK, 'api', 3])
  assert.deepEqual(after.body.problems, [])

  await again.stop()
  rmSync(join(folder, 'policy.json'))
  const bare = await startGatehouse(t, options)
  assert.deepEqual(await statusesOfEach(bare), [451, 451], 'also where only the database knows')
})

test('a rule for an agent by its alias blocks it, and one for an unknown name is warned of', async (t) => {
  const app = await startApp(t)
  const folder = temporaryFolder(t)
  const key = await keyIn(folder)
  const options = { command: 'up', upstream: app.url, argv: ['--workers', '1', '--data', folder] } as const
  const gatehouse = await startGatehouse(t, options)
  const api = client(gatehouse, key)
  const rule = (name: string, when: object) => ({ name, when, action: { block: { status: 451 } } })
  const sdk = { 'user-agent': 'OpenAI/Python 1.99.1', 'x-stainless-lang': 'python' }
  assert.equal(await statusOf(gatehouse, sdk), 200)
  for (const when of [{ agent: 'openai-python' }, { expression: 'verdict.agent == "openai-python"' }]) {
    const rules = [rule('no-sdk', when), rule('typo', { agent: 'gptbto' })]
    const put = await api('PUT', '/v1/policy', { rules }, { 'if-match': '*' })
    const detail = 'rule "typo": unknown agent "gptbto" (did you mean "gptbot"?)'
    assert.deepEqual(put.body.warnings, [{ pointer: '/rules/1/when/agent', detail }])
    await soon(async () => assert.equal(await statusOf(gatehouse, sdk), 451))
    assert.equal(await statusOf(gatehouse, { 'user-agent': 'curl/8.17.0' }), 200)
    await api('PUT', '/v1/policy', { rules: [] }, { 'if-match': put.etag })
    await soon(async () => assert.equal(await statusOf(gatehouse, sdk), 200))
  }
})

test('settings that are changed act at once, and after a restart', async (t) => {
  const app = await startApp(t)
  const folder = temporaryFolder(t)
  const key = await keyIn(folder)
  const options = { command: 'up', upstream: app.url, argv: ['--workers', '1', '--data', folder] } as const
  const gatehouse = await startGatehouse(t, options)
  const api = client(gatehouse, key)
  const answered = ({ said }: RunningGatehouse) => said().split('"message":"answered"').length - 1
  await api('GET', '/v1/policy')
  assert.equal(answered(gatehouse), 0)
  assert.equal((await api('PATCH', '/v1/settings', { 'manage.access_log': true })).status, 200)
  await api('GET', '/v1/policy')
  await soon(async () => assert.ok(answered(gatehouse) > 0))
  assert.equal((await api('PATCH', '/v1/settings', { 'log.level': 'error' })).status, 200)
  const before = answered(gatehouse)
  await api('GET', '/v1/policy')
  await wait(200)
  assert.ok(answered(gatehouse) <= before + 1, 'the PATCH itself at most')
  await api('PATCH', '/v1/settings', { 'log.level': null })
  await gatehouse.stop()
  const again = await startGatehouse(t, options)
  const after = await client(again, key)('GET', '/v1/settings')
  const shown = after.body.settings.find((each: { name: string }) => each.name === 'manage.access_log')
  assert.deepEqual([shown.value, shown.configured, shown.origin], [true, false, 'api'])
  await soon(async () => assert.ok(answered(again) > 0))
})

/** The status that each worker answers with, asked while the others are held. */
async function statusesOfEach(gatehouse: RunningGatehouse): Promise<readonly number[]> {
  const workers = workersOf(gatehouse.pid)
  assert.equal(workers.length, 2)
  const statuses: number[] = []
  for (const other of workers) {
    process.kill(other, 'SIGSTOP')
    try {
      statuses.push(await statusOf(gatehouse))
    } finally {
      process.kill(other, 'SIGCONT')
    }
  }
  return statuses
}

async function statusOf(
  { url, ca }: RunningGatehouse,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const outgoing = request(`${url}/no/entry`, { ca, headers, agent: false }).end()
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response.statusCode!
}

function client({ manage }: RunningGatehouse, key: string) {
  return async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(manage + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'accept-encoding': 'identity', ...type, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const etag = response.headers.get('etag') ?? ''
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    return { status: response.status, etag, body: (await response.json()) as any }
  }
}

/** As the command line makes one, before there is a gateway. */
async function keyIn(folder: string): Promise<string> {
  const store = await Store.open(`sqlite:${join(folder, 'gatehouse.db')}`)
  const wanted = {
    name: 'test',
    apps: '*' as const,
    scopes: ['admin'],
    plan: 'unlimited',
    expiresAtMs: null,
  } as const
  const { key } = await makeKey(store, wanted, COMMAND_LINE, Date.now())
  await store.close()
  return key
}

/** It takes some ten milliseconds on a machine that has nothing else to do. */
async function soon(check: () => Promise<void>): Promise<void> {
  const endMs = performance.now() + SOON_MS
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() > endMs) throw error
      await wait(20)
    }
  }
}

const SOON_MS = 10_000
