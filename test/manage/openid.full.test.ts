import assert from 'node:assert/strict'
import * as jose from 'jose'
import * as oauth from 'oauth4webapi'
import { type Test, test } from 'tap'
import type { OpenidSettings } from '../../src/manage/auth/people/openid-provider.ts'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { newSigner } from '../identity/signer.ts'
import { FormBrowser } from './form-browser.ts'
import { GnapClient } from './gnap-client.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { clientFor, type MadeClient } from './oauth-client.ts'
import { CLIENT, OutsideProvider } from './outside-provider.ts'
import { until } from '../until.ts'

for (const kind of KINDS)
  test(`${kind}: somebody whom an OpenID provider elsewhere knows signs in, and is who they are for good`, async (t) => {
    const { manage, outside, store, anna, client } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const tokens = await tokensOf(manage, outside, client)
    assert.equal(jose.decodeJwt(tokens.access_token).sub, anna.id)
    assert.equal(tokens.scope, 'read detect')
    const bound = await store.users.byId(anna.id)
    assert.deepEqual(bound?.openid, { issuer: `${outside.url}/`, subject: 'anna-there' })
    assert.deepEqual(await actions(manage), [
      ...['createKey', 'createUser', 'createClient'],
      ...['setOpenid', 'signIn', 'allowClient'],
    ])

    // Another address makes her nobody else, and her old one nobody her.
    outside.people.set('anna-there', { email: 'another@example.com', email_verified: true })
    outside.people.set('eve-there', { email: 'anna@example.com', email_verified: true })
    const again = await tokensOf(manage, outside, client)
    assert.equal(jose.decodeJwt(again.access_token).sub, anna.id)
    outside.who = 'eve-there'
    const { page } = await signedInElsewhere(manage, outside, client)
    assert.equal(page?.status, 403)
    assert.match(page.text, /No account here matches yours/)
    const [, failed] = (await manage.ask('GET', '/v1/audit?limit=2')).body.audit.toReversed()
    assert.deepEqual(
      [failed.action, failed.detail],
      ['failSignIn', { reason: 'another', issuer: `${outside.url}/`, subject: 'eve-there' }],
    )
    assert.deepEqual(manage.failures, [])
  })

for (const [whom, person] of [
  ['has no user', { email: 'eve@example.com', email_verified: true }],
  ['has an address that is not verified', { email: 'anna@example.com', email_verified: false }],
  ['has an address of which nothing is said', { email: 'anna@example.com' }],
  ['has an address that is verified in words', { email: 'anna@example.com', email_verified: 'true' }],
  ['has no address', { email_verified: true }],
] as const)
  test(`who ${whom} gets nowhere`, async (t) => {
    const { manage, outside, store, anna, client } = await begun(t)
    outside.people.set('anna-there', person)
    const browser = await signedInElsewhere(manage, outside, client)
    assert.equal(browser.away, null)
    assert.equal(browser.page?.status, 403)
    assert.match(browser.page.text, /Ask an administrator for access/)
    assert.doesNotMatch(browser.page.url.href, /code=|state=/)
    assert.equal((await store.users.byId(anna.id))?.openid, null)
    // The form is there as before.
    await browser.submit('sign-in', ANNA)
    assert.match(browser.page.text, /Allow access/)
    assert.deepEqual(manage.failures, [])
  })

test('with a secret there, by a public address with https, and with one-time codes that are not asked for', async (t) => {
  const publicUrl = 'https://gate.example.test'
  const { manage, outside, client } = await begun(t, { publicUrl }, 'a secret: of + theirs%')
  const browser = await signedInElsewhere(manage, outside, client, {}, publicUrl)
  assert.match(browser.page!.text, /<h1>Allow access\?<\/h1>/)
  assert.deepEqual(
    browser.cookies.map(({ name }) => name).filter((name) => name.includes('openid')),
    [],
  )
  await browser.submit('allow')
  assert.equal(browser.away?.origin, 'https://app.example')
  const { line } = browser.cookies.find(({ name }) => name.includes('session'))!
  assert.doesNotMatch(line, /expires=|max-age=/i)
})

