import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { classify, evidenceOf, recall } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import type { EvidenceKind } from '../../src/classify/known/evidence.ts'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import { NO_PROOFS } from '../../src/classify/verdict/proof.ts'
import { Scratch } from '../../src/classify/verdict/scratch.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { CLASSES, type Class, parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import type { HelloTraits } from '../../src/fingerprint/hello-traits.ts'
import type { Ja4 } from '../../src/fingerprint/ja4.ts'
import type { Ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import type { Ja4s } from '../../src/fingerprint/ja4plus/ja4s.ts'
import type { Ja4x } from '../../src/fingerprint/ja4plus/ja4x.ts'
import type { ConnectionPrint, Print } from '../../src/fingerprint/print.ts'
import type { RequestHead } from '../../src/wire/request-head.ts'

/** For all verdicts of this file: what a request leaves behind changes nothing of the next. */
const SCRATCH = new Scratch()
const CHROME_JA4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
const CURL_JA4 = 't13d3112h2_e8f1e7e78f70_b26ce05bbdd6'
const NODE_JA4 = 't13d5212h1_b262b3658495_8e6e362c5eac'
const PROXY_JA4 = 't13d1011h2_61a7ad8aa9b6_3fcd1a44f3e3'
const UNKNOWN_JA4 = 't13d0707h2_000000000000_111111111111'
const CHROME_HTTP2 = '1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p'
/** With no other header of a browser. */
const BARE_CHROME = 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36'
const CHROME_USER_AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'

const NONE = '000000000000_000000000000'
const FOR_ITSELF = { is: 'agent', source: 'made for this test', date: '2026-11-21' }
const AGENT_JA4H = `po11nn142a00_aaaaaaaaaaaa_${NONE}`
const AGENTS_JA4H = `po11nn130000_ffffffffffff_${NONE}`
const SHARED_JA4H = `ge11nn100000_bbbbbbbbbbbb_${NONE}`
/** Of few headers. */
const SHORT_JA4H = `ge11nn050000_cccccccccccc_${NONE}`
const COOKIE_JA4H = 'ge11cn110000_dddddddddddd_eeeeeeeeeeee_*'
const AGENT_JA4X = 'aaaaaaaaaaaa_bbbbbbbbbbbb_cccccccccccc'
const TOOL_JA4X = 'aaaaaaaaaaaa_bbbbbbbbbbbb_dddddddddddd'
const UNKNOWN_HTTP2 = '1:65536;3:1000|15663105|0|m,a,s,p'
const BROWSER_HEADERS = [
  ...['sec-ch-ua', '"Not:A-Brand";v="8", "Chromium";v="156"', 'accept-language', 'en', 'accept', '*/*'],
  ...['sec-fetch-site', 'none', 'sec-fetch-mode', 'cors', 'sec-fetch-dest', 'empty'],
  ...['accept-encoding', 'gzip, deflate, br, zstd'],
]

const VARIOUS: readonly Said[] = [
  { userAgent: 'AcmeSDK/1.0', ja4: NODE_JA4 },
  { userAgent: 'curl/8.0', ja4: CURL_JA4 },
  { userAgent: 'curl/8.0', ja4: CURL_JA4, headers: ['x-kit', 'a1', 'x-helper', 'one'] },
  { userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, http2: CHROME_HTTP2 },
  { userAgent: CHROME_USER_AGENT, ja4: CURL_JA4, http2: UNKNOWN_HTTP2 },
  { userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4, http2: UNKNOWN_HTTP2 },
  { ja4: PROXY_JA4 },
  { userAgent: 'Foobot/1.0', forged: 3 },
]

const LIST = parseSoftwareList([
  software('chrome', 'Chrome', { kind: 'browser', engine: 'blink' }, [
    { user_agent: 'Chrome/' },
    { ja4: CHROME_JA4, observations: 100 },
    { ja4: PROXY_JA4, observations: 30 },
    { http2: CHROME_HTTP2, observations: 100 },
  ]),
  software('plain', 'Plain', { kind: 'browser', engine: 'other' }, [{ user_agent: 'Plain/' }]),
  software('curl', 'cURL', { kind: 'tool' }, [
    { user_agent: 'curl/' },
    { ja4: CURL_JA4, observations: 90 },
    { ja4h: withoutCookies(SHARED_JA4H), observations: 1 },
    { ja4h: withoutCookies(AGENT_JA4H), observations: 1 },
    { ja4h: withoutCookies(SHORT_JA4H), observations: 7 },
    { ja4x: TOOL_JA4X, observations: 1 },
    { ja4: PROXY_JA4, observations: 70 },
  ]),
  software('wcurl', 'wcurl', { kind: 'tool' }, [{ ja4: CURL_JA4, observations: 10 }]),
  software('fetch', 'fetch', { kind: 'tool' }, [{ ja4: NODE_JA4, observations: 89 }]),
  software('got', 'Got', { kind: 'tool' }, [{ ja4: NODE_JA4, observations: 11 }]),
  software('kit-a', 'Kit A', { kind: 'tool' }, [{ header: 'x-kit', value: 'a*' }]),
  software('kit-b', 'Kit B', { kind: 'tool' }, [{ header: 'x-kit', value: 'b*' }]),
  software('acme', 'Acme SDK', { kind: 'agent', category: 'llm-sdk', purpose: FOR_ITSELF }, [
    { user_agent: 'AcmeSDK/' },
    { ja4h: withoutCookies(AGENT_JA4H), observations: 19 },
    { ja4h: withoutCookies(SHARED_JA4H), observations: 3 },
    { ja4x: AGENT_JA4X, observations: 1 },
  ]),
  software('helper', 'Helper', { kind: 'agent', category: 'custom' }, [
    { header: 'x-helper', value: 'one' },
    { ja4h: withoutCookies(AGENTS_JA4H), observations: 1 },
    { ja4h: COOKIE_JA4H, observations: 1 },
    { user_agent: 'HelperBot' },
  ]),
  software('aide', 'Aide', { kind: 'agent', category: 'custom' }, [
    { header: 'x-helper', value: 'two' },
    { ja4h: withoutCookies(AGENTS_JA4H), observations: 1 },
    { ja4h: COOKIE_JA4H.replace('eeeeeeeeeeee', 'ffffffffffff'), observations: 1 },
  ]),
  software('made', 'Made by a generator', { kind: 'agent', category: 'llm-sdk', family: true }, [
    { header: 'x-made-with' },
    { user_agent: 'MadeSDK/' },
  ]),
])

/** For each kind the weights of agent, automation and human. */
const WEIGHTS: Readonly<Partial<Record<EvidenceKind, readonly [number, number, number]>>> = {
  'names-agent': [6, -1, -1],
  'names-tool': [1, 3, -2],
  'names-browser': [-1, -2, 4],
  'names-plain-browser': [-1, -2, 4],
  'agent-header': [6, -1, 0],
  'tool-header': [0, 2, 0],
  'mcp-request': [6, -2, 0],
  'declares-bot': [5, -1, 0],
  headless: [8, 0, -4],
  'headers-of-agents': [6, 0, 0],
  'certificate-of-agents': [6, 0, 0],
  'fingerprint-of-agent': [9, 0, 0],
  'stack-of-libraries': [0.5, 0.5, -1],
  'stack-disagrees': [3, 0, -5],
  'stack-unlike': [3, 0, -5],
  'http1-only': [2, 0, -4],
  'http2-unlike': [2, 0, -4],
  'header-case-odd': [1, 0, -2],
  'forged-headers': [2, 0, -1],
}
const DECIDED = [
  { ja4: UNKNOWN_JA4, decisive: true },
  { ja4h: COOKIE_JA4H, decisive: true },
  { ja4x: AGENT_JA4X, decisive: true },
]
const BIAS = [-0.5, 0.6, -0.9] as const
const TEMPERATURE = 1.6

const KNOWLEDGE = knowledge()

test('who is called like a known program is called so, and no agent for that', async () => {
  const agent = ['x-made-with', '1']
  assert.deepEqual(facts(judged({ userAgent: 'acme/1.0', ja4: UNKNOWN_JA4 })), ['automation', null, null])
  assert.deepEqual(facts(judged({ userAgent: 'acme/1.0', ja4: NODE_JA4, headers: agent })), [
    'agent',
    'acme',
    'acme',
  ])
  assert.deepEqual(facts(judged({ userAgent: 'AcmeSDK/1', headers: agent })), ['agent', 'acme', 'acme'])
  assert.deepEqual(facts(judged({ userAgent: 'other/1.0', headers: agent })), ['agent', 'made', 'made'])
  // A fingerprint of one owner weighs more than a name.
  const helper = { userAgent: 'acme/1.0', headers: ['x-helper', 'one'] }
  assert.deepEqual(facts(judged(helper)), ['agent', 'helper', 'helper'])
  assert.deepEqual(facts(judged({ userAgent: 'wcurl/1.0', ja4: UNKNOWN_JA4 })), ['automation', 'wcurl', null])
  assert.equal(
    judged({ userAgent: 'acme/1.0', ja4: UNKNOWN_JA4 }).kind,
    judged({ userAgent: 'none/1.0', ja4: UNKNOWN_JA4 }).kind,
  )
})

test('a verdict for each class', async () => {
  assert.deepEqual(facts(judged({ userAgent: 'AcmeSDK/1.0', ja4: NODE_JA4 })), ['agent', 'acme', 'acme'])
  assert.deepEqual(facts(judged({ userAgent: 'curl/8.0', ja4: CURL_JA4 })), ['automation', 'curl', null])
  assert.deepEqual(facts(judged({ userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, http2: CHROME_HTTP2 })), [
    'human',
    'chrome',
    null,
  ])
  assert.deepEqual(facts(judged({ userAgent: 'Plain/3', ja4: UNKNOWN_JA4 })), ['human', 'plain', null])
})

test('an agent has its category, and any verdict is whole, frozen and unverified', async () => {
  const verdict = judged({ userAgent: 'AcmeSDK/1.0' })
  assert.deepEqual(verdict.agent, { id: 'acme', name: 'Acme SDK', category: 'llm-sdk', purposes: ['agent'] })
  assert.deepEqual(verdict.software, { id: 'acme', name: 'Acme SDK', kind: 'agent' })
  assert.equal(verdict.proof, null)
  assert.ok(Object.isFrozen(verdict))
  assert.ok(verdict.confidence > 0 && verdict.confidence <= 1)
})

test('the User-Agent names before a header does', async () => {
  assert.equal(named({ userAgent: 'AcmeSDK/1.0', headers: ['x-helper', 'one'] }), 'acme')
  assert.equal(named({ userAgent: 'curl/8.0', headers: ['x-helper', 'one'] }), 'helper')
  assert.equal(named({ userAgent: 'curl/8.0', headers: ['x-kit', 'a1'] }), 'curl')
  assert.equal(named({ headers: ['x-kit', 'b1'] }), 'kit-b')
})

test('a family is named only if none of its members is', async () => {
  const family = ['X-Made-With', 'a generator']
  assert.equal(named({ userAgent: 'thing/1', headers: family }), 'made')
  assert.equal(named({ userAgent: 'AcmeSDK/1.0', headers: family }), 'acme')
  assert.equal(named({ headers: [...family, 'x-helper', 'one'] }), 'helper')
  assert.equal(named({ headers: ['x-helper', 'one', ...family] }), 'helper')
  assert.equal(named({ userAgent: 'MadeSDK/1.0' }), 'made')
  assert.equal(named({ userAgent: 'MadeSDK/1.0', headers: ['x-helper', 'one'] }), 'helper')
})

test('an agent named on a connection stays its agent', async () => {
  const conduct = new Conduct()
  assert.equal(judged({ userAgent: 'curl/8.0', ja4: CURL_JA4, conduct }).kind, 'automation')
  judged({ userAgent: 'AcmeSDK/1.0', ja4: CURL_JA4, conduct })
  const later = judged({ userAgent: 'curl/8.0', ja4: CURL_JA4, conduct })
  assert.deepEqual(facts(later), ['agent', 'acme', 'acme'])
  assert.equal(named({ headers: ['x-made-with', '1'], conduct }), 'acme', 'a family says less')
  assert.equal(named({ headers: ['x-helper', 'two'], conduct }), 'aide', 'who is named now is meant now')
  assert.deepEqual(
    facts(judged({ userAgent: 'curl/8.0', ja4: CURL_JA4, conduct: new Conduct() })),
    ['automation', 'curl', null],
    'another connection',
  )
})

test('a family that was named first gives way on the connection to who is named later', async () => {
  const conduct = new Conduct()
  assert.equal(named({ headers: ['x-made-with', '1'], conduct }), 'made')
  assert.equal(named({ userAgent: 'AcmeSDK/1.0', conduct }), 'acme')
  assert.equal(named({ headers: ['x-made-with', '1'], conduct }), 'acme')
})

test('evidence from an earlier request says so', async () => {
  const conduct = new Conduct()
  judged({ userAgent: 'AcmeSDK/1.0', headers: ['x-helper', 'one'], conduct })
  for (const userAgent of ['curl/8.0', CHROME_USER_AGENT, 'thing/1', null]) {
    const { evidence } = judged({ userAgent, conduct })
    assert.equal(detail(evidence, 'names-agent'), 'an earlier request named an agent', userAgent ?? 'none')
    assert.equal(detail(evidence, 'agent-header'), 'an earlier request had a header of an agent')
  }
})

test('what a browser is denied by on a connection is not said of another program', async () => {
  const conduct = new Conduct()
  const odd = ['sec-ch-ua', '"Chromium";v="12"']
  const first = { userAgent: BARE_CHROME, headers: odd, ja4: CURL_JA4, traits: 0, conduct }
  const denied = ['stack-disagrees', 'version-disagrees', 'client-hints-disagree'] as const
  assert.deepEqual(
    denied.map((kind) => detail(judged(first).evidence, kind)),
    [
      'the TLS fingerprint does not belong to Chrome, but to cURL 90 %, wcurl 10 %',
      'the TLS features do not match Chrome 156',
      'sec-ch-ua does not match Chrome 156',
    ],
  )
  const later = judged({ userAgent: 'curl/8.0', ja4: CURL_JA4, conduct })
  for (const kind of denied) assert.doesNotMatch(detail(later.evidence, kind)!, /to cURL, but|match cURL/)
})

test('a hello close to one program names it if nothing else does', async () => {
  assert.equal(named({ ja4: CURL_JA4 }), 'curl', '90 %')
  assert.equal(named({ ja4: NODE_JA4 }), null, '89 %')
  assert.equal(named({ ja4: UNKNOWN_JA4 }), null)
  assert.equal(named({ userAgent: 'AcmeSDK/1.0', ja4: CURL_JA4 }), 'acme')
})

test('a browser is never the name of an agent', async () => {
  const verdict = judged({ userAgent: `${CHROME_USER_AGENT} headless`, ja4: CHROME_JA4 })
  assert.deepEqual(facts(verdict), ['agent', null, null])
})

test('a claimed browser without contradictions is at worst unknown', async () => {
  const odd = judged({ userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4, http2: CHROME_HTTP2 })
  assert.ok(odd.evidence.some(({ kind }) => kind === 'stack-unlike'))
  assert.deepEqual(facts(odd), ['unknown', 'chrome', null], 'the unknown contradicts nothing')
  const soft = { userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4, http2: UNKNOWN_HTTP2 }
  assert.equal(judged(soft).kind, 'unknown', 'one soft disagreement')
  const ja4 = UNKNOWN_JA4.replace('h2', 'h1')
  assert.equal(judged({ ...soft, ja4 }).kind, 'agent', 'two')
  assert.equal(
    judged({ userAgent: CHROME_USER_AGENT, ja4: CURL_JA4, http2: CHROME_HTTP2 }).kind,
    'agent',
    'a hard one',
  )
})

test('a client with a browser’s TLS and no contradictions is a person', async () => {
  const said = { userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, http2: UNKNOWN_HTTP2 }
  const by = knowledge({ weights: { ...WEIGHTS, 'http2-unlike': [5, 0, -4] } })
  const { kind, confidence, evidence } = judged(said, by)
  assert.equal(kind, 'human')
  assert.ok(confidence < 0.5, 'as sure as the evidence is')
  assert.ok(evidence.find((each) => each.kind === 'http2-unlike')!.weight < 0, 'which speaks against it')
  assert.equal(judged({ ...said, ja4: UNKNOWN_JA4 }, by).kind, 'unknown')
  assert.equal(judged({ ...said, forged: 1, headers: ['x-helper', 'one'] }, by).kind, 'agent')
})

test('of who is unknown nothing is sure', async () => {
  const said = { userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4, http2: CHROME_HTTP2 }
  assert.deepEqual([judged(said).kind, judged(said).confidence], ['unknown', 0])
})

test('a claimed browser is unknown if doubt remains', async () => {
  const weights = { ...WEIGHTS, 'stack-disagrees': [1.5, 0, -1] as const }
  const verdict = judged({ userAgent: CHROME_USER_AGENT, ja4: CURL_JA4 }, knowledge({ weights }))
  assert.ok(verdict.evidence.some(({ kind }) => kind === 'stack-disagrees'))
  assert.equal(verdict.kind, 'human')
  const doubtful = { ...weights, 'stack-disagrees': [2.5, 0, -1.5] as const }
  assert.equal(
    judged({ userAgent: CHROME_USER_AGENT, ja4: CURL_JA4 }, knowledge({ weights: doubtful })).kind,
    'unknown',
  )
})

test('a spoofed browser is evidence before all other, with what gives it away', async () => {
  const { evidence } = judged({ userAgent: CHROME_USER_AGENT, ja4: CURL_JA4, http2: UNKNOWN_HTTP2 })
  assert.deepEqual(evidence[0], {
    kind: 'spoofed-browser',
    detail: 'claims to be Chrome; contradicted by stack-disagrees, http2-unlike',
    weight: 0,
  })
  assert.equal(
    detail(evidence, 'stack-disagrees'),
    'the TLS fingerprint does not belong to Chrome, but to cURL 90 %, wcurl 10 %',
  )
  for (const said of [
    { userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, http2: CHROME_HTTP2 },
    { userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4, http2: UNKNOWN_HTTP2 },
    { userAgent: 'curl/8.0', ja4: CURL_JA4 },
    { userAgent: 'AcmeSDK/1.0', ja4: CURL_JA4 },
  ])
    assert.ok(!judged(said).evidence.some(({ kind }) => kind === 'spoofed-browser'), said.userAgent)
})

test('evidence is strongest first', async () => {
  for (const said of VARIOUS) {
    const sizes = judged(said).evidence.map(({ weight }) => Math.abs(weight))
    const rest = judged(said).evidence[0]?.kind === 'spoofed-browser' ? sizes.slice(1) : sizes
    assert.deepEqual(
      rest,
      rest.toSorted((a, b) => b - a),
    )
  }
})

test('weights of evidence are the log-odds of the class to the next, less what was believed before', async () => {
  for (const said of VARIOUS) {
    const { kind: held, evidence, confidence } = judged(said)
    const kinds = evidence.map(({ kind }) => kind).filter((kind) => kind !== 'spoofed-browser')
    const sums = CLASSES.map((_name, c) => {
      const weights = kinds.map((kind) => WEIGHTS[kind as EvidenceKind]?.[c] ?? 0)
      return (BIAS[c]! + weights.reduce((sum, weight) => sum + weight, 0)) / TEMPERATURE
    })
    const [best, second] = [0, 1, 2].sort((a, b) => sums[b]! - sums[a]!) as [number, number]
    const bias = (BIAS[best]! - BIAS[second]!) / TEMPERATURE
    const found = evidence.reduce((sum, { weight }) => sum + weight, 0)
    assertNear(found + bias, sums[best]! - sums[second]!, 0.005 * kinds.length + 1e-9, JSON.stringify(said))
    const total = sums.reduce((sum, value) => sum + Math.exp(value), 0)
    const probability = held === 'unknown' ? 0 : Math.exp(sums[best]!) / total
    assertNear(confidence, probability, 0.000_051, JSON.stringify(said))
  }
})

test('who else has a shared hello is said, and how often', async () => {
  const shared = judged({ userAgent: 'thing/1', ja4: PROXY_JA4 })
  assert.equal(
    detail(shared.evidence, 'stack-shared'),
    'browsers and other programs share this TLS fingerprint: cURL 70 %, Chrome 30 %',
  )
  const libraries = judged({ ja4: NODE_JA4 })
  assert.equal(
    detail(libraries.evidence, 'stack-of-libraries'),
    'the TLS fingerprint belongs to libraries and tools: fetch 89 %, Got 11 %',
  )
  assert.equal(named({ ja4: PROXY_JA4 }), null)
})

test('of many that share a hello the most frequent are said', async () => {
  const many = parseSoftwareList(
    [1, 2, 3, 4, 5, 6].map((n) =>
      software(`tool-${n}`, `Tool ${n}`, { kind: 'tool' }, [{ ja4: NODE_JA4, observations: n }]),
    ),
  )
  const { evidence } = judged({ ja4: NODE_JA4 }, knowledge({ list: many }))
  assert.equal(
    detail(evidence, 'stack-of-libraries'),
    'the TLS fingerprint belongs to libraries and tools: Tool 6 29 %, Tool 5 24 %, Tool 4 19 %, Tool 3 14 % and 2 more',
  )
})

test('the same evidence of the same program is the very same Verdict', async () => {
  const said = { userAgent: 'AcmeSDK/1.0', ja4: NODE_JA4 }
  const first = judged(said)
  assert.equal(judged({ ...said, headers: ['accept', '*/*', 'x-other', '1'] }), first)
  assert.equal(judged({ ...said, target: '/elsewhere' }), first)
  assert.notEqual(judged({ ...said, userAgent: 'AcmeSDK/1.1' }), first)
  assert.notEqual(judged({ ...said, ja4: CURL_JA4 }), first)
  assert.notEqual(judged({ ...said, forged: 1 }), first)
  assert.equal(judged(said), first)
  assert.notEqual(judged(said, knowledge()), first, 'other knowledge')
})

test('evidence that is worded otherwise is another Verdict', async () => {
  const ofTool = (value: string) =>
    detail(judged({ userAgent: 'curl/8.0', headers: ['x-kit', value] }).evidence, 'tool-header')
  assert.deepEqual(['a1', 'b1'].map(ofTool), [
    'the request has a header of Kit A',
    'the request has a header of Kit B',
  ])
  const ofAgent = (value: string) =>
    detail(judged({ userAgent: 'AcmeSDK/1.0', headers: ['x-helper', value] }).evidence, 'agent-header')
  assert.deepEqual(['one', 'two'].map(ofAgent), [
    'x-helper is a header of Helper',
    'x-helper is a header of Aide',
  ])
})

test('what one knowledge has remembered is not what another says', async () => {
  const said = { userAgent: 'curl/8.0' }
  const turned = knowledge({ weights: { 'names-tool': [9, 0, 0] } })
  assert.equal(judged(said).kind, 'automation')
  assert.equal(judged(said, turned).kind, 'agent')
  assert.equal(judged(said).kind, 'automation')
})

test('verdicts, claims, stacks and orders of headers are remembered up to a bound', async () => {
  const own = knowledge()
  const said = { userAgent: 'AcmeSDK/1.0', ja4: NODE_JA4 }
  const stack = own.stacks.stackOf(print({ ja4: NODE_JA4 }).connection)
  const claim = own.userAgents.claim('AcmeSDK/1.0')
  const owners = own.owners.ofHeaders(print({ ja4h: AGENT_JA4H }))
  const first = judged(said, own)
  for (let i = 0; i < 100; i++) judged({ userAgent: `AcmeSDK/1.0 (${i})` }, own)
  assert.equal(judged(said, own), first)
  assert.equal(own.stacks.stackOf(print({ ja4: NODE_JA4 }).connection), stack)
  assert.equal(own.userAgents.claim('AcmeSDK/1.0'), claim)
  assert.equal(own.owners.ofHeaders(print({ ja4h: AGENT_JA4H })), owners)

  for (let i = 0; i < 17_000; i++) {
    const ja4 = `t13d0707h2_${i.toString(16).padStart(12, '0')}_000000000000`
    const ja4h = `ge11nn120000_${i.toString(16).padStart(12, '0')}_${NONE}`
    judged({ userAgent: `AcmeSDK/2.0 (${i})`, ja4, ja4h }, own)
  }
  const again = judged(said, own)
  assert.notEqual(again, first, 'it is made anew')
  assert.deepEqual(again, first)
  assert.notEqual(own.stacks.stackOf(print({ ja4: NODE_JA4 }).connection), stack)
  assert.notEqual(own.userAgents.claim('AcmeSDK/1.0'), claim)
  assert.notEqual(own.owners.ofHeaders(print({ ja4h: AGENT_JA4H })), owners)
})

test('our own headers, forged, are evidence that lasts', async () => {
  const conduct = new Conduct()
  const before = judged({ userAgent: 'curl/8.0', conduct })
  assert.ok(!before.evidence.some(({ kind }) => kind === 'forged-headers'))
  judged({ userAgent: 'curl/8.0', conduct, forged: 2 })
  assert.ok(judged({ userAgent: 'curl/8.0', conduct }).evidence.some(({ kind }) => kind === 'forged-headers'))
})

test('without TLS nothing is said of it', async () => {
  for (const noHello of ['not-tls', 'malformed'] as const) {
    const { kind, evidence } = judged({ userAgent: CHROME_USER_AGENT, ja4: null, noHello, version: '11' })
    assert.notEqual(kind, 'automation')
    assert.ok(!evidence.some((each) => each.kind.startsWith('stack-')), noHello)
  }
})

const NAMES = [
  ...[
    'user-agent',
    'User-Agent',
    'x-kit',
    'X-Kit',
    'x-helper',
    'X-HELPER',
    'x-made-with',
    'accept',
    'Accept',
  ],
  ...['sec-ch-ua', 'sec-fetch-mode', 'sec-fetch-site', 'sec-fetch-dest', 'authorization', 'content-type'],
  ...['accept-encoding', 'accept-language', 'upgrade', 'te', 'x-none', '', ':method'],
]
const VALUES = [
  ...[
    CHROME_USER_AGENT,
    `${CHROME_USER_AGENT} (headless)`,
    'curl/8.0',
    'AcmeSDK/1.0',
    'MadeSDK/2',
    'Foobot/1',
  ],
  ...[
    'Plain/3',
    'HelperBot',
    'thing/1',
    'one',
    'two',
    'a1',
    'b1',
    'navigate',
    'cors',
    'document',
    'none',
    '',
  ],
  ...['application/json, text/event-stream', 'application/json', '*/*', '"Chromium";v="156"', 'gzip, br'],
]
const headers = fc
  .array(fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(...VALUES)), { maxLength: 12 })
  .map((pairs) => pairs.flat())
