import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Test, test } from 'tap'
import { AgentIdentities } from '../../src/manage/auth/agent-identity.ts'
import { Trust } from '../../src/manage/auth/trust.ts'
import { type Answer, DocumentServer } from '../identity/document-server.ts'
import { newSigner, type Signer } from '../identity/signer.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { type AgentRequest, agentRequest, type Sent, send } from './agent-client.ts'
import { TestManagement, type TestOptions } from './management.ts'

const MANUAL = readFileSync('config/guide/agent-identity.md', 'utf8')
const signer = newSigner('ed25519')
const other = newSigner('ed25519')

/** A management plane that fetches documents from this machine, and an agent whose document is there. */
async function bench(t: Test, options: TestOptions = {}) {
  const manage = await TestManagement.start(t, { allowPrivateFetches: true, ...options })
  const server = await DocumentServer.start(t, 'http')
  const agent = server.url('/aid.json', '127.0.0.1')
  server.serveJson('/aid.json', { client_id: agent, client_name: 'A bot', jwks: { keys: [signer.jwk] } })
  const trust = async (body: Record<string, unknown> = {}) => {
    const { status, body: made } = await manage.ask('POST', '/v1/trust', {
      agent_id: agent,
      scopes: ['read'],
      ...body,
    })
    assert.equal(status, 201, JSON.stringify(made))
    return made as { readonly id: string }
  }
  const ask = async (asked: Partial<AgentRequest> = {}, by: Signer = signer) =>
    send(await agentRequest(manage.url, by, { agent, ...asked }))
  return { manage, server, agent, trust, ask }
}

test('an agent proves who it is, and may do what an administrator says', async (t) => {
  const { manage, trust, ask, agent, server } = await bench(t, { knows: true })
  const stranger = await ask()
  assert.deepEqual([stranger.status, stranger.body.code], [403, 'insufficient_scope'])
  assert.match(stranger.headers.get('ratelimit') ?? '', /^"free"/)
  const { id } = await trust({ scopes: ['read', 'detect'] })
  const known = await ask()
  assert.equal(known.status, 200)
  assert.match(known.headers.get('ratelimit') ?? '', /^"standard";r=9999/)
  assert.equal(
    (await ask({ method: 'POST', path: '/v1/detect', body: { user_agent: 'curl/8' } })).status,
    200,
  )
  assert.equal((await ask({ path: '/v1/keys' })).status, 403)
  assert.equal((await ask({ path: '/v1/nowhere' })).status, 404)
  assert.equal(server.asked.length, 2, 'of who is trusted and who is not, each once')
  await manage.ask('DELETE', `/v1/trust/${id}`)
  const after = await ask()
  assert.deepEqual([after.status, after.body.code], [403, 'insufficient_scope'])
  await trust({ scopes: ['admin'] })
  const made = await ask({ method: 'POST', path: '/v1/keys', body: { name: 'x', access: 'read' } })
  assert.equal(made.status, 201)
  const { body } = await manage.ask('GET', `/v1/audit?principal=${encodeURIComponent(agent)}`)
  assert.deepEqual(
    body.audit.map(({ action }: { action: string }) => action),
    ['createKey'],
  )
  assert.deepEqual(manage.failures, [])
})

