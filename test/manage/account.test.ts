import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { startCodes } from '../../src/manage/auth/people/make-user.ts'
import { codeAt } from '../../src/manage/auth/people/one-time-codes.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { basic, CALLBACK, clientFor, codeUrl, postForm, tokensFor } from './oauth-client.ts'
import { until } from '../until.ts'

for (const kind of KINDS)
  test(`${kind}: somebody sees what they have allowed, and takes one of it back`, async (t) => {
    const { manage, browser, account } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    await account()
    assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
    assert.ok(!browser.page!.text.includes('value="deny"'))
    await browser.submit('sign-in', ANNA)
    assert.equal(browser.page!.url.pathname, '/account')
    assert.match(browser.page!.text, /signed in as <b><bdi>anna@example\.com</)
    assert.match(browser.page!.text, /<code>read<\/code>[\s\S]*<code>detect<\/code>/)
    assert.match(browser.page!.text, /No program has access/)
    const [one, other] = [await client(manage, '<b>one</b>'), await client(manage, 'other')]
    const given = []
    for (const each of [one, one, other]) {
      // Nobody signs in once more: it is the same session.
      await browser.open(await codeUrl(manage, each, 'read offline_access'))
      assert.match(browser.page!.text, /Allow access/)
      await browser.submit('allow')
      given.push(await tokensFor(manage, each, browser.away!))
    }
    const works = async ({ access_token }: { access_token: string }) =>
      (await manage.ask('GET', '/v1/agents', undefined, { authorization: `Bearer ${access_token}` })).status
    const refreshes = async ({ refresh_token }: { refresh_token: string }, of: typeof one) =>
      (await postForm(manage.url, '/oauth/token', { grant_type: 'refresh_token', refresh_token }, basic(of)))
        .status
    await account()
    const { text } = browser.page!
    assert.match(text, /<bdi>&lt;b&gt;one&lt;\/b&gt;<\/bdi>/)
    assert.equal(text.match(/name="given"/g)?.length, 2)
    assert.match(text, /<code>read<\/code> – also while you are away/)
    assert.deepEqual(await Promise.all(given.map(works)), [200, 200, 200])
    await browser.submit('take-back', { given: one.client_id })
    assert.match(browser.page!.text, /role="status">Access revoked/)
    assert.equal(browser.page!.text.match(/name="given"/g)?.length, 1)
    assert.deepEqual(await Promise.all(given.map(works)), [401, 401, 200])
    assert.deepEqual([await refreshes(given[1]!, one), await refreshes(given[2]!, other)], [400, 200])
    // Nothing of somebody else's, and nothing twice.
    for (const id of [one.client_id, 'usr_x', '', 'gnk_x'])
      await browser.submit('take-back', { given: id }).then(() => assert.equal(browser.page!.status, 200))
    const { body } = await manage.ask('GET', '/v1/audit?action=takeBackAccess')
    assert.deepEqual([body.total, body.audit[0].subject], [1, one.client_id])
    assert.match(body.audit[0].principal, /^usr_/)
    // It may be asked for again.
    await browser.open(await codeUrl(manage, one, 'read'))
    assert.match(browser.page!.text, /Allow access/)
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: somebody changes their password, and every other session is over`, async (t) => {
    const { manage, browser, account, other, anna } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    await account('/password')
    await browser.submit('sign-in', ANNA)
    assert.match(browser.page!.text, /<h1>Change your password<\/h1>/)
    await other.open(`${manage.url}/account`)
    await other.submit('sign-in', ANNA)
    const change = async (fields: Record<string, string>, status: number, words: RegExp) => {
      await browser.submit('change', { current: ANNA.password, new: OTHER, again: OTHER, ...fields })
      assert.equal(browser.page!.status, status, browser.page!.text)
      assert.match(browser.page!.text, words)
    }
    await change({ current: 'a phrase of other words' }, 403, /role="alert">The current password is wrong/)
    await change({ again: 'x' }, 400, /do not match/)
    await change({ new: 'short', again: 'short' }, 400, /has fewer than 12 characters/)
    await other.open(`${manage.url}/account`)
    assert.match(other.page!.text, /Your account/)
    await change({}, 200, /<h1>Password changed/)
    await account()
    assert.match(browser.page!.text, /<h1>Your account/)
    await other.open(`${manage.url}/account`)
    assert.match(other.page!.text, /<h1>Sign in/)
    await other.submit('sign-in', ANNA)
    assert.equal(other.page!.status, 403)
    await other.submit('sign-in', { ...ANNA, password: OTHER })
    assert.match(other.page!.text, /<h1>Your account/)
    const { body } = await manage.ask('GET', '/v1/audit?action=changePassword')
    assert.deepEqual([body.total, body.audit[0].principal, body.audit[0].subject], [1, anna.id, anna.id])
    assert.ok(!`${manage.said.join('')}${JSON.stringify(body)}`.includes(OTHER))
    assert.deepEqual(manage.failures, [])
  })

test('who guesses at the password of somebody who has left the browser open is told to wait', async (t) => {
  const { browser, account } = await begun(t)
  await account('/password')
  await browser.submit('sign-in', ANNA)
  for (let time = 0; time < 10; time++) {
    await browser.submit('change', { current: `guess ${time}`, new: OTHER, again: OTHER })
    assert.equal(browser.page!.status, 403)
  }
  await browser.submit('change', { current: ANNA.password, new: OTHER, again: OTHER })
  assert.equal(browser.page!.status, 429)
  assert.match(browser.page!.text, /Too many attempts/)
  assert.match(browser.page!.headers.get('retry-after') ?? '', /^\d+$/)
})

test('codes are set up, replaced and stopped, each after a code was right', async (t) => {
  const { manage, browser, other, account, at, store, anna } = await begun(t)
  await account('/codes')
  await browser.submit('sign-in', ANNA)
  await browser.submit('begin')
  const secretShown = () =>
    /<code>((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})</.exec(browser.page!.text)![1]!.replaceAll(' ', '')
  const secret = secretShown()
  assert.ok(
    browser.page!.text.includes(`href="otpauth://totp/Gatehouse:anna%40example.com?secret=${secret}&amp;`),
  )
  const code = (of = secret) => codeAt(of, Math.floor(at() / 30_000))
  await browser.submit('confirm', { code: code() === '000000' ? '111111' : '000000' })
  assert.equal(browser.page!.status, 400)
  assert.equal(secretShown(), secret)
  assert.equal((await store.users.byId(anna.id))?.hasCodes, false)
  // What is pending is of this page in this browser, and unchanged.
  const { page } = browser
  for (const pending of [
    '',
    'x',
    'v1.00000000.AAAA',
    `${/name="pending" value="([^"]*)"/.exec(page!.text)![1]}A`,
  ]) {
    await browser.submit('confirm', { pending, code: code() })
    assert.match(browser.page!.text, /That took too long/)
    browser.page = page
  }
  await other.open(`${manage.url}/account/codes`)
  await other.submit('sign-in', ANNA)
  await other.submit('confirm', {
    pending: /name="pending" value="([^"]*)"/.exec(page!.text)![1]!,
    code: code(),
  })
  assert.match(other.page!.text, /That took too long/)
  assert.equal((await store.users.byId(anna.id))?.hasCodes, false)

  const used = code()
  await browser.submit('confirm', { code: ` ${used.slice(0, 3)} ${used.slice(3)}` })
  assert.match(browser.page!.text, /<h1>One-time codes are on/)
  const recovery = [...browser.page!.text.matchAll(/<li><code>([a-z2-7-]{19})</g)].map(([, text]) => text!)
  assert.equal(recovery.length, 10)
  await account()
  assert.match(browser.page!.text, /Recovery codes left: 10\./)
  assert.ok(!recovery.some((each) => browser.page!.text.includes(each)))
  // The one that it was confirmed with opens nothing.
  const fresh = new FormBrowser(manage.url)
  await fresh.open(`${manage.url}/account`)
  for (const [given, status] of [
    ['', 403],
    [used, 403],
    [recovery[0]!, 200],
  ] as const) {
    await fresh.submit('sign-in', { ...ANNA, code: given })
    assert.equal(fresh.page!.status, status, given)
  }
  await account('/codes')
  await browser.submit('begin')
  const second = secretShown()
  at(30_000)
  await browser.submit('confirm', { code: code(second) })
  assert.match(browser.page!.text, /<h1>One-time codes are on/)
  at(30_000)
  await fresh.open(`${manage.url}/oauth/sign-out`)
  await fresh.submit('sign-out')
  await fresh.open(`${manage.url}/account`)
  for (const [given, status] of [
    [recovery[1]!, 403],
    [code(), 403],
    [code(second), 200],
  ] as const) {
    await fresh.submit('sign-in', { ...ANNA, code: given })
    assert.equal(fresh.page!.status, status, given)
  }
  await account('/codes')
  await browser.submit('stop')
  assert.equal((await store.users.byId(anna.id))?.hasCodes, false)
  const { body } = await manage.ask('GET', '/v1/audit?limit=200')
  const actions = body.audit.map(({ action }: { action: string }) => action)
  assert.equal(actions.filter((action: string) => action === 'startOneTimeCodes').length, 2)
  assert.equal(actions.filter((action: string) => action === 'stopOneTimeCodes').length, 1)
  const all = JSON.stringify(body) + manage.said.join('')
  for (const word of [secret, second, ...recovery]) assert.ok(!all.includes(word))
  assert.deepEqual(manage.failures, [])
})

