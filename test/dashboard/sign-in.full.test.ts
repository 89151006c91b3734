import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { FIRST_KEY } from './first-key.ts'

const skip = skipped('chromium')

test('a user signs in with a key, and signs out', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t, { isStrange: true })
  const key = page.getByLabel('API key')
  await looksFine(page, 'sign-in')
  // The command is tried as it stands in test/commands/store.full.test.ts.
  await page.getByText(FIRST_KEY).waitFor()
  for (const [wrong, why] of [
    ['ghk_nobody', /Invalid API key: mistyped/],
    ['a b', /characters that are not allowed/],
  ] as const) {
    await key.fill(wrong)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText(why).waitFor()
    assert.equal(await key.getAttribute('aria-invalid'), 'true')
  }
  await key.fill(` ${manage.adminKey} `)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.getByText('Signed in as').waitFor()
  await page.reload()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await key.waitFor()
  assert.equal(
    await page.evaluate('JSON.stringify(sessionStorage) + JSON.stringify(localStorage)'),
    '{}{"gatehouse.tour":"shown"}',
  )
})

test('a link signs in, and its key stays nowhere in the address', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t, { isStrange: true })
  await page.goto('about:blank')
  await page.goto(`${manage.url}/dashboard/?window=1h#key=${manage.adminKey}`)
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  assert.equal(page.url(), `${manage.url}/dashboard/?window=1h`)
  await page.goBack()
  await page.goForward()
  assert.ok(!page.url().includes('ghk_'))
})

test('whose key is revoked is told so', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t, { isStrange: true })
  const { body: key } = await manage.ask('POST', '/v1/keys', { name: 'guest', access: 'read' })
  await page.getByLabel('API key').fill(key.key)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText('guest').waitFor()
  await manage.ask('DELETE', `/v1/keys/${key.id}`)
  // Its streams end within a second. To reload would be a race: a page that has been told forgets that it was.
  await page.getByRole('alert').waitFor()
  await page.getByLabel('API key').waitFor()
})

test('a user signs in with an account, and stays signed in when the token expires', { skip }, async (t) => {
  const options = {
    oauth: { accessTokenTtlS: 31, keyRotationMs: 86_400_000, registration: 'off', registrationToken: null },
  } as const
  const { manage, page } = await openDashboard(t, { isStrange: true, ...options })
  const person = { email: 'someone@gate.example', password: 'a long phrase of words', scopes: ['read'] }
  await manage.ask('POST', '/v1/users', person)
  await page.goto(`${manage.url}/dashboard/?window=7d`)
  await page.getByRole('button', { name: 'Sign in with an account' }).click()
  await page.getByLabel(/^Email/).fill(person.email)
  await page.getByLabel(/^Password/).fill(person.password)
  await page
    .getByRole('button', { name: /sign in/i })
    .first()
    .click()
  await page.getByRole('button', { name: /allow/i }).click()
  await page.getByText(person.email).waitFor()
  assert.equal(page.url(), `${manage.url}/dashboard/?window=7d`)
  const token = () => page.evaluate('JSON.parse(sessionStorage["gatehouse.session"]).access')
  const first = await token()
  await page.waitForTimeout(1_500) // a new token differs from the second on
  await page.reload()
  await page.getByText(person.email).waitFor()
  assert.notEqual(await token(), first)
})