const request = fc.record({
  rawHeaders: headers,
  method: fc.constantFrom('GET', 'POST', 'OPTIONS'),
  target: fc.constantFrom('/', '/robots.txt', '/a.css', '/mcp', '/v1/chat/completions'),
  version: fc.constantFrom('11' as const, '20' as const),
})
const connection = fc
  .record({
    ja4: fc.constantFrom(CHROME_JA4, CURL_JA4, NODE_JA4, PROXY_JA4, UNKNOWN_JA4, null),
    http2: fc.constantFrom(CHROME_HTTP2, null),
    traits: fc.constantFrom(0, 1, 2 ** 18 - 1, null),
    ja4h: fc.constantFrom(AGENT_JA4H, SHARED_JA4H, `${AGENT_JA4H.slice(0, -1)}1`, 'x', null),
    ja4x: fc.constantFrom(AGENT_JA4X, TOOL_JA4X, 'x', null),
  })
  .map(print)

test('of a request that is over, the kinds of its evidence say again how much each of them weighed', async () => {
  const verdicts = new Set<string>()
  fc.assert(
    fc.property(connection, request, (of, head) => {
      const { kind, evidence, confidence } = classify(KNOWLEDGE, { print: of, head, conduct: null })
      verdicts.add(kind)
      const kinds = evidence.map((each) => each.kind)
      const recalled = recall(KNOWLEDGE, kinds, kind)
      const weights = (list: Verdict['evidence']) => list.map((each) => [each.kind, each.weight])
      assert.deepEqual(weights(recalled.evidence), weights(evidence))
      if (kind === 'agent') assert.equal(recalled.probabilities.agent, confidence)
      assert.deepEqual(recall(KNOWLEDGE, ['of-a-later-version', ...kinds], kind), recalled)
    }),
    { numRuns: 300 },
  )
  assert.ok(verdicts.size >= 3)
  assert.deepEqual(recall(KNOWLEDGE, [], 'unknown').evidence, [])
})

