import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { SETTINGS } from '../manage/management.ts'
import { looksFine, openDashboard } from './browser.ts'
import { fillCatalogue } from './catalogue.ts'

const skip = skipped('chromium')

test('the directory of agents, however many, and one of them', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('agents')
  await page.getByText('No matching agents').waitFor()
  await fillCatalogue(manage.storeUrl, 10_000)
  const gptbot = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const
  await manage.take([
    seen(1, { ...gptbot, seenAtMs: Date.now() }),
    seen(2, { ...gptbot, done: 'block', seenAtMs: Date.now() }),
  ])
  await goTo('agents')
  const table = page.getByRole('table', { name: 'Agents' })
  await table.getByRole('row').nth(5).waitFor()
  assert.ok(Number(await table.getAttribute('aria-rowcount')) > 10_000)
  const here = page.getByRole('region', { name: 'Here in the last 30 days' })
  const row = here.getByRole('row', { name: /^GPTBot/ })
  await row.getByRole('img', { name: /^Requests of GPTBot: at first 0, at most 2, now 2$/ }).waitFor()
  await row.getByRole('cell', { name: 'OpenAI' }).waitFor()
  await row.getByRole('cell', { name: '0 %' }).waitFor()
  await looksFine(page, 'agents')
  await table.focus()
  await page.keyboard.press('End')
  await table.getByRole('link', { name: 'Zz made up 09999' }).waitFor()

  await page.getByRole('button', { name: '1h', exact: true }).click()
  await table.getByRole('link', { name: 'GPTBot' }).waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '2')
  await page.getByLabel('Category').selectOption('llm-sdk')
  await page.getByText('No matching agents').waitFor()
  await page.getByLabel('Category').selectOption('crawler')
  await page.getByLabel('Purpose').selectOption('search')
  await page.getByText('No matching agents').waitFor()
  await page.getByLabel('Purpose').selectOption('training')
  await table.getByRole('link', { name: 'GPTBot' }).waitFor()
  await page.getByLabel('Purpose').selectOption('search')
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByLabel('Name or description').fill('GPTBot')
  await page.keyboard.press('Enter')
  await table.getByRole('link', { name: 'GPTBot' }).click()
  await page.getByRole('heading', { name: 'GPTBot', level: 1 }).waitFor()
  await page.getByText(/^Training \(developers\.openai\.com\/\S+, 2026-\d\d-\d\d\)$/).waitFor()
  await page.getByText('2 requests, 1 blocked.').waitFor()
  await page.getByText('2 in 24 hours, 2 in 7 days, 2 in total').waitFor()
  await page.getByRole('link', { name: /^New agent: GPTBot/ }).waitFor()
  assert.equal(
    await page
      .getByRole('link', { name: /openai\.com/ })
      .first()
      .getAttribute('rel'),
    'noopener noreferrer',
  )
  await looksFine(page, 'agent')
  await page.getByRole('button', { name: '7d' }).click()
  await page.waitForURL(/window=7d/)
  await goTo('agents/no-such-agent')
  await page.getByText('It may have been deleted').waitFor()
})

test('a tool has the numbers of its requests, and the feed has the names of both', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl)
  const seenAtMs = Date.now()
  const tool = { verdict: 'automation', agent: null, category: null, software: 'curl', seenAtMs } as const
  await manage.take([
    seen(1, tool),
    seen(2, { ...tool, done: 'block' }),
    seen(3, { verdict: 'agent', agent: 'gptbot', category: 'crawler', seenAtMs }),
  ])
  await goTo('live')
  const feed = page.getByRole('list', { name: 'Requests, newest first' })
  await feed.getByRole('link', { name: 'GPTBot', exact: true }).waitFor()
  await feed.getByRole('link', { name: 'curl', exact: true }).first().click()
  await page.getByRole('heading', { name: 'curl', level: 1 }).waitFor()
  await page.getByText('2 in 24 hours, 2 in 7 days, 2 in total').waitFor()
  await page.getByText('2 requests, 1 blocked.').waitFor()
  assert.doesNotMatch((await page.locator('dl.facts').first().textContent())!, /never/)
  await looksFine(page, 'tool')
})

test('the page of an agent that signs shows its card, or why it has no card', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { fetchesCards: false })
  await manage.fillCatalogue()
  await goTo('agents/chatgpt-agent')
  await page.getByRole('heading', { name: 'Card', exact: true }).waitFor()
  await page.getByText('identity.signatures is off').waitFor()
  await goTo('agents/gptbot')
  await page.getByRole('heading', { name: 'Known fingerprints' }).waitFor()
  assert.equal(await page.getByRole('heading', { name: 'Card', exact: true }).count(), 0)
})

