import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import * as jose from 'jose'
import * as openid from 'openid-client'
import { test } from 'tap'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { type Answered, TestManagement, type TestOptions } from './management.ts'
import { basic, clientFor, type MadeClient, postForm } from './oauth-client.ts'
import { TestBrowser, TestPeople } from './oauth-people.ts'

test('somebody signs in and consents, and a client that nobody here wrote goes on in their name', async (t) => {
  const { manage, people, client } = await start(t, { scopes: ['read', 'detect', 'write'] })
  const config = await openid.discovery(
    new URL(manage.url),
    client.client_id,
    client.client_secret,
    undefined,
    {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    },
  )
  const verifier = openid.randomPKCECodeVerifier()
  const state = openid.randomState()
  const address = openid.buildAuthorizationUrl(config, {
    ...{ redirect_uri: CALLBACK, scope: 'read write', state, code_challenge_method: 'S256' },
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
  })
  const { away } = await new TestBrowser(manage.url).open(address.href)
  assert.equal(away?.searchParams.get('iss'), manage.url)
  const tokens = await openid.authorizationCodeGrant(config, away!, {
    pkceCodeVerifier: verifier,
    expectedState: state,
  })
  // The person has no write, so nobody has it from them.
  assert.deepEqual([tokens.scope, tokens.token_type, tokens.refresh_token], ['read', 'bearer', undefined])
  const claims = jose.decodeJwt(tokens.access_token)
  assert.deepEqual(
    [claims.sub, claims['client_id'], claims.aud],
    ['usr_1', client.client_id, `${manage.url}/v1`],
  )
  assert.equal((await open(manage, tokens.access_token)).status, 200)
  assert.equal((await open(manage, tokens.access_token, 'POST', '/v1/signatures/submit')).status, 403)
  assert.deepEqual(
    people.shown.map(({ asks }) => asks),
    ['login', 'consent'],
  )
  const [, consent] = people.shown
  assert.deepEqual(
    [consent?.client, consent?.scopes, consent?.isOffline, consent?.personId, consent?.redirectUri],
    [
      { id: client.client_id, name: 'test', isRegistered: false },
      ['read', 'write'],
      false,
      'usr_1',
      CALLBACK,
    ],
  )
  assert.deepEqual(manage.failures, [])
})

test('what a person may no more, their tokens may no more; who is gone has no tokens', async (t) => {
  const { manage, people, client } = await start(t, {
    scopes: ['read', 'detect'],
    grant_types: CODE_AND_REFRESH,
  })
  const { body } = await exchanged(manage, client, await codeFor(manage, client, {}))
  assert.equal(body.scope, 'read detect')
  assert.equal((await open(manage, body.access_token)).status, 200)
  people.add('usr_1', ['detect'])
  await wait(600)
  assert.equal((await open(manage, body.access_token)).status, 403)
  const less = await refreshed(manage, client, body.refresh_token)
  assert.deepEqual([less.status, less.body.scope], [200, 'detect'])
  people.people.clear()
  await wait(600)
  assert.equal((await open(manage, body.access_token)).status, 401)
  const gone = await refreshed(manage, client, less.body.refresh_token)
  assert.deepEqual([gone.status, gone.body.error], [400, 'invalid_grant'])
})

test('a consent covers what was consented to, in this browser, and is asked for when there is more', async (t) => {
  const { manage, people, client } = await start(t, { scopes: ['read', 'detect', 'mcp'] })
  const browser = new TestBrowser(manage.url)
  people.consentsTo = ['read']
  const first = await exchanged(
    manage,
    client,
    await codeFor(manage, client, { scope: 'read detect' }, browser),
  )
  assert.equal(first.body.scope, 'read')
  const second = await exchanged(
    manage,
    client,
    await codeFor(manage, client, { scope: 'read detect' }, browser),
  )
  assert.deepEqual([second.body.scope, people.shown.length], ['read', 2])
  people.consentsTo = ['read', 'mcp']
  const third = await exchanged(manage, client, await codeFor(manage, client, { scope: 'read mcp' }, browser))
  assert.deepEqual([third.body.scope, people.shown.length], ['read mcp', 3])
  people.consentsTo = null
  const { away } = await browser.open(authorizeUrl(manage, client, { prompt: 'consent' }).href)
  assert.equal(away?.searchParams.get('error'), 'access_denied')
  people.consentsTo = ['write']
  const nothing = await browser.open(authorizeUrl(manage, client, { prompt: 'consent' }).href)
  assert.equal(nothing.away?.searchParams.get('error'), 'access_denied')
})

