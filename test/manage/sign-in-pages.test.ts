import assert from 'node:assert/strict'
import { renameSync } from 'node:fs'
import * as oauth from 'oauth4webapi'
import { type Test, test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { setPassword, startCodes } from '../../src/manage/auth/people/make-user.ts'
import { codeAt } from '../../src/manage/auth/people/one-time-codes.ts'
import { PasswordHasher } from '../../src/manage/auth/people/password-hash.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { basic, clientFor, type MadeClient, postForm } from './oauth-client.ts'
import { quickHasher } from './quick-hasher.ts'
import { until } from '../until.ts'

for (const kind of KINDS)
  test(`${kind}: somebody signs in, consents to a part, and a client that nobody here wrote goes on with that`, async (t) => {
    const { manage, client, browser, anna } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const flow = await flowFor(manage, client, 'read detect write')
    await browser.open(flow.url)
    assert.match(browser.page!.text, /<h1>Sign in<\/h1>\s*<p><b>“<bdi>an app<\/bdi>”<\/b> requests access/)
    await browser.submit('sign-in', ANNA)
    const { text } = browser.page!
    assert.match(text, /<h1>Allow access\?<\/h1>/)
    assert.match(text, /at <b>app\.example<\/b>/)
    assert.match(text, /signed in as <bdi>anna@example\.com</)
    // Of what it asks for she has two, and the third is not hers to give.
    assert.deepEqual(scopesShown(text), ['read', 'detect'])
    assert.match(text, /do not have and cannot grant: <code>write<\/code>/)
    await browser.submit('allow', { scope: ['read', 'write', 'admin'] })
    const tokens = await flow.finish(browser.away!)
    assert.deepEqual([tokens.scope, tokens.refresh_token], ['read', undefined])
    const bearer = { authorization: `Bearer ${tokens.access_token}` }
    assert.equal((await manage.ask('GET', '/v1/agents', undefined, bearer)).status, 200)
    assert.equal((await manage.ask('POST', '/v1/detect', { user_agent: 'x' }, bearer)).status, 403)
    assert.deepEqual(manage.failures, [])
    assert.ok(!manage.said.join('').includes(ANNA.password))
    const { body } = await manage.ask('GET', '/v1/audit?action=allowClient')
    const { principal, subject, detail, address } = body.audit[0]
    assert.deepEqual([body.total, principal, subject], [1, anna.id, client.client_id])
    assert.deepEqual([detail, address], [{ scopes: ['read'], isOffline: false }, '127.0.0.1'])
  })

test('behind https all cookies are bound to this host and to https; the Host header is in nothing', async (t) => {
  const publicUrl = 'https://gate.example'
  const { manage, client, browser } = await begun(t, { publicUrl })
  await browser.open(authorizeUrl(manage, client, {}, publicUrl), { host: 'evil.example' })
  assert.match(browser.page!.text, /href="https:\/\/gate\.example\/docs\/style\.css"/)
  await browser.submit('sign-in', ANNA)
  await browser.submit('allow')
  assert.equal(browser.away?.origin, 'https://app.example')
  assert.deepEqual(browser.cookies.map(({ name }) => name).sort(), [
    '__Host-gatehouse_device',
    '__Host-gatehouse_form',
    '__Host-gatehouse_session',
    '__Secure-gatehouse_interaction',
    '__Secure-gatehouse_interaction',
  ])
  // The consent form had another interaction than the form before: each has a cookie on its own path.
  assert.equal(browser.cookies.filter(({ line }) => line.includes('path=/oauth/interaction/')).length, 2)
})

test('over plain http passwords are taken on this machine only', async (t) => {
  const publicUrl = 'http://gate.example'
  const { manage, client, browser } = await begun(t, { publicUrl })
  await browser.open(authorizeUrl(manage, client, {}, publicUrl))
  assert.equal(browser.page!.status, 403)
  assert.match(browser.page!.text, /not accepted over plain http/)
  assert.ok(!browser.page!.text.includes('<form'))
})

test("a page lets nothing in, and is in nobody's frame or cache", async (t) => {
  const { manage, client, browser } = await begun(t)
  const check = (leadsTo: string) => {
    const { headers, text, status } = browser.page!
    assert.equal(
      headers.get('content-security-policy'),
      `default-src 'none'; style-src 'self'; form-action 'self'${leadsTo}; base-uri 'none'; frame-ancestors 'none'`,
    )
    assert.deepEqual(
      ['cache-control', 'referrer-policy', 'x-frame-options', 'x-content-type-options'].map((name) =>
        headers.get(name),
      ),
      ['no-store', 'no-referrer', 'DENY', 'nosniff'],
    )
    assert.deepEqual([headers.get('etag'), headers.get('content-encoding')], [null, null])
    assert.match(headers.get('content-type') ?? '', /^text\/html; charset=utf-8$/)
    assert.doesNotMatch(text, /<script|style=|\son\w+=|<img|<iframe|javascript:/i)
    const addresses = [...text.matchAll(/(?:href|src|action)="([^"]*)"/g)].map(([, address]) => address!)
    for (const address of addresses) assert.ok(address.startsWith(`${manage.url}/`), address)
    // Every field has a label, and the page a language and a title.
    for (const [, id] of text.matchAll(/<input id="(\w+)"/g))
      assert.match(text, new RegExp(`<label for="${id}"`))
    assert.match(text, /<html lang="en">[\s\S]*<title>[^<]+<\/title>/)
    return status
  }
  await browser.open(authorizeUrl(manage, client), { 'accept-encoding': 'gzip' })
  assert.equal(check(' https://app.example'), 200)
  assert.match(
    browser.page!.text,
    /autocomplete="username"[\s\S]*autocomplete="current-password"[\s\S]*autocomplete="one-time-code"/,
  )
  await browser.submit('sign-in', { ...ANNA, password: 'wrong' })
  assert.equal(check(' https://app.example'), 403)
  assert.match(
    browser.page!.text,
    /<p class="problem" id="problem" role="alert">[\s\S]*aria-invalid="true" aria-describedby="problem"/,
  )
  await browser.submit('sign-in', ANNA)
  assert.equal(check(' https://app.example'), 200)
  await browser.open(`${manage.url}/oauth/sign-out`)
  assert.equal(check(''), 200)
  await browser.open(`${manage.url}/oauth/interaction/forged`)
  assert.equal(check(''), 400)
  // What the authorization server itself says to a browser.
  await browser.open(`${manage.url}/oauth/authorize?client_id=%3Cscript%3E`, { accept: 'text/html' })
  assert.equal(check(''), 400)
  assert.match(browser.page!.text, /<h1>Request failed<\/h1>/)
})

test('whoever is there or not, whatever is wrong: the same words', async (t) => {
  const { manage, client, browser, addBen } = await begun(t)
  await addBen()
  await browser.open(authorizeUrl(manage, client))
  const said = new Set<string>()
  for (const wrong of [
    { email: 'anna@example.com', password: 'wrong' },
    { email: 'nobody@example.com', password: 'wrong' },
    { email: 'ben@example.com', password: 'wrong' },
    { email: '<script>"\'', password: '' },
    { email: 'x'.repeat(5_000), password: 'x'.repeat(20_000) },
  ]) {
    await browser.submit('sign-in', wrong)
    const { status, text } = browser.page!
    assert.equal(status, 403)
    assert.ok(!text.includes('<script>'))
    said.add(text.replaceAll(/value="[^"]*"| autofocus/g, ''))
  }
  assert.equal(said.size, 1)
  await browser.submit('sign-in', ANNA)
  assert.match(browser.page!.text, /Allow access/)
})

test('who guesses is told to wait, on the page', async (t) => {
  const { manage, client, browser } = await begun(t)
  await browser.open(authorizeUrl(manage, client))
  for (let time = 0; time < 10; time++) {
    await browser.submit('sign-in', { ...ANNA, password: `guess ${time}` })
    assert.equal(browser.page!.status, 403)
  }
  await browser.submit('sign-in', ANNA)
  assert.equal(browser.page!.status, 429)
  assert.match(browser.page!.text, /Too many attempts\. Try again in 10 min/)
  assert.match(browser.page!.headers.get('retry-after') ?? '', /^\d+$/)
  await browser.submit('deny')
  assert.equal(browser.away?.searchParams.get('error'), 'access_denied')
})

test('a code is asked for beside the password', async (t) => {
  const { manage, client, browser, anna, store, sealer } = await begun(t)
  const codes = (await startCodes({ store, sealer }, anna, COMMAND_LINE, Date.now()))!
  await browser.open(authorizeUrl(manage, client))
  await browser.submit('sign-in', ANNA)
  assert.equal(browser.page!.status, 403)
  await browser.submit('sign-in', { ...ANNA, code: codeAt(codes.secret, Math.floor(Date.now() / 30_000)) })
  assert.match(browser.page!.text, /Allow access/)
})

test('a form that did not come from the page in this browser does nothing', async (t) => {
  const { manage, client, browser } = await begun(t)
  const [victim, attacker] = [browser, new FormBrowser(manage.url)]
  await victim.open(authorizeUrl(manage, client))
  await attacker.open(authorizeUrl(manage, client))
  const token = (page: FormBrowser) => /name="token" value="([^"]*)"/.exec(page.page!.text)![1]!
  const foreign = async (fields: Record<string, string | null>, headers: Record<string, string> = {}) => {
    const { page } = victim
    await victim.submit('sign-in', { ...ANNA, ...fields }, headers)
    assert.equal(victim.page!.status, 403)
    assert.match(victim.page!.text, /was not loaded in this browser/)
    victim.page = page
  }
  await foreign({ token: null })
  await foreign({ token: '' })
  await foreign({ token: 'x'.repeat(43) })
  await foreign({ token: token(attacker) })
  await foreign({}, { 'sec-fetch-site': 'cross-site' })
  await foreign({}, { 'sec-fetch-site': 'same-site' })
  // What another browser was shown is of no use, either: not even for the same interaction.
  const other = new FormBrowser(manage.url)
  other.page = victim.page
  await other.submit('sign-in', ANNA)
  assert.equal(other.page!.status, 400)
  assert.match(other.page!.text, /has expired or began in another browser/)
  await victim.submit('sign-in', ANNA)
  // The consent is another interaction: the token of the sign-in is not its.
  const consent = victim.page!
  assert.match(consent.text, /Allow access/)
  await victim.submit('allow', { token: token(attacker) })
  assert.equal(victim.page!.status, 403)
  victim.page = consent
  for (const init of [
    { body: 'action=allow', headers: { 'content-type': 'text/plain' } },
    { body: '{"action":"allow"}', headers: { 'content-type': 'application/json' } },
  ]) {
    const cookie = victim.cookiesFor(consent.url)
    const answer = await fetch(consent.url, { method: 'POST', ...init, headers: { ...init.headers, cookie } })
    assert.equal(answer.status, 415)
  }
  await victim.submit('allow')
  assert.equal(victim.away?.searchParams.has('code'), true)
})

