import assert from 'node:assert/strict'
import { BlockList, isIPv4 } from 'node:net'
import fc from 'fast-check'
import { test } from 'tap'
import { type Decision, decide } from '../../src/policy/decide.ts'
import { explain } from '../../src/policy/explain.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { PartialPolicies } from '../../src/policy/partial.ts'
import { plainForm } from '../../src/policy/path-form.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import type { SignerFacts } from '../../src/classify/verdict/proof.ts'
import { cardWith } from '../identity/published.ts'
import { FACTS, JA4, SIGNED } from './request-facts.ts'

/** Each is tried under `when` and, turned round, under `not`. */
const CONDITIONS: readonly (readonly [holds: boolean, when: object, facts?: Partial<Facts>])[] = [
  [true, {}],
  [true, { verdict: 'agent' }],
  [true, { verdict: ['human', 'agent'] }],
  [false, { verdict: ['human', 'unknown', 'automation'] }],
  [true, { agent: ['claudebot', 'gptbot'] }],
  [false, { agent: 'gpt*' }],
  [true, { category: 'crawler' }],
  [false, { category: 'llm-sdk' }],
  [true, { purpose: 'training' }],
  [true, { purpose: ['search', 'archive'] }],
  [false, { purpose: ['search', 'assistant'] }],
  [false, { purpose: 'training' }, { verdict: { ...FACTS.verdict, agent: null } }],
  [
    false,
    { purpose: 'training' },
    { verdict: { ...FACTS.verdict, agent: { ...FACTS.verdict.agent!, purposes: [] } } },
  ],
  [true, { software: ['curl', 'gptbot'] }],
  [false, { software: 'GPTBot' }],
  [false, { software: 'gptbot' }, { verdict: { ...FACTS.verdict, software: null } }],
  [true, { evidence: 'spoofed-browser' }],
  [true, { evidence: ['crawls', 'spoofed-*'] }],
  [false, { evidence: ['crawls', '*-agents'] }],
  [false, { evidence: '*' }, { verdict: { ...FACTS.verdict, evidence: [] } }],
  [true, { confidence_min: 0.8 }],
  [false, { confidence_min: 0.81 }],
  [true, { verified: false }],
  [false, { verified: true }],
  [true, { forged: true }],
  [false, { forged: false }],
  [false, { campaign: true }],
  [true, { campaign: false }],
  [true, { campaign: true }, { campaign: 'cmp_1' }],
  [false, { campaign: false }, { campaign: 'cmp_1' }],
  [true, { campaign: ['cmp_2', 'cmp_1'] }, { campaign: 'cmp_1' }],
  [false, { campaign: 'cmp_2' }, { campaign: 'cmp_1' }],
  [false, { campaign: 'cmp_2' }],
  [false, { hello: ['malformed', 'not-tls'] }],
  [true, { ja4: JA4 }],
  [true, { ja4: ['t13d*_8daaf6152771_*'] }],
  [false, { ja4: ['t12*_*_*', 't13d1516h2_8daaf6152771_e5627efa2ab2'] }],
  [true, { stable: 'gs1-t13*-*-de4a06bb82e3' }],
  [false, { stable: 'gs1-t12*-*-*' }],
  [true, { ja4h: 'ge11*_*_*_000000000000' }],
  [false, { ja4h: 'po*_*_*_*' }],
  [true, { http2: '1:65536;*|m,a,s,p' }],
  [false, { http2: '*|m,s,a,p' }],
  [true, { method: ['POST', 'GET'] }],
  [false, { method: 'HEAD' }],
  [true, { host: '[2001:DB8:0::1]' }, { host: '[2001:db8::1]:8443' }],
  [true, { host: '[2001:db8::*]' }, { host: '[2001:0DB8:0:0::7]' }],
  [true, { host: 'a.example' }, { host: 'A.Example.:443' }],
  [true, { host: 'XN--bcher-kva.example' }, { host: 'xn--BCHER-kva.example.' }],
  [false, { host: '[2001:db8::1]' }, { host: '[2001:db8::2]' }],
  [true, { method: 'PURGE' }, { method: 'purge' }],
  [true, { method: ['GET', 'PURGE'] }, { method: 'Purge' }],
  [false, { method: 'GET' }, { method: 'purge' }],
  [true, { address: ['10.0.0.0/8', '192.0.2.0/24'] }],
  [false, { address: ['2001:db8::/32', '192.0.2.8'] }],
  [true, { host: 'shop.example.test' }],
  [true, { host: '*.EXAMPLE.test' }],
  [false, { host: 'example.test' }],
  [true, { path: '/api/items' }],
  [true, { path: '/api/*' }],
  [true, { path: '*/items' }],
  [false, { path: '/api' }],
  [false, { path: '/API/*' }],
  [true, { user_agent: 'gptbot/*' }],
  [false, { user_agent: 'GPTBot' }],
  [true, { header: { accept: 'TEXT/*' } }],
  [true, { header: { Accept: ['x', '*/[*]', '\u002a/\u002a'] } }],
  [false, { header: { accept: 'image/*' } }],
  [true, { header: { Accept: { present: true }, cookie: { present: false } } }],
  [false, { header: { accept: '*', cookie: { present: true } } }],
  [true, { agent: 'gptbot', path: '/api/*', method: 'GET' }],
  [false, { agent: 'gptbot', path: '/api/*', method: 'PUT' }],
  // Without what is asked about, nothing holds.
  [false, { host: '*' }, { host: null }],
  [false, { agent: 'gptbot', category: 'crawler' }, { verdict: { ...FACTS.verdict, agent: null } }],
  [true, { verified: true }, { verdict: { ...FACTS.verdict, proof: SIGNED } }],
  [true, { verified: ['ip-range', 'web-bot-auth'] }, { verdict: { ...FACTS.verdict, proof: SIGNED } }],
  [false, { verified: 'ip-range' }, { verdict: { ...FACTS.verdict, proof: SIGNED } }],
  [false, { verified: ['web-bot-auth', 'ip-range', 'reverse-dns'] }],
  [true, { signer: ['https://b.test', 'https://*.test'] }, { verdict: { ...FACTS.verdict, proof: SIGNED } }],
  [false, { signer: 'https://a' }, { verdict: { ...FACTS.verdict, proof: SIGNED } }],
  [false, { signer: '*' }],
  ...ofCards(),
  // An id is not a signer, whatever it looks like.
  [false, { signer: '*' }, { verdict: { ...FACTS.verdict, proof: { ...SIGNED, method: 'ip-range' } } }],
  [true, { listed: true }],
  [false, { listed: true }, { verdict: { ...FACTS.verdict, agent: null, proof: SIGNED } }],
  [true, { hello: 'malformed' }, { print: printOf({ ja4: null, noHello: 'malformed' }) }],
  [false, { ja4: '*_*_*' }, { print: printOf({ ja4: null, noHello: 'malformed' }) }],
  [false, { stable: '*-*-*-*' }, { print: printOf({ stable: null }) }],
  [false, { ja4h: '*_*_*_*' }, { print: { ...FACTS.print, ja4h: null } }],
  [false, { http2: '*' }, { print: printOf({ http2: null }) }],
  [false, { user_agent: '*' }, { rawHeaders: [] }],
  [false, { address: ['0.0.0.0/0', '::/0'] }, { address: '' }],
  [true, { forged: false }, { forged: [] }],
  // Hosts, however they are written.
  [true, { host: 'a.test' }, { host: 'A.TEST.' }],
  [true, { host: 'a.test.' }, { host: 'a.test:443' }],
  [true, { host: 'a.test' }, { host: 'a.test.:443' }],
  [true, { host: '[::1]' }, { host: '[::1]' }],
  [true, { host: '[::1]' }, { host: '[::1]:443' }],
  [false, { host: '*.a.test' }, { host: 'a.test' }],
  // A second User-Agent hides nothing.
  [true, { user_agent: '*gptbot*' }, { rawHeaders: ['User-Agent', 'Mozilla', 'user-agent', 'GPTBot'] }],
  [true, { address: '2001:db8::/32' }, { address: '2001:db8::1' }],
  [true, { path: '/a*' }, { path: '/a#b' }],
  [true, { path: '/' }, { path: '/?a=/b' }],
]