test('the link is for this page, and what it leaves in the browser is for it too', async (t) => {
  const publicUrl = 'https://gate.example.test'
  const { manage, outside, client } = await begun(t, { publicUrl })
  const browser = new FormBrowser(manage.url, publicUrl)
  await browser.open(authorizeUrl(publicUrl, client))
  const { url } = browser.page!
  assert.match(browser.page!.text, /Sign in with <bdi>A <\/bdi>|Sign in with <bdi>A &lt;house&gt;<\/bdi>/)
  assert.equal(linkIn(browser), `${publicUrl}${url.pathname}?sign-in=elsewhere`)
  await browser.open(linkIn(browser))
  const away = browser.away!
  assert.equal(away.origin, outside.url)
  const { scope, code_challenge_method, response_type, redirect_uri, state } = Object.fromEntries(
    away.searchParams,
  )
  assert.deepEqual(
    [scope, code_challenge_method, response_type, redirect_uri],
    ['openid email', 'S256', 'code', `${publicUrl}/oauth/openid/callback`],
  )
  const { line } = browser.cookies.find(({ name }) => name === '__Secure-gatehouse_openid')!
  assert.match(line, /Max-Age=600; HttpOnly; SameSite=Lax; Secure$/)
  assert.ok(line.includes(`Path=${url.pathname};`))
  for (const secret of [away.searchParams.get('nonce')!, url.pathname.split('/').at(-1)!])
    assert.ok(!line.split(';')[0]!.includes(secret) && !state!.includes(secret))
})

test('what one process has begun another ends, with the same key and database', async (t) => {
  const publicUrl = 'https://gate.example.test'
  const encryptionKey = new Secret('the key of all processes on one database')
  const storeUrl = await freshUrl('postgres', t)
  const { outside, manage, client, openid } = await begun(t, {
    publicUrl,
    storeUrl,
    encryptionKeys: [encryptionKey],
  })
  const other = await TestManagement.start(t, {
    publicUrl,
    storeUrl,
    encryptionKeys: [encryptionKey],
    openid,
  })
  const browser = new FormBrowser(manage.url, publicUrl)
  await browser.open(authorizeUrl(publicUrl, client))
  await browser.open(linkIn(browser))
  const there = await new FormBrowser(outside.url).open(browser.away!)
  const same = new FormBrowser(other.url, publicUrl)
  same.takeCookies(browser)
  await same.open(there.away!)
  assert.match(same.page!.text, /Allow access/)
  // Once, for both.
  await browser.open(there.away!)
  assert.match(browser.page!.text, /has expired or began in another browser/)
})

test('a client that wants it said anew has the provider ask anew', async (t) => {
  const { manage, outside, client } = await begun(t)
  await signedInElsewhere(manage, outside, client)
  for (const more of [{ prompt: 'login' }, { max_age: '0', scope: 'openid read' }] as const) {
    const browser = new FormBrowser(manage.url)
    await browser.open(authorizeUrl(manage.url, client, more))
    await browser.open(linkIn(browser))
    assert.equal(browser.away!.searchParams.get('prompt'), 'login')
    assert.equal(browser.away!.searchParams.get('max_age'), '600')
    const there = await new FormBrowser(outside.url).open(browser.away!)
    await browser.open(there.away!)
    assert.match(browser.page!.text, /Allow access/)
  }
})

test('an administrator who signs in elsewhere approves a key of GNAP', async (t) => {
  const { manage, outside, client } = await begun(t)
  const made = await manage.ask('POST', '/v1/users', { email: 'root@example.com', scopes: ['admin'] })
  assert.equal(made.status, 201)
  outside.people.set('root-there', { email: 'Root@Example.com', email_verified: true })
  outside.who = 'root-there'
  const tokens = await tokensOf(manage, outside, client, 'admin')
  const gnap = new GnapClient(manage.url, newSigner())
  const asked = await gnap.grant(['read'], { interact: { start: ['redirect'] } })
  const id = asked.body.continue.uri.split('/').at(-1)
  const bearer = { authorization: `Bearer ${tokens.access_token}` }
  const decided = await manage.ask('POST', `/v1/grants/${id}/decide`, { decision: 'approve' }, bearer)
  assert.equal(decided.status, 200, JSON.stringify(decided.body))
  const audited = (await manage.ask('GET', '/v1/audit?limit=1')).body.audit[0]
  assert.equal(audited.principal, made.body.id)
})

