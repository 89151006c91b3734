import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { newSigner } from '../identity/signer.ts'
import { skipped } from '../e2e/programs.ts'
import { GnapClient } from '../manage/gnap-client.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('keys are made, shown once, and revoked', { skip }, async (t) => {
  const { manage, page } = await open(t, 'keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('nightly build')
  await page.getByRole('checkbox', { name: /^read/ }).uncheck()
  await page.getByRole('checkbox', { name: /^detect/ }).uncheck()
  await looksFine(page, 'settings-key-new')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('group', { name: 'Scopes' }).getByText('is empty').waitFor()
  await page.getByRole('checkbox', { name: /^detect/ }).check()
  await page.getByLabel('Apps').fill('default, shop')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('is not the id of an app').first().waitFor()
  await page.getByLabel('Apps').fill('default')
  await page.getByRole('button', { name: 'Create' }).click()
  const key = (await page.locator('pre').textContent())!
  const headers = { authorization: `Bearer ${key}` }
  const { scopes, apps } = (await manage.ask('GET', '/v1/me', undefined, headers)).body
  assert.deepEqual([scopes, apps], [['detect'], ['default']])
  await looksFine(page, 'settings-keys')
  await page.getByRole('button', { name: 'Revoke nightly build' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('nightly build', { exact: true }).waitFor({ state: 'hidden' })
  assert.equal((await manage.ask('GET', '/v1/me', undefined, headers)).status, 401)
})

test('clients, with a secret or with keys', { skip }, async (t) => {
  const { manage, page } = await open(t, 'clients')
  await page.getByRole('button', { name: 'New client' }).click()
  await page.getByLabel('Name').fill('robot')
  await page.getByLabel('Public keys').fill('{"keys": [')
  await page.getByRole('button', { name: 'Create' }).click()
  await page
    .getByText(/invalid JSON/)
    .first()
    .waitFor()
  await page.getByLabel('Public keys').fill('')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText(/^ghs_/).waitFor()
  await looksFine(page, 'settings-clients')
  const { clients } = (await manage.ask('GET', '/v1/clients')).body
  assert.deepEqual([clients[0].name, clients[0].grant_types], ['robot', ['client_credentials']])
  await page.getByRole('button', { name: 'Delete robot' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No clients yet').waitFor()
})

test('a grant that waits is approved in part, and another is denied', { skip }, async (t) => {
  const { manage, page } = await open(t, 'grants')
  await page.getByText('No matching grants').waitFor()
  const asking = async (name: string) => {
    const client = new GnapClient(manage.url, newSigner())
    const { body } = await client.grant(['read', 'detect'], {
      client: { key: client.key, display: { name } },
      interact: { start: ['redirect'] },
    })
    return { client, body }
  }
  await asking('one')
  await asking('other')
  const one = page.getByRole('form', { name: 'Grant for one' })
  await one.getByRole('checkbox', { name: 'detect' }).uncheck()
  await looksFine(page, 'settings-grants')
  await one.getByRole('button', { name: 'Approve' }).click()
  await one.waitFor({ state: 'hidden' })
  await page.getByRole('form', { name: 'Grant for other' }).getByRole('button', { name: 'Deny' }).click()
  await page.getByText('No matching grants').waitFor()
  const { grants } = (await manage.ask('GET', '/v1/grants?state=approved')).body
  assert.deepEqual([grants.length, grants[0].name, grants[0].scopes], [1, 'one', ['read']])
})

test('trust, by an address or by a key', { skip }, async (t) => {
  const { page } = await open(t, 'trust')
  await page.getByRole('button', { name: 'Add trusted agent' }).click()
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Public key').fill(JSON.stringify(newSigner().jwk))
  await page.getByLabel('Name').fill('the robot')
  await looksFine(page, 'settings-trust')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByRole('button', { name: 'Delete the robot' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No trusted agents yet').waitFor()
})

test('users are made, changed, disabled and deleted', { skip }, async (t) => {
  const { manage, page } = await open(t, 'users')
  await page.getByRole('button', { name: 'New user' }).click()
  await page.getByLabel('Email').fill('someone@gate.example')
  await page.getByLabel('Password').fill('short')
  await page.getByRole('button', { name: 'Create' }).click()
  await page
    .getByText(/12 characters/)
    .last()
    .waitFor()
  await page.getByLabel('Password').fill('a phrase of some words')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('button', { name: 'Change someone@gate.example' }).click()
  await page.getByRole('checkbox', { name: /^write/ }).check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').waitFor()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByText('Disabled: they cannot sign in.').waitFor()
  await looksFine(page, 'settings-users')
  const { users } = (await manage.ask('GET', '/v1/users')).body
  assert.deepEqual([users[0].scopes, users[0].disabled], [['read', 'detect', 'write'], true])
  await page.getByRole('button', { name: 'Delete someone@gate.example' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No users yet').waitFor()
})

test('settings are changed while it runs, and everything is in the audit log', { skip }, async (t) => {
  const { manage, page, goTo } = await open(t, 'limits')
  const form = page.getByRole('form', { name: 'limits.free_per_day' })
  await form.getByRole('textbox').fill('none')
  await form.getByRole('button', { name: 'Change' }).click()
  await form.getByRole('alert').waitFor()
  await form.getByRole('textbox').fill('77')
  await form.getByRole('button', { name: 'Change' }).click()
  await page.getByRole('button', { name: 'Reset to the configured value: 1000' }).waitFor()
  await page.getByLabel('Contains').fill('certificate')
  await page.keyboard.press('Enter')
  await looksFine(page, 'settings-limits')
  const { settings } = (await manage.ask('GET', '/v1/settings')).body
  assert.equal(settings.find(({ name }: { name: string }) => name === 'limits.free_per_day').value, 77)
  await goTo('settings/signing-keys')
  await page.getByText('No signing keys yet').waitFor()
  await page.getByRole('button', { name: 'Rotate key' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await page.getByText('Signs from').waitFor()
  await looksFine(page, 'settings-signing-keys')
  await goTo('settings/audit?action=updateSettings')
  await page.getByRole('table', { name: 'Audit log' }).getByText('updateSettings').first().waitFor()
  await looksFine(page, 'settings-audit')
})

test('a reader sees only what it may read', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { isStrange: true })
  const { body } = await manage.ask('POST', '/v1/keys', { name: 'reader', access: 'read' })
  await page.goto('about:blank')
  await goTo(`#key=${body.key}`)
  const pages = page.getByRole('navigation', { name: 'Pages' })
  await page.getByText('reader').waitFor()
  await pages.getByRole('link', { name: 'Settings' }).waitFor({ state: 'hidden' })
  assert.ok(await pages.getByRole('link', { name: 'Events' }).isVisible())
  await goTo('settings/keys')
  await page.getByText('Sign in with a key that has the required scope').waitFor()
})

test('an administrator of some apps sees no page of the whole installation', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { isStrange: true })
  const { body } = await manage.ask('POST', '/v1/keys', { name: 'team', access: 'admin', apps: ['default'] })
  await page.goto('about:blank')
  await goTo(`#key=${body.key}`)
  await page.getByText('apps: default').waitFor()
  const pages = page.getByRole('navigation', { name: 'Pages' })
  await pages.getByRole('link', { name: 'Fleet' }).waitFor({ state: 'hidden' })
  await pages.getByRole('link', { name: 'Threats' }).click()
  const tabs = page.getByRole('navigation', { name: 'Threats' })
  await tabs.getByRole('link', { name: 'Accepted' }).waitFor()
  assert.equal(await tabs.getByRole('link', { name: 'Campaigns' }).count(), 0)
  await goTo('')
  assert.equal(await page.getByText('The last five minutes').count(), 0)
  await looksFine(page, 'settings-team')
  await goTo('settings/users')
  await page.getByRole('button', { name: 'New user' }).click()
  await page.getByLabel('Email').fill('ben@example.com')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByText('ben@example.com').waitFor()
  const { users } = (await manage.ask('GET', '/v1/users')).body
  assert.deepEqual(users[0].apps, ['default'])
})

async function open(t: Test, tab: string) {
  const opened = await openDashboard(t)
  await opened.goTo(`settings/${tab}`)
  await opened.page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
  return opened
}
