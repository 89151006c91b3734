import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { parse } from 'yaml'
import { AsnFile } from '../../src/identity/address/asn-file.ts'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { mmdbOf } from '../identity/mmdb-writer.ts'
import { until } from '../until.ts'
import { looksFine, openDashboard } from './browser.ts'
import { policyText } from './policy-text.ts'
import { fillCatalogue } from './catalogue.ts'

const skip = skipped('chromium')
const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', purposes: ['training'], confidence: 0.97 },
  ...{ verified: 'ip-range', host: 'shop.example', userAgent: 'GPTBot/1.2' },
} as const
const WIDE = { width: 1_440, height: 900 }

test('counts stand beside the list, and a click filters by a value and no more by it', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true, browser: { viewport: WIDE } })
  await fillCatalogue(manage.storeUrl)
  const nowMs = Date.now()
  await manage.take(
    Array.from({ length: 60 }, (_, at) =>
      seen(at, {
        ...(at % 3 === 0 ? GPTBOT : { verdict: 'human', host: 'blog.example', done: 'pass' }),
        ...{ seenAtMs: nowMs - at, path: `/page/${at % 20}` },
      }),
    ),
  )
  await goTo('traffic')
  await page.getByText('Of 60 recorded requests.').waitFor()
  const verdicts = page.getByRole('region', { name: 'Requests by Verdict' })
  await verdicts.getByRole('button', { name: 'human 40' }).waitFor()
  await looksFine(page, 'traffic-facets')
  await page.setViewportSize(WIDE)
  const agents = page.getByRole('region', { name: 'Requests by Agent' })
  await agents.getByRole('button', { name: 'GPTBot 20' }).click()
  await page.waitForURL(/agent_id=gptbot/)
  await page.getByText('Of 20 recorded requests.').waitFor()
  const table = page.getByRole('table', { name: 'Requests' })
  assert.equal(await table.getAttribute('aria-rowcount'), '21')
  const chosen = agents.getByRole('button', { name: 'GPTBot 20' })
  assert.equal(await chosen.getAttribute('aria-pressed'), 'true')
  await page.reload()
  await page.getByText('Of 20 recorded requests.').waitFor()
  await chosen.click()
  await page.getByText('Of 60 recorded requests.').waitFor()
  assert.doesNotMatch(page.url(), /agent_id/)
  // A value that only a filter of its own finds.
  await page
    .getByRole('region', { name: 'Requests by Verified' })
    .getByRole('button', { name: 'not verified 40' })
    .click()
  await page.waitForURL(/verified=false/)
  await page.getByText('Of 40 recorded requests.').waitFor()
  await page.getByLabel('Verified', { exact: true }).waitFor()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'NDJSON' }).click(),
  ])
  assert.equal(file.suggestedFilename(), 'requests.ndjson')
  const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n')
  assert.deepEqual([...new Set(lines.map((line) => JSON.parse(line).host))], ['blog.example'])
  assert.equal(lines.length, 40)
})

test('networks and countries are counted, shown and filtered by if a list has them', { skip }, async (t) => {
  const networks = new AsnFile(
    mmdbOf([
      ['192.0.2.0/24', { asn: 'AS64500', as_name: 'Example Hosting', country_code: 'DE' }],
      ['198.51.100.0/24', { asn: 'AS64501', as_name: 'Other Net', country_code: 'FR' }],
    ]),
  )
  const browser = { viewport: WIDE }
  const { manage, page, goTo } = await openDashboard(t, { knows: true, networks, browser })
  const nowMs = Date.now()
  const addresses = ['192.0.2.1', '192.0.2.2', '198.51.100.7', '203.0.113.9']
  await manage.take(addresses.map((address, at) => seen(at, { address, seenAtMs: nowMs - at })))
  await goTo('traffic')
  const facet = (title: string) => page.getByRole('region', { name: `Requests by ${title}`, exact: true })
  await facet('Country').getByRole('button', { name: 'DE 2' }).waitFor()
  await facet('Network').getByText('unknown').waitFor()
  await looksFine(page, 'traffic-networks')
  await page.setViewportSize(WIDE)
  await facet('Network').getByRole('button', { name: 'Example Hosting (AS64500) 2' }).click()
  await page.waitForURL(/asn=64500/)
  await page.getByText('Of 2 recorded requests.').waitFor()
  await page.getByLabel('Network (ASN)').waitFor()
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByText('DE Example Hosting').first().waitFor()
  await table.getByRole('link').first().click()
  await page.getByRole('link', { name: 'Example Hosting (AS64500)' }).waitFor()
  await looksFine(page, 'request-network')
})

