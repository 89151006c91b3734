import assert from 'node:assert/strict'
import { test } from 'tap'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { policyText } from './policy-text.ts'

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
  const text = policyText(page)
  await text.fill('{\n  "rules": [\n}')
  await page
    .getByText(/^Line 3: /)
    .first()
    .waitFor()
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

test('a test shows a first answer, and reads on meanwhile', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await manage.take([1, 2, 3].map((number) => seen(number, { seenAtMs: Date.now() })))
  const times: number[] = []
  const rest = Promise.withResolvers<void>()
  // As if there were more requests than there is time for.
  await page.route('**/v1/policy/preview', async (route) => {
    const { time_ms } = route.request().postDataJSON() as { readonly time_ms: number }
    times.push(time_ms)
    const isFirst = times.length === 1
    if (!isFirst) await rest.promise
    const response = await route.fetch()
    const answer = { ...(await response.json()), complete: false, counted: 9_000 }
    await route.fulfill({ response, json: isFirst ? { ...answer, sightings: 2 } : answer })
  })
  await goTo('policy')
  await policyText(page).fill(BLOCKS)
  await page.getByRole('button', { name: 'Validate and test' }).click()
  const note = page.getByText('of about 9,000 requests of this time were tested.')
  await note.waitFor()
  assert.equal(
    await note.innerText(),
    'Only the newest 2 of about 9,000 requests of this time were tested. Older requests are being tested…',
  )
  assert.ok(
    await page.getByRole('button', { name: 'Apply…' }).isEnabled(),
    'the policy can be applied while older requests are tested',
  )
  await looksFine(page, 'policy-reading')
  rest.resolve()
  await page.getByText('Only the newest 3 of about 9,000 requests of this time were tested.').waitFor()
  assert.equal(await page.getByText('Older requests are being tested').count(), 0)
  assert.deepEqual(times, [200, 1_000])
})

test('what crawlers read is shown, with what contradicts the robots.txt of the app', { skip }, async (t) => {
  const { page, goTo, manage } = await openDashboard(t, { knows: true })
  const rules = [{ name: 'training', when: { purpose: 'training' }, action: 'block' }]
  await manage.ask('PUT', '/v1/policy', { rules }, { 'if-match': '*' })
  await goTo('policy')
  const form = page.getByRole('form', { name: 'Terms for crawlers' })
  await form.getByLabel('robots.txt of the app').fill('User-agent: *\nDisallow: /cart\n')
  await form.getByRole('button', { name: 'Show' }).click()
  await page.getByText('2 contradictions').waitFor()
  const table = page.getByRole('region', { name: 'Contradictions, as a table' })
  await table.getByText('2: Disallow: /cart').waitFor()
  await table.getByText('refuses it').waitFor()
  const robots = page.getByRole('region', { name: 'robots.txt', exact: true })
  assert.match((await robots.textContent()) ?? '', /User-agent: GPTBot/)
  await page.getByRole('region', { name: 'RSL' }).getByText('ai-train').waitFor()
  await looksFine(page, 'policy-terms')
})

test('a policy for an unknown agent is valid, with a warning', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('policy')
  const rules = [
    { name: 'typo', when: { agent: 'gptbto' }, action: 'block' },
    { name: 'alias', when: { agent: 'openai-python' }, action: 'block' },
  ]
  await policyText(page).fill(JSON.stringify({ rules }))
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
  await policyText(page).fill(BLOCKS)
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
  await goTo('live')
  await page.getByRole('link', { name: /^tag/ }).click()
  await page.getByText(/Recorded request: it was passed with a tag/).waitFor()
  assert.match(await request.inputValue(), /^GET \/<b> HTTP/)
  await policyText(page).fill(BLOCKS)
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
  const text = policyText(page)
  await text.fill(BLOCKS)
  await manage.ask('PUT', '/v1/policy', { rules: [], otherwise: 'pass' }, { 'if-match': '*' })
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('Another change was saved first.').waitFor()
  assert.equal(await text.read(), BLOCKS)
  // Nor is it lost by a slip.
  let asked = 0
  page.on('dialog', (dialog) => {
    asked++
    return asked === 1 ? dialog.dismiss() : dialog.accept()
  })
  await page.getByRole('link', { name: 'Live' }).click()
  assert.equal(await text.read(), BLOCKS)
  await page.getByRole('link', { name: 'Live' }).click()
  await page.getByRole('heading', { name: 'Live', level: 1 }).waitFor()
  assert.equal(asked, 2)
})

const CARTS = JSON.stringify(
  { rules: [{ name: 'carts', when: { path: '/cart' }, action: 'block' }] },
  null,
  2,
)
const ORGANISATION = {
  first: [{ name: 'open', when: { path: '/open' }, action: 'pass' }],
  last: [{ name: 'posts', when: { method: 'POST' }, action: { block: { status: 404 } } }],
}

