import assert from 'node:assert/strict'
import {
  createHash,
  createHmac,
  createPrivateKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  randomUUID,
  sign,
} from 'node:crypto'
import * as jose from 'jose'
import { test } from 'tap'
import { Beginnings } from '../../src/manage/auth/oauth/beginnings.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { TokenSigningKeys } from '../../src/manage/auth/oauth/signing-keys.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import { openAt } from '../store/databases.ts'
import { type Answered, TestManagement, type TestOptions } from './management.ts'
import { basic, clientFor, type MadeClient, postForm, tokenFor } from './oauth-client.ts'
import { TestBrowser, TestPeople } from './oauth-people.ts'

// What somebody with bad intentions tries, each against a running management plane.

test('a code is good once: who replays it ends all that came of it', async (t) => {
  const { manage, client } = await start(t)
  const code = await codeFor(manage, client)
  const first = await exchanged(manage, client, { code })
  assert.equal((await open(manage, first.body.access_token)).status, 200)
  const replayed = await exchanged(manage, client, { code })
  assert.deepEqual([replayed.status, replayed.body.error], [400, 'invalid_grant'])
  assert.equal((await open(manage, first.body.access_token)).body.code, 'invalid_token')
  const refresh = await refreshed(manage, client, first.body.refresh_token)
  assert.deepEqual([refresh.status, refresh.body.error], [400, 'invalid_grant'])
  assert.deepEqual(manage.failures, [])
})

test('of ten who exchange a code at once one can get through at most, and keeps nothing', async (t) => {
  const { manage, client } = await start(t)
  const code = await codeFor(manage, client)
  const answers = await Promise.all(Array.from({ length: 10 }, () => exchanged(manage, client, { code })))
  const good = answers.filter(({ status }) => status === 200)
  assert.ok(good.length <= 1, `${good.length}`)
  for (const { body } of good) {
    assert.equal((await open(manage, body.access_token)).status, 401)
    assert.equal((await refreshed(manage, client, body.refresh_token)).status, 400)
  }
})

test('PKCE cannot be left out, weakened or guessed', async (t) => {
  const { manage, client } = await start(t)
  const challenge = createHash('sha256').update(VERIFIER).digest('base64url')
  const errors: unknown[] = []
  for (const more of [
    { code_challenge: '', code_challenge_method: '' },
    { code_challenge: VERIFIER, code_challenge_method: 'plain' },
    { code_challenge: challenge, code_challenge_method: '' },
    { code_challenge: '', code_challenge_method: 'S256' },
    { code_challenge: 'short', code_challenge_method: 'S256' },
  ]) {
    const { away } = await new TestBrowser(manage.url).open(authorizeUrl(manage, client, more))
    errors.push(away?.searchParams.get('error'))
  }
  assert.deepEqual(
    errors,
    Array.from({ length: 5 }, () => 'invalid_request'),
  )
  const code = await codeFor(manage, client)
  for (const code_verifier of ['', randomBytes(32).toString('base64url'), challenge, 'short']) {
    const { status } = await exchanged(manage, client, { code, code_verifier })
    assert.equal(status, 400, code_verifier)
  }
  assert.equal((await exchanged(manage, client, { code })).status, 200)
})

