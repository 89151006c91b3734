import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
const HOUR_MS = 3_600_000
const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 },
  purposes: ['training'],
} as const

test('the overview teaches to send a request, shows all at a glance, and each number leads to its requests', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await page.getByText('No requests in the last 24 hours').waitFor()
  await page.getByText('curl --insecure https://HOST:8443/').waitFor()
  await looksFine(page, 'overview-empty')
  const nowMs = Date.now()
  const agent = { ...GPTBOT, seenAtMs: nowMs, path: '/articles' }
  await manage.take([
    ...[1, 2].map((number) => seen(number, agent)),
    seen(3, { ...agent, verified: 'web-bot-auth' }),
    seen(4, { ...agent, done: 'block', path: '/prices' }),
    seen(5, { verdict: 'human', done: 'pass', seenAtMs: nowMs - HOUR_MS, path: '/prices' }),
    seen(6, { verdict: 'human', done: 'block', seenAtMs: nowMs, path: '/prices' }),
    // Two days before, so that all of the day before is known.
    seen(7, { verdict: 'human', done: 'pass', seenAtMs: nowMs - 60 * HOUR_MS }),
    ...[8, 9, 10].map((number) =>
      seen(number, { verdict: 'human', done: 'pass', seenAtMs: nowMs - 30 * HOUR_MS }),
    ),
  ])
  const figure = (name: string) =>
    page.locator('.figures > div').filter({ has: page.getByText(name, { exact: true }) })
  await figure('Requests').getByRole('link', { name: '6' }).waitFor({ timeout: 20_000 })
  const texts = async (...names: string[]) =>
    Promise.all(
      names.map(async (name) => (await figure(name).locator('dd').innerText()).replaceAll('\n', ' ')),
    )
  assert.deepEqual(
    await texts('Requests', 'From agents', 'Verified', 'Blocked', 'People blocked', 'Slowed down'),
    [
      '6 100 % more',
      '4 67 % · none before',
      '1 25 % of agents · none before',
      '2 none before',
      '1 none before',
      '0 as before',
    ],
  )
  await page.getByText('compared with the 24 hours before').waitFor()
  await page.getByText(/^6 requests, 67 % of them from agents/).waitFor()
  await page.getByRole('img', { name: /^Requests by verdict: .*Agents 4.*All, 24 hours before 3/ }).waitFor()
  const rows = async (title: string) => {
    const found = await page
      .getByRole('region', { name: `${title}, as a table` })
      .getByRole('row')
      .allInnerTexts()
    return found.slice(1).map((text) => text.trim().split(/\s+/))
  }
  assert.deepEqual(await rows('Agents with the most requests'), [['gptbot', '4', '100', '%']])
  assert.deepEqual(await rows('Purposes of agents'), [['Training', '4', '100', '%']])
  assert.deepEqual(await rows('Categories of agents'), [['Crawlers', '4', '100', '%']])
  assert.deepEqual(await rows('Paths with the most requests'), [
    ['/articles', '3', '50', '%'],
    ['/prices', '3', '50', '%'],
  ])
  await page.getByText('Of 6 recorded requests.').waitFor()
  await looksFine(page, 'overview')
  // Each number leads to the list behind it.
  const table = page.getByRole('table', { name: 'Requests' })
  for (const [open, address, count] of [
    [figure('People blocked').getByRole('link'), /traffic\?verdict=human&action=block&window=24h$/, 1],
    [figure('Verified').getByRole('link'), /verified=true/, 1],
    [page.getByRole('row', { name: /^Training/ }).getByRole('link'), /purpose=training/, 4],
    [page.getByRole('row', { name: /^\/prices/ }).getByRole('link'), /path=%2Fprices/, 3],
  ] as const) {
    await goTo('')
    await open.click()
    await page.waitForURL(address)
    await table.getByRole('link').first().waitFor()
    assert.equal(await table.getAttribute('aria-rowcount'), String(count + 1), String(address))
  }
})

test('the time range is in the address, stays on the way, and lists obey it', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  const nowMs = Date.now()
  await manage.take([
    seen(1, { ...GPTBOT, seenAtMs: nowMs, path: '/new' }),
    seen(2, { ...GPTBOT, seenAtMs: nowMs - 5 * HOUR_MS, path: '/old' }),
  ])
  await goTo('?window=1h')
  await page.getByRole('button', { name: '1h', pressed: true }).waitFor()
  await page.getByText(/^1 request,/).waitFor()
  await page.getByText(/compared with the .* before/).waitFor()
  const nav = page.getByRole('navigation', { name: 'Pages' })
  await nav.getByRole('link', { name: 'Traffic' }).click()
  await page.waitForURL(/traffic\?window=1h$/)
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link', { name: '/new' }).waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '2')
  await page.getByRole('button', { name: 'all', exact: true }).click()
  await table.getByRole('link', { name: '/old' }).waitFor()
  await page.getByRole('button', { name: '7d' }).click()
  await nav.getByRole('link', { name: 'Events' }).click()
  await page.waitForURL(/events\?window=7d$/)
  await nav.getByRole('link', { name: 'Help' }).click()
  await nav.getByRole('link', { name: 'Overview' }).click()
  await page.waitForURL(/dashboard\?window=7d$/)
  await page.getByText(/^2 requests,/).waitFor()
  await page.getByText('Nothing is known yet of the time before').waitFor()
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV', exact: true }).first().click(),
  ])
  assert.equal(saved.suggestedFilename(), 'traffic-7d.csv')
})