test('the policy of an app is chosen, tried, put in force, explained and rolled back', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await manage.ask('POST', '/v1/apps', { id: 'shop', name: 'The shop', hosts: ['shop.test'] })
  await manage.ask('PUT', '/v1/policy', ORGANISATION, { 'if-match': '*' })
  const nowMs = Date.now()
  const carts = { app: 'shop', path: '/cart', method: 'GET', seenAtMs: nowMs }
  await manage.take([seen(1, carts), seen(2, carts), seen(3, { path: '/cart', seenAtMs: nowMs })])
  await goTo('policy')
  await page.getByRole('heading', { name: 'Policy', exact: true, level: 1 }).waitFor()
  await looksFine(page, 'policy-layers')
  await page.getByLabel('App', { exact: true }).selectOption('shop')
  await page.waitForURL(/policy\?app=shop$/)
  await page.getByRole('heading', { name: 'Policy of shop' }).waitFor()
  await page.getByText('no policy yet: the rules of the organisation alone decide').waitFor()
  await looksFine(page, 'policy-app-none')
  const text = policyText(page)
  await text.fill(JSON.stringify({ first: [] }))
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await page
    .getByText(/unknown field/)
    .first()
    .waitFor()
  await text.fill(CARTS)
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await page.getByText(/Of 2 recorded requests/).waitFor()
  await page.getByText(/^Valid policy\. It stops 2 of 2 recorded requests/).waitFor()
  await page.getByText(/2 \(100 %\) would have a different outcome/).waitFor()
  await page.getByRole('row', { name: /carts.*app shop.*2/ }).waitFor()
  await looksFine(page, 'policy-app-tried')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  assert.deepEqual((await manage.ask('GET', '/v1/apps/shop/policy')).body.policy, JSON.parse(CARTS))
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.policy, ORGANISATION)

  const request = page.getByLabel('Request, headers, or curl -v output')
  await request.fill('GET /cart HTTP/1.1\nHost: none.test\n')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByRole('heading', { name: 'block by rule “carts” (app shop)' }).waitFor()
  await page.getByRole('row', { name: /open.*first.*no match/ }).waitFor()
  await page.getByRole('row', { name: /carts.*app shop.*decides/ }).waitFor()
  await looksFine(page, 'policy-app-explained')

  await text.fill('{"rules": []}')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByRole('button', { name: 'Roll back to version 1' }).click()
  await page.getByRole('dialog').getByText('carts').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click()
  await page.getByText('Version 1 is in force again.').waitFor()
  assert.equal((await manage.ask('GET', '/v1/apps/shop/policy')).body.restored_version, 1)
  await looksFine(page, 'policy-app')
  // The organisation's page judges a request with the rules of the app of its host.
  await page.getByLabel('App', { exact: true }).selectOption('')
  await page.waitForURL(/policy$/)
  await manage.publish(ORGANISATION)
  await request.fill('GET /cart HTTP/1.1\nHost: shop.test\n')
  await page.getByRole('button', { name: 'Explain' }).click()
  await page.getByRole('heading', { name: 'block by rule “carts” (app shop)' }).waitFor()
  await goTo('live')
  await page.getByRole('link', { name: /^tag/ }).first().waitFor()
  const links = page.getByRole('list', { name: 'Requests, newest first' }).getByTitle('Explain this decision')
  assert.match((await links.last().getAttribute('href'))!, /policy\?app=shop&request=/)
})

test('unsaved changes of a policy are not lost by a choice of another app', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id })
  await goTo('policy?app=shop')
  const text = policyText(page)
  await text.fill(CARTS)
  let asked = 0
  page.on('dialog', (dialog) => {
    asked++
    return asked === 1 ? dialog.dismiss() : dialog.accept()
  })
  const choice = page.getByLabel('App', { exact: true })
  await choice.selectOption('blog')
  assert.deepEqual([await choice.inputValue(), await text.read()], ['shop', CARTS])
  await choice.selectOption('blog')
  await page.getByRole('heading', { name: 'Policy of blog' }).waitFor()
  assert.equal(asked, 2)
})

test('a team has the policies of its own apps, and not that of the organisation', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { isStrange: true })
  for (const id of ['shop', 'blog', 'news']) await manage.ask('POST', '/v1/apps', { id })
  await page.goto('about:blank')
  await goTo(`#key=${await manage.key({ apps: ['shop', 'blog'] })}`)
  const nav = page.getByRole('navigation', { name: 'Pages' })
  await nav.getByRole('link', { name: 'Policy' }).click()
  await page.waitForURL(/policy\?app=shop$/)
  await page.getByRole('heading', { name: 'Policy of shop' }).waitFor()
  const choice = page.getByLabel('App', { exact: true })
  assert.deepEqual(await choice.getByRole('option').allInnerTexts(), ['blog', 'shop'])
  await choice.selectOption('blog')
  await page.getByRole('heading', { name: 'Policy of blog' }).waitFor()
  await looksFine(page, 'policy-team')
  await goTo('policy?app=news')
  await page.getByText('App news not found').waitFor()
})

test('the link of a request whose app was deleted says so', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await manage.ask('POST', '/v1/apps', { id: 'shop' })
  const sighting = seen(1, {
    app: 'shop',
    path: '/cart',
    rule: 'carts',
    action: 'block',
    seenAtMs: Date.now(),
  })
  await manage.take([sighting])
  assert.equal((await manage.ask('DELETE', '/v1/apps/shop')).status, 204)
  await goTo(`traffic/${sighting.id}`)
  await page.getByRole('link', { name: 'Explain this decision rule by rule' }).click()
  await page.getByText('App shop not found').waitFor()
  await page.getByText('It was deleted together with its policy').waitFor()
  await looksFine(page, 'policy-app-gone')
  await page.getByRole('link', { name: 'The recorded request' }).click()
  await page.waitForURL(/traffic\/[^/]+$/)
  await page.getByText('carts', { exact: true }).waitFor()
})