test('what somebody signs in with is changed only a moment after they have shown who they are', async (t) => {
  const { browser, account, at } = await begun(t)
  await account('/password')
  await browser.submit('sign-in', ANNA)
  at(540_000)
  await account('/codes')
  assert.match(browser.page!.text, /<h1>One-time codes/)
  const { page } = browser
  at(61_000)
  for (const path of ['/codes', '/password']) {
    await account(path)
    assert.match(browser.page!.text, /<h1>Sign in<\/h1>\s*<p>Your sign-in is too old for this change/)
    assert.match(browser.page!.text, /value="anna@example\.com"/)
  }
  // A page that is open still does nothing, either.
  browser.page = page
  await browser.submit('begin')
  assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
  await account()
  assert.match(browser.page!.text, /<h1>Your account/)
  await account('/codes')
  await browser.submit('sign-in', ANNA)
  assert.match(browser.page!.text, /<h1>One-time codes/)
})

for (const kind of KINDS)
  test(`${kind}: who signs out everywhere is out of every browser and every client, in every process`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const encryptionKey = new Secret('x'.repeat(43))
    const { manage, browser, other, account } = await begun(t, { storeUrl, encryptionKeys: [encryptionKey] })
    const more = { storeUrl, encryptionKeys: [encryptionKey], publicUrl: manage.url, admin: null }
    const second = await TestManagement.start(t, more)
    await account()
    await browser.submit('sign-in', ANNA)
    await other.open(`${manage.url}/account`)
    await other.submit('sign-in', { ...ANNA, stay: 'yes' })
    const app = await client(manage, 'app')
    await other.open(await codeUrl(manage, app, 'read offline_access'))
    await other.submit('allow')
    const { access_token } = await tokensFor(manage, app, other.away!)
    const bearer = { authorization: `Bearer ${access_token}` }
    assert.equal((await second.ask('GET', '/v1/agents', undefined, bearer)).status, 200)
    await browser.submit('sign-out-everywhere')
    assert.match(browser.page!.text, /<h1>Signed out everywhere/)
    assert.ok(!browser.cookies.some(({ name }) => name === 'gatehouse_session'))
    await until(async () => (await second.ask('GET', '/v1/agents', undefined, bearer)).status === 401, 1_000)
    for (const each of [browser, other]) {
      await each.open(`${manage.url}/account`)
      assert.match(each.page!.text, /<h1>Sign in/)
    }
    assert.equal((await manage.ask('GET', '/v1/audit?action=signOutEverywhere')).body.total, 1)
  })