test('every kind of key, every place for it, every way to say it', async (t) => {
  const { manage, server, ask, trust } = await bench(t)
  const place = (path: string) => server.url(path, '127.0.0.1')
  const origin = place('')
  for (const algorithm of ['ed25519', 'ecdsa-p256-sha256', 'ecdsa-p384-sha384', 'rsa-pss-sha512'] as const) {
    const by = newSigner(algorithm)
    const agent = place(`/${algorithm}`)
    server.serveJson(`/${algorithm}`, { client_id: agent, jwks_uri: place(`/${algorithm}/keys`) })
    server.serveJson(`/${algorithm}/keys`, { keys: [other.jwk, { ...by.jwk, kid: 'mine' }] })
    await trust({ agent_id: agent })
    assert.equal((await ask({ agent }, by)).status, 200, algorithm)
    assert.equal((await ask({ agent, algorithm }, by)).status, 200, 'and says so')
  }
  const set = place('/keys.json')
  server.serveJson('/keys.json', { keys: [signer.jwk] })
  server.serveJson('/key.json', { agent_id: place('/key.json'), public_key: signer.jwk })
  const directory = '/.well-known/http-message-signatures-directory'
  const type = { 'content-type': 'application/http-message-signatures-directory+json' }
  server.serveJson(directory, { keys: [signer.jwk] }, type)
  for (const agent_id of [set, place('/key.json'), origin]) {
    await trust({ agent_id })
    assert.equal((await ask({ agent: agent_id })).status, 200, agent_id)
  }
  assert.equal((await ask({ agent: origin + directory })).status, 200, 'the same agent')
  const whole = ['@authority', 'signature-agent']
  assert.equal((await ask({ agent: origin, fields: whole })).status, 200)
  const bare = await agentRequest(manage.url, signer, { agent: origin, fields: ['@authority'] })
  assert.equal((await send(bare)).status, 401)
})

test('a document that an administrator has given is not fetched', async (t) => {
  const { server, ask, trust } = await bench(t)
  const agent = 'https://agent.example/identity.json'
  await trust({ agent_id: undefined, document: { agent_id: agent, name: 'Ours', public_key: signer.jwk } })
  assert.equal((await ask({ agent })).status, 200)
  assert.equal((await ask({ agent }, other)).status, 401)
  assert.equal(server.asked.length, 0)
})

const flipped = ({ headers, ...sent }: Sent): Sent => {
  const text = headers['Signature']!
  const at = text.length - 20
  return {
    ...sent,
    headers: {
      ...headers,
      Signature: text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1),
    },
  }
}
const withHeader =
  (name: string, value: string) =>
  (sent: Sent): Sent => ({ ...sent, headers: { ...sent.headers, [name]: value } })
const nowS = () => Math.floor(Date.now() / 1000)
const member = 'signature-agent;key="sig1"'
const body = { user_agent: 'curl/8' }
const detect = { method: 'POST', path: '/v1/detect', body }

