import assert from 'node:assert/strict'
import { test } from 'tap'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

const SENT = ['X-Plan', 'x-plan', 'X_Plan', 'x.plan', 'X~PLAN']
/** Conditions that ask for one header. */
const ASKED = [
  { header: { 'X-Plan': 'gold' } },
  { header: { x_plan: 'gold' } },
  { header: { 'x.plan': { present: true } } },
  'request.headers["x-plan"] == "gold"',
  'request.headers.x_plan == "gold"',
  'request.headers["x.plan"].startsWith("g")',
  '"x-plan" in request.headers',
  '"x_plan" in request.headers',
  'has(request.headers.x_plan)',
]

test('a rule on a header cannot be walked around by another spelling of it', async () => {
  for (const when of ASKED) {
    const policy = parsePolicy({ rules: [{ name: 'plan', when, action: 'block' }] })
    const ruleFor = (name: string) => decide(policy, factsOf(['Accept', '*/*', name, 'gold']), 0).rule
    for (const name of SENT) assert.equal(ruleFor(name), 'plan', `${JSON.stringify(when)} ${name}`)
    for (const name of ['x-plans', 'x-pla', 'xx-plan', 'x-p-an', 'x--plan'])
      assert.equal(ruleFor(name), 'otherwise', `${JSON.stringify(when)} ${name}`)
  }
})

test('a value is compared without case, in the rule and in the request', async () => {
  for (const written of ['gold', 'Gold', 'G*LD']) {
    const policy = parsePolicy({
      rules: [{ name: 'plan', when: { header: { 'x-plan': written } }, action: 'block' }],
    })
    for (const sent of ['gold', 'Gold', 'GOLD'])
      assert.equal(decide(policy, factsOf(['X-Plan', sent]), 0).rule, 'plan', `${written} ${sent}`)
  }
})

test('a header in two spellings is one list', async () => {
  const facts = factsOf(['X_Plan', 'free', 'X-Plan', 'gold'])
  const holds = (when: unknown) =>
    decide(parsePolicy({ rules: [{ name: 'r', when, action: 'block' }] }), facts, 0).rule === 'r'
  assert.ok(holds('request.headers["x-plan"] == "free, gold"'))
  assert.ok(holds({ header: { 'x-plan': 'free' } }) && holds({ header: { 'x-plan': 'gold' } }))
  assert.ok(!holds({ header: { 'x-plan': { present: false } } }))
})

test('an explanation shows what was sent in any spelling', async () => {
  const when = { header: { 'x-plan': 'gold' }, expression: 'request.headers.x_plan == "gold"' }
  const policy = parsePolicy({ rules: [{ name: 'plan', when, action: 'block' }] })
  const [rule] = explain(policy, factsOf(['X.Plan', 'gold']), 0).rules
  assert.deepEqual(
    rule!.conditions.map(({ holds, seen }) => [holds, seen]),
    [
      [true, { 'x-plan': 'gold' }],
      [true, { 'request.headers.x_plan': 'gold' }],
    ],
  )
})

test('a forged header of ours fires no rule: X-JA4-Source', async () => {
  for (const when of [
    { header: { 'x-ja4-source': 'hop' } },
    { header: { X_JA4_Source: 'hop' } },
    'request.headers["x-ja4-source"] == "hop"',
    '"x.ja4.source" in request.headers',
  ])
    assert.throws(() => parsePolicy({ rules: [{ name: 'r', when, action: 'pass' }] }), DocumentFault)
  const policy = parsePolicy({ rules: [{ name: 'r', when: 'size(request.headers) > 0', action: 'pass' }] })
  for (const name of ['X-JA4-Source', 'X.JA4.Source', 'x~agent~name'])
    assert.equal(decide(policy, factsOf([name, 'hop']), 0).rule, 'otherwise')
})

test('a policy knows whether it asks for the method', async () => {
  const asks = (when: unknown) => parsePolicy({ rules: [{ name: 'r', when, action: 'block' }] }).asked.method
  for (const when of [{ method: 'POST' }, { not: { method: 'GET' } }, 'request.method in ["PUT", "POST"]'])
    assert.equal(asks(when), true, JSON.stringify(when))
  for (const when of [{}, { path: '/a' }, 'request.path == "POST"']) assert.equal(asks(when), false)
})

function factsOf(rawHeaders: readonly string[]): Facts {
  return {
    ...{ method: 'GET', host: null, path: '/', address: '192.0.2.7', rawHeaders },
    print: { connection: { ja4: null, stable: null, http2: null, noHello: 'not-tls' }, ja4h: null },
    verdict: UNKNOWN,
    forged: [],
  }
}
