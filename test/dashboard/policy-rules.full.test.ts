import assert from 'node:assert/strict'
import { test } from 'tap'
import { parse } from 'yaml'
import { seen } from '../contract/seen.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { policyText } from './policy-text.ts'

const skip = skipped('chromium')
const rule = (name: string, path: string) => ({ name, when: { path }, action: 'tag' })
const THREE = { rules: [rule('alpha', '/1'), rule('beta', '/2'), rule('gamma', '/3')] }

test('a rule that charges is made in a form, and the text says the same', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await goTo('policy')
  const rules = page.getByRole('region', { name: 'Rules' })
  await rules.getByText('If no rule matches, the request is tagged.').waitFor()
  await rules.getByRole('button', { name: 'Add a rule' }).click()
  await rules.getByText('Every request is blocked with 403.').waitFor()
  await rules.getByLabel('Name').fill('articles')
  await rules.getByLabel('Add a condition').selectOption('Verdict')
  await rules.getByRole('group', { name: 'Verdict' }).getByLabel('automation').check()
  await rules.getByLabel('Add a condition').selectOption('Path')
  await rules.getByLabel('Path', { exact: true }).fill('/articles/*\n/news\n')
  await rules.getByLabel('Do', { exact: true }).selectOption('Charge')
  await rules.getByLabel('Price', { exact: true }).fill('0.05')
  await rules.getByRole('group', { name: 'Paid with' }).getByLabel('crawler-price').check()
  await rules.getByLabel('Pass', { exact: true }).fill('10m')
  await rules.getByLabel('Free requests', { exact: true }).fill('10')
  await rules.getByLabel('Free requests in').fill('1d')
  const sentence =
    'If the verdict is agent or automation and the path is /articles/* or /news, the request costs 0.05 USD for a pass of 10m (x402 or crawler-price).'
  await rules.getByText(sentence).waitFor()
  const text = policyText(page)
  const when = { verdict: ['agent', 'automation'], path: ['/articles/*', '/news'] }
  const charge = {
    ...{ price: '0.05', currency: 'USD', scheme: ['x402', 'crawler-price'] },
    ...{ pass: '10m', free: { requests: 10, window: '1d' } },
  }
  assert.deepEqual(parse(await text.read()), {
    rules: [{ name: 'articles', when, action: { charge }, dry_run: true }],
  })
  await looksFine(page, 'policy-rule-form')
  // A problem stands at its field.
  await rules.getByLabel('Price', { exact: true }).fill('much')
  await page.getByRole('button', { name: 'Validate and test' }).click()
  await rules.getByText(/"much"; expected a price/).waitFor()
  assert.equal(await rules.getByLabel('Price', { exact: true }).getAttribute('aria-invalid'), 'true')
  await rules.getByLabel('Do', { exact: true }).selectOption('Pass')
  await rules.getByRole('button', { name: 'Remove the condition Path' }).click()
  await rules.getByLabel('On trial: counted, without effect').uncheck()
  await rules.getByRole('button', { name: 'Close articles' }).click()
  await rules.getByRole('button', { name: 'Edit what happens if no rule matches' }).click()
  await rules.getByLabel('Do', { exact: true }).selectOption('Block')
  await rules.getByLabel('Status').selectOption('451')
  assert.deepEqual(parse(await text.read()), {
    rules: [{ name: 'articles', when: { verdict: when.verdict }, action: 'pass' }],
    otherwise: { block: { status: 451 } },
  })
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  assert.equal((await manage.ask('GET', '/v1/policy')).body.policy.otherwise.block.status, 451)
})

