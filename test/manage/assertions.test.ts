import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as jose from 'jose'
import { type Test, test } from 'tap'
import { connected } from './mcp-client.ts'
import { TestManagement } from './management.ts'
import { basic, clientFor, type MadeClient, postForm } from './oauth-client.ts'

const PUBLIC_URL = 'http://gate.test'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

interface Signing {
  readonly key?: jose.CryptoKey | Uint8Array
  readonly head?: object
}

/** An identity provider on this machine. */
class IdentityProvider {
  readonly url: string
  clientId = ''
  userId = ''
  readonly #nowMs: () => number
  #number = 0
  #pair: { privateKey: jose.CryptoKey; kid: string } | null = null
  #keys: object[] = []

  static async start(t: Test, nowMs: () => number): Promise<IdentityProvider> {
    const server = createServer(({ url }, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(url === '/jwks' ? { keys: idp.#keys } : idp.metadata))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    const idp = new IdentityProvider(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, nowMs)
    await idp.rotate()
    return idp
  }

  private constructor(url: string, nowMs: () => number) {
    this.url = url
    this.#nowMs = nowMs
  }

  get metadata() {
    const { url } = this
    return {
      ...{ issuer: url, authorization_endpoint: `${url}authorize`, token_endpoint: `${url}token` },
      jwks_uri: `${url}jwks`,
    }
  }

  async rotate(): Promise<void> {
    const { privateKey, publicKey } = await jose.generateKeyPair('ES256', { extractable: true })
    const kid = `k${++this.#number}`
    this.#pair = { privateKey, kid }
    // With a secret that must not verify anything.
    const secret = { kty: 'oct', kid, k: Buffer.from('x'.repeat(32)).toString('base64url') }
    this.#keys = [{ ...(await jose.exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }, secret]
  }

  assertion(claims: Record<string, unknown>, { key, head = {} }: Signing = {}): Promise<string> {
    const nowS = Math.floor(this.#nowMs() / 1000)
    const all = {
      ...{ iss: this.url, sub: 'anna', aud: PUBLIC_URL, client_id: this.clientId },
      ...{ jti: `j${++this.#number}`, iat: nowS, exp: nowS + 300, resource: `${PUBLIC_URL}/mcp` },
      ...claims,
    }
    const { privateKey, kid } = this.#pair!
    return new jose.SignJWT(all as jose.JWTPayload)
      .setProtectedHeader({ alg: 'ES256', typ: 'oauth-id-jag+jwt', kid, ...head })
      .sign(key ?? privateKey)
  }
}

test('a client acts for a person whose identity provider says so', async (t) => {
  const { manage, idp, client, ask } = await start(t)
  const answer = await ask(await idp.assertion({ scope: 'read mcp write' }))
  assert.equal(answer.status, 200, answer.text)
  const { access_token, ...others } = answer.body
  assert.deepEqual(others, { expires_in: 600, scope: 'read mcp', token_type: 'Bearer' })
  const claims = jose.decodeJwt(access_token)
  assert.deepEqual(
    [claims.iss, claims.aud, claims.sub, claims['client_id'], claims['scope']],
    [PUBLIC_URL, `${PUBLIC_URL}/mcp`, idp.userId, client.client_id, 'read mcp'],
  )
  const mcp = await connected(t, manage.url, access_token)
  assert.ok((await mcp.listTools()).tools.length > 0)
  const atApi = await manage.ask('GET', '/v1/agents', undefined, { authorization: `Bearer ${access_token}` })
  assert.equal(atApi.status, 401, 'it is for the MCP endpoint only')
  assert.equal((await ask(await idp.assertion({}), { scope: 'mcp' })).body.scope, 'mcp')
  const metadata = (await manage.ask('GET', '/.well-known/oauth-authorization-server')).body
  assert.ok(metadata.grant_types_supported.includes(JWT_BEARER))
  assert.deepEqual(metadata.authorization_grant_profiles_supported, [
    'urn:ietf:params:oauth:grant-profile:id-jag',
  ])
  assert.equal((await manage.ask('DELETE', `/v1/users/${idp.userId}`)).status, 204)
  assert.match((await ask(await idp.assertion({}))).body.error_description, /no account here/)
})

test('a forged or misused assertion gets no token', async (t) => {
  const { idp, ask, client, manage } = await start(t)
  const nowS = Math.floor(Date.now() / 1000)
  const stranger = await jose.generateKeyPair('ES256', { extractable: true })
  const publicJwk = await jose.exportJWK(stranger.publicKey)
  const good = await idp.assertion({})
  const [head, body, signature] = good.split('.') as [string, string, string]
  const changed = Buffer.from(JSON.stringify({ ...jose.decodeJwt(good), sub: 'bea' })).toString('base64url')
  const none = Buffer.from('{"alg":"none","typ":"oauth-id-jag+jwt"}').toString('base64url')
  const wrongs: readonly (readonly [assertion: string, why: RegExp])[] = [
    ['', /missing required parameter/],
    ['nonsense', /is not a JWT/],
    [`${head}.${changed}.${signature}`, /not signed correctly/],
    [`${none}.${body}.`, /not signed correctly/],
    [await idp.assertion({}, { key: stranger.privateKey }), /not signed correctly/],
    [await idp.assertion({}, { key: stranger.privateKey, head: { jwk: publicJwk } }), /not signed correctly/],
    [
      await idp.assertion({}, { key: Buffer.from('x'.repeat(32)), head: { alg: 'HS256' } }),
      /not signed correctly/,
    ],
    [await idp.assertion({}, { head: { kid: 'other' } }), /not signed correctly/],
    [await idp.assertion({}, { head: { typ: 'JWT' } }), /claim typ/],
    [await idp.assertion({}, { head: { typ: 'at+jwt' } }), /claim typ/],
    [await idp.assertion({ iss: 'http://elsewhere.test' }), /issuer of the assertion is not trusted/],
    [await idp.assertion({ aud: 'http://elsewhere.test' }), /claim aud/],
    [await idp.assertion({ aud: [PUBLIC_URL, 'http://elsewhere.test'] }), /audience must be .* alone/],
    [await idp.assertion({ client_id: 'another' }), /for another client/],
    [await idp.assertion({ client_id: undefined }), /claim client_id/],
    [await idp.assertion({ jti: undefined }), /claim jti/],
    [await idp.assertion({ jti: '' }), /claim jti/],
    [await idp.assertion({ sub: undefined }), /claim sub/],
    [await idp.assertion({ sub: 'unknown' }), /no account here/],
    [await idp.assertion({ exp: nowS - 60 }), /has expired/],
    [await idp.assertion({ exp: undefined }), /claim exp/],
    [await idp.assertion({ iat: nowS + 120 }), /from the future/],
    [await idp.assertion({ exp: nowS + 3_600 }), /valid for more than 600 seconds/],
    [await idp.assertion({ cnf: { jkt: 'a' } }), /bound to a key are not supported/],
    [await idp.assertion({ scope: ['mcp'] }), /claim scope/],
    [await idp.assertion({ pad: 'x'.repeat(9_000) }), /too long/],
  ]
  for (const [assertion, why] of wrongs) {
    const answer = await ask(assertion)
    assert.equal(answer.status, 400, `${why} ${answer.text}`)
    assert.match(answer.body.error_description, why)
    assert.match(answer.body.error, /^invalid_(?:grant|request)$/)
  }
  for (const [given, form, error] of [
    [{ resource: `${PUBLIC_URL}/v1` }, {}, 'invalid_target'],
    [{}, { resource: `${PUBLIC_URL}/v1` }, 'invalid_target'],
    [{ scope: 'admin' }, {}, 'invalid_scope'],
    [{ scope: 'read' }, { scope: 'mcp' }, 'invalid_scope'],
  ] as const)
    assert.equal((await ask(await idp.assertion(given), form)).body.error, error, JSON.stringify(given))
  assert.match((await ask(await idp.assertion({}), {}, { DPoP: 'a' })).body.error_description, /DPoP/)
  // The one that was changed above is still good, once.
  assert.equal((await ask(good)).status, 200)
  assert.match((await ask(good)).body.error_description, /already used/)
  const other = await clientFor(manage, { scopes: ['read', 'mcp'] })
  const stolen = await postForm(
    ...([
      manage.url,
      '/oauth/token',
      { grant_type: JWT_BEARER, assertion: await idp.assertion({}) },
    ] as const),
    basic(other),
  )
  assert.match(stolen.body.error_description, /another client|may not bring/)
  const unproven = await postForm(manage.url, '/oauth/token', {
    ...{ grant_type: JWT_BEARER, assertion: await idp.assertion({}), client_id: client.client_id },
  })
  assert.equal(unproven.body.error, 'invalid_client')
})

test('a new key of the provider is fetched, and a missing key or setting gives no token', async (t) => {
  const { idp, ask, nowMs } = await start(t)
  assert.equal((await ask(await idp.assertion({}))).status, 200)
  await idp.rotate()
  nowMs.add(60_000)
  assert.equal((await ask(await idp.assertion({}))).status, 200)
  const plain = await TestManagement.start(t, { publicUrl: PUBLIC_URL })
  const client = await clientFor(plain, {})
  const form = { grant_type: JWT_BEARER, assertion: 'a' }
  const refused = await postForm(plain.url, '/oauth/token', form, basic(client))
  assert.equal(refused.body.error, 'unsupported_grant_type')
  const metadata = (await plain.ask('GET', '/.well-known/oauth-authorization-server')).body
  assert.ok(!metadata.grant_types_supported.includes(JWT_BEARER))
})

async function start(t: Test) {
  const clock = { aheadMs: 0 }
  const nowMs = Object.assign(() => Date.now() + clock.aheadMs, {
    add: (ms: number) => {
      clock.aheadMs += ms
    },
  })
  const idp = await IdentityProvider.start(t, nowMs)
  const manage = await TestManagement.start(t, {
    publicUrl: PUBLIC_URL,
    nowMs,
    openid: {
      ...{ issuer: idp.url, name: 'Example', clientId: 'gate', clientSecret: null, ca: null },
      ...{ allowPrivate: true, roles: null, assertions: { clients: [], algorithms: ['ES256'] } },
    },
  })
  const client = await clientFor(manage, { scopes: ['read', 'mcp'] })
  idp.clientId = client.client_id
  const made = await manage.ask('POST', '/v1/users', {
    ...{ email: 'anna@a.test', password: 'long enough to be one', scopes: ['read', 'write', 'mcp'] },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  idp.userId = made.body.id
  const bound = await manage.ask('PUT', `/v1/users/${idp.userId}/openid`, { subject: 'anna' })
  assert.ok(bound.status < 300, JSON.stringify(bound.body))
  const ask = (assertion: string, form: Record<string, string> = {}, headers: Record<string, string> = {}) =>
    askWith(manage, client, { ...(assertion !== '' && { assertion }), ...form }, headers)
  return { manage, idp, client, ask, nowMs }
}

function askWith(
  manage: TestManagement,
  client: MadeClient,
  form: Record<string, string>,
  headers: Record<string, string>,
) {
  return postForm(
    manage.url,
    '/oauth/token',
    { grant_type: JWT_BEARER, ...form },
    { ...basic(client), ...headers },
  )
}
