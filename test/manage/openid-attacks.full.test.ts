import assert from 'node:assert/strict'
import * as jose from 'jose'
import { type Test, test } from 'tap'
import { openAt } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement } from './management.ts'
import { clientFor, type MadeClient } from './oauth-client.ts'
import { CLIENT, ForgingProvider, sendJson } from './outside-provider.ts'

type Forge = (forging: ForgingProvider, sentTo: URL) => unknown

const TOKENS: readonly (readonly [what: string, forge: Forge])[] = [
  ['for another sign-in (nonce)', ({ claims }) => Object.assign(claims, { nonce: 'of another' })],
  ['without a nonce', ({ claims }) => delete claims['nonce']],
  ['for somebody else (aud)', ({ claims }) => Object.assign(claims, { aud: 'another' })],
  [
    'for others, too, and given to one of them',
    ({ claims }) => Object.assign(claims, { aud: [CLIENT, 'b'], azp: 'b' }),
  ],
  ['of another issuer', ({ claims }) => Object.assign(claims, { iss: 'https://id.example' })],
  ['that is over', ({ claims }) => Object.assign(claims, { exp: 1_000_000_000 })],
  ['without an end', ({ claims }) => delete claims['exp']],
  ['of nobody', ({ claims }) => delete claims['sub']],
  ['of somebody whom no log takes', ({ claims }) => Object.assign(claims, { sub: 'anna\n' })],
  ['of somebody who is too long', ({ claims }) => Object.assign(claims, { sub: 'a'.repeat(256) })],
  ['that nobody signed', (forging) => (forging.sign = async (claims) => unsigned(claims))],
  [
    'that is signed with what everybody knows',
    (forging) => (forging.sign = signedBy('HS256', Buffer.from(CLIENT))),
  ],
  [
    'that is signed with a key of another',
    async (forging) => (forging.sign = signedBy('RS256', await anotherKey())),
  ],
  ['that is none', (forging) => (forging.sign = async () => 'a.b.c')],
  [
    'that is not there',
    (forging) =>
      forging.answer('/token', (_, r) =>
        sendJson(r, { access_token: 'an-access-token', token_type: 'Bearer' }),
      ),
  ],
  [
    'that is refused',
    (forging) => forging.answer('/token', (_, r) => sendJson(r, { error: 'invalid_grant' }, 400)),
  ],
  [
    'that is elsewhere',
    (forging) =>
      forging.answer('/token', (_, r) => r.writeHead(307, { location: `${forging.url}/jwks` }).end()),
  ],
  [
    'that is huge',
    (forging) => forging.answer('/token', (_, r) => sendJson(r, { access_token: 'x'.repeat(300_000) })),
  ],
  [
    'that is a page',
    (forging) =>
      forging.answer('/token', (_, r) => r.writeHead(200, { 'content-type': 'text/html' }).end('<p>')),
  ],
  [
    'of somebody whose address another has',
    (forging) => {
      delete forging.claims['email_verified']
      forging.answer('/me', (_, r) => sendJson(r, { sub: 'eve', email: ANNA.email, email_verified: true }))
    },
  ],
]

test('a token that is not to be believed signs nobody in', async (t) => {
  const { manage, forging, client, anna } = await begun(t)
  for (const [what, forge] of TOKENS)
    await t.test(what, async () => {
      const browser = await atTheDoor(manage, client)
      const sentTo = await sent(browser, forging)
      await forge(forging, sentTo)
      await browser.open(forging.back(sentTo))
      await isNobody(manage, browser, 502, /It sent an invalid response/)
      assert.equal((await anna())?.openid, null)
    })
  assert.ok(
    manage.said.filter((line) => line.includes('sign-in through the OpenID provider failed')).length > 5,
  )
  const browser = await atTheDoor(manage, client)
  await browser.open(forging.back(await sent(browser, forging)))
  assert.match(browser.page!.text, /Allow access/)
})

const ANSWERS: readonly (readonly [
  what: string,
  more: Record<string, string | null>,
  status: number,
  text: RegExp,
])[] = [
  ['of another provider', { iss: 'https://id.example' }, 502, /sent an invalid response/],
  ['that does not say whose it is', { iss: null }, 502, /sent an invalid response/],
  ['with the state of nobody', { state: 'x' }, 400, /Unknown sign-in/],
  ['without a state', { state: null }, 400, /Unknown sign-in/],
  ['without a code', { code: null }, 502, /sent an invalid response/],
  ['with an error', { error: '<b>server_error</b>' }, 502, /sent an invalid response/],
  ['that denies', { error: 'access_denied' }, 403, /You did not allow the sign-in/],
]

