import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { productToken, RobotsTxt } from '../../src/terms/robots-txt.ts'
import { robotsForm } from '../../src/terms/robots-form.ts'
import { rslForm } from '../../src/terms/rsl-form.ts'
import { contentUsage, usageForm } from '../../src/terms/usage-form.ts'
import { Glob } from '../../src/policy/glob.ts'
import { getsIn, KNOWLEDGE, LIST, NOW_MS, policyOf, termsOf } from './published.ts'
import { publishedTerms } from '../../src/terms/published-terms.ts'

const PLAIN = { hasUsage: false, hasSignals: false, license: null, own: null }
const NO_TRAINING = {
  rules: [
    { name: 'search', when: { purpose: 'search' }, action: 'tag' },
    { name: 'training', when: { purpose: 'training' }, action: 'block' },
    { name: 'private', when: { path: '/private/*', category: 'crawler' }, action: 'block' },
  ],
}

test('a policy becomes a robots.txt with a group for each kind of treatment', async () => {
  const text = robotsForm(termsOf(policyOf(NO_TRAINING)), PLAIN)
  assert.equal(
    text,
    `# Made by Gatehouse from its policy, which holds for crawlers that do not read this file, too.

User-agent: BothBot
User-agent: TrainBot
User-agent: Two Words
Disallow: /

User-agent: HelperBot
User-agent: SilentBot
Disallow: /private/
Allow: /

User-agent: *
Allow: /
`,
  )
})

test('an agent with several purposes gets what it would get with each of them', async () => {
  const policy = policyOf(NO_TRAINING)
  const both = LIST.find(({ id }) => id === 'both')!
  assert.equal(getsIn(policy, both, '/'), false)
  const withoutPurposes = policyOf({
    rules: [{ name: 'a', when: { agent: 'both' }, action: 'tag' }, ...NO_TRAINING.rules],
  })
  assert.equal(getsIn(withoutPurposes, both, '/'), true, 'a rule that names it comes first')
})

test('uses are stated where the policy tells them apart', async () => {
  const terms = termsOf(policyOf(NO_TRAINING))
  assert.equal(usageForm(terms), '/ Content-Usage: train-ai=n, search=y\n')
  assert.equal(
    contentUsage(terms, () => true),
    'train-ai=n, search=y',
  )
  const robots = robotsForm(terms, {
    ...PLAIN,
    hasUsage: true,
    hasSignals: true,
    license: 'https://a.test/license.xml',
  })
  assert.match(robots, /^License: https:\/\/a\.test\/license\.xml$/m)
  assert.match(
    robots,
    /User-agent: \*\nAllow: \/\nContent-Usage: train-ai=n, search=y\nContent-Signal: search=yes, ai-input=yes, ai-train=no\n$/,
  )
  assert.match(
    rslForm(terms),
    /<content url="\/private\/">\s*<license>\s*<permits type="usage">search<\/permits>\s*<prohibits type="usage">ai-input,ai-train<\/prohibits>/,
  )
  const open = termsOf(policyOf({ rules: [] }))
  assert.equal(usageForm(open), '')
  assert.equal(
    contentUsage(open, () => true),
    null,
  )
  assert.doesNotMatch(robotsForm(open, { ...PLAIN, hasUsage: true, hasSignals: true }), /Content-/)
})

test('an agent that may come may do what it comes for', async () => {
  const policy = policyOf({
    rules: [{ name: 'licensed', when: { agent: 'trainer' }, action: 'tag' }, ...NO_TRAINING.rules],
  })
  const robots = robotsForm(termsOf(policy), { ...PLAIN, hasUsage: true })
  assert.match(robots, /User-agent: TrainBot\nAllow: \/\nContent-Usage: train-ai=y, search=y\n/)
})

