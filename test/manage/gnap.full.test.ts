import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { gunzipSync, gzipSync } from 'node:zlib'
import { test } from 'tap'
import { hashOfKey } from '../../src/manage/auth/api-keys.ts'
import { hashesOf, newTokenSecrets } from '../../src/manage/auth/gnap/token-answer.ts'
import type { TrustRecord } from '../../src/store/people/trust.ts'
import { newSigner } from '../identity/signer.ts'
import { freshUrl, KINDS, openAt, type Owner } from '../store/databases.ts'
import { GnapClient } from './gnap-client.ts'
import { TestManagement, type TestOptions } from './management.ts'

/** A management plane whose clock can be moved, and a client whose key may have these scopes. */
async function begun(
  t: Owner,
  scopes: readonly string[] | null = ['read', 'detect'],
  options: TestOptions = {},
) {
  const clock = { aheadMs: 0 }
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, { nowMs, ...options })
  const store = await openAt(t, manage.storeUrl)
  const client = new GnapClient(manage.url, newSigner(), nowMs)
  const trust = (given: Partial<TrustRecord> = {}) =>
    store.trust.add({ ...record(client, scopes ?? []), ...given })
  if (scopes !== null) await trust()
  return { manage, store, client, clock, nowMs, trust }
}

function record(client: GnapClient, scopes: readonly string[]): TrustRecord {
  return {
    ...{
      id: 'trs_1',
      kind: 'key',
      subject: client.thumbprint,
      name: 'robot',
      apps: '*',
      scopes,
      plan: 'standard',
    },
    ...{ document: client.signer.jwk as Record<string, unknown>, createdAtMs: 0 },
  }
}

const DETECT = { user_agent: 'curl/8.5.0' }

test('discovery says the same at both addresses, to anybody, with or without a database', async (t) => {
  const { manage } = await begun(t)
  const expected = {
    grant_request_endpoint: `${manage.url}/gnap/grant`,
    interaction_start_modes_supported: ['redirect'],
    interaction_finish_methods_supported: ['redirect'],
    key_proofs_supported: ['httpsig'],
    key_rotation_supported: false,
  }
  for (const [method, path] of [
    ['GET', '/.well-known/gnap-as'],
    ['OPTIONS', '/.well-known/gnap-as'],
    ['OPTIONS', '/gnap/grant'],
  ] as const) {
    const { status, headers, body } = await manage.ask(method, path, undefined, { authorization: '' })
    assert.deepEqual([status, body], [200, expected], path)
    assert.match(headers.get('content-type')!, /^application\/json/)
  }
  const posted = await manage.ask('POST', '/.well-known/gnap-as')
  assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  const got = await manage.ask('GET', '/gnap/grant')
  assert.deepEqual([got.status, got.body.error.code], [405, 'invalid_request'])
  assert.equal(got.headers.get('allow'), 'POST, OPTIONS')
})

test('without a database GNAP says so in its own words, and discovery goes on', async (t) => {
  const storeUrl = 'postgres://nobody@127.0.0.1:1/none'
  const manage = await TestManagement.start(t, { storeUrl, admin: null })
  const client = new GnapClient(manage.url)
  const { status, headers, body } = await client.grant(['read'])
  assert.deepEqual([status, body.error.code, headers.get('retry-after')], [503, 'request_denied', '5'])
  assert.equal((await manage.ask('GET', '/.well-known/gnap-as')).status, 200)
})

test('a key that is trusted gets what it may have, at once, and uses it', async (t) => {
  const { manage, client } = await begun(t, ['read', 'detect'], { knows: true })
  const { status, headers, body } = await client.grant(['detect', 'write', 'read', 'fly'])
  assert.equal(status, 200, JSON.stringify(body))
  assert.match(headers.get('content-type')!, /^application\/json/)
  assert.equal(headers.get('cache-control'), 'no-store')
  const token = body.access_token
  assert.deepEqual(token.access, [{ type: 'service-api', actions: ['read', 'detect'] }])
  assert.equal(token.expires_in, 600)
  assert.match(token.value, /^gna_[\w-]{50}$/)
  assert.deepEqual(
    [token.flags, token.label, body.instance_id],
    [undefined, undefined, `gnk_${client.thumbprint}`],
  )
  const detected = await client.ask('POST', '/v1/detect', token, DETECT)
  assert.equal(detected.status, 200, JSON.stringify(detected.body))
  assert.ok(detected.headers.get('ratelimit-policy'))
  assert.equal((await client.ask('GET', '/v1/agents?limit=1', token)).status, 200)
  const refused = await client.ask('POST', '/v1/signatures/submit', token, {})
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'])
  assert.deepEqual(manage.failures, [])
})