test('without a list of networks, no page speaks of one', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true, browser: { viewport: WIDE } })
  await manage.take([seen(1, { address: '192.0.2.1', seenAtMs: Date.now() })])
  await goTo('traffic')
  await page.getByRole('region', { name: 'Requests by Address' }).waitFor()
  assert.equal(await page.getByRole('region', { name: 'Requests by Network' }).count(), 0)
  assert.equal(await page.getByRole('region', { name: 'Requests by Country' }).count(), 0)
  assert.equal(await page.getByLabel('Network (ASN)').count(), 0)
  await page.getByRole('table', { name: 'Requests' }).getByRole('link').first().click()
  await page.getByText('Who it was').waitFor()
  assert.equal(await page.getByText('Network', { exact: true }).count(), 0)
})

test('filters are saved under a name, and the keys walk through the list', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  const nowMs = Date.now()
  await manage.take(
    Array.from({ length: 300 }, (_, at) =>
      seen(at, { ...(at % 2 === 0 ? GPTBOT : {}), path: `/page/${at}`, seenAtMs: nowMs }),
    ),
  )
  await goTo('traffic?agent_id=gptbot&verdict=agent')
  const table = page.getByRole('table', { name: 'Requests' })
  await table.getByRole('link', { name: '/page/298' }).waitFor()
  await page.getByText('Saved views').click()
  await page.getByLabel('Save these filters as').fill('Crawlers')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  await page.getByText('Saved views (1)').waitFor()
  await looksFine(page, 'traffic-views')
  await goTo('traffic')
  await table.getByRole('link', { name: '/page/299' }).waitFor()
  await page.getByText('Saved views (1)').click()
  await page.getByRole('link', { name: 'Crawlers' }).click()
  await page.waitForURL(/agent_id=gptbot&verdict=agent/)
  await table.getByRole('link', { name: '/page/299' }).waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Delete the view Crawlers' }).click()
  await page.getByRole('link', { name: 'Crawlers' }).waitFor({ state: 'detached' })
  // Arrows from link to link, also below what is visible.
  await table.focus()
  const focused = () => page.evaluate('document.activeElement.textContent') as Promise<string>
  await page.keyboard.press('ArrowDown')
  assert.match(await focused(), /\/page\/298$/)
  for (let at = 296; at >= 218; at -= 2) {
    await page.keyboard.press('ArrowDown')
    // On a busy machine the browser draws the next row later.
    await until(async () => (await focused()).endsWith(`/page/${at}`))
  }
  await page.keyboard.press('ArrowUp')
  assert.match(await focused(), /\/page\/220$/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: '/page/220' }).waitFor()
})

test('a rule is made from a value, shows which clients it would affect, and is put in force on trial', {
  skip,
}, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  const nowMs = Date.now()
  await manage.take([
    ...[1, 2, 3].map((number) => seen(number, { ...GPTBOT, seenAtMs: nowMs })),
    seen(4, { verdict: 'human', host: 'shop.example', seenAtMs: nowMs, path: '/basket' }),
  ])
  await goTo('traffic?host=shop.example')
  await page.getByRole('link', { name: 'Make a rule for these requests' }).click()
  await page.getByText('The rule “shop.example” is new and on trial').waitFor()
  assert.deepEqual(parse(await policyText(page).read()).rules, [
    { name: 'shop.example', when: { host: 'shop.example' }, action: 'block', dry_run: true },
  ])
  await page
    .getByText(
      'It stops 4 of 4 recorded requests (100 %) that the policy in force lets through, 1 of them from people.',
    )
    .waitFor()
  const clients = page.getByRole('region', { name: 'Affected clients, people first' })
  await clients.getByRole('row', { name: /^People .* block 403 1$/ }).waitFor()
  await looksFine(page, 'policy-made-rule')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  const { rules } = (await manage.ask('GET', '/v1/policy')).body.policy
  assert.deepEqual(rules, [
    { name: 'shop.example', when: { host: 'shop.example' }, action: 'block', dry_run: true },
  ])
  // From a request, and from an agent. A second rule has another name.
  await goTo(`traffic/${seen(1).id}`)
  const rule = page.getByRole('region', { name: 'Make a rule for requests' })
  await rule.getByRole('link', { name: 'of the same agent' }).waitFor()
  await looksFine(page, 'traffic-request-rules')
  await rule.getByRole('link', { name: 'of the same agent' }).click()
  await page.getByText('The rule “gptbot” is new and on trial').waitFor()
  await page.getByText('It stops 3 of 4 recorded requests').waitFor()
})

test('with the scope read alone, no rule is offered', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, {
    ...{ knows: true, isStrange: true, browser: { viewport: WIDE } },
  })
  await manage.take([seen(1, { ...GPTBOT, seenAtMs: Date.now() })])
  const key = await manage.key({ scopes: ['read'] })
  await page.goto('about:blank')
  await goTo(`#key=${key}`)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await goTo('traffic?host=shop.example')
  await page.getByText('Of 1 recorded request.').waitFor()
  assert.equal(await page.getByText('Make a rule').count(), 0)
  await goTo(`traffic/${seen(1).id}`)
  await page.getByRole('heading', { name: 'Similar requests' }).waitFor()
  assert.equal(await page.getByText('Make a rule').count(), 0)
})