test('a request is judged after another as it is alone', async () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(connection, request), { minLength: 2, maxLength: 8 }), (all) => {
      const own = knowledge()
      const scratch = new Scratch()
      for (const [of, head] of all) {
        const request = { print: of, head, conduct: null }
        const verdict = classify(own, request, NO_PROOFS, scratch)
        assert.deepEqual(verdict, classify(knowledge(), request))
        assert.deepEqual(evidenceOf(own, request, scratch), evidenceOf(knowledge(), request))
        assert.equal(classify(own, request, NO_PROOFS, scratch), verdict)
      }
    }),
    { numRuns: 150 },
  )
})

test('connections whose requests come in turn are judged as each is alone', async () => {
  const requests = fc.array(fc.tuple(fc.nat(2), request), { minLength: 2, maxLength: 10 })
  fc.assert(
    fc.property(fc.tuple(connection, connection, connection), requests, (prints, all) => {
      const own = knowledge()
      const together = [new Conduct(), new Conduct(), new Conduct()]
      const scratch = new Scratch()
      const mixed = all.map(([which, head]) => {
        const request = { print: prints[which]!, head, conduct: together[which]! }
        return classify(own, request, NO_PROOFS, scratch)
      })
      for (const which of [0, 1, 2]) {
        const [alone, conduct] = [knowledge(), new Conduct()]
        for (const [i, [of, head]] of all.entries())
          if (of === which)
            assert.deepEqual(
              mixed[i],
              classify(alone, { print: prints[which]!, head, conduct }),
              `request ${i}`,
            )
      }
    }),
    { numRuns: 150 },
  )
})