test('a sign-in that began in one browser is not finished in another, nor twice', async (t) => {
  const { manage, client, browser } = await begun(t)
  // Somebody begins, and has another one follow the address of the page.
  const [attacker, victim] = [browser, new FormBrowser(manage.url)]
  await attacker.open(authorizeUrl(manage, client))
  const { url } = attacker.page!
  await victim.open(url)
  assert.equal(victim.page!.status, 400)
  assert.ok(!victim.page!.text.includes('<form'))
  // Of whoever is signed in, another one\'s interaction is still another one\'s.
  await victim.open(authorizeUrl(manage, client))
  await victim.submit('sign-in', ANNA)
  await victim.open(url)
  assert.equal(victim.page!.status, 400)
  for (const path of ['forged', 'x'.repeat(64), '..%2f', `${url.pathname.split('/').at(-1)}x`]) {
    await attacker.open(`${manage.url}/oauth/interaction/${path}`)
    assert.ok([400, 404].includes(attacker.page!.status), path)
  }
  // The cookie of one interaction opens no other path.
  const cookie = attacker.cookiesFor(url)
  for (const path of ['x', 'x/y'])
    assert.equal((await fetch(`${url}${path}`, { headers: { cookie } })).status, 400)
  await attacker.open(url)
  await attacker.submit('deny')
  assert.equal(attacker.away?.searchParams.get('error'), 'access_denied')
  await attacker.open(url)
  assert.equal(attacker.page!.status, 400)
})

