import assert from 'node:assert/strict'
import { test } from 'tap'
import { decide } from '../../src/policy/decide.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { explain } from '../../src/policy/explain.ts'
import { parseAcceptedPolicy, parsePolicy, policyWarnings } from '../../src/policy/policy.ts'
import { PolicyRequest } from '../../src/policy/request.ts'
import { VOCABULARIES } from '../../src/policy/vocabulary.ts'
import { makeSnapshot, parseSnapshot } from '../../src/plane/snapshot.ts'
import { DocumentFault } from '../../src/shared/problem.ts'

const PROOF = { method: 'web-bot-auth', agent: 'https://a.test', key: 'k' } as const
const AGENT = { id: 'gptbot', name: 'GPTBot', category: 'crawler', purposes: ['archive', 'training'] }
const FACTS: Facts = {
  method: 'POST',
  host: 'Shop.Example.test:8443',
  path: '/caf%C3%A9/items?id=1&q=a#top',
  address: '192.0.2.7',
  rawHeaders: [
    ...['Host', 'Shop.Example.test:8443', 'User-Agent', 'GPTBot/1.2', 'Accept', 'text/html', 'accept', '*/*'],
    ...['Cookie', 'a=1', 'Cookie', 'b=2', 'X-Length', '12', 'X-Text', 'twelve', 'X-Agent-Verdict', 'human'],
    ...['X-Caf', 'caf\u00c3\u00a9', '__proto__', 'x'],
  ],
  print: {
    connection: {
      ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
      stable: null,
      http2: '1:65536',
      noHello: null,
    },
    ja4h: null,
  },
  verdict: {
    ...{ kind: 'agent', agent: AGENT, confidence: 0.8 },
    nameConfidence: 0.5,
    ...{ software: { id: 'gptbot', name: 'GPTBot', kind: 'agent' }, proof: PROOF, conflicts: [] },
    evidence: [{ kind: 'declares-bot', detail: 'GPTBot', weight: 1 }],
  },
  forged: ['x-agent-verdict'],
}

const HOLD = [
  'request.method == "POST"',
  'request.host == "shop.example.test"',
  'request.path == "/café/items" && request.path.startsWith("/café/")',
  'request.query == "id=1&q=a"',
  'request.headers["accept"] == "text/html, */*" && request.headers.cookie == "a=1; b=2"',
  'request.headers["x-caf"] == "café"',
  'request.headers["user-agent"].contains("Bot")',
  '"x-length" in request.headers && !("x-none" in request.headers)',
  'has(request.headers.accept) && !has(request.headers.origin)',
  'request.headers["x-none"] == "" && !request.headers["x-none"].startsWith("a")',
  'request.headers["origin"] != "https://" + request.host',
  'int(request.headers["x-length"]) > 11',
  'size(request.path) > 3 && request.path.lowerAscii().endsWith("items")',
  'client.address == "192.0.2.7"',
  'verdict.kind == "agent" && verdict.agent in ["gptbot", "claudebot"] && verdict.category == "crawler"',
  'verdict.software == "gptbot" && verdict.confidence > 0.5 && verdict.confidence < 1 && verdict.verified',
  'verdict.proof_method == "web-bot-auth" && verdict.signer == "https://a.test"',
  'verdict.evidence.exists(e, e.startsWith("declares-")) && "declares-bot" in verdict.evidence',
  '"training" in verdict.purpose && !("search" in verdict.purpose) && size(verdict.purpose) == 2',
  'verdict.purpose.exists(p, p == "archive") && verdict.purpose.all(p, p in ["archive", "training"])',
  '["/a", "/caf"].exists(p, request.path.startsWith(p))',
  'fingerprint.ja4.startsWith("t13d") && fingerprint.ja4h == "" && fingerprint.stable == ""',
  'fingerprint.http2 == "1:65536"',
  'forged',
  'request.method == "POST" ? forged : false',
  // A failing part does not matter if the rest decides (CEL).
  'int(request.headers["x-text"]) == 12 || forged',
]

test('an expression holds, and its contrary does not', async (t) => {
  for (const text of HOLD) {
    t.test(text, async () => {
      assert.equal(holds(text), true)
      assert.equal(holds({ expression: text }), true)
      assert.equal(holds(`!(${text})`), false)
      assert.equal(holds({ not: { expression: text } }), false)
      assert.equal(holds({ method: 'GET', expression: text }), false)
    })
  }
})

