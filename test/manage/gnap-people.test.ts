import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { newSigner } from '../identity/signer.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { GnapClient } from './gnap-client.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { until } from '../until.ts'

const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
/** There are none to detect by: whoever may is told so. */
const NO_SIGNATURES = 503
const OTHER = 'another phrase of words'

for (const kind of KINDS)
  test(`${kind}: somebody approves a part of what a program asks for, and it is theirs`, async (t) => {
    const { manage, browser, ask, anna } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const { client, body } = await ask(['read', 'detect', 'write', 'admin'])
    await browser.open(body.interact.redirect)
    const decideUrl = /<a href="([^"]*)">sign in and decide/.exec(browser.page!.text)![1]!
    await browser.open(decideUrl)
    assert.match(
      browser.page!.text,
      /<h1>Sign in<\/h1>\s*<p>A program that claims to be <b>“<bdi>A &lt;b&gt;robot/,
    )
    await browser.submit('sign-in', ANNA)
    const { text } = browser.page!
    assert.match(text, /Its key is unknown/)
    assert.ok(text.includes(client.thumbprint))
    assert.deepEqual(scopesShown(text), ['read', 'detect'])
    assert.match(text, /permissions that you cannot grant: <code>write<\/code> <code>admin<\/code>/)
    assert.match(text, /take you to <b>client\.example<\/b>/)
    await browser.submit('allow', { scope: ['read', 'write', 'admin'] })
    assert.equal(browser.away?.origin, 'https://client.example')
    const reference = browser.away!.searchParams.get('interact_ref')!
    const granted = await client.continue(body.continue, reference)
    assert.deepEqual(granted.body.access_token?.access, [{ type: 'service-api', actions: ['read'] }])
    assert.equal((await client.ask('GET', '/v1/agents', granted.body.access_token)).status, 200)

    const { body: audit } = await manage.ask('GET', '/v1/audit?action=decideGrant')
    assert.deepEqual([audit.total, audit.audit[0].principal], [1, anna])
    assert.deepEqual(audit.audit[0].detail.scopes, ['read'])
    const { body: listed } = await manage.ask('GET', '/v1/grants?state=finished')
    assert.deepEqual([listed.grants[0].decided_by, listed.grants[0].scopes], [anna, ['read']])

    // They see it, and take it back.
    await browser.open(`${manage.url}/account`)
    assert.match(browser.page!.text, /Program with a key: <code>gnk_/)
    await browser.submit('take-back')
    assert.match(browser.page!.text, /No program has access/)
    assert.equal((await client.ask('GET', '/v1/agents', granted.body.access_token)).status, 401)
    const renewed = await client.rotate(granted.body.access_token)
    assert.deepEqual([renewed.status, renewed.body.error.code], [400, 'invalid_rotation'])
    assert.deepEqual(manage.failures, [])
  })

for (const [kind, how, method, change] of [
  ['sqlite', 'deleted', 'DELETE', undefined],
  ['sqlite', 'disabled', 'PATCH', { disabled: true }],
  ['postgres', 'disabled', 'PATCH', { disabled: true }],
  ['sqlite', 'given another password', 'PATCH', { password: OTHER }],
] as const)
  test(`${kind}: what somebody has approved who is ${how} is over within a second, in another process too`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const { manage, approved, anna } = await begun(t, { storeUrl })
    const one = await approved(['read'])
    const late = await approved(['read'], false)
    const second = await TestManagement.start(t, { storeUrl, publicUrl: manage.url, admin: null })
    const { token } = one
    const ask = () => fetchSigned(one.client, second.url, token)
    assert.equal(await ask(), 200)
    await manage.ask(method, `/v1/users/${anna}`, change)
    await until(async () => (await ask()) === 401, 1_000)
    assert.equal((await one.client.rotate(token)).body.error.code, 'invalid_rotation')
    // What was approved and not fetched is not fetched any more.
    const refused = await late.client.continue(late.next, late.reference)
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'user_denied'])
    // And does not come back.
    await manage.ask('PATCH', `/v1/users/${anna}`, { disabled: false })
    await wait(600)
    assert.equal(await ask(), 401)
    assert.deepEqual(manage.failures, [])
  })

test('of what somebody may not do any more, what they have approved may not, either', async (t) => {
  const { manage, approved, anna } = await begun(t)
  const { client, token } = await approved(['read', 'detect'])
  const detect = async () => (await client.ask('POST', '/v1/detect', token, { user_agent: 'x' })).status
  const read = async () => (await client.ask('GET', '/v1/agents', token)).status
  assert.deepEqual([await detect(), await read()], [NO_SIGNATURES, 200])
  const scopes = (list: readonly string[]) => manage.ask('PATCH', `/v1/users/${anna}`, { scopes: list })
  assert.equal((await scopes(['read', 'write'])).status, 200)
  await until(async () => (await detect()) === 403, 1_000)
  assert.equal(await read(), 200)
  assert.equal((await scopes(['admin'])).status, 200)
  // An admin may do everything; the token no more than what was approved.
  await until(async () => (await detect()) === NO_SIGNATURES, 1_000)
  assert.equal(await read(), 200)
  assert.equal((await client.ask('GET', '/v1/keys', token)).status, 403)
})