test('who signs in gets a new session: one that somebody has put there before is worth nothing', async (t) => {
  const { manage, client, browser: victim, addBen } = await begun(t)
  await addBen()
  const attacker = new FormBrowser(manage.url)
  await attacker.open(authorizeUrl(manage, client))
  await attacker.submit('sign-in', { email: 'ben@example.com', password: ANNA.password })
  assert.match(attacker.page!.text, /ben@example\.com/)
  // The attacker\'s cookies are in the victim\'s browser when the victim signs in.
  victim.takeCookies(attacker)
  await victim.open(authorizeUrl(manage, client, { prompt: 'login' }))
  await victim.submit('sign-in', ANNA)
  assert.match(victim.page!.text, /signed in as <bdi>anna@example\.com/)
  await attacker.open(authorizeUrl(manage, client))
  assert.match(attacker.page!.text, /<h1>Sign in<\/h1>/)
  await victim.submit('allow')
  assert.equal(victim.away?.searchParams.has('code'), true)
})

test('what is chosen is never more than what was asked for, and nothing is no consent', async (t) => {
  const { manage, client, browser } = await begun(t)
  const flow = await flowFor(manage, client, 'detect')
  await browser.open(flow.url)
  await browser.submit('sign-in', ANNA)
  assert.deepEqual(scopesShown(browser.page!.text), ['detect'])
  await browser.submit('allow', { scope: null })
  assert.equal(browser.page!.status, 400)
  assert.match(browser.page!.text, /role="alert">Choose at least one permission/)
  await browser.submit('allow', { scope: ['read', 'admin', 'detect ', 'DETECT', 'detect read', '__proto__'] })
  assert.equal(browser.page!.status, 400)
  await browser.submit('nonsense')
  assert.equal(browser.page!.status, 200)
  await browser.submit('allow', { scope: ['admin', 'detect', 'detect', 'read'] })
  assert.equal((await flow.finish(browser.away!)).scope, 'detect')
})

