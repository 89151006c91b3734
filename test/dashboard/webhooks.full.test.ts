import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { HookReceiver } from '../manage/webhook-receiver.ts'
import { seen } from '../contract/seen.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('a webhook is made, tried, changed, replayed, and deleted', { skip }, async (t) => {
  const receiver = await HookReceiver.start(t)
  const { manage, page, goTo } = await openDashboard(t, { knows: true, allowPrivateWebhooks: true })
  await goTo('webhooks')
  await page.getByText('No webhooks yet').waitFor()
  await page.getByRole('button', { name: 'New webhook' }).click()
  await page.getByLabel('URL').fill('https://user@hooks.example')
  await page.getByRole('button', { name: 'Create' }).click()
  await page.getByRole('alert').waitFor()
  await looksFine(page, 'webhook-new')
  await page.getByLabel('URL').fill(receiver.url)
  await page.getByRole('checkbox', { name: 'new_signature' }).uncheck()
  await page.getByRole('checkbox', { name: 'threat_detected' }).uncheck()
  await page.getByRole('button', { name: 'Create' }).click()
  const secret = await page.getByText(/^whsec_/).textContent()
  receiver.secret = secret
  await looksFine(page, 'webhooks')
  await page.getByRole('link', { name: receiver.url }).click()
  await page.getByRole('heading', { name: receiver.url }).waitFor()

  await page.getByRole('button', { name: 'Send test' }).click()
  await receiver.has(1)
  assert.deepEqual(receiver.unverified, [])
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()

  const atMs = Date.now()
  await manage.take([seen(1, { verdict: 'agent', agent: 'gptbot', category: 'crawler', seenAtMs: atMs })])
  await receiver.has(2)
  await page.getByText('Replay events').click()
  const hourAgo = new Date(atMs - 3_600_000)
  await page.getByLabel('From').fill(localTime(hourAgo))
  await page.getByRole('button', { name: 'Replay', exact: true }).click()
  await page.getByText('1 event queued.').waitFor()
  await receiver.has(3)
  await looksFine(page, 'webhook')

  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByLabel('Description').fill('of the shop')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('of the shop').waitFor()
  await page.getByRole('button', { name: 'Turn off' }).click()
  await page.getByText('Turned off. Events wait until you enable it.').waitFor()
  await page.getByRole('button', { name: 'Enable' }).click()
  await page.getByText('Enabled.').waitFor()
  await page.getByRole('button', { name: 'Rotate secret' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  await page.getByText(/^whsec_/).waitFor()

  await page.getByRole('link', { name: 'new_agent' }).first().click()
  await page.getByRole('heading', { name: 'Delivery' }).waitFor()
  await looksFine(page, 'delivery')
  await page.getByRole('button', { name: 'Retry now' }).click()
  await receiver.has(4)
  await page.getByRole('link', { name: /^whk_/ }).click()

  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'hidden' })
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('No webhooks yet').waitFor()
})

test('a change of a webhook keeps all its filters', { skip }, async (t) => {
  const receiver = await HookReceiver.start(t)
  const { manage, page, goTo } = await openDashboard(t, { allowPrivateWebhooks: true })
  const filters = {
    ...{ categories: ['crawler'], purposes: ['training'], agents: ['gptbot'], apps: ['shop'] },
    ...{ min_severity: 'high', min_confidence: 0.85 },
  }
  const { body } = await manage.ask('POST', '/v1/webhooks', {
    url: receiver.url,
    events: ['new_agent'],
    filters,
  })
  await goTo(`webhooks/${body.id}`)
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await page.getByLabel('Description').fill('of the shop')
  await looksFine(page, 'webhook-change')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('of the shop').waitFor()
  assert.deepEqual((await manage.ask('GET', `/v1/webhooks/${body.id}`)).body.filters, filters)
})

test('a receiver that refuses is shown, with what it says', { skip }, async (t) => {
  const receiver = await HookReceiver.start(t, (response) => void response.writeHead(500).end('no room here'))
  const { manage, page, goTo } = await openDashboard(t, { allowPrivateWebhooks: true })
  const { body } = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['new_agent'] })
  await goTo(`webhooks/${body.id}`)
  await page.getByRole('button', { name: 'Send test' }).click()
  await receiver.has(1)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('link', { name: 'test', exact: true }).click()
  await page.getByText('no room here').waitFor()
})

/** As the browser's zone has it: see `openDashboard`. */
function localTime(at: Date): string {
  const text = new Intl.DateTimeFormat('sv-SE', {
    ...{ timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' },
  }).format(at)
  return text.replace(' ', 'T')
}