test('every kind of key is taken, and the proof in its longer form', async (t) => {
  const { manage, store } = await begun(t)
  for (const [index, algorithm] of (['ed25519', 'ecdsa-p384-sha384', 'rsa-pss-sha512'] as const).entries()) {
    const client = new GnapClient(manage.url, newSigner(algorithm))
    await store.trust.add({ ...record(client, ['read']), id: `trs_${algorithm}` })
    const proof = { method: 'httpsig', alg: algorithm, 'content-digest-alg': 'sha-256' }
    const jwk = { ...client.signer.jwk, kid: `key-${index}`, use: 'sig' }
    const { status, body } = await client.grant(
      ['read'],
      { client: { key: { proof, jwk } } },
      { keyId: `key-${index}` },
    )
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal((await client.ask('GET', '/v1/agents', body.access_token)).status, 200)
    const kid = await client.ask('GET', '/v1/agents', body.access_token, undefined, { keyId: `key-${index}` })
    assert.equal(kid.status, 200)
  }
})

test('several tokens have labels, and one that nothing is left of is left out', async (t) => {
  const { client } = await begun(t)
  const of = (label: string | undefined, actions: readonly string[], more = {}) => {
    return {
      access: ['other', { type: 'service-api', actions }],
      ...(label !== undefined && { label }),
      ...more,
    }
  }
  const access_token = [
    of('a', ['read']),
    of('b', ['admin']),
    of('c', ['detect', 'admin'], { flags: ['bearer'] }),
  ]
  const { body } = await client.grant([], { access_token })
  assert.deepEqual(
    body.access_token.map(({ label, flags, access }: Record<string, unknown>) => [label, flags, access]),
    [
      ['a', undefined, [{ type: 'service-api', actions: ['read'] }]],
      ['c', ['bearer'], [{ type: 'service-api', actions: ['detect'] }]],
    ],
  )
  for (const wrong of [
    [of('a', ['read']), of('a', ['read'])],
    [of('a', ['read']), of(undefined, ['read'])],
  ]) {
    const { status, body: refused } = await client.grant([], { access_token: wrong })
    assert.deepEqual([status, refused.error.code], [400, 'invalid_request'])
  }
  const one = await client.grant([], { access_token: of('mine', ['read']) })
  assert.equal(one.body.access_token.label, 'mine')
})

test('nothing that is left, an unknown key, an unknown instance', async (t) => {
  const { manage, client } = await begun(t)
  const nothing = await client.grant(['admin'])
  assert.deepEqual([nothing.status, nothing.body.error.code], [403, 'request_denied'])
  const other = await client.grant([], {
    access_token: { access: [{ type: 'photo-api', actions: ['read'] }] },
  })
  assert.deepEqual([other.status, other.body.error.code], [403, 'request_denied'])
  const elsewhere = { type: 'service-api', actions: ['read'], locations: ['https://elsewhere.example/v1'] }
  assert.equal(
    (await client.grant([], { access_token: { access: [elsewhere] } })).body.error.code,
    'request_denied',
  )
  const here = { ...elsewhere, locations: [`${manage.url}/v1`] }
  assert.equal((await client.grant([], { access_token: { access: [here] } })).status, 200)
  const stranger = await new GnapClient(manage.url).grant(['read'])
  assert.deepEqual([stranger.status, stranger.body.error.code], [403, 'request_denied'])
  for (const id of ['nobody', 'gnk_nobody']) {
    const { status, body } = await client.grant(['read'], { client: id })
    assert.deepEqual([status, body.error.code], [401, 'invalid_client'])
  }
  const { status } = await client.grant(['read'], { client: `gnk_${client.thumbprint}` })
  assert.equal(status, 200)
  const thief = new GnapClient(manage.url)
  const stolen = await thief.grant(
    ['read'],
    { client: `gnk_${client.thumbprint}` },
    { keyId: client.thumbprint },
  )
  assert.deepEqual([stolen.status, stolen.body.error.code], [401, 'invalid_client'])
})