const ATTACKS: readonly (readonly [
  title: string,
  asked: Partial<AgentRequest>,
  message: RegExp,
  by?: Signer,
])[] = [
  ['a changed signature', { change: flipped }, /does not match this request/],
  ['another method', { change: (sent) => ({ ...sent, method: 'DELETE' }) }, /does not match/],
  [
    'another path',
    { change: (sent) => ({ ...sent, url: sent.url.replace('/agents', '/stats') }) },
    /does not match/,
  ],
  [
    'another target, of which all is covered',
    { fields: ['@target-uri', member], change: (sent) => ({ ...sent, url: `${sent.url}?q=1` }) },
    /does not match/,
  ],
  ['a key of another', {}, /has no request-signing key with the thumbprint/, other],
  [
    'the thumbprint of the agent, and a key of another',
    { keyId: signer.key.thumbprint },
    /does not match/,
    other,
  ],
  [
    'another agent, by the key of this one',
    { agent: 'https://agent.example/' },
    /unknown signer: https:\/\/agent\.example\/\.well-known/,
  ],
  [
    'another agent, said afterwards',
    { change: withHeader('Signature-Agent', 'sig1="http://127.0.0.1:1/x"') },
    /unknown signer/,
  ],
  [
    'another name for the algorithm',
    { algorithm: 'rsa-pss-sha512' },
    /the algorithm of the signature is not/,
  ],
  [
    'an algorithm with a shared secret',
    { algorithm: 'hmac-sha256' },
    /the algorithm of the signature is not/,
  ],
  ['no agent', { fields: ['@authority'] }, /must cover a Signature-Agent/],
  ['no authority', { fields: ['@method', member] }, /must cover @authority/],
  ['another tag', { tag: 'gnap' }, /tag="web-bot-auth"/],
  ['no end', { expiresS: undefined as never }, /has no expires parameter/],
  ['an end that is over', { createdS: nowS() - 300, expiresS: nowS() - 100 }, /has expired/],
  ['an end too far', { expiresS: nowS() + 86_500 }, /more than 24 hours/],
  ['a beginning to come', { createdS: nowS() + 300, expiresS: nowS() + 400 }, /in the future/],
  ['no nonce', { nonce: undefined as never }, /needs a nonce/],
  ['an empty nonce', { nonce: '' }, /needs a nonce/],
  ['no key', { keyId: null }, /keyid must be the RFC 7638 thumbprint/],
  ['the kid of a key', { keyId: 'mine' }, /keyid must be the RFC 7638 thumbprint/],
  [
    'a component that is not there',
    {
      change: ({ headers: { 'Content-Digest': _, ...headers }, ...sent }) => ({ ...sent, headers }),
      ...detect,
    },
    /not in the request/,
  ],
  [
    'another body',
    { ...detect, change: (sent) => ({ ...sent, body: '{"user_agent":"wget/1"}' }) },
    /does not match Content-Digest/,
  ],
  ['no body', { ...detect, change: (sent) => ({ ...sent, body: null }) }, /does not match Content-Digest/],
  [
    'another digest',
    { ...detect, change: withHeader('Content-Digest', 'sha-256=:AAAA:') },
    /does not match|Content-Digest/,
  ],
  ['half a signature', { change: withHeader('Signature', 'sig1=:AAAA:') }, /does not match/],
  ['a signature that is none', { change: withHeader('Signature', 'sig1=1') }, /are not a valid signature/],
  ['an input that is none', { change: withHeader('Signature-Input', 'sig1') }, /are not a valid signature/],
  ['a bearer token besides', { change: withHeader('Authorization', 'Bearer x') }, /invalid API key/],
]

test('a key is good in its time, remembered or not, and what is kept here has times, too', async (t) => {
  let laterS = 0
  const nowS = () => Math.floor(Date.now() / 1000) + laterS
  const { server, ask, trust, agent } = await bench(t, { nowMs: () => Date.now() + laterS * 1000 })
  const changeS = nowS() + 100
  const keys = [
    { ...signer.jwk, exp: changeS },
    { ...other.jwk, nbf: changeS },
  ]
  const long = { 'cache-control': 'max-age=3600' }
  server.serveJson('/aid.json', { client_id: agent, jwks: { keys } }, long)
  const kept = 'https://agent.example/identity.json'
  await trust()
  await trust({ agent_id: undefined, document: { client_id: kept, jwks: { keys } } })
  const asked = async (id: string, by: Signer) => {
    const { status, body } = await ask({ agent: id, createdS: nowS(), expiresS: nowS() + 60 }, by)
    return status === 401 ? body.detail : status
  }
  const now = async () => {
    const answers = []
    for (const id of [agent, kept]) for (const by of [signer, other]) answers.push(await asked(id, by))
    return answers
  }
  const wrong = (id: string) => `the document of ${id} lists this key as not yet valid or expired (nbf, exp)`
  assert.deepEqual(await now(), [200, wrong(agent), 200, wrong(kept)])
  laterS = 101
  assert.deepEqual(await now(), [wrong(agent), 200, wrong(kept), 200])
  assert.equal(server.asked.length, 2, 'once more, for whether it has another time now')
  server.serveJson('/aid.json', { client_id: agent, jwks: { keys: [{ ...signer.jwk, exp: changeS + 100 }] } })
  laterS = 120
  assert.equal(await asked(agent, signer), 200, 'it lives for longer')
})

