import assert from 'node:assert/strict'
import { generateKeyPairSync, type JsonWebKey, type KeyObject, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { SignJWT } from 'jose'
import * as oauth from 'oauth4webapi'
import { type Test, test } from 'tap'
import { DocumentServer } from '../identity/document-server.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { postForm } from './oauth-client.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwk = publicKey.export({ format: 'jwk' })

/** An agent whose document is on this machine, and a way to ask for a token as it. */
async function bench(t: Test, options: TestOptions = {}) {
  const manage = await TestManagement.start(t, { allowPrivateFetches: true, ...options })
  const server = await DocumentServer.start(t, 'http')
  const agent = server.url('/aid.json', '127.0.0.1')
  const publish = (...keys: JsonWebKey[]) =>
    server.serveJson('/aid.json', { client_id: agent, jwks: { keys } })
  publish(jwk)
  const trust = async (scopes = ['read']) => {
    const { status, body } = await manage.ask('POST', '/v1/trust', { agent_id: agent, scopes })
    assert.equal(status, 201)
    return body.id as string
  }
  const assertion = (key: KeyObject = privateKey, claims: Record<string, unknown> = {}, alg = 'ES256') => {
    const nowS = Math.floor(Date.now() / 1000)
    const all = {
      iss: agent,
      sub: agent,
      aud: manage.url,
      iat: nowS,
      exp: nowS + 60,
      jti: randomUUID(),
      ...claims,
    }
    return new SignJWT(all).setProtectedHeader({ alg }).sign(key)
  }
  const askWith = (client_assertion: string, form: Record<string, string> = {}) =>
    postForm(manage.url, '/oauth/token', {
      grant_type: 'client_credentials',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion,
      ...form,
    })
  const use = async (token: string, path = '/v1/agents') =>
    (await manage.ask('GET', path, undefined, { authorization: `Bearer ${token}` })).status
  return { manage, server, agent, publish, trust, assertion, askWith, use }
}

test('an agent gets tokens with a key of its document, by a client that nobody here wrote', async (t) => {
  const { manage, server, agent, trust, use } = await bench(t)
  await trust(['read', 'detect'])
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(manage.url)
  const found = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure })
  const as = await oauth.processDiscoveryResponse(issuer, found)
  const client = { client_id: agent }
  const key = await crypto.subtle.importKey(
    'pkcs8',
    privateKey.export({ format: 'der', type: 'pkcs8' }),
    { name: 'ECDSA', namedCurve: 'P-256' },
    false,
    ['sign'],
  )
  const proof = oauth.PrivateKeyJwt(key)
  const response = await oauth.clientCredentialsGrantRequest(as, client, proof, {}, insecure)
  const tokens = await oauth.processClientCredentialsResponse(as, client, response)
  assert.equal(tokens.scope, 'read detect')
  assert.deepEqual([await use(tokens.access_token), await use(tokens.access_token, '/v1/keys')], [200, 403])
  assert.equal(server.asked.length, 1)
  await manage.ask('GET', '/v1/agents', undefined, { authorization: `Bearer ${tokens.access_token}` })
  assert.deepEqual(manage.failures, [])
})

test('what an agent may not have, and what is none of it', async (t) => {
  const { manage, agent, trust, assertion, askWith, server } = await bench(t)
  const stranger = await askWith(await assertion())
  assert.deepEqual([stranger.status, stranger.body.error], [401, 'invalid_client'])
  assert.equal(server.asked.length, 0, 'of who is trusted by nobody nothing is fetched')
  await trust()
  const good = await assertion()
  assert.equal((await askWith(good)).status, 200)
  for (const [name, bad] of Object.entries({
    replayed: good,
    'of another key': await assertion(other.privateKey),
    'for another server': await assertion(privateKey, { aud: 'https://other.example' }),
    over: await assertion(privateKey, { exp: 1 }),
    'of another agent': await assertion(privateKey, { iss: `${agent}x`, sub: `${agent}x` }),
  })) {
    const { status, body } = await askWith(bad)
    assert.deepEqual([status, body.error], [401, 'invalid_client'], name)
  }
  for (const [form, error] of [
    [{ scope: 'admin' }, 'invalid_scope'],
    [{ resource: 'https://other.example/' }, 'invalid_target'],
    // Not for this client.
    [{ grant_type: 'authorization_code', code: 'x' }, 'invalid_request'],
  ] as const) {
    const { status, body } = await askWith(await assertion(), form)
    assert.deepEqual([status, body.error], [400, error], JSON.stringify(form))
  }
  const some = await askWith(await assertion(), { scope: 'read write' })
  assert.deepEqual([some.status, some.body.scope], [200, 'read'])
  const secret = await postForm(manage.url, '/oauth/token', {
    ...{ grant_type: 'client_credentials', client_id: agent, client_secret: '' },
  })
  assert.equal(secret.body.error, 'invalid_client')
  assert.deepEqual(manage.failures, [])
})