test('who signs in elsewhere decides about a key of GNAP on its page, and has an account page', async (t) => {
  const { manage, outside, anna } = await begun(t)
  const gnap = new GnapClient(manage.url, newSigner())
  const asked = await gnap.grant(['read'], { interact: { start: ['redirect'] } })
  const browser = new FormBrowser(manage.url)
  const page = asked.body.interact.redirect.replace('/interact/', '/decide/')
  await browser.open(page)
  await goElsewhere(browser, outside)
  assert.equal(browser.page!.url.href, page)
  assert.match(browser.page!.text, /<h1>Allow access\?<\/h1>/)
  assert.match(browser.page!.text, /signed in as <bdi>anna@example\.com<\/bdi>/)
  await browser.submit('allow')
  assert.equal((await manage.ask('GET', '/v1/audit?limit=1')).body.audit[0].principal, anna.id)

  const other = new FormBrowser(manage.url)
  await other.open(`${manage.url}/account`)
  await goElsewhere(other, outside)
  assert.equal(other.page!.url.href, `${manage.url}/account`)
  assert.match(other.page!.text, /anna@example\.com/)
  assert.deepEqual(manage.failures, [])
})

test('who is disabled gets in from nowhere, and is not bound', async (t) => {
  const { manage, outside, store, anna, client } = await begun(t)
  const disable = (disabled: boolean) => manage.ask('PATCH', `/v1/users/${anna.id}`, { disabled })
  assert.equal((await disable(true)).status, 200)
  const first = await signedInElsewhere(manage, outside, client)
  assert.match(first.page!.text, /No account here matches yours/)
  assert.equal((await store.users.byId(anna.id))?.openid, null)
  await disable(false)
  // Sign-ins are known by the second.
  const second = Math.floor(Date.now() / 1_000)
  await until(() => Math.floor(Date.now() / 1_000) > second)
  await tokensOf(manage, outside, client)
  await disable(true)
  const { page } = await signedInElsewhere(manage, outside, client)
  assert.match(page!.text, /No account here matches yours/)
  const [failed] = (await manage.ask('GET', '/v1/audit?limit=1')).body.audit
  assert.deepEqual([failed.action, failed.detail.reason], ['failSignIn', 'disabled'])
})

test('who does not want to is back on the page', async (t) => {
  const { manage, outside, client } = await begun(t)
  outside.who = null
  const browser = await signedInElsewhere(manage, outside, client)
  assert.equal(browser.page!.status, 403)
  assert.match(browser.page!.text, /You did not allow the sign-in/)
  outside.who = 'anna-there'
  await goElsewhere(browser, outside)
  assert.match(browser.page!.text, /Allow access/)
})

test('who is deleted is signed out, and elsewhere nobody', async (t) => {
  const { manage, outside, anna, client } = await begun(t)
  await tokensOf(manage, outside, client)
  assert.equal((await manage.ask('DELETE', `/v1/users/${anna.id}`)).status, 204)
  const browser = await signedInElsewhere(manage, outside, client)
  assert.match(browser.page!.text, /No account here matches yours/)
})

test('where no provider is set there is no button, and nothing to come back to', async (t) => {
  const { manage, client } = await begun(t, { openid: null })
  const browser = new FormBrowser(manage.url)
  await browser.open(authorizeUrl(manage.url, client))
  assert.doesNotMatch(browser.page!.text, /Sign in with/)
  await browser.open(`${browser.page!.url}?sign-in=elsewhere`)
  assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
  await browser.open(`${manage.url}/oauth/openid/callback?state=x&code=y`)
  assert.equal(browser.page!.status, 400)
})

const ROLES = {
  ...{ claim: 'groups', scope: 'groups' },
  list: [
    { value: 'platform', role: 'admin', apps: '*' },
    { value: 'shop-team', role: 'editor', apps: ['shop'] },
    { value: 'everyone', role: 'viewer', apps: ['default'] },
  ],
} as const