test('attacks on the signature', async (t) => {
  const { manage, ask, trust, server, agent } = await bench(t, { knows: true })
  server.serveJson('/aid.json', { client_id: agent, jwks: { keys: [{ ...signer.jwk, kid: 'mine' }] } })
  await trust({ scopes: ['admin'] })
  assert.equal((await ask()).status, 200)
  for (const [title, asked, message, by] of ATTACKS) {
    const answer = await ask(asked, by)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [401, 'invalid_token'],
      `${title}: ${answer.body.detail}`,
    )
    assert.match(answer.body.detail, message, title)
    assert.match(answer.headers.get('www-authenticate') ?? '', /^Bearer .*error="invalid_token"/)
  }
  assert.deepEqual(manage.failures, [])
  assert.equal((await ask(detect)).status, 200)
})

for (const kind of KINDS)
  test(`${kind}: a nonce is good once, for one key, in every process; also of two at once`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { manage, ask, trust, agent } = await bench(t, { storeUrl })
    await trust()
    const sent = await agentRequest(manage.url, signer, { agent })
    const statuses = (await Promise.all([1, 2, 3].map(() => send(sent)))).map(({ status }) => status).sort()
    assert.deepEqual(statuses, [200, 401, 401])
    const again = await send(sent)
    assert.deepEqual([again.status, again.body.detail], [401, 'this nonce was already used'])
    assert.deepEqual((await ask({ nonce: 'n' })).status, 200)
    assert.deepEqual(
      (await ask({ nonce: 'n', path: '/v1/signatures' })).status,
      401,
      'the same nonce, signed again',
    )
    const logged = manage.said.join('')
    assert.ok(!logged.includes(sent.headers['Signature']!) && !logged.includes('web-bot-auth'))
  })

test('a signature for another host is not good here', async (t) => {
  const { trust, agent, manage } = await bench(t)
  await trust()
  const sent = await agentRequest('https://other.example', signer, { agent, fields: ['@authority', member] })
  const answer = await send({ ...sent, url: `${manage.url}/v1/agents` })
  assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_token'])
})

