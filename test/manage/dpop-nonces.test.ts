import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { test } from 'tap'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { SETTINGS, TestManagement, type TestOptions } from './management.ts'
import { basic, clientFor, type MadeClient, postForm } from './oauth-client.ts'

const REQUIRED = { oauth: { ...SETTINGS.oauth, needsDpopNonce: true } }
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const jwk = publicKey.export({ format: 'jwk' }) as Record<string, string>

test('clients that nobody here wrote are told of a nonce, and need one for both servers', async (t) => {
  const manage = await TestManagement.start(t, REQUIRED)
  const made = await clientFor(manage, {})
  const statuses: string[] = []
  const config = await openid.discovery(new URL(manage.url), made.client_id, made.client_secret, undefined, {
    algorithm: 'oauth2',
    execute: [openid.allowInsecureRequests],
  })
  config[openid.customFetch] = async (url, options) => {
    const response = await fetch(url, options as RequestInit)
    statuses.push(`${new URL(url).pathname} ${response.status}`)
    return response
  }
  const handle = openid.getDPoPHandle(config, await openid.randomDPoPKeyPair('ES256'))
  const tokens = await openid.clientCredentialsGrant(config, {}, { DPoP: handle })
  const ask = async (path: string) => {
    const all = [config, tokens.access_token, new URL(manage.url + path), 'GET'] as const
    const answer = await openid.fetchProtectedResource(...all, null, undefined, { DPoP: handle })
    statuses.push(`${path} ${answer.status}`)
    await answer.text()
  }
  for (const path of ['/v1/agents', '/v1/stats']) await ask(path)
  assert.deepEqual(
    statuses.filter((each, index) => statuses[index - 1] !== each),
    ['/oauth/token 400', '/oauth/token 200', '/v1/agents 200', '/v1/stats 200'],
  )
  assert.deepEqual(manage.failures, [])
})