test('a code goes only to an address that was registered, character for character', async (t) => {
  const { manage, client } = await start(t)
  const native = await clientFor(manage, { ...CODE, redirect_uris: ['http://127.0.0.1/cb'] })
  const wrong: readonly (readonly [client: MadeClient, uri: string])[] = [
    ...[
      ...['https://app.example/callback/', 'https://app.example/callback/..', 'https://app.example/Callback'],
      ...[
        'https://app.example:8443/callback',
        'https://app.example:443/callback',
        'https://app.example/callback?x=1',
      ],
      ...[
        'https://app.example/callback#',
        'https://app.example@evil.example/callback',
        'https://APP.example/callback',
      ],
      ...['https://user@app.example/callback', 'http://app.example/callback', '//app.example/callback', ''],
      ...[
        'https://app.example.evil.example/callback',
        'https://app.example/callback%00',
        ' https://app.example/callback',
      ],
      ...['https://evil.example/https://app.example/callback', 'https://app.example\\@evil.example/callback'],
    ].map((uri) => [client, uri] as const),
    ...[
      ...['http://127.0.0.1:1/cb/', 'http://127.0.0.1:1@evil.example/cb', 'http://x@127.0.0.1:1/cb'],
      ...[
        'http://localhost:1/cb',
        'http://127.0.0.2:1/cb',
        'http://127.0.0.1.evil.example:1/cb',
        'https://127.0.0.1:1/cb',
      ],
      ...['http://127.0.0.1:1/CB', 'http://127.1:1/cb', 'http://0x7f000001:1/cb'],
    ].map((uri) => [native, uri] as const),
  ]
  for (const [who, redirect_uri] of wrong) {
    const { away, status } = await new TestBrowser(manage.url).open(
      authorizeUrl(manage, who, { redirect_uri }),
    )
    assert.deepEqual([away, status], [null, 400], redirect_uri)
  }
  // Nor is a code good with another address than it was given to.
  const code = await codeFor(manage, client)
  const moved = await exchanged(manage, client, { code, redirect_uri: 'https://app.example/other' })
  assert.deepEqual([moved.status, moved.body.error], [400, 'invalid_grant'])
})

test('a refresh token is good once: who uses an old one ends the whole family', async (t) => {
  const { manage, client } = await start(t)
  const first = (await exchanged(manage, client, { code: await codeFor(manage, client) })).body
  const second = (await refreshed(manage, client, first.refresh_token)).body
  const third = (await refreshed(manage, client, second.refresh_token)).body
  assert.equal((await open(manage, third.access_token)).status, 200)
  const stolen = await refreshed(manage, client, first.refresh_token)
  assert.deepEqual([stolen.status, stolen.body.error], [400, 'invalid_grant'])
  for (const { refresh_token } of [second, third])
    assert.equal((await refreshed(manage, client, refresh_token)).status, 400)
  for (const { access_token } of [first, second, third])
    assert.equal((await open(manage, access_token)).status, 401)
})

