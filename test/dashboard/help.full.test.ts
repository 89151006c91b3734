import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { Guide } from '../../src/shared/guide.ts'
import { guideLink } from '../../src/shared/guide-link.ts'
import { parseMarkdown } from '../../src/shared/markdown.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

const PAGE = `# The ferry

About the ferry, <script>alert(1)</script> and [the river](river.md#the-bank).

See [below](#timetable), [a file](../policy.yaml), [elsewhere](https://a.example/x) and [nothing](javascript:x).

\`\`\`sh
gatehouse up --upstream http://127.0.0.1:3000
gatehouse top
\`\`\`

${'A long text.\n\n'.repeat(60)}
## Timetable

| hour | place |
|---|---|
| 7 | \`north-bank-${'x'.repeat(200)}\` |

### Sundays

- None.
`
const RIVER = `# The river\n\n${'Water.\n\n'.repeat(80)}\n## The bank\n\nHere.\n\n${'Water.\n\n'.repeat(80)}`

test('Help lists every page of the manual and shows it', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await page
    .getByRole('navigation', { name: 'Pages' })
    .getByRole('link', { name: 'Help', exact: true })
    .click()
  await page.getByRole('heading', { name: 'Help', level: 1 }).waitFor()
  const { pages } = new Guide()
  for (const { title } of pages)
    await page.getByRole('main').getByRole('link', { name: title, exact: true }).waitFor()
  await looksFine(page, 'help')
  for (const { topic, title } of pages) {
    await goTo(`help/${topic}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    await page.getByRole('article').getByText(/\w/).first().waitFor()
  }
  await goTo('help/commands')
  await page.getByRole('heading', { level: 2 }).first().waitFor()
  await looksFine(page, 'help-topic')
})

test('Help is searched by words, and a result leads to its section', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('help')
  const field = page.getByRole('searchbox', { name: 'Search the manual' })
  await field.fill('robots contradictions')
  const found = page.getByRole('region', { name: 'Found' })
  await found.getByRole('link', { name: 'Find contradictions' }).waitFor()
  assert.match(page.url(), /[?]q=robots%20contradictions$/)
  await looksFine(page, 'help-search')
  await found.getByRole('link', { name: 'Find contradictions' }).click()
  await page.getByRole('heading', { name: 'Tell crawlers what the policy does', level: 1 }).waitFor()
  assert.match(page.url(), /help\/terms#find-contradictions$/)
  await page.goBack()
  await found.getByRole('link', { name: 'Find contradictions' }).waitFor()
  assert.equal(await field.inputValue(), 'robots contradictions')
  await field.fill('no such words anywhere')
  await found.getByText('Nothing in the manual has all of these words').waitFor()
  await field.fill('')
  await page.getByRole('main').getByRole('link', { name: 'Policy', exact: true }).waitFor()
})

test('a page: its links and anchors lead somewhere and its code can be copied', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t, {
    browser: { permissions: ['clipboard-read', 'clipboard-write'] },
  })
  await page.route('**/dashboard/guide/*.md', (route) =>
    route.fulfill({ body: route.request().url().includes('river') ? RIVER : PAGE }),
  )
  await goTo('help/ferry')
  const article = page.getByRole('article')
  await article.getByText('<script>alert(1)</script>').waitFor()
  assert.equal(
    await article.getByRole('link', { name: 'elsewhere' }).getAttribute('href'),
    'https://a.example/x',
  )
  for (const name of ['a file', 'nothing'])
    assert.equal(await article.getByRole('link', { name }).count(), 0, name)
  await looksFine(page, 'help-page')

  const isInView = (name: string) =>
    page.waitForFunction(
      `(() => { const top = [...document.querySelectorAll('h2')].find((each) => each.textContent === '${name}')?.getBoundingClientRect().top; return top >= 0 && top < innerHeight })()`,
    )
  await article.getByRole('button', { name: 'Copy' }).click()
  await article.getByRole('button', { name: 'Copied' }).waitFor()
  assert.equal(
    await page.evaluate('navigator.clipboard.readText()'),
    'gatehouse up --upstream http://127.0.0.1:3000\ngatehouse top',
  )
  await article.getByRole('link', { name: 'below' }).click()
  await isInView('Timetable')
  // By the keyboard, to another page.
  await article.getByRole('link', { name: 'the river' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'The river', level: 1 }).waitFor()
  await isInView('The bank')
  await page.getByRole('link', { name: 'All topics' }).click()
  await page.getByRole('heading', { name: 'Help', level: 1 }).waitFor()
})

test('a topic that is missing says so', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('help/xyzzy')
  await page.getByRole('alert').getByText('File not found.').waitFor()
})

test('main pages lead to their topic', { skip }, async (t) => {
  const { page, goTo } = await openDashboard(t)
  await goTo('policy')
  await page.getByRole('link', { name: 'Help: Policy' }).click()
  await page.getByRole('heading', { name: new Guide().page('policy')!.title, level: 1 }).waitFor()
})

test('every topic that a page of the dashboard names is there', async () => {
  const guide = new Guide()
  const files = globSync('src/dashboard/pages/**/*.tsx')
  const named = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\bhelp="([^"]+)"/g)].map(([, topic]) => topic!),
  )
  assert.ok(named.length > 10)
  for (const each of named) {
    const { topic, anchor } = guideLink(each.replace(/^[^#]*/, '$&.md'))!
    const page = guide.page(topic)
    assert.ok(page !== null, each)
    const anchors = parseMarkdown(guide.text(page)).map((block) => ('anchor' in block ? block.anchor : ''))
    assert.ok(anchor === '' || anchors.includes(anchor), each)
  }
})
