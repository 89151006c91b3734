import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { type Test, test } from 'tap'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { Authenticator, type Lies } from './authenticator.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement, type TestOptions } from './management.ts'

const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }

for (const kind of KINDS)
  test(`${kind}: a passkey is made, opens without password and code, is shown and removed`, async (t) => {
    const { manage, browser, made, signIn, anna, url } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const [phone, laptop] = [await made('my <b>phone</b>'), await made('laptop')]
    assert.match(browser.page!.text, /<bdi>my &lt;b&gt;phone&lt;\/b&gt;<\/bdi>[\s\S]*never used[\s\S]*laptop/)
    for (const authenticator of [phone, laptop]) {
      const { page } = await signIn(authenticator)
      assert.match(page!.text, /<h1>Your account<\/h1>[\s\S]*You have 2 passkeys\./)
      // It is as good as both: what is sensitive opens, too.
      await browser.open(`${url}/account/passkeys`)
      assert.match(browser.page!.text, /<h1>Passkeys/)
    }
    assert.match(browser.page!.text, /last used on \d{4}-\d\d-\d\d/)
    await browser.submit('remove', { passkey: phone.id })
    assert.ok(!browser.page!.text.includes('phone'))
    assert.equal((await signIn(phone)).page!.status, 403)
    assert.equal((await signIn(laptop)).page!.status, 200)
    const { body } = await manage.ask('GET', '/v1/audit?limit=200')
    const entries = body.audit as { action: string; principal: string; detail: { passkey?: string } }[]
    const of = (action: string) => entries.filter((each) => each.action === action)
    assert.deepEqual([of('addPasskey').length, of('removePasskey').length], [2, 1])
    assert.ok([...of('addPasskey'), ...of('removePasskey')].every(({ principal }) => principal === anna))
    assert.equal(of('signIn').filter(({ detail }) => detail.passkey === laptop.id).length, 2)
    // An administrator removes all of somebody's.
    assert.equal((await manage.ask('PATCH', `/v1/users/${anna}`, { passkeys: false })).status, 200)
    assert.equal((await signIn(laptop)).page!.status, 403)
    assert.deepEqual(manage.failures, [])
  })

test('what an authenticator says wrongly opens nothing', async (t) => {
  const { made, signIn, ben, store } = await begun(t)
  const key = await made('key')
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const wrong: readonly Lies[] = [
    { origin: 'https://evil.example' },
    { origin: 'http://localhost' },
    { rpId: 'evil.example' },
    { type: 'webauthn.create' },
    { challenge: 'AAAA' },
    { userHandle: Buffer.from(ben).toString('base64url') },
    { flags: 1 }, // not unlocked
    { flags: 4 }, // nobody there
    { key: privateKey },
    { id: 'AAAA' },
  ]
  for (const lies of wrong) {
    const { page } = await signIn(key, lies)
    assert.equal(page!.status, 403, JSON.stringify(lies))
    assert.match(page!.text, /role="alert">The passkey was not accepted/)
  }
  assert.equal((await store.passkeys.byId(key.id))?.usedAtMs, null)
  assert.equal((await signIn(key)).page!.status, 200)
})

test('what cannot be read, or is huge, opens nothing and breaks nothing', async (t) => {
  const { manage, made, fresh, url } = await begun(t)
  const key = await made('key')
  const said = async (response: string, more = {}) => {
    const browser = await fresh()
    await browser.open(`${url}/account`)
    await browser.submit('passkey', { response, ...more })
    return browser.page!.status
  }
  const good = JSON.parse(key.use({ challenge: 'AAAA', rpId: 'localhost' }))
  for (const response of [
    '',
    'null',
    '[]',
    '{}',
    '{"id":',
    JSON.stringify({ ...good, rawId: 'BBBB' }),
    JSON.stringify({ ...good, type: 'password' }),
    JSON.stringify({ ...good, response: { ...good.response, clientDataJSON: 'AAAA' } }),
    JSON.stringify({ ...good, response: { ...good.response, authenticatorData: 'AAAA' } }),
    JSON.stringify({ ...good, response: { ...good.response, userHandle: null } }),
    JSON.stringify({ ...good, id: 'A'.repeat(2_000), rawId: 'A'.repeat(2_000) }),
    JSON.stringify({ ...good, __proto__: { polluted: true } }),
  ])
    assert.equal(await said(response), 403, response.slice(0, 60))
  for (const ceremony of ['', 'v1.x.y', 'x'.repeat(1_000)]) assert.equal(await said('{}', { ceremony }), 403)
  assert.equal(await said('x'.repeat(40_000)), 413)
  assert.deepEqual(manage.failures, [])
})

