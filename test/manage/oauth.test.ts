import assert from 'node:assert/strict'
import * as jose from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { test } from 'tap'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { type Answered, TestManagement } from './management.ts'
import { basic, clientFor, postForm, tokenFor } from './oauth-client.ts'
import { until } from '../until.ts'

// Of oauth4webapi and openid-client: here there is no TLS.
const INSECURE = { [oauth.allowInsecureRequests]: true }

for (const kind of KINDS)
  test(`${kind}: a client gets a token, which opens what it may and no more, in every process`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const encryptionKey = SHARED
    const manage = await TestManagement.start(t, {
      storeUrl,
      encryptionKeys: [encryptionKey],
      publicUrl: 'http://gate.test',
    })
    const other = await TestManagement.start(t, {
      storeUrl,
      encryptionKeys: [encryptionKey],
      publicUrl: 'http://gate.test',
    })
    const client = await clientFor(manage, { scopes: ['read', 'detect'] })
    const answer = await postForm(
      manage.url,
      '/oauth/token',
      { grant_type: 'client_credentials' },
      basic(client),
    )
    assert.equal(answer.status, 200)
    const { access_token, ...others } = answer.body
    assert.deepEqual(others, { expires_in: 600, scope: 'read detect', token_type: 'Bearer' })
    const claims = jose.decodeJwt(access_token)
    assert.deepEqual(
      [claims.iss, claims.aud, claims.sub, claims['client_id'], claims['scope'], claims.exp! - claims.iat!],
      ['http://gate.test', 'http://gate.test/v1', client.client_id, client.client_id, 'read detect', 600],
    )
    assert.equal(jose.decodeProtectedHeader(access_token).typ, 'at+jwt')
    const bearer = { authorization: `Bearer ${access_token}` }
    for (const { ask } of [bound(manage), bound(other)]) {
      assert.equal((await ask('GET', '/v1/agents', bearer)).status, 200)
      assert.equal((await ask('GET', '/v1/keys', bearer)).status, 403)
      assert.match((await ask('GET', '/v1/agents', bearer)).headers.get('ratelimit') ?? '', /^"standard"/)
    }
    const revoked = await postForm(manage.url, '/oauth/revoke', { token: access_token }, basic(client))
    assert.deepEqual([revoked.status, revoked.text], [200, ''])
    assert.equal((await bound(manage).ask('GET', '/v1/agents', bearer)).body.code, 'invalid_token')
    await until(async () => (await bound(other).ask('GET', '/v1/agents', bearer)).status === 401, 1_000)
    assert.equal((await bound(other).ask('GET', '/v1/agents', bearer)).body.code, 'invalid_token')
    assert.deepEqual([manage.failures, other.failures], [[], []])
  })

for (const kind of KINDS)
  test(`${kind}: a client that is deleted gets no token, and its tokens are over within a second, everywhere`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const same = { storeUrl, encryptionKeys: [SHARED], publicUrl: 'http://gate.test' }
    const [manage, other] = [await TestManagement.start(t, same), await TestManagement.start(t, same)]
    const client = await clientFor(manage, {})
    const bearer = { authorization: `Bearer ${await tokenFor(manage, client)}` }
    assert.equal((await bound(other).ask('GET', '/v1/agents', bearer)).status, 200)
    // Tokens are asked for all the time while it is deleted: one that comes out is worth nothing.
    const racing = Array.from({ length: 10 }, () =>
      postForm(other.url, '/oauth/token', { grant_type: 'client_credentials' }, basic(client)),
    )
    assert.equal((await manage.ask('DELETE', `/v1/clients/${client.client_id}`)).status, 204)
    assert.equal((await manage.ask('DELETE', `/v1/clients/${client.client_id}`)).status, 404)
    assert.equal((await bound(manage).ask('GET', '/v1/agents', bearer)).status, 401)
    const tokens = (await Promise.all(racing)).filter(({ status }) => status === 200)
    await until(async () => (await bound(other).ask('GET', '/v1/agents', bearer)).status === 401, 1_000)
    assert.equal((await bound(other).ask('GET', '/v1/agents', bearer)).body.code, 'invalid_token')
    for (const { body } of tokens)
      for (const { ask } of [bound(manage), bound(other)])
        assert.equal(
          (await ask('GET', '/v1/agents', { authorization: `Bearer ${body.access_token}` })).status,
          401,
        )
    const late = await postForm(
      other.url,
      '/oauth/token',
      { grant_type: 'client_credentials' },
      basic(client),
    )
    assert.deepEqual([late.status, late.body.error], [401, 'invalid_client'])
    assert.deepEqual([manage.failures, other.failures], [[], []])
  })

