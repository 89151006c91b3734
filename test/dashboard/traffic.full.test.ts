import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { until } from '../manage/event-reader.ts'
import { looksFine, openDashboard } from './browser.ts'
import { fillCatalogue } from './catalogue.ts'

const skip = skipped('chromium')
const GPTBOT = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const

test('a blocked person is found by the number on the error page, and the page says why', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('traffic')
  await page.getByText('No matching requests').waitFor()
  await looksFine(page, 'traffic-none')
  const blocked = seen(1, {
    ...{ verdict: 'human', confidence: 0.8, done: 'block', rule: 'no-night', layer: 'last' },
    ...{ host: 'shop.example', path: '/checkout', seenAtMs: Date.now() },
    evidence: ['names-browser', 'browser-headers', 'asks-fast'],
  })
  const before = { ...blocked, id: seen(3).id, path: '/cart', done: 'pass', seenAtMs: Date.now() - 1_000 }
  const other = seen(2, {
    ...{ ...GPTBOT, host: 'shop.example', path: '/a', address: '198.51.100.9', seenAtMs: Date.now() },
  })
  await manage.take([before, blocked, other])
  await page.getByRole('button', { name: 'Show 3 new requests' }).click()
  await looksFine(page, 'traffic')
  const find = page.getByRole('searchbox', { name: 'Find by id' })
  await find.fill('17')
  await find.press('Enter')
  await page.getByRole('alert').getByText('Enter an id such as').waitFor()
  await find.fill(`Request ${blocked.id.toUpperCase()}.`)
  await find.press('Enter')
  await page.waitForURL(new RegExp(`/traffic/${blocked.id}$`))
  await page.getByRole('heading', { name: 'GET shop.example/checkout' }).waitFor()
  await page.getByText('block: no-night').waitFor()
  await page.getByText('among the last rules of the organisation').waitFor()
  await page.getByText('human, 80 % sure').waitFor()
  const timeline = page.getByRole('region', { name: `Earlier requests from ${blocked.address}` })
  await timeline.getByRole('link', { name: 'GET shop.example/cart' }).waitFor()
  assert.equal(await timeline.getByRole('link').count(), 1)
  const evidence = page.getByRole('region', { name: 'Evidence', exact: true })
  await evidence.getByRole('columnheader', { name: /^person .* (agent|automation)$/ }).waitFor()
  await evidence
    .getByRole('row', { name: /\d\.\d\d person$/ })
    .first()
    .waitFor()
  await evidence.getByRole('row', { name: /^Sum / }).waitFor()
  await evidence.getByText(/^The odds are .* to 1 for /).waitFor()
  await looksFine(page, 'traffic-request')
  // Each link to similar requests finds at least the one that it started from.
  const links = page.getByRole('region', { name: 'Similar requests' }).getByRole('link')
  const similar = await links.evaluateAll((found) => found.map((each) => each.getAttribute('href')!))
  assert.ok(similar.length >= 5, `${similar.length} links`)
  for (const href of similar) {
    await goTo(href.replace('/dashboard/', ''))
    const table = page.getByRole('table', { name: 'Requests' })
    await table.getByRole('link', { name: 'GET shop.example/checkout' }).waitFor()
  }
  await goTo(`traffic/${'0'.repeat(8)}-0000-7000-8000-${'0'.repeat(12)}`)
  await page.getByText('It may have been deleted').waitFor()
})