const MEGABYTE = 'x'.repeat(1024 * 1024)
const HOSTILE: readonly (readonly [what: string, rawHeaders: readonly string[]])[] = [
  ['no headers', []],
  ['10,000 headers of other names', Array.from({ length: 10_000 }, (_, i) => [`x-${i}`, `${i}`]).flat()],
  ['10,000 User-Agents', Array.from({ length: 10_000 }, (_, i) => ['User-Agent', `curl/${i}`]).flat()],
  ['10,000 headers of an agent', Array.from({ length: 10_000 }, () => ['x-helper', 'two']).flat()],
  ['10,000 that are known', Array.from({ length: 10_000 }, () => ['accept', '*/*']).flat()],
  ['a User-Agent of a megabyte', ['user-agent', MEGABYTE]],
  ['a value of a megabyte', ['x-helper', MEGABYTE, 'x-kit', `a${MEGABYTE}`, 'accept', MEGABYTE]],
  ['a name of a megabyte', [MEGABYTE, '1']],
  ['a browser with hints of a megabyte', ['user-agent', CHROME_USER_AGENT, 'sec-ch-ua', MEGABYTE]],
  ['empty names and values', ['', '', '', 'a', 'user-agent', '']],
  ['odd bytes', ['user-agent', '\0\xff\x80\r\n', '\xff\x00', '\x7f', 'X-HELPER', '\xe9']],
  ['names of objects', ['__proto__', '1', 'constructor', '2', 'toString', '3', 'hasOwnProperty', '4']],
]