test('a bearer token is presented by itself, and nowhere with GNAP', async (t) => {
  const { manage, client } = await begun(t)
  const access = [{ type: 'service-api', actions: ['read'] }]
  const { body } = await client.grant([], { access_token: { access, flags: ['bearer'] } })
  const { value } = body.access_token
  assert.deepEqual(body.access_token.flags, ['bearer'])
  const as = (authorization: string) => manage.ask('GET', '/v1/agents', undefined, { authorization })
  assert.equal((await as(`bearer ${value}`)).status, 200)
  for (const wrong of [`GNAP ${value}`, `Bearer ${value}x`, `Bearer ${value.toLowerCase()}`])
    assert.deepEqual([(await as(wrong)).status, wrong], [401, wrong])
  assert.equal((await client.ask('GET', '/v1/agents', { value })).status, 401)
})

test('where there are no bearer tokens, nobody gets one', async (t) => {
  const { client } = await begun(t, ['read'], { gnap: { tokenTtlS: 60, allowsBearer: false } })
  const access = [{ type: 'service-api', actions: ['read'] }]
  const { status, body } = await client.grant([], { access_token: { access, flags: ['bearer'] } })
  assert.deepEqual([status, body.error.code], [400, 'invalid_flag'])
  const bound = await client.grant(['read'])
  assert.equal(bound.body.access_token.expires_in, 60)
})

test('a token expires, and can be renewed for an hour', async (t) => {
  const { client, clock } = await begun(t)
  const first = (await client.grant(['read'])).body.access_token
  clock.aheadMs = 600_000
  const late = await client.ask('GET', '/v1/agents', first)
  assert.deepEqual([late.status, late.body.code], [401, 'expired_token'])
  assert.match(late.headers.get('www-authenticate')!, /^GNAP as_uri="http.*\/gnap\/grant"/)
  const renewed = await client.rotate(first)
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body))
  const second = renewed.body.access_token
  assert.deepEqual(second.access, first.access)
  assert.equal((await client.ask('GET', '/v1/agents', second)).status, 200)
  assert.equal((await client.ask('GET', '/v1/agents', first)).body.code, 'invalid_token')
  const again = await client.rotate(first)
  assert.deepEqual([again.status, again.body.error.code], [401, 'invalid_client'])
  clock.aheadMs += 600_000 + 3_600_000
  const over = await client.rotate(second)
  assert.deepEqual([over.status, over.body.error.code], [400, 'invalid_rotation'])
})

test('a token stays with its key', async (t) => {
  const { client } = await begun(t)
  const { access_token } = (await client.grant(['read'])).body
  const { status, body } = await client.rotate(access_token, { key: new GnapClient('').key })
  assert.deepEqual([status, body.error.code], [400, 'key_rotation_not_supported'])
  assert.equal((await client.ask('GET', '/v1/agents', access_token)).status, 200, 'and is as it was')
  assert.equal((await client.rotate(access_token, {})).status, 200)
  const access = [{ type: 'service-api', actions: ['read'] }]
  const bearer = (await client.grant([], { access_token: { access, flags: ['bearer'] } })).body.access_token
  const bound = await client.rotate(bearer, { key: new GnapClient('').key })
  assert.deepEqual([bound.status, bound.body.error.code], [400, 'invalid_rotation'], 'it has none (§6.1.1)')
})

for (const kind of KINDS)
  test(`${kind}: a token that was renewed elsewhere opens nothing within a second`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { client } = await begun(t, ['read'], { storeUrl })
    const { access_token } = (await client.grant(['read'])).body
    assert.equal((await client.ask('GET', '/v1/agents', access_token)).status, 200)
    const store = await openAt(t, storeUrl)
    const id = access_token.manage.uri.split('/').at(-1)!
    const manageHash = hashOfKey(access_token.manage.access_token.value)
    const token = (await store.gnapTokens.managed(id, manageHash))!
    const next = newTokenSecrets()
    assert.ok(await store.gnapTokens.rotate(token, manageHash, hashesOf(next)))
    await wait(600)
    assert.equal((await client.ask('GET', '/v1/agents', access_token)).status, 401)
    assert.equal((await client.ask('GET', '/v1/agents', next)).status, 200)
  })

test('a token that is given up is no good any more, and can be given up again', async (t) => {
  const { client } = await begun(t)
  const { access_token } = (await client.grant(['read'])).body
  assert.equal((await client.ask('GET', '/v1/agents', access_token)).status, 200)
  assert.equal((await client.revoke(access_token)).status, 204)
  assert.equal((await client.ask('GET', '/v1/agents', access_token)).status, 401)
  assert.equal((await client.revoke(access_token)).status, 204)
  assert.equal((await client.rotate(access_token)).body.error.code, 'invalid_rotation')
})

