import assert from 'node:assert/strict'
import { test } from 'tap'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'
import { fillCatalogue } from './catalogue.ts'
import { policyText } from './policy-text.ts'

const skip = skipped('chromium')
const FOCUS_IS_IN_TEXT = 'document.activeElement.closest(".code") !== null'

test('a policy is typed with completion, its wrong line is marked, and it is applied', {
  skip,
}, async (t) => {
  // The test fails where the browser says that the page broke its Content-Security-Policy.
  const { manage, page, goTo } = await openDashboard(t, { knows: true })
  await fillCatalogue(manage.storeUrl)
  await goTo('policy')
  const { box, read } = policyText(page)
  const options = page.getByRole('listbox').getByRole('option')
  const complete = async (typed: string, option: string) => {
    await page.keyboard.type(typed)
    await options.filter({ hasText: option }).first().waitFor()
    // At first, Enter begins a line: the list may have come after a person decided to press it.
    await page.waitForTimeout(150)
    await page.keyboard.press('Enter')
  }
  await box.focus()
  await page.keyboard.press('ControlOrMeta+a')
  await complete('ru', 'rules')
  await complete('na', 'name')
  await page.keyboard.type('no-crawlers\n')
  await complete('wh', 'when')
  // Keys are offered by themselves after their mapping.
  await options.filter({ hasText: 'verdict' }).first().waitFor()
  await complete('ag', 'agent')
  await complete('gptb', 'gptbot')
  await page.keyboard.press('Enter')
  await complete('categ', 'category')
  await page.keyboard.type('crawlr\n')
  await page.keyboard.press('Shift+Tab')
  await complete('act', 'action')
  await options.filter({ hasText: 'block' }).first().waitFor()
  await looksFine(page, 'policy-completion')
  await complete('blo', 'block')
  const typed = (category: string) =>
    `rules:\n  - name: no-crawlers\n    when:\n      agent: gptbot\n      category: ${category}\n    action: block`
  assert.equal(await read(), typed('crawlr'))

  await page.getByText(/^Line 5: .*unknown category "crawlr"/).waitFor()
  assert.equal(await box.getAttribute('aria-invalid'), 'true')
  assert.match((await box.locator('.cm-lintRange-error').textContent())!, /category: crawlr/)
  await looksFine(page, 'policy-line-error')
  await page.emulateMedia({ forcedColors: 'active' })
  await looksFine(page, 'policy-forced-colours')
  await page.emulateMedia({ forcedColors: 'none' })
  await page.keyboard.press('F8')
  await page.keyboard.press('Home')
  await page.keyboard.press('Shift+End')
  await page.keyboard.type('category: crawler')
  await page.getByText(/^Line 5: /).waitFor({ state: 'hidden' })
  assert.equal(await read(), typed('crawler'))
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  const rules = [{ name: 'no-crawlers', when: { agent: 'gptbot', category: 'crawler' }, action: 'block' }]
  assert.deepEqual((await manage.ask('GET', '/v1/policy')).body.policy, { rules })
})

test('Tab indents, Escape and then Tab leave, and changes are undone', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t, { knows: true })
  await goTo('policy')
  const { box, fill, read } = policyText(page)
  await fill('rules:\n  - name: x\n    when: {agent: gptbto}\n    action: block\n')
  await page.getByText(/^Warning: Line 3: rule "x": unknown agent "gptbto"/).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.type('# a?')
  assert.match(await read(), /\n {2}# a\?$/)
  assert.equal(await page.evaluate(FOCUS_IS_IN_TEXT), true)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(FOCUS_IS_IN_TEXT), false)
  // A change of the rules is one of the text.
  const rules = page.getByRole('region', { name: 'Rules' })
  await rules.getByRole('button', { name: 'Remove x' }).click()
  assert.equal(await read(), 'rules: []\n')
  await box.focus()
  await page.keyboard.press('ControlOrMeta+z')
  await rules.getByText(/agent is gptbto/).waitFor()
  await page.keyboard.press('ControlOrMeta+y')
  await rules.getByText(/agent is gptbto/).waitFor({ state: 'hidden' })
  await page.keyboard.press('ControlOrMeta+f')
  await page.getByRole('textbox', { name: 'Find' }).waitFor()
  await page.keyboard.type('rules')
  await box.locator('.cm-searchMatch').waitFor()
  await looksFine(page, 'policy-search')
  assert.equal(await read(), 'rules: []\n')
})

test('without the editor, the text is written in a plain field', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await page.route(/\/code-[\w-]+\.js$/, (route) => route.fulfill({ status: 503, body: '' }))
  await goTo('policy')
  await page.getByText('The editor could not be loaded').waitFor()
  const plain = page.getByLabel('Policy (YAML)')
  await plain.fill('rules: [')
  await page.getByText(/^Line 1: /).waitFor()
  await plain.fill('rules: []\notherwise: pass\n')
  await page.getByRole('button', { name: 'Apply…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Apply' }).click()
  await page.getByText('The policy is in force.').waitFor()
  assert.equal((await manage.ask('GET', '/v1/policy')).body.policy.otherwise, 'pass')
})
