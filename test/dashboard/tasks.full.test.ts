import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { type Test, test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { openDashboard } from './browser.ts'

/**
 * Tasks of an analyst, as a person clicks them, from the overview on. A step is a click, a choice, or a text with Enter.
 * Each task has a number of steps that it may take.
 */
const skip = skipped('chromium')
const DAY_MS = 86_400_000
const WIDE = { width: 1_440, height: 900 }

test('find the request of a blocked person by the number on the error page', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  const blocked = seen(1, { ...PERSON, done: 'block', rule: 'no-night', seenAtMs: Date.now() })
  await manage.take([...crowd(), blocked])
  await steps.click('link', 'Traffic')
  await steps.enter(page.getByLabel('Find by id'), blocked.id)
  await page.getByText('block: no-night').waitFor()
  await page.getByText('Explain this decision rule by rule').waitFor()
  steps.atMost(2)
})

test('find what one network did yesterday', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  const yesterdayMs = new Date().setHours(0, 0, 0, 0) - DAY_MS / 2
  const from = { ...PERSON, seenAtMs: yesterdayMs }
  await manage.take([
    ...crowd(),
    seen(1, { ...from, address: '198.51.100.7', path: '/one' }),
    seen(2, { ...from, address: '198.51.100.9', path: '/two' }),
    seen(3, { ...from, address: '198.51.100.9', path: '/today', seenAtMs: Date.now() }),
    seen(4, { ...from, address: '203.0.113.1', path: '/other' }),
  ])
  await steps.click('link', 'Traffic')
  await steps.enter(page.getByLabel('Address or network'), '198.51.100.0/24')
  await steps.enter(page.getByLabel('Since'), localTime(yesterdayMs - DAY_MS / 2))
  await steps.enter(page.getByLabel('Until'), localTime(yesterdayMs + DAY_MS / 2))
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link', { name: '/one' }).waitFor()
  await table.getByRole('link', { name: '/today' }).waitFor({ state: 'detached' })
  assert.equal(await table.getAttribute('aria-rowcount'), '3')
  steps.atMost(4)
})

test('make a rule on trial for a crawler, and see which clients it hits', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  await manage.take(crowd())
  await steps.click('link', 'Traffic')
  const agents = page.getByRole('region', { name: 'Requests by Agent' })
  await steps.press(agents.getByRole('button', { name: /^gptbot/i }))
  await steps.press(agents.getByRole('link', { name: 'Make a rule' }))
  await page.getByText('is new and on trial').waitFor()
  await page.getByText(/It stops 20 of 60 recorded requests/).waitFor()
  await steps.click('button', 'Apply…')
  await steps.press(page.getByRole('dialog').getByRole('button', { name: 'Apply' }))
  await page.getByText('The policy is in force.').waitFor()
  const { rules } = (await manage.ask('GET', '/v1/policy')).body.policy
  assert.deepEqual(rules, [{ name: 'gptbot', when: { agent: 'gptbot' }, action: 'block', dry_run: true }])
  steps.atMost(5)
})

test('prove that no person was blocked last week', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  await manage.take([
    ...crowd(),
    seen(1, { ...PERSON, seenAtMs: Date.now() - 6 * DAY_MS }),
    // Before that week.
    seen(2, { ...PERSON, done: 'block', seenAtMs: Date.now() - 10 * DAY_MS }),
  ])
  await steps.click('button', '7d')
  const figure = page.locator('.figures > div', { hasText: 'People blocked' })
  await figure.getByRole('link', { name: '0', exact: true }).waitFor()
  await page.getByText(/^61 requests,/).waitFor()
  await page.getByText('All requests are counted').waitFor()
  steps.atMost(1)
})

