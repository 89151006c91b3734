import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { Trust } from '../../src/manage/auth/trust.ts'
import { newSigner } from '../identity/signer.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const { jwk, key, privateKey } = newSigner()
const AGENT = 'https://agent.example/identity.json'
const secret = privateKey.export({ format: 'jwk' })

test('an agent and a key are trusted, listed, and trusted no more', async (t) => {
  const manage = await TestManagement.start(t)
  const agent = await manage.ask('POST', '/v1/trust', { agent_id: AGENT, scopes: ['detect', 'read', 'read'] })
  const { id, created_at, ...rest } = agent.body
  assert.equal(agent.status, 201)
  assert.match(id, /^trs_/)
  assert.match(created_at, /Z$/)
  assert.deepEqual(rest, {
    ...{ agent_id: AGENT, document: null, jwk: null, thumbprint: null, name: null },
    ...{ scopes: ['read', 'detect'], apps: '*', plan: 'standard' },
  })
  const given = { ...jwk, kid: 'mine', ext: true }
  const made = await manage.ask('POST', '/v1/trust', {
    jwk: given,
    scopes: ['admin'],
    name: 'ours',
    plan: 'free',
  })
  assert.deepEqual(
    [made.status, made.body.agent_id, made.body.thumbprint, made.body.jwk, made.body.name, made.body.plan],
    [201, null, key.thumbprint, { ...jwk, kid: 'mine' }, 'ours', 'free'],
  )
  const { body, headers } = await manage.ask('GET', '/v1/trust?limit=1')
  assert.deepEqual([body.trust, body.total], [[made.body], 2])
  assert.match(headers.get('link')!, /page=2>; rel="next"/)
  assert.equal((await manage.ask('DELETE', `/v1/trust/${id}`)).status, 204)
  assert.equal((await manage.ask('DELETE', `/v1/trust/${id}`)).status, 404)
  const again = await manage.ask('POST', '/v1/trust', { agent_id: AGENT, scopes: ['read'] })
  assert.equal(again.status, 201)
})

test('an agent, and a key, has one entry, whoever asks at once', async (t) => {
  const manage = await TestManagement.start(t)
  for (const body of [{ agent_id: AGENT }, { jwk }] as const) {
    const asked = [1, 2, 3].map(() => manage.ask('POST', '/v1/trust', { ...body, scopes: ['read'] }))
    assert.deepEqual((await Promise.all(asked)).map(({ status }) => status).sort(), [201, 409, 409])
  }
  const named = await manage.ask('POST', '/v1/trust', {
    jwk: { ...jwk, kid: 'other', alg: 'ES256' },
    scopes: ['mcp'],
  })
  assert.deepEqual(
    [named.status, named.body.detail],
    [409, 'this key is already trusted: delete that entry first'],
  )
  assert.equal((await manage.ask('GET', '/v1/trust')).body.total, 2)
  assert.equal((await manage.ask('GET', '/v1/audit?action=createTrust')).body.total, 2)
})

test('the document of an app that asks people may have no keys', async (t) => {
  const manage = await TestManagement.start(t)
  const document = { client_id: AGENT, redirect_uris: ['https://agent.example/back'] }
  const { status, body } = await manage.ask('POST', '/v1/trust', { document, scopes: ['read'] })
  assert.deepEqual([status, body.document], [201, document])
})

test('a document that is given is kept as far as it is public, and used', async (t) => {
  const manage = await TestManagement.start(t)
  const document = {
    client_id: AGENT,
    client_name: 'A bot',
    jwks: { keys: [{ ...jwk, x5c: ['x'] }] },
    contacts: ['x'],
  }
  const { status, body } = await manage.ask('POST', '/v1/trust', { document, scopes: ['read'] })
  const kept = { client_id: AGENT, client_name: 'A bot', jwks: { keys: [jwk] } }
  assert.deepEqual([status, body.agent_id, body.document], [201, AGENT, kept])
  const keys = { agent_id: 'https://agent.example', document: { keys: [jwk] }, scopes: ['read'] }
  const set = await manage.ask('POST', '/v1/trust', keys)
  assert.deepEqual(set.body.document, { client_id: 'https://agent.example', jwks: { keys: [jwk] } })
})

