import assert from 'node:assert/strict'
import { test } from 'tap'
import { TestManagement } from '../manage/management.ts'
import { BrowserPage } from './devtools.ts'
import { skipped } from './programs.ts'

test('Chromium: a user makes a passkey, signs in with it, and its copy is detected', {
  skip: skipped('chromium'),
}, async (t) => {
  const manage = await TestManagement.start(t, { host: 'localhost' })
  const url = manage.url.replace('127.0.0.1', 'localhost')
  await manage.ask('POST', '/v1/users', { email: EMAIL, password: PASSWORD, scopes: ['read'] })
  const page = await BrowserPage.start(t, { hasScripts: true })
  await page.do('WebAuthn.enable')
  const { authenticatorId } = await page.do('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  await page.open(`${url}/account/passkeys`)
  await page.titled('Sign in')
  await page.tabTo('textbox', /^Email/)
  await page.type(EMAIL)
  await page.tabTo('textbox', /^Password/)
  await page.type(PASSWORD)
  await page.press('Enter')
  await page.titled('Passkeys')
  await page.tabTo('textbox', /^Name of the device/)
  await page.type('my laptop')
  await page.tabTo('button', /^Add passkey/)
  await page.press('Enter')
  await page.read((nodes) => nodes.some(({ role, name }) => role === 'button' && name === 'Remove'))
  const { credentials } = await page.do('WebAuthn.getCredentials', { authenticatorId })
  const [{ rpId, isResidentCredential }] = credentials
  assert.deepEqual([credentials.length, rpId, isResidentCredential], [1, 'localhost', true])

  const signIn = async () => {
    await page.open(`${url}/oauth/sign-out`)
    const before = await page.read((nodes) => nodes.some(({ name }) => /^Sign(ed)? out/.test(name)))
    if (before.some(({ role }) => role === 'button')) {
      await page.tabTo('button', /^Sign out/)
      await page.press('Enter')
      await page.titled('Signed out')
    }
    await page.open(`${url}/account/passkeys`)
    await page.titled('Sign in')
    await page.tabTo('button', /^Sign in with a passkey/)
    await page.press('Enter')
  }
  await signIn()
  await page.titled('Passkeys')
  await signIn()
  await page.titled('Passkeys')
  const { body } = await manage.ask('GET', '/v1/audit?action=signIn')
  assert.equal(body.total, 3)

  // Not unlocked, it opens nothing; the page says so, and the browser asks no server.
  await page.do('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await signIn()
  await page.read((nodes) => nodes.some(({ name }) => /The passkey failed or was not allowed/.test(name)))
  await page.do('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })

  // As a copy does that was made before.
  const { credentials: used } = await page.do('WebAuthn.getCredentials', { authenticatorId })
  assert.ok(used[0].signCount >= 2)
  await page.do('WebAuthn.removeCredential', { authenticatorId, credentialId: used[0].credentialId })
  await page.do('WebAuthn.addCredential', { authenticatorId, credential: { ...used[0], signCount: 0 } })
  await signIn()
  await page.titled('Not signed in')
  assert.equal((await manage.ask('GET', '/v1/audit?action=suspectPasskey')).body.total, 1)
  const complaints = page.complaints.filter((text) => !/403|favicon/.test(text))
  assert.deepEqual(complaints, [])
  assert.deepEqual(manage.failures, [])
})

const EMAIL = 'anna@example.com'
const PASSWORD = 'a phrase of some words'