for (const kind of KINDS)
  test(`${kind}: the groups of the provider decide at each sign-in what a user may`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { manage, outside, store, client, anna } = await begun(t, { storeUrl }, null, ROLES)
    const access = async (id = anna.id) => {
      const { scopes, apps } = (await store.users.byId(id))!
      return [scopes, apps]
    }
    const person = { email: 'Anna@example.com', email_verified: true }
    const inGroups = async (groups: unknown) => {
      outside.people.set('anna-there', { ...person, groups })
      return signedInElsewhere(manage, outside, client)
    }
    // Without a role, the account that an administrator made is not even linked.
    assert.equal((await inGroups(undefined)).page?.status, 403)
    assert.deepEqual(await access(), [['read', 'detect'], '*'])
    assert.equal((await store.users.byId(anna.id))?.openid, null)
    await inGroups(['everyone', 'shop-team'])
    assert.deepEqual(await access(), [['read', 'detect', 'write', 'mcp'], ['shop']])
    const { access_token } = await tokensOf(manage, outside, client)
    const me = async () =>
      (await manage.ask('GET', '/v1/me', undefined, { authorization: `Bearer ${access_token}` })).body
    assert.deepEqual([(await me()).scopes, (await me()).apps], [['read', 'detect'], ['shop']])
    // An administrator of fewer apps may have set the password of an account that now gets more.
    const password = async () => {
      const { status } = await manage.ask('PATCH', `/v1/users/${anna.id}`, { password: ANNA.password })
      assert.equal(status, 200)
    }
    await password()
    const platform = await inGroups('platform')
    assert.match(platform.page!.text, /Allow access/)
    assert.deepEqual(await access(), [['admin'], '*'])
    assert.equal((await store.users.byId(anna.id))?.hasPassword, false)
    const ended = { authorization: `Bearer ${access_token}` }
    await until(async () => (await manage.ask('GET', '/v1/me', undefined, ended)).status === 401)
    for (const none of [
      ['Shop-Team'],
      [],
      [1, null, { value: 'platform' }],
      { platform: true },
      7,
      undefined,
    ]) {
      await inGroups(['everyone'])
      assert.deepEqual(await access(), [['read', 'detect'], ['default']])
      const refused = await inGroups(none)
      assert.equal(refused.page?.status, 403, JSON.stringify(none))
      assert.deepEqual(await access(), [[], []])
    }
    const { body } = await manage.ask('GET', '/v1/audit?limit=2')
    assert.deepEqual(
      body.audit.map(({ action, detail }: { action: string; detail: { reason?: string } }) => [
        action,
        detail.reason,
      ]),
      [
        ['failSignIn', 'no-role'],
        ['updateUser', undefined],
      ],
    )
    // Many groups count like few; where some are missing, nothing changes.
    await inGroups([...groupsOf(9_999), 'everyone'])
    assert.deepEqual(await access(), [['read', 'detect'], ['default']])
    const elsewhere = {
      _claim_names: { groups: 'src1' },
      _claim_sources: { src1: { endpoint: outside.url } },
    }
    for (const [claims, why] of [
      [
        { groups: ['platform', ...groupsOf(10_000)] },
        /its claim \\"groups\\" has 10001 values: set it to send only/,
      ],
      [elsewhere, /it does not send the claim \\"groups\\" itself: set it to send only/],
    ] as const) {
      outside.people.set('anna-there', { ...person, ...claims })
      await signedInElsewhere(manage, outside, client)
      assert.deepEqual(await access(), [['read', 'detect'], ['default']])
      assert.match(manage.said.join('\n'), why)
    }
    await inGroups(['everyone'])
    // New people, with and without a role and a verified address.
    for (const [subject, more, isMade] of [
      ['ben', { email: 'ben@example.com', email_verified: true, groups: ['shop-team'] }, true],
      ['eve', { email: 'eve@example.com', email_verified: true, groups: ['other'] }, false],
      ['mal', { email: 'mal@example.com', email_verified: false, groups: ['platform'] }, false],
    ] as const) {
      outside.people.set(subject, more)
      outside.who = subject
      await signedInElsewhere(manage, outside, client)
      const found = await store.users.byEmail(more.email)
      assert.equal(found !== null, isMade, subject)
      if (found !== null)
        assert.deepEqual(await access(found.id), [['read', 'detect', 'write', 'mcp'], ['shop']])
    }
    assert.deepEqual(manage.failures, [])
  })

function groupsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`)
}

async function begun(
  t: Test,
  options: TestOptions = {},
  secret: string | null = null,
  roles: OpenidSettings['roles'] = null,
) {
  const storeUrl = options.storeUrl ?? (await freshUrl('sqlite', t))
  const outside = await OutsideProvider.start(t)
  outside.people.set('anna-there', { email: 'Anna@example.com', email_verified: true })
  outside.who = 'anna-there'
  const openid = {
    ...{
      issuer: `${outside.url}/`,
      name: 'A <house>',
      clientId: CLIENT,
      ca: null,
      roles,
      allowPrivate: true,
    },
    clientSecret: secret === null ? null : new Secret(secret),
  }
  const manage = await TestManagement.start(t, { openid, ...options, storeUrl })
  await outside.serve(options.publicUrl ?? manage.url, secret)
  const { body } = await manage.ask('POST', '/v1/users', { ...ANNA, scopes: ['read', 'detect'] })
  const client = await clientFor(manage, {
    ...{ name: 'an app', grant_types: ['authorization_code'], redirect_uris: [APP] },
    scopes: ['read', 'detect', 'write', 'admin'],
  })
  const store = await openAt(t, storeUrl)
  return { manage, outside, store, client, openid, anna: (await store.users.byId(body.id))! }
}

/** To where the provider's answer has led. */
async function signedInElsewhere(
  manage: TestManagement,
  outside: OutsideProvider,
  client: MadeClient,
  more: Record<string, string> = {},
  publicUrl = manage.url,
): Promise<FormBrowser> {
  const browser = new FormBrowser(manage.url, publicUrl)
  await browser.open(authorizeUrl(publicUrl, client, more))
  return goElsewhere(browser, outside)
}

async function goElsewhere(browser: FormBrowser, outside: OutsideProvider): Promise<FormBrowser> {
  await browser.open(linkIn(browser))
  const there = await new FormBrowser(outside.url).open(browser.away!)
  browser.away = null
  return browser.open(there.away!)
}

async function tokensOf(
  manage: TestManagement,
  outside: OutsideProvider,
  client: MadeClient,
  scope = 'read detect',
) {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(manage.url)
  const found = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' })
  const server = await oauth.processDiscoveryResponse(issuer, found)
  const verifier = oauth.generateRandomCodeVerifier()
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier)
  const browser = await signedInElsewhere(manage, outside, client, { scope, code_challenge })
  assert.match(browser.page!.text, /Allow access/)
  await browser.submit('allow')
  const app = { client_id: client.client_id }
  const parameters = oauth.validateAuthResponse(server, app, browser.away!, 'x')
  const auth = oauth.ClientSecretBasic(client.client_secret!)
  const answer = await oauth.authorizationCodeGrantRequest(
    ...([server, app, auth, parameters, APP, verifier, insecure] as const),
  )
  return oauth.processAuthorizationCodeResponse(server, app, answer)
}

function authorizeUrl(
  publicUrl: string,
  { client_id }: MadeClient,
  more: Record<string, string> = {},
): string {
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: APP, scope: 'read detect', state: 'x' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
    ...more,
  })
  return `${publicUrl}/oauth/authorize?${query}`
}

function linkIn({ page, away }: FormBrowser): string {
  assert.ok(page !== null, `${away}`)
  return /<a class="button" href="([^"]*)"/.exec(page.text)![1]!
}

async function actions(manage: TestManagement): Promise<readonly string[]> {
  const { body } = await manage.ask('GET', '/v1/audit')
  return body.audit.map(({ action }: { action: string }) => action).toReversed()
}

const APP = 'https://app.example/callback'
const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