const BAD: readonly (readonly [body: Record<string, unknown>, problem: string])[] = [
  [{}, '/agent_id is for agents'],
  [{ agent_id: AGENT, jwk }, '/agent_id is for agents'],
  [{ jwk, document: { keys: [jwk] } }, '/agent_id is for agents'],
  [{ agent_id: 'openai-python' }, '/agent_id must be a URL with https://'],
  [{ agent_id: 'http://agent.example/x' }, '/agent_id must be a URL with https://'],
  [
    { agent_id: 'https://Agent.example/x' },
    '/agent_id is not written as it should be: https://agent.example/x',
  ],
  [{ agent_id: 'https://a@agent.example/x' }, '/agent_id has a user or a password in it'],
  [{ jwk: { ...jwk, d: secret.d } }, '/jwk/d is private'],
  [{ jwk: { kty: 'oct', k: 'c2VjcmV0LXNlY3JldA' } }, '/jwk/k is private'],
  [{ jwk: {} }, '/jwk/kty and crv take EC'],
  [{ jwk: { ...jwk, alg: 'HS256' } }, '/jwk/alg must be one of ES256'],
  [{ jwk: { ...newSigner('rsa-pss-sha512').jwk, alg: 'RS256' } }, '/jwk/alg is an algorithm for tokens'],
  [{ jwk: [jwk] }, '/jwk must be an object'],
  [{ document: { keys: [jwk] } }, '/document/client_id is missing'],
  [{ document: { client_id: AGENT, jwks: { keys: [secret] } } }, '/document/jwks/keys/0/d is private'],
  [{ document: { client_id: 'x', public_key: jwk } }, '/document/client_id must be a URL with https://'],
  [
    { agent_id: AGENT, document: { client_id: `${AGENT}x`, public_key: jwk } },
    '/document/client_id is not the address',
  ],
  [{ agent_id: AGENT, name: 'a\u0007' }, '/name must have 1 to 100 characters'],
  [{ agent_id: AGENT, plan: 'gold' }, '/plan must be one of free, standard, unlimited'],
  [{ agent_id: AGENT, scope: 'read' }, '/scope is unknown (did you mean "scopes"?)'],
  [{ agent_id: AGENT, scopes: [] }, '/scopes is empty'],
  [{ agent_id: AGENT, scopes: ['root'] }, '/scopes/0 must be one of read'],
]

test('what is wrong is named, and a private key is in no answer, log or audit entry', async (t) => {
  const manage = await TestManagement.start(t)
  const answers: unknown[] = []
  for (const [body, problem] of BAD) {
    const answer = await manage.ask('POST', '/v1/trust', { scopes: ['read'], ...body })
    answers.push(answer.body)
    assert.equal(answer.status, 400, problem)
    const [first] = answer.body.errors
    assert.ok(`${first.pointer} ${first.detail}`.startsWith(problem), `${first.pointer} ${first.detail}`)
  }
  const { body: audit } = await manage.ask('GET', '/v1/audit')
  const all = JSON.stringify([answers, audit, manage.said])
  for (const part of [secret.d!, 'c2VjcmV0LXNlY3JldA']) assert.ok(!all.includes(part))
  assert.deepEqual([audit.total, manage.failures], [1, []])
  assert.equal((await manage.ask('GET', '/v1/trust')).body.total, 0)
})

test('who may, and what is remembered of it', async (t) => {
  const manage = await TestManagement.start(t)
  const writer = {
    authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })}`,
  }
  for (const [method, path] of [
    ['GET', '/v1/trust'],
    ['POST', '/v1/trust'],
    ['DELETE', '/v1/trust/trs_x'],
  ] as const)
    assert.equal((await manage.ask(method, path, undefined, writer)).status, 403)
  const { body } = await manage.ask('POST', '/v1/trust', { agent_id: AGENT, scopes: ['read'], name: 'bot' })
  await manage.ask('DELETE', `/v1/trust/${body.id}`)
  const { body: log } = await manage.ask('GET', '/v1/audit?limit=2')
  const access = { scopes: ['read'], apps: '*', plan: 'standard' }
  const detail = { agent_id: AGENT, document: false, name: 'bot', ...access }
  assert.deepEqual(
    log.audit.map((each: Record<string, unknown>) => [each['action'], each['subject'], each['detail']]),
    [
      ['deleteTrust', body.id, detail],
      ['createTrust', body.id, detail],
    ],
  )
})

for (const kind of KINDS)
  test(`${kind}: what another process deletes is out within a second`, async (t: Test) => {
    const url = await freshUrl(kind, t)
    const [store, other] = [await openAt(t, url), await openAt(t, url)]
    const entry = {
      name: null,
      apps: '*' as const,
      scopes: ['read', 'root'],
      plan: 'gold',
      document: null,
      createdAtMs: 0,
    }
    await store.trust.add({ ...entry, id: 'trs_a', kind: 'agent', subject: AGENT })
    await store.trust.add({ ...entry, id: 'trs_k', kind: 'key', subject: key.thumbprint })
    const trust = new Trust(store.trust, Date.now)
    const agent = await trust.scopesOfAgent(AGENT)
    assert.deepEqual([[...agent!.scopes], agent!.plan], [['read'], 'free'])
    assert.equal((await trust.scopesOfKey(key.thumbprint))?.id, 'trs_k')
    assert.equal(await trust.scopesOfKey(AGENT), null)
    assert.equal(await trust.scopesOfAgent(key.thumbprint), null)
    await other.trust.remove('trs_a')
    await other.trust.remove('trs_k')
    await wait(600)
    assert.deepEqual(
      [await trust.scopesOfAgent(AGENT), await trust.scopesOfKey(key.thumbprint)],
      [null, null],
    )
  })

test('a key is trusted for as long as it says itself', async (t) => {
  const store = await openFresh('sqlite', t)
  const document = { ...(jwk as Record<string, unknown>), nbf: 1_000, exp: 2_000 }
  const entry = { name: null, apps: '*' as const, scopes: ['read'], plan: 'free', document, createdAtMs: 0 }
  await store.trust.add({ ...entry, id: 'trs_k', kind: 'key', subject: key.thumbprint })
  let nowMs = 0
  const trust = new Trust(store.trust, () => nowMs)
  const found = []
  for (nowMs of [999_400, 1_000_000, 1_999_400, 2_000_000])
    found.push((await trust.scopesOfKey(key.thumbprint))?.id ?? null)
  assert.deepEqual(found, [null, 'trs_k', 'trs_k', null])
})
