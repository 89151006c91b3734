import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import type { Sighting } from '../../src/plane/sighting.ts'
import { seen } from '../contract/seen.ts'
import type { TestManagement } from '../manage/management.ts'

/**
 * A task of an analyst, as a person clicks it, from the overview on. A step is a click, a choice, or a text with Enter.
 * Each task has a number of steps that it may take.
 */
export interface Task {
  readonly name: string
  readonly stepsMax: number
  /** Requests that came in before it begins. */
  readonly requests: (place: Place) => readonly Sighting[]
  readonly prepare?: (manage: TestManagement, place: Place) => Promise<unknown>
  readonly run: (on: Running) => Promise<unknown>
}

/** Where tasks are done. */
export interface Place {
  /** Without any requests but those of the task. */
  readonly isEmpty: boolean
  /** Requests of a crawler; twice as many are of people. */
  readonly crawled: number
  /** Of a server that takes deliveries. */
  readonly hook: string
}

interface Running {
  readonly manage: TestManagement
  readonly page: Page
  readonly steps: Steps
  readonly place: Place
}

/** Does what a person does, and counts it. */
export class Steps {
  readonly #page: Page
  /** When each began. */
  readonly startsMs: number[] = []

  constructor(page: Page) {
    this.#page = page
  }

  get count(): number {
    return this.startsMs.length
  }

  async click(role: 'link' | 'button', name: string): Promise<void> {
    await this.press(this.#page.getByRole(role, { name, exact: true }))
  }

  async press(target: Target): Promise<void> {
    this.startsMs.push(performance.now())
    await target.first().click()
  }

  async fill(target: Target, text: string): Promise<void> {
    this.startsMs.push(performance.now())
    await target.first().fill(text)
  }

  async enter(target: Target, text: string): Promise<void> {
    await this.fill(target, text)
    await target.first().press('Enter')
  }
}

type Target = ReturnType<Page['getByLabel']>

const DAY_MS = 86_400_000
const PERSON = {
  ...{ verdict: 'human', done: 'pass', confidence: 0.8, host: 'shop.example', app: 'shop' },
  ...{ agent: null, software: null, category: null },
} as const
const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', purposes: ['training'], confidence: 0.97 },
  ...{ host: 'shop.example', app: 'shop', done: 'tag' },
} as const
const SPOOFED = {
  ...{ verdict: 'automation', evidence: ['names-browser', 'spoofed-browser'] },
} as const
const BLOCKED = { ...PERSON, done: 'block', rule: 'no-night' } as const

