import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import { parse } from 'yaml'
import {
  ACTION_FORMS,
  CONDITION_FIELDS,
  type FieldKind,
} from '../../src/dashboard/pages/policy/rules/fields.ts'
import {
  added,
  movedTo,
  nameOf,
  pointerTo,
  replaced,
  rulesIn,
  stepped,
  without,
} from '../../src/dashboard/pages/policy/rules/policy-rules.ts'
import { otherwiseSentence, ruleSentence } from '../../src/dashboard/pages/policy/rules/sentence.ts'
import {
  kindFor,
  memberOf,
  textOf,
  valueIn,
  withMember,
} from '../../src/dashboard/pages/policy/rules/values.ts'
import { CONDITIONS } from '../../src/policy/condition.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { timeBox } from '../time-box.ts'

const CHARGE = {
  ...{ price: '0.01', currency: 'USD', scheme: ['x402', 'crawler-price'], description: 'One article' },
  ...{ path: '/articles/*', purpose: 'training', license: 'https://shop.example/licence', pass: '10m' },
  ...{ free: { requests: 10, window: '1d' }, exempt: 'verified-search', day_max: '5', fail: 'open' },
}

test('the form has every condition and action, and what it adds is a valid policy', async () => {
  assert.deepEqual(
    CONDITION_FIELDS.map(({ name }) => name),
    [...CONDITIONS.keys()],
  )
  const named = CONDITION_FIELDS.filter(({ first }) => first !== '' && !isEmpty(first))
  const when = Object.fromEntries(named.map(({ name, first }) => [name, first]))
  parsePolicy({ rules: [{ name: 'all', when, action: 'tag' }] })
  for (const [name, { first, fields }] of Object.entries(ACTION_FORMS)) {
    const action = first === null ? name : { [name]: name === 'route' ? { upstream: 'x' } : first }
    parsePolicy({ rules: [{ name, when: {}, action }] })
    // Every setting that the policy has stands in the form: it refuses the others.
    const settings = fields.map((field) => field.name.split('.')[0]!)
    const names = { charge: Object.keys(CHARGE) }[name] ?? settings
    assert.deepEqual([...new Set(settings)].sort(), [...names].sort())
    assert.throws(() => parsePolicy({ rules: [{ name, when: {}, action: { [name]: { none: 1 } } }] }))
  }
  parsePolicy({ rules: [{ name: 'x', when: {}, action: { charge: CHARGE } }] })
})

test('a charge is written field by field, and each field shows what it wrote', async () => {
  let charge = {}
  for (const field of ACTION_FORMS['charge']!.fields) {
    const wanted = memberOf(CHARGE, field.name)
    const kind = kindFor(field, wanted)
    assert.equal(kind, field.kind, field.name)
    charge = withMember(charge, field.name, valueIn(kind, textOf(kind, wanted)))
  }
  assert.deepEqual(charge, CHARGE)
  assert.deepEqual(withMember(withMember(CHARGE, 'free.window', undefined), 'free.requests', undefined), {
    ...Object.fromEntries(Object.entries(CHARGE).filter(([name]) => name !== 'free')),
  })
})