test('a refresh request that is refused uses nothing up', async (t) => {
  const { manage, people, client } = await start(t)
  const other = await clientFor(manage, { ...CODE, redirect_uris: [CALLBACK] })
  const code = await codeFor(manage, client, { scope: 'read detect offline_access', prompt: 'consent' })
  const { refresh_token } = (await exchanged(manage, client, { code })).body
  const ask = (form: Record<string, string>, headers: Record<string, string> = {}) => {
    const all = { grant_type: 'refresh_token', refresh_token, ...form }
    return postForm(manage.url, '/oauth/token', all, { ...basic(client), ...headers })
  }
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const wrong: Record<string, readonly [error: string, ...Parameters<typeof ask>]> = {
    'for what nobody knows': ['invalid_target', { resource: 'https://other.example/' }],
    'for what was not consented to': ['invalid_target', { resource: `${manage.url}/mcp` }],
    'for no address': ['invalid_target', { resource: 'v1' }],
    'with more scopes': ['invalid_scope', { scope: 'read write' }],
    'with scopes that are good for nothing': ['invalid_scope', { scope: 'offline_access' }],
    'with a proof for another address': [
      'invalid_dpop_proof',
      {},
      { dpop: proof(key, { htm: 'POST', htu: manage.url }) },
    ],
    'of another client': ['invalid_grant', {}, basic(other)],
    'with another secret': ['invalid_client', {}, basic({ ...client, client_secret: 'x' })],
  }
  for (const [name, [error, ...how]] of Object.entries(wrong)) {
    const { status, body } = await ask(...how)
    assert.deepEqual([status, body.error], [error === 'invalid_client' ? 401 : 400, error], name)
  }
  people.add('usr_1', ['write'])
  assert.equal((await ask({})).body.error, 'invalid_scope', 'while somebody has none of it')
  people.people.delete('usr_1')
  assert.equal((await ask({})).body.error, 'invalid_grant', 'while there is nobody')
  people.add('usr_1', ['read', 'detect'])
  const { status, body } = await ask({ resource: `${manage.url}/v1`, scope: 'read' })
  assert.deepEqual([status, body.scope], [200, 'read'])
  assert.equal((await open(manage, body.access_token)).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('of ten who refresh at once one can get through at most, and the family is over', async (t) => {
  const { manage, client } = await start(t)
  const { refresh_token } = (await exchanged(manage, client, { code: await codeFor(manage, client) })).body
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => refreshed(manage, client, refresh_token)),
  )
  const good = answers.filter(({ status }) => status === 200)
  assert.ok(good.length <= 1)
  for (const { body } of good) assert.equal((await refreshed(manage, client, body.refresh_token)).status, 400)
})

test('what is of one client is of no use to another', async (t) => {
  const { manage, client } = await start(t)
  const other = await clientFor(manage, { ...CODE, redirect_uris: [CALLBACK] })
  const code = await codeFor(manage, client)
  assert.equal((await exchanged(manage, other, { code })).body.error, 'invalid_grant')
  const mine = (await exchanged(manage, client, { code })).body
  assert.equal((await refreshed(manage, other, mine.refresh_token)).body.error, 'invalid_grant')
  const both = await postForm(
    manage.url,
    '/oauth/token',
    { grant_type: 'client_credentials', client_id: other.client_id },
    basic(client),
  )
  assert.equal(both.body.error, 'invalid_request')
  for (const token of [mine.access_token, mine.refresh_token]) {
    const asked = await postForm(manage.url, '/oauth/introspect', { token }, basic(other))
    assert.deepEqual(asked.body, { active: false })
    assert.equal((await postForm(manage.url, '/oauth/revoke', { token }, basic(other))).status, 200)
  }
  assert.equal((await open(manage, mine.access_token)).status, 200)
  assert.equal((await refreshed(manage, client, mine.refresh_token)).status, 200)
  // A client of administrators may ask about all, and take back its own only.
  const admin = await clientFor(manage, { scopes: ['admin'] })
  const seen = await postForm(manage.url, '/oauth/introspect', { token: mine.access_token }, basic(admin))
  assert.equal(seen.body.active, true)
})

test('no request gets more scopes than the client, the person and the consent have', async (t) => {
  const { manage, people, client } = await start(t, { scopes: ['read', 'detect'] })
  const scopes = ['read', 'detect', 'write', 'admin', 'mcp'] as const
  people.add('usr_1', ['admin'])
  const code = await codeFor(manage, client, { scope: scopes.join(' ') })
  const all = (await exchanged(manage, client, { code, scope: 'admin' })).body
  assert.equal(all.scope, 'read detect')
  people.consentsTo = ['read']
  const some = (
    await exchanged(manage, client, { code: await codeFor(manage, client, { scope: 'read detect' }) })
  ).body
  assert.equal(some.scope, 'read')
  for (const scope of ['read detect', 'admin', 'read write']) {
    const more = await postForm(
      manage.url,
      '/oauth/token',
      { grant_type: 'refresh_token', refresh_token: some.refresh_token, scope },
      basic(client),
    )
    assert.deepEqual([more.status, more.body.error], [400, 'invalid_scope'], scope)
  }
  const next = (await refreshed(manage, client, some.refresh_token)).body
  assert.equal(next.scope, 'read')
  const elsewhere = await postForm(
    manage.url,
    '/oauth/token',
    { grant_type: 'refresh_token', refresh_token: next.refresh_token, resource: `${manage.url}/mcp` },
    basic(client),
  )
  assert.deepEqual([elsewhere.status, elsewhere.body.error], [400, 'invalid_target'])
})

test('a forged token is a bad token, whatever its head says', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const good = await tokenFor(manage, client)
  assert.equal((await open(manage, good)).status, 200)
  const { kid } = jose.decodeProtectedHeader(good)
  const claims = jose.decodeJwt(good)
  const [published] = ((await (await fetch(`${manage.url}/oauth/jwks`)).json()) as { keys: jose.JWK[] }).keys
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ownJwk = own.publicKey.export({ format: 'jwk' })
  const spki = (await jose.exportSPKI((await jose.importJWK(published!, 'ES256')) as jose.CryptoKey)).trim()
  const ours = (head: object, body: object = claims) => es256(head, body, own.privateKey)
  const base = { alg: 'ES256', typ: 'at+jwt', kid }
  const hmac = (secret: string) => {
    const signed = `${part({ ...base, alg: 'HS256' })}.${part(claims)}`
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
  }
  const [head, body, signature] = good.split('.') as [string, string, string]
  const forged: Record<string, string> = {
    none: `${part({ ...base, alg: 'none' })}.${body}.`,
    'None, with a signature': `${part({ ...base, alg: 'None' })}.${body}.${signature}`,
    'no signature': `${head}.${body}.`,
    'HS256 with the public key as PEM': hmac(spki),
    'HS256 with the public key and a line end': hmac(`${spki}\n`),
    'HS256 with the public key as JWK': hmac(JSON.stringify(published)),
    'another key': ours(base),
    'its own key in jwk': ours({ ...base, jwk: ownJwk }),
    'its own key in jwk, without kid': ours({ alg: 'ES256', typ: 'at+jwt', jwk: ownJwk }),
    'a jku of its own': ours({ ...base, jku: 'https://evil.example/jwks' }),
    'an x5u of its own': ours({ ...base, x5u: 'https://evil.example/cert' }),
    'an x5c of its own': ours({ ...base, x5c: ['MIIB'] }),
    'a kid that is a path': ours({ ...base, kid: '../../../../dev/null' }),
    'a kid that is SQL': ours({ ...base, kid: "' union select 'x' --" }),
    'a kid that is a member of every object': ours({ ...base, kid: '__proto__' }),
    'a kid that is a list': ours({ ...base, kid: [kid] }),
    'a kid that is not there': ours({ ...base, kid: 'A'.repeat(43) }),
    'an extension it must understand': ours({ ...base, crit: ['exp'] }),
    'another claim': `${head}.${part({ ...claims, scope: 'admin' })}.${signature}`,
    'zeros for a signature': `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`,
    'a signature of DER': `${head}.${body}.${sign('sha256', Buffer.from(`${head}.${body}`), own.privateKey).toString('base64url')}`,
    'four parts': `${good}.`,
    'two parts': `${head}.${body}`,
    'a head that is no JSON': `${Buffer.from('{').toString('base64url')}.${body}.${signature}`,
    'a head that is null': `${Buffer.from('null').toString('base64url')}.${body}.${signature}`,
    'a body that is a list': ours(base, []),
    'blanks in it': `${head} .${body}.${signature}`,
    'very long': `${head}.${'A'.repeat(8_000)}.${signature}`,
  }
  for (const [name, token] of Object.entries(forged)) {
    const { status, body: problem, headers } = await open(manage, token)
    assert.deepEqual([status, problem.code], [401, 'invalid_token'], name)
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer .*error="invalid_token"/)
  }
  assert.deepEqual(manage.failures, [])
})