test('nobody gives administration away on a page, and who may give nothing can only deny', async (t) => {
  const { manage, browser, ask, clock } = await begun(t, {}, ['admin'])
  const first = await ask(['admin', 'write'])
  await browser.open(decideUrl(manage, first.body))
  await browser.submit('sign-in', ANNA)
  assert.deepEqual(scopesShown(browser.page!.text), ['write'])
  const second = await ask(['admin'])
  await browser.open(decideUrl(manage, second.body))
  assert.deepEqual(scopesShown(browser.page!.text), [])
  await browser.submit('allow', { scope: ['admin'] })
  assert.equal(browser.page!.status, 400)
  await browser.submit('deny')
  assert.equal(browser.away?.origin, 'https://client.example')
  clock.aheadMs = 5_000
  const denied = await second.client.continue(second.body.continue)
  assert.deepEqual([denied.status, denied.body.error.code], [403, 'user_denied'])
  const { body } = await manage.ask('GET', '/v1/grants?state=denied')
  assert.equal(body.total, 0) // the client has been told
})

test('a decision comes from its page in its browser, and is made once', async (t) => {
  const { manage, browser, ask } = await begun(t)
  const [one, other] = [await ask(['read']), await ask(['read'])]
  await browser.open(decideUrl(manage, one.body))
  // Who is not signed in decides nothing.
  await browser.submit('allow', { scope: 'read' })
  assert.match(browser.page!.text, /<h1>Sign in<\/h1>/)
  await browser.submit('sign-in', ANNA)
  const { page } = browser
  const token = /name="token" value="([^"]*)"/.exec(page!.text)![1]!
  for (const [fields, headers] of [
    [{ token: null }, {}],
    [{}, { 'sec-fetch-site': 'cross-site' }],
  ] as const) {
    await browser.submit('allow', fields, headers as Record<string, string>)
    assert.equal(browser.page!.status, 403)
    browser.page = page
  }
  await browser.open(decideUrl(manage, other.body))
  await browser.submit('allow', { token })
  assert.equal(browser.page!.status, 403)
  browser.page = page
  await manage.ask('POST', `/v1/grants/${one.body.continue.uri.split('/').at(-1)}/decide`, {
    decision: 'deny',
  })
  await browser.submit('allow')
  // Somebody was faster: the browser is sent back, and the answer is theirs.
  assert.equal(browser.away?.origin, 'https://client.example')
  const { body } = await manage.ask('GET', '/v1/grants?state=denied')
  assert.match(body.grants[0].decided_by, /^key_/)
  for (const path of ['/gnap/decide/gni_x', `/gnap/decide/${'x'.repeat(128)}`]) {
    await browser.open(manage.url + path)
    assert.equal(browser.page!.status, 404)
    assert.match(browser.page!.text, /This request has ended/)
  }
  assert.equal((await fetch(`${manage.url}/gnap/decide/gni_x`, { method: 'PUT' })).status, 405)
  assert.deepEqual(manage.failures, [])
})

test('the page lets nothing in; without people it offers no sign-in', async (t) => {
  const { manage, browser, ask } = await begun(t)
  const { body } = await ask(['read'])
  await browser.open(decideUrl(manage, body))
  await browser.submit('sign-in', ANNA)
  assert.equal(
    browser.page!.headers.get('content-security-policy'),
    "default-src 'none'; style-src 'self'; form-action 'self' https://client.example; base-uri 'none'; frame-ancestors 'none'",
  )
  assert.doesNotMatch(browser.page!.text, /<script|style=|\son\w+=|javascript:|<b>robot/i)
  const empty = await TestManagement.start(t)
  const client = new GnapClient(empty.url, newSigner())
  const waiting = await client.grant(['read'], asking(client.key))
  const page = await (await fetch(waiting.body.interact.redirect)).text()
  assert.match(page, /An administrator decides/)
  assert.ok(!page.includes('/gnap/decide/'))
})

async function begun(t: Test, options: TestOptions = {}, scopes: readonly string[] = ['read', 'detect']) {
  const clock = { aheadMs: 0 }
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, { ...options, nowMs })
  const { body: anna } = await manage.ask('POST', '/v1/users', { ...ANNA, scopes })
  const browser = new FormBrowser(manage.url)
  const ask = async (actions: readonly string[]) => {
    const client = new GnapClient(manage.url, newSigner(), nowMs)
    const { status, body } = await client.grant(actions, asking(client.key))
    assert.equal(status, 200, JSON.stringify(body))
    return { client, body }
  }
  const approved = async (actions: readonly string[], isFetched = true) => {
    const { client, body } = await ask(actions)
    await browser.open(decideUrl(manage, body))
    if (/<h1>Sign in</.test(browser.page!.text)) await browser.submit('sign-in', ANNA)
    await browser.submit('allow')
    const reference = browser.away!.searchParams.get('interact_ref')!
    const next = body.continue
    if (!isFetched) return { client, next, reference, token: null as never }
    const granted = await client.continue(next, reference)
    assert.equal(granted.status, 200, JSON.stringify(granted.body))
    return { client, next, reference, token: granted.body.access_token }
  }
  return { manage, browser, ask, approved, clock, anna: anna.id as string }
}

function asking(key: unknown) {
  const display = { name: 'A <b>robot</b>', uri: 'https://client.example/' }
  const finish = { method: 'redirect', uri: 'https://client.example/back', nonce: 'n' }
  return { client: { key, display }, interact: { start: ['redirect'], finish } }
}

// biome-ignore lint/suspicious/noExplicitAny: what was answered
function decideUrl(manage: TestManagement, body: any): string {
  return `${manage.url}/gnap/decide/${body.interact.redirect.split('/').at(-1)}`
}

/** At another process, which goes by the same address. */
async function fetchSigned(client: GnapClient, url: string, token: { value: string }): Promise<number> {
  const there = new GnapClient(url, client.signer, client.nowMs)
  return (await there.ask('GET', '/v1/agents', token, undefined, { url: `${client.url}/v1/agents` })).status
}

function scopesShown(text: string): readonly string[] {
  return [...text.matchAll(/name="scope" value="(\w+)" checked/g)].map(([, scope]) => scope!)
}
