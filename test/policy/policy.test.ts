import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { type Action, isRestricting } from '../../src/policy/action.ts'
import { CONDITIONS } from '../../src/policy/condition.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

test('an empty policy tags everything', async () => {
  for (const empty of [{}, null, undefined, { rules: [] }, { rules: null }]) {
    const { layers, otherwise } = parsePolicy(empty)
    assert.deepEqual(layers, [])
    assert.deepEqual(otherwise, {
      action: { kind: 'tag', headers: [] },
      rule: 'otherwise',
      layer: 'last',
      wouldHave: null,
    })
  }
})

test('a request signed with an unknown key passes, or waits for a bounded time', async () => {
  const waitMs = (unknownSigner: unknown) =>
    parsePolicy({ unknown_signer: unknownSigner }).unknownSignerWaitMs
  assert.equal(parsePolicy({}).unknownSignerWaitMs, 0)
  assert.equal(waitMs('pass'), 0)
  assert.equal(waitMs({ wait: '300ms' }), 300)
  assert.equal(waitMs({ wait: '5s' }), 5_000)
  for (const wrong of [
    'wait',
    'block',
    {},
    { wait: '0' },
    { wait: '6s' },
    { wait: 300 },
    { wait: '1s', than: 1 },
    [],
  ])
    assert.throws(() => waitMs(wrong), DocumentFault, JSON.stringify(wrong))
})

const ACTIONS: readonly (readonly [written: unknown, action: Action])[] = [
  ['pass', { kind: 'pass' }],
  ['tag', { kind: 'tag', headers: [] }],
  [{ tag: { headers: { 'X-Agent-Plan': 'free' } } }, { kind: 'tag', headers: ['X-Agent-Plan', 'free'] }],
  ['block', { kind: 'block', status: 403, body: null, title: null }],
  [{ block: {} }, { kind: 'block', status: 403, body: null, title: null }],
  [
    { block: { status: 451, body: 'No.\n', title: 'Law' } },
    { kind: 'block', status: 451, body: 'No.\n', title: 'Law' },
  ],
  [
    { rate_limit: { per: 'agent', requests: 10, window: '1m' } },
    over(
      { kind: 'block', status: 429, body: null, title: null },
      { kind: 'rate_limit', per: 'agent', requests: 10, windowMs: 60_000, burst: 10, perTool: false },
    ),
  ],
  [
    { rate_limit: over({ tarpit: {} }, { per: 'address', requests: 1, window: '500ms', burst: 5 }) },
    over(
      { kind: 'tarpit', delayMs: 10_000, connectionsMax: 100 },
      { kind: 'rate_limit', per: 'address', requests: 1, windowMs: 500, burst: 5, perTool: false },
    ),
  ],
  [
    {
      rate_limit: over(
        { block: { status: 503 } },
        { per: 'fingerprint', per_tool: true, requests: 1, window: '1s' },
      ),
    },
    over(
      { kind: 'block', status: 503, body: null, title: null },
      { kind: 'rate_limit', per: 'fingerprint', requests: 1, windowMs: 1000, burst: 1, perTool: true },
    ),
  ],
  ['tarpit', { kind: 'tarpit', delayMs: 10_000, connectionsMax: 100 }],
  [{ tarpit: { delay: '30s', connections_max: 5 } }, { kind: 'tarpit', delayMs: 30_000, connectionsMax: 5 }],
  [{ redirect: { to: '/docs?a=1' } }, { kind: 'redirect', to: '/docs?a=1', status: 302 }],
  [
    { redirect: { to: 'https://api.example.test/', status: 308 } },
    { kind: 'redirect', to: 'https://api.example.test/', status: 308 },
  ],
  [{ route: { upstream: 'agents' } }, { kind: 'route', upstream: 'agents' }],
]