export const TASKS: readonly Task[] = [
  {
    name: 'find the request of a blocked person by the number on the error page',
    stepsMax: 2,
    requests: (place) => [...crowd(place), seen(1, { ...BLOCKED, seenAtMs: Date.now() })],
    run: async ({ page, steps }) => {
      await steps.click('link', 'Traffic')
      await steps.enter(page.getByLabel('Find by id'), seen(1).id)
      await page.getByText('block: no-night').waitFor()
      await page.getByText('Explain this decision rule by rule').waitFor()
    },
  },
  {
    name: 'find what one network did yesterday',
    stepsMax: 4,
    requests: (place) => {
      const from = { ...PERSON, seenAtMs: yesterdayMs() }
      return [
        ...crowd(place),
        seen(2, { ...from, address: '203.0.113.7', path: '/one' }),
        seen(3, { ...from, address: '203.0.113.9', path: '/two' }),
        seen(4, { ...from, address: '203.0.113.9', path: '/today', seenAtMs: Date.now() }),
        seen(5, { ...from, address: '192.0.2.1', path: '/other' }),
      ]
    },
    run: async ({ page, steps }) => {
      await steps.click('link', 'Traffic')
      await steps.enter(page.getByLabel('Address or network'), '203.0.113.0/24')
      await steps.enter(page.getByLabel('Since'), localTime(yesterdayMs() - DAY_MS / 2))
      await steps.enter(page.getByLabel('Until'), localTime(yesterdayMs() + DAY_MS / 2))
      const table = page.getByRole('table', { name: 'Requests' })
      await table.getByRole('link', { name: '/one' }).waitFor()
      await table.getByRole('link', { name: '/today' }).waitFor({ state: 'detached' })
      assert.equal(await table.getAttribute('aria-rowcount'), '3')
    },
  },
  {
    name: 'make a rule on trial for a crawler, and see which clients it hits',
    stepsMax: 5,
    requests: crowd,
    run: async ({ manage, page, steps, place }) => {
      await steps.click('link', 'Traffic')
      const agents = page.getByRole('region', { name: 'Requests by Agent' })
      await steps.press(agents.getByRole('button', { name: /^gptbot/i }))
      await steps.press(agents.getByRole('link', { name: 'Make a rule' }))
      await page.getByText('is new and on trial').waitFor()
      const { crawled, isEmpty } = place
      const stopped = isEmpty
        ? `It stops ${crawled} of ${3 * crawled} recorded`
        : /It stops .* of .* recorded/
      await page.getByText(stopped).waitFor()
      await steps.click('button', 'Apply…')
      await steps.press(page.getByRole('dialog').getByRole('button', { name: 'Apply' }))
      await page.getByText('The policy is in force.').waitFor()
      const { rules } = (await manage.ask('GET', '/v1/policy')).body.policy
      assert.deepEqual(rules, [{ name: 'gptbot', when: { agent: 'gptbot' }, action: 'block', dry_run: true }])
    },
  },
  {
    name: 'prove that no person was blocked last week',
    stepsMax: 1,
    requests: (place) => [
      ...crowd(place),
      seen(6, { ...PERSON, seenAtMs: Date.now() - 6 * DAY_MS }),
      // Before that week.
      seen(7, { ...PERSON, done: 'block', seenAtMs: Date.now() - 10 * DAY_MS }),
    ],
    run: async ({ page, steps, place }) => {
      await steps.click('button', '7d')
      const figure = page.locator('.figures > div', { hasText: 'People blocked' })
      // Another task has blocked one.
      const link = place.isEmpty ? { name: '0', exact: true } : {}
      await figure.getByRole('link', link).waitFor()
      await page.getByText(place.isEmpty ? `${3 * place.crawled + 1} requests,` : /\d requests,/).waitFor()
      await page.getByText('All requests are counted').waitFor()
    },
  },
  {
    name: 'find the app with the most spoofed browsers',
    stepsMax: 2,
    requests: (place) => [
      ...crowd(place),
      ...[8, 9, 10].map((number) => seen(number, { ...SPOOFED, app: 'blog', seenAtMs: Date.now() })),
      seen(11, { ...SPOOFED, app: 'shop', seenAtMs: Date.now() }),
    ],
    run: async ({ page, steps }) => {
      await steps.click('link', 'Traffic')
      const against = page.getByRole('region', { name: 'Requests by Contradicted by' })
      await steps.press(against.getByRole('button', { name: 'spoofed browser 4' }))
      await page.getByText('Of 4 recorded requests.').waitFor()
      const apps = page.getByRole('region', { name: 'Requests by App' }).getByRole('button')
      assert.equal((await apps.first().innerText()).replaceAll(/\s+/g, ' '), 'blog 3')
    },
  },
  {
    name: 'rotate the secret of a webhook',
    stepsMax: 4,
    requests: () => [],
    prepare: (manage, { hook }) => manage.ask('POST', '/v1/webhooks', { url: hook, events: ['new_agent'] }),
    run: async ({ manage, page, steps, place: { hook } }) => {
      await steps.click('link', 'Webhooks')
      await steps.press(page.getByRole('link', { name: hook }))
      await steps.click('button', 'Rotate secret')
      await steps.press(page.getByRole('dialog').getByRole('button', { name: 'Rotate' }))
      await page.getByText(/^whsec_/).waitFor()
      const { audit } = (await manage.ask('GET', '/v1/audit?action=rotateWebhookSecret')).body
      assert.ok(audit.length > 0)
    },
  },
  {
    name: 'give a team its key',
    stepsMax: 5,
    requests: () => [],
    prepare: async (manage) => {
      for (const id of ['shop', 'till']) {
        const app = { id, team: 'retail', hosts: [`${id}.example`] }
        assert.ok([201, 409].includes((await manage.ask('POST', '/v1/apps', app)).status))
      }
    },
    run: async ({ manage, page, steps }) => {
      await steps.click('link', 'Settings')
      await steps.click('button', 'New key')
      await steps.fill(page.getByLabel('Name'), 'retail')
      await steps.fill(page.getByLabel('Apps'), 'shop, till')
      await steps.click('button', 'Create')
      const key = (await page.locator('pre').textContent())!
      const me = await manage.ask('GET', '/v1/me', undefined, { authorization: `Bearer ${key}` })
      assert.deepEqual(me.body.apps, ['shop', 'till'])
    },
  },
]

/** Requests of today: a third of a crawler, the others of people. */
function crowd({ crawled }: Place): readonly Sighting[] {
  const seenAtMs = Date.now()
  return Array.from({ length: 3 * crawled }, (_, at) =>
    seen(100 + at, { ...(at % 3 === 0 ? GPTBOT : PERSON), seenAtMs: seenAtMs - at, path: `/page/${at}` }),
  )
}

/** Its noon. */
function yesterdayMs(): number {
  return new Date().setHours(0, 0, 0, 0) - DAY_MS / 2
}

/** In the zone of the browser. */
function localTime(ms: number): string {
  const parts = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' },
  }).format(ms)
  return parts.replace(' ', 'T')
}