test('who may do nothing of it can only deny', async (t) => {
  const { manage, client, browser } = await begun(t)
  await browser.open(authorizeUrl(manage, client, { scope: 'write' }))
  await browser.submit('sign-in', ANNA)
  assert.deepEqual(scopesShown(browser.page!.text), [])
  assert.ok(!browser.page!.text.includes('value="allow"'))
  await browser.submit('allow', { scope: ['write'] })
  assert.equal(browser.page!.status, 400)
  await browser.submit('deny')
  assert.equal(browser.away?.searchParams.get('error'), 'access_denied')
  assert.equal(browser.away?.searchParams.get('iss'), manage.url)
})

test('a consent holds for a client with a secret in the same browser, and for an app of the machine never', async (t) => {
  const { manage, client, browser } = await begun(t)
  await browser.open(authorizeUrl(manage, client))
  await browser.submit('sign-in', { ...ANNA, stay: 'yes' })
  await browser.submit('allow')
  await browser.open(authorizeUrl(manage, client))
  assert.equal(browser.away?.searchParams.has('code'), true)
  const app = await clientFor(manage, {
    ...{ grant_types: ['authorization_code'], redirect_uris: ['http://127.0.0.1/cb'] },
    token_endpoint_auth_method: 'none',
  })
  for (const port of ['49152', '49153']) {
    const redirect_uri = `http://127.0.0.1:${port}/cb`
    await browser.open(authorizeUrl(manage, app, { redirect_uri }))
    assert.match(browser.page!.text, /Allow access/)
    await browser.submit('allow')
    assert.equal(browser.away?.port, port)
  }
})

test('a name that a client has chosen turns nothing around, and one that came by itself is said to have', async (t) => {
  const { manage, browser } = await begun(t, {
    oauth: { accessTokenTtlS: 600, keyRotationMs: 86_400_000, registration: 'open', registrationToken: null },
  })
  const wanted = { redirect_uris: [CALLBACK], client_name: '\u202e<b>Gatehouse</b>"\u2067', scope: 'read' }
  const { body } = await manage.ask('POST', '/oauth/register', wanted, { authorization: '' })
  await browser.open(authorizeUrl(manage, body, { scope: 'read' }))
  assert.match(browser.page!.text, /“<bdi> &lt;b&gt;Gatehouse&lt;\/b&gt;&quot; <\/bdi>”/)
  await browser.submit('sign-in', ANNA)
  assert.match(browser.page!.text, /Its name is not verified/)
  assert.doesNotMatch(browser.page!.text, /[\u202e\u2067]/)
})