test('an answer that is not to be believed signs nobody in', async (t) => {
  const { manage, forging, client } = await begun(t)
  for (const [what, more, status, text] of ANSWERS)
    await t.test(what, async () => {
      const browser = await atTheDoor(manage, client)
      const sentTo = await sent(browser, forging)
      await browser.open(forging.back(sentTo, more))
      await isNobody(manage, browser, status, text)
    })
  assert.ok(!forging.asked.includes('POST /token'))
})

test('an answer counts once, in the browser that asked for it, on the page that asked', async (t) => {
  const { manage, forging, browser, client, anna } = await begun(t)
  const sentTo = await sent(browser, forging)
  const copy = new FormBrowser(manage.url)
  copy.takeCookies(browser)
  const back = forging.back(sentTo)

  // Somebody is given the answer that is for another one.
  const victim = new FormBrowser(manage.url)
  await victim.open(back)
  assert.equal(victim.page!.status, 400)
  assert.match(victim.page!.text, /has expired or began in another browser/)
  await victim.open(authorizeUrl(manage.url, client))
  const theirs = victim.page!.url
  await sent(victim, forging)
  const code = `${theirs}?${back.searchParams}`
  await victim.open(code)
  await isNobody(manage, victim, 403, /has expired or began in another browser/)
  forging.honest(sentTo)

  // Nor with its cookie, on another page.
  const { value } = browser.cookies.find(({ name }) => name === 'gatehouse_openid')!
  const response = await fetch(code, {
    redirect: 'manual',
    headers: { cookie: `${victim.cookiesFor(theirs)}; gatehouse_openid=${value}` },
  })
  assert.match(response.headers.get('location')!, /sign-in=over$/)
  assert.equal((await anna())?.openid, null)

  await browser.open(back)
  assert.match(browser.page!.text, /Allow access/)
  for (const other of [browser, copy]) {
    await other.open(back)
    assert.match(other.page!.text, /has expired or began in another browser/)
  }
  assert.equal(forging.asked.filter((line) => line === 'POST /token').length, 1)
  assert.deepEqual(manage.failures, [])
})

test('whoever has a copy of the cookie is no faster than the other', async (t) => {
  const { manage, forging, browser } = await begun(t)
  const sentTo = await sent(browser, forging)
  const copies = Array.from({ length: 4 }, () => new FormBrowser(manage.url))
  for (const copy of copies) copy.takeCookies(browser)
  await Promise.all(copies.map((copy) => copy.open(forging.back(sentTo))))
  assert.equal(forging.asked.filter((line) => line === 'POST /token').length, 1)
})

test('nobody is led elsewhere, and from elsewhere nobody is led to the provider', async (t) => {
  const { manage, browser, forging } = await begun(t)
  const { url } = browser.page!
  for (const step of ['https://evil.example', '//evil.example', 'over%0d%0aX-A:b', '<script>'])
    for (const name of ['sign-in', 'next', 'resume', 'redirect_uri']) {
      await browser.open(`${url}?${name}=${step}`)
      assert.equal(browser.away, null)
      assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
      assert.doesNotMatch(browser.page!.text, /evil|<script/)
    }
  for (const state of ['https://evil.example', '//evil.example', 'v1.00000000.AAAA', 'x'.repeat(5_000)]) {
    await browser.open(`${manage.url}/oauth/openid/callback?state=${encodeURIComponent(state)}`)
    assert.deepEqual([browser.away, browser.page!.status], [null, 400])
  }
  await browser.open(`${url}?sign-in=elsewhere`, { 'sec-fetch-site': 'cross-site' })
  assert.equal(browser.away, null)
  await browser.open(`${url}?sign-in=elsewhere`, { 'sec-fetch-site': 'same-origin' })
  assert.equal(browser.away!.origin, forging.url)
  assert.deepEqual(manage.failures, [])
})

const METADATA: readonly (readonly [what: string, forge: Forge, status: number])[] = [
  ['of another issuer', ({ metadata }) => Object.assign(metadata, { issuer: 'https://id.example' }), 502],
  ['without keys', ({ metadata }) => delete metadata['jwks_uri'], 502],
  ['that is huge', ({ metadata }) => Object.assign(metadata, { more: 'x'.repeat(70_000) }), 503],
  [
    'that is elsewhere',
    (forging) => forging.answer(METADATA_PATH, (_, r) => r.writeHead(302, { location: '/jwks' }).end()),
    503,
  ],
  ['that is not there', (forging) => forging.answer(METADATA_PATH, (_, r) => r.writeHead(404).end()), 502],
  ['that cannot be had', (forging) => forging.answer(METADATA_PATH, (_, r) => r.destroy()), 503],
]