test('a challenge is for one page in one browser, once, and for five minutes', async (t) => {
  const { made, fresh, url, clock } = await begun(t)
  const key = await made('key')
  const [one, other] = [await fresh(), await fresh()]
  for (const each of [one, other]) await each.open(`${url}/account`)
  const response = key.use(optionsIn(one))
  const sealed = ceremonyIn(one)
  const opened = await (async () => {
    const { page } = one
    // In another browser, with or without what is hidden on its page.
    await other.submit('passkey', { response })
    assert.equal(other.page!.status, 403)
    await other.submit('passkey', { response, ceremony: sealed })
    assert.equal(other.page!.status, 403)
    await one.submit('passkey', { response })
    return page
  })()
  assert.match(one.page!.text, /<h1>Your account/)
  // Once more, as the same browser.
  await one.open(`${url}/oauth/sign-out`)
  await one.submit('sign-out')
  one.page = opened
  await one.submit('passkey', { response })
  assert.equal(one.page!.status, 403)
  // That to make one is none to use one.
  await one.open(`${url}/account/passkeys`)
  await one.submit('sign-in', ANNA)
  const making = ceremonyIn(one)
  const { challenge } = optionsIn(one)
  await one.open(`${url}/oauth/sign-out`)
  await one.submit('sign-out')
  await one.open(`${url}/account/passkeys`)
  await one.submit('passkey', { response: key.use({ challenge, rpId: 'localhost' }), ceremony: making })
  assert.equal(one.page!.status, 403)
  await one.open(`${url}/account`)
  const late = key.use(optionsIn(one))
  clock.aheadMs = 300_000
  await one.submit('passkey', { response: late })
  assert.equal(one.page!.status, 403)
  // The page that says so has a new one.
  await one.submit('passkey', { response: key.use(optionsIn(one)) })
  assert.match(one.page!.text, /<h1>Your account/)
})

for (const kind of KINDS)
  test(`${kind}: one that counts and was copied is found out, and of two at once one is in`, async (t) => {
    const { manage, made, signIn, fresh, url, store } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const key = await made('key')
    key.counter = 5
    assert.equal((await signIn(key)).page!.status, 200)
    for (const counter of [5, 4, 0]) assert.equal((await signIn(key, { counter })).page!.status, 403)
    assert.equal((await store.passkeys.byId(key.id))?.counter, 5)
    const { body } = await manage.ask('GET', '/v1/audit?action=suspectPasskey')
    assert.deepEqual([body.total, body.audit[0].detail], [3, { passkey: key.id }])
    key.counter = 6
    const browsers = await Promise.all([fresh(), fresh(), fresh()])
    for (const each of browsers) await each.open(`${url}/account`)
    await Promise.all(browsers.map((each) => each.submit('passkey', { response: key.use(optionsIn(each)) })))
    assert.deepEqual(browsers.map(({ page }) => page!.status).sort(), [200, 403, 403])
  })

test('what is no new passkey of this person is not taken', async (t) => {
  const { manage, browser, made, signed, url, store, anna } = await begun(t)
  const key = await made('key')
  const add = async (authenticator: Authenticator, lies: Lies = {}, fields = {}) => {
    await browser.open(`${url}/account/passkeys`)
    await browser.submit('add', {
      name: 'x',
      response: authenticator.make(optionsIn(browser), lies),
      ...fields,
    })
    return browser.page!.status
  }
  const another = new Authenticator(url)
  for (const lies of [
    { origin: 'https://evil.example' },
    { rpId: 'evil.example' },
    { type: 'webauthn.get' },
    { challenge: 'AAAA' },
    { flags: 65 },
    { flags: 68 },
    { flags: 5 },
    { id: key.id }, // is there
    { format: 'fido-u2f' },
    { format: 'tpm' },
    { format: 'nonsense' },
    { statement: new Map([['x', 1]]) },
    // A certificate could name an address that is then asked whether it is revoked.
    { format: 'packed', statement: new Map<string, unknown>([['x5c', [Buffer.from('x')]]]) },
  ] satisfies readonly Lies[]) {
    assert.equal(await add(another, lies), 400, JSON.stringify(lies))
    assert.match(browser.page!.text, /role="alert">The passkey was not accepted/)
  }
  for (const name of ['', ' ', 'x'.repeat(61), 'a\u0000b'])
    assert.equal(await add(another, {}, { name }), 400)
  assert.equal((await store.passkeys.ofUser(anna)).length, 1)
  // Somebody else cannot remove it, nor make one of the same id their own.
  await signed('ben@example.com')
  await browser.open(`${url}/account/passkeys`)
  await browser.submit('remove', { passkey: key.id })
  assert.equal(await add(new Authenticator(url), { id: key.id }), 400)
  assert.equal((await store.passkeys.byId(key.id))?.userId, anna)
  for (let count = 0; count < 20; count++) assert.equal(await add(new Authenticator(url)), 200)
  assert.equal(await add(new Authenticator(url)), 409)
  assert.deepEqual(manage.failures, [])
})