test('a form of an account comes from its own page, in its own browser', async (t) => {
  const { manage, browser, other, account } = await begun(t)
  await account()
  await browser.submit('sign-in', ANNA)
  const token = /name="token" value="([^"]*)"/.exec(browser.page!.text)![1]!
  const { page } = browser
  await other.open(`${manage.url}/account`)
  const foreign = /name="token" value="([^"]*)"/.exec(other.page!.text)![1]!
  for (const [fields, headers] of [
    [{ token: null }, {}],
    [{ token: foreign }, {}],
    [{}, { 'sec-fetch-site': 'cross-site' }],
    [{}, { 'sec-fetch-site': 'same-site' }],
  ] as const) {
    await browser.submit('sign-out-everywhere', fields, headers as Record<string, string>)
    assert.equal(browser.page!.status, 403)
    browser.page = page
  }
  // A token of one page is none of another.
  await account('/password')
  await browser.submit('change', { token, current: ANNA.password, new: OTHER, again: OTHER })
  assert.equal(browser.page!.status, 403)
  await account()
  assert.match(browser.page!.text, /<h1>Your account/)
})

test('a page of an account lets nothing in, and there are no others', async (t) => {
  const { manage, browser, account } = await begun(t)
  await account()
  await browser.submit('sign-in', ANNA)
  for (const path of ['', '/password', '/codes', '/nothing', '/password/x', '?x=<script>']) {
    await account(path)
    const { headers, text, status } = browser.page!
    assert.equal(status, /nothing|x$/.test(path) ? 404 : 200, path)
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    )
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.doesNotMatch(text, /<script|style=|\son\w+=|javascript:/i)
    for (const [, id] of text.matchAll(/<input id="(\w+)"/g))
      assert.match(text, new RegExp(`<label for="${id}"`))
  }
  assert.equal((await fetch(`${manage.url}/account`, { method: 'DELETE' })).status, 405)
  assert.equal((await manage.ask('GET', '/accounts')).status, 404)
})