test('actions, with their defaults', async () => {
  for (const [written, action] of ACTIONS) {
    assert.deepEqual(parsePolicy({ otherwise: written }).otherwise.action, action)
    const { decision, isRestricting: restricting } = rule({ action: written })
    assert.deepEqual(decision, { action, rule: 'r', layer: 'last', wouldHave: null })
    assert.equal(restricting, isRestricting(action))
  }
})

test('which actions keep a client from something', async () => {
  const kinds = ACTIONS.filter(([, action]) => isRestricting(action)).map(([, { kind }]) => kind)
  assert.deepEqual(new Set(kinds), new Set(['block', 'rate_limit', 'tarpit', 'redirect']))
})

test('when a rule ends', async () => {
  const cases: readonly (readonly [text: string, iso: string])[] = [
    ['2027-01-31T12:00:00Z', '2027-01-31T12:00:00.000Z'],
    ['2027-01-31t12:00:00z', '2027-01-31T12:00:00.000Z'],
    ['2028-02-29T23:59:59.999+00:00', '2028-02-29T23:59:59.000Z'],
    ['2027-01-01T00:30:00+01:00', '2026-12-31T23:30:00.000Z'],
    ['2026-12-31 19:00:00-05:30', '2027-01-01T00:30:00.000Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
  ]
  for (const [expires, iso] of cases) assert.equal(rule({ expires }).expiresMs, Date.parse(iso), expires)
  assert.equal(rule({}).expiresMs, Number.POSITIVE_INFINITY)
  const dates = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true })
  fc.assert(
    fc.property(dates, (date) => {
      const expires = date.toISOString()
      assert.equal(rule({ expires }).expiresMs, Math.floor(date.getTime() / 1000) * 1000)
    }),
  )
})

type Bad = readonly [title: string, policy: unknown, said: readonly string[], problems?: number]