test('at the API alone a client that nobody here wrote is told, too', async (t) => {
  const manage = await TestManagement.start(t, REQUIRED)
  const token = await boundToken(manage, await clientFor(manage, {}))
  const key = { privateKey: await importKey(), publicKey: await importPublic() }
  const insecure = { [oauth.allowInsecureRequests]: true }
  const handle = oauth.DPoP({}, key)
  const url = new URL(`${manage.url}/v1/agents`)
  const ask = () =>
    oauth.protectedResourceRequest(token, 'GET', url, undefined, null, { DPoP: handle, ...insecure })
  await assert.rejects(ask(), (error) => oauth.isDPoPNonceError(error))
  assert.equal((await ask()).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('what is said to who has none, another, or one of long ago; nothing is used up by it', async (t) => {
  const clock = { aheadMs: 0 }
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, { ...REQUIRED, nowMs })
  const client = await clientFor(manage, {})
  const asked = await tokenRequest(manage, client, {})
  assert.deepEqual([asked.status, asked.body.error], [400, 'use_dpop_nonce'])
  const first = asked.headers.get('dpop-nonce')!
  assert.match(first, NONCE)
  const wrong = await tokenRequest(manage, client, { nonce: 'x' })
  assert.deepEqual([wrong.status, wrong.body.error], [400, 'use_dpop_nonce'])
  const token = (await tokenRequest(manage, client, { nonce: first })).body.access_token as string

  for (const nonce of [undefined, '', 'x', first.toLowerCase()]) {
    const answer = await present(manage, token, { nonce })
    assert.deepEqual([answer.status, answer.body.code], [401, 'use_dpop_nonce'])
    const challenge = answer.headers.get('www-authenticate') ?? ''
    assert.match(challenge, /^DPoP .*error="use_dpop_nonce".*algs="ES256/)
    assert.match(answer.headers.get('dpop-nonce')!, NONCE)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
  }
  const good = await present(manage, token, { nonce: first })
  assert.equal(good.status, 200)
  assert.match(good.headers.get('dpop-nonce')!, NONCE)
  // Who is refused for his scope, or asks for nothing there is, knows the next one as well.
  for (const [path, status] of [
    ['/v1/keys', 403],
    ['/v1/nothing', 404],
  ] as const) {
    const answer = await present(manage, token, { nonce: first }, path)
    assert.equal(answer.status, status)
    assert.match(answer.headers.get('dpop-nonce')!, NONCE)
  }
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const stolen = await present(manage, token, { nonce: first }, '/v1/agents', other)
  assert.deepEqual([stolen.status, stolen.body.code], [401, 'invalid_token'])

  clock.aheadMs = 120_000
  const iat = Math.floor(nowMs() / 1000)
  const later = await present(manage, token, { nonce: first, iat })
  assert.equal(later.status, 200, 'it is good for some minutes')
  const next = later.headers.get('dpop-nonce')!
  assert.notEqual(next, first)
  clock.aheadMs = 240_000
  const over = await present(manage, token, { nonce: first, iat: iat + 120 })
  assert.deepEqual([over.status, over.body.code], [401, 'use_dpop_nonce'])
  assert.equal((await present(manage, token, { nonce: next, iat: iat + 120 })).status, 200)
  assert.deepEqual(manage.failures, [])
})

test('where none are needed none are given, and tokens without a key need none in any case', async (t) => {
  const manage = await TestManagement.start(t)
  const client = await clientFor(manage, {})
  const { status, headers, body } = await tokenRequest(manage, client, {})
  assert.deepEqual([status, headers.get('dpop-nonce')], [200, null])
  const answer = await present(manage, body.access_token, {})
  assert.deepEqual([answer.status, answer.headers.get('dpop-nonce')], [200, null])
  const strict = await TestManagement.start(t, REQUIRED)
  const form = { grant_type: 'client_credentials' }
  const bearer = await postForm(strict.url, '/oauth/token', form, basic(await clientFor(strict, {})))
  assert.equal(bearer.body.token_type, 'Bearer')
  const authorization = `Bearer ${bearer.body.access_token}`
  const used = await strict.ask('GET', '/v1/agents', undefined, { authorization })
  assert.deepEqual([used.status, used.headers.get('dpop-nonce')], [200, null])
})

test('asking for a nonce over and over is no guessing', async (t) => {
  const manage = await TestManagement.start(t, { ...REQUIRED, authFailuresPerMinute: 2 })
  const token = await boundToken(manage, await clientFor(manage, {}))
  for (let i = 0; i < 5; i++) assert.equal((await present(manage, token, {})).body.code, 'use_dpop_nonce')
})

for (const kind of KINDS)
  test(`${kind}: one process takes the nonce of another, and a restart changes nothing`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const encryptionKey = new Secret('a key that both processes have')
    const options: TestOptions = {
      ...REQUIRED,
      storeUrl,
      encryptionKeys: [encryptionKey],
      publicUrl: 'http://gate.example',
    }
    const both = await Promise.all([TestManagement.start(t, options), TestManagement.start(t, options)])
    const client = await clientFor(both[0], {})
    // At once, so that each would make the secret.
    const nonces = await Promise.all(both.map(async (each) => nonceAt(each, client)))
    const all = [...both, await TestManagement.start(t, options)]
    for (const nonce of nonces) {
      const { body } = await tokenRequest(both[0], client, { nonce })
      for (const each of all) assert.equal((await present(each, body.access_token, { nonce })).status, 200)
    }
    const store = await openAt(t, storeUrl)
    await store.oauthRecords.forget(Date.now() + 1e12, 1_000)
    const after = await TestManagement.start(t, options)
    assert.equal((await tokenRequest(after, client, { nonce: nonces[0] })).status, 200, 'it is never removed')
  })

async function nonceAt(manage: TestManagement, client: MadeClient): Promise<string> {
  const { headers } = await tokenRequest(manage, client, {})
  return headers.get('dpop-nonce')!
}

async function boundToken(manage: TestManagement, client: MadeClient): Promise<string> {
  const { status, body } = await tokenRequest(manage, client, { nonce: await nonceAt(manage, client) })
  assert.equal(status, 200, JSON.stringify(body))
  return body.access_token
}

async function tokenRequest(manage: TestManagement, client: MadeClient, claims: Claims) {
  const form = { grant_type: 'client_credentials' }
  const dpop = await proof({ htm: 'POST', htu: `${await issuerOf(manage)}/oauth/token`, ...claims })
  return postForm(manage.url, '/oauth/token', form, { ...basic(client), dpop })
}

async function present(manage: TestManagement, token: string, claims: Claims, path = '/v1/agents', by = KEY) {
  const ath = createHash('sha256').update(token).digest('base64url')
  const htu = `${await issuerOf(manage)}${path}`
  const dpop = await proof({ htm: 'GET', htu, ath, ...claims }, by)
  return manage.ask('GET', path, undefined, { authorization: `DPoP ${token}`, dpop })
}

async function issuerOf(manage: TestManagement): Promise<string> {
  const response = await fetch(`${manage.url}/.well-known/oauth-authorization-server`)
  return ((await response.json()) as { readonly issuer: string }).issuer
}

type Claims = Readonly<Record<string, string | number | undefined>>

function proof(claims: Claims, by = KEY): Promise<string> {
  const iat = Math.floor(Date.now() / 1000)
  const own = by.publicKey.export({ format: 'jwk' }) as Record<string, string>
  return new SignJWT({ iat, jti: randomUUID(), ...claims })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk: own })
    .sign(by.privateKey)
}

const NONCE = /^[\w-]{43}$/
const KEY = { privateKey, publicKey }
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' }

function importKey(): Promise<oauth.CryptoKey> {
  const bytes = privateKey.export({ format: 'der', type: 'pkcs8' })
  return crypto.subtle.importKey('pkcs8', bytes, ALGORITHM, false, ['sign'])
}

function importPublic(): Promise<oauth.CryptoKey> {
  return crypto.subtle.importKey('jwk', jwk, ALGORITHM, true, ['verify'])
}