test('a missing value is an empty text', async () => {
  const verdict = { ...FACTS.verdict, agent: null, software: null, proof: null, evidence: [] }
  const facts = { ...FACTS, host: null, path: '/', rawHeaders: [], verdict, forged: [] }
  const text = `request.host == "" && request.query == "" && verdict.agent == "" && verdict.category == "" &&
    verdict.software == "" && verdict.proof_method == "" && verdict.signer == "" && size(verdict.evidence) == 0 && size(verdict.purpose) == 0 && request.headers.accept == "" && !forged &&
    !("__proto__" in request.headers) && !("constructor" in request.headers)`
  assert.equal(holds(text, facts), true)
})

test('each request is looked at anew', async () => {
  const policy = parsePolicy(policyOf('request.headers["x-a"] == "1" && request.path == "/a"'))
  const at = (path: string, value: string) =>
    decide(policy, { ...FACTS, path, rawHeaders: ['X-A', value] }, 0).rule
  assert.deepEqual(
    [at('/a', '1'), at('/a', '2'), at('/b', '1'), at('/a', '1')],
    ['it', 'otherwise', 'otherwise', 'it'],
  )
})

const REFUSED: readonly (readonly [text: string, problem: string])[] = [
  ['request.method ==', 'character 18: Unexpected token: EOF'],
  ['request.pth == "/"', 'character 1: unknown field request.pth (did you mean "path"?)'],
  ['requst.path == "/"', 'character 1: unknown name "requst" (did you mean "request"?)'],
  ['request.path ==\n  foo', 'line 2, character 3: unknown name "foo"'],
  [
    'request == request',
    'character 1: request is not a single value; use one of its fields: method, host, path, query, headers',
  ],
  ['request.path', 'is of type string; the result must be true or false, so compare it with a value'],
  ['request.path == 1', 'character 1: no such overload: string == int'],
  ['1 + "a" == 2', 'character 1: no such overload: int + string'],
  ['request.path.startWith("/a")', 'unknown function startWith() (did you mean "startsWith"?)'],
  [
    'request.path.matches("(a+)+$")',
    'matches() is not supported, because a regular expression can be too slow',
  ],
  ['timestamp("2026-01-01T00:00:00Z") < timestamp("2027-01-01T00:00:00Z")', 'timestamp() is not supported'],
  ['cel.bind(x, request.path, x + x == "a")', 'bind() is not supported'],
  ['dyn(request.path) == 1', 'unknown function dyn()'],
  ['type(1) == int', 'unknown function type()'],
  ['int == int', 'unknown name "int"'],
  ['request.headers[request.method] == "a"', 'a header name must be a literal'],
  ['request.headers["Accept"] == "a"', 'a header name must be in lower case, unlike "Accept"'],
  ['"X-Key" in request.headers', 'a header name must be in lower case, unlike "X-Key"'],
  ['request.headers["a b"] == ""', '"a b" is not a valid header name'],
  ['request.headers["a\\"b"] == ""', 'is not a valid header name'],
  ['request.headers["x-agent-verdict"] == "a"', 'is a header that only the proxy sets; see forged'],
  ['request.headers.x_ja4_source == "hop"', 'is a header that only the proxy sets; see forged'],
  ['has(request.headers.Accept)', 'a header name must be in lower case'],
  ['has(request.path)', 'has() takes a header'],
  ['(request.headers)["a"] == "b"', 'write request.headers without parentheses'],
  [
    'request.headers.exists(h, h == "a")',
    'works only on verdict.evidence, verdict.purpose or a literal list',
  ],
  ['["a"].exists(a, ["b"].exists(b, a == b))', 'cannot be nested in another'],
  ['["a"].exists(request, true)', 'request is a reserved name'],
  ['["a"].map(a, a) == ["a"]', 'map() is not supported'],
  ['{"a": 1}["a"] == 1', 'maps are not supported'],
  ['request["path"] == "/"', 'request is not a single value'],
  [`${'('.repeat(40)}forged${')'.repeat(40)}`, 'xceeded max'],
  [`forged || ${'(forged) || '.repeat(200)}forged`, 'is longer than 2048 characters'],
  [`[${'1,'.repeat(150)}1].exists(i, i == 1 || i == 2 || i == 3)`, 'steps; at most 1000 are allowed'],
  ['', 'is ""; expected an expression'],
]

