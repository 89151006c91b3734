import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { policyText } from './policy-text.ts'

const skip = skipped('chromium')
const PHONE = { width: 390, height: 844 }

test('on a phone, the navigation shows the current page', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t, { browser: { viewport: PHONE } })
  const current = page.getByRole('navigation', { name: 'Pages' }).locator('[aria-current=page]')
  for (const [path, title] of [
    ['help', 'Help'],
    ['fleet', 'Fleet'],
    ['', 'Overview'],
  ] as const) {
    await goTo(path)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    assert.equal(await current.textContent(), title)
    const isSeen = async () => {
      const { x, width } = (await current.boundingBox())!
      return x >= 0 && x + width <= PHONE.width
    }
    await page.waitForTimeout(200) // the list of pages grows when the scopes of the user are known
    assert.ok(await isSeen(), `${title} is outside of the window`)
  }
})

test('on a phone, the header has two rows, and app and time range share one', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { browser: { viewport: PHONE } })
  const app = { id: 'shop', name: 'The shop with a very long name', team: 'retail', hosts: ['shop.example'] }
  assert.equal((await manage.ask('POST', '/v1/apps', app)).status, 201)
  await goTo('traffic')
  await page.getByLabel('App', { exact: true }).selectOption('shop')
  for (const width of [390, 360]) {
    await page.setViewportSize({ width, height: PHONE.height })
    for (const selector of [
      '.side > .brand, .side > button, .side .foot select, .side .foot button',
      '.reach select, .reach button',
    ]) {
      const boxes = await boxesOf(page, selector)
      const middles = boxes.map(({ y, height }) => Math.round((y + height / 2) / 8))
      assert.equal(new Set(middles).size, 1, `${selector} at ${width} px: ${middles}`)
      assert.ok(boxes.every(({ x, width: own }) => x >= 0 && x + own <= width))
    }
  }
  await looksFine(page, 'phone-header')
})

test('with more contrast, and with the colours of the system, a page stays readable', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await manage.take([seen(1, { verdict: 'agent', seenAtMs: Date.now() })])
  await goTo('traffic')
  await page.locator('main .badge.agent').waitFor()
  const styleOf = (selector: string, name: string, part = 'null') =>
    page.evaluate(`getComputedStyle(document.querySelector('${selector}'), ${part}).${name}`)
  const markOf = () => styleOf('main .badge.agent', 'backgroundColor', '"::before"')
  const mark = await markOf()
  assert.match(String(mark), /^rgb/)
  await page.emulateMedia({ contrast: 'more' })
  await looksFine(page, 'more-contrast')
  await page.emulateMedia({ contrast: 'no-preference', forcedColors: 'active' })
  assert.equal(await markOf(), mark)
  assert.equal(await styleOf('nav [aria-current=page]', 'outlineStyle'), 'solid')
})

test('filters of a list have one height and one base line', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  for (const path of ['agents', 'events', 'signatures', 'settings/audit']) {
    await goTo(path)
    await page.locator('.filters input, .filters select').nth(1).waitFor()
    const boxes = await boxesOf(page, '.filters input, .filters select, .filters button')
    const rows = Map.groupBy(boxes, ({ y }) => Math.round(y / 10))
    assert.ok(boxes.length > 1)
    for (const row of rows.values()) {
      assert.equal(new Set(row.map(({ y }) => y)).size, 1, `${path}: tops ${row.map(({ y }) => y)}`)
      const heights = row.map(({ height }) => height)
      assert.equal(new Set(heights).size, 1, `${path}: heights ${heights}`)
    }
  }
})

test('a page whose program is loading says so', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  const open = Promise.withResolvers<void>()
  await page.route('**/assets/fleet-*.js', async (route) => {
    await open.promise
    await route.continue()
  })
  await page.getByRole('link', { name: 'Fleet' }).click()
  await page.locator('main > [role=status]', { hasText: 'Loading…' }).waitFor()
  await goTo('fleet')
  await page.locator('main > [role=status]', { hasText: 'Loading…' }).waitFor()
  open.resolve()
  await page.getByRole('heading', { name: 'Fleet', level: 1 }).waitFor()
  assert.equal(await page.locator('main > .loading').count(), 0)
})

test('the error of a check is gone while the next check runs', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('policy')
  const text = policyText(page)
  await text.fill('{"rules": [{"name": "x", "wen": {}, "action": "block"}]}')
  await page.getByRole('button', { name: 'Validate and test' }).click()
  const error = page.getByText(/did you mean "when"/).first()
  await error.waitFor()
  const open = Promise.withResolvers<void>()
  await page.route('**/v1/policy/preview', async (route) => {
    await open.promise
    await route.continue()
  })
  await text.fill('{"rules": []}')
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await error.waitFor({ state: 'hidden' })
  open.resolve()
  await page.getByText(/Valid policy/).waitFor()
  // Nor does the result of the last check stand beside the error of this one.
  await text.fill('{"rules": [{"name": "x", "wen": {}, "action": "block"}]}')
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await error.waitFor()
  assert.equal(await page.getByText(/Valid policy/).count(), 0)
})

async function boxesOf(page: Page, selector: string) {
  const boxes = await Promise.all((await page.locator(selector).all()).map((each) => each.boundingBox()))
  return boxes.filter((box) => box !== null)
}
