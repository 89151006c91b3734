import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { TestManagement } from '../manage/management.ts'
import { clientFor } from '../manage/oauth-client.ts'
import { BrowserPage } from './devtools.ts'
import { skipped } from './programs.ts'

test('Chromium without scripts: a user signs in and consents with the keyboard alone, and returns to an app', {
  skip: skipped('chromium'),
}, async (t) => {
  const manage = await TestManagement.start(t)
  await manage.ask('POST', '/v1/users', { email: EMAIL, password: PASSWORD, scopes: ['read', 'detect'] })
  const app = await startApp(t)
  const client = await clientFor(manage, {
    ...{ name: 'my app', grant_types: ['authorization_code'], redirect_uris: [app.callback] },
    ...{ token_endpoint_auth_method: 'none', scopes: ['read', 'detect', 'write'] },
  })
  const query = new URLSearchParams({
    ...{
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: app.callback,
      scope: 'read detect write',
    },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  })
  const page = await BrowserPage.start(t)
  await page.open(`${manage.url}/oauth/authorize?${query}`)
  const signIn = await page.titled('Sign in')
  const fields = signIn.filter(({ role }) => role === 'textbox').map(({ name }) => name)
  assert.equal(fields.length, 3)
  assert.match(fields.join('; '), /^Email address; Password; One-time code/)

  await page.tabTo('textbox', /^Email/)
  await page.type(EMAIL)
  await page.tabTo('textbox', /^Password/)
  await page.type('a phrase of other words')
  await page.press('Enter')
  const wrong = await page.titled('Not signed in')
  assert.ok(wrong.some(({ role }) => role === 'alert'))
  const described = wrong.filter(
    ({ role, described: text }) => role === 'textbox' && /Wrong email address, password or code/.test(text),
  )
  assert.equal(described.length, 3)

  // The address is there still, and the password is where one begins.
  await page.tabTo('textbox', /^Password/)
  await page.type(PASSWORD)
  await page.press('Enter')
  const consent = await page.titled('Allow access?')
  assert.deepEqual(
    consent.filter(({ role }) => role === 'checkbox').map(({ name }) => name.trim().split(' ').at(-1)),
    ['read', 'detect'],
  )
  assert.ok(consent.some(({ role, name }) => role === 'group' && name === 'It may'))
  await page.tabTo('checkbox', /detect$/)
  await page.press(' ')
  await page.tabTo('button', /^Allow$/)
  await page.press('Enter')
  await page.titled('The app')
  assert.match(app.asked.at(-1) ?? '', /[?&]code=/)

  // Who denies is led back, too.
  await page.open(`${manage.url}/oauth/authorize?${query}`)
  await page.titled('Allow access?')
  await page.tabTo('button', /^Deny$/)
  await page.press('Enter')
  await page.titled('The app')
  assert.match(app.asked.at(-1) ?? '', /[?&]error=access_denied/)

  await page.open(`${manage.url}/oauth/sign-out`)
  await page.titled('Sign out?')
  await page.tabTo('button', /^Sign out$/)
  await page.press('Enter')
  await page.titled('Signed out')
  const complaints = page.complaints.filter((text) => !/403|favicon/.test(text))
  assert.deepEqual(complaints, [])
  assert.deepEqual(manage.failures, [])
})

/** On another origin, as apps are. */
async function startApp(t: Test) {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    if (url.startsWith('/callback')) asked.push(url)
    response.setHeader('content-type', 'text/html')
    response.end('<!doctype html><title>The app</title>')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close().closeAllConnections())
  return { asked, callback: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback` }
}

const EMAIL = 'anna@example.com'
const PASSWORD = 'a phrase of some words'