test('conditions', async () => {
  for (const [holds, when, facts] of CONDITIONS) {
    const asked = { ...FACTS, ...facts }
    const said = JSON.stringify({ when, facts })
    assert.equal(ruleOf({ when }, asked), holds ? 'r' : 'otherwise', said)
    // An agent with several purposes is decided about once with each.
    if (Object.keys(when).length === 0 || 'purpose' in when) continue
    assert.equal(ruleOf({ when: { not: when } }, asked), holds ? 'otherwise' : 'r', `not ${said}`)
  }
})

test('of an agent with several purposes, the strictest decision counts', async () => {
  const agent = { ...FACTS.verdict.agent!, purposes: ['search', 'training', 'seo'] }
  const facts = { ...FACTS, verdict: { ...FACTS.verdict, agent } }
  const search = { name: 'search', when: { purpose: 'search' }, action: 'pass' }
  const training = { name: 'training', when: { purpose: 'training' }, action: 'block' }
  const byExpression = {
    name: 'training',
    when: 'verdict.purpose.exists(p, p == "training")',
    action: 'block',
  }
  const slow = { rate_limit: { per: 'agent', requests: 1, window: '1m' } }
  for (const [rules, rule] of [
    [[search, training], 'training'],
    [[training, search], 'training'],
    [[byExpression, search], 'training'],
    [[search, byExpression], 'training'],
    [[search, { ...training, action: slow }], 'training'],
    [[search, { name: 'no', when: { not: { purpose: 'search' } }, action: 'block' }], 'no'],
    [[search], 'otherwise'],
    [[{ name: 'by name', when: { agent: agent.id }, action: 'pass' }, training], 'by name'],
    [[search, { ...training, dry_run: true }], 'otherwise'],
  ] as const) {
    const policy = parsePolicy({ rules })
    assert.equal(decide(policy, facts, 0).rule, rule, JSON.stringify(rules))
    assert.equal(explain(policy, facts, 0).decision.rule, rule)
    const deciding = explain(policy, facts, 0).rules.filter(({ decides }) => decides)
    assert.deepEqual(
      deciding.map((each) => each.rule),
      rule === 'otherwise' ? [] : [rule],
    )
    assert.equal(new PartialPolicies().decide(policy, facts, 0).outcome?.rule, rule)
  }
  assert.equal(facts.verdict.agent.purposes.length, 3)
})