test('behind https the session is bound to this host and to https, and lasts if somebody wants it to', async (t) => {
  const publicUrl = 'https://gate.example'
  const { manage } = await begun(t, { publicUrl })
  for (const [stay, lasts] of [
    [null, false],
    ['yes', true],
  ] as const) {
    const browser = new FormBrowser(manage.url, publicUrl)
    await browser.open(`${publicUrl}/account`, { host: 'evil.example' })
    await browser.submit('sign-in', { ...ANNA, stay })
    assert.equal(browser.page!.url.href, `${publicUrl}/account`)
    const { line } = browser.cookies.find(({ name }) => name === '__Host-gatehouse_session')!
    assert.equal(/expires=/i.test(line), lasts, line)
  }
})

test('who signs in gets a new session: one that was there before is worth nothing', async (t) => {
  const { manage, browser, other, account, at } = await begun(t)
  await account('/codes')
  await browser.submit('sign-in', ANNA)
  other.takeCookies(browser)
  at(601_000)
  await account('/codes')
  await browser.submit('sign-in', ANNA)
  assert.match(browser.page!.text, /<h1>One-time codes/)
  await other.open(`${manage.url}/account`)
  assert.match(other.page!.text, /<h1>Sign in/)
})

test('who has no password is offered none, and who is disabled is not there', async (t) => {
  const { manage, browser, account, anna, store } = await begun(t)
  await account('/password')
  await browser.submit('sign-in', ANNA)
  await store.transaction((queries) => store.users.setPassword(anna.id, null, 0, queries))
  await account('/password')
  assert.equal(browser.page!.status, 403)
  assert.match(browser.page!.text, /You have no password/)
  await account()
  assert.ok(!browser.page!.text.includes('/account/password'))
  assert.equal((await manage.ask('PATCH', `/v1/users/${anna.id}`, { disabled: true })).status, 200)
  await account()
  assert.match(browser.page!.text, /<h1>Sign in/)
})

test('with codes a password alone shows nobody who they are', async (t) => {
  const { manage, browser, account, anna, store } = await begun(t)
  await startCodes(
    { store, sealer: new Sealer([], `${manage.folder}/store.key`) },
    anna,
    COMMAND_LINE,
    Date.now(),
  )
  await account('/password')
  await browser.submit('sign-in', ANNA)
  assert.equal(browser.page!.status, 403)
})

async function begun(t: Test, options: TestOptions = {}) {
  const storeUrl = options.storeUrl ?? (await freshUrl('sqlite', t))
  let aheadMs = 0
  const nowMs = () => Date.now() + aheadMs
  const manage = await TestManagement.start(t, { ...options, storeUrl, nowMs })
  const { body } = await manage.ask('POST', '/v1/users', { ...ANNA, scopes: ['read', 'detect'] })
  const store = await openAt(t, storeUrl)
  const browser = new FormBrowser(manage.url)
  return {
    ...{ manage, store, browser, other: new FormBrowser(manage.url) },
    anna: (await store.users.byId(body.id))!,
    account: (path = '') => browser.open(`${manage.url}/account${path}`),
    /** What time it is, so much later than before. */
    at: (moreMs = 0) => {
      aheadMs += moreMs
      return nowMs()
    },
  }
}

function client(manage: TestManagement, name: string) {
  return clientFor(manage, {
    ...{ name, grant_types: ['authorization_code'], redirect_uris: [CALLBACK] },
    scopes: ['read', 'detect'],
  })
}

const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
const OTHER = 'another phrase of words'