test('rules are ordered by keyboard and by dragging, and show what they decided', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await manage.ask('PUT', '/v1/policy', THREE, { 'if-match': '*' })
  const hit = { rule: 'beta', seenAtMs: Date.now() - 60_000 }
  await manage.take([
    seen(1, hit),
    seen(2, hit),
    seen(3, { rule: 'gamma', seenAtMs: Date.now() - 3 * 86_400_000 }),
  ])
  await goTo('policy')
  const rules = page.getByRole('region', { name: 'Rules' })
  const item = (name: string) => rules.getByRole('listitem').filter({ hasText: name })
  const order = async () => {
    const { rules: written } = parse(await policyText(page).read())
    return written.map(({ name }: { name: string }) => name)
  }
  await item('beta').getByText('2 requests, last one 1 minute ago').waitFor()
  await item('gamma').getByText('no requests, last one 3 days ago').waitFor()
  await item('alpha').getByText('no requests, none is recorded').waitFor()
  await looksFine(page, 'policy-rules')
  const up = rules.getByRole('button', { name: 'Move gamma up' })
  await up.focus()
  await page.keyboard.press('Enter')
  await rules.getByText('gamma is now rule 2 of 3.').waitFor()
  assert.deepEqual(await order(), ['alpha', 'gamma', 'beta'])
  // The focus goes with the rule, and at the top to the button that is left.
  await page.keyboard.press('Enter')
  await rules.getByText('gamma is now rule 1 of 3.').waitFor()
  assert.deepEqual(await order(), ['gamma', 'alpha', 'beta'])
  assert.equal(await page.evaluate('document.activeElement.getAttribute("aria-label")'), 'Move gamma down')
  await item('gamma').locator('.grip').dragTo(item('beta'))
  await rules.getByText('gamma is now rule 3 of 3.').waitFor()
  assert.deepEqual(await order(), ['alpha', 'beta', 'gamma'])
  await item('beta').locator('.grip').dragTo(item('alpha'))
  assert.deepEqual(await order(), ['beta', 'alpha', 'gamma'])
  await rules.getByRole('button', { name: 'Remove alpha' }).click()
  assert.deepEqual(await order(), ['beta', 'gamma'])
  await item('beta').getByRole('link', { name: '2 requests' }).click({ trial: true })
  page.once('dialog', (dialog) => dialog.accept())
  await item('beta').getByRole('link', { name: '2 requests' }).click()
  await page.waitForURL(/traffic\?rule=beta&window=24h$/)
})

test('a comment is kept with its version, and one click undoes a change', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('policy')
  const text = policyText(page)
  const apply = async (policy: object, comment: string) => {
    await text.fill(JSON.stringify(policy))
    await page.getByRole('button', { name: 'Apply…' }).click()
    await page.getByLabel('Comment').fill(comment)
    await page.keyboard.press('Enter')
    await page.getByText('The policy is in force.').waitFor()
  }
  const hostile = '<img src=x onerror=alert(1)> for Black Friday'
  await apply(THREE, hostile)
  const versions = page.getByRole('table', { name: 'Versions' })
  await versions.getByText(hostile).waitFor()
  await page.getByRole('region', { name: 'In force' }).getByText(hostile).waitFor()
  await looksFine(page, 'policy-commented')
  // The policy of before was the default, which has no version.
  await page.getByRole('button', { name: 'Undo', exact: true }).click()
  await page.getByText('Undone: the policy of before is in force again.').waitFor()
  assert.partialDeepStrictEqual((await manage.ask('GET', '/v1/policy')).body, {
    ...{ version: 2, policy: { rules: [] }, comment: 'Undo of version 1' },
  })
  assert.equal(await page.getByRole('button', { name: 'Undo', exact: true }).count(), 0)
  await apply(THREE, 'again')
  await apply({ rules: [] }, 'too much')
  await page.getByRole('button', { name: 'Undo', exact: true }).click()
  await versions.getByText('Undo of version 4').waitFor()
  assert.partialDeepStrictEqual((await manage.ask('GET', '/v1/policy')).body, {
    ...{ version: 5, restored_version: 3, policy: THREE },
  })
  // A change of another person is not undone.
  await apply({ rules: [], otherwise: 'pass' }, '')
  await manage.ask('PUT', '/v1/policy', { rules: [], otherwise: 'block' }, { 'if-match': '*' })
  await page.getByRole('button', { name: 'Undo', exact: true }).click()
  await page.getByText('Another change was saved first.').waitFor()
  assert.equal((await manage.ask('GET', '/v1/policy')).body.policy.otherwise, 'block')
  await goTo('settings/audit')
  await page.getByRole('table', { name: 'Audit log' }).getByText(hostile).waitFor()
})