test('what the app has written stays, and a crawler may get what both allow', async () => {
  const own = RobotsTxt.parse(
    'Sitemap: https://a.test/sitemap.xml\nUser-agent: *\nCrawl-delay: 2\nDisallow: /cart\nAllow: /cart/help\n\nUser-agent: OwnBot\nDisallow: /\n',
  )
  const policy = policyOf({
    rules: [
      {
        name: 'no',
        when: { category: 'crawler', path: ['/private/*', '/cart/help/internal*'] },
        action: 'block',
      },
    ],
  })
  const merged = RobotsTxt.parse(robotsForm(termsOf(policy), { ...PLAIN, own }))
  assert.deepEqual(merged.others, ['Sitemap: https://a.test/sitemap.xml'])
  assert.ok(merged.groupsOf('searchbot').some(({ others }) => others.includes('Crawl-delay: 2')))
  for (const [token, path, isOpen] of [
    ['searchbot', '/', true],
    ['searchbot', '/cart', false],
    ['searchbot', '/cart/help', true],
    ['searchbot', '/cart/help/internal/x', false],
    ['searchbot', '/private/x', false],
    ['ownbot', '/', false],
    ['unknownbot', '/cart/help', true],
    ['unknownbot', '/private/x', true],
  ] as const)
    assert.equal(merged.disallowing(token, path) === null, isOpen, `${token} ${path}`)
})

test('a long file of the app stays as it is, and what the policy closes wins over all of it', async () => {
  const lines = Array.from(
    { length: 8_000 },
    (_, i) => `${i % 3 === 0 ? 'Allow' : 'Disallow'}: /part/${i}/${'x'.repeat(i % 40)}*y`,
  )
  const own = RobotsTxt.parse(
    `User-agent: *\n${lines.join('\n')}\nAllow: /private/very/long/allowed/path/of/the/app/itself\n`,
  )
  const policy = policyOf({
    rules: [
      { name: 'closed', when: { category: 'crawler', path: ['/private*', '/exact'] }, action: 'block' },
      ...NO_TRAINING.rules,
    ],
  })
  const text = robotsForm(termsOf(policy), { ...PLAIN, own })
  assert.ok(text.length < 500_000, 'the rules stand in it once')
  const merged = RobotsTxt.parse(text)
  for (const [token, path, isOpen] of [
    ['searchbot', '/private/very/long/allowed/path/of/the/app/itself', false],
    ['searchbot', '/part/1/xay', false],
    ['searchbot', '/part/3/xxxay', true],
    ['searchbot', '/exact', false],
    ['trainbot', '/', false],
    ['unknownbot', '/private', true],
    ['unknownbot', '/part/1/xay', false],
  ] as const)
    assert.equal(merged.disallowing(token, path) === null, isOpen, `${token} ${path}`)
})

test('of hosts, the terms are those of the host', async () => {
  const policy = policyOf({
    rules: [{ name: 'shop', when: { host: 'shop.test', purpose: 'search' }, action: 'block' }],
  })
  const shut = (host: string | null) => robotsForm(publishedTerms(policy, KNOWLEDGE, host, NOW_MS), PLAIN)
  assert.match(shut('shop.test'), /User-agent: SearchBot\nDisallow: \/\n/)
  assert.doesNotMatch(shut('blog.test'), /Disallow/)
  assert.doesNotMatch(shut(null), /Disallow/)
})

test('rules whose paths cannot be listed are named', async () => {
  const policy = policyOf({
    rules: [
      { name: 'odd', when: 'request.path.startsWith("/a")', action: 'block' },
      { name: 'fine', when: 'verdict.purpose.exists(p, p == "training")', action: 'block' },
    ],
  })
  const terms = termsOf(policy)
  assert.deepEqual(
    terms.unlisted.map(({ rule }) => rule),
    ['odd'],
  )
  assert.match(robotsForm(terms, PLAIN), /User-agent: TrainBot\nUser-agent: Two Words\nDisallow: \/\n/)
})