for (const [what, rawHeaders] of HOSTILE) {
  test(`hostile: ${what}`, async () => {
    for (const version of ['10', '11', '20', '30'] as const) {
      const counted = counting(rawHeaders)
      const head: RequestHead = { method: 'GET', target: '/', version, rawHeaders: counted.list }
      const verdict = classify(knowledge(), { print: print({ ja4: CURL_JA4 }), head, conduct: new Conduct() })
      assert.ok(counted.reads() <= 4 * rawHeaders.length, `${counted.reads()} reads`)
      assert.ok(verdict.evidence.length > 0)
      for (const evidence of verdict.evidence) assert.ok(evidence.detail.length < 300, evidence.detail)
    }
  })
}

test('hostile: what is far behind in a long User-Agent is not looked for', async () => {
  assert.equal(named({ userAgent: `${'a '.repeat(300)}AcmeSDK/1.0` }), 'acme')
  assert.equal(named({ userAgent: `${'a '.repeat(5000)}AcmeSDK/1.0` }), null)
})

test('any bytes at all are judged', async () => {
  const bytes = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 40 })
  const any = fc.record({
    method: bytes,
    target: bytes,
    version: fc.constantFrom('10' as const, '11' as const, '20' as const, '30' as const),
    rawHeaders: fc
      .array(fc.tuple(fc.oneof(bytes, fc.constantFrom(...NAMES)), bytes), { maxLength: 20 })
      .map((pairs) => pairs.flat()),
  })
  fc.assert(
    fc.property(any, connection, (head, of) => {
      const { kind, confidence } = classify(KNOWLEDGE, { print: of, head, conduct: new Conduct() })
      assert.ok(['agent', 'automation', 'human', 'unknown'].includes(kind))
      assert.ok(confidence >= 0 && confidence <= 1)
    }),
    { numRuns: 500 },
  )
})