test('the first rule that holds wins, and makes no new Decision', async () => {
  const policy = parsePolicy({
    rules: [
      { name: 'no', when: { method: 'PUT' }, action: 'pass' },
      { name: 'first', when: { method: 'GET' }, action: 'block' },
      { name: 'second', when: {}, action: 'pass' },
    ],
    otherwise: 'pass',
  })
  const decision = decide(policy, FACTS, 0)
  assert.equal(decision.rule, 'first')
  assert.equal(decide(policy, FACTS, 0), decision)
  const other = decide(policy, { ...FACTS, method: 'PUT' }, 0)
  assert.deepEqual(other, { action: { kind: 'pass' }, rule: 'no', layer: 'last', wouldHave: null })
})

test('a rule on trial stops no request, and reports what it would have done', async () => {
  const trial = { when: {}, dry_run: true }
  const rules = [
    { ...trial, name: 'one', action: 'block' },
    { ...trial, name: 'two', action: 'pass' },
  ]
  const { action, rule, wouldHave } = decide(parsePolicy({ rules }), FACTS, 0)
  assert.deepEqual(
    [action.kind, rule, wouldHave?.rule, wouldHave?.action.kind],
    ['tag', 'otherwise', 'one', 'block'],
  )
  const last = { name: 'three', when: {}, action: 'tarpit' }
  const later = decide(parsePolicy({ rules: [...rules, last] }), FACTS, 0)
  assert.deepEqual([later.rule, later.wouldHave?.rule], ['three', 'one'])
  const before = decide(parsePolicy({ rules: [last, ...rules] }), FACTS, 0)
  assert.deepEqual([before.rule, before.wouldHave], ['three', null], 'behind the one that won, none is tried')
})

test('a rule ends on the millisecond', async () => {
  const rule = { when: {}, expires: '2027-01-01T00:00:00Z' }
  const endMs = Date.parse('2027-01-01T00:00:00Z')
  assert.equal(ruleOf(rule, FACTS, endMs - 1), 'r')
  assert.equal(ruleOf(rule, FACTS, endMs), 'otherwise')
})

