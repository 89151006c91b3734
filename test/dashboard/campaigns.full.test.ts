import assert from 'node:assert/strict'
import { test } from 'tap'
import { crawled } from '../manage/crawled.ts'
import { skipped } from '../e2e/programs.ts'
import { until } from '../until.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('campaigns are listed, and one shows why it is one and its requests', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('threats/campaigns')
  await page.getByText('No campaigns found').waitFor()
  await looksFine(page, 'campaigns-none')
  let rounds = 0
  await until(async () => {
    await manage.take(crawled(800, Date.now() - 120_000, 1_000 * rounds++))
    return (await manage.ask('GET', '/v1/campaigns')).body.total === 1
  })
  await page.reload()
  const table = page.getByRole('table', { name: 'Campaigns' })
  await table.getByRole('row', { name: /shop\.test running/ }).waitFor()
  await looksFine(page, 'campaigns')
  // By the keyboard alone.
  await table.getByRole('link', { name: 'shop.test' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Campaign against shop.test' }).waitFor()
  await page.getByText(/requested pages without their parts and without following a link/).waitFor()
  await looksFine(page, 'campaign')
  const requests = page.getByRole('region', { name: 'Latest requests, as a table' })
  await requests
    .getByText(/^\/item\//)
    .first()
    .waitFor()
  assert.ok((await requests.getByRole('row').count()) > 10)
})
