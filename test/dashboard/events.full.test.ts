import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('events are listed, come in as they happen, and are read one by one', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('events?types=new_agent')
  await page.getByText('No matching events').waitFor()
  await looksFine(page, 'events-none')
  const agent = (number: number, id: string) =>
    seen(number, { verdict: 'agent', agent: id, category: 'crawler', confidence: 0.97, seenAtMs: Date.now() })
  await manage.take([agent(1, 'gptbot'), agent(2, 'claudebot')])
  await page.getByRole('button', { name: 'Show 2 new events' }).click()
  const table = page.getByRole('table', { name: 'Events' })
  await table.getByRole('link', { name: 'New agent: GPTBot' }).waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '3')
  await looksFine(page, 'events')
  await page.getByLabel('Agent').fill('claudebot')
  await page.keyboard.press('Enter')
  await page.waitForURL(/agent=claudebot/)
  await table.getByRole('link', { name: 'New agent: GPTBot' }).waitFor({ state: 'hidden' })
  await table.getByRole('link', { name: 'New agent: ClaudeBot' }).click()
  await page.getByRole('heading', { name: 'New agent: ClaudeBot' }).waitFor()
  await page.getByText('Confidence', { exact: true }).waitFor()
  await looksFine(page, 'event')
  await page.goBack()
  await page.waitForURL(/agent=claudebot/)
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'JSON' }).click(),
  ])
  const events = JSON.parse(await readFile(await saved.path(), 'utf8'))
  assert.deepEqual(
    events.map(({ data }: { data: { agent: { id: string } } }) => data.agent.id),
    ['claudebot'],
  )
})

test('a missing event is reported', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('events/evt_nothing')
  await page.getByText('It may have been deleted').waitFor()
  await goTo('nowhere/at/all')
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await looksFine(page, 'nowhere')
})

test('a threat is shown as facts and tables, and its JSON only when it is wanted', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  const evidence = ['signed-from-foreign-address']
  await manage.take([
    seen(1, {
      ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 },
      ...{ evidence: ['spoofed', ...evidence], path: '/.env', seenAtMs: Date.now() },
    }),
  ])
  await goTo('events?types=threat_detected')
  await page.getByRole('table', { name: 'Events' }).getByRole('link').first().click()
  await page.getByRole('heading', { name: 'Detection', exact: true }).waitFor()
  await page.getByRole('heading', { name: 'Request', exact: true }).waitFor()
  await page.getByRole('region', { name: 'Evidence, as a table' }).getByRole('row').nth(1).waitFor()
  assert.doesNotMatch(await page.locator('main').innerText(), /[{}]|\[object/)
  await looksFine(page, 'event-threat')
  await page.getByText('JSON', { exact: true }).click()
  await page.getByText(/"reason": "/).waitFor()
})