test('signing out ends the session in this browser, and asks before', async (t) => {
  const { manage, client, browser } = await begun(t)
  await browser.open(authorizeUrl(manage, client))
  await browser.submit('sign-in', ANNA)
  await browser.submit('allow')
  const kept = new FormBrowser(manage.url)
  kept.takeCookies(browser)
  browser.away = null
  await browser.open(`${manage.url}/oauth/sign-out?post_logout_redirect_uri=https%3A%2F%2Fevil.example`)
  assert.match(browser.page!.text, /signed in as <bdi>anna@example\.com/)
  const { page } = browser
  await browser.submit('sign-out', { token: 'x' })
  assert.equal(browser.page!.status, 403)
  browser.page = page
  await browser.submit('sign-out')
  assert.match(browser.page!.text, /You are signed out/)
  assert.equal(browser.away, null)
  assert.ok(!browser.cookies.some(({ name }) => name === 'gatehouse_session'))
  for (const each of [browser, kept]) {
    await each.open(authorizeUrl(manage, client))
    assert.match(each.page!.text, /<h1>Sign in<\/h1>/)
  }
})

for (const kind of KINDS)
  for (const [how, end] of [
    ['deleted', (manage: TestManagement, id: string) => manage.ask('DELETE', `/v1/users/${id}`)],
    ['given another password', null],
  ] as const)
    test(`${kind}: who is ${how} is signed out everywhere within a second, also in another process`, async (t) => {
      const storeUrl = await freshUrl(kind, t)
      const { manage, client, browser, anna, store } = await begun(t, { storeUrl })
      const flow = await flowFor(manage, client, 'read offline_access')
      await browser.open(flow.url)
      await browser.submit('sign-in', { ...ANNA, stay: 'yes' })
      assert.match(browser.page!.text, /while you are away/)
      await browser.submit('allow')
      const tokens = await flow.finish(browser.away!)
      const bearer = { authorization: `Bearer ${tokens.access_token}` }
      const ask = async () => (await manage.ask('GET', '/v1/agents', undefined, bearer)).status
      const refresh = (refresh_token: string) =>
        postForm(manage.url, '/oauth/token', { grant_type: 'refresh_token', refresh_token }, basic(client))
      assert.equal(await ask(), 200)
      const again = await refresh(tokens.refresh_token!)
      assert.equal(again.status, 200)
      // A page that is open already.
      const open = new FormBrowser(manage.url)
      open.takeCookies(browser)
      await open.open(authorizeUrl(manage, client, { prompt: 'consent' }))
      assert.match(open.page!.text, /Allow access/)

      if (end !== null) assert.equal((await end(manage, anna.id)).status, 204)
      else await setPassword({ store, hasher: quickHasher() }, anna, OTHER, COMMAND_LINE, Date.now())
      await until(async () => (await ask()) === 401, 1_000)
      const over = await refresh(again.body.refresh_token)
      assert.deepEqual([over.status, over.body.error], [400, 'invalid_grant'])
      await open.submit('allow')
      assert.equal(open.away, null)
      assert.match(open.page!.text, /Not signed in|<h1>Sign in<|has expired or began/)
      await browser.open(authorizeUrl(manage, client))
      assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
      await browser.submit('sign-in', ANNA)
      assert.equal(browser.page!.status, 403)
      if (end !== null) return
      await browser.submit('sign-in', { ...ANNA, password: OTHER })
      assert.match(browser.page!.text, /Allow access/)
      await browser.submit('allow')
      assert.equal(browser.away?.searchParams.has('code'), true)
      assert.deepEqual(manage.failures, [])
    })

test('a sign-in that was under way while the password was changed is none', async (t) => {
  const passwords = new PasswordHasher() // takes long enough to come in between
  const { manage, client, browser, anna, store } = await begun(t, { passwords })
  await browser.open(authorizeUrl(manage, client))
  const signingIn = browser.submit('sign-in', ANNA)
  await setPassword({ store, hasher: passwords }, anna, OTHER, COMMAND_LINE, Date.now() + 1_000)
  await signingIn
  // It may have come to the consent before: it comes no further.
  if (/Allow access/.test(browser.page!.text)) await browser.submit('allow')
  assert.equal(browser.away, null)
  assert.match(browser.page!.text, /<h1>Sign in<\/h1>|This sign-in has expired/)
})

