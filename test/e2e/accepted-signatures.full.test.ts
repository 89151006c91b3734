import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:https'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { makeKey } from '../../src/manage/auth/make-key.ts'
import type { NewSignature } from '../../src/store/catalogue/catalogue.ts'
import { Store } from '../../src/store/store.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'
import { type App, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

test('what the API has accepted judges in every worker, and no more when it is taken back', async (t) => {
  const data = temporaryFolder(t)
  const app = await startApp(t)
  const gate = await start(t, app, data)
  const before = await ask(gate, app)
  assert.equal(before.agent, null)
  const store = await Store.open(`sqlite:${join(data, 'gatehouse.db')}`)
  t.teardown(() => store.close())
  const signatures = [accepted('ja4', before.ja4), accepted('ja4h', before.ja4h)]
  await store.transaction(async (queries) => {
    await store.catalogue.addSoftware(softwareOf({ id: 'acme-bot', name: 'Acme Bot' }), 1, queries)
    for (const each of signatures) await store.catalogue.addSignature(each, queries)
  })
  process.kill(gate.pid, 'SIGHUP')
  await until(gate, app, 'Acme Bot')
  // Another one's database opens after its start: signatures are then made again without a request.
  const other = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    argv: ['--workers', '2', '--data', temporaryFolder(t)],
    variables: { GATEHOUSE_STORE_URL: `sqlite:${join(data, 'gatehouse.db')}` },
  })
  await until(other, app, 'Acme Bot')
  await store.transaction(async (queries) => {
    for (const each of signatures) await store.catalogue.setStatus(each, 'retired', queries)
  })
  process.kill(gate.pid, 'SIGHUP')
  await until(gate, app, null)
})

test('a fingerprint accepted through the API names an agent in every worker, until it is withdrawn', async (t) => {
  const data = temporaryFolder(t)
  const app = await startApp(t)
  const key = await keyIn(data)
  const gate = await start(t, app, data)
  const api = clientOf(gate, key)
  const { ja4, verdict } = await ask(gate, app, '/')
  assert.notEqual(verdict, 'agent')
  const detected = async () => {
    const { is_agent, agent_name, agent_id, agent_category } = await api('POST', '/v1/detect', { ja4 })
    return [is_agent, agent_name, agent_id, agent_category]
  }
  const unknown = await detected()
  assert.deepEqual(unknown.slice(0, 2), [false, null])
  const submission = { fingerprint: ja4, type: 'ja4', agent_name: 'Acme Bot', category: 'orchestrator' }
  const [{ id, status }] = (await api('POST', '/v1/signatures/submit', submission)).submissions
  assert.equal(status, 'pending')
  await api('POST', `/v1/submissions/${id}/review`, { decision: 'accept' })
  await until(gate, app, 'Acme Bot', '/')
  assert.equal((await ask(gate, app, '/')).verdict, 'agent')
  // The API is one more that a Snapshot comes to, in its own time.
  while ((await detected())[1] !== 'Acme Bot') await wait(100)
  assert.deepEqual(await detected(), [true, 'Acme Bot', 'acme-bot', 'orchestrator'])
  let resumed = await resume(gate, app)
  assert.notEqual(resumed.ja4, ja4)
  while (resumed.agent !== 'Acme Bot') resumed = await resume(gate, app) // all ten may have been one worker's
  assert.equal(resumed.verdict, 'agent')
  await api('POST', `/v1/submissions/${id}/review`, { decision: 'rollback' })
  await until(gate, app, null, '/')
  assert.equal((await ask(gate, app, '/')).verdict, verdict)
  while ((await detected())[1] !== null) await wait(100)
  assert.deepEqual(await detected(), unknown)
})

function start(t: Test, { url }: App, data: string): Promise<RunningGatehouse> {
  return startGatehouse(t, { command: 'up', upstream: url, argv: ['--workers', '2', '--data', data] })
}

function accepted(type: NewSignature['type'], value: string): NewSignature {
  return signatureOf({ type, value, softwareId: 'acme-bot', observations: 50 })
}

/** Waits for as long as the test may take. */
async function until(gate: RunningGatehouse, app: App, agent: string | null, path?: string): Promise<void> {
  for (;;) {
    const told = new Set<string | null>()
    for (let i = 0; i < CONNECTIONS; i++) told.add((await ask(gate, app, path)).agent)
    if (told.size === 1 && told.has(agent)) return
    await wait(100)
  }
}

/** The same on a connection that resumes the session of one before. */
async function resume(gate: RunningGatehouse, app: App) {
  const first = connect({
    host: 'localhost',
    port: gate.port,
    ca: gate.ca,
    ciphers: CIPHERS,
    servername: 'localhost',
  })
  const [session] = (await once(first, 'session')) as [Buffer]
  first.destroy()
  return ask(gate, app, '/', session)
}

/** What the app is told about an agent with a fingerprint of its own, on a connection to either worker. */
async function ask(
  gate: RunningGatehouse,
  app: App,
  path = '/.well-known/agent-card.json',
  session?: Buffer,
) {
  const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven']
  const headers = Object.fromEntries(names.map((name) => [`x-acme-${name}`, '1']))
  await new Promise<void>((resolve, reject) => {
    const resuming = session === undefined ? {} : { session }
    const options = { agent: false, ca: gate.ca, headers, ciphers: CIPHERS, ...resuming }
    request(gate.url + path, options, (response) => {
      assert.equal((response.socket as TLSSocket).isSessionReused(), session !== undefined)
      response.resume().on('end', resolve)
    })
      .on('error', reject)
      .end()
  })
  const { rawHeaders } = app.asked.at(-1)!
  const header = (name: string) => {
    const at = rawHeaders.findIndex((each) => each.toLowerCase() === name)
    return at === -1 ? null : rawHeaders[at + 1]!
  }
  const [ja4, ja4h] = [header('x-ja4-fingerprint')!, header('x-ja4h-fingerprint')!]
  return { ja4, ja4h, agent: header('x-agent-name'), verdict: header('x-agent-verdict') }
}

function clientOf({ manage }: RunningGatehouse, key: string) {
  return async (method: string, path: string, body: unknown) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const response = await fetch(manage + path, { method, headers, body: JSON.stringify(body) })
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const answer = (await response.json()) as any
    assert.equal(response.status, 200, JSON.stringify(answer))
    return answer
  }
}

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

const CIPHERS = 'TLS_CHACHA20_POLY1305_SHA256:ECDHE-ECDSA-AES128-SHA256:DHE-RSA-AES256-SHA'
/** Both workers take some of so many, but once in a thousand times. */
const CONNECTIONS = 10