test('a key is good for tokens in its time, and who has none left is no client without one', async (t) => {
  const { manage, server, publish, trust, assertion, askWith } = await bench(t)
  await trust()
  const nowS = Math.floor(Date.now() / 1000)
  publish({ ...jwk, nbf: nowS - 60, exp: nowS + 60 } as JsonWebKey)
  assert.equal((await askWith(await assertion())).status, 200)
  const [from, until] = [{ nbf: nowS + 60 }, { exp: nowS - 1 }]
  for (const [index, times] of [from, until].entries()) {
    const path = `/app${index}.json`
    const app = server.url(path, '127.0.0.1')
    const redirect_uris = ['https://app.example/back']
    server.serveJson(path, { client_id: app, redirect_uris, jwks: { keys: [{ ...jwk, ...times }] } })
    assert.equal((await manage.ask('POST', '/v1/trust', { agent_id: app, scopes: ['read'] })).status, 201)
    const proven = await askWith(await assertion(privateKey, { iss: app, sub: app }))
    assert.deepEqual([proven.status, proven.body.error], [401, 'invalid_client'])
    const form = {
      grant_type: 'authorization_code',
      client_id: app,
      code: 'x',
      redirect_uri: redirect_uris[0]!,
    }
    const bare = await postForm(manage.url, '/oauth/token', { ...form, code_verifier: 'x'.repeat(43) })
    assert.deepEqual([bare.status, bare.body.error], [401, 'invalid_client'])
  }
  assert.deepEqual(manage.failures, [])
})

test('a document that cannot be used is said, and nothing of it; another key is another key', async (t) => {
  const { manage, server, agent, publish, trust, assertion, askWith } = await bench(t)
  await trust()
  server.serve('/aid.json', (_, response) => response.writeHead(302, { location: '/secret' }).end())
  const refused = await askWith(await assertion())
  assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_client'])
  assert.match(refused.body.error_description, /unknown client: .*: it answers 302, and no redirect/)
  publish(other.publicKey.export({ format: 'jwk' }))
  const again = await askWith(await assertion(other.privateKey))
  assert.equal(again.status, 401, `a failure is remembered: ${agent}`)
  assert.deepEqual(manage.failures, [])
})

test('an app with a document of its own asks people, when there are some, and is called by where that is', async (t) => {
  const { manage, server } = await bench(t)
  const app = server.url('/app.json', '127.0.0.1')
  const redirect_uri = 'https://app.example/callback'
  server.serveJson('/app.json', { client_id: app, client_name: 'an app', redirect_uris: [redirect_uri] })
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id: app, redirect_uri, scope: 'read admin' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  })
  const browser = new FormBrowser(manage.url)
  await browser.open(`${manage.url}/oauth/authorize?${query}`)
  assert.match(browser.page!.text, /invalid_client/)
  assert.equal(server.asked.length, 0)
  const user = { email: 'anna@example.com', password: 'a phrase of some words' }
  await manage.ask('POST', '/v1/users', { ...user, scopes: ['admin'] })
  await browser.open(`${manage.url}/oauth/authorize?${query}`)
  await browser.submit('sign-in', user)
  assert.match(browser.page!.text, new RegExp(`“<bdi>an app</bdi>”</b> of <b>${new URL(app).host}</b>`))
  assert.match(browser.page!.text, /Its name is not verified/)
  assert.ok(!browser.page!.text.includes('value="admin"'))
  await browser.submit('allow')
  const form = { grant_type: 'authorization_code', redirect_uri, client_id: app }
  const code = browser.away!.searchParams.get('code')!
  const { status, body } = await postForm(manage.url, '/oauth/token', {
    ...{ ...form, code, code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' },
  })
  assert.deepEqual([status, body.scope], [200, 'read'])
  assert.deepEqual(manage.failures, [])
})

for (const kind of KINDS)
  test(`${kind}: whom nobody trusts any more has tokens no more, within a second, in every process`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { trust, assertion, askWith, use } = await bench(t, { storeUrl })
    const id = await trust()
    const { body } = await askWith(await assertion())
    for (let i = 0; i < 3; i++) assert.equal(await use(body.access_token), 200)
    await (await openAt(t, storeUrl)).trust.remove(id)
    await wait(900)
    assert.equal(await use(body.access_token), 401)
    await trust(['detect'])
    assert.equal(await use(body.access_token), 403, 'it may do no more than is said now')
  })
