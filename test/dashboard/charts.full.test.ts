import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { signatureOf, softwareOf } from '../contract/catalogue.ts'
import { skipped } from '../e2e/programs.ts'
import { Store } from '../../src/store/store.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
const WIDTHS = [1_440, 1_024, 390]

test('labels of time do not overlap at any width', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t)
  await manage.take([seen(1, { verdict: 'human', seenAtMs: Date.now() })])
  await watchCanvas(page)
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    await page.reload()
    await page.getByRole('img', { name: /^Agents by category/ }).waitFor()
    await page.waitForTimeout(1_000) // for the plots to be drawn
    const texts = (await page.evaluate('drawnTexts()')) as readonly DrawnText[]
    const times = texts.filter(({ text }) => /^\d\d:\d\d(:\d\d)?$/.test(text))
    assert.ok(times.length > 2, `${times.length} labels`)
    for (const plot of Map.groupBy(times, ({ canvas }) => canvas).values()) {
      const sorted = plot.toSorted((one, other) => one.left - other.left)
      for (const [at, { text, left }] of sorted.entries()) {
        const before = sorted[at - 1]
        if (before !== undefined)
          assert.ok(left >= before.right + 4, `${width} px: ${text} at ${left} begins before ${before.right}`)
      }
    }
  }
})

test('the last five minutes begin before the page was opened, with gaps where nothing is known', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  const beforeMs = Date.now() - 120_000
  await manage.take(
    Array.from({ length: 120 }, (_, at) =>
      seen(at, { verdict: 'agent', agent: 'gptbot', category: 'crawler', done: 'tag', seenAtMs: beforeMs }),
    ),
  )
  await goTo('live')
  await page.getByText('Listening').waitFor()
  const plot = page.locator('figure', { hasText: 'Requests per second' })
  await plot.getByRole('img', { name: /Agents 1[12]\d,/ }).waitFor()
  await page.getByText('From before this page was opened: averages of a minute.').waitFor()
  await plot.getByRole('button', { name: 'Table' }).click()
  const cells = plot.getByRole('row').locator('td:nth-of-type(2)')
  // 120 requests in a minute.
  assert.ok((await cells.allTextContents()).filter((text) => text === '2').length >= 50)
  // Without statistics, nothing is said about that time.
  await page.route('**/v1/stats*', (route) => route.abort())
  await page.reload()
  await page.getByText('Listening').waitFor()
  await page.locator('.figures dd', { hasText: '0' }).first().waitFor()
  await plot.getByRole('button', { name: 'Table' }).click()
  const unknown = (await cells.allTextContents()).filter((text) => text === 'unknown')
  assert.ok(unknown.length > 250, `${unknown.length} unknown`)
})

test('counts of intervals are bars', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t)
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler' } as const
  await watchCanvas(page)
  await manage.take([1, 2, 3].map((number) => seen(number, { ...agent, seenAtMs: Date.now() })))
  await page.reload()
  await page.getByRole('img', { name: /^Agents by category: .*Crawlers 3/ }).waitFor()
  await page.waitForTimeout(1_000) // for the plots to be drawn
  // The only hour with requests is as wide as an hour, and begins at the left end of it.
  const [width, shapes] = (await page.evaluate(`drawnBars('.canvas[aria-label^="Agents by category"]')`)) as [
    number,
    { readonly width: number; readonly height: number }[],
  ]
  const high = shapes.filter(({ height }) => height > 20)
  assert.ok(high.length > 0)
  for (const bar of high) assert.ok(bar.width <= width / 24, `${bar.width} of ${width} px for an hour`)
})