test('who is disabled is not let in by a passkey, and who is deleted has none', async (t) => {
  const { manage, made, signIn, anna, store } = await begun(t)
  const key = await made('key')
  await manage.ask('PATCH', `/v1/users/${anna}`, { disabled: true })
  assert.equal((await signIn(key)).page!.status, 403)
  await manage.ask('DELETE', `/v1/users/${anna}`)
  assert.equal(await store.passkeys.byId(key.id), null)
})

test('where browsers have none, none are offered; else the page has one script, its own', async (t) => {
  const plain = await TestManagement.start(t)
  const page = async (url: string) => {
    const response = await fetch(url)
    return { text: await response.text(), policy: response.headers.get('content-security-policy') ?? '' }
  }
  const none = await page(`${plain.url}/account`)
  assert.ok(!none.text.includes('<script') && !none.policy.includes('script'))
  const https = await TestManagement.start(t, { publicUrl: 'https://gate.example' })
  const { text, policy } = await page(`${https.url}/account`)
  assert.ok(policy.includes("; script-src https://gate.example/docs/passkey.js; form-action 'self'"))
  assert.deepEqual(
    [...text.matchAll(/<script[^>]*>/g)].map(([tag]) => tag),
    ['<script src="https://gate.example/docs/passkey.js" defer>'],
  )
  assert.match(text, /<form method="post" data-passkey="use"[^>]* hidden>/)
  const options = JSON.parse(/data-options="([^"]*)"/.exec(text)![1]!.replaceAll('&quot;', '"'))
  // Of the Host header nothing.
  assert.deepEqual([options.rpId, options.userVerification], ['gate.example', 'required'])
  const script = await fetch(`${https.url}/docs/passkey.js`)
  assert.match(script.headers.get('content-type') ?? '', /^text\/javascript/)
  assert.equal(script.headers.get('x-content-type-options'), 'nosniff')
})

async function begun(t: Test, options: TestOptions = {}) {
  const storeUrl = options.storeUrl ?? (await freshUrl('sqlite', t))
  const clock = { aheadMs: 0 }
  const url = 'http://localhost:9080' // what it calls itself; the browser of the test is led to where it is
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, { ...options, storeUrl, nowMs, publicUrl: url })
  const user = async (email: string) =>
    (await manage.ask('POST', '/v1/users', { ...ANNA, email, scopes: ['read'] })).body.id as string
  const [anna, ben] = [await user(ANNA.email), await user('ben@example.com')]
  const fresh = async () => new FormBrowser(manage.url, url)
  const browser = await fresh()
  const signed = async (email = ANNA.email) => {
    await browser.open(`${url}/oauth/sign-out`)
    if (browser.page!.text.includes('value="sign-out"')) await browser.submit('sign-out')
    await browser.open(`${url}/account`)
    await browser.submit('sign-in', { ...ANNA, email })
  }
  await signed()
  return {
    ...{ manage, browser, anna, ben, fresh, signed, url, clock, store: await openAt(t, storeUrl) },
    made: async (name: string) => {
      const authenticator = new Authenticator(url)
      await browser.open(`${url}/account/passkeys`)
      await browser.submit('add', { name, response: authenticator.make(optionsIn(browser)) })
      assert.equal(browser.page!.status, 200, browser.page!.text)
      return authenticator
    },
    /** In a browser in which nobody was before. */
    signIn: async (authenticator: Authenticator, lies: Lies = {}) => {
      const other = await fresh()
      await other.open(`${url}/account`)
      return other.submit('passkey', { response: authenticator.use(optionsIn(other), lies) })
    },
  }
}

/** What the browser is asked by the page. */
function optionsIn({ page }: FormBrowser) {
  return JSON.parse(/data-options="([^"]*)"/.exec(page!.text)![1]!.replaceAll('&quot;', '"'))
}

function ceremonyIn({ page }: FormBrowser): string {
  return /name="ceremony" value="([^"]*)"/.exec(page!.text)![1]!
}