test('filters are part of the address, a long list is read as it is scrolled, and it can be saved', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  const nowMs = Date.now()
  await manage.take(
    Array.from({ length: 450 }, (_, number) =>
      seen(number, { ...(number % 2 === 0 ? GPTBOT : {}), path: `/page/${number}`, seenAtMs: nowMs }),
    ),
  )
  await goTo('traffic')
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link', { name: '/page/449' }).waitFor()
  await table.focus()
  const rows = async () => Number(await table.getAttribute('aria-rowcount')) - 1
  assert.equal(await rows(), 200, 'a page, and room for the next')
  await until(async () => {
    await page.keyboard.press('End')
    return (await rows()) === 450
  })
  await page.keyboard.press('End')
  await table.getByRole('link', { name: /\/page\/0$/ }).waitFor()
  const when = table.getByRole('columnheader', { name: 'When' })
  assert.equal(await when.getAttribute('aria-sort'), 'descending')
  await when.getByRole('button').click()
  await page.waitForURL(/\?order=oldest$/)
  await table.getByRole('link', { name: /\/page\/0$/ }).waitFor()
  assert.equal(await when.getAttribute('aria-sort'), 'ascending')
  await looksFine(page, 'traffic-oldest')
  // A narrow window has no column for the time.
  await page.setViewportSize({ width: 390, height: 844 })
  await page.getByRole('button', { name: 'Newest first' }).click()
  await page.waitForURL(/traffic$/)
  await page.getByRole('button', { name: 'Oldest first' }).click()
  await page.waitForURL(/\?order=oldest$/)
  await page.setViewportSize({ width: 1_280, height: 900 })
  await page.reload()
  const first = table.getByRole('row').nth(1)
  await first.getByRole('link', { name: /\/page\/0$/ }).waitFor()
  await when.getByRole('button').click()
  await page.waitForURL(/traffic$/)
  await first.getByRole('link', { name: '/page/449' }).waitFor()
  await page.getByLabel('Agent', { exact: true }).fill('GPTBot')
  await page.getByLabel('Agent', { exact: true }).press('Enter')
  await page.waitForURL(/agent_id=GPTBot/)
  await table.getByRole('link', { name: '/page/448' }).waitFor()
  await table.getByRole('link', { name: '/page/449' }).waitFor({ state: 'detached' })
  await page.reload()
  await table.getByRole('link', { name: '/page/448' }).waitFor()
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ])
  const lines = (await readFile(await saved.path(), 'utf8')).trim().split(/\r?\n/)
  assert.equal(lines.length, 226, 'every match, and a head')
  assert.ok(lines.slice(1).every((line) => line.includes('gptbot')))
  await page.getByLabel('Verdict', { exact: true }).selectOption('human')
  await page.getByText('No matching requests').waitFor()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await table.getByRole('link', { name: '/page/449' }).waitFor()
  assert.doesNotMatch(page.url(), /\?/)
})

test('a filter that the server rejects is reported', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('traffic?address=nowhere')
  await page.getByRole('alert').waitFor()
  await goTo('traffic?verdict=robot')
  await page.getByRole('alert').waitFor()
})

test('one app is chosen for all pages that can show one, and stays chosen', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('traffic')
  assert.equal(await page.getByLabel('App', { exact: true }).count(), 0, 'there is nothing to choose')
  await fillCatalogue(manage.storeUrl)
  for (const id of ['shop', 'blog'])
    assert.equal((await manage.ask('POST', '/v1/apps', { id, hosts: [`${id}.example`] })).status, 201)
  const nowMs = Date.now()
  await manage.take([
    seen(1, { ...GPTBOT, app: 'shop', path: '/of-shop', seenAtMs: nowMs }),
    seen(2, { ...GPTBOT, agent: 'claudebot', app: 'blog', path: '/of-blog', seenAtMs: nowMs }),
  ])
  await goTo('live')
  await page.getByRole('heading', { name: 'The last five minutes' }).waitFor()
  await page.getByLabel('App', { exact: true }).selectOption('shop')
  await page.waitForURL(/\?app=shop$/)
  const feed = page.getByRole('list', { name: 'Requests, newest first' })
  await feed.getByText('/of-shop').waitFor()
  assert.equal(await page.getByRole('heading', { name: 'The last five minutes' }).count(), 0)
  assert.equal(await feed.getByText('/of-blog').count(), 0)
  await looksFine(page, 'live-app')
  const nav = page.getByRole('navigation', { name: 'Pages' })
  await nav.getByRole('link', { name: 'Traffic' }).click()
  await page.waitForURL(/traffic\?app=shop$/)
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link', { name: '/of-shop' }).waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '2')
  await table.getByRole('link').click()
  await page.getByRole('heading', { name: '/of-shop' }).waitFor()
  await nav.getByRole('link', { name: 'Agents' }).click()
  await page.waitForURL(/agents\?app=shop$/)
  await page.getByRole('table', { name: 'Agents' }).getByRole('link', { name: 'GPTBot' }).waitFor()
  await nav.getByRole('link', { name: 'Events' }).click()
  await page.waitForURL(/events\?app=shop$/)
  await page.getByLabel('App', { exact: true }).selectOption('')
  await page.waitForURL(/events$/)
  await nav.getByRole('link', { name: 'Traffic' }).click()
  await table.getByRole('link', { name: '/of-blog' }).waitFor()
})