test('who signs in as somebody else in the same browser is that one from then on', async (t) => {
  const { manage, people, client } = await start(t, { scopes: ['read'] })
  people.add('usr_2', ['read'])
  const browser = new TestBrowser(manage.url)
  const sub = async (more: Record<string, string>) => {
    const { body } = await exchanged(manage, client, await codeFor(manage, client, more, browser))
    return jose.decodeJwt(body.access_token).sub
  }
  assert.equal(await sub({}), 'usr_1')
  people.who = 'usr_2'
  assert.equal(await sub({}), 'usr_1')
  const asked = await browser.open(authorizeUrl(manage, client, { prompt: 'login' }).href)
  // Without a script it is one button more: the page that leaves the other's sign-in.
  const { away } = asked.away === null ? await browser.submit(asked.text) : asked
  const { body } = await exchanged(manage, client, away!.searchParams.get('code')!)
  assert.equal(jose.decodeJwt(body.access_token).sub, 'usr_2')
  assert.equal(await sub({}), 'usr_2')
  assert.deepEqual(manage.failures, [])
})

test('a refresh token comes to who has registered for it, and to who asks for offline_access', async (t) => {
  const { manage, client } = await start(t, { scopes: ['read'] })
  const other = await clientFor(manage, { grant_types: CODE_AND_REFRESH, redirect_uris: [CALLBACK] })
  const of = async (which: MadeClient, scope: string) =>
    (await exchanged(manage, which, await codeFor(manage, which, { scope }))).body
  assert.equal((await of(client, 'read')).refresh_token, undefined)
  const offline = await of(client, 'read offline_access')
  assert.equal(typeof offline.refresh_token, 'string')
  assert.equal(offline.scope, 'read')
  assert.equal(typeof (await of(other, 'read')).refresh_token, 'string')
  const again = await refreshed(manage, client, offline.refresh_token)
  assert.equal(again.status, 200)
  assert.notEqual(again.body.refresh_token, offline.refresh_token)
})

for (const kind of KINDS)
  test(`${kind}: sign-in, code and refresh token live through a restart, and through another process`, async (t) => {
    const people = new TestPeople()
    const same = {
      storeUrl: await freshUrl(kind, t),
      encryptionKeys: [KEY],
      publicUrl: 'http://gate.test',
      people,
    }
    const [one, two] = [await TestManagement.start(t, same), await TestManagement.start(t, same)]
    const client = await clientFor(one, { grant_types: CODE_AND_REFRESH, redirect_uris: [CALLBACK] })
    // Nobody can reach http://gate.test: what it says is followed on one process or the other.
    const browser = new HandBrowser()
    let at = authorizeUrl(one, client, {}).href
    for (const manage of [one, two, one, two, one, two]) {
      at = await browser.step(manage.url, at)
      if (at.startsWith(CALLBACK)) break
    }
    const code = new URL(at).searchParams.get('code')!
    const first = await exchanged(two, client, code)
    assert.equal(first.status, 200)
    const second = await refreshed(one, client, first.body.refresh_token)
    assert.equal(second.status, 200)
    for (const manage of [one, two]) assert.equal((await open(manage, second.body.access_token)).status, 200)
    assert.deepEqual([one.failures, two.failures], [[], []])
  })

test('an app on the machine of its user has no secret, any port, and asks for consent each time', async (t) => {
  const { manage, people } = await start(t, {})
  const app = await clientFor(manage, {
    ...{ grant_types: CODE_AND_REFRESH, redirect_uris: ['http://127.0.0.1/cb'] },
    token_endpoint_auth_method: 'none',
  })
  assert.equal(app.client_secret, undefined)
  const redirect_uri = 'http://127.0.0.1:49152/cb'
  const browser = new TestBrowser(manage.url)
  for (const shown of [2, 3]) {
    const code = await codeFor(manage, app, { redirect_uri }, browser)
    const answer = await postForm(manage.url, '/oauth/token', {
      ...{ grant_type: 'authorization_code', code, redirect_uri, code_verifier: VERIFIER },
      client_id: app.client_id,
    })
    assert.deepEqual([answer.status, people.shown.length], [200, shown])
    const next = await postForm(manage.url, '/oauth/token', {
      ...{ grant_type: 'refresh_token', refresh_token: answer.body.refresh_token, client_id: app.client_id },
    })
    assert.equal(next.status, 200)
  }
})

test('a request can be pushed before the browser goes, once', async (t) => {
  const { manage, client } = await start(t, {})
  const parameters = Object.fromEntries(authorizeUrl(manage, client, {}).searchParams)
  const pushed = await postForm(manage.url, '/oauth/par', parameters, basic(client))
  assert.equal(pushed.status, 201)
  const { request_uri } = pushed.body
  const address = `${manage.url}/oauth/authorize?${new URLSearchParams({ client_id: client.client_id, request_uri })}`
  const { away } = await new TestBrowser(manage.url).open(address)
  const code = away!.searchParams.get('code')!
  assert.equal((await exchanged(manage, client, code)).status, 200)
  const again = await new TestBrowser(manage.url).open(address)
  assert.equal(again.away?.searchParams.get('code') ?? null, null)
})