for (const [what, forge, status] of METADATA)
  test(`metadata ${what}: the page says so, and people sign in here as before`, async (t) => {
    const { manage, forging, browser } = await begun(t)
    await forge(forging, new URL(forging.url))
    for (let time = 0; time < 3; time++) await browser.open(linkIn(browser))
    await isNobody(
      manage,
      browser,
      status,
      /A provider<\/bdi>: (?:It sent an invalid response|It is not responding)/,
    )
    // It is not asked all the time, and the log says it once.
    assert.equal(forging.asked.length, 1)
    assert.equal(
      manage.said.filter((line) => line.includes('sign-in through the OpenID provider failed')).length,
      1,
    )
    await browser.submit('sign-in', ANNA)
    assert.match(browser.page!.text, /Allow access/)
  })

test('a provider that takes too long is given up', async (t) => {
  const { manage, forging, browser } = await begun(t)
  const sentTo = await sent(browser, forging)
  forging.answer('/token', () => undefined)
  await browser.open(forging.back(sentTo))
  await isNobody(manage, browser, 503, /It is not responding/)
})

test('a provider that is not on the public internet is not asked, unless that is allowed', async (t) => {
  const { manage, browser } = await begun(t, false)
  await browser.open(linkIn(browser))
  await isNobody(manage, browser, 502, /sent an invalid response/)
})

test('attempts become too many', async (t) => {
  const { manage, forging, browser, client } = await begun(t)
  for (let attempt = 1; attempt <= 31; attempt++) {
    await browser.open(authorizeUrl(manage.url, client))
    const sentTo = await sent(browser, forging)
    forging.sign = async (claims) => unsigned(claims)
    await browser.open(forging.back(sentTo))
    assert.equal(browser.page!.status, attempt <= 30 ? 502 : 429)
  }
  assert.match(browser.page!.text, /Too many attempts/)
  const { body } = await manage.ask('GET', '/v1/audit?limit=200')
  const count = (wanted: string) =>
    body.audit.filter(({ action }: { action: string }) => action === wanted).length
  assert.deepEqual([count('failSignIn'), count('throttleSignIn')], [30, 1])
})

async function begun(t: Test, allowPrivate = true) {
  const forging = await ForgingProvider.start(t)
  const openid = {
    ...{ issuer: `${forging.url}/`, name: 'A provider', clientId: CLIENT, clientSecret: null, ca: null },
    roles: null,
    allowPrivate,
  }
  const manage = await TestManagement.start(t, { openid })
  const { body } = await manage.ask('POST', '/v1/users', { ...ANNA, scopes: ['read'] })
  const client = await clientFor(manage, {
    ...{ grant_types: ['authorization_code'], redirect_uris: [APP], scopes: ['read'] },
  })
  const store = await openAt(t, manage.storeUrl)
  const browser = await atTheDoor(manage, client)
  return { manage, forging, browser, client, anna: () => store.users.byId(body.id) }
}

/** On the sign-in page. */
function atTheDoor(manage: TestManagement, client: MadeClient): Promise<FormBrowser> {
  return new FormBrowser(manage.url).open(authorizeUrl(manage.url, client))
}

/** Where the browser is sent, to a provider that answers as it should so far. */
async function sent(browser: FormBrowser, forging: ForgingProvider): Promise<URL> {
  await browser.open(linkIn(browser))
  const { away } = browser
  assert.equal(away?.origin, forging.url)
  browser.away = null
  forging.honest(away)
  return away
}

/** On a page of ours that says why, with nothing of it in the address, the log or the audit log. */
async function isNobody(manage: TestManagement, browser: FormBrowser, status: number, text: RegExp) {
  assert.equal(browser.away, null)
  assert.match(browser.page!.text, text)
  assert.equal(browser.page!.status, status)
  assert.ok(browser.cookies.every(({ name }) => !name.includes('session')))
  const { body } = await manage.ask('GET', '/v1/audit')
  // Where nothing is known of it there is no page to lead to.
  const address = status === 400 ? '' : browser.page!.url.search
  const written = [...manage.said, JSON.stringify(body), address].join('\n')
  assert.doesNotMatch(written, /a-code|an-access-token|eyJ|server_error|at async|nonce=/)
  assert.ok(!JSON.stringify(body).includes('"signIn"'))
  assert.deepEqual(manage.failures, [])
}

function unsigned(claims: Record<string, unknown>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'none' })}.${part(claims)}.`
}

function signedBy(alg: string, key: jose.CryptoKey | Buffer) {
  return (claims: Record<string, unknown>) =>
    new jose.SignJWT(claims).setProtectedHeader({ alg, kid: 'a' }).sign(key)
}

async function anotherKey(): Promise<jose.CryptoKey> {
  return (await jose.generateKeyPair('RS256')).privateKey
}

function authorizeUrl(publicUrl: string, { client_id }: MadeClient): string {
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: APP, scope: 'read', state: 'x' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  })
  return `${publicUrl}/oauth/authorize?${query}`
}

function linkIn({ page }: FormBrowser): string {
  return /<a class="button" href="([^"]*)"/.exec(page!.text)![1]!
}

const METADATA_PATH = '/.well-known/openid-configuration'
const APP = 'https://app.example/callback'
const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
