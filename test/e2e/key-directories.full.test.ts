import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { directoryHeaders } from '../identity/directory-headers.ts'
import { type Answer, DocumentServer, TEST_CA } from '../identity/document-server.ts'
import { newSigner, type Signer, signed } from '../identity/signer.ts'
import { type Route, startApp } from './app.ts'
import { type GatehouseOptions, type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

const DIRECTORY = '/.well-known/http-message-signatures-directory'
const TYPE = { 'content-type': 'application/http-message-signatures-directory+json' }
const ADMIN_KEY = 'an administrator of tests and of nothing else'
const [one, two, three] = [newSigner('ed25519'), newSigner(), newSigner('rsa-pss-sha512')]

test('two workers: keys come once for both, no use counts twice, and who is killed comes back knowing them', async (t) => {
  const server = await directoryOf(t, one)
  const gate = await gateFor(t, { command: 'up', argv: ['--workers', '2'] })
  const agent = agentAt(server)
  assert.equal((await visit(gate, one, agent)).verified, null, 'the first request of a stranger')
  await verified(gate, one, agent)
  const all = await Promise.all(Array.from({ length: 20 }, () => visit(gate, one, agent)))
  assert.deepEqual(new Set(all.map((each) => each.verified)), new Set(['web-bot-auth']))
  assert.equal(server.asked.length, 1)

  const once = await headersOf(gate, one, agent)
  const uses = await Promise.all(Array.from({ length: 20 }, () => send(gate, once)))
  assert.equal(uses.filter((each) => each.verified !== null).length, 1)
  const again = await headersOf(gate, one, agent, false)
  const repeated = await Promise.all(Array.from({ length: 20 }, () => send(gate, again)))
  assert.equal(repeated.filter((each) => each.verified === null).length, 0, 'from the address it came from')

  server.serve(DIRECTORY, (_, response) => response.writeHead(500).end())
  await replaceWorkers(gate)
  const afterwards = await Promise.all(Array.from({ length: 20 }, () => visit(gate, one, agent)))
  assert.deepEqual(new Set(afterwards.map((each) => each.verified)), new Set(['web-bot-auth']))
  assert.equal((await send(gate, once)).verified, null, 'it is remembered by the process above them')
  assert.equal(server.asked.length, 1)
  assert.equal(await metric(gate, 'document_fetches_total{document="directory",outcome="fetched"}'), 1)
  assert.equal(await metric(gate, 'signers_known{signer="other"}'), 1)
  assert.equal(await metric(gate, 'signature_uses_total{outcome="refused"}'), 20)
})

test('agents of settings and of signatures are known before they come, and with "listed" no others ever', async (t) => {
  const [set, named, stranger] = await Promise.all([one, two, three].map((signer) => directoryOf(t, signer)))
  const folder = temporaryFolder(t)
  const file = join(folder, 'own.json')
  const own = {
    ...{ id: 'our-bot', name: 'OurBot', kind: 'agent', category: 'crawler' },
    verification: { signature_agent: agentAt(named!) },
  }
  writeFileSync(file, JSON.stringify([own]))
  const variables = {
    GATEHOUSE_IDENTITY_SIGNATURES: 'listed',
    GATEHOUSE_IDENTITY_AGENTS: agentAt(set!),
    GATEHOUSE_SIGNATURES: file,
  }
  for (const command of ['up', 'proxy'] as const) {
    const argv = command === 'up' ? ['--workers', '2'] : []
    const gate = await gateFor(t, { command, argv, variables })
    while ((await metric(gate, 'signers_known{signer="listed"}')) < 2) await wait(20)
    const first = await visit(gate, one, agentAt(set!))
    assert.deepEqual([first.verified, first.name], ['web-bot-auth', null])
    const second = await visit(gate, two, agentAt(named!))
    assert.deepEqual([second.verified, second.name], ['web-bot-auth', 'OurBot'])
    for (let i = 0; i < 3; i++) assert.equal((await visit(gate, three, agentAt(stranger!))).verified, null)
    await gate.stop()
  }
  assert.deepEqual([set!.asked.length, named!.asked.length, stranger!.asked.length], [2, 2, 0])
})

test('agents are listed once signatures name them, and forgotten once they do not', async (t) => {
  const [before, after] = await Promise.all([one, two].map((signer) => directoryOf(t, signer)))
  const file = join(temporaryFolder(t), 'own.json')
  const list = (server: DocumentServer) => {
    const verification = { signature_agent: agentAt(server) }
    const own = { id: 'our-bot', name: 'OurBot', kind: 'agent', category: 'crawler', verification }
    writeFileSync(file, JSON.stringify([own]))
  }
  list(before!)
  const variables = { GATEHOUSE_IDENTITY_SIGNATURES: 'listed', GATEHOUSE_SIGNATURES: file }
  const gate = await gateFor(t, { command: 'up', argv: ['--workers', '2'], variables })
  await verified(gate, one, agentAt(before!))
  assert.equal((await visit(gate, two, agentAt(after!))).verified, null)
  list(after!)
  await verified(gate, two, agentAt(after!))
  // Each worker takes the new signatures when it has read them.
  for (;;) {
    const all = await Promise.all(Array.from({ length: 20 }, () => visit(gate, one, agentAt(before!))))
    if (all.every((each) => each.verified === null)) break
    await wait(50)
  }
  await replaceWorkers(gate)
  const all = await Promise.all(Array.from({ length: 20 }, () => visit(gate, one, agentAt(before!))))
  assert.ok(all.every((each) => each.verified === null))
})

test('a key that is taken out is gone; who is away for a while is still known by the last good ones', async (t) => {
  const gate = await gateFor(t, {})
  const changing = await directoryOf(t, one, { 'cache-control': 'max-age=10' })
  const leaving = await directoryOf(t, two, { 'cache-control': 'max-age=10' })
  await verified(gate, one, agentAt(changing))
  await verified(gate, two, agentAt(leaving))
  changing.serveJson(DIRECTORY, { keys: [three.jwk] }, TYPE)
  leaving.serve(DIRECTORY, (asked) => asked.socket.destroy())
  await verified(gate, three, agentAt(changing))
  assert.equal((await visit(gate, one, agentAt(changing))).verified, null)
  while ((await metric(gate, 'document_uses_total{document="directory",origin="stale"}')) === 0) {
    assert.equal((await visit(gate, two, agentAt(leaving))).verified, 'web-bot-auth')
    await wait(200)
  }
  assert.equal((await visit(gate, two, agentAt(leaving))).verified, 'web-bot-auth')
})

const keySet = (...signers: readonly Signer[]) => JSON.stringify({ keys: signers.map(({ jwk }) => jwk) })
const text = (body: string, headers: Record<string, string> = TYPE): Answer => {
  return (_, response) => response.writeHead(200, headers).end(body)
}
const others = Array.from({ length: 32 }, () => newSigner('ed25519'))
const BAD: Readonly<Record<string, readonly (readonly [title: string, answer: Answer])[]>> = {
  redirect: [['redirects', (_, response) => response.writeHead(308, { location: '/good' }).end()]],
  'too-large': [
    ['has 70 KiB', text(JSON.stringify({ keys: [one.jwk], more: 'x'.repeat(70 * 1_024) }))],
    ['never ends', (_, response) => void response.writeHead(200, TYPE).write(' '.repeat(100_000))],
  ],
  timeout: [['says nothing', () => undefined]],
  status: [
    ['is not there', (_, response) => response.writeHead(404, TYPE).end(keySet(one))],
    ['fails', (_, response) => response.writeHead(503, TYPE).end(keySet(one))],
  ],
  network: [['hangs up', (asked) => asked.socket.destroy()]],
  malformed: [
    ['has 33 keys', text(keySet(one, ...others))],
    ['is half a document', text(keySet(one).slice(0, -1))],
    ['is a page', text(keySet(one), { 'content-type': 'text/html' })],
    ['is signed by another', signedBy([two])],
    ['is signed for another host', signedBy([one], { host: 'other.example' })],
    ['was signed long ago', signedBy([one], { createdS: 1_700_000_000 })],
  ],
}

test('invalid directories verify no agent, and each is counted', async (t) => {
  const gate = await gateFor(t, {})
  const cases = await Promise.all(
    Object.values(BAD)
      .flat()
      .map(async ([title, answer]) => {
        const server = await directoryOf(t, one)
        server.serve(DIRECTORY, answer)
        server.serveJson('/good', { keys: [one.jwk] }, TYPE)
        return { title, server }
      }),
  )
  // One after the other: of one host few are asked for at a time.
  for (const { title, server } of cases) {
    const first = await visit(gate, one, agentAt(server))
    assert.deepEqual([first.verified, first.conflict], [null, null], title)
    while (server.asked.length === 0) await wait(10)
  }
  for (const [outcome, { length }] of Object.entries(BAD))
    while ((await metric(gate, `document_fetches_total{document="directory",outcome="${outcome}"}`)) < length)
      await wait(50)
  for (const { title, server } of cases) {
    const second = await visit(gate, one, agentAt(server))
    // An unchecked signature is no accusation.
    assert.deepEqual([second.verified, second.conflict], [null, null], title)
    assert.ok(!server.asked.some(({ url }) => url !== DIRECTORY), title)
  }
  const right = await directoryOf(t, one)
  right.serve(DIRECTORY, signedBy([one]))
  await verified(gate, one, agentAt(right))
})

test('does not fetch from private addresses or without TLS, unless settings allow it', async (t) => {
  const gate = await gateFor(t, { variables: { GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'false' } })
  const plain = await DocumentServer.start(t, 'http')
  const server = await directoryOf(t, one)
  for (const host of ['localhost', '127.0.0.1', '[::1]', '10.0.0.1'])
    await visit(gate, one, `https://${host}:${server.port}`)
  await visit(gate, one, `http://localhost:${plain.port}`)
  while ((await metric(gate, 'document_fetches_total{document="directory",outcome="address"}')) < 4)
    await wait(20)
  assert.equal((await visit(gate, one, agentAt(server))).verified, null)
  assert.deepEqual([server.asked.length, plain.asked.length], [0, 0])
})

/** It asks at this machine, and trusts the CA of these tests. */
async function gateFor(t: Test, { variables, ...options }: GatehouseOptions): Promise<RunningGatehouse> {
  const who: Route = ({ headers }, response) => void response.end(JSON.stringify(headers))
  const app = await startApp(t, { '/who': who })
  const ca = join(temporaryFolder(t), 'ca.crt')
  writeFileSync(ca, TEST_CA)
  return startGatehouse(t, {
    ...{ upstream: app.url, ...options },
    variables: {
      ...{ NODE_EXTRA_CA_CERTS: ca, GATEHOUSE_FETCH_ALLOW_PRIVATE_ADDRESSES: 'true' },
      ...{ GATEHOUSE_ADMIN_KEY: ADMIN_KEY, ...variables },
    },
    expects: /"a worker died"/,
  })
}

async function directoryOf(
  t: Test,
  signer: Signer,
  headers: Record<string, string> = {},
): Promise<DocumentServer> {
  const server = await DocumentServer.start(t)
  server.serveJson(DIRECTORY, { keys: [signer.jwk] }, { ...TYPE, ...headers })
  return server
}

function agentAt({ port }: DocumentServer): string {
  return `https://localhost:${port}`
}

/** A directory of one key, signed for the host that it is asked at, unless told otherwise. */
function signedBy(signers: readonly Signer[], more: { host?: string; createdS?: number } = {}): Answer {
  return async ({ headers: { host } }, response) => {
    const wanted = { host: host!, createdS: Math.floor(Date.now() / 1_000), ...more }
    response.writeHead(200, { ...TYPE, ...(await directoryHeaders(signers, wanted)) }).end(keySet(one))
  }
}

/** As an agent signs it that knows the newest draft. */
async function headersOf(gate: RunningGatehouse, signer: Signer, agent: string, hasNonce = true) {
  const createdS = Math.floor(Date.now() / 1_000)
  const headers = { host: `localhost:${gate.port}`, 'signature-agent': `sig1="${agent}"` }
  return signed(
    signer,
    { method: 'GET', url: `${gate.url}/who`, headers },
    {
      ...{ fields: ['@authority', 'signature-agent;key="sig1"'], tag: 'web-bot-auth' },
      ...{ createdS, expiresS: createdS + 300, ...(hasNonce && { nonce: randomUUID() }) },
    },
  )
}

/** On a connection of its own, so that any worker may have it. */
async function send(gate: RunningGatehouse, headers: Record<string, string | string[]>) {
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, string>>()
  const agent = new Agent({ keepAlive: false, ca: gate.ca })
  request(`${gate.url}/who`, { headers, agent }, (response) => json(response).then(resolve as never, reject))
    .on('error', reject)
    .end()
  const told = await promise
  return {
    verified: told['x-agent-verified'] ?? null,
    name: told['x-agent-name'] ?? null,
    conflict: told['x-agent-conflict'] ?? null,
  }
}

async function visit(gate: RunningGatehouse, signer: Signer, agent: string) {
  return send(gate, await headersOf(gate, signer, agent))
}

async function verified(gate: RunningGatehouse, signer: Signer, agent: string): Promise<void> {
  while ((await visit(gate, signer, agent)).verified !== 'web-bot-auth') await wait(50)
}

/** Kills both, and waits for those in their places. */
async function replaceWorkers(gate: RunningGatehouse): Promise<void> {
  const before = await pids(gate)
  for (const pid of before) process.kill(pid, 'SIGKILL')
  for (;;) {
    const now = await pids(gate)
    if (now.length === 2 && !now.some((pid) => before.includes(pid))) return
    await wait(20)
  }
}

async function pids(gate: RunningGatehouse): Promise<readonly number[]> {
  const authorization = `Bearer ${ADMIN_KEY}`
  const answer = await fetch(`${gate.manage}/v1/fleet`, { headers: { authorization } })
  const { instances } = (await answer.json()) as { instances: { pid: number | null; state: string }[] }
  return instances.flatMap(({ pid, state }) => (pid === null || state !== 'serving' ? [] : [pid]))
}

/** 0 where it is not there. */
async function metric(gate: RunningGatehouse, name: string): Promise<number> {
  const lines = (await (await fetch(`${gate.manage}/metrics`)).text()).split('\n')
  const line = lines.find((each) => each.startsWith(`gatehouse_${name} `))
  return Number(line?.split(' ').at(-1) ?? 0)
}
