import assert from 'node:assert/strict'
import { test } from 'tap'
import { ja4Place, ja4Words } from '../../src/dashboard/pages/signatures/ja4-words.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { fillCatalogue } from './catalogue.ts'

const skip = skipped('chromium')
const CURL = 't13i3111h2_e8f1e7e78f70_b26ce05bbdd6'

test('the first part of a JA4 in words', async () => {
  assert.deepEqual(ja4Words(CURL), [
    ['Transport', 'TCP'],
    ['TLS version', '1.3'],
    ['Server name', 'not sent (no SNI)'],
    ['Cipher suites', '31 offered'],
    ['Extensions', '11 sent'],
    ['Application protocol', 'HTTP/2'],
  ])
  assert.deepEqual(ja4Place('q13d0310h3_55b375c5d22e_cd85d2d88918'), { ciphers: 3, extensions: 10 })
  for (const none of ['', 'ge20nn020000_5594a17e7e7e_000000000000_000000000000', 't13x1516h2_a_b'])
    assert.deepEqual([ja4Words(none), ja4Place(none)], [null, null])
})

test('signatures are searched, and each is explained', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl, 0, 20_000)
  await goTo('signatures?type=ja4&sort=fingerprint')
  const table = page.getByRole('table', { name: 'Signatures' })
  await table.getByRole('row').nth(5).waitFor()
  assert.ok(Number(await table.getAttribute('aria-rowcount')) > 20_000)
  await table.focus()
  await page.keyboard.press('End')
  await table.getByRole('link', { name: /^zz00004e1f_/ }).waitFor()
  await looksFine(page, 'signatures')
  await goTo('signatures')
  await page.getByLabel('Contains').fill(CURL)
  await page.keyboard.press('Enter')
  await table.getByRole('link', { name: CURL }).click()
  await page.getByText('31 offered').waitFor()
  await page.getByRole('link', { name: 'curl', exact: true }).first().waitFor()
  await page.getByRole('region', { name: 'Similar fingerprints' }).getByRole('row').nth(1).waitFor()
  await looksFine(page, 'signature')
  await goTo('signatures/ja4h/ge20cr13enus_51f90bf7065b_*_*')
  await page.getByText('Google Chrome and Chromium').first().waitFor()
  await goTo('signatures/map')
  await page.getByRole('region', { name: 'TLS stacks, as a table' }).getByRole('link').first().waitFor()
  await looksFine(page, 'signatures-map')
  await goTo('signatures/unknown')
  await page.getByText('No unknown fingerprints').waitFor()
})

test('a fingerprint is proposed, reviewed, accepted, and rolled back', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl)
  await goTo('signatures/ja4/t13d0907h2_aaaaaaaaaaaa_bbbbbbbbbbbb')
  await page.getByText('No known software').waitFor()
  await page.getByText('Propose software').click()
  await page.getByLabel('Name of the agent').fill('Acme Agent')
  await page.getByLabel('Category').selectOption('orchestrator')
  await page.getByLabel('Notes').fill('From the lab.')
  await page.getByRole('button', { name: 'Propose' }).click()
  await page.getByRole('link', { name: 'submitted' }).click()
  await page.getByRole('heading', { name: 'Analysis' }).waitFor()
  await page.getByText(/decides nothing yet/).waitFor()
  await looksFine(page, 'submission')
  await page.getByRole('button', { name: 'Accept' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Accept' }).click()
  await page.getByText('accepted', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'All submissions' }).click()
  await page.getByRole('table', { name: 'Submissions' }).getByText('accepted').waitFor()
  await looksFine(page, 'submissions')
  await page.getByRole('link', { name: 't13d0907h2_aaaaaaaaaaaa_bbbbbbbbbbbb' }).click()
  await page.getByRole('button', { name: 'Roll back' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('Rolled back').waitFor()
  const { submissions } = (await manage.ask('GET', '/v1/submissions')).body
  assert.notEqual(submissions[0].rolled_back_at, null)
})
