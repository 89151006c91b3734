import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { setPassword } from '../../src/manage/auth/people/make-user.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { Authenticator } from './authenticator.ts'
import { SignInThrottle } from '../../src/manage/auth/people/sign-in-throttle.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement, type TestOptions } from './management.ts'
import { quickHasher } from './quick-hasher.ts'

const ANNA = { email: 'anna@example.com', password: 'a phrase of some words' }
const BEN = { ...ANNA, email: 'ben@example.com' }
const DAY_MS = 86_400_000

for (const kind of KINDS)
  test(`${kind}: guesses from everywhere lock an account for strangers, and not for its owner's browser`, async (t) => {
    const { signIn, lockAnna, browser, manage } = await begun(t, { storeUrl: await freshUrl(kind, t) })
    const own = browser()
    assert.equal(await signIn(own, ANNA), 200)
    await lockAnna()
    assert.equal(await signIn(browser(), ANNA), 429)
    assert.equal(await signIn(own, { ...ANNA, password: 'wrong' }), 403)
    assert.equal(await signIn(own, ANNA), 200)
    // Its cookie is for this account only.
    assert.equal(await signIn(own, BEN), 200)
    assert.deepEqual(manage.failures, [])
  })

test('a passkey opens a throttled account, also from a network that has used up every limit', async (t) => {
  const { signIn, lockAnna, browser, manage, url } = await begun(t)
  const own = browser()
  await signIn(own, ANNA)
  await own.open(`${url}/account/passkeys`)
  const authenticator = new Authenticator(url)
  await own.submit('add', { name: 'key', response: authenticator.make(optionsIn(own)) })
  await lockAnna()
  const other = browser()
  await other.open(`${url}/account`)
  for (let time = 0; time < 35; time++) {
    await other.submit('passkey', { response: '{}' }, { 'x-forwarded-for': '203.0.113.1' })
    assert.equal(other.page!.status, time < 30 ? 403 : 429)
  }
  await other.submit(
    'passkey',
    { response: authenticator.use(optionsIn(other)) },
    { 'x-forwarded-for': '203.0.113.1' },
  )
  assert.equal(other.page!.status, 200, other.page!.text)
  const { body } = await manage.ask('GET', '/v1/audit?action=throttleSignIn')
  assert.deepEqual([body.total, body.audit[0].address], [1, '203.0.113.1'])
})

test('a device cookie that is forged, cut, or of another account makes no device known', async (t) => {
  const { signIn, lockAnna, browser, url } = await begun(t)
  const ben = browser()
  await signIn(ben, BEN)
  const anna = browser()
  await signIn(anna, ANNA)
  await lockAnna()
  const good = deviceCookie(anna)
  const withCookie = async (value: string) => {
    const stranger = browser()
    await stranger.open(`${url}/account`)
    stranger.putCookie(NAME, value)
    await stranger.submit('sign-in', ANNA)
    return stranger.page!.status
  }
  const [form, key, text] = good.split('.')
  for (const value of [
    deviceCookie(ben),
    'x',
    '~~~~~~~~~~',
    good.slice(0, -4),
    `${form}.${key}.${Buffer.from('{"user":"usr_1"}').toString('base64url')}`,
    `v2.${key}.${text}`,
    `${form}.00000000.${text}`,
    'v1.x.'.repeat(1_000).slice(0, 4_000),
  ])
    assert.equal(await withCookie(value), 429, value.slice(0, 60))
  assert.equal(await withCookie(good), 200)
})

