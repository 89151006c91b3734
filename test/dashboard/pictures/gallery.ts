import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { DAY_MS, NOW_MS } from '../../contract/seen.ts'
import { SEEN, SETTINGS, TestManagement } from '../../manage/management.ts'
import type { Owner } from '../../store/databases.ts'
import { executable, toured } from '../browser.ts'
import { fillBusy, WORKERS } from './busy.ts'
import { SCENES, type Scene } from './scenes.ts'
import { sheetOf } from './sheet.ts'

export interface Sheet {
  readonly scene: Scene
  readonly bytes: Buffer
}

/** What decides how a browser draws the same page. */
export interface Machine {
  readonly chromium: string
  /** The width of a text in the fonts of the dashboard. */
  readonly fonts: readonly number[]
}

export interface Gallery {
  readonly machine: Machine
  /** A page for pictures, without a dashboard. */
  readonly easel: Page
  /** Of the scenes with these names; empty: of all. */
  sheets(names?: readonly string[]): AsyncGenerator<Sheet>
}

/** Dashboards with the same data and the same clock in every run. */
export async function openGallery(t: Owner | Test): Promise<Gallery> {
  const browser = await chromium.launch({ executablePath: executable(), args: ['--no-sandbox'] })
  t.teardown(() => browser.close())
  const easel = await browser.newPage()
  return {
    easel,
    machine: await machineOf(browser, easel),
    async *sheets(names = []) {
      const wanted = SCENES.filter(({ name }) => names.length === 0 || names.includes(name))
      for (const state of ['busy', 'empty', 'failing', 'signed-out'] as const) {
        const scenes = wanted.filter((each) => each.state === state)
        if (scenes.length === 0) continue
        const manage = await planeFor(t, state)
        const page = await pageFor(browser, manage, state)
        for (const scene of scenes) {
          const shots = await shotsOf(page, manage, scene)
          yield { scene, bytes: await sheetOf(easel, shots) }
        }
        await page.context().close()
        await manage.stop()
      }
    },
  }
}

async function planeFor(t: Owner | Test, state: Scene['state']): Promise<TestManagement> {
  const manage = await TestManagement.start(t, {
    ...{ knows: state === 'busy', nowMs: () => NOW_MS, workers: WORKERS },
    ...{ seen: KEPT, auditRetentionMs: KEPT_MS },
    payments: { ...SETTINGS.payments, retentionMs: KEPT_MS },
    // Only at its own address, it offers to sign in with an account.
    ...(state !== 'signed-out' && { host: 'gate.example' }),
  })
  if (state === 'busy') await fillBusy(manage)
  return manage
}

async function pageFor(browser: Browser, manage: TestManagement, state: Scene['state']): Promise<Page> {
  const context = await browser.newContext({
    ...{ timezoneId: 'Europe/Berlin', reducedMotion: 'reduce' },
    storageState: toured(manage.url),
  })
  const page = await context.newPage()
  page.setDefaultTimeout(WAIT_MS)
  await page.clock.setFixedTime(NOW_MS)
  if (state === 'signed-out') return page
  await page.goto(`${manage.url}/dashboard/#key=${manage.adminKey}`)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  // When a process began to use a policy, it knows from its own clock.
  await page.route(/\/v1\/policy$/, async (route) => {
    const response = await route.fetch()
    const inForce = { ...(await response.json()), in_force_since: new Date(NOW_MS).toISOString() }
    await route.fulfill({ response, json: inForce })
  })
  if (state === 'failing')
    await page.route(/\/v1\/(?!me)/, (route) => route.fulfill({ status: 503, json: UNAVAILABLE }))
  return page
}

async function shotsOf(
  page: Page,
  manage: TestManagement,
  { name, path, shows, prepare }: Scene,
): Promise<Buffer[]> {
  await page.setViewportSize(VIEWPORTS[0])
  const address = typeof path === 'string' ? path : await path(manage)
  await page.goto(`${manage.url}/dashboard/${address}`)
  await page.getByText(shows).first().waitFor()
  await prepare?.(page)
  const shots: Buffer[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    for (const viewport of VIEWPORTS) {
      await page.setViewportSize(viewport)
      const shot = await settled(page)
      keep(shot, `${name}-${colorScheme}-${viewport.width}`)
      shots.push(shot)
    }
  }
  return shots
}

/** In full size, in the folder that DASHBOARD_PICTURES names. */
function keep(shot: Buffer, name: string): void {
  const folder = process.env['DASHBOARD_PICTURES']
  if (folder === undefined) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${name}.png`), shot)
}

/** Once two pictures in a row are the same. What changes with each run is hidden. */
async function settled(page: Page): Promise<Buffer> {
  let before: Buffer = Buffer.alloc(0)
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const shot = await page.screenshot({
      animations: 'disabled',
      mask: [page.locator('[role=status].hidden')],
    })
    if (shot.equals(before)) break
    before = shot
    await pause(SETTLE_MS)
  }
  return before
}

async function machineOf(browser: Browser, easel: Page): Promise<Machine> {
  const widths =
    await easel.evaluate(`['system-ui, sans-serif', 'ui-monospace, Menlo, Consolas, monospace'].map((font) => {
    const drawing = new OffscreenCanvas(1, 1).getContext('2d')
    drawing.font = '100px ' + font
    return Math.round(drawing.measureText('Sphinx of black quartz, judge my vow 0123456789').width)
  })`)
  return { chromium: browser.version().split('.')[0]!, fonts: widths as readonly number[] }
}

const VIEWPORTS = [
  { width: 1_440, height: 1_200 },
  { width: 1_024, height: 1_024 },
  { width: 390, height: 900 },
] as const
/** The data is of a fixed day, and what is old is deleted by the real clock. */
const KEPT_MS = 36_500 * DAY_MS
const KEPT = {
  ...{ ...SEEN, sightingsMs: KEPT_MS },
  rollups: { minutesMs: KEPT_MS, hoursMs: KEPT_MS, daysMs: KEPT_MS },
}
const UNAVAILABLE = {
  ...{ type: 'about:blank', title: 'Unavailable', status: 503, code: 'unavailable' },
  ...{ detail: 'the database is unavailable', request_id: 'req_1' },
}
const WAIT_MS = 30_000
const TRIES_MAX = 12
const SETTLE_MS = 120
