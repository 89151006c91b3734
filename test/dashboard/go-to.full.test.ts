import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
const AGENTS = /\/v1\/agents\?/

test('Ctrl+K goes to pages and settings by the keyboard alone', { skip }, async (t) => {
  const { page } = await openDashboard(t)
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  const field = page.getByRole('combobox', { name: 'Go to' })
  await page.keyboard.press('Control+k')
  await field.waitFor()
  assert.equal(
    await page.getByRole('listbox').getByRole('option', { selected: true }).textContent(),
    'Overview',
  )
  await looksFine(page, 'go-to')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowDown')
  const active = await field.getAttribute('aria-activedescendant')
  assert.equal(await page.locator(`[id="${active}"]`).textContent(), 'Traffic')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('ArrowUp')
  assert.equal(await page.getByRole('listbox').getByRole('option', { selected: true }).textContent(), 'Help')
  await page.keyboard.type('audit')
  await page.getByRole('option', { name: 'Audit log' }).waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(/settings\/audit$/)
  await page.getByRole('heading', { name: 'Settings', level: 1 }).waitFor()
  assert.equal(await field.count(), 0)
  assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1')
})

test('it finds the manual, agents, requests and addresses', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t)
  await manage.fillCatalogue()
  await manage.take([seen(1, { seenAtMs: Date.now() })])
  const open = async (text: string) => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox', { name: 'Go to' }).fill(text)
  }
  await open('find contradictions')
  await page.getByRole('option', { name: 'Find contradictions' }).click()
  await page.waitForURL(/help\/terms#find-contradictions$/)
  await page.getByRole('heading', { name: 'Find contradictions', level: 2 }).waitFor()

  await open('gptbot')
  await page.getByRole('group', { name: 'Agents' }).getByRole('option', { name: 'GPTBot crawler' }).waitFor()
  await looksFine(page, 'go-to-agent')
  await page.getByRole('group', { name: 'Agents' }).getByRole('option', { name: 'GPTBot crawler' }).click()
  await page.getByRole('heading', { name: 'GPTBot', level: 1 }).waitFor()

  await open('192.0.2.0/24')
  await page.keyboard.press('Enter')
  await page.waitForURL(/traffic\?address=192\.0\.2\.0%2F24$/)
  await page.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()

  const { body } = await manage.ask('GET', '/v1/requests')
  const { id } = body.requests[0]
  await open(`id: ${id}`)
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(`traffic/${id}$`))
  await page.getByRole('heading', { name: 'Request', level: 1 }).waitFor()

  await open('no such place at all')
  await page.getByRole('status').getByText('Nothing found for “no such place at all”').waitFor()
  assert.equal(await page.getByRole('listbox').count(), 0)
  await looksFine(page, 'go-to-nothing')
  await page.keyboard.press('Enter')
  assert.match(page.url(), /traffic\//)
})

test('agents are searched when the typing pauses, and not for what was typed before', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t)
  await manage.fillCatalogue()
  const asked: string[] = []
  const failed: string[] = []
  const textOf = (url: string) => new URL(url).searchParams.get('q')!
  const held = Promise.withResolvers<void>()
  await page.route(AGENTS, async (route) => {
    if (textOf(route.request().url()) === 'claude') await held.promise
    await route.continue().catch(() => undefined)
  })
  page.on('request', (request) => {
    if (AGENTS.test(request.url())) asked.push(textOf(request.url()))
  })
  page.on('requestfailed', (request) => failed.push(textOf(request.url())))
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).waitFor()
  await page.keyboard.type('claude', { delay: 5 })
  await page.waitForRequest(AGENTS)
  assert.deepEqual(asked, ['claude'])
  await page.keyboard.type('bot', { delay: 5 })
  await page
    .getByRole('group', { name: 'Agents' })
    .getByRole('option', { name: /^ClaudeBot/ })
    .waitFor()
  held.resolve()
  assert.deepEqual(asked, ['claude', 'claudebot'])
  assert.deepEqual(failed, ['claude'])
  // A search that fails says so, and the other places stay.
  await page.route(AGENTS, (route) =>
    route.fulfill({
      status: 503,
      json: { status: 503, code: 'unavailable', detail: 'the database is gone' },
    }),
  )
  await page.getByRole('combobox', { name: 'Go to' }).fill('policy')
  await page.getByText('Some places are missing: the database is gone').waitFor()
  await page.getByRole('option', { name: 'Policy', exact: true }).first().waitFor()
})

test('Escape closes it, and the focus returns', { skip }, async (t) => {
  const { page } = await openDashboard(t)
  const button = page.getByRole('button', { name: /^Go to…/ })
  await button.click()
  await page.getByRole('combobox', { name: 'Go to' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.match((await page.evaluate('document.activeElement.textContent')) as string, /^Go to…/)
  await button.click()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.match((await page.evaluate('document.activeElement.textContent')) as string, /^Go to…/)
})

test('? lists the keys, but not in a field and not if it is off', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  const keys = page.getByRole('dialog', { name: 'Keys' })
  await page.keyboard.press('?')
  await keys.waitFor()
  await looksFine(page, 'keys')
  // A dialog has all keys for itself.
  await page.keyboard.press('Control+k')
  assert.equal(await page.getByRole('dialog').count(), 1)
  await page.keyboard.press('Escape')
  await keys.waitFor({ state: 'detached' })

  await goTo('help')
  const search = page.getByRole('searchbox', { name: 'Search the manual' })
  await search.click()
  await page.keyboard.type('why?')
  assert.equal(await search.inputValue(), 'why?')
  assert.equal(await keys.count(), 0)
  await page.keyboard.press('Control+k')
  await page.getByRole('button', { name: 'All keys' }).click()
  await keys.waitFor()
  assert.equal(await page.getByRole('dialog').count(), 1)
  await keys.getByRole('checkbox').uncheck()
  await keys.getByRole('button', { name: 'Close' }).click()
  await goTo('help')
  await page.getByRole('heading', { name: 'Help', level: 1 }).waitFor()
  await page.keyboard.press('?')
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).waitFor()
  assert.equal(await keys.count(), 0)
})

test('a user without the scope read gets the pages and the manual', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { isStrange: true })
  await page.goto('about:blank')
  await goTo(`#key=${await manage.key({ scopes: ['detect'] })}`)
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Explore' }).waitFor()
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).fill('explore')
  await page.getByRole('option', { name: 'Explore', exact: true }).waitFor()
  await page.waitForTimeout(400)
  assert.deepEqual(
    asked.filter((path) => /^\/v1\/(?:agents|apps)/.test(path)),
    [],
  )
})

test('the dashboard works in a browser that keeps nothing', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
    Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })`)
  await goTo('help')
  await page.getByLabel('API key').waitFor()
  assert.equal(await page.getByText('This page crashed').count(), 0)
})