test('a client may come by itself where a setting lets it, with the token for it, and asks people only', async (t) => {
  const people = new TestPeople()
  const settings = { accessTokenTtlS: 600, keyRotationMs: 86_400_000, registrationToken: 'the-initial-token' }
  const off = await TestManagement.start(t, { people, oauth: { ...settings, registration: 'off' } })
  const manage = await TestManagement.start(t, { people, oauth: { ...settings, registration: 'token' } })
  const wanted = {
    redirect_uris: [CALLBACK],
    client_name: 'an app',
    scope: 'read admin mcp',
    software_id: 'ignored',
  }
  const nobody = { authorization: '' }
  assert.equal((await off.ask('POST', '/oauth/register', wanted, nobody)).status, 404)
  const refused = await manage.ask('POST', '/oauth/register', wanted, nobody)
  assert.deepEqual([refused.status, refused.body.error], [401, 'invalid_token'])
  assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer/)
  const wrong = await manage.ask('POST', '/oauth/register', wanted, {
    authorization: 'Bearer the-wrong-token',
  })
  assert.equal(wrong.status, 401)
  const token = { authorization: 'Bearer the-initial-token' }
  const made = await manage.ask('POST', '/oauth/register', wanted, token)
  assert.equal(made.status, 201)
  assert.deepEqual([made.body.scope, made.body.client_secret_expires_at], ['read mcp', 0])
  const { body } = await exchanged(
    manage,
    made.body,
    await codeFor(manage, made.body, { scope: 'read admin' }),
  )
  assert.equal(body.scope, 'read')
  assert.equal(people.shown.at(-1)?.client.isRegistered, true)
  const own = await postForm(
    manage.url,
    '/oauth/token',
    { grant_type: 'client_credentials' },
    basic(made.body),
  )
  assert.equal(own.status, 400)
  for (const [change, error] of [
    [{ redirect_uris: ['http://app.example/'] }, 'invalid_redirect_uri'],
    [{ redirect_uris: [] }, 'invalid_redirect_uri'],
    [{ grant_types: ['client_credentials'] }, 'invalid_client_metadata'],
    [{ token_endpoint_auth_method: 'private_key_jwt' }, 'invalid_client_metadata'],
    [
      { jwks_uri: 'http://169.254.169.254/', token_endpoint_auth_method: 'private_key_jwt' },
      'invalid_client_metadata',
    ],
    [{ scope: 'admin' }, 'invalid_client_metadata'],
    [{ client_name: 'a\u0000b' }, 'invalid_client_metadata'],
  ] as const) {
    const answer = await manage.ask('POST', '/oauth/register', { ...wanted, ...change }, token)
    assert.deepEqual([answer.status, answer.body.error], [400, error], JSON.stringify(change))
  }
  const document = await (await fetch(`${manage.url}/.well-known/oauth-authorization-server`)).json()
  assert.equal((document as Record<string, unknown>)['registration_endpoint'], `${manage.url}/oauth/register`)
  assert.deepEqual(manage.failures, [])
})

const CALLBACK = 'https://app.example/callback'
const CODE_AND_REFRESH = ['authorization_code', 'refresh_token']
const VERIFIER = randomBytes(32).toString('base64url')
const KEY = new Secret('what all processes share')

/** Follows one redirect at a time, on whichever process it is told. */
class HandBrowser {
  readonly #cookies = new Map<string, string>()

  async step(base: string, address: string): Promise<string> {
    const { pathname, search } = new URL(address)
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(base + pathname + search, { redirect: 'manual', headers: { cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0]!.split('=') as [string, string]
      this.#cookies.set(name, value)
    }
    const location = response.headers.get('location')
    assert.notEqual(location, null, await response.text())
    return location!
  }
}

async function start(
  t: Parameters<typeof TestManagement.start>[0],
  body: Record<string, unknown>,
  options: TestOptions = {},
) {
  const people = new TestPeople()
  const manage = await TestManagement.start(t, { people, ...options })
  const client = await clientFor(manage, {
    grant_types: ['authorization_code'],
    redirect_uris: [CALLBACK],
    ...body,
  })
  return { manage, people, client }
}

function authorizeUrl(manage: TestManagement, client: MadeClient, more: Record<string, string>): URL {
  const parameters = {
    ...{
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: CALLBACK,
      code_challenge_method: 'S256',
    },
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    ...more,
  }
  return new URL(`${manage.url}/oauth/authorize?${new URLSearchParams(parameters)}`)
}

async function codeFor(
  manage: TestManagement,
  client: MadeClient,
  more: Record<string, string>,
  browser = new TestBrowser(manage.url),
): Promise<string> {
  const { away, text } = await browser.open(authorizeUrl(manage, client, more).href)
  const code = away?.searchParams.get('code') ?? null
  assert.notEqual(code, null, away?.href ?? text)
  return code!
}

function exchanged(manage: TestManagement, client: MadeClient, code: string) {
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
  return postForm(manage.url, '/oauth/token', form, basic(client))
}

function refreshed(manage: TestManagement, client: MadeClient, token: string) {
  return postForm(
    manage.url,
    '/oauth/token',
    { grant_type: 'refresh_token', refresh_token: token },
    basic(client),
  )
}

function open(manage: TestManagement, token: string, method = 'GET', path = '/v1/agents'): Promise<Answered> {
  return manage.ask(method, path, undefined, { authorization: `Bearer ${token}` })
}