test('what is typed keeps its meaning, whatever it is', async () => {
  const kinds: readonly FieldKind[] = ['text', 'number', 'lines', 'words', 'pairs', 'json']
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[a"{}:\n,0-9 true]{0,20}$/), fc.json())
  fc.assert(
    fc.property(fc.constantFrom(...kinds), text, (kind, typed) => {
      const value = valueIn(kind, typed)
      assert.deepEqual(valueIn(kind, textOf(kind, value)), value)
    }),
    timeBox(5_000, 2_000),
  )
  for (const blank of ['', ' ', '\n']) assert.equal(valueIn('json', textOf('json', blank)), blank)
  assert.deepEqual(valueIn('lines', ' /a \n\n/b'), ['/a', '/b'])
  assert.deepEqual([valueIn('words', 'true'), valueIn('lines', 'true')], [true, 'true'])
  assert.deepEqual(
    [valueIn('number', '0.8'), valueIn('number', 'x'), valueIn('text', ' ')],
    [0.8, 'x', undefined],
  )
  // A value of another form is edited as JSON, and nothing of it is lost.
  const path = CONDITION_FIELDS.find(({ name }) => name === 'path')!
  assert.equal(kindFor(path, { any: 1 }), 'json')
  assert.equal(textOf('json', { any: 1 }), '{"any":1}')
})

test('a rule is told in a sentence', async () => {
  const told = (when: unknown, action: unknown) => ruleSentence({ name: 'x', when, action })
  assert.equal(
    told({ category: 'crawler', path: ['/a*', '/b', '/c'], not: { verified: true } }, 'block'),
    'If the category is crawler and the path is /a*, /b or /c and not (the identity is verified), the request is blocked with 403.',
  )
  assert.equal(told({}, 'pass'), 'Every request passes.')
  assert.equal(
    told('verdict.confidence > 0.5', { rate_limit: { per: 'agent', requests: 10, window: '1m' } }),
    'If the expression verdict.confidence > 0.5 is true, the request is limited to 10 in 1m for each agent.',
  )
  assert.equal(
    told(
      { header: { 'X-Plan': 'free', Accept: { present: false } }, confidence_min: 0.8 },
      { charge: CHARGE },
    ),
    'If the header X-Plan is free and the header Accept is absent and the confidence is at least 80 %, the request costs 0.01 USD for a pass of 10m (x402 or crawler-price).',
  )
  assert.equal(
    told({ agent: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] }, 'tag'),
    'If the agent is a, b, c, d, e or 2 more, the request is tagged.',
  )
  assert.equal(otherwiseSentence(undefined), 'If no rule matches, the request is tagged.')
  const { rules } = parse(readFileSync('config/policy.yaml', 'utf8'))
  for (const rule of rules) assert.doesNotMatch(ruleSentence(rule), /undefined|\{|gets/, rule.name)
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (when, action) => {
      assert.match(told(when, action), /^(?:If|Every) .+\.$/s)
    }),
    timeBox(5_000, 1_000),
  )
})

test('a rule is moved, replaced, added and removed, and the others stay as they were', async () => {
  const policy = { first: [named('a')], last: [named('b'), named('c'), 7], otherwise: 'pass' }
  const order = (of: object) =>
    rulesIn(of as typeof policy).map(({ layer, rule }) => `${layer} ${nameOf(rule)}`)
  assert.deepEqual(order(policy), ['first a', 'last b', 'last c', 'last '])
  assert.deepEqual(order(movedTo(policy, 2, 0)), ['first c', 'first a', 'last b', 'last '])
  assert.deepEqual(order(movedTo(policy, 1, 2)), ['first a', 'last c', 'last b', 'last '])
  assert.deepEqual(stepped(policy, 2, -1)?.at, 1)
  assert.deepEqual(order(stepped(policy, 2, -1)!.policy), ['first a', 'last c', 'last b', 'last '])
  // At the edge of a layer, a step leads into the next one.
  assert.deepEqual(stepped(policy, 1, -1)?.at, 1)
  assert.deepEqual(order(stepped(policy, 1, -1)!.policy), ['first a', 'first b', 'last c', 'last '])
  assert.deepEqual(order(stepped(policy, 0, 1)!.policy), ['last a', 'last b', 'last c', 'last '])
  assert.deepEqual([stepped(policy, 0, -1), stepped(policy, 3, 1), stepped(policy, 9, 1)], [null, null, null])
  assert.deepEqual(order(without(policy, 1)), ['first a', 'last c', 'last '])
  assert.deepEqual(order(replaced(policy, 0, named('z'))), ['first z', 'last b', 'last c', 'last '])
  assert.deepEqual(added({}, named('n')), { rules: [named('n')] })
  assert.deepEqual(rulesIn({ rules: 'no list' }), [])
  assert.equal(pointerTo(rulesIn(policy)[2]!), '/last/1')
  const at = fc.nat(9)
  fc.assert(
    fc.property(fc.nat(9), at, at, (count, from, to) => {
      const rules = Array.from({ length: count }, (_, index) => named(`${index}`))
      const names = order(movedTo({ rules }, from, to))
      assert.deepEqual(names.toSorted(), order({ rules }))
      if (from < count && to < count) assert.equal(names[to], `rules ${from}`)
    }),
    timeBox(5_000, 500),
  )
})

function named(name: string) {
  return { name, when: {}, action: 'tag' }
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}