const BAD: readonly Bad[] = [
  ['no mapping', [], [': is a list; expected a mapping']],
  ['an unknown member', { rule: [] }, ['/rule: unknown field (did you mean "rules"?)']],
  ['rules that are not a list', { rules: {} }, ['/rules: is a mapping; expected a list of rules']],
  ['a rule that is not a mapping', { rules: ['block'] }, ['/rules/0: is "block"; expected a mapping']],
  [
    'nothing in a rule',
    { rules: [{}] },
    ['/rules/0: needs a name', '/rules/0: needs `when`', 'needs `action`'],
    3,
  ],
  ['two of one name', { rules: [full({}), full({})] }, ['/rules/1/name: "r" is already used']],
  [
    'the name that is ours',
    { rules: [full({ name: 'otherwise' })] },
    ['/rules/0/name: "otherwise" is already used'],
  ],
  [
    'a name with control characters',
    { rules: [full({ name: 'a\nb' })] },
    ['/rules/0/name: is "a\\nb"; expected 1 to 64'],
  ],
  ['a typo', when({ verdit: 'agent' }), ['when/verdit: unknown field (did you mean "verdict"?)']],
  ['a typo in a list', when({ verdict: ['agnet'] }), ['when/verdict/0: is "agnet"', 'did you mean "agent"?']],
  ['an empty list', when({ agent: [] }), ['when/agent: is an empty list']],
  ['a number for text', when({ agent: 5 }), ['when/agent: is 5; expected the id of an agent']],
  [
    'a confidence above one',
    when({ confidence_min: 80 }),
    ['when/confidence_min: is 80; expected a number from 0'],
  ],
  [
    'a word for a boolean',
    when({ verified: 'yes' }),
    ['when/verified: is "yes"; expected true, false, or any of web-bot-auth, ip-range, reverse-dns'],
  ],
  [
    'a JA4 that is cut',
    when({ ja4: 't13d1516h2_8daaf6152771' }),
    ['when/ja4: "', 'not a valid fingerprint of this kind'],
  ],
  ['a JA4 too long', when({ ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1*a' }), ['when/ja4: "']],
  ['a JA4 in capitals', when({ ja4: 't13d1516h2_8DAAF6152771_e5627efa2ab1' }), ['when/ja4: "']],
  ['a JA3', when({ ja4: '579ccef312d18482fc42e2b822ca2430' }), ['when/ja4: "']],
  ['a JA4 for a JA4H', when({ ja4h: 't13d1516h2_8daaf6152771_e5627efa2ab1' }), ['when/ja4h: "']],
  ['a JA4 for a stable key', when({ stable: 't13d1516h2_8daaf6152771_e5627efa2ab1' }), ['when/stable: "']],
  [
    'a method in lower case',
    when({ method: 'get' }),
    ['when/method: is "get"; a method is written in upper-case'],
  ],
  [
    'no address',
    when({ address: ['10.0.0.0/33'] }),
    ['when/address/0: is "10.0.0.0/33"; expected an address'],
  ],
  ['a host with a port', when({ host: 'a.example.test:443' }), ['when/host: is', 'without a scheme, a port']],
  ['a URL as host', when({ host: 'https://a.example.test' }), ['when/host: is']],
  ['a host in other letters', when({ host: 'b\u00fccher.example' }), ['(write xn--bcher-kva.example)']],
  ['a path without a slash', when({ path: 'admin*' }), ['when/path: is "admin*"; a path must start with /']],
  ['a path with a query', when({ path: '/a?b=1' }), ['when/path: contains a query']],
  [
    'a path never compared',
    when({ path: ['/a//b', '/a/../b'] }),
    ['when/path/0: can never match', 'when/path/1: can'],
    2,
  ],
  [
    'an odd header name',
    when({ header: { 'a b': 'x' } }),
    ['when/header/a b: "a b" is not a valid header name'],
  ],
  [
    'a header of ours',
    when({ header: { 'X-Agent-Verified': '*' } }),
    ['X-Agent-Verified: is a header that only the proxy'],
  ],
  [
    'a header of ours, folded',
    when({ header: { 'X.JA4_Source': 'hop' } }),
    ['is a header that only the proxy'],
  ],
  ['a header of what', when({ header: { a: {} } }), ['when/header/a: must be a value, {present: true}']],
  ['a header as mapping', when({ header: { a: { presnt: true } } }), ['did you mean "present"?']],
  ['not nothing', when({ not: {} }), ['when/not: is empty']],
  ['not not', when({ not: { not: { agent: 'a' } } }), ['when/not/not: unknown field']],
  ['an unknown action', { otherwise: 'blok' }, ['/otherwise: is "blok"', 'did you mean "block"?']],
  [
    'an action without what it needs',
    { otherwise: 'route' },
    ['/otherwise: route takes settings: {route: {…}}'],
  ],
  [
    'two actions',
    { otherwise: { pass: {}, block: {} } },
    ['/otherwise: must have exactly one action, but has 2'],
  ],
  ['pass with settings', { otherwise: { pass: {} } }, ['/otherwise/pass: takes no settings']],
  [
    'a status of its own',
    { otherwise: { block: { status: 200 } } },
    ['/otherwise/block/status: is 200; expected 401'],
  ],
  ['no requests', limit({ requests: 0 }), ['/otherwise/rate_limit/requests: is 0; expected a whole number']],
  [
    'no window',
    limit({ window: undefined }),
    ['/otherwise/rate_limit/window: is empty; expected a duration'],
  ],
  [
    'a window without a unit',
    limit({ window: 60 }),
    ['/otherwise/rate_limit/window: is 60; expected a duration'],
  ],
  ['a window too wide', limit({ window: '2d' }), ['/otherwise/rate_limit/window: is "2d"; expected']],
  ['then what', limit(over('pass', {})), ['/otherwise/rate_limit/then: is "pass"; expected block, tarpit']],
  ['a missing key', { otherwise: { rate_limit: {} } }, ['needs per', 'needs requests', 'needs window'], 3],
  [
    'a redirect to nowhere',
    { otherwise: { redirect: { to: 'docs' } } },
    ['/otherwise/redirect/to: is "docs"; expected'],
  ],
  [
    'a redirect elsewhere',
    { otherwise: { redirect: { to: '//evil.test' } } },
    ['/otherwise/redirect/to: is'],
  ],
  ['a header in a redirect', { otherwise: { redirect: { to: '/a\r\nSet-Cookie: b' } } }, ['redirect/to: is']],
  ['a tag that is not ours', tag({ 'X-Plan': 'free' }), ['headers/X-Plan: "X-Plan" is not allowed here']],
  ['a tag the proxy sets', tag({ 'X-Agent-Verdict': 'human' }), ['X-Agent-Verdict: is set by the proxy']],
  [
    'a tag of proofs',
    tag({ 'x-agent-Identity': 'https://a.test' }),
    ['x-agent-Identity: is set by the proxy'],
  ],
  ['another', tag({ 'X-Agent-Key': 'k' }), ['X-Agent-Key: is set by the proxy']],
  ['a third', tag({ 'X-Agent-Conflict': 'none' }), ['X-Agent-Conflict: is set by the proxy']],
  ['a tag with a line end', tag({ 'X-Agent-A': 'a\r\nb' }), ['headers/X-Agent-A: must be printable ASCII']],
  ['a time there is not', { rules: [full({ expires: '2027-02-29T00:00:00Z' })] }, ['/rules/0/expires: is']],
  [
    'a date',
    { rules: [full({ expires: '2027-02-28' })] },
    ['/rules/0/expires: is "2027-02-28"; expected a time'],
  ],
]

test('each thing that is wrong is said, where it is', async (t) => {
  for (const [title, policy, said, problems = 1] of BAD) {
    t.test(title, async () => {
      const lines = faultOf(policy).problems.map(({ pointer, what }) => `${pointer}: ${what}`)
      for (const part of said) assert.ok(lines.join('\n').includes(part), lines.join('\n'))
      assert.equal(lines.length, problems, lines.join('\n'))
    })
  }
})

test('all of it at once, and which rule it is in', async () => {
  const fault = faultOf({
    rules: [full({ name: 'no bots', when: { agnet: 'a', path: 'x' } }), full({ action: 'stop' })],
    otherwise: 'nothing',
    more: 1,
  })
  assert.equal(fault.code, 'POLICY_INVALID')
  assert.deepEqual(fault.message.split('\n'), [
    'more: unknown field',
    'rule "no bots": rules.0.when.agnet: unknown field (did you mean "agent"?)',
    'rule "no bots": rules.0.when.path: is "x"; a path must start with /',
    'rule "r": rules.1.action: is "stop"; expected pass, tag, block, rate_limit, tarpit, redirect, route, charge',
    'otherwise: is "nothing"; expected pass, tag, block, rate_limit, tarpit, redirect, route, charge',
  ])
})

test('a thousand problems are not a thousand lines', async () => {
  const agent = Array.from({ length: 1000 }, () => 1)
  const { message, problems } = faultOf(when({ agent }))
  assert.equal(problems.length, 1000)
  assert.equal(message.split('\n').length, 101)
  assert.match(message, /\nand 900 more$/)
})

test('limits: of rules, items and lengths', async () => {
  assert.match(faultOf({ rules: Array.from({ length: 1001 }, () => full({})) }).message, /at most 1000/)
  assert.match(faultOf(when({ agent: new Array(100_001).fill('a') })).message, /at most 100000/)
  assert.match(faultOf(when({ user_agent: 'a'.repeat(1025) })).message, /longer than 1024/)
  const thousand = Array.from({ length: 1000 }, (_, index) => full({ name: `r${index}` }))
  assert.equal(parsePolicy({ rules: thousand }).last.rules.length, 1000)
})

test('a rule may route to upstreams that there are', async () => {
  const policy = { rules: [full({ action: { route: { upstream: 'agnets' } } })] }
  assert.equal(parsePolicy(policy).last.rules.length, 1)
  assert.match(
    faultOf(policy, ['default', 'agents']).message,
    /unknown upstream "agnets" \(did you mean "agents"\?\)/,
  )
  assert.match(faultOf(policy, ['default']).message, /unknown upstream "agnets"; known upstreams: default/)
})

test('whatever it is given, it is a policy or a Fault', async () => {
  const scalar = fc.oneof(
    fc.constantFrom(
      'agent',
      'block',
      'pass',
      '/a*',
      '10.0.0.0/8',
      '10s',
      '*',
      '__proto__',
      403,
      1,
      0,
      true,
      null,
    ),
    fc.jsonValue({ maxDepth: 1 }),
  )
  const object = (keys: readonly string[], value: fc.Arbitrary<unknown>) =>
    fc.dictionary(fc.constantFrom(...keys, '__proto__', 'constructor'), value, { maxKeys: 4 })
  const conditions = object([...CONDITIONS.keys()], fc.oneof(scalar, fc.array(scalar, { maxLength: 3 })))
  const action = fc.oneof(
    scalar,
    object(
      ['pass', 'tag', 'block', 'rate_limit', 'tarpit', 'redirect', 'route'],
      fc.oneof(scalar, conditions),
    ),
  )
  const rules = fc.array(
    fc.record(
      { name: scalar, when: fc.oneof(conditions, scalar), action, dry_run: scalar, expires: scalar },
      { requiredKeys: [] },
    ),
    { maxLength: 4 },
  )
  const policy = fc.oneof(fc.jsonValue(), fc.record({ rules, otherwise: action }, { requiredKeys: [] }))
  fc.assert(
    fc.property(policy, (value) => {
      try {
        parsePolicy(value)
      } catch (error) {
        assert.ok(error instanceof Fault, String(error))
        assert.ok(error instanceof DocumentFault && error.problems.length > 0)
      }
    }),
    { numRuns: 5000 },
  )
})

test('what is refused is not looked into, however deep it is', async () => {
  let when: object = {}
  for (let depth = 0; depth < 100_000; depth++) when = { not: when }
  const fault = (() => {
    try {
      return parsePolicy({ rules: [{ name: 'a', action: 'block', when }] })
    } catch (error) {
      return error
    }
  })()
  assert.ok(fault instanceof DocumentFault)
  assert.deepEqual(
    fault.problems.map(({ pointer, what }) => `${pointer} ${what}`),
    ['/rules/0/when/not/not unknown field'],
  )
})

test('a policy is frozen', async () => {
  const policy = parsePolicy({ rules: [full({})] })
  assert.ok(Object.isFrozen(policy) && Object.isFrozen(policy.last.rules) && Object.isFrozen(policy.layers))
})

function full(members: object): object {
  return { name: 'r', when: {}, action: 'block', ...members }
}

function rule(members: object) {
  return parsePolicy({ rules: [full(members)] }).last.rules[0]!
}

function when(conditions: object): object {
  return { rules: [full({ when: conditions })] }
}

function limit(members: object): object {
  return { otherwise: { rate_limit: { per: 'agent', requests: 1, window: '1s', ...members } } }
}

/** With a member of the name that a linter takes for a promise's. */
function over<Members extends object, Then>(then: Then, members: Members): Members & { readonly then: Then } {
  return Object.assign(members, Object.fromEntries([['then', then]]) as { then: Then })
}

function tag(headers: object): object {
  return { otherwise: { tag: { headers } } }
}

function faultOf(policy: unknown, upstreams: readonly string[] | null = null): DocumentFault {
  try {
    parsePolicy(policy, { upstreams })
  } catch (error) {
    assert.ok(error instanceof DocumentFault)
    return error
  }
  throw new Error('it was taken for a good one')
}
