import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { decide } from '../../src/policy/decide.ts'
import { withoutSources } from '../../src/policy/compact/lean-rules.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { FACTS } from './request-facts.ts'

test('without its sources, a policy decides alike', async () => {
  const part = fc.constantFrom('a', 'ab', 'b', 'a*', '%61', 'ä', '..', '*')
  const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`)
  const pattern = fc
    .oneof(path, fc.constantFrom('*', '/*', '*b', '/a/*', '/a'))
    .filter((each) => !each.includes('..'))
  const when = fc.record(
    {
      path: fc.oneof({ weight: 3, arbitrary: pattern }, fc.array(pattern, { minLength: 1, maxLength: 2 })),
      method: fc.constantFrom('GET', 'PUT'),
      expression: fc.constantFrom('request.path.startsWith("/a")', 'int(request.query) == 1'),
      not: fc.record({ path: pattern }),
    },
    { requiredKeys: [] },
  )
  const action = fc.constantFrom('block', 'pass', { block: { status: 404 } }, { redirect: { to: '/b' } })
  const expires = fc.constantFrom('1970-01-01T00:00:01Z', '2099-01-01T00:00:00Z')
  const rule = fc.record(
    { when, action, dry_run: fc.boolean(), expires },
    { requiredKeys: ['when', 'action'] },
  )
  const targets = fc.array(fc.tuple(path, fc.constantFrom('', '?1', '/', '//a', ';v=1')), { minLength: 1 })
  const [full, lean] = [new PolicyRequest(), new PolicyRequest()]
  fc.assert(
    fc.property(fc.array(rule, { minLength: 1, maxLength: 12 }), targets, (given, all) => {
      const rules = given.map((each, at) => ({ ...each, name: `rule ${at}` }))
      const policy = parsePolicy({ rules })
      for (const parts of all) {
        const facts = { ...FACTS, path: Buffer.from(parts.join('')).toString('latin1') }
        assert.deepEqual(
          decide(withoutSources(policy), facts, 2_000, lean),
          decide(policy, facts, 2_000, full),
        )
        assert.equal(lean.failures, full.failures)
        assert.equal(lean.stepsLeft, full.stepsLeft)
      }
    }),
  )
})

test('rules with one path and with none are told apart', async () => {
  const rules = [
    { name: 'exact', when: { path: '/a' }, action: 'block' },
    { name: 'start', when: { path: '/b*' }, action: 'block' },
    { name: 'method', when: { path: '/c', method: 'PUT' }, action: 'block' },
    { name: 'expired', when: {}, action: 'block', expires: '1970-01-01T00:00:01Z' },
    { name: 'trial', when: { path: '/d' }, action: 'block', dry_run: true },
    { name: 'other', when: { path: '/d*' }, action: { block: { status: 404 } } },
  ]
  const policy = withoutSources(parsePolicy({ rules }))
  const decided = (path: string, method = 'GET') => {
    const { rule, wouldHave } = decide(policy, { ...FACTS, path, method }, 2_000)
    return wouldHave === null ? rule : [rule, wouldHave.rule]
  }
  assert.deepEqual(
    ['/a', '/a?b', '/ab', '/A'].map((path) => decided(path)),
    ['exact', 'exact', ...OTHERWISE],
  )
  assert.deepEqual(
    ['/b', '/bc/d', '/'].map((path) => decided(path)),
    ['start', 'start', 'otherwise'],
  )
  assert.deepEqual([decided('/c'), decided('/c', 'PUT')], ['otherwise', 'method'])
  assert.deepEqual([decided('/d'), decided('/dd')], [['other', 'trial'], 'other'])
  const one = decide(policy, { ...FACTS, path: '/a' }, 0)
  assert.equal(decide(policy, { ...FACTS, path: '/a' }, 0), one)
})

const OTHERWISE = ['otherwise', 'otherwise']