test('a device is forgotten when the password changes elsewhere, with a sign-out everywhere, and in time', async (t) => {
  const { signIn, lockAnna, browser, store, anna, clock, url } = await begun(t)
  const [own, kept] = [browser(), browser()]
  await signIn(own, ANNA)
  const other = { ...ANNA, password: 'a phrase of other words' }
  clock.aheadMs += 2_000
  await setPassword(
    { store, hasher: quickHasher() },
    anna,
    other.password,
    COMMAND_LINE,
    Date.now() + clock.aheadMs,
  )
  await lockAnna()
  assert.equal(await signIn(own, other), 429)
  clock.aheadMs += 600_000
  assert.equal(await signIn(own, other), 200)
  await lockAnna()
  assert.equal(await signIn(own, other), 200)
  clock.aheadMs += 600_000
  // The browser in which it is changed stays known.
  await signIn(kept, other)
  await kept.open(`${url}/account/password`)
  await kept.submit('change', { current: other.password, new: ANNA.password, again: ANNA.password })
  assert.match(kept.page!.text, /Password changed/)
  await lockAnna()
  assert.deepEqual([await signIn(kept, ANNA), await signIn(own, ANNA)], [200, 429])
  clock.aheadMs += 600_000
  await kept.open(`${url}/account`)
  await kept.submit('sign-out-everywhere')
  await lockAnna()
  assert.equal(await signIn(kept, ANNA), 429)
  clock.aheadMs += 600_000
  assert.equal(await signIn(kept, ANNA), 200)
  clock.aheadMs += 181 * DAY_MS
  await lockAnna()
  assert.equal(await signIn(kept, ANNA), 429)
})

test('a browser that six people sign in with knows the last five, in a cookie of a bounded size', async (t) => {
  const { signIn, lockAnna, browser, manage } = await begun(t)
  const shared = browser()
  await signIn(shared, ANNA)
  for (let number = 0; number < 5; number++) {
    const person = { ...ANNA, email: `person${number}@example.com` }
    await manage.ask('POST', '/v1/users', { ...person, scopes: ['read'] })
    assert.equal(await signIn(shared, person), 200)
    assert.equal(deviceCookie(shared).split('~').length, Math.min(5, number + 2))
  }
  assert.ok(deviceCookie(shared).length < 2_000)
  await lockAnna()
  assert.equal(await signIn(shared, ANNA), 429)
})

async function begun(t: Test, options: TestOptions = {}) {
  const storeUrl = options.storeUrl ?? (await freshUrl('sqlite', t))
  const clock = { aheadMs: 0 }
  const url = 'http://localhost:9080' // what it calls itself; the browser of the test is led to where it is
  const nowMs = () => Date.now() + clock.aheadMs
  const manage = await TestManagement.start(t, {
    ...{ ...options, storeUrl, nowMs, publicUrl: url },
    front: { trustedProxies: ['127.0.0.0/8'] },
  })
  const store = await openAt(t, storeUrl)
  const user = async (email: string) =>
    (await manage.ask('POST', '/v1/users', { ...ANNA, email, scopes: ['read'] })).body.id as string
  const anna = (await store.users.byId(await user(ANNA.email)))!
  await user(BEN.email)
  const browser = () => new FormBrowser(manage.url, url)
  const signIn = async (its: FormBrowser, person: typeof ANNA, address = '198.51.100.1') => {
    const headers = { 'x-forwarded-for': address }
    await its.open(`${url}/oauth/sign-out`)
    if (its.page!.text.includes('value="sign-out"')) await its.submit('sign-out')
    await its.open(`${url}/account`)
    await its.submit('sign-in', person, headers)
    return its.page!.status
  }
  return {
    ...{ manage, store, anna, browser, signIn, url, clock },
    /** Guesses come from as many networks as it takes. */
    lockAnna: async () => {
      const throttle = new SignInThrottle(store.rateLimits, nowMs)
      const guess = (network: number) =>
        throttle.begin({ account: ANNA.email, address: `203.0.113.${network}`, device: null })
      for (let time = 0; time < 100; time++) await guess(Math.floor(time / 10))
      assert.equal((await guess(99)).kind, 'throttled')
    },
  }
}

const NAME = 'gatehouse_device'

function deviceCookie(browser: FormBrowser): string {
  const cookie = browser.cookies.find(({ name }) => name === NAME)!
  assert.match(cookie.line, /; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Lax$/)
  return cookie.value
}

/** What the browser is asked by the page. */
function optionsIn({ page }: FormBrowser) {
  return JSON.parse(/data-options="([^"]*)"/.exec(page!.text)![1]!.replaceAll('&quot;', '"'))
}