test('clients that nobody here wrote get in: with a secret in both places, and with a key of their own', async (t) => {
  const manage = await TestManagement.start(t)
  const issuer = new URL(manage.url)
  const server = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...INSECURE }),
  )
  for (const method of ['client_secret_basic', 'client_secret_post', 'private_key_jwt'] as const) {
    const keys = await oauth.generateKeyPair('ES256', { extractable: true })
    const made = await clientFor(manage, {
      scopes: ['read'],
      token_endpoint_auth_method: method,
      ...(method === 'private_key_jwt' && { jwks: { keys: [await jose.exportJWK(keys.publicKey)] } }),
    })
    assert.equal('client_secret' in made, method !== 'private_key_jwt')
    const proof = {
      client_secret_basic: () => oauth.ClientSecretBasic(made.client_secret!),
      client_secret_post: () => oauth.ClientSecretPost(made.client_secret!),
      private_key_jwt: () => oauth.PrivateKeyJwt(keys.privateKey),
    }[method]()
    const client = { client_id: made.client_id }
    const parameters = new URLSearchParams({ scope: 'read' })
    const response = await oauth.clientCredentialsGrantRequest(server, client, proof, parameters, INSECURE)
    const tokens = await oauth.processClientCredentialsResponse(server, client, response)
    const bearer = { authorization: `Bearer ${tokens.access_token}` }
    assert.equal((await bound(manage).ask('GET', '/v1/agents', bearer)).status, 200, method)
    // RFC 9068, as somebody else reads it.
    const request = new Request(`${manage.url}/v1/agents`, { headers: bearer })
    const claims = await oauth.validateJwtAccessToken(server, request, `${manage.url}/v1`, INSECURE)
    assert.equal(claims.client_id, made.client_id)
    const asked = await oauth.introspectionRequest(server, client, proof, tokens.access_token, INSECURE)
    assert.equal((await oauth.processIntrospectionResponse(server, client, asked)).active, true)
    const taken = await oauth.revocationRequest(server, client, proof, tokens.access_token, INSECURE)
    await oauth.processRevocationResponse(taken)
    assert.equal((await bound(manage).ask('GET', '/v1/agents', bearer)).status, 401, method)
    const config = await openid.discovery(issuer, made.client_id, undefined, openidProof(), {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    })
    function openidProof() {
      return {
        client_secret_basic: () => openid.ClientSecretBasic(made.client_secret!),
        client_secret_post: () => openid.ClientSecretPost(made.client_secret!),
        private_key_jwt: () => openid.PrivateKeyJwt(keys.privateKey),
      }[method]()
    }
    const again = await openid.clientCredentialsGrant(config, { scope: 'read' })
    assert.deepEqual([again.token_type, again.scope], ['bearer', 'read'])
  }
  assert.deepEqual(manage.failures, [])
})

test('a token can be bound to a key: a client that nobody here wrote proves it, at each request anew', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await clientFor(manage, {})
  const config = await openid.discovery(new URL(manage.url), made.client_id, made.client_secret, undefined, {
    algorithm: 'oauth2',
    execute: [openid.allowInsecureRequests],
  })
  const handle = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
  const tokens = await openid.clientCredentialsGrant(config, {}, { DPoP: handle })
  assert.equal(tokens.token_type, 'dpop')
  for (const query of ['', '?limit=1']) {
    const url = new URL(`${manage.url}/v1/agents${query}`)
    const answer = await openid.fetchProtectedResource(
      config,
      tokens.access_token,
      url,
      'GET',
      null,
      undefined,
      {
        DPoP: handle,
      },
    )
    assert.equal(answer.status, 200)
  }
  const bare = await bound(manage).ask('GET', '/v1/agents', {
    authorization: `Bearer ${tokens.access_token}`,
  })
  assert.equal(bare.status, 401)
  assert.match(bare.headers.get('www-authenticate') ?? '', /^DPoP .*error="invalid_token".*algs="ES256/)
  assert.deepEqual(manage.failures, [])
})