/** Ways to write `/admin/x`, each of which some server takes for it. */
const DISGUISES = [
  ...[
    '//admin/x',
    '/admin//x',
    '/./admin/x',
    '/a/../admin/x',
    '/../admin/x',
    '/%61dmin/x',
    '/%2561dmin/../admin/x',
  ],
  ...[
    '/admin;v=1/x',
    '/admin%2fx',
    '/admin%2Fx',
    '/admin\\x',
    '/admin%5cx',
    '/a/%2e%2e/admin/x',
    '/a/..%2fadmin/x',
  ],
  ...['/a;/../admin/x', '/.;/admin/x', '/admin/x;jsessionid=1?q', '/%2e/admin/./x', '/admin/x%00.png'],
]

test('a path in disguise is stopped by a rule that stops, and let through by none that lets through', async () => {
  for (const path of DISGUISES) {
    const facts = { ...FACTS, path }
    const when = { path: '/admin/*' }
    for (const action of ['block', 'tarpit', { redirect: { to: '/' } }, RATE_LIMIT])
      assert.equal(ruleOf({ when, action }, facts), 'r', path)
    const open = { path: ['/a/*', '/a;*', '/.*', '//*', '/%2*', '/public/*'].filter(isPattern) }
    for (const action of ['pass', 'tag', { route: { upstream: 'a' } }])
      assert.equal(ruleOf({ when: open, action }, facts), 'otherwise', path)
    // Turned round: "everything but /a/ is blocked" blocks it too.
    assert.equal(ruleOf({ when: { not: { path: '/a/*' } }, action: 'block' }, facts), 'r', path)
  }
})

test('a path that only looks odd is as good as any', async () => {
  const cases: readonly (readonly [pattern: string, path: string])[] = [
    ['/.well-known/*', '/.well-known/acme-challenge/x'],
    ['/a..b/...', '/a..b/...'],
    ['/caf\u00e9/*', '/caf%C3%A9/x'],
    ['/caf%c3%a9/*', '/caf%C3%A9/x'],
    ['/a b', '/a%20b'],
    ['/a%20b', '/a%20b'],
    ['/group%2Fproject', '/group%2Fproject'],
    ['/~a-b_c.d', '/%7Ea%2Db%5fc%2Ed'],
    ['/100%', '/100%'],
    ['/%zz', '/%zz'],
  ]
  for (const [pattern, path] of cases) {
    for (const action of ['pass', 'block']) {
      const rule = { when: { path: pattern }, action }
      assert.equal(ruleOf(rule, { ...FACTS, path }), 'r', `${action} ${pattern} ${path}`)
    }
  }
  assert.equal(ruleOf({ when: { path: '*' } }, { ...FACTS, method: 'OPTIONS', path: '*' }), 'r')
})

test('the plain form: one step at a time, and the same when it is made again', async () => {
  for (const path of DISGUISES)
    if (!path.includes('%25')) assert.equal(plainForm(path.split('?')[0]!), '/admin/x')
  for (const [path, plain] of [
    ['/', '/'],
    ['/a/', '/a/'],
    ['/a/.', '/a/'],
    ['/a/b/..', '/a/'],
    ['/a/..', '/'],
    ['/..', '/'],
    ['/a/b;c/', '/a/b/'],
  ] as const)
    assert.equal(plainForm(path), plain)
  const pieces = fc.constantFrom('/', '//', '.', '..', 'a', ';', '%2e', '%2f', '%5C', '\\', '%41', '\xe9')
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const plain = plainForm(`/${parts.join('')}`)
      assert.match(plain, /^\//)
      assert.doesNotMatch(plain, /\/\/|\/\.{1,2}(\/|$)|\\|%2f/i)
    }),
    { numRuns: 3000 },
  )
})