test('a token of our own key that is not an access token of ours is none', async (t) => {
  const encryptionKey = new Secret('to be able to sign as it does')
  const manage = await TestManagement.start(t, { encryptionKeys: [encryptionKey] })
  const client = await clientFor(manage, {})
  const good = await tokenFor(manage, client)
  const { kid } = jose.decodeProtectedHeader(good)
  const claims = jose.decodeJwt(good)
  const key = await signerOf(t, manage, encryptionKey)
  const with_ = (change: object, head: object = {}) =>
    es256({ alg: 'ES256', typ: 'at+jwt', kid, ...head }, { ...claims, ...change }, key)
  const nowS = Math.floor(Date.now() / 1000)
  assert.equal((await open(manage, with_({}))).status, 200, 'else this test is about nothing')
  const bad: Record<string, string> = {
    'typ JWT': with_({}, { typ: 'JWT' }),
    'typ of a DPoP proof': with_({}, { typ: 'dpop+jwt' }),
    'no typ': with_({}, { typ: undefined }),
    'typ in capitals': with_({}, { typ: 'AT+JWT' }),
    'another issuer': with_({ iss: 'https://evil.example' }),
    'an issuer with a slash': with_({ iss: `${manage.url}/` }),
    'another audience': with_({ aud: 'https://evil.example/v1' }),
    'the audience of the other resource': with_({ aud: `${manage.url}/mcp` }),
    'several audiences': with_({ aud: [`${manage.url}/v1`, 'https://evil.example'] }),
    'no audience': with_({ aud: undefined }),
    'no end': with_({ exp: undefined }),
    'an end that is a text': with_({ exp: String(nowS + 600) }),
    'not yet valid': with_({ nbf: nowS + 60 }),
    'of the future': with_({ iat: nowS + 60 }),
    'no id': with_({ jti: undefined }),
    'no client': with_({ client_id: undefined }),
    'a client that is not there': with_({ client_id: 'cli_nobody', sub: 'cli_nobody' }),
    'a person, where there is nobody': with_({ sub: 'usr_1' }),
    'bound to something else than a key': with_({ cnf: { 'x5t#S256': 'A' } }),
    'a scope that is a list': with_({ scope: ['admin'] }),
  }
  for (const [name, token] of Object.entries(bad)) {
    const { status, body } = await open(manage, token)
    assert.deepEqual([status, body.code], [401, 'invalid_token'], name)
  }
  const over = await open(manage, with_({ exp: nowS - 1 }))
  assert.deepEqual([over.status, over.body.code], [401, 'expired_token'])
  // More than the client has is no more than it has.
  const more = with_({ scope: 'read admin write' })
  assert.equal((await open(manage, more)).status, 200)
  assert.equal((await open(manage, more, 'GET', '/v1/keys')).status, 403)
  assert.deepEqual(manage.failures, [])
})