test('what cannot be used is refused when it is loaded, and where it is', async (t) => {
  for (const [text, problem] of REFUSED) {
    t.test(text.slice(0, 60), async () => {
      assert.throws(
        () => parsePolicy(policyOf(text)),
        (error) => {
          assert.ok(error instanceof DocumentFault)
          assert.equal(error.problems[0]!.pointer, '/rules/0/when')
          assert.ok(error.message.includes(problem), error.message)
          return true
        },
      )
    })
  }
})

test('names of JavaScript are unknown', async () => {
  for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'prototype'])
    for (const text of [`${name} == "a"`, `request.${name} == "a"`, `${name}()`, `request.path.${name}()`])
      assert.throws(() => parsePolicy(policyOf(text)), DocumentFault, text)
})

test('the stricter result counts if an expression fails, and the failure is counted', async () => {
  const fails = 'int(request.headers["x-text"]) > 5'
  const request = new PolicyRequest()
  const holds = (when: unknown, facts: Facts, action: string) =>
    decide(parsePolicy(policyOf(when, action)), facts, 0, request).rule === 'it'
  assert.equal(holds(fails, FACTS, 'block'), true)
  assert.equal(holds(fails, FACTS, 'pass'), false)
  assert.equal(holds({ not: { expression: fails } }, FACTS, 'block'), true)
  assert.equal(holds({ not: { expression: fails } }, FACTS, 'pass'), false)
  assert.equal(holds({ expression: fails, not: { expression: fails } }, FACTS, 'block'), true)
  assert.equal(request.failures, 5)
  // The rest of the rule still has its say, and so has a path of two forms.
  assert.equal(holds({ method: 'GET', expression: fails }, FACTS, 'block'), false)
  assert.equal(request.failures, 5)
  const odd = { ...FACTS, path: '/a/..%2fb' }
  assert.equal(holds('request.path == "/b"', odd, 'block'), true)
  assert.equal(holds('request.path == "/b"', odd, 'pass'), false)
  assert.equal(holds(`request.path == "/b" && ${fails}`, odd, 'block'), true)
  assert.equal(holds(`request.path == "/c" && ${fails}`, odd, 'block'), false)
  assert.equal(holds(`request.path != "/c" && ${fails}`, odd, 'pass'), false)
})

test('a rule that failed leaves the next one as it was', async () => {
  const fails = 'int(request.headers["x-text"]) > 5'
  const policy = parsePolicy({
    rules: [
      { name: 'a', when: fails, action: 'pass' },
      { name: 'b', when: 'int(request.headers["x-length"]) > 20', action: 'block' },
      { name: 'c', when: 'int(request.headers["x-length"]) == 12', action: 'pass' },
    ],
  })
  assert.equal(decide(policy, FACTS, 0).rule, 'c')
})

const STEPS = 801
const LARGE = `[${Array.from({ length: 160 }, (_, i) => `"${i}"`).join()}].exists(x, request.path == x)`
const largeRules = (count: number, action: string) =>
  Array.from({ length: count }, (_, i) => ({ name: `${action}-${i}`, when: LARGE, action }))

test('all expressions of a request together have so many steps: those behind have no answer', async () => {
  const enough = Math.floor(20_000 / STEPS)
  assert.equal(parsePolicy({ rules: largeRules(1, 'block') }).steps, STEPS, 'this test knows what it costs')
  const request = new PolicyRequest()
  const outcome = (count: number, action: string, otherwise: string) =>
    decide(parsePolicy({ rules: largeRules(count, action), otherwise }), FACTS, 0, request).rule
  assert.equal(outcome(enough, 'block', 'pass'), 'otherwise')
  assert.equal(request.overruns, 0)
  assert.equal(outcome(enough + 1, 'block', 'pass'), `block-${enough}`)
  assert.equal(request.overruns, 1)
  assert.equal(outcome(500, 'pass', 'block'), 'otherwise')
  assert.equal(request.overruns, 2)
  // What asks for less comes behind as well, and what asks for no steps has an answer.
  const rules = [...largeRules(30, 'pass'), { name: 'a', when: 'request.method == "POST"', action: 'pass' }]
  assert.equal(decide(parsePolicy({ rules }), FACTS, 0).rule, 'otherwise')
  const plain = { name: 'b', when: { method: 'POST' }, action: 'pass' }
  assert.equal(decide(parsePolicy({ rules: [...rules, plain] }), FACTS, 0).rule, 'b')
  assert.equal(holds('request.method == "POST"'), true, 'and the next request has all of them again')
})

