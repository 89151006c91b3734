import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { allRules, type Policy, parsePolicy, policyOfApp } from '../../src/policy/policy.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

const FACTS: Facts = {
  ...{ method: 'GET', host: 'shop.example', path: '/a', address: '192.0.2.1' },
  rawHeaders: ['User-Agent', 'curl'],
  print: { connection: { ja4: null, stable: null, http2: null, noHello: null }, ja4h: null },
  ...{ verdict: UNKNOWN, forged: [] },
}

test('rules of the organisation stand before and after those of the app', async () => {
  const organisation = parsePolicy({
    first: [rule('attackers', { path: '/a' }, 'block')],
    last: [rule('rest', {}, 'pass')],
  })
  const app = appPolicy({ rules: [rule('attackers', { method: 'GET' }, 'tag')] })
  const policy = policyOfApp(organisation, app)
  const decided = (path: string, method = 'GET') => {
    const { rule, layer } = decide(policy, { ...FACTS, path, method }, 0)
    return [rule, layer]
  }
  assert.deepEqual(decided('/a'), ['attackers', 'first'])
  assert.deepEqual(decided('/b'), ['attackers', 'app'])
  assert.deepEqual(decided('/b', 'PUT'), ['rest', 'last'])
  const explained = explain(policy, { ...FACTS, path: '/b' }, 0)
  assert.deepEqual(
    explained.rules.map(({ rule, layer, decides }) => [rule, layer, decides]),
    [
      ['attackers', 'first', false],
      ['attackers', 'app', true],
      ['rest', 'last', false],
    ],
  )
  assert.equal(policy.first, organisation.first, 'the rules of the organisation are shared')
})

test('the document of today is the layer last', async () => {
  const rules = [rule('a', {}, 'block')]
  assert.deepEqual(parsePolicy({ rules }).last.rules.length, 1)
  assert.deepEqual(decide(parsePolicy({ rules }), FACTS, 0).layer, 'last')
  assert.deepEqual(problemsOf({ rules, first: [] }), [
    '/rules are the same as `last`; with `first` or `last`, move them there',
  ])
  assert.match(problemsOf({ rules }, 'app').join(), /^$/)
  assert.match(problemsOf({ first: [] }, 'app').join(), /^\/first unknown field/)
  const twice = { first: rules, last: rules }
  assert.deepEqual(problemsOf(twice), ['/last/0/name "a" is already used'])
  const thousand = Array.from({ length: 1000 }, (_, index) => rule(`r${index}`, {}, 'tag'))
  const more = Array.from({ length: 1000 }, (_, index) => rule(`s${index}`, {}, 'tag'))
  assert.equal(allRules(parsePolicy({ first: thousand, last: more })).length, 2000)
  assert.match(problemsOf({ first: [...thousand, ...more] }).join(), /^\/first has 2000 rules; at most 1000/)
})

test('what an app sets replaces what the organisation sets, if no rule matches', async () => {
  const outcome = (organisation: object, app: object) => {
    const policy = policyOfApp(parsePolicy(organisation), appPolicy(app))
    const { action, layer } = policy.otherwise
    return [action.kind, layer, policy.unknownSignerWaitMs]
  }
  assert.deepEqual(outcome({}, {}), ['tag', 'last', 0])
  assert.deepEqual(outcome({ otherwise: 'block', unknown_signer: { wait: '9ms' } }, {}), ['block', 'last', 9])
  assert.deepEqual(outcome({ otherwise: 'block' }, { otherwise: 'pass' }), ['pass', 'app', 0])
  const waits = { unknown_signer: { wait: '9ms' } }
  assert.deepEqual(outcome(waits, { unknown_signer: 'pass' }), ['tag', 'last', 0])
  const last = { last: [rule('all', {}, 'block')] }
  assert.equal(decide(policyOfApp(parsePolicy(last), appPolicy({ otherwise: 'pass' })), FACTS, 0).rule, 'all')
})

test('layers decide as their rules in one list do', async () => {
  const when = fc.record(
    {
      path: fc.constantFrom('/a', '/b*', '/b/c'),
      method: fc.constantFrom('GET', 'PUT'),
      host: fc.constantFrom('shop.example', '*.example'),
      user_agent: fc.constantFrom('curl', '*bot*'),
      address: fc.constantFrom('192.0.2.0/24', '198.51.100.1'),
      expression: fc.constantFrom('request.path == "/a"', 'int(request.query) == 1'),
    },
    { requiredKeys: [] },
  )
  const rules = fc.array(
    fc.record({
      when,
      action: fc.constantFrom('block', 'pass', 'tag'),
      dry_run: fc.boolean(),
      expires: fc.constantFrom('2020-01-01T00:00:00Z', '2030-01-01T00:00:00Z'),
    }),
    { maxLength: 4 },
  )
  const facts = fc.record({
    path: fc.constantFrom('/a', '/b/c', '/b/..%2fa', '/?1'),
    method: fc.constantFrom('GET', 'PUT'),
    host: fc.constantFrom('shop.example', 'a.b', 'x.example'),
    address: fc.constantFrom('192.0.2.1', '198.51.100.1'),
  })
  const otherwise = fc.constantFrom(undefined, 'pass', 'block')
  const nowMs = Date.parse('2026-01-01T00:00:00Z')
  fc.assert(
    fc.property(
      rules,
      rules,
      rules,
      otherwise,
      otherwise,
      facts,
      (first, own, last, common, wanted, some) => {
        const named = (list: readonly object[], layer: string) =>
          list.map((each, index) => ({ ...each, name: `${layer}${index}` }))
        const lists = { first: named(first, 'first'), last: named(last, 'last') }
        const app = named(own, 'app')
        const set = (value: string | undefined) => (value === undefined ? {} : { otherwise: value })
        const layered = policyOfApp(
          parsePolicy({ ...lists, ...set(common) }),
          appPolicy({ rules: app, ...set(wanted) }),
        )
        const flat = parsePolicy({
          rules: [...lists.first, ...app, ...lists.last],
          ...set(wanted ?? common),
        })
        const request = { ...FACTS, ...some }
        const decided = decide(layered, request, nowMs)
        const expected = decide(flat, request, nowMs)
        const plain = ({ rule, action, wouldHave }: typeof decided) => [rule, action, wouldHave?.rule]
        assert.deepEqual(plain(decided), plain(expected))
        if (decided.rule !== 'otherwise') assert.ok(decided.rule.startsWith(decided.layer!))
        assert.deepEqual(layered.asked, flat.asked)
        assert.equal(layered.steps, flat.steps)
        assert.deepEqual(explain(layered, request, nowMs).decision, decided)
      },
    ),
    { numRuns: 1_000 },
  )
})

function appPolicy(document: object): Policy {
  return parsePolicy(document, { of: 'app' })
}

function rule(name: string, when: object, action: string): object {
  return { name, when, action }
}

function problemsOf(document: object, of: 'organisation' | 'app' = 'organisation'): readonly string[] {
  try {
    parsePolicy(document, { of })
    return []
  } catch (error) {
    assert.ok(error instanceof DocumentFault)
    return error.problems.map(({ pointer, what }) => `${pointer} ${what}`)
  }
}
