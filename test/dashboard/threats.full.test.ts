import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
/** Port 1 is closed. */
const SINKS = { file: null, syslog: { url: 'tcp://127.0.0.1:1', format: 'json', ca: null } } as const
const JA4 = 't13d1312h2_f57a46bbacb6_ab7e3b40a677'

test('a case is closed as a false alarm, and its requests get feedback', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true, sinks: SINKS })
  await goTo('threats')
  await page.getByText('No open cases').waitFor()
  await page.getByText('No webhook receives threats.').waitFor()
  await looksFine(page, 'threats-none')
  await spoof(manage, [1, 2, 3])
  const hook = { url: 'https://hooks.example.com/gatehouse', events: ['threat_detected'] }
  assert.equal((await manage.ask('POST', '/v1/webhooks', hook)).status, 201)
  await page.reload()
  const table = page.getByRole('table', { name: 'Cases' })
  const link = table.getByRole('link', { name: `Spoofed browser: ${JA4}` })
  await link.waitFor()
  await page.getByRole('link', { name: 'hooks.example.com' }).waitFor()
  await page.getByText('tcp://127.0.0.1:1').waitFor()
  await looksFine(page, 'threats')
  // By the keyboard alone.
  await link.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: `Spoofed browser: ${JA4}` }).waitFor()
  const evidence = page.getByRole('region', { name: 'Evidence, as a table' })
  await evidence.getByText('192.0.2.3').waitFor()
  assert.equal(await evidence.getByRole('row').count(), 4)
  await looksFine(page, 'case')
  const rule = await page.getByRole('link', { name: 'Make a rule' }).getAttribute('href')
  const made = new URLSearchParams(rule!.split('?')[1]).get('rule')
  assert.deepEqual(JSON.parse(made!), { ja4: JA4, evidence: 'spoofed-browser' })
  const requests = await page.getByRole('link', { name: 'Its requests' }).getAttribute('href')
  assert.match(requests!, /ja4=t13d1312h2_f57a46bbacb6_ab7e3b40a677&conflict=spoofed-browser$/)
  await page.getByRole('button', { name: 'False alarm' }).click()
  const dialog = page.getByRole('dialog', { name: 'False alarm?' })
  assert.equal(await dialog.getByLabel('The requests came from').inputValue(), 'human')
  await dialog.getByLabel('Note').fill('our own monitor')
  await looksFine(page, 'case-closing')
  await dialog.getByRole('button', { name: 'False alarm' }).click()
  await page.getByText('given on 3 decisions').waitFor()
  await page.getByText('our own monitor').waitFor()
  const { body } = await manage.ask('GET', '/v1/audit?action=giveFeedback')
  assert.equal(body.total, 3)
  assert.equal(body.audit[0].detail.verdict, 'human')
  await looksFine(page, 'case-closed')
  await page.getByRole('link', { name: 'All threats' }).click()
  await page.getByText('No open cases').waitFor()
  await page.getByRole('link', { name: 'False alarms' }).click()
  await link.click()
  await page.getByRole('button', { name: 'Open again' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Open again' }).click()
  await page.getByRole('button', { name: 'Accept', exact: true }).waitFor()
  await page.getByText('given on 3 decisions').waitFor({ state: 'hidden' })
})

test('a change of a case that another person made meanwhile is not lost', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await spoof(manage, [1])
  const { id } = (await manage.ask('GET', '/v1/cases')).body.cases[0]
  await goTo(`threats/${id}`)
  await page.getByRole('button', { name: 'Accept', exact: true }).click()
  await manage.ask('PATCH', `/v1/cases/${id}`, { note: 'look at it' })
  await page.getByRole('dialog').getByRole('button', { name: 'Accept' }).click()
  await page.getByText(/no longer matches/).waitFor()
  const { body } = await manage.ask('GET', `/v1/cases/${id}`)
  assert.deepEqual([body.status, body.note], ['open', 'look at it'])
})

test('a reader sees cases and changes none', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true, isStrange: true })
  await spoof(manage, [1])
  const { id } = (await manage.ask('GET', '/v1/cases')).body.cases[0]
  const { key } = (await manage.ask('POST', '/v1/keys', { name: 'reader', access: 'read' })).body
  await page.goto('about:blank')
  await goTo(`#key=${key}`)
  await page.getByRole('link', { name: 'Threats', exact: true }).click()
  await page.getByRole('link', { name: `Spoofed browser: ${JA4}` }).click()
  await page.getByRole('region', { name: 'Evidence, as a table' }).getByText('192.0.2.0/24').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Accept', exact: true }).count(), 0)
  assert.equal(await page.getByRole('link', { name: 'Make a rule' }).count(), 0)
  await goTo('threats/cas_none')
  await page.getByText('It may have been deleted').waitFor()
  assert.ok(id.startsWith('cas_'))
})

async function spoof(
  manage: Awaited<ReturnType<typeof openDashboard>>['manage'],
  numbers: readonly number[],
): Promise<void> {
  await manage.take(
    numbers.map((number) =>
      seen(number, {
        ...{ evidence: ['spoofed-browser'], forged: [], verdict: 'automation', ja4: JA4 },
        ...{ software: null, agent: null, address: `192.0.2.${number}`, seenAtMs: Date.now() },
      }),
    ),
  )
}
