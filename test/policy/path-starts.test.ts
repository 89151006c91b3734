import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { decide } from '../../src/policy/decide.ts'
import { PathStarts, pathStart } from '../../src/policy/compact/path-starts.ts'
import { type Policy, parsePolicy } from '../../src/policy/policy.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { FACTS } from './request-facts.ts'

test('what every path that meets a condition starts with', async () => {
  for (const [takes, start] of [
    [undefined, ''],
    ['/api/*', '/api/'],
    ['/api', '/api'],
    ['*.php', ''],
    ['/*', '/'],
    [['/shop/cart', '/shop/cart/*'], '/shop/cart'],
    [['/shop', '/search/*'], '/s'],
    [['/shop', '*'], ''],
    [['/shop', '/'], '/'],
    ['/a%20b', ''],
    ['/läden/*', ''],
    ['/a b', ''],
    [`/${'x'.repeat(100)}`, `/${'x'.repeat(63)}`],
  ] as const)
    assert.equal(pathStart(takes), start, String(takes))
})

test('few rules are tried one by one', async () => {
  assert.equal(PathStarts.of(Array.from({ length: 100 }, (_, i) => (i < 7 ? '/a' : ''))), null)
  assert.notEqual(PathStarts.of(Array.from({ length: 8 }, () => '/a')), null)
})

test('a decision is the same, and rules of other paths are not tried', async () => {
  const part = fc.constantFrom('a', 'ab', 'b', 'shop', '*', 'a*', '%61', 'ä', '..', 'x'.repeat(70))
  const path = fc.array(part, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`)
  const pattern = path.filter((each) => !each.includes('..'))
  const when = fc.record(
    {
      path: fc.oneof(pattern, fc.array(pattern, { minLength: 1, maxLength: 3 })),
      method: fc.constantFrom('GET', 'PUT'),
      expression: fc.constantFrom('request.path.startsWith("/a")', 'int(request.query) == 1'),
      not: fc.record({ path: pattern }),
    },
    { requiredKeys: [] },
  )
  const rule = fc.record({
    when: fc.oneof({ weight: 4, arbitrary: fc.record({ path: pattern }) }, { weight: 1, arbitrary: when }),
    action: fc.constantFrom('block', 'pass'),
    dry_run: fc.boolean(),
  })
  const target = fc.tuple(path, fc.constantFrom('', '?1', '?a=/shop/a', '/', '//a', ';v=1', '\\a'))
  const rules = fc.array(rule, { minLength: 8, maxLength: 40 })
  const [fast, slow] = [new PolicyRequest(), new PolicyRequest()]
  fc.assert(
    fc.property(rules, fc.array(target, { minLength: 1, maxLength: 8 }), (given, targets) => {
      const policy = parsePolicy({
        first: given.slice(0, given.length / 2).map(named),
        last: given.map((each, at) => named(each, at + 100)),
      })
      for (const parts of targets) {
        const facts = { ...FACTS, path: Buffer.from(parts.join('')).toString('latin1') }
        assert.deepEqual(decide(policy, facts, 0, fast), decide(withoutStarts(policy), facts, 0, slow))
        assert.equal(fast.failures, slow.failures)
        assert.equal(fast.stepsLeft, slow.stepsLeft)
      }
    }),
  )
  const many = Array.from({ length: 50 }, (_, at) =>
    named({ when: { path: `/part-${at}/*` }, action: 'block' }, at),
  )
  const policy = parsePolicy({ rules: many })
  let tried = 0
  const counting: Policy = {
    ...policy,
    layers: policy.layers.map(({ rules: all, starts, mcp }) => ({
      rules: all.map((each) => ({ ...each, test: (request) => ++tried > 0 && each.test(request) })),
      starts,
      mcp,
    })),
  }
  assert.equal(decide(counting, { ...FACTS, path: '/part-40/x?y' }, 0).rule, 'rule 40')
  assert.equal(decide(counting, { ...FACTS, path: '/none' }, 0).rule, 'otherwise')
  assert.equal(tried, 1)
})

function named<Rule extends object>(rule: Rule, at: number) {
  return { ...rule, name: `rule ${at}` }
}

function withoutStarts(policy: Policy): Policy {
  return { ...policy, layers: policy.layers.map(({ rules, mcp }) => ({ rules, starts: null, mcp })) }
}