test('while the database is away a page says so, and goes on when it is back', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  const { manage, client, browser } = await begun(t, { storeUrl })
  await browser.open(authorizeUrl(manage, client))
  const { page } = browser
  const file = storeUrl.slice('sqlite:'.length)
  renameSync(file, `${file}.away`)
  await browser.submit('sign-in', ANNA)
  assert.equal(browser.page!.status, 503)
  assert.match(browser.page!.text, /<h1>Request failed<\/h1>/)
  renameSync(`${file}.away`, file)
  browser.page = page
  await browser.submit('sign-in', ANNA)
  assert.match(browser.page!.text, /Allow access/)
  assert.deepEqual(manage.failures, [])
})

test('a cookie of the session lasts as long as the browser, unless somebody wants to stay', async (t) => {
  const { manage, client, browser } = await begun(t)
  for (const [stay, lasts] of [
    [null, false],
    ['yes', true],
  ] as const) {
    await browser.open(authorizeUrl(manage, client, { prompt: 'login' }))
    await browser.submit('sign-in', { ...ANNA, stay })
    const { line } = browser.cookies.find(({ name }) => name === 'gatehouse_session')!
    assert.equal(/expires=/i.test(line), lasts, line)
  }
})

async function begun(t: Test, options: TestOptions = {}) {
  const storeUrl = options.storeUrl ?? (await freshUrl('sqlite', t))
  const manage = await TestManagement.start(t, { ...options, storeUrl })
  const user = (email: string) =>
    manage.ask('POST', '/v1/users', { email, password: ANNA.password, scopes: ['read', 'detect'] })
  const { body } = await user(ANNA.email)
  const store = await openAt(t, storeUrl)
  const client = await clientFor(manage, {
    ...{ name: 'an app', grant_types: ['authorization_code'], redirect_uris: [CALLBACK] },
    scopes: ['read', 'detect', 'write', 'admin'],
  })
  return {
    ...{ manage, client, store },
    addBen: () => user('ben@example.com'),
    browser: new FormBrowser(manage.url, options.publicUrl ?? manage.url),
    anna: (await store.users.byId(body.id))!,
    sealer: new Sealer([], `${manage.folder}/store.key`),
  }
}

function authorizeUrl(
  manage: TestManagement,
  { client_id }: MadeClient,
  more: Record<string, string> = {},
  publicUrl = manage.url,
): string {
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: CALLBACK, scope: 'read detect', state: 'x' },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
    ...more,
  })
  return `${publicUrl}/oauth/authorize?${query}`
}

/** Code and PKCE, as a client does it that nobody here wrote. */
async function flowFor(manage: TestManagement, made: MadeClient, scope: string) {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(manage.url)
  const found = await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' })
  const server = await oauth.processDiscoveryResponse(issuer, found)
  const client = { client_id: made.client_id }
  const verifier = oauth.generateRandomCodeVerifier()
  const url = new URL(server.authorization_endpoint!)
  url.search = new URLSearchParams({
    ...{
      response_type: 'code',
      client_id: made.client_id,
      redirect_uri: CALLBACK,
      scope,
      state: 'some state',
    },
    ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' },
  }).toString()
  const finish = async (away: URL) => {
    const parameters = oauth.validateAuthResponse(server, client, away, 'some state')
    const auth = oauth.ClientSecretBasic(made.client_secret!)
    const answer = await oauth.authorizationCodeGrantRequest(
      ...([server, client, auth, parameters, CALLBACK, verifier, insecure] as const),
    )
    return oauth.processAuthorizationCodeResponse(server, client, answer)
  }
  return { url, finish }
}

function scopesShown(text: string): readonly string[] {
  return [...text.matchAll(/name="scope" value="(\w+)" checked/g)].map(([, scope]) => scope!)
}

const CALLBACK = 'https://app.example/callback'
const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
const OTHER = 'another phrase of words'
