import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import https from 'node:https'
import { text } from 'node:stream/consumers'
import { SignJWT } from 'jose'
import { type Test, test } from 'tap'
import { DIRECTORY } from '../../src/classify/known/signer-id.ts'
import { DocumentServer } from '../identity/document-server.ts'
import { newSigner, type Signer } from '../identity/signer.ts'
import { agentRequest, type Sent, send } from '../manage/agent-client.ts'
import { GnapClient, newNonce } from '../manage/gnap-client.ts'
import { type App, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'
import { until } from '../until.ts'

const ADMIN_KEY = 'an administrator of tests and of nothing else'

test('kill -9 between two uses of a Web Bot Auth signature: the second is not verified, and not an attack', async (t) => {
  const app = await startApp(t)
  const slow = await newAgent(t)
  const data = temporaryFolder(t)
  const gate = await start(t, data, app)
  await untilVerified(gate, app, slow)
  const sign = ({ signer, agent }: TestAgent, aheadS: number) => {
    const createdS = nowS() + aheadS
    return agentRequest(gate.url, signer, { path: '/', agent, createdS, expiresS: createdS + 3_600 })
  }
  const fast = await newAgent(t)
  await untilVerified(gate, app, fast)
  const used = {
    'made now': await sign(slow, 0),
    'made by a clock that is 3 s ahead': await sign(fast, 3),
    'made by a clock that is 50 s ahead': await sign(fast, 50),
  }
  for (const [name, sent] of Object.entries(used))
    assert.equal((await visit(gate, app, sent)).verified, 'web-bot-auth', name)
  const unused = await sign(slow, -2)
  await gate.kill()
  const next = await start(t, data, app, gate)
  for (const [name, sent] of Object.entries({ ...used, 'honest and older than the start': unused })) {
    const before = await uncheckedCount(next)
    // The first ones find that the new process does not know the key yet.
    await until(async () => {
      assert.deepEqual(await visit(next, app, sent), { verified: undefined, conflict: undefined }, name)
      return (await uncheckedCount(next)) >= before + 3
    })
  }
  await untilVerified(next, app, slow)
})

test('kill -9 of all workers between two uses of a Web Bot Auth signature: the second is a replay', async (t) => {
  const app = await startApp(t)
  const who = await newAgent(t)
  const gate = await start(t, temporaryFolder(t), app)
  await untilVerified(gate, app, who)
  const sent = await agentRequest(gate.url, who.signer, { path: '/', agent: who.agent })
  assert.equal((await visit(gate, app, sent)).verified, 'web-bot-auth')
  const workers = await workersOf(gate)
  assert.equal(workers.length, 2)
  for (const pid of workers) process.kill(pid, 'SIGKILL')
  const isNew = (pids: readonly number[]) => pids.length === 2 && !pids.some((pid) => workers.includes(pid))
  await until(async () => isNew(await workersOf(gate)))
  await until(async () => (await fetch(`${gate.manage}/health/ready`)).ok)
  // What the process above them remembers, the new ones are told.
  assert.deepEqual(await visit(gate, app, sent), { verified: undefined, conflict: 'signature-failed' })
})

test('kill -9 between two uses of a signature of an agent, of GNAP and of a DPoP proof: the second is refused', async (t) => {
  const app = await startApp(t)
  const data = temporaryFolder(t)
  const gate = await start(t, data, app)
  const proofs: Readonly<Record<string, () => Promise<number>>> = {
    'an Agent Identity': await byAgent(gate),
    'a token of GNAP': await byGnap(gate),
    'a token bound by DPoP': await byDpop(gate),
  }
  for (const [name, use] of Object.entries(proofs)) assert.equal(await use(), 200, name)
  await gate.kill()
  await start(t, data, app, gate)
  for (const [name, use] of Object.entries(proofs)) assert.equal(await use(), 401, name)
})

/** With the same data, and at the same addresses as the one `before`. */
async function start(t: Test, data: string, app: App, before?: RunningGatehouse): Promise<RunningGatehouse> {
  const same =
    before === undefined
      ? []
      : ['--listen', `127.0.0.1:${before.port}`, '--manage', new URL(before.manage).host]
  return startGatehouse(t, {
    ...{ command: 'up', upstream: app.url, argv: ['--workers', '2', '--data', data, ...same] },
    expects: /a worker died/,
    variables: { GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true', GATEHOUSE_ADMIN_KEY: ADMIN_KEY },
  })
}

interface TestAgent {
  readonly signer: Signer
  /** Its URL. */
  readonly agent: string
}

async function newAgent(t: Test): Promise<TestAgent> {
  const server = await DocumentServer.start(t, 'http')
  const signer = newSigner('ed25519')
  server.serveJson(DIRECTORY, { keys: [signer.jwk] })
  return { signer, agent: server.url('', '127.0.0.1') }
}

async function byAgent(gate: RunningGatehouse): Promise<() => Promise<number>> {
  const signer = newSigner('ed25519')
  const agent = `https://agent.example/${randomUUID()}`
  await admin(gate, '/v1/trust', {
    document: { client_id: agent, jwks: { keys: [signer.jwk] } },
    scopes: ['read'],
  })
  const sent = await agentRequest(gate.manage, signer, { agent })
  return async () => (await send(sent)).status
}

async function byGnap(gate: RunningGatehouse): Promise<() => Promise<number>> {
  const client = new GnapClient(gate.manage, newSigner('ed25519'))
  await admin(gate, '/v1/trust', { jwk: client.signer.jwk, scopes: ['read'] })
  const granted = await client.grant(['read'])
  assert.equal(granted.status, 200, JSON.stringify(granted.body))
  // The same signature each time: Ed25519 has no chance in it.
  const once = { nonce: newNonce(), createdS: nowS() }
  return async () =>
    (await client.ask('GET', '/v1/agents', granted.body.access_token, undefined, once)).status
}

async function byDpop(gate: RunningGatehouse): Promise<() => Promise<number>> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const jwk = publicKey.export({ format: 'jwk' }) as Record<string, string>
  const proof = (method: string, path: string, claims: Record<string, string>) =>
    new SignJWT({ htm: method, htu: gate.manage + path, jti: randomUUID(), ...claims })
      .setIssuedAt()
      .setProtectedHeader({ alg: 'EdDSA', typ: 'dpop+jwt', jwk })
      .sign(privateKey)
  const { client_id: id, client_secret: secret } = await admin(gate, '/v1/clients', {
    ...{ name: 'test', grant_types: ['client_credentials'], scopes: ['read'] },
  })
  const response = await fetch(`${gate.manage}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      dpop: await proof('POST', '/oauth/token', {}),
    },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const { access_token: token } = (await response.json()) as { readonly access_token: string }
  const ath = createHash('sha256').update(token).digest('base64url')
  const headers = { authorization: `DPoP ${token}`, dpop: await proof('GET', '/v1/agents', { ath }) }
  return async () => (await fetch(`${gate.manage}/v1/agents`, { headers })).status
}

async function admin(gate: RunningGatehouse, path: string, body: unknown): Promise<Record<string, string>> {
  const response = await fetch(gate.manage + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as Record<string, string>
  assert.equal(response.status, 201, JSON.stringify(answer))
  return answer
}

interface Told {
  readonly verified: string | undefined
  readonly conflict: string | undefined
}

/** What the app is told of such a request. */
async function visit(gate: RunningGatehouse, app: App, sent: Sent): Promise<Told> {
  const options = { port: gate.port, ca: gate.ca, servername: 'localhost', agent: false }
  const request = https.request({ ...options, path: '/', headers: sent.headers }).end()
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  await text(response)
  assert.equal(response.statusCode, 200)
  const names = app.asked.at(-1)!.rawHeaders
  const value = (name: string) => names[names.findIndex((each) => each.toLowerCase() === name) + 1]
  const has = (name: string) => names.some((each) => each.toLowerCase() === name)
  const told = (name: string) => (has(name) ? value(name) : undefined)
  return { verified: told('x-agent-verified'), conflict: told('x-agent-conflict') }
}

async function untilVerified(gate: RunningGatehouse, app: App, { signer, agent }: TestAgent): Promise<void> {
  await until(async () => {
    const sent = await agentRequest(gate.url, signer, { path: '/', agent })
    return (await visit(gate, app, sent)).verified === 'web-bot-auth'
  })
}

/** The processes of those that serve. */
async function workersOf({ manage }: RunningGatehouse): Promise<readonly number[]> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` }
  const { instances } = (await (await fetch(`${manage}/v1/fleet`, { headers })).json()) as {
    readonly instances: readonly { readonly pid: number | null; readonly state: string }[]
  }
  return instances.flatMap(({ pid, state }) => (pid === null || state !== 'serving' ? [] : [pid]))
}

/** Signatures that are right, and of which it is unknown whether they were used. */
async function uncheckedCount({ manage }: RunningGatehouse): Promise<number> {
  const text = await (await fetch(`${manage}/metrics`)).text()
  return Number(
    /^gatehouse_signatures_total\{finding="unchecked",why="no-answer"\} (\d+)$/m.exec(text)?.[1] ?? 0,
  )
}

function nowS(): number {
  return Math.floor(Date.now() / 1_000)
}