test('agrees with a slow reference on any policy and any request', async () => {
  let met = 0
  const check = (policy: WrittenPolicy, facts: Facts, nowMs: number) => {
    const { action, rule, wouldHave } = decide(parsePolicy(policy), facts, nowMs)
    const said: Said = { action: action.kind, rule, wouldHave: wouldHave?.rule ?? null }
    assert.deepEqual(said, reference(policy, facts, nowMs))
    if (rule !== 'otherwise') met++
  }
  fc.assert(fc.property(policies(), requests(), fc.constantFrom(0, 1, 2e12), check), { numRuns: 5000 })
  assert.ok(met > 1000, `only ${met} requests met a rule`)
})

test('one request leaves nothing behind for the next', async () => {
  const policy = parsePolicy({
    rules: [
      {
        name: 'r',
        when: { path: '/admin', address: '192.0.2.7', user_agent: 'GPT*', host: 'a' },
        action: 'block',
      },
    ],
  })
  const matching = { ...FACTS, path: '//admin', host: 'a' }
  for (const other of [{ path: '/' }, { address: '' }, { rawHeaders: [] }, { host: null }]) {
    assert.equal(decide(policy, matching, 0).rule, 'r')
    assert.equal(decide(policy, { ...matching, ...other }, 0).rule, 'otherwise', JSON.stringify(other))
  }
})

interface WrittenRule {
  readonly name: string
  readonly when: When
  readonly action: string
  readonly dry_run: boolean
  readonly expires: string
}

interface WrittenPolicy {
  readonly rules: readonly WrittenRule[]
  readonly otherwise: string
}

interface When {
  readonly verdict?: readonly string[]
  readonly agent?: readonly string[]
  readonly confidence_min?: number
  readonly verified?: boolean
  readonly forged?: boolean
  readonly hello?: readonly string[]
  readonly ja4?: readonly string[]
  readonly method?: readonly string[]
  readonly address?: readonly string[]
  readonly host?: readonly string[]
  readonly path?: readonly string[]
  readonly user_agent?: readonly string[]
  readonly header?: Readonly<Record<string, string | { readonly present: boolean }>>
  readonly not?: When
}

interface Said {
  readonly action: string
  readonly rule: string
  readonly wouldHave: string | null
}

