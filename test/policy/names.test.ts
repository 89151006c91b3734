import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { EVIDENCE_KINDS } from '../../src/classify/known/evidence.ts'
import { CATEGORIES, parseSoftwareList } from '../../src/classify/known/software.ts'
import { SoftwareNames } from '../../src/classify/known/software-names.ts'
import { ConfigFault } from '../../src/config/source.ts'
import { parsePolicyText } from '../../src/runtime/policy-source.ts'
import { decide } from '../../src/policy/decide.ts'
import type { Facts } from '../../src/policy/facts.ts'
import { parsePolicy, policyWarnings } from '../../src/policy/policy.ts'
import { DocumentFault } from '../../src/shared/problem.ts'
import { FACTS } from './request-facts.ts'

const SDK = 'openai-sdk-python'
const LIST = parseSoftwareList([
  {
    ...{ id: SDK, name: 'OpenAI Python SDK', kind: 'agent', category: 'llm-sdk' },
    aliases: ['openai-python', 'synthetic-openai-python'],
  },
  { id: 'gptbot', name: 'GPTBot', kind: 'agent', category: 'crawler' },
  { id: 'ollama-js', name: 'Ollama JS', kind: 'agent', category: 'llm-sdk', aliases: ['ollama'] },
  { id: 'ollama-go', name: 'Ollama Go', kind: 'agent', category: 'llm-sdk', aliases: ['Ollama', 'ollama'] },
  { id: 'chrome', name: 'Chrome', kind: 'browser', engine: 'blink' },
  { id: 'curl', name: 'curl', kind: 'tool', aliases: ['libcurl', 'gptbot'] },
])
const NAMES = SoftwareNames.of(LIST)

/** Requests of an agent, or of other software. */
const OF_SDK = factsOf(SDK)
const OF_CHROME: Facts = {
  ...FACTS,
  verdict: {
    ...FACTS.verdict,
    agent: null,
    software: { id: 'chrome', name: 'Chrome', kind: 'browser' },
    evidence: [],
  },
}

const ALIASES = [
  SDK,
  'openai-python',
  'synthetic-openai-python',
  'OpenAI Python SDK',
  'openai_python',
  'OPENAI-PYTHON',
]

test('an agent is meant by its id, its name and its aliases, in any spelling', async () => {
  for (const name of ALIASES) {
    assert.equal(fires({ agent: name }, OF_SDK), true, name)
    assert.equal(fires({ agent: ['gptbot', name] }, OF_SDK), true, name)
    assert.equal(fires({ software: name }, OF_SDK), true, name)
    assert.equal(fires({ not: { agent: name } }, OF_SDK), false, name)
    assert.equal(fires({ agent: name }, FACTS), false, `${name} is not GPTBot`)
  }
  assert.equal(fires({ agent: 'GPTBot' }, FACTS), true)
  assert.equal(fires({ software: 'Chrome' }, OF_CHROME), true)
})

test('expressions compare with what names stand for', async () => {
  for (const name of ALIASES)
    for (const expression of [
      `verdict.agent == "${name}"`,
      `"${name}" == verdict.agent`,
      `verdict.agent in ["curl", "${name}"]`,
      `verdict.software == '${name}' && request.headers.accept != ""`,
      `!(verdict.agent != "${name}")`,
      `request.method == "GET" ? verdict.agent == "${name}" : false`,
      `[1, 2].exists(x, x == 1 && verdict.agent == "${name}")`,
    ]) {
      assert.equal(fires({ expression }, OF_SDK), true, expression)
      assert.equal(fires({ expression }, FACTS), false, expression)
    }
  // Only what an agent is compared with is a name of one.
  assert.equal(
    fires({ expression: 'request.path == "openai-python"' }, { ...OF_SDK, path: 'openai-python' }),
    true,
  )
  assert.equal(fires({ expression: 'verdict.agent == ""' }, OF_CHROME), true)
})

test('a name is found by its id first, and one that several have stands for the first of them', async () => {
  assert.equal(NAMES.find('gptbot')!.id, 'gptbot')
  assert.equal(NAMES.find('libcurl')!.id, 'curl')
  assert.equal(NAMES.find('ollama')!.id, 'ollama-js')
  assert.deepEqual(
    NAMES.sharing('ollama').map(({ id }) => id),
    ['ollama-js', 'ollama-go'],
  )
  assert.deepEqual(NAMES.sharing('gptbot'), [])
  for (const none of ['', 'missing', '__proto__', 'constructor', '\0', 'x'.repeat(10_000)])
    assert.equal(NAMES.find(none), null, none.slice(0, 20))
})