test('what a token is for is asked for, and nothing else is', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, { scopes: ['read', 'mcp'] })
  const ask = (form: Record<string, string>) =>
    postForm(manage.url, '/oauth/token', { grant_type: 'client_credentials', ...form }, basic(client))
  const audience = async (resource: string) => {
    const { status, body } = await ask({ resource })
    return status === 200 ? jose.decodeJwt(body.access_token).aud : body.error
  }
  assert.equal(await audience(`${manage.url}/v1`), `${manage.url}/v1`)
  assert.equal(await audience(`${manage.url}/mcp`), `${manage.url}/mcp`)
  for (const resource of [
    manage.url,
    `${manage.url}/v1/`,
    `${manage.url}/V1`,
    'https://elsewhere.example/v1',
    'v1',
  ])
    assert.equal(await audience(resource), 'invalid_target', resource)
  const scopes = async (scope: string) => {
    const { status, body } = await ask({ scope })
    return status === 200 ? body.scope : body.error
  }
  assert.equal(await scopes('mcp'), 'mcp')
  assert.equal(await scopes('admin read write'), 'read')
  assert.equal(await scopes('admin'), 'invalid_scope')
  assert.equal(await scopes('READ'), 'invalid_scope')
  const forMcp = (await ask({ resource: `${manage.url}/mcp` })).body.access_token
  const refused = await bound(manage).ask('GET', '/v1/agents', { authorization: `Bearer ${forMcp}` })
  assert.deepEqual([refused.status, refused.body.code], [401, 'invalid_token'])
  const admin = await clientFor(manage, { scopes: ['admin'] })
  const some = await postForm(
    manage.url,
    '/oauth/token',
    { grant_type: 'client_credentials', scope: 'read' },
    basic(admin),
  )
  assert.equal(some.body.scope, 'read')
  const bearer = { authorization: `Bearer ${some.body.access_token}` }
  assert.equal((await bound(manage).ask('GET', '/v1/keys', bearer)).status, 403)
})

test('the life of a token is a setting, and its end is said', async (t) => {
  const oauthSettings = {
    accessTokenTtlS: 5,
    keyRotationMs: 86_400_000,
    registration: 'off',
    registrationToken: null,
  } as const
  const manage = await TestManagement.start(t, { oauth: oauthSettings })
  const client = await clientFor(manage, {})
  const token = await tokenFor(manage, client)
  const { iat, exp } = jose.decodeJwt(token)
  assert.equal(exp! - iat!, 5)
  const ask = () => bound(manage).ask('GET', '/v1/agents', { authorization: `Bearer ${token}` })
  assert.equal((await ask()).status, 200)
  await until(async () => (await ask()).status === 401)
  assert.ok(Date.now() >= exp! * 1_000)
  const late = await ask()
  assert.deepEqual([late.status, late.body.code], [401, 'expired_token'])
  assert.match(late.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
})

test('a new key signs at once, for who has the old ones dropped too, and the old tokens are over', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const open = (token: string) => bound(manage).ask('GET', '/v1/agents', { authorization: `Bearer ${token}` })
  const kidOf = (token: string) => jose.decodeProtectedHeader(token).kid
  const first = await tokenFor(manage, client)
  const rotated = await manage.ask('POST', '/v1/signing-keys', {})
  assert.equal(rotated.status, 201)
  const second = await tokenFor(manage, client)
  assert.equal(kidOf(second), rotated.body.kid)
  const jwks = await (await fetch(`${manage.url}/oauth/jwks`)).json()
  const published = (jwks as { keys: { kid: string; d?: string }[] }).keys
  assert.deepEqual(
    published.map(({ kid }) => kid),
    [kidOf(second), kidOf(first)],
  )
  assert.ok(published.every(({ d }) => d === undefined))
  assert.deepEqual([(await open(first)).status, (await open(second)).status], [200, 200])
  await manage.ask('POST', '/v1/signing-keys', { drop_old: true })
  assert.deepEqual([(await open(first)).status, (await open(second)).status], [401, 401])
  assert.equal((await open(await tokenFor(manage, client))).status, 200)
  assert.equal((await manage.ask('GET', '/v1/signing-keys')).body.signing_keys.length, 1)
  const { body } = await manage.ask('GET', '/v1/audit?action=rotateSigningKey')
  assert.equal(body.total, 2)
})

