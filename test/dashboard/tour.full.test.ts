import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
const FIRST = { isFirstVisit: true } as const

test('the first visit shows a tour of four steps beside the page', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t, FIRST)
  const tour = page.getByRole('region', { name: 'Tour' })
  await tour.getByText('Overview: Which clients come, and what is done with them?').waitFor()
  assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1')
  await looksFine(page, 'tour')
  // The page can be used meanwhile.
  await page.getByRole('button', { name: '7d', exact: true }).click()
  await page.waitForURL(/window=7d/)
  await tour.getByRole('button', { name: 'Next' }).click()
  await tour.getByText('Traffic: What happened to this request, and why?').waitFor()
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Next')
  assert.equal(await page.locator('nav .toured').textContent(), 'Traffic')
  await tour.getByRole('link', { name: 'Open Traffic' }).click()
  await page.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()
  await tour.getByText('step 2 of 4').waitFor()
  await tour.getByRole('button', { name: 'Next' }).click()
  await tour.getByText(/^Agents:/).waitFor()
  await tour.getByRole('button', { name: 'Back' }).click()
  await tour.getByText(/^Traffic:/).waitFor()
  await tour.getByRole('button', { name: 'Next' }).click()
  await tour.getByRole('button', { name: 'Next' }).click()
  await tour.getByText('Policy: What may each of them do?').waitFor()
  await looksFine(page, 'tour-end')
  await tour.getByRole('button', { name: 'Done' }).click()
  assert.equal(await tour.count(), 0)
  await page.locator('h1:focus').waitFor()
  assert.equal(await page.locator('nav .toured').count(), 0)
  await goTo('')
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  await page.getByText('Signed in as').waitFor()
  assert.equal(await tour.count(), 0)
})

test('Escape skips the tour, but not from a field, and Help starts it again', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t, FIRST)
  const tour = page.getByRole('region', { name: 'Tour' })
  await tour.waitFor()
  await page.keyboard.press('Control+k')
  await page.getByRole('combobox', { name: 'Go to' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  assert.equal(await tour.count(), 1)
  await page.getByRole('heading', { name: 'Overview', level: 1 }).focus()
  await page.keyboard.press('Escape')
  await tour.waitFor({ state: 'detached' })

  await goTo('help')
  const start = page.getByRole('button', { name: 'Start the tour' })
  await start.focus()
  await page.keyboard.press('Enter')
  await tour.getByText('step 1 of 4').waitFor()
  assert.equal(await page.evaluate('document.activeElement.className'), 'tour card')
  await page.getByRole('searchbox', { name: 'Search the manual' }).focus()
  await page.keyboard.press('Escape')
  assert.equal(await tour.count(), 1)
  await tour.getByRole('button', { name: 'Skip' }).focus()
  await page.keyboard.press('Escape')
  await tour.waitFor({ state: 'detached' })
  await page.locator('button:focus', { hasText: 'Start the tour' }).waitFor()
})

test('another first page has no tour, and a user gets only steps of pages that they may open', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { ...FIRST, isStrange: true })
  await page.goto('about:blank')
  await goTo(`traffic#key=${await manage.key({ scopes: ['read'] })}`)
  await page.getByRole('heading', { name: 'Traffic', level: 1 }).waitFor()
  const tour = page.getByRole('region', { name: 'Tour' })
  assert.equal(await tour.count(), 0)
  await page.getByRole('link', { name: 'Overview' }).click()
  await tour.getByText('step 1 of 3').waitFor()
})

test('the tour does not move for users who want less motion', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  for (const [reducedMotion, name] of [
    ['reduce', 'none'],
    ['no-preference', 'tour-comes'],
  ] as const) {
    await page.emulateMedia({ reducedMotion })
    await goTo('help')
    await page.getByRole('button', { name: 'Start the tour' }).click()
    const tour = page.getByRole('region', { name: 'Tour' })
    await tour.waitFor()
    assert.equal(await page.evaluate(`getComputedStyle(document.querySelector('.tour')).animationName`), name)
  }
})

test('where the browser keeps nothing, the tour is shown once in a visit', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { ...FIRST, isStrange: true })
  await page.addInitScript(`for (const name of ['localStorage', 'sessionStorage'])
    Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })`)
  await page.goto('about:blank')
  await goTo(`#key=${manage.adminKey}`)
  const tour = page.getByRole('region', { name: 'Tour' })
  await tour.getByRole('button', { name: 'Skip' }).click()
  const pages = page.getByRole('navigation', { name: 'Pages' })
  await pages.getByRole('link', { name: 'Help' }).click()
  await page.getByRole('heading', { name: 'Help', level: 1 }).waitFor()
  await pages.getByRole('link', { name: 'Overview' }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  assert.equal(await tour.count(), 0)
})