test('an order of headers that only agents have is an agent’s, and names it', async () => {
  const { kind, software, evidence } = judged({ userAgent: 'thing/1', ja4: UNKNOWN_JA4, ja4h: AGENT_JA4H })
  assert.deepEqual([kind, software?.id], ['agent', 'acme'])
  assert.equal(
    detail(evidence, 'headers-of-agents'),
    'only agents are known to send headers in this order: Acme SDK 95 %, cURL 5 %',
  )
  assert.equal(named({ userAgent: 'curl/8.0', ja4h: AGENT_JA4H }), 'acme', 'also on a library')
  assert.equal(named({ userAgent: 'curl/8.0', ja4h: AGENTS_JA4H }), 'curl', 'where it is one agent’s')
  assert.equal(
    named({ userAgent: 'Helper HelperBot', ja4h: AGENT_JA4H }),
    'helper',
    'but not against its word',
  )
})

test('cookies, and what else is not the order of headers, are left out where they are others', async () => {
  const found = (ja4h: string) => kindsOf({ userAgent: 'thing/1', ja4h })
  assert.ok(found(AGENT_JA4H.replace(NONE, '111111111111_222222222222')).includes('headers-of-agents'))
  assert.ok(found(`ge20cr14enus_aaaaaaaaaaaa_${NONE}`).includes('headers-of-agents'))
  assert.ok(!found(`po11nn142a00_aaaaaaaaaaab_${NONE}`).includes('headers-of-agents'))
})

test('cookies of a signature name the client, whatever came before', async () => {
  const own = knowledge()
  const found = (cookies: string) => {
    const ja4h = `ge11cn110000_dddddddddddd_${cookies}`
    return judged({ userAgent: 'thing/1', ja4h }, own).software?.id ?? null
  }
  assert.equal(found('eeeeeeeeeeee_111111111111'), 'helper')
  assert.equal(found('ffffffffffff_111111111111'), 'aide')
  assert.equal(found('111111111111_111111111111'), null, 'either')
  assert.equal(found('eeeeeeeeeeee_222222222222'), 'helper')
})

test('an order of headers that agents share with others says so, and who they are', async () => {
  const { evidence, software } = judged({ userAgent: 'thing/1', ja4h: SHARED_JA4H })
  assert.equal(
    detail(evidence, 'headers-shared'),
    'agents and other programs send headers in this order: Acme SDK 75 %, cURL 25 %',
  )
  assert.equal(software, null, 'no owner has nearly all of it')
})

test('of those who share an order of headers, the hello tells', async () => {
  assert.equal(named({ ja4h: SHARED_JA4H, ja4: CURL_JA4 }), 'curl')
  assert.equal(named({ ja4h: SHARED_JA4H, ja4: PROXY_JA4 }), 'curl')
  assert.equal(named({ ja4h: SHARED_JA4H, ja4: NODE_JA4 }), null, 'none of them has it')
})

test('few headers are what a library sends: they name it, where nothing is said, and are no evidence', async () => {
  assert.equal(named({ ja4h: SHORT_JA4H }), 'curl')
  assert.equal(named({ ja4h: SHORT_JA4H, userAgent: 'AcmeSDK/1.0' }), 'acme')
  assert.deepEqual(kindsOf({ ja4h: SHORT_JA4H }), kindsOf({}))
})

test('an unknown order of headers counts neither against a browser nor behind a hop', async () => {
  for (const ja4h of [AGENT_JA4H, SHARED_JA4H]) {
    for (const said of [
      { userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, ja4h },
      { userAgent: 'Plain/3', ja4h },
      { userAgent: 'thing/1', ja4Source: 'hop', ja4h },
    ] as const)
      assert.deepEqual(judged(said), judged({ ...said, ja4h: null }))
  }
  assert.ok(!kindsOf({ userAgent: 'thing/1' }).some((kind) => kind.startsWith('headers-')), 'JA4+ is off')
})

test('the same order of headers with other cookies is the same verdict', async () => {
  const own = knowledge()
  const verdict = (cookies: string) =>
    judged({ userAgent: 'thing/1', ja4h: AGENT_JA4H.replace(NONE, cookies) }, own)
  assert.equal(verdict('111111111111_222222222222'), verdict('111111111111_333333333333'))
})

test('a known certificate names its owner, except for browsers', async () => {
  const { kind, software, evidence } = judged({ ja4x: AGENT_JA4X })
  assert.deepEqual([kind, software?.id], ['agent', 'acme'])
  assert.equal(
    detail(evidence, 'certificate-of-agents'),
    'agents use certificates like this one: Acme SDK 100 %',
  )
  assert.equal(named({ ja4x: TOOL_JA4X }), 'curl')
  assert.ok(kindsOf({ ja4x: TOOL_JA4X }).includes('certificate-of-libraries'))
  assert.deepEqual(kindsOf({ ja4x: 'dddddddddddd_bbbbbbbbbbbb_cccccccccccc' }), kindsOf({}))
  for (const ja4x of [AGENT_JA4X, TOOL_JA4X])
    assert.deepEqual(judged({ userAgent: 'Plain/3', ja4x }), judged({ userAgent: 'Plain/3' }))
})