test('a proof is for one request, one token and one key, of now, and once', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const tokenProof = () => proof(key, { htm: 'POST', htu: `${manage.url}/oauth/token` })
  const form = { grant_type: 'client_credentials' }
  const ask = (dpop: string) => postForm(manage.url, '/oauth/token', form, { ...basic(client), dpop })
  const used = tokenProof()
  const { body } = await ask(used)
  assert.equal(body.token_type, 'DPoP')
  assert.equal((await ask(used)).status, 400)
  for (const wrong of [
    proof(key, { htm: 'GET', htu: `${manage.url}/oauth/token` }),
    proof(key, { htm: 'POST', htu: 'https://evil.example/oauth/token' }),
    proof(key, { htm: 'POST', htu: `${manage.url}/oauth/revoke` }),
    proof(key, { htm: 'POST', htu: `${manage.url}/oauth/token`, iat: Math.floor(Date.now() / 1000) - 3_600 }),
    'no.proof.atall',
  ]) {
    const refused = await ask(wrong)
    assert.deepEqual([refused.status, refused.body.error], [400, 'invalid_dpop_proof'])
  }
  const token: string = body.access_token
  const ath = createHash('sha256').update(token).digest('base64url')
  const good = { htm: 'GET', htu: `${manage.url}/v1/agents`, ath }
  const present = (dpop: string, scheme = 'DPoP', path = '/v1/agents') =>
    manage.ask('GET', path, undefined, {
      authorization: `${scheme} ${token}`,
      ...(dpop === '' ? {} : { dpop }),
    })
  const once = proof(key, good)
  assert.equal((await present(once)).status, 200)
  assert.equal((await present(proof(key, good), 'dpop', '/v1/agents?limit=1')).status, 200)
  const nowS = Math.floor(Date.now() / 1000)
  const bad: Record<string, readonly [dpop: string, scheme?: string]> = {
    'used before': [once],
    'of another key': [proof(other, good)],
    'signed by another key than it shows': [proof({ ...other, publicKey: key.publicKey }, good)],
    'for another method': [proof(key, { ...good, htm: 'POST' })],
    'for another address': [proof(key, { ...good, htu: `${manage.url}/v1/keys` })],
    'for another host': [proof(key, { ...good, htu: 'https://evil.example/v1/agents' })],
    'without ath': [proof(key, { ...good, ath: undefined })],
    'for another token': [proof(key, { ...good, ath: createHash('sha256').update('x').digest('base64url') })],
    'without jti': [proof(key, { ...good, jti: undefined })],
    'too old': [proof(key, { ...good, iat: nowS - 600 })],
    'of the future': [proof(key, { ...good, iat: nowS + 600 })],
    'of another type': [proof(key, good, { typ: 'JWT' })],
    'with the private key in it': [proof(key, good, { jwk: key.privateKey.export({ format: 'jwk' }) })],
    'with a secret for a key': [proof(key, good, { alg: 'HS256', jwk: { kty: 'oct', k: 'AAAA' } })],
    none: [''],
    'not one': ['x'],
    'very long': ['x'.repeat(9_000)],
    'as a bearer': [proof(key, good), 'Bearer'],
    'as a bearer, without one': ['', 'Bearer'],
  }
  for (const [name, [dpop, scheme]] of Object.entries(bad)) {
    const { status, body: problem, headers } = await present(dpop, scheme)
    assert.deepEqual([status, problem.code], [401, 'invalid_token'], name)
    assert.match(headers.get('www-authenticate') ?? '', /^DPoP /, name)
  }
  // Of ten at once with one proof one gets through.
  const shared = proof(key, good)
  const racing = await Promise.all(Array.from({ length: 10 }, () => present(shared)))
  assert.equal(racing.filter(({ status }) => status === 200).length, 1)
  // A token that is bound to nothing is not made better by a proof.
  const bearer = await tokenFor(manage, client)
  const hash = createHash('sha256').update(bearer).digest('base64url')
  const bare = await manage.ask('GET', '/v1/agents', undefined, {
    authorization: `DPoP ${bearer}`,
    dpop: proof(key, { ...good, ath: hash }),
  })
  assert.equal(bare.status, 401)
  assert.deepEqual(manage.failures, [])
})

