import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')
const BLOCKS = JSON.stringify(
  { rules: [{ name: 'no-crawlers', when: { category: 'crawler' }, action: 'block' }] },
  null,
  2,
)

test('a policy is written, tried on what is recorded, put in force, and rolled back', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const
  await manage.take([1, 2, 3].map((number) => seen(number, { ...agent, seenAtMs: Date.now() })))
  await goTo('policy')
  await page.getByText('the built-in default: every request is tagged, none is blocked').waitFor()
  await page.getByText('No policy saved yet').waitFor()
  await looksFine(page, 'policy-none')
  const text = page.getByLabel('Policy (JSON)')
  await text.fill('{\n  "rules": [\n}')
  await page.getByText(/^Line 3: /).waitFor()
  assert.ok(await page.getByRole('button', { name: 'Validate and test' }).isDisabled())
  await text.fill('{"rules": [{"name": "x", "wen": {}, "action": "blok"}]}')
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await page
    .getByText(/did you mean "when"/)
    .first()
    .waitFor()
  await page
    .getByText(/did you mean "block"/)
    .first()
    .waitFor()
  await text.fill(BLOCKS)
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await page.getByText('Valid policy.').waitFor()
  assert.equal(await page.getByLabel('Warnings').count(), 0)
  await page.getByText(/3 \(100 %\) would have a different outcome/).waitFor()
  await page.getByRole('row', { name: /gptbot.*block/ }).waitFor()
  await looksFine(page, 'policy-tried')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page
    .getByRole('dialog')
    .getByText(/lines added/)
    .waitFor()
  await looksFine(page, 'policy-asked')
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.policy, JSON.parse(BLOCKS))

  await text.fill('{"rules": []}')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('button', { name: 'Roll back to version 1' }).click()
  await page.getByRole('dialog').getByText('no-crawlers').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('Version 1 is in force again.').waitFor()
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.restored_version, 1)
  await looksFine(page, 'policy')
})

test('a policy for an unknown agent is valid, with a warning', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('policy')
  const rules = [
    { name: 'typo', when: { agent: 'gptbto' }, action: 'block' },
    { name: 'alias', when: { agent: 'openai-python' }, action: 'block' },
  ]
  await page.getByLabel('Policy (JSON)').fill(JSON.stringify({ rules }))
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await page.getByText('Valid policy.').waitFor()
  const warning = /^rule "typo": unknown agent "gptbto" \(did you mean "gptbot"\?\) \/rules\/0\/when\/agent$/
  const tried = page.getByLabel('Effect on recorded requests').getByLabel('Warnings').getByRole('listitem')
  assert.match((await tried.innerText()).trim(), warning)
  await looksFine(page, 'policy-warned')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  const inForce = page.getByLabel('In force').getByLabel('Warnings').getByRole('listitem')
  await inForce.waitFor()
  assert.match((await inForce.innerText()).trim(), warning)
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.policy, { rules })
})

test('a request is explained: one that is pasted, and one that was recorded', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('policy')
  const request = page.getByLabel('Request, headers, or curl -v output')
  const explain = page.getByRole('button', { name: 'Explain' })
  await request.fill('GET /\nwhat is this')
  await explain.click()
  await page.getByText(/^Not a request: line 1 is not a header/).waitFor()
  await request.fill('> GET /items HTTP/1.1\n> Host: shop.test\n> User-Agent: GPTBot/1.2\n> Authorization: x')
  await explain.click()
  await page.getByRole('heading', { name: 'tag by the default action (no rule matched)' }).waitFor()
  await page.getByText('The policy has no rules').waitFor()
  // What is being written is asked before it is in force.
  await page.getByLabel('Policy (JSON)').fill(BLOCKS)
  await page.getByLabel('JA4').fill('t13d')
  await explain.click()
  await page
    .getByText(/"t13d" is not a valid ja4/)
    .first()
    .waitFor()
  await page.getByLabel('JA4').fill('')
  await explain.click()
  await page.getByRole('heading', { name: 'block by rule “no-crawlers”' }).waitFor()
  await page.getByRole('row', { name: /no-crawlers.*decides/ }).waitFor()
  await looksFine(page, 'policy-explained')
  await page.getByLabel('Verdict').selectOption('human')
  await explain.click()
  await page
    .getByRole('row', { name: /no-crawlers.*no match.*category is nothing, expected crawler/ })
    .waitFor()
  await page.getByLabel('Agent', { exact: true }).fill('gptbot')
  await explain.click()
  await page.getByText('An agent ID needs the verdict “agent”.').waitFor()

  const agent = { verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.97 } as const
  const sighting = seen(1, { ...agent, path: '/<b>', seenAtMs: Date.now() })
  await manage.take([sighting])
  page.once('dialog', (dialog) => dialog.accept())
  await goTo('')
  await page.getByRole('link', { name: /^tag/ }).click()
  await page.getByText(/Recorded request: it was passed with a tag/).waitFor()
  assert.match(await request.inputValue(), /^GET \/<b> HTTP/)
  await page.getByLabel('Policy (JSON)').fill(BLOCKS)
  await explain.click()
  await page.getByRole('heading', { name: 'block by rule “no-crawlers”' }).waitFor()
  await goTo('policy?request=none')
  await page
    .getByText(/No resource at this path/)
    .first()
    .waitFor()
})

test('who is slower than another is told so, and loses nothing', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('policy')
  const text = page.getByLabel('Policy (JSON)')
  await text.fill(BLOCKS)
  await manage.ask('PUT', '/v1/policy', { rules: [], otherwise: 'pass' }, { 'if-match': '*' })
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('Another change was saved first.').waitFor()
  assert.equal(await text.inputValue(), BLOCKS)
  // Nor is it lost by a slip.
  let asked = 0
  page.on('dialog', (dialog) => {
    asked++
    return asked === 1 ? dialog.dismiss() : dialog.accept()
  })
  await page.getByRole('link', { name: 'Live' }).click()
  assert.equal(await text.inputValue(), BLOCKS)
  await page.getByRole('link', { name: 'Live' }).click()
  await page.getByRole('heading', { name: 'Live', level: 1 }).waitFor()
  assert.equal(asked, 2)
})