test('a client with a decisive fingerprint is classified as its agent', async () => {
  const own = decided()
  const [ja4, ja4h, ja4x] = [UNKNOWN_JA4, COOKIE_JA4H.replace('*', '111111111111'), AGENT_JA4X]
  for (const said of [
    { ja4 },
    { ja4h },
    { ja4x },
    { ja4, userAgent: 'thing/1' },
    { ja4, userAgent: 'curl/8' },
  ])
    assert.deepEqual(facts(judged(said, own)), ['agent', 'mine', 'mine'], JSON.stringify(said))
  const { evidence } = judged({ ja4, ja4h }, own)
  assert.equal(
    detail(evidence, 'fingerprint-of-agent'),
    'the fingerprint is marked as decisive for this agent: Mine (JA4H), Mine (JA4)',
  )
  const others = [
    { ja4: NODE_JA4 },
    { ja4: UNKNOWN_JA4.replace(/_.*/, '_000000000001_000000000001') },
    { ja4h: ja4h.replace('eeeeeeeeeeee', 'dddddddddddd') },
    { ja4Source: 'hop', ja4h },
  ] as const
  for (const said of others) assert.notEqual(judged(said, own).agent?.id, 'mine', JSON.stringify(said))
})

test('of a JA4H it can be decided without its cookies', async () => {
  const own = decided([{ ja4h: withoutCookies(SHORT_JA4H), decisive: true }])
  for (const cookies of [NONE, '111111111111_222222222222'])
    assert.equal(judged({ ja4h: SHORT_JA4H.replace(NONE, cookies) }, own).agent?.id, 'mine')
})

test('a named agent wins over a decisive fingerprint, and the evidence has both', async () => {
  const own = decided()
  const verdict = judged({ ja4: UNKNOWN_JA4, userAgent: 'HelperBot/1' }, own)
  assert.deepEqual(facts(verdict), ['agent', 'helper', 'helper'])
  assert.match(detail(verdict.evidence, 'fingerprint-of-agent')!, /Mine \(JA4\)$/)
  assert.equal(judged({ ja4: UNKNOWN_JA4, headers: ['x-made-with', '1'] }, own).agent?.id, 'mine')
  assert.equal(judged({ ja4: UNKNOWN_JA4, userAgent: 'acme/1.0' }, own).agent?.id, 'mine', 'a mere name')
  const conduct = new Conduct()
  judged({ ja4: UNKNOWN_JA4, userAgent: 'HelperBot/1', conduct }, own)
  assert.equal(judged({ ja4: UNKNOWN_JA4, conduct }, own).agent?.id, 'helper', 'an earlier request did')
})

test('what was decided to be of several agents is an agent’s and names none; the certificate comes first', async () => {
  const other = [{ ja4: UNKNOWN_JA4, decisive: true }]
  assert.deepEqual(facts(judged({ ja4: UNKNOWN_JA4 }, decided(undefined, other))), ['agent', null, null])
  const theirs = decided([{ ja4x: AGENT_JA4X, decisive: true }], other)
  assert.equal(judged({ ja4: UNKNOWN_JA4, ja4x: AGENT_JA4X }, theirs).agent?.id, 'mine')
  assert.equal(judged({ ja4: UNKNOWN_JA4 }, theirs).agent?.id, 'yours')
})

test('a decisive fingerprint alone does not count against a claimed browser', async () => {
  const own = decided([{ ja4: CHROME_JA4, decisive: true }])
  const person = { userAgent: CHROME_USER_AGENT, ja4: CHROME_JA4, http2: CHROME_HTTP2 }
  const held = judged(person, own)
  assert.deepEqual(facts(held), ['human', 'chrome', null])
  assert.equal(detail(held.evidence, 'fingerprint-of-agent'), undefined)
  const spoofed = { userAgent: CHROME_USER_AGENT, ja4: UNKNOWN_JA4 }
  assert.notEqual(judged(spoofed).agent?.id, 'mine')
  assert.deepEqual(facts(judged(spoofed, decided())), ['agent', 'mine', 'mine'])
})

test('only fingerprints of agents are decisive', async () => {
  const decisive = { ja4: UNKNOWN_JA4, decisive: true }
  const list = [...LIST, ...parseSoftwareList([software('cli', 'CLI', { kind: 'tool' }, [decisive])])]
  const said = { ja4: UNKNOWN_JA4 }
  const { kind, evidence } = judged(said, knowledge({ list }))
  assert.equal(detail(evidence, 'fingerprint-of-agent'), undefined)
  assert.notEqual(kind, 'agent')
})

test('our answer distinguishes clients that share a hello, and no others', async () => {
  const [fast, slow, other] = [
    't130200_1301_234ea6891581',
    't130300_1302_234ea6891581',
    't120300_c030_52d195ce1d92',
  ]
  const has = { ja4: CURL_JA4, observations: 10 }
  const own = knowledge({
    list: parseSoftwareList([
      software('one', 'One', { kind: 'tool' }, [has, { ja4s: fast, observations: 3 }]),
      software('two', 'Two', { kind: 'tool' }, [has, { ja4s: 't130300_*_*', observations: 3 }]),
      software('published', 'Published', { kind: 'tool' }, [{ ...has, observations: 1 }, { ja4s: fast }]),
    ]),
  })
  const shares = (ja4s: string | null) => {
    const { evidence } = judged({ ja4: CURL_JA4, ja4s }, own)
    return detail(evidence, 'stack-of-libraries')?.split(': ')[1]
  }
  assert.equal(shares(fast!), 'One 91 %, Published 9 %', 'an owner without observations is included')
  assert.equal(shares(slow!), 'Two 91 %, Published 9 %')
  for (const unseen of [other!, null]) assert.equal(shares(unseen), 'One 48 %, Two 48 %, Published 5 %')
  assert.equal(judged({ ja4: CURL_JA4, ja4s: fast! }, own).software?.id, 'one')
})

test('a client is no person without support from its TLS', async () => {
  const trusting = knowledge({ weights: { 'names-browser': [-1, -2, 4] } })
  const kind = (ja4: string | null) => judged({ userAgent: CHROME_USER_AGENT, ja4 }, trusting).kind
  assert.equal(kind(UNKNOWN_JA4), 'unknown')
  assert.equal(kind('t13d1599h2_8daaf6152771_000000000000'), 'human', 'a next version keeps its ciphers')
  assert.equal(kind(null), 'human')
})