test('an assertion of a client is good once, for this server, with its key', async (t) => {
  const manage = await TestManagement.start(t)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { client_id } = await clientFor(manage, {
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [publicKey.export({ format: 'jwk' })] },
  })
  const nowS = Math.floor(Date.now() / 1000)
  const claims = { iss: client_id, sub: client_id, aud: manage.url, iat: nowS, exp: nowS + 60 }
  const assertion = (change: object = {}, key = privateKey, head: object = {}) =>
    es256({ alg: 'ES256', ...head }, { ...claims, jti: randomUUID(), ...change }, key)
  const ask = (client_assertion: string) =>
    postForm(manage.url, '/oauth/token', {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion,
    })
  const good = assertion()
  assert.equal((await ask(good)).status, 200)
  for (const [name, bad] of Object.entries({
    replayed: good,
    'of another key': assertion({}, other.privateKey),
    'for another server': assertion({ aud: 'https://evil.example' }),
    over: assertion({ exp: nowS - 60 }),
    'without an end': assertion({ exp: undefined }),
    'of another client': assertion({ iss: 'cli_other' }),
    'with no signature': `${part({ alg: 'none' })}.${part({ ...claims, jti: 'x' })}.`,
    'with its own key': assertion({}, other.privateKey, { jwk: other.publicKey.export({ format: 'jwk' }) }),
  })) {
    const { status, body } = await ask(bad)
    assert.deepEqual([status, body.error], [401, 'invalid_client'], name)
  }
  const shared = assertion()
  const racing = await Promise.all(Array.from({ length: 10 }, () => ask(shared)))
  assert.equal(racing.filter(({ status }) => status === 200).length, 1)
})