test('a client is made with what goes together, and listed without its secret', async (t) => {
  const manage = await TestManagement.start(t)
  const make = (body: Record<string, unknown>) =>
    manage.ask('POST', '/v1/clients', { name: 'x', scopes: ['read'], ...body })
  const code = { grant_types: ['authorization_code'] }
  const good = await make({
    ...code,
    redirect_uris: ['https://app.example/cb', 'http://127.0.0.1/cb', 'http://[::1]/'],
  })
  assert.equal(good.status, 201)
  const bad: readonly [pointer: string, body: Record<string, unknown>][] = [
    ['/redirect_uris', code],
    ['/redirect_uris', { grant_types: ['client_credentials'], redirect_uris: ['https://a.example/'] }],
    ['/grant_types', { grant_types: ['client_credentials', 'refresh_token'] }],
    ['/grant_types/0', { grant_types: ['password'] }],
    [
      '/token_endpoint_auth_method',
      { grant_types: ['client_credentials'], token_endpoint_auth_method: 'none' },
    ],
    ['/jwks', { grant_types: ['client_credentials'], token_endpoint_auth_method: 'private_key_jwt' }],
    [
      '/jwks',
      { grant_types: ['client_credentials'], token_endpoint_auth_method: 'none', jwks: { keys: [] } },
    ],
    ['/jwks/keys', { grant_types: ['client_credentials'], jwks: { keys: [] } }],
    ['/jwks/keys/0', { grant_types: ['client_credentials'], jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }],
    [
      '/jwks/keys/0',
      { grant_types: ['client_credentials'], jwks: { keys: [{ kty: 'EC', crv: 'P-256', x: 'A' }] } },
    ],
    ['/jwks/keys/0', { grant_types: ['client_credentials'], jwks: { keys: [PRIVATE_KEY] } }],
    ...[
      ...[
        'http://app.example/cb',
        'https://app.example/cb#x',
        'https://u:p@app.example/',
        'https://@app.example/',
      ],
      ...[
        'javascript:alert(1)',
        'com.example.app:/cb',
        'data:text/html,x',
        '/cb',
        '',
        'https://127.0.0.1/cb',
      ],
      ...[
        'https://app.example/\u0000',
        'https://app.example/ä',
        'http://127.0.0.1.evil.example/',
        'http://localhost@evil.example/',
      ],
    ].map(
      (uri) => ['/redirect_uris/0', { ...code, redirect_uris: [uri] }] as [string, Record<string, unknown>],
    ),
  ]
  for (const [pointer, body] of bad) {
    const answer = await make(body)
    assert.equal(answer.status, 400, JSON.stringify(body))
    assert.ok(
      answer.body.errors.some((each: { pointer: string }) => each.pointer === pointer),
      JSON.stringify([pointer, answer.body]),
    )
  }
  const { body: listed } = await manage.ask('GET', '/v1/clients')
  assert.equal(listed.total, 1)
  assert.deepEqual(listed.clients[0].client_id, good.body.client_id)
  assert.ok(!JSON.stringify(listed).includes('ghs_'))
  const audit = JSON.stringify((await manage.ask('GET', '/v1/audit')).body)
  assert.ok(audit.includes('createClient') && !audit.includes(good.body.client_secret))
  const reader = {
    authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })}`,
  }
  assert.equal((await manage.ask('GET', '/v1/clients', undefined, reader)).status, 403)
  assert.deepEqual(manage.failures, [])
})

test('every endpoint answers in the form of its protocol, also while there is no database', async (t) => {
  const manage = await TestManagement.start(t, {
    storeUrl: 'postgres://nobody@127.0.0.1:1/none',
    admin: null,
  })
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/introspect', '/oauth/jwks']) {
    const { status, body, headers } = await postForm(manage.url, path, {})
    assert.deepEqual(
      [status, body.error, headers.get('retry-after')],
      [503, 'temporarily_unavailable', '5'],
      path,
    )
  }
  for (const path of [
    'oauth-authorization-server',
    'oauth-protected-resource',
    'oauth-protected-resource/v1',
  ])
    assert.equal((await fetch(`${manage.url}/.well-known/${path}`)).status, 200)
  const up = await TestManagement.start(t, { people: null })
  for (const [method, path, status, error] of [
    ['GET', '/oauth/token', 405, 'invalid_request'],
    ['POST', '/oauth/jwks', 405, 'invalid_request'],
    ['POST', '/oauth/token', 400, 'invalid_request'],
  ] as const) {
    const response = await fetch(up.url + path, { method })
    const body = (await response.json()) as { error: string }
    assert.deepEqual([response.status, body.error], [status, error], path)
  }
  for (const path of [
    '/oauth/',
    '/oauth/TOKEN',
    '/oauth/token/',
    '/oauth/register',
    '/oauth/authorize',
    '/oauth/auth/x',
  ])
    assert.equal((await postForm(up.url, path, {})).status, 404, path)
  assert.deepEqual(up.failures, [])
})

test('who guesses the secrets of clients is told to wait, and a good one is taken all the same', async (t) => {
  const manage = await TestManagement.start(t, { authFailuresPerMinute: 3 })
  const client = await clientFor(manage, {})
  const form = { grant_type: 'client_credentials' }
  const guess = () =>
    postForm(manage.url, '/oauth/token', form, basic({ ...client, client_secret: 'ghs_guess' }))
  const statuses = []
  for (let i = 0; i < 5; i++) statuses.push((await guess()).status)
  assert.deepEqual(statuses, [401, 401, 401, 429, 429])
  const throttled = await guess()
  assert.equal(throttled.body.error, 'invalid_client')
  assert.match(throttled.headers.get('retry-after') ?? '', /^\d+$/)
  assert.equal((await postForm(manage.url, '/oauth/token', form, basic(client))).status, 200)
  assert.equal((await manage.ask('GET', '/v1/audit?action=throttleAuthentication')).body.total, 1)
})

test('an issuer with a path has its documents where the specifications put them', async (t) => {
  const manage = await TestManagement.start(t, { publicUrl: 'https://gate.example/agents' })
  const read = async (path: string) =>
    (await (await fetch(manage.url + path)).json()) as Record<string, unknown>
  const server = await read('/.well-known/oauth-authorization-server/agents')
  assert.equal(server['issuer'], 'https://gate.example/agents')
  assert.equal(server['token_endpoint'], 'https://gate.example/agents/oauth/token')
  const resource = await read('/.well-known/oauth-protected-resource/agents/v1')
  assert.equal(resource['resource'], 'https://gate.example/agents/v1')
  assert.equal(
    (await read('/.well-known/oauth-protected-resource'))['resource'],
    'https://gate.example/agents/mcp',
  )
  const refused = await manage.ask('GET', '/v1/agents', undefined, { authorization: '' })
  assert.match(
    refused.headers.get('www-authenticate') ?? '',
    /resource_metadata="https:\/\/gate\.example\/\.well-known\/oauth-protected-resource\/agents\/v1"/,
  )
  const client = await clientFor(manage, {})
  const claims = jose.decodeJwt(await tokenFor(manage, client))
  assert.deepEqual(
    [claims.iss, claims.aud],
    ['https://gate.example/agents', 'https://gate.example/agents/v1'],
  )
})

test('no credential is in the log', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const token = await tokenFor(manage, client)
  await bound(manage).ask('GET', '/v1/agents', { authorization: `Bearer ${token}` })
  await bound(manage).ask('GET', '/v1/agents', { authorization: `Bearer ${token}x` })
  await postForm(manage.url, '/oauth/revoke', { token }, basic(client))
  const said = manage.said.join('')
  for (const secret of [client.client_secret!, token, token.split('.')[2]!]) assert.ok(!said.includes(secret))
})

const SHARED = new Secret('what all processes share')
const PRIVATE_KEY = await jose.exportJWK(
  (await jose.generateKeyPair('ES256', { extractable: true })).privateKey,
)

function bound(manage: TestManagement) {
  const ask = (method: string, path: string, headers: Record<string, string>): Promise<Answered> =>
    manage.ask(method, path, undefined, headers)
  return { ask }
}