test('find the app with the most spoofed browsers', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  const spoofed = {
    ...{ verdict: 'automation', evidence: ['names-browser', 'spoofed-browser'], seenAtMs: Date.now() },
  } as const
  await manage.take([
    ...crowd(),
    ...[1, 2, 3].map((number) => seen(number, { ...spoofed, app: 'blog' })),
    seen(4, { ...spoofed, app: 'shop' }),
  ])
  await steps.click('link', 'Traffic')
  const against = page.getByRole('region', { name: 'Requests by Contradicted by' })
  await steps.press(against.getByRole('button', { name: 'spoofed browser 4' }))
  await page.getByText('Of 4 recorded requests.').waitFor()
  const apps = page.getByRole('region', { name: 'Requests by App' }).getByRole('button')
  assert.equal(
    await apps
      .first()
      .innerText()
      .then((text) => text.replaceAll(/\s+/g, ' ')),
    'blog 3',
  )
  steps.atMost(2)
})

test('rotate the secret of a webhook', { skip }, async (t) => {
  const receiver = await HookReceiver.start(t)
  const { manage, page, steps } = await begin(t)
  const { body } = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['new_agent'] })
  await steps.click('link', 'Webhooks')
  await steps.press(page.getByRole('link', { name: receiver.url }))
  await steps.click('button', 'Rotate secret')
  await steps.press(page.getByRole('dialog').getByRole('button', { name: 'Rotate' }))
  const secret = await page.getByText(/^whsec_/).textContent()
  assert.notEqual(secret, body.secret)
  steps.atMost(4)
})

test('give a team its key', { skip }, async (t) => {
  const { manage, page, steps } = await begin(t)
  for (const id of ['shop', 'till'])
    assert.equal(
      (await manage.ask('POST', '/v1/apps', { id, team: 'retail', hosts: [`${id}.example`] })).status,
      201,
    )
  await steps.click('link', 'Settings')
  await steps.click('button', 'New key')
  await steps.fill(page.getByLabel('Name'), 'retail')
  await steps.fill(page.getByLabel('Apps'), 'shop, till')
  await steps.click('button', 'Create')
  const key = (await page.locator('pre').textContent())!
  const { apps } = (await manage.ask('GET', '/v1/me', undefined, { authorization: `Bearer ${key}` })).body
  assert.deepEqual(apps, ['shop', 'till'])
  steps.atMost(5)
})

async function begin(t: Test) {
  const opened = await openDashboard(t, {
    knows: true,
    allowPrivateWebhooks: true,
    browser: { viewport: WIDE },
  })
  await opened.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  return { ...opened, steps: new Steps(opened.page) }
}

type Target = ReturnType<Page['getByLabel']>

/** Counts what a person does. */
class Steps {
  readonly #page: Page
  #count = 0

  constructor(page: Page) {
    this.#page = page
  }

  async click(role: 'link' | 'button', name: string): Promise<void> {
    await this.press(this.#page.getByRole(role, { name, exact: true }))
  }

  async press(target: Target): Promise<void> {
    this.#count++
    await target.first().click()
  }

  async fill(target: Target, text: string): Promise<void> {
    this.#count++
    await target.first().fill(text)
  }

  async enter(target: Target, text: string): Promise<void> {
    await this.fill(target, text)
    await target.first().press('Enter')
  }

  atMost(steps: number): void {
    assert.ok(this.#count <= steps, `${this.#count} steps`)
  }
}

/** Sixty requests of today: a third of a crawler, the others of people. */
function crowd() {
  const seenAtMs = Date.now()
  return Array.from({ length: 60 }, (_, at) =>
    seen(100 + at, { ...(at % 3 === 0 ? GPTBOT : PERSON), seenAtMs: seenAtMs - at, path: `/page/${at}` }),
  )
}

/** In the zone of the browser. */
function localTime(ms: number): string {
  const parts = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' },
  }).format(ms)
  return parts.replace(' ', 'T')
}

const PERSON = {
  ...{ verdict: 'human', done: 'pass', confidence: 0.8, host: 'shop.example', app: 'shop' },
  ...{ agent: null, software: null, category: null },
} as const
const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', purposes: ['training'], confidence: 0.97 },
  ...{ host: 'shop.example', app: 'shop', done: 'tag' },
} as const