test('without signatures each id stands for itself', async () => {
  const policy = parsePolicy(policyOf({ agent: 'openai-python' }))
  assert.equal(decide(policy, OF_SDK, 0).rule, 'otherwise')
  assert.equal(decide(policy, factsOf('openai-python'), 0).rule, 'it')
  assert.deepEqual(policyWarnings(policy, null), [])
})

test('an unknown agent is a warning with the nearest name and no error', async () => {
  const warnings = (when: unknown) =>
    policyWarnings(parsePolicy(policyOf(when)), NAMES).map(({ pointer, what }) => [pointer, what])
  const at = '/rules/0/when'
  assert.deepEqual(warnings({ agent: ALIASES, software: ['curl', 'chrome'] }), [])
  assert.deepEqual(warnings({ agent: ['gptbot', 'gptbto'] }), [
    [`${at}/agent/1`, 'unknown agent "gptbto" (did you mean "gptbot"?)'],
  ])
  assert.deepEqual(warnings({ software: 'crul' }), [
    [`${at}/software`, 'unknown software "crul" (did you mean "curl"?)'],
  ])
  assert.deepEqual(warnings({ not: { agent: 'quite-another-program' } }), [
    [`${at}/not/agent`, 'unknown agent "quite-another-program"'],
  ])
  assert.deepEqual(warnings({ agent: 'ollama' }), [
    [
      `${at}/agent`,
      '"ollama" is a name of ollama-js and of ollama-go; it is read as ollama-js: write the id instead',
    ],
  ])
  assert.match(String(warnings({ agent: 'chrome' })), /"chrome" is a browser, not an agent.*`software`/)
  const expression = 'request.method == "GET" &&\n verdict.agent in ["gptbot", "gptbto"]'
  assert.deepEqual(warnings(expression), [
    [at, 'line 2, character 30: unknown agent "gptbto" (did you mean "gptbot"?)'],
  ])
  assert.deepEqual(warnings({ expression: 'verdict.software != "" && verdict.agent == "openai-python"' }), [])
  const many = Array.from({ length: 5_000 }, (_, number) => `missing-${number}`)
  assert.equal(warnings({ agent: many }).length, 100)
})