for (const kind of KINDS)
  test(`${kind}: what another process revokes, and a key that is trusted no more, open nothing within a second`, async (t) => {
    const { client, store } = await begun(t, ['read'], { storeUrl: await freshUrl(kind, t) })
    const [one, two] = [
      (await client.grant(['read'])).body.access_token,
      (await client.grant(['read'])).body.access_token,
    ]
    const status = async (token: typeof one) => (await client.ask('GET', '/v1/agents', token)).status
    assert.deepEqual([await status(one), await status(two)], [200, 200])
    await store.gnapTokens.revoke(one.manage.uri.split('/').at(-1)!, Date.now())
    await wait(600)
    assert.deepEqual([await status(one), await status(two)], [401, 200])
    await store.trust.remove('trs_1')
    await wait(600)
    assert.equal(await status(two), 401)
    assert.equal((await client.rotate(two)).body.error.code, 'invalid_rotation')
  })

for (const kind of KINDS)
  test(`${kind}: of the same request, sent to two processes at once, one is answered`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { client, nowMs } = await begun(t, ['read'], { storeUrl })
    // SQLite has one process.
    const urls = [
      client.url,
      kind === 'sqlite'
        ? client.url
        : (await TestManagement.start(t, { storeUrl, nowMs, publicUrl: client.url })).url,
    ]
    const { access_token } = (await client.grant(['read'])).body
    const sent = { nonce: 'once', createdS: Math.floor(nowMs() / 1000), url: `${client.url}/v1/agents` }
    const ask = (url: string) =>
      new GnapClient(url, client.signer).ask('GET', '/v1/agents', access_token, undefined, sent)
    const answers = await Promise.all(Array.from({ length: 8 }, (_, i) => ask(urls[i % 2]!)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, ...Array(7).fill(401)])
  })

test('a body that is compressed is signed as it is sent', async (t) => {
  const { client } = await begun(t, ['detect'], { knows: true })
  const { access_token } = (await client.grant(['detect'])).body
  const send = async (body: Buffer, sent = body) =>
    (
      await client.ask('POST', '/v1/detect', access_token, body, {
        coding: 'gzip',
        body: gzipSync(gunzipSync(sent)),
      })
    ).status
  const packed = gzipSync(JSON.stringify(DETECT))
  assert.equal(await send(packed), 200)
  assert.equal(await send(packed, gzipSync(JSON.stringify({ user_agent: 'x' }))), 401)
  assert.equal(await send(gzipSync(Buffer.alloc(2 ** 21, 0x20))), 413)
  const damaged = await client.ask('POST', '/v1/detect', access_token, Buffer.from('no gzip'), {
    coding: 'gzip',
  })
  assert.equal(damaged.status, 400)
})

test('neither the log, nor the audit log, nor the database has a token', async (t) => {
  const { manage, client, store } = await begun(t, null)
  const { body } = await client.grant(['read'], { interact: { start: ['redirect'] } })
  await manage.ask('POST', `/v1/grants/${body.continue.uri.split('/').at(-1)}/decide`, {
    decision: 'approve',
  })
  const audit = JSON.stringify((await manage.ask('GET', '/v1/audit')).body)
  assert.match(audit, /decideGrant/)
  const grant = JSON.stringify(await store.gnapGrants.byId(body.continue.uri.split('/').at(-1)))
  for (const secret of [body.continue.access_token.value, body.interact.redirect.split('/').at(-1)])
    for (const text of [audit, manage.said.join('\n'), grant]) assert.ok(!text.includes(secret))
})

test('what the manual shows works', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-gnap-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const [, program = ''] =
    /```js\n(\/\/ gnap\.mjs\n[\s\S]*?)```/.exec(readFileSync('config/guide/gnap.md', 'utf8')) ?? []
  const [script, key] = [join(folder, 'gnap.mjs'), join(folder, 'key.pem')]
  writeFileSync(script, program)
  writeFileSync(key, newSigner().privateKey.export({ type: 'sec1', format: 'pem' }))
  const run = async (...argv: readonly string[]) =>
    (await promisify(execFile)(process.execPath, [script, key, ...argv])).stdout
  const jwk = JSON.parse(await run()) as unknown
  const trusted = await manage.ask('POST', '/v1/trust', { jwk, scopes: ['detect'], name: 'reader' })
  assert.equal(trusted.status, 201, JSON.stringify(trusted.body))
  assert.match(await run(manage.url), /is_agent: true[\s\S]*'GPTBot'/)
  await manage.ask('DELETE', `/v1/trust/${trusted.body.id}`)
  await assert.rejects(run(manage.url))
})