test('paths are written so that a crawler finds them', async () => {
  const policy = policyOf({
    rules: [
      {
        name: 'a',
        when: { path: ['/café b', '/price$', '*.pdf', '*/x'], category: 'crawler' },
        action: 'block',
      },
    ],
  })
  const robots = RobotsTxt.parse(robotsForm(termsOf(policy), PLAIN))
  for (const [path, isOpen] of [
    ['/caf%C3%A9%20b', false],
    ['/caf%C3%A9%20b?x=1', false],
    ['/caf%C3%A9%20bc', true],
    ['/price$', false],
    ['/price', true],
    ['/price$$', true],
    ['/docs/a.pdf', false],
    ['/docs/a.pdfx', true],
    ['/x', false],
    ['/a/x', false],
    ['/ax', true],
  ] as const)
    assert.equal(robots.disallowing('silentbot', path) === null, isOpen, path)
})

test('over any policy, robots.txt says what the policy does to 10,000 agents and paths', async () => {
  const pattern = fc
    .array(fc.constantFrom('/', 'a', 'b', '*', '/a', '.x'), { minLength: 1, maxLength: 6 })
    .map((parts) => `/${parts.join('')}`.replaceAll(/\/{2,}/g, '/').replaceAll(/\*{2,}/g, '*'))
  const paths = fc.array(pattern, { minLength: 1, maxLength: 3 })
  const client = fc.constantFrom(
    ...[
      {},
      { purpose: 'search' },
      { purpose: ['training', 'assistant'] },
      { agent: 'both' },
      { verified: true },
    ],
    ...[{ category: 'crawler' }, { not: { purpose: 'search' } }, { listed: false }],
  )
  const where = fc.oneof(
    fc.constant({}),
    paths.map((path) => ({ path })),
    paths.map((path) => ({ not: { path } })),
  )
  const action = fc.constantFrom('block', 'tag', 'pass', {
    rate_limit: { per: 'agent', requests: 5, window: '1m' },
  })
  const rule = fc.tuple(client, where, action, fc.boolean()).map(([who, at, action, isTrial]) => ({
    when: { ...who, ...at },
    action,
    ...(isTrial && { dry_run: true }),
  }))
  const target = fc
    .array(fc.constantFrom('a', 'b', 'a/', '.x', 'ab', 'c/'), { maxLength: 5 })
    .map((parts) => `/${parts.join('')}`)
  let judged = 0
  let stricter = 0
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 6 }),
      fc.array(target, { minLength: 5, maxLength: 8 }),
      (rules, targets) => {
        const policy = policyOf({ rules: rules.map((each, index) => ({ name: `r${index}`, ...each })) })
        const robots = RobotsTxt.parse(robotsForm(termsOf(policy), PLAIN))
        for (const software of [...LIST, null]) {
          for (const path of targets) {
            const token = productToken(software?.robotsToken ?? 'Unknown')
            const isOpen = robots.disallowing(token, path) === null
            const isLet = getsIn(policy, software, path)
            judged++
            if (!isOpen && isLet) stricter++
            assert.ok(isLet || !isOpen, `${token} ${path} is refused`)
          }
        }
      },
    ),
    { numRuns: 400, seed: 7 },
  )
  assert.ok(judged > 10_000, `${judged}`)
  // A whole path cannot be made to win over a longer pattern that matches it too, so it is closed.
  assert.ok(stricter / judged < 0.01, `${stricter} of ${judged}`)
})

test('the header and the licence say the same of each path', async () => {
  const policy = policyOf({
    rules: [
      { name: 'blog', when: { path: '/blog/*', purpose: 'training' }, action: 'tag' },
      { name: 'training', when: { purpose: 'training' }, action: 'block' },
    ],
  })
  const terms = termsOf(policy)
  const at = (path: string) => contentUsage(terms, (pattern) => Glob.parse(pattern, 'exact').matches(path))
  assert.equal(at('/blog/a'), 'train-ai=y, search=y')
  assert.equal(at('/a'), 'train-ai=n, search=y')
  assert.equal(
    rslForm(terms),
    `<?xml version="1.0" encoding="UTF-8"?>
<rsl xmlns="https://rslstandard.org/rsl">
  <content url="/blog/">
    <license>
      <permits type="usage">search,ai-input,ai-train</permits>
    </license>
  </content>
  <content url="/">
    <license>
      <permits type="usage">search,ai-input</permits>
      <prohibits type="usage">ai-train</prohibits>
    </license>
  </content>
</rsl>
`,
  )
})
