import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { openDashboard } from './browser.ts'

const TOTAL = 1_000_000

test('a million rows are scrolled through, forth and back, and what is looked at is shown', {
  skip: skipped('chromium'),
}, async (t) => {
  const { page, goTo } = await openDashboard(t)
  let asked = 0
  await page.route('**/v1/signatures?*', async (route) => {
    asked++
    const query = new URL(route.request().url()).searchParams
    const [number, limit] = [Number(query.get('page')), Number(query.get('limit'))]
    const signatures = Array.from({ length: limit }, (_, at) => ({
      ...{ fingerprint: `row-${(number - 1) * limit + at}`, type: 'ja4', agent_name: 'x', agent_id: 'x' },
      ...{ kind: 'tool', first_seen: '2026-11-21T09:30:00.000Z', last_seen: null, confidence: 0.5 },
      ...{ observations: 1, requests_seen: 1, source: 'builtin', status: 'active', decisive: false },
    }))
    // As a database takes.
    await new Promise((resolve) => setTimeout(resolve, 80))
    await route.fulfill({ json: { signatures, total: TOTAL, page: number, limit } }).catch(() => undefined)
  })
  await goTo('signatures')
  const table = page.getByRole('table', { name: 'Signatures' })
  await table.getByRole('link', { name: 'row-0', exact: true }).waitFor()
  const scrollTo = (share: number) =>
    table.evaluate((element, to) => {
      const { scrollHeight, clientHeight } = element as unknown as {
        scrollHeight: number
        clientHeight: number
      }
      Object.assign(element, { scrollTop: to * (scrollHeight - clientHeight) })
    }, share)
  // Faster than anything is answered, there and back again.
  for (let step = 0; step < 40; step++) {
    await scrollTo(Math.abs(Math.sin(step)))
    await page.waitForTimeout(20)
  }
  await scrollTo(0.5)
  await table
    .getByText(/^row-(499|500)\d{3}$/)
    .first()
    .waitFor()
  await scrollTo(0.1)
  await scrollTo(0.5)
  await table
    .getByText(/^row-(499|500)\d{3}$/)
    .first()
    .waitFor()
  await scrollTo(1)
  await table.getByText(`row-${TOTAL - 1}`, { exact: true }).waitFor()
  await scrollTo(0)
  await table.getByText('row-0', { exact: true }).waitFor()
  // However far: few rows are there at a time.
  assert.ok((await table.getByRole('row').count()) < 60)
  assert.ok(asked < 150, `${asked} parts were asked for`)
  // By the keys, of which none passes a row over.
  await table.focus()
  const rows = async () => {
    const texts = await table.getByRole('link').allTextContents()
    return texts.map((text) => Number(text.replace('row-', '')))
  }
  for (let step = 0; step < 4; step++) {
    const before = await rows()
    await page.keyboard.press('PageDown')
    await page.waitForTimeout(150)
    const after = await rows()
    assert.ok(after[0]! <= before.at(-1)! && after.at(-1)! > before.at(-1)!, `${before} ${after}`)
  }
  await page.keyboard.press('PageUp')
  await page.keyboard.press('ArrowUp')
  await page.keyboard.press('Home')
  await table.getByText('row-0', { exact: true }).waitFor()
})
