import assert from 'node:assert/strict'
import { test } from 'tap'
import { compared } from '../../src/terms/contradictions.ts'
import { Effort } from '../../src/terms/effort.ts'
import type { PublishedTerms } from '../../src/terms/published-terms.ts'
import { robotsForm } from '../../src/terms/robots-form.ts'
import { RobotsTxt } from '../../src/terms/robots-txt.ts'
import { policyOf, termsOf } from './published.ts'

const POLICY = policyOf({
  rules: [
    { name: 'training', when: { purpose: 'training' }, action: 'block' },
    { name: 'private', when: { path: '/private/*', category: 'crawler' }, action: 'block' },
  ],
})

test('planted contradictions are found in both directions, with their line', async () => {
  const robots = RobotsTxt.parse(
    'User-agent: TrainBot\nDisallow: /private\nAllow: /\n\nUser-agent: SearchBot\nDisallow: /a\nDisallow: /private/\n\nUser-agent: *\nDisallow: /private/\n',
  )
  const found = contradictions(termsOf(POLICY), robots).map(({ kind, pattern, line, tokens }) => {
    return [kind, pattern, line?.lineNumber ?? null, tokens.join(' ')]
  })
  assert.deepEqual(found, [
    ['refused', '/', null, 'BothBot Two Words'],
    ['refused', '/', 3, 'TrainBot'],
    ['let-in', '/a', 6, 'SearchBot'],
    ['let-in', '/private/', 10, '*'],
  ])
})

test('what the policy publishes itself contradicts nothing', async () => {
  const terms = termsOf(POLICY)
  const published = RobotsTxt.parse(
    robotsForm(terms, { hasUsage: true, hasSignals: true, license: null, own: null }),
  )
  assert.deepEqual(contradictions(terms, published), [])
})

test('an empty file allows everything', async () => {
  const found = contradictions(termsOf(POLICY), RobotsTxt.parse(''))
  assert.deepEqual(
    found.map(({ kind, pattern, tokens }) => [kind, pattern, tokens.length]),
    [
      ['refused', '/', 3],
      ['refused', '/private/', 4],
    ],
  )
})

test('patterns that were made to be compared for long are given up', async () => {
  const stars = (letters: string) => `/${[...letters.repeat(12)].map((letter) => `*${letter}`).join('')}*z`
  const lines = Array.from({ length: 300 }, (_, i) => `Disallow: ${stars(`ab${i}`)}\n`).join('')
  const policy = policyOf({
    rules: [{ name: 'a', when: { category: 'crawler', path: [stars('ba'), stars('abb')] }, action: 'block' }],
  })
  const robots = RobotsTxt.parse(`User-agent: *\n${lines}`)
  assert.equal(compared(termsOf(policy), robots, new Effort()).isComplete, false)
  const published = robotsForm(termsOf(policy), {
    hasUsage: true,
    hasSignals: true,
    license: null,
    own: robots,
  })
  // What cannot be worked out is closed.
  assert.notEqual(RobotsTxt.parse(published).disallowing('silentbot', `/${'ab'.repeat(12)}abz`), null)
})

function contradictions(terms: PublishedTerms, robots: RobotsTxt) {
  const { contradictions: found, isComplete } = compared(terms, robots, new Effort())
  assert.ok(isComplete)
  return found
}