test('the example of the manual', async (t) => {
  const { manage, server, trust, agent } = await bench(t)
  const folder = temporaryFolder(t)
  const [, document = ''] = /```json\n([^`]*"client_id"[^`]*)```/.exec(MANUAL) ?? []
  const [, program = ''] = /```js\n(\/\/ agent\.mjs\n[\s\S]*?)```/.exec(MANUAL) ?? []
  const [keyFile, file] = [join(folder, 'key.pem'), join(folder, 'agent.mjs')]
  writeFileSync(file, program)
  writeFileSync(keyFile, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const { x } = createPublicKey(readFileSync(keyFile)).export({ format: 'jwk' })
  const published = document
    .replace('https://agent.example/identity.json', agent)
    .replace('the public key', x!)
  server.serveJson('/aid.json', JSON.parse(published))
  const run = async () =>
    (await promisify(execFile)(process.execPath, [file, manage.url, agent, keyFile])).stdout
  assert.match(await run(), /^403 .*insufficient_scope/)
  await trust()
  assert.match(await run(), /^200 \{"agents":/)
  assert.match(await run(), /^200 /)
})

test('a key that signs tokens only signs no requests', async (t) => {
  const { server, ask, trust, agent } = await bench(t)
  const rsa = newSigner('rsa-pss-sha512')
  server.serveJson('/aid.json', { client_id: agent, jwks: { keys: [{ ...rsa.jwk, alg: 'PS256' }] } })
  await trust()
  assert.equal((await ask({}, rsa)).status, 401)
})

for (const kind of KINDS)
  test(`${kind}: what another process trusts no more is out within a second`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { ask, trust } = await bench(t, { storeUrl })
    const { id } = await trust()
    assert.equal((await ask()).status, 200)
    await (await openAt(t, storeUrl)).trust.remove(id)
    await wait(600)
    assert.equal((await ask()).status, 403)
  })

/** Where an agent says to be, while no private address is allowed. */
const PLACES: readonly (readonly [place: (port: number) => string, message: RegExp])[] = [
  [(port) => `https://127.0.0.1:${port}/aid.json`, /127\.0\.0\.1 is not on the public internet/],
  [(port) => `https://localhost:${port}/aid.json`, /localhost is not on the public internet/],
  [(port) => `https://x.localhost:${port}/aid.json`, /x\.localhost is not on the public internet/],
  [(port) => `https://[::1]:${port}/aid.json`, /::1 is not on/],
  [(port) => `https://[::ffff:7f00:1]:${port}/aid.json`, /::ffff:7f00:1 is not on/],
  [(port) => `https://[64:ff9b::7f00:1]:${port}/aid.json`, /64:ff9b::7f00:1 is not on/],
  [() => 'https://169.254.169.254/latest/meta-data/', /169\.254\.169\.254 is not on/],
  [() => 'https://[fd00:ec2::254]/latest/meta-data/', /fd00:ec2::254 is not on/],
  [() => 'https://10.0.0.1', /10\.0\.0\.1 is not on/],
  [(port) => `https://127.1:${port}/aid.json`, /normalized https:\/\/ URL of an agent/],
  [(port) => `https://0x7f.0.0.1:${port}/aid.json`, /must be the normalized https/],
  [(port) => `https://[::ffff:127.0.0.1]:${port}/aid.json`, /must be the normalized https/],
  [(port) => `http://127.0.0.1:${port}/aid.json`, /must be the normalized https/],
  [(port) => `https://agent@127.0.0.1:${port}/aid.json`, /must be the normalized https/],
  [(port) => `https://agent.example@127.0.0.1:${port}/aid.json`, /must be the normalized https/],
  [() => 'file:///etc/passwd', /must be the normalized https/],
  [() => 'gopher://127.0.0.1/', /must be the normalized https/],
]

test('nobody makes us ask a private address', async (t) => {
  const { manage, server, trust } = await bench(t, { allowPrivateFetches: false })
  const secure = await DocumentServer.start(t)
  for (const [place, message] of PLACES) {
    const agent = place(secure.port)
    const answer = await send(await agentRequest(manage.url, signer, { agent }))
    assert.deepEqual([answer.status, answer.body.code], [401, 'invalid_token'], agent)
    assert.match(answer.body.detail, message)
  }
  const uris = ['https://127.0.0.1:1/keys', `https://localhost:${secure.port}/keys`, 'https://[fe80::1]/']
  for (const [index, jwks_uri] of uris.entries()) {
    const agent = `https://agent.example/${index}`
    await trust({ agent_id: agent, document: { client_id: agent, jwks_uri } })
    const answer = await send(await agentRequest(manage.url, signer, { agent }))
    assert.equal(answer.status, 401)
    assert.match(answer.body.detail, /is not on the public internet/)
  }
  assert.deepEqual([server.asked.length, secure.asked.length, manage.failures], [0, 0, []])
})

const json = { 'content-type': 'application/json' }
const text =
  (value: string, headers: Record<string, string> = json) =>
  (_: unknown, response: ServerResponse) =>
    response.writeHead(200, headers).end(value)

test('documents of attackers', async (t) => {
  const { manage, server, ask } = await bench(t)
  const secret = signer.privateKey.export({ format: 'jwk' })
  const here = (path: string) => server.url(path, '127.0.0.1')
  const document = (more: Record<string, unknown>) => (id: string) =>
    text(JSON.stringify({ client_id: id, jwks: { keys: [signer.jwk] }, ...more }))
  const keys = (...all: unknown[]) => document({ jwks: { keys: all } })
  const elsewhere = (id: string) => (_: unknown, response: ServerResponse) =>
    response.writeHead(302, { location: `${id}/there` }).end()
  const deep = `{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}`
  const keysAt = (jwks_uri: string) => document({ jwks: undefined, jwks_uri })
  const cases: readonly (readonly [title: string, answer: (id: string) => Answer, message: RegExp])[] = [
    ['a redirect', elsewhere, /no redirect is followed/],
    ['a huge one', document({ x: 'x'.repeat(70_000) }), /longer than 65536 bytes/],
    ['a deep one', () => text(deep), /nested deeper/],
    [
      'that of another agent',
      document({ client_id: here('/other') }),
      /client_id is not the address of this/,
    ],
    ['that of no agent', document({ client_id: undefined }), /client_id is missing/],
    ['a private key', keys(secret), /jwks\/keys\/0\/d is private/],
    ['a shared secret', keys({ kty: 'oct', k: 'c2VjcmV0' }), /jwks\/keys\/0\/k is private/],
    [
      'the same kid twice',
      keys({ ...signer.jwk, kid: 'a' }, { ...other.jwk, kid: 'a' }),
      /two keys of one name/,
    ],
    ['algorithms that nobody knows', keys({ ...signer.jwk, alg: 'none' }), /no key for signatures/],
    ['too many keys', keys(...Array(33).fill(signer.jwk)), /more than 32 keys/],
    ['a page', () => text('<html>', { 'content-type': 'text/html' }), /its Content-Type is not JSON/],
    ['keys elsewhere that are not there', keysAt(here('/none')), /it answers 404/],
    ['keys elsewhere that are an identity', keysAt(here('/aid.json')), /keys must be a list of keys/],
    ['keys in a file', keysAt('file:///etc/passwd'), /jwks_uri must be a URL with https/],
  ]
  for (const [index, [title, answer, message]] of cases.entries()) {
    const path = `/attack/${index}`
    server.serve(path, answer(here(path)))
    const refused = await ask({ agent: here(path) })
    assert.deepEqual([refused.status, refused.body.code], [401, 'invalid_token'], title)
    assert.match(refused.body.detail, message, title)
    assert.ok(!JSON.stringify([refused.body, manage.said]).includes(secret.d!))
  }
  assert.ok(!server.asked.some(({ url }) => url!.includes('there')))
  assert.deepEqual(manage.failures, [])
})

test('strangers whose servers are slow stand in the way of nobody who is trusted, and are told', async (t) => {
  const { server, agent, ask, trust } = await bench(t)
  await trust()
  let [held, heldThen] = [0, 0]
  const full = Promise.withResolvers<void>()
  server.serve('*', (_, response) => {
    if (++held === 2) full.resolve()
    response.on('close', () => held--)
  })
  const document = JSON.stringify({ client_id: agent, jwks: { keys: [signer.jwk] } })
  server.serve('/aid.json', (_, response) => {
    heldThen = held
    response.writeHead(200, { 'content-type': 'application/json' }).end(document)
  })
  const slow = (count: number) =>
    Array.from({ length: count }, (_, index) => ask({ agent: server.url(`/${count}/${index}`, '127.0.0.1') }))
  // As many as one server is asked for at once.
  const first = slow(2)
  await full.promise
  assert.equal((await ask()).status, 200)
  assert.equal(heldThen, 2, 'its document was asked of the same server meanwhile')
  const statuses = (await Promise.all([...first, ...slow(80)])).map(({ status }) => status)
  assert.deepEqual([...new Set(statuses)].sort(), [401, 503])
})

test('an agent that changes its key is known by the new one', async (t) => {
  const { server, agent } = await bench(t)
  const store = await openAt(t, await freshUrl('sqlite', t))
  let nowMs = 0
  const trust = new Trust(store.trust, () => nowMs)
  const agents = new AgentIdentities(trust, { allowPrivate: true, nowMs: () => nowMs })
  t.teardown(() => agents.close())
  const found = async (by: Signer) => {
    const { keys } = await agents.find(agent, by.key.thumbprint)
    return keys.some(({ thumbprint }) => thumbprint === by.key.thumbprint)
  }
  assert.deepEqual([await found(signer), await found(other)], [true, false])
  server.serveJson('/aid.json', { client_id: agent, jwks: { keys: [other.jwk] } })
  nowMs = 9_999
  assert.equal(await found(other), false, 'it is not asked for all the time')
  nowMs = 10_000
  assert.deepEqual([await found(other), await found(signer)], [true, false])
})
