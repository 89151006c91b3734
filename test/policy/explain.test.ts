import assert from 'node:assert/strict'
import { test } from 'tap'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { parsePolicy } from '../../src/policy/policy.ts'

const FACTS: Facts = {
  method: 'GET',
  host: 'A.test:443',
  path: '/a/..%2fadmin?x=1',
  address: '192.0.2.7',
  rawHeaders: ['Accept', 'text/html', 'Accept', '*/*', 'X-N', 'x'],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: 'not-tls' }, ja4h: null },
  verdict: { ...UNKNOWN, confidence: 0.2, evidence: [{ kind: 'headless', detail: '', weight: 1 }] },
  forged: [],
}

/** Each condition, whether it holds, and what is seen; in a rule that blocks. */
const CONDITIONS: readonly (readonly [name: string, takes: unknown, holds: boolean, seen: unknown])[] = [
  ['verdict', 'human', false, 'unknown'],
  ['agent', 'gptbot', false, null],
  ['category', 'crawler', false, null],
  ['software', 'curl', false, null],
  ['evidence', 'head*', true, ['headless']],
  ['confidence_min', 0.5, false, 0.2],
  ['verified', true, false, false],
  ['listed', true, false, false],
  ['signer', 'https://*.test', false, null],
  ['forged', true, false, []],
  ['hello', 'not-tls', true, 'not-tls'],
  ['ja4', '*_*_*', false, null],
  ['stable', '*-*-*-*', false, null],
  ['ja4h', '*_*_*_*', false, null],
  ['http2', '*', false, null],
  ['method', ['GET', 'POST'], true, 'GET'],
  ['address', '10.0.0.0/8', false, '192.0.2.7'],
  ['host', 'a.test', true, 'a.test'],
  ['path', '/admin', true, ['/a/..%2Fadmin', '/admin']],
  ['user_agent', '*', false, null],
  ['header', { accept: 'text/*', cookie: '*' }, false, { accept: 'text/html, */*', cookie: null }],
  [
    'expression',
    'request.method == "PUT" && request.headers["x-n"] == request.headers.accept && "b" in request.headers',
    false,
    {
      'request.method': 'GET',
      'request.headers.x-n': 'x',
      'request.headers.accept': 'text/html, */*',
      'request.headers.b': null,
    },
  ],
  ['not', { method: 'GET' }, false, null],
]

test('each condition with what it takes, whether it holds, and what is seen', async (t) => {
  const when = Object.fromEntries(CONDITIONS.map(([name, takes]) => [name, takes]))
  const policy = parsePolicy({ rules: [{ name: 'it', when, action: 'block' }] })
  const [rule] = explain(policy, FACTS, 0).rules
  assert.equal(rule!.conditions.length, CONDITIONS.length)
  for (const [name, takes, holds, seen] of CONDITIONS) {
    t.test(name, async () => {
      const found = rule!.conditions.find((each) => each.name === name)
      assert.deepEqual(found, { name, takes, holds, seen })
    })
  }
})

test('it comes to what decide comes to', async () => {
  for (const action of ['block', 'pass']) {
    for (const [name, takes] of CONDITIONS) {
      const policy = parsePolicy({ rules: [{ name: 'it', when: { [name]: takes }, action }] })
      const { decision, rules } = explain(policy, FACTS, 0)
      assert.deepEqual(decision, decide(policy, FACTS, 0))
      assert.equal(rules[0]!.holds, decision.rule === 'it', `${action} ${name}`)
      assert.equal(rules[0]!.conditions[0]!.holds, rules[0]!.holds)
    }
  }
})

test('rules on trial, expired, after the deciding one, and doubtful', async () => {
  const policy = parsePolicy({
    rules: [
      { name: 'over', when: {}, action: 'block', expires: '2020-01-01T00:00:00Z' },
      { name: 'on trial', when: {}, action: 'block', dry_run: true },
      { name: 'no answer', when: 'int(request.headers["x-n"]) > 1', action: 'pass' },
      { name: 'decides', when: 'int(request.headers["x-n"]) > 1', action: 'block' },
      { name: 'behind', when: { method: 'GET' }, action: 'pass' },
    ],
  })
  const { decision, rules } = explain(policy, { ...FACTS, path: '/' }, Date.parse('2026-01-01T00:00:00Z'))
  assert.deepEqual(
    rules.map((rule) => [
      rule.rule,
      rule.holds,
      rule.decides,
      rule.isDryRun,
      rule.hasExpired,
      rule.isDoubtful,
    ]),
    [
      ['over', true, false, false, true, false],
      ['on trial', true, false, true, false, false],
      ['no answer', false, false, false, false, true],
      ['decides', true, true, false, false, true],
      ['behind', true, false, false, false, false],
    ],
  )
  assert.equal(decision.wouldHave?.rule, 'on trial')
})