test('the page of a crawler says whether it keeps to robots.txt', { skip }, async (t) => {
  const robots = { file: null, upstream: null, isPublished: true }
  const { manage, page, goTo } = await openDashboard(t, {
    knows: true,
    threats: { ...SETTINGS.threats, robots },
  })
  await manage.fillCatalogue()
  const of = { verdict: 'agent', agent: 'gptbot', category: 'crawler', seenAtMs: Date.now() } as const
  await manage.take([
    seen(1, { ...of, path: '/robots.txt' }),
    seen(2, { ...of, path: '/drafts/a' }),
    seen(3, { ...of, path: '/open' }),
  ])
  await goTo('agents/gptbot')
  const section = page.getByRole('region', { name: 'robots.txt' })
  await section.getByText('It fetched /robots.txt once in 3 recorded requests').waitFor()
  await section.getByText('robots.txt allows all of its other requests that were compared (2).').waitFor()
  const when = { category: 'crawler', path: '/drafts/*' }
  const policy = { rules: [{ name: 'drafts', when, action: 'block' }] }
  await manage.ask('PUT', '/v1/policy', policy, { 'if-match': '*' })
  await page.reload()
  await section.getByText('robots.txt disallows 1 of 2 requests (50 %).').waitFor()
  await section.getByText('Disallow: /drafts/').waitFor()
  await looksFine(page, 'agent-robots')
  await section.getByRole('link', { name: '/drafts/a' }).click()
  await page.waitForURL(/traffic\?app=default&agent_id=gptbot.*&path=%2Fdrafts%2Fa$/)
  await goTo('agents/claudebot')
  await section.getByText('No recorded requests in the last 24 hours').waitFor()
})

test('without a known robots.txt the page of a crawler says what to do', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await manage.fillCatalogue()
  await manage.take([
    seen(1, { verdict: 'agent', agent: 'gptbot', category: 'crawler', seenAtMs: Date.now() }),
  ])
  await goTo('agents/gptbot')
  const section = page.getByRole('region', { name: 'robots.txt' })
  await section.getByText('It did not fetch /robots.txt in 1 recorded request').waitFor()
  await section.getByText('Its robots.txt is unknown').waitFor()
  await looksFine(page, 'agent-robots-unknown')
})

test('the page of an agent has its terms, threats, and the fingerprints that changed', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await manage.fillCatalogue()
  const limit = { per: 'agent', requests: 10, window: '1m' }
  const policy = {
    rules: [
      { name: 'drafts', when: { agent: 'gptbot', path: '/drafts/*' }, action: 'block' },
      { name: 'slowly', when: { category: 'crawler' }, action: { rate_limit: limit } },
    ],
  }
  assert.equal((await manage.ask('PUT', '/v1/policy', policy, { 'if-match': '*' })).status, 200)
  const nowMs = Date.now()
  const of = { verdict: 'agent', agent: 'gptbot', category: 'crawler', ja4h: null } as const
  const spoofed = { evidence: ['spoofed', 'signed-from-foreign-address'], path: '/.env' }
  await manage.take([
    seen(1, { ...of, ja4: 't13d0001h2_aaaaaaaaaaaa_bbbbbbbbbbbb', seenAtMs: nowMs - 3 * 3_600_000 }),
    seen(2, { ...of, ja4: 't13d0002h2_aaaaaaaaaaaa_bbbbbbbbbbbb', seenAtMs: nowMs, ...spoofed }),
  ])
  await goTo('agents/gptbot?window=1h')
  const terms = page.getByRole('region', { name: 'Its terms' })
  const slowly = terms.getByRole('row', { name: /^slowly/ })
  await slowly.getByText('10 in 1 min for each agent').waitFor()
  await slowly.getByText('always').waitFor()
  await terms
    .getByRole('row', { name: /^drafts/ })
    .getByText('depends on path')
    .waitFor()
  await terms.getByText('The last rule decides about all requests that come to it.').waitFor()
  const prints = page.getByRole('region', { name: 'Fingerprints seen here' })
  await prints.getByText('1 fingerprint is new in the last hour.').waitFor()
  const fresh = prints.getByRole('row', { name: /t13d0002h2/ })
  await fresh.getByText('new', { exact: true }).waitFor()
  assert.equal(
    await prints
      .getByRole('row', { name: /t13d0001h2/ })
      .getByText('new', { exact: true })
      .count(),
    0,
  )
  await page.getByRole('region', { name: 'Threats' }).getByRole('link').first().waitFor()
  await looksFine(page, 'agent-terms')
  await slowly.getByRole('link', { name: 'slowly', exact: true }).click()
  await page.waitForURL(/policy\?show=slowly$/)
  await page.locator('li[aria-current=true] strong').getByText('slowly').waitFor()
})