test('an unknown program that accepts pages like a browser is seen, and a named tool is not', async () => {
  const asks = (userAgent: string, accept: string) =>
    kindsOf({ userAgent, headers: ['accept', accept] }).includes('accepts-pages')
  const pages = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
  assert.ok(asks('acme/8.0', pages))
  assert.ok(!asks('acme/8.0', '*/*'))
  assert.ok(!asks('acme/8.0', 'text/html, text/plain'), 'text browsers')
  assert.ok(!asks('curl/8.0', pages))
  assert.ok(!asks('Mozilla/5.0 (unknown)', pages), 'what looks like a browser may be one')
  assert.ok(!asks('Plain/3', 'text/html,application/xhtml+xml,*/*;q=0.8'))
})

test('the last verdict of a connection is used only while everything stays the same', async () => {
  const conduct = new Conduct()
  const quiet = { userAgent: 'thing/1', ja4: CURL_JA4, conduct }
  const first = judged(quiet)
  assert.equal(judged(quiet), first)
  const others: Said[] = [
    { ...quiet, userAgent: 'curl/8.0' },
    { ...quiet, ja4: NODE_JA4 },
    { ...quiet, ja4h: AGENT_JA4H },
    { ...quiet, headers: ['Authorization', 'Bearer x'] },
  ]
  for (const other of others) {
    assert.deepEqual(judged(other), judged({ ...other, conduct: new Conduct() }))
    assert.equal(judged(quiet), first)
  }
  const other = knowledge({ weights: { 'unknown-product': [5, 0, 0] } })
  assert.deepEqual(judged(quiet, other), judged({ ...quiet, conduct: new Conduct() }, other))
  assert.notDeepEqual(judged(quiet, other), first)
})

/** With an agent with a decisive fingerprint, and optionally with another agent. */
function decided(mine: readonly object[] = DECIDED, yours: readonly object[] = []): Knowledge {
  const agent = { kind: 'agent', category: 'custom' }
  const list = [software('mine', 'Mine', agent, mine)]
  if (yours.length > 0) list.push(software('yours', 'Yours', agent, yours))
  return knowledge({ list: [...LIST, ...parseSoftwareList(list)] })
}

interface Said {
  readonly userAgent?: string | null
  readonly headers?: readonly string[]
  readonly ja4?: string | null
  readonly http2?: string | null
  readonly traits?: number | null
  readonly ja4s?: string | null
  readonly ja4x?: string | null
  readonly ja4h?: string | null
  readonly ja4Source?: 'hop'
  readonly noHello?: ConnectionPrint['noHello']
  readonly version?: RequestHead['version']
  readonly target?: string
  readonly conduct?: Conduct | null
  readonly forged?: number
}

function judged(said: Said, by: Knowledge = KNOWLEDGE): Verdict {
  return classify(
    by,
    {
      print: print(said),
      head: head(said),
      conduct: said.conduct ?? null,
      forged: said.forged ?? 0,
    },
    NO_PROOFS,
    SCRATCH,
  )
}

function kindsOf(said: Said): readonly EvidenceKind[] {
  return evidenceOf(KNOWLEDGE, { print: print(said), head: head(said), conduct: null })
}

function withoutCookies(ja4h: string): string {
  return ja4h.replace(NONE, '*_*')
}

/** The named software, if any. */
function named(said: Said): string | null {
  return judged(said).software?.id ?? null
}

function facts({ kind, software, agent }: Verdict): readonly (string | null)[] {
  return [kind, software?.id ?? null, agent?.id ?? null]
}

function detail(evidence: Verdict['evidence'], kind: EvidenceKind): string | undefined {
  return evidence.find((each) => each.kind === kind)?.detail
}

/** Headers beside the User-Agent that no rule about browsers asks for are left to the tests of those rules. */
function head({ userAgent = null, headers = [], version = '20', target = '/' }: Said): RequestHead {
  const isBrowser = userAgent === CHROME_USER_AGENT
  const rawHeaders = [
    ...(userAgent === null ? [] : ['user-agent', userAgent]),
    ...(isBrowser ? BROWSER_HEADERS : []),
    ...headers,
  ]
  return { method: 'GET', target, version, rawHeaders }
}

function print(said: Omit<Said, 'userAgent' | 'headers' | 'conduct'>): Print {
  const ja4 = (said.ja4 ?? null) as Ja4 | null
  const connection: ConnectionPrint = {
    ja4,
    unresumed: null,
    pageWeight: null,
    stable: null,
    traits: (said.traits ?? null) as HelloTraits | null,
    ja4s: (said.ja4s ?? null) as Ja4s | null,
    ja4x: (said.ja4x ?? null) as Ja4x | null,
    http2: said.http2 ?? null,
    noHello: said.noHello ?? (ja4 === null ? 'not-tls' : null),
    ja4Source: said.ja4Source ?? (ja4 === null ? null : 'own'),
  }
  return { connection, ja4h: (said.ja4h ?? null) as Ja4h | null }
}

function knowledge({ list = LIST, weights = WEIGHTS }: { list?: typeof LIST; weights?: object } = {}) {
  const triples = Object.entries(weights).map(([kind, values]) => [kind, triple(values)])
  const document = { temperature: TEMPERATURE, bias: triple(BIAS), weights: Object.fromEntries(triples) }
  return knowledgeOf(list, parseWeights(document))
}

function triple(values: readonly number[]): Record<Class, number> {
  return { agent: values[0]!, automation: values[1]!, human: values[2]! }
}

function software(id: string, name: string, more: object, signatures: readonly object[]) {
  const source = { source: 'made for this test', date: '2026-11-21' }
  return { id, name, ...more, signatures: signatures.map((signature) => ({ ...source, ...signature })) }
}

/** A list that counts how often anything in it is read. */
function counting(list: readonly string[]): {
  readonly list: readonly string[]
  readonly reads: () => number
} {
  let reads = 0
  const proxied = new Proxy(list, {
    get(target, name) {
      if (typeof name === 'string' && /^\d+$/.test(name)) reads++
      return Reflect.get(target, name)
    },
  })
  return { list: proxied, reads: () => reads }
}

function assertNear(found: number, wanted: number, within: number, what: string): void {
  assert.ok(Math.abs(found - wanted) <= within, `${what}: ${found}, not ${wanted}`)
}
