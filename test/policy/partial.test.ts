import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { decide } from '../../src/policy/decide.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { missingFacts, PartialPolicies } from '../../src/policy/partial.ts'
import {
  allRules,
  parseAcceptedPolicy,
  parsePolicy,
  type Policy,
  policyOfApp,
  type Rule,
} from '../../src/policy/policy.ts'

const NEEDS: readonly (readonly [when: unknown, ...needs: readonly string[]])[] = [
  [{ path: '/a', user_agent: '*bot*', header: { 'User-Agent': 'x' } }],
  [{ header: { Accept: 'x', 'user-agent': 'y', 'X-B': { present: false } } }, 'header accept', 'header x-b'],
  [{ not: { path: '/a', header: { accept: 'x' } } }, 'header accept'],
  [{ not: 'request.query == "a"' }, 'request.query'],
  ['request.path == "/a" && verdict.verified && forged && fingerprint.ja4 == ""'],
  ['request.headers["user-agent"] == "x" && request.headers.accept == ""', 'request.headers.accept'],
  ['"x-b" in request.headers && "user-agent" in request.headers', 'request.headers.x-b'],
  ['request.method in request.headers', 'request.headers'],
  ['has(request.headers.accept) || request.query == ""', 'request.headers.accept', 'request.query'],
]

test('what a rule would have to know', async () => {
  for (const [when, ...needs] of NEEDS) {
    const [rule] = allRules(parsePolicy({ rules: [{ name: 'it', when, action: 'block' }] }))
    assert.deepEqual(missingFacts(rule!), needs, JSON.stringify(when))
  }
})

test('an unknown word of a policy that was accepted before needs nothing', async () => {
  const when = 'verdict.category == "crawlr" || request.query == "a"'
  const accepted = parseAcceptedPolicy({ rules: [{ name: 'it', when, action: 'block' }] })
  assert.deepEqual(missingFacts(allRules(accepted)[0]!), ['request.query'])
})

test('a rule that may hold leaves it open; one that cannot, or is on trial, does not', async () => {
  const policy = parsePolicy({
    rules: [
      { name: 'elsewhere', when: { path: '/b', header: { accept: 'x' } }, action: 'block' },
      { name: 'trial', when: { header: { accept: 'x' } }, action: 'block', dry_run: true },
      { name: 'known trial', when: { method: 'GET' }, action: 'block', dry_run: true },
      { name: 'over', when: { header: { accept: 'x' } }, action: 'block', expires: '2020-01-01T00:00:00Z' },
      { name: 'may', when: { path: '/a', header: { accept: 'x' } }, action: 'block' },
      { name: 'known', when: { method: 'GET' }, action: 'pass' },
    ],
  })
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  const decided = (path: string) => {
    const { outcome, open, trials } = new PartialPolicies().decide(policy, factsAt(path, {}), nowMs)
    return [outcome?.rule, open.map(nameOf), trials.map(nameOf)]
  }
  assert.deepEqual(decided('/a'), [undefined, ['trial', 'may'], ['known trial']])
  assert.deepEqual(decided('/c'), ['known', ['trial'], ['known trial']])
})

test('policies of apps share the rules of the organisation, and each decides for its own app', async () => {
  const organisation = parsePolicy({ last: [{ name: 'last', when: {}, action: 'block' }] })
  const ofApp = (path: string) =>
    policyOfApp(
      organisation,
      parsePolicy({ rules: [{ name: `pass ${path}`, when: { path }, action: 'pass' }] }, { of: 'app' }),
    )
  const partial = new PartialPolicies()
  const ruleFor = (path: string, policy: Policy) => partial.decide(policy, factsAt(path, {}), 0).outcome?.rule
  const [a, b] = [ofApp('/a'), ofApp('/b')]
  assert.deepEqual(
    [ruleFor('/a', a), ruleFor('/b', a), ruleFor('/a', b), ruleFor('/b', b)],
    [...['pass /a', 'last', 'last', 'pass /b']],
  )
})

test('what it says is so, whatever else the request had', async () => {
  const when = fc.record(
    {
      path: fc.constantFrom('/a', '/b', '/x'),
      user_agent: fc.constantFrom('curl', '*bot'),
      header: fc.constantFrom({ accept: 'x' }, { 'user-agent': 'curl' }, { accept: { present: false } }),
      expression: fc.constantFrom(
        'request.headers.accept == "x"',
        'request.path == "/a"',
        'int(request.query) == 1',
        'int(request.headers.accept) == 1',
      ),
      not: fc.constantFrom(
        { header: { accept: 'x' } },
        { path: '/a' },
        { expression: 'request.query == "1"' },
      ),
    },
    { requiredKeys: [] },
  )
  const rule = fc.record({ when, action: fc.constantFrom('block', 'pass', 'tag'), dry_run: fc.boolean() })
  const seen = fc.record({
    path: fc.constantFrom('/a', '/b', '/c', '/x/..%2fa'),
    userAgent: fc.constantFrom('curl', 'a bot'),
    accept: fc.constantFrom(null, 'x', '1', ''),
    query: fc.constantFrom('', '?1', '?x'),
  })
  fc.assert(
    fc.property(
      fc.array(rule, { minLength: 1, maxLength: 5 }),
      seen,
      (rules, { path, userAgent, accept, query }) => {
        const policy = parsePolicy({ rules: rules.map((each, index) => ({ ...each, name: `r${index}` })) })
        const known = { 'User-Agent': userAgent }
        const { outcome } = new PartialPolicies().decide(policy, factsAt(path, known), 0)
        const whole = decide(
          policy,
          factsAt(path + query, accept === null ? known : { ...known, Accept: accept }),
          0,
        )
        if (outcome !== null) assert.equal(outcome.rule, whole.rule)
      },
    ),
    { numRuns: 2000 },
  )
})

function factsAt(path: string, headers: Record<string, string>): Facts {
  return {
    ...{
      method: 'GET',
      host: 'a.test',
      path,
      address: '192.0.2.1',
      rawHeaders: Object.entries(headers).flat(),
    },
    print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
    ...{ verdict: UNKNOWN, forged: [] },
  }
}

function nameOf({ decision }: Rule): string {
  return decision.rule
}