test('the apps of a team are shown together', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  for (const [id, team] of [
    ['shop', 'retail'],
    ['till', 'retail'],
    ['blog', 'press'],
  ] as const)
    assert.equal((await manage.ask('POST', '/v1/apps', { id, team, hosts: [`${id}.example`] })).status, 201)
  const seenAtMs = Date.now()
  await manage.take([
    ...[1, 2].map((number) => seen(number, { ...GPTBOT, app: 'shop', seenAtMs })),
    seen(3, { ...GPTBOT, app: 'till', seenAtMs }),
    seen(4, { ...GPTBOT, app: 'blog', seenAtMs }),
  ])
  await goTo('')
  await page.getByText(/^4 requests,/).waitFor()
  const apps = page.getByRole('region', { name: 'Apps with the most requests, as a table' })
  await apps.getByRole('row', { name: /^shop 2 / }).waitFor()
  await page.getByLabel('App', { exact: true }).selectOption('team:retail')
  await page.waitForURL(/\?team=retail$/)
  await page.getByText(/^3 requests,/).waitFor()
  await apps.getByRole('row', { name: /^blog/ }).waitFor({ state: 'detached' })
  await looksFine(page, 'overview-team')
  const nav = page.getByRole('navigation', { name: 'Pages' })
  await nav.getByRole('link', { name: 'Policy' }).click()
  await page.getByRole('heading', { name: 'Policy', level: 1 }).waitFor()
  await nav.getByRole('link', { name: 'Traffic' }).click()
  await page.waitForURL(/traffic\?team=retail$/)
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link').first().waitFor()
  assert.equal(await table.getAttribute('aria-rowcount'), '4')
  assert.equal(await page.getByLabel('App', { exact: true }).inputValue(), 'team:retail')
})

test('a plot says the values under the pointer, and is saved as a picture and as numbers', {
  skip,
}, async (t) => {
  const { manage, page } = await openDashboard(t)
  await manage.take([1, 2].map((number) => seen(number, { ...GPTBOT, seenAtMs: Date.now() })))
  const plot = page.locator('figure', { hasText: 'Requests by verdict' })
  await plot.locator('canvas').waitFor({ timeout: 20_000 })
  const box = (await plot.locator('.u-over').boundingBox())!
  await page.mouse.move(box.x + box.width - 3, box.y + 20)
  await plot.locator('.tip').getByText('Agents 2').waitFor()
  await plot.locator('.tip').getByText('24 hours before unknown').waitFor()
  await page.mouse.move(0, 0)
  await plot.locator('.tip').waitFor({ state: 'detached' })
  const saved = async (as: string) => {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      plot.getByRole('button', { name: `Requests by verdict as ${as}` }).click(),
    ])
    assert.equal(file.suggestedFilename(), `requests-by-verdict.${as.toLowerCase()}`)
    return readFile(await file.path())
  }
  const lines = (await saved('CSV')).toString().trim().split('\r\n')
  assert.equal(lines[0], 'time,People,Agents,Automation,Unknown,"All, 24 hours before"')
  assert.match(lines.at(-1)!, /Z,0,2,0,0,$/)
  const png = await saved('PNG')
  assert.equal(png.subarray(1, 4).toString(), 'PNG')
  // Higher than the plot: with a title and a legend.
  const canvas = (await plot.locator('canvas').boundingBox())!
  assert.ok(png.readUInt32BE(20) > canvas.height + 40)
})

test('where the management plane is gone the overview says so, and it goes on when that is back', {
  skip,
}, async (t) => {
  const { page, complaints } = await openDashboard(t)
  await page.getByText('No requests in the last 24 hours').waitFor()
  await page.route('**/v1/stats*', (route) => route.abort())
  await page.getByText('Cannot reach the management plane.').waitFor({ timeout: 20_000 })
  await looksFine(page, 'overview-error')
  await page.unroute('**/v1/stats*')
  await page.getByText('Cannot reach the management plane.').waitFor({ state: 'hidden' })
  complaints.length = 0
})
