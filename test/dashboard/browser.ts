import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { TestManagement, type TestOptions } from '../manage/management.ts'

/** The dashboard of a management plane, in a real Chromium. */
export interface OpenDashboard {
  readonly manage: TestManagement
  readonly page: Page
  /** Goes to a page of it: `signatures?q=curl`. */
  goTo(path: string): Promise<void>
  /** Unexpected errors in the page. */
  readonly complaints: string[]
}

export interface DashboardOptions extends TestOptions {
  readonly browser?: BrowserContextOptions
  /** Without a session. */
  readonly isStrange?: boolean
  /** In a browser that has not shown the tour yet. */
  readonly isFirstVisit?: boolean
}

/** What the browser keeps after the tour was shown. */
export function toured(url: string) {
  const localStorage = [{ name: 'gatehouse.tour', value: 'shown' }]
  return { cookies: [], origins: [{ origin: new URL(url).origin, localStorage }] }
}

/** Ends with the test, which fails where the page complained of something. */
export async function openDashboard(t: Test, options: DashboardOptions = {}): Promise<OpenDashboard> {
  const { browser: look, isStrange = false, isFirstVisit = false, ...given } = options
  const chromium = held(t)
  const manage = await TestManagement.start(t, given)
  const context = await (await chromium).newContext({
    ...{ viewport: DESK, timezoneId: 'Europe/Berlin', ...look },
    ...(!isFirstVisit && { storageState: toured(manage.url) }),
  })
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const complaints = complaintsOf(page, manage.url)
  t.teardown(() => assert.deepEqual(complaints, []))
  const goTo = async (path: string) => {
    await page.goto(`${manage.url}/dashboard/${path}`)
  }
  await goTo(isStrange ? '' : `#key=${manage.adminKey}`)
  if (!isStrange) await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  return { manage, page, goTo, complaints }
}

/**
 * The page works with a screen reader, in light and dark, and on a phone. Pictures of it
 * are kept in the folder that DASHBOARD_PICTURES names.
 */
export async function looksFine(page: Page, name: string): Promise<void> {
  for (const [look, scheme, viewport] of LOOKS) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
    await page.setViewportSize(viewport)
    await page.waitForTimeout(200)
    await picture(page, `${name}-${look}`)
    assert.equal(await page.getByText('This page crashed').count(), 0, `${name}, ${look}: it met a bug`)
    assert.deepEqual(await violations(page), [], `${name}, ${look}`)
    const width = (await page.evaluate('document.documentElement.scrollWidth')) as number
    assert.ok(width <= viewport.width, `${name}, ${look}: ${width} px are wider than the window`)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(DESK)
}

async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['DASHBOARD_PICTURES']
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
}

/**
 * The Chromium of all tests of a file, each of which has a context of its own in it: starting one takes two seconds of
 * the processor. It ends when no further test has begun for a moment, because the file cannot end before it.
 */
async function held(t: Test): Promise<Browser> {
  clearTimeout(ending)
  holders++
  // Without the limit, it starts renderers ahead for pages that never come.
  const args = ['--no-sandbox', '--renderer-process-limit=1']
  browser ??= chromium.launch({ executablePath: executable(), args })
  t.teardown(() => {
    if (--holders === 0) ending = setTimeout(endBrowser, IDLE_MS)
  })
  return browser
}

async function endBrowser(): Promise<void> {
  const ended = browser
  browser = null
  await (await ended)?.close()
}

let browser: Promise<Browser> | null = null
let holders = 0
let ending: NodeJS.Timeout | undefined
const IDLE_MS = 1_000

/** What axe finds, in words. */
async function violations(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(AXE)
  const found = page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
      ({ id, nodes }) => id + ': ' + nodes.map(({ html, failureSummary }) => html + ' ' + failureSummary).join('; ')))`,
  )
  return (await found) as readonly string[]
}

/** Errors of scripts, what breaks the page's rules, and what it asked for elsewhere. */
function complaintsOf(page: Page, own: string): string[] {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('console', (message) => {
    // Of a refusal that the page itself shows, the browser says so, too.
    const isRefusal = message.text().startsWith('Failed to load resource')
    if (['error', 'warning'].includes(message.type()) && !isRefusal) complaints.push(message.text())
  })
  page.on('request', (request) => {
    const url = request.url()
    if (!url.startsWith(own) && !url.startsWith('blob:')) complaints.push(`asked for ${url}`)
  })
  return complaints
}

export function executable(): string {
  return spawnSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).stdout.trim()
}

const DESK = { width: 1_280, height: 900 }
const LOOKS = [
  ['light', 'light', DESK],
  ['dark', 'dark', DESK],
  ['phone', 'light', { width: 390, height: 844 }],
] as const
const AXE = `${readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')};0`