test('a condition on evidence costs its steps for each kind of evidence', async () => {
  const steps = (when: string) => parsePolicy(policyOf(when)).steps
  const perPiece = (list: string) =>
    steps(`${list}.exists(kind, kind == "crawls" || kind == "headless")`) -
    steps(`${list}.exists(kind, kind == "crawls")`)
  assert.equal(perPiece('verdict.evidence') / perPiece('["crawls"]'), VOCABULARIES.evidence.length)
})

test('in a policy that was accepted before, an unknown word never matches', async () => {
  const outcome = (when: unknown) => {
    assert.throws(() => parsePolicy(policyOf(when)), /unknown|no kind of evidence/)
    const policy = parseAcceptedPolicy(policyOf(when))
    assert.match(policyWarnings(policy, null)[0]!.what, /; it never matches$/)
    return decide(policy, FACTS, 0).rule === 'it'
  }
  for (const [when, isHolding] of [
    [{ category: 'crawlr' }, false],
    [{ category: ['crawlr', 'crawler'] }, true],
    [{ not: { category: 'crawlr' } }, true],
    [{ evidence: 'gone' }, false],
    [{ evidence: ['gone-*', 'declares-bot'] }, true],
    ['verdict.category == "crawlr"', false],
    ['verdict.category == "crawlr" || request.method == "POST"', true],
    ['verdict.category != "crawlr"', true],
    ['verdict.evidence.exists(kind, kind == "gone")', false],
    [{ purpose: 'traning' }, false],
    [{ purpose: ['traning', 'training'] }, true],
    [{ not: { purpose: 'traning' } }, true],
    ['"traning" in verdict.purpose', false],
    ['verdict.purpose.exists(each, each == "traning")', false],
  ] as const)
    assert.equal(outcome(when), isHolding, JSON.stringify(when))
  const wrong = policyOf({ category: 'crawlr', hots: 'a' })
  assert.throws(() => parseAcceptedPolicy(wrong), /hots: unknown field/, 'all else is refused')
  const snapshot = makeSnapshot(1, policyOf({ category: 'crawlr' }), 0)
  assert.equal(parseSnapshot(snapshot).policy.unknownWords.length, 1)
})

test('steps count for each way in which a request is read', async () => {
  const odd = { ...FACTS, path: '/a/..%2fb' }
  const policy = parsePolicy({ rules: largeRules(15, 'block'), otherwise: 'pass' })
  assert.equal(decide(policy, FACTS, 0).rule, 'otherwise')
  assert.equal(decide(policy, odd, 0).rule, 'block-12')
})

test('why there was no answer is explained as it was decided', async () => {
  const policy = parsePolicy({ rules: [...largeRules(25, 'pass'), ...largeRules(2, 'block')] })
  const { decision, rules } = explain(policy, FACTS, 0)
  assert.equal(decision.rule, 'block-0')
  assert.deepEqual(
    rules.filter((rule) => rule.holds).map(({ rule, decides }) => [rule, decides]),
    [
      ['block-0', true],
      ['block-1', false],
    ],
  )
  assert.deepEqual(
    rules.map(({ isDoubtful }) => isDoubtful),
    rules.map((_, number) => number >= 24),
  )
  const expired = largeRules(25, 'pass').map((rule) => ({ ...rule, expires: '2000-01-01T00:00:00Z' }))
  const late = parsePolicy({ rules: [...expired, ...largeRules(1, 'block')] })
  assert.equal(explain(late, FACTS, Date.now()).rules.at(-1)!.isDoubtful, false)
})

test('a policy that may use them up is warned of, and one that cannot is not', async () => {
  const warnings = (count: number) => policyWarnings(parsePolicy({ rules: largeRules(count, 'block') }), null)
  assert.deepEqual(warnings(6), [])
  assert.match(warnings(7)[0]!.what, /can take 5607 steps.* 20000/)
  const inNot = largeRules(7, 'block').map(({ when, ...rule }) => ({ ...rule, when: { not: when } }))
  assert.equal(policyWarnings(parsePolicy({ rules: inNot }), null).length, 1)
})

function holds(when: unknown, facts: Facts = FACTS, action = 'block'): boolean {
  return decide(parsePolicy(policyOf(when, action)), facts, 0).rule === 'it'
}

function policyOf(when: unknown, action = 'block'): object {
  return { rules: [{ name: 'it', when, action }] }
}