test('nobody but the browser that began signs in, and what it began ends', async (t) => {
  const { manage, people, client } = await start(t)
  // Up to where the page would be.
  const began = await fetch(authorizeUrl(manage, client), { redirect: 'manual' })
  const page = new URL(began.headers.get('location')!)
  assert.match(page.pathname, /^\/oauth\/interaction\//)
  const cookies = began.headers.getSetCookie()
  for (const cookie of cookies) assert.match(cookie, /httponly/i)
  assert.ok(cookies.every((cookie) => /samesite=lax/i.test(cookie)))
  const stranger = await fetch(page, { redirect: 'manual' })
  assert.equal(stranger.status, 400)
  const elsewhere = await fetch(`${manage.url}/oauth/interaction/${'x'.repeat(21)}`, {
    headers: { cookie: cookies.map((each) => each.split(';')[0]).join('; ') },
    redirect: 'manual',
  })
  assert.equal(elsewhere.status, 400)
  assert.equal(people.shown.length, 0)
  const resume = await fetch(page.href.replace('/interaction/', '/authorize/'), { redirect: 'manual' })
  assert.equal(resume.status, 400)
  assert.deepEqual(manage.failures, [])
})

test('a Host header, and what proxies say, changes nothing that is said or checked', async (t) => {
  const { manage, client } = await start(t, {}, { publicUrl: 'https://gate.example' })
  const evil = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http' }
  const began = await fetch(authorizeUrl(manage, client), { redirect: 'manual', headers: evil })
  assert.match(began.headers.get('location') ?? '', /^https:\/\/gate\.example\/oauth\/interaction\//)
  for (const cookie of began.headers.getSetCookie()) assert.match(cookie, /; secure/i)
  const document = await (
    await fetch(`${manage.url}/.well-known/oauth-authorization-server`, { headers: evil })
  ).text()
  assert.ok(!document.includes('evil.example'))
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const machine = await clientFor(manage, {})
  const ask = (htu: string) =>
    postForm(
      manage.url,
      '/oauth/token',
      { grant_type: 'client_credentials' },
      {
        ...basic(machine),
        ...evil,
        dpop: proof(key, { htm: 'POST', htu }),
      },
    )
  assert.equal((await ask('https://evil.example/oauth/token')).status, 400)
  assert.equal((await ask('https://gate.example/oauth/token')).status, 200)
})

test('what is too large, twice there or of another type is refused, and nothing breaks', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const send = async (body: string, type = 'application/x-www-form-urlencoded') => {
    const headers = { ...basic(client), 'content-type': type }
    const response = await fetch(`${manage.url}/oauth/token`, { method: 'POST', headers, body })
    return [response.status, ((await response.json()) as { error: string }).error]
  }
  const form = 'grant_type=client_credentials'
  assert.deepEqual(await send(`${form}&x=${'x'.repeat(100_000)}`), [400, 'invalid_request'])
  assert.deepEqual(await send(`${form}&${form}`), [400, 'invalid_request'])
  assert.deepEqual(await send(`${form}&scope=read&scope=detect`), [400, 'invalid_request'])
  assert.deepEqual(await send('{"grant_type":"client_credentials"}', 'application/json'), [
    400,
    'invalid_request',
  ])
  assert.deepEqual(await send('grant_type=password&username=a&password=b'), [400, 'unsupported_grant_type'])
  assert.deepEqual(await send('grant_type=__proto__'), [400, 'unsupported_grant_type'])
  assert.deepEqual(await send('grant_type=implicit'), [400, 'unsupported_grant_type'])
  assert.deepEqual(await send('%00=%ff&grant_type=%'), [400, 'unsupported_grant_type'])
  assert.deepEqual(manage.failures, [])
  assert.ok(!manage.said.join('').includes('"error"'))
})

test('who takes back a refresh token takes back the access tokens that came with it, seen or not', async (t) => {
  const people = new TestPeople()
  const { manage, client } = await start(t, {}, { people })
  const { body } = await exchanged(manage, client, { code: await codeFor(manage, client) })
  for (let i = 0; i < 5; i++) assert.equal((await open(manage, body.access_token)).status, 200)
  const taken = await postForm(manage.url, '/oauth/revoke', { token: body.refresh_token }, basic(client))
  assert.equal(taken.status, 200)
  assert.equal((await open(manage, body.access_token)).status, 401)
})

const CALLBACK = 'https://app.example/callback'
const CODE = { grant_types: ['authorization_code', 'refresh_token'], scopes: ['read', 'detect'] }
const VERIFIER = randomBytes(32).toString('base64url')

type Owner = Parameters<typeof TestManagement.start>[0]

test('who begins over and over is told to wait, and leaves no more behind than so much', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {
    ...{ grant_types: ['authorization_code'], redirect_uris: ['https://app.example/'], scopes: ['read'] },
    token_endpoint_auth_method: 'none',
  })
  const asked = new URLSearchParams({
    ...{ client_id: client.client_id, redirect_uri: 'https://app.example/', response_type: 'code' },
    ...{ scope: 'read', code_challenge: 'a'.repeat(43), code_challenge_method: 'S256' },
  })
  const ways = [
    () => fetch(`${manage.url}/oauth/authorize?${asked}`, { redirect: 'manual' }),
    () => fetch(`${manage.url}/oauth/par`, { method: 'POST', body: asked }),
  ]
  const statuses = new Map<number, number>()
  for (let i = 0; i < 124; i++) {
    const response = await ways[i % 2]!()
    const text = await response.text()
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
    if (response.status !== 429) continue
    assert.match(response.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
    assert.match(text, i % 2 === 0 ? /<h1>/ : /"error":"temporarily_unavailable"/)
  }
  assert.deepEqual([...statuses].sort(), [
    [201, 60],
    [303, 60],
    [429, 4],
  ])
  // What leaves nothing behind is answered as ever.
  assert.equal((await fetch(`${manage.url}/oauth/jwks`)).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('of beginnings there are so many in all, however many addresses they come from', async () => {
  const beginnings = new Beginnings()
  const begun = (count: number, from: number, nowMs: number) => {
    let taken = 0
    for (let i = 0; i < count; i++) {
      try {
        beginnings.count(`192.0.${from}.${i % 250}`, nowMs)
        taken++
      } catch (error) {
        assert.match((error as Error).message, /from all addresses/)
      }
    }
    return taken
  }
  assert.deepEqual([begun(1_000, 1, 0), begun(1_000, 2, 1), begun(1_000, 3, 60_001)], [1_000, 200, 1_000])
})

async function start(t: Owner, body: Record<string, unknown> = {}, options: TestOptions = {}) {
  const people = new TestPeople()
  const manage = await TestManagement.start(t, { people, ...options })
  const client = await clientFor(manage, { ...CODE, redirect_uris: [CALLBACK], ...body })
  return { manage, people, client }
}

/** Of the test's own issuer, whatever the management plane says of itself. */
function authorizeUrl(manage: TestManagement, client: MadeClient, more: Record<string, string> = {}): string {
  const parameters = Object.entries({
    ...{
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: CALLBACK,
      code_challenge_method: 'S256',
    },
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    ...more,
  }).filter(([name, value]) => value !== '' || name === 'redirect_uri')
  return `${manage.url}/oauth/authorize?${new URLSearchParams(parameters)}`
}

async function codeFor(
  manage: TestManagement,
  client: MadeClient,
  more: Record<string, string> = {},
): Promise<string> {
  const { away, text } = await new TestBrowser(manage.url).open(authorizeUrl(manage, client, more))
  const code = away?.searchParams.get('code') ?? null
  assert.notEqual(code, null, away?.href ?? text)
  return code!
}

function exchanged(manage: TestManagement, client: MadeClient, more: Record<string, string>) {
  const form = { grant_type: 'authorization_code', redirect_uri: CALLBACK, code_verifier: VERIFIER, ...more }
  return postForm(manage.url, '/oauth/token', form, basic(client))
}

function refreshed(manage: TestManagement, client: MadeClient, refresh_token: string) {
  return postForm(manage.url, '/oauth/token', { grant_type: 'refresh_token', refresh_token }, basic(client))
}

function open(manage: TestManagement, token: string, method = 'GET', path = '/v1/agents'): Promise<Answered> {
  return manage.ask(method, path, undefined, { authorization: `Bearer ${token}` })
}

/** The key that it signs with, by the key that it seals with. */
async function signerOf(t: Owner, manage: TestManagement, encryptionKey: Secret<string>): Promise<KeyObject> {
  const store = await openAt(t, manage.storeUrl)
  const log = createLogTo('silent', { write: () => undefined })
  const keys = new TokenSigningKeys(store, new Sealer([encryptionKey], ''), log, 86_400_000, Date.now)
  const { signer } = await keys.current()
  return createPrivateKey({ key: signer.privateJwk as JsonWebKey, format: 'jwk' })
}

interface KeyPair {
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
}

function proof({ privateKey, publicKey }: KeyPair, claims: object, head: object = {}): string {
  const iat = Math.floor(Date.now() / 1000)
  const jwk = publicKey.export({ format: 'jwk' })
  const own = { alg: 'ES256', typ: 'dpop+jwt', jwk, ...head }
  return es256(own, { jti: randomUUID(), iat, ...claims }, privateKey)
}

function es256(head: object, body: object, key: KeyObject): string {
  const signed = `${part(head)}.${part(body)}`
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