function reference(policy: WrittenPolicy, facts: Facts, nowMs: number): Said {
  const said = facts.path.replace(/[?#].*$/s, '')
  const forms: readonly Form[] = [
    { path: sentReference(said), undo: sentReference },
    { path: plainReference(said), undo: unescape },
  ]
  let wouldHave: string | null = null
  for (const { name, when, action, dry_run, expires } of policy.rules) {
    if (nowMs >= Date.parse(expires)) continue
    const ways = forms.map((form) => holdsReference(when, facts, form))
    const isStopping = !['pass', 'tag'].includes(action)
    if (isStopping ? !ways.includes(true) : ways.includes(false)) continue
    if (!dry_run) return { action, rule: name, wouldHave }
    wouldHave ??= name
  }
  return { action: policy.otherwise, rule: 'otherwise', wouldHave }
}

interface Form {
  readonly path: string
  readonly undo: (pattern: string) => string
}

/** As servers that fold names read it. */
function fold(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '-')
}

function holdsReference(when: When, facts: Facts, form: Form): boolean {
  const { verdict, print, rawHeaders } = facts
  const header = (wanted: string) =>
    rawHeaders.filter((_, i) => i % 2 === 1 && fold(rawHeaders[i - 1]!) === fold(wanted))
  const any = (globs: readonly string[], texts: readonly string[], flags = '') =>
    globs.some((glob) => texts.some((text) => regexOf(glob, flags).test(text)))
  const host = facts.host?.replace(/:\d*$/, '').replace(/\.$/, '')
  const { ja4, noHello } = print.connection
  return [
    when.verdict?.includes(verdict.kind),
    when.agent?.some((id) => id === verdict.agent?.id),
    when.confidence_min === undefined ? undefined : verdict.confidence >= when.confidence_min,
    when.verified === undefined ? undefined : when.verified === (verdict.proof !== null),
    when.forged === undefined ? undefined : when.forged === facts.forged.length > 0,
    when.hello?.some((kind) => kind === noHello),
    when.ja4 && any(when.ja4, ja4 === null ? [] : [ja4]),
    when.method?.includes(facts.method.toUpperCase()),
    when.address?.some((range) => isInReference(range, facts.address)),
    when.host && any(when.host, host === undefined ? [] : [host], 'i'),
    when.path && any(when.path.map(form.undo), [form.path]),
    when.user_agent &&
      any(when.user_agent, header('user-agent').length === 0 ? [] : [header('user-agent').join(', ')], 'i'),
    ...Object.entries(when.header ?? {}).map(([name, wanted]) => {
      if (typeof wanted === 'string') return any([wanted], header(name.toLowerCase()), 'i')
      return header(name.toLowerCase()).length > 0 === wanted.present
    }),
    when.not && !holdsReference(when.not, facts, form),
  ].every((each) => each !== false)
}

function isInReference(range: string, address: string): boolean {
  if (address === '') return false
  const [base, bits] = range.split('/')
  if (isIPv4(base!) !== isIPv4(address)) return false
  const list = new BlockList()
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  list.addSubnet(base!, Number(bits), family)
  return list.check(address, family)
}

function regexOf(glob: string, flags: string): RegExp {
  return new RegExp(
    `^${glob
      .split('*')
      .map((part) => part.replace(/[\\^$.|?+()[\]{}/]/g, '\\$&'))
      .join('.*')}$`,
    `s${flags}`,
  )
}

function sentReference(path: string): string {
  return path.replace(/%(?!2f|5c|3b|25|3f|23|[01]|7f)[0-9a-f]{2}/gi, (encoded) => unescape(encoded))
}

function plainReference(path: string): string {
  if (!path.startsWith('/')) return path
  let plain = unescape(path.replace(/;[^/]*/g, '')).replace(/\\/g, '/')
  for (const [pattern, replacement] of [
    [/\/\/+/, '/'],
    [/\/\.(?=\/|$)/, '/'],
    [/^\/\.\.(?=\/|$)/, '/'],
    [/\/[^/]+\/\.\.(?=\/|$)/, '/'],
  ] as const) {
    const next = plain.replace(pattern, replacement)
    if (next !== plain)
      return plainReference(next.replaceAll(';', '%3B').replaceAll('%', '%25').replaceAll('%253B', '%3B'))
    plain = next
  }
  return plain
}

function policies(): fc.Arbitrary<WrittenPolicy> {
  const some = (...all: string[]) => fc.uniqueArray(fc.constantFrom(...all), { minLength: 1, maxLength: 2 })
  const conditions = {
    verdict: some('agent', 'human', 'unknown'),
    agent: some('gptbot', 'curl'),
    confidence_min: fc.constantFrom(0, 0.5, 1),
    verified: fc.boolean(),
    forged: fc.boolean(),
    hello: some('malformed', 'not-tls'),
    ja4: some(JA4, 't13*_*_*', 't12*_8daaf6152771_*'),
    method: some('GET', 'POST'),
    address: some('192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32', '::/0'),
    host: some('a.test', '*.a.test', 'A*'),
    path: some('/a', '/a*', '/a/*', '*b', '/a/*b', '/b*', '/%41*', '*'),
    user_agent: some('*bot*', 'curl/*', 'Mozilla*'),
    header: fc.dictionary(
      fc.constantFrom('accept', 'X-A', 'User-Agent'),
      fc.oneof(fc.constantFrom('*', 'text/*', '*a*'), fc.record({ present: fc.boolean() })),
      { minKeys: 1, maxKeys: 2 },
    ),
  }
  // More of them hold together for hardly any request.
  const names = fc.uniqueArray(fc.constantFrom(...Object.keys(conditions), 'path', 'path'), { maxLength: 2 })
  const plain = names.chain((chosen) =>
    fc.record(Object.fromEntries(Object.entries(conditions).filter(([name]) => chosen.includes(name)))),
  )
  const not = plain.filter((each) => Object.keys(each).length > 0)
  const when = fc.oneof(
    { weight: 3, arbitrary: plain },
    { weight: 1, arbitrary: fc.tuple(plain, not).map(([each, inner]) => ({ ...each, not: inner })) },
  )
  const action = fc.constantFrom('pass', 'tag', 'block', 'tarpit')
  const expires = fc.constantFrom('2030-01-01T00:00:00Z', '2100-01-01T00:00:00Z')
  const rule = fc.record({ when, action, dry_run: fc.boolean(), expires })
  const rules = fc
    .array(rule, { maxLength: 6 })
    .map((all) => all.map((each, i) => ({ ...each, name: `rule ${i}` })))
  return fc.record({ rules, otherwise: action }) as fc.Arbitrary<WrittenPolicy>
}

function requests(): fc.Arbitrary<Facts> {
  const path = fc.array(
    fc.constantFrom(
      '/',
      '/a',
      '/b',
      'a',
      'b',
      '.',
      '..',
      '//',
      '%2f',
      '%2e',
      '%41',
      ';',
      ';/',
      '\\',
      'A',
      '?',
      '%3B',
    ),
    { maxLength: 7 },
  )
  const header = fc.tuple(
    fc.constantFrom('Accept', 'x-a', 'USER-AGENT', 'User-Agent', 'X-Agent'),
    fc.constantFrom('text/html', '*/*', 'GPTBot/1', 'curl/8', 'Mozilla/5.0 bot', ''),
  )
  return fc.record({
    method: fc.constantFrom('GET', 'POST', 'get'),
    host: fc.constantFrom(null, 'a.test', 'A.TEST.:443', 'b.a.test:80', 'b'),
    path: path.map((parts) => `/${parts.join('')}`),
    address: fc.constantFrom('192.0.2.7', '10.1.2.3', '2001:db8::1', 'fe80::1', ''),
    rawHeaders: fc.array(header, { maxLength: 4 }).map((all) => all.flat()),
    print: fc.constantFrom(FACTS.print, printOf({ ja4: null, noHello: 'not-tls' })),
    verdict: fc.constantFrom(FACTS.verdict, {
      ...FACTS.verdict,
      kind: 'human',
      agent: null,
      verified: 'x',
      confidence: 0.3,
    }),
    forged: fc.constantFrom([], ['x-agent-name']),
  }) as fc.Arbitrary<Facts>
}

function printOf(connection: Partial<Facts['print']['connection']>): Facts['print'] {
  return { ...FACTS.print, connection: { ...FACTS.print.connection, ...connection } }
}

/** Which rule decided, of a policy of this one. */
function ruleOf(rule: object, facts: Facts, nowMs = 0): string {
  const written = { name: 'r', action: 'block', ...rule }
  const decision: Decision = decide(parsePolicy({ rules: [written] }), facts, nowMs)
  return decision.rule
}

/** Those that a policy may hold. */
function isPattern(pattern: string): boolean {
  return !/[;\\]|\/\//.test(pattern)
}

const RATE_LIMIT = { rate_limit: { per: 'address', requests: 1, window: '1s' } }

/** `card` tests the card of the proven signer. */
function ofCards(): readonly (readonly [boolean, object, Partial<Facts>?])[] {
  const verdict = { ...FACTS.verdict, proof: SIGNED }
  const registries = ['https://registry.test/agents.txt']
  const card = cardWith({ purposes: ['search', 'assistant'], trigger: 'fetcher', keepsRobots: true })
  const by = (changes: Partial<SignerFacts>) => ({
    verdict,
    signer: { card, registries, ranges: null, ...changes },
  })
  const placed = { ...FACTS.verdict, proof: { ...SIGNED, method: 'ip-range' } as const }
  return [
    [true, { card: true }, by({})],
    [false, { card: false }, by({})],
    [false, { card: true }, by({ card: null })],
    [true, { card: false }, by({ card: null })],
    [true, { card: false }],
    [true, { card: { purpose: ['training', 'search'] } }, by({})],
    [false, { card: { purpose: 'training' } }, by({})],
    [true, { card: { purpose: 'search', trigger: 'fetcher', robots: true } }, by({})],
    [false, { card: { purpose: 'search', trigger: 'crawler' } }, by({})],
    [false, { card: { trigger: ['crawler', 'fetcher'] } }, by({ card: { ...card, trigger: null } })],
    [false, { card: { robots: false } }, by({ card: null })],
    [true, { card: { registry: 'https://registry.test/*' } }, by({ card: null })],
    [false, { card: { registry: 'https://other.test/*' } }, by({})],
    [false, { card: { registry: '*' } }],
    // Another proof counts, so the card of the signature does not.
    [false, { card: true }, { ...by({}), verdict: placed }],
  ]
}