test('the map of TLS stacks shows every dot whole, whatever their order', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  const store = await Store.open(manage.storeUrl)
  await store.transaction(async (queries) => {
    await store.catalogue.addSoftware(softwareOf({ id: 'wide', name: 'Wide' }), 1, queries)
    // The most observed ones are listed first, so 59 is neither the first nor the last.
    for (const [ciphers, extensions, observations] of [
      [31, 12, 9],
      [59, 18, 7],
      [3, 9, 5],
      [16, 22, 3],
    ] as const) {
      const counts = [ciphers, extensions].map((count) => String(count).padStart(2, '0')).join('')
      const value = `t13d${counts}h2_8daaf6152771_e5627efa2ab1`
      const signature = signatureOf({ type: 'ja4', value, softwareId: 'wide', observations })
      await store.catalogue.addSignature(signature, queries)
    }
  })
  await store.close()
  await watchCanvas(page)
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 })
    await goTo('signatures/map')
    await page.locator('.canvas.tall canvas').waitFor()
    await page.waitForTimeout(500) // for the plot to be drawn
    const dots = (await page.evaluate('drawnDots()')) as readonly Dot[]
    assert.equal(dots.length, 4)
    for (const { x, y, radius, width: right, height } of dots)
      assert.ok(
        x > 40 && x + radius <= right && y - radius >= 0 && y < height - 40,
        `${width} px: ${x}, ${y}`,
      )
  }
  await looksFine(page, 'signatures-map-wide')
})

test('on the overview each colour of a legend means one thing', { skip }, async (t) => {
  const { manage, page } = await openDashboard(t)
  await manage.take([seen(1, { verdict: 'human', seenAtMs: Date.now() })])
  await page.getByRole('img', { name: /^Confidence of verdicts/ }).waitFor()
  const legend = (await page.evaluate(
    `[...document.querySelectorAll('.legend li')].map((item) =>
      [item.textContent.trim(), getComputedStyle(item.querySelector('.swatch')).backgroundColor])`,
  )) as readonly (readonly [string, string])[]
  assert.ok(legend.length > 10)
  assert.equal(new Set(legend.map(([, colour]) => colour)).size, legend.length, JSON.stringify(legend))
})

interface DrawnText {
  readonly canvas: number
  readonly text: string
  readonly left: number
  readonly right: number
}

interface Dot {
  readonly x: number
  readonly y: number
  readonly radius: number
  /** Of the canvas. */
  readonly width: number
  readonly height: number
}

/** Keeps what a page draws last on each canvas, from its next load on. */
async function watchCanvas(page: Page): Promise<void> {
  await page.addInitScript(`
    const canvases = new Map(), proto = CanvasRenderingContext2D.prototype
    const of = (ctx) => {
      if (!canvases.has(ctx)) canvases.set(ctx, { texts: [], dots: [], bars: [] })
      return canvases.get(ctx)
    }
    const { clearRect, fillText, arc, fill } = proto
    proto.clearRect = function (...box) {
      canvases.delete(this)
      return clearRect.apply(this, box)
    }
    proto.fillText = function (text, x, ...rest) {
      const { width } = this.measureText(text), { e } = this.getTransform()
      const shift = { center: width / 2, right: width, end: width }[this.textAlign] ?? 0
      of(this).texts.push({ text, left: e + x - shift, right: e + x - shift + width })
      return fillText.call(this, text, x, ...rest)
    }
    proto.arc = function (x, y, radius, ...rest) {
      of(this).dots.push({ x, y, radius, width: this.canvas.width, height: this.canvas.height })
      return arc.call(this, x, y, radius, ...rest)
    }
    const boxes = new WeakMap()
    const { rect } = Path2D.prototype
    Path2D.prototype.rect = function (x, y, width, height) {
      boxes.set(this, [...(boxes.get(this) ?? []), { width, height }])
      return rect.call(this, x, y, width, height)
    }
    proto.fill = function (path, ...rest) {
      if (path instanceof Path2D) of(this).bars.push(...(boxes.get(path) ?? []))
      return path === undefined ? fill.call(this) : fill.call(this, path, ...rest)
    }
    window.drawnTexts = () => [...canvases.values()].flatMap(({ texts }, canvas) => texts.map((each) => ({ canvas, ...each })))
    window.drawnDots = () => [...canvases.values()].flatMap(({ dots }) => dots)
    window.drawnBars = (selector) => {
      const canvas = document.querySelector(selector + ' canvas')
      return [canvas.width, of(canvas.getContext('2d')).bars]
    }
  `)
}