test('a word that no list has is an error with the nearest one', async () => {
  for (const [when, pointer, what] of [
    [{ category: 'crawlr' }, '/category', 'unknown category "crawlr" (did you mean "crawler"?)'],
    [
      { purpose: ['search', 'traning'] },
      '/purpose/1',
      'unknown purpose "traning" (did you mean "training"?)',
    ],
    [
      { category: ['crawler', 'Crawler'] },
      '/category/1',
      /^unknown category "Crawler" \(did you mean "crawler"/,
    ],
    [
      { category: 'nothing' },
      '/category',
      /^unknown category "nothing"; expected one of llm-sdk, browser-agent/,
    ],
    [
      { evidence: 'spoofed-browsr' },
      '/evidence',
      'unknown evidence "spoofed-browsr" (did you mean "spoofed-browser"?)',
    ],
    [{ evidence: ['signed-*', 'spoof*d-x'] }, '/evidence/1', '"spoof*d-x" matches no kind of evidence'],
    [{ verdict: 'agnt' }, '/verdict', /did you mean "agent"/],
    [{ verified: 'web-bot-auht' }, '/verified', /did you mean "web-bot-auth"/],
    [{ verified: ['ip-rage'] }, '/verified/0', /did you mean "ip-range"/],
    [{ hello: 'not-tsl' }, '/hello', /did you mean "not-tls"/],
    [{ not: { category: 'crawlr' } }, '/not/category', /did you mean "crawler"/],
    [
      { expression: 'verdict.category == "crawlr"' },
      '/expression',
      /^character 21: unknown category "crawlr" \(did you mean "crawler"/,
    ],
    [
      { expression: '"agnt" != verdict.kind' },
      '/expression',
      /^character 1: unknown verdict "agnt" \(did you mean "agent"/,
    ],
    [{ expression: 'verdict.kind == ""' }, '/expression', /unknown verdict ""/],
    [{ expression: 'verdict.kind in ["agent", "humen"]' }, '/expression', /"humen" \(did you mean "human"/],
    [
      { expression: 'verdict.proof_method == "ip-rnge"' },
      '/expression',
      /proof method "ip-rnge" \(did you mean "ip-range"/,
    ],
    [{ expression: '"spoofed-browsr" in verdict.evidence' }, '/expression', /did you mean "spoofed-browser"/],
    [
      { expression: 'verdict.evidence.exists(e, e == "spoofed-browsr")' },
      '/expression',
      /did you mean "spoofed-browser"/,
    ],
    [
      { expression: 'verdict.evidence.all(e, !(e in ["crawls", "crawl"]))' },
      '/expression',
      /"crawl" \(did you mean "crawls"/,
    ],
  ] as const) {
    const said = JSON.stringify(when)
    const [problem, ...more] = problemsOf(policyOf(when))
    assert.deepEqual([problem?.pointer, more.length], [`/rules/0/when${pointer}`, 0], said)
    if (typeof what === 'string') assert.equal(problem!.what, what)
    else assert.match(problem!.what, what, said)
  }
  for (const [action, near] of [
    ['blok', /did you mean "block"/],
    [{ redirct: { to: '/' } }, /did you mean "redirect"/],
    [{ rate_limit: { per: 'adress', requests: 1, window: '1s' } }, /did you mean "address"/],
  ] as const) {
    const rules = [{ name: 'it', when: {}, action }]
    assert.match(
      problemsOf({ rules })
        .map(({ what }) => what)
        .join(),
      near,
    )
    if (typeof action === 'string') assert.match(problemsOf({ otherwise: action })[0]!.what, near)
  }
})

test('words of a list are what they are in expressions, too, and other comparisons are left alone', async () => {
  for (const expression of [
    ...CATEGORIES.map((each) => `verdict.category == "${each}"`),
    ...EVIDENCE_KINDS.map((each) => `"${each}" in verdict.evidence`),
    'verdict.category == "" && verdict.proof_method == ""',
    'verdict.category.startsWith("crawl")',
    'verdict.evidence.exists(e, e.startsWith("signed-"))',
    'verdict.evidence.exists(e, e == request.method)',
    'request.method == "crawlr" || fingerprint.ja4 == "x"',
    '["a", "b"].exists(e, e == "c")',
    'verdict.evidence.exists(e, e == "crawls") && ["x"].exists(e, e == "y")',
  ])
    assert.deepEqual(problemsOf(policyOf({ expression })), [], expression)
})

test('a file is told where, with its line', async () => {
  const text =
    'rules:\n  - name: no-crawlers\n    when:\n      category: [crawler, crawlr]\n    action: block\n'
  assert.throws(
    () => parsePolicyText(text, 'policy.yaml'),
    (error: ConfigFault) => {
      assert.ok(error instanceof ConfigFault)
      assert.deepEqual(error.problems, [
        {
          where: 'policy.yaml:4:27',
          what: 'rule "no-crawlers": when.category[1]: unknown category "crawlr" (did you mean "crawler"?)',
        },
      ])
      return true
    },
  )
  const unknown = text.replace('category: [crawler, crawlr]', 'agent: gptbto')
  const { warnings } = parsePolicyText(unknown, 'policy.yaml', { names: NAMES })
  assert.deepEqual(warnings, [
    {
      where: 'policy.yaml:4:7',
      what: 'rule "no-crawlers": when.agent: unknown agent "gptbto" (did you mean "gptbot"?)',
    },
  ])
})

test('whatever is compared with an agent, the policy is the one with its id', async () => {
  const name = fc.constantFrom(...ALIASES, 'gptbot', 'missing', 'ollama', 'chrome', '')
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), name, (some, one) => {
      const idOf = (each: string) => NAMES.find(each)?.id ?? each
      const text = (given: readonly string[], of: (each: string) => string) =>
        `verdict.agent in ${JSON.stringify(given.map(of))} || verdict.agent == ${JSON.stringify(of(one))}`
      for (const facts of [OF_SDK, FACTS, OF_CHROME]) {
        const expected = decide(parsePolicy(policyOf({ expression: text(some, idOf) })), facts, 0).rule
        assert.equal(fires({ expression: text(some, (each) => each) }, facts), expected === 'it')
      }
    }),
    { numRuns: 200 },
  )
})

function factsOf(id: string): Facts {
  const agent = { id, name: id, category: 'llm-sdk', purposes: [] }
  return {
    ...FACTS,
    verdict: { ...FACTS.verdict, agent, software: { id, name: id, kind: 'agent' } },
  }
}

function policyOf(when: unknown) {
  return { rules: [{ name: 'it', when, action: 'block' }] }
}

function fires(when: unknown, facts: Facts): boolean {
  return decide(parsePolicy(policyOf(when), { names: NAMES }), facts, 0).rule === 'it'
}

function problemsOf(policy: unknown): DocumentFault['problems'] {
  try {
    parsePolicy(policy)
    return []
  } catch (error) {
    if (error instanceof DocumentFault) return error.problems
    throw error
  }
}
