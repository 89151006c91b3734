import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import { classify, classifyDescribed } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { describeRequest } from '../../src/classify/verdict/described-request.ts'
import { truthOf } from '../../src/classify/measure/truth.ts'
import { weightOfPosing } from '../../src/commands/fitting.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { detectionRequest } from '../../src/manage/api/detect.ts'
import { validated } from '../../src/manage/http/validate.ts'
import { type DetectionRequest, toldIn } from '../../src/manage/judging/detection.ts'
import { TestManagement } from './management.ts'
import { ANY_CHARACTER } from '../any-character.ts'

const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const GPTBOT =
  'Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)'
const NODE_JA4 = 't13d5212h1_b262b3658495_8e6e362c5eac'
const CHROME_JA4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'

const KNOWLEDGE = await loadKnowledge(null, null)
const ROWS: CorpusRow[] = []
for await (const { row } of readCorpus(createReadStream('test/classify/recorded.jsonl'), (number, fault) => {
  throw new Error(`line ${number}: ${fault.message}`)
}))
  ROWS.push(row)

test('an agent that names itself is named', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const { status, body } = await manage.ask('POST', '/v1/detect', { user_agent: GPTBOT })
  assert.equal(status, 200)
  assert.deepEqual(
    [body.is_agent, body.agent_id, body.agent_name, body.agent_category, body.verdict, body.verified],
    [true, 'gptbot', 'GPTBot', 'crawler', 'agent', null],
  )
  assert.ok(body.confidence > 0.9 && body.confidence <= 1, body.confidence)
  assert.deepEqual(body.fingerprints, { ja4: '', ja4s: '', ja4h: '' })
  assert.deepEqual(body.agent_purpose, ['training'])
  assert.equal(body.evidence[0].kind, 'names-agent')
  assert.ok(typeof body.request_id === 'string' && body.request_id !== '')
  assert.deepEqual(Object.keys(body).slice(0, 5), [
    'is_agent',
    'confidence',
    'agent_name',
    'agent_category',
    'fingerprints',
  ])
})

test('a browser that names itself is no agent, whatever is not told of it', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const body of [
    { user_agent: CHROME },
    { user_agent: CHROME, ja4: CHROME_JA4 },
    { ja4: CHROME_JA4 },
    { headers: { 'User-Agent': CHROME, Accept: '*/*' } },
  ]) {
    const answer = await manage.ask('POST', '/v1/detect', body)
    assert.deepEqual([answer.status, answer.body.is_agent, answer.body.agent_name], [200, false, null])
    assert.ok(answer.body.confidence < 0.5, JSON.stringify([body, answer.body.confidence]))
  }
  const headless = await manage.ask('POST', '/v1/detect', {
    user_agent: CHROME.replace('Chrome', 'HeadlessChrome'),
  })
  assert.equal(headless.body.is_agent, true)
  assert.deepEqual(headless.body.agent_purpose, [])
})

test('what is not told is no evidence', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const kinds = async (body: object) =>
    (await manage.ask('POST', '/v1/detect', body)).body.evidence.map(({ kind }: { kind: string }) => kind)
  assert.deepEqual(await kinds({ ja4: NODE_JA4 }), ['stack-of-libraries'])
  assert.deepEqual(await kinds({ user_agent: CHROME }), ['names-browser'])
  const told = await kinds({ ja4: NODE_JA4, headers: { Accept: '*/*' } })
  assert.ok(told.includes('no-user-agent'))
  const lowerCase = { 'user-agent': CHROME, accept: 'text/html', 'accept-language': 'en' }
  for (const each of ['header-case-odd', 'client-hints-missing', 'headers-missing'])
    assert.ok(!(await kinds({ headers: lowerCase })).includes(each), each)
  assert.ok((await kinds({ headers: lowerCase, http_version: '1.1' })).includes('header-case-odd'))
  assert.ok((await kinds({ headers: lowerCase, ja4: CHROME_JA4 })).includes('client-hints-missing'))
})

test('JA4H is made of headers as they are given, and a given one is taken', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const headers = { Host: 'a.test', 'X-Two': ['1', '2'], Cookie: 'b=2; a=1', 'Accept-Language': 'en-US' }
  const asked = { headers, method: 'POST', http_version: '1.1' }
  const made = await manage.ask('POST', '/v1/detect', asked)
  assert.match(made.body.fingerprints.ja4h, /^po11cn04enus_[0-9a-f]{12}_[0-9a-f]{12}_[0-9a-f]{12}$/)
  const given = 'ge11nn05enus_0123456789ab_000000000000_000000000000'
  assert.equal(
    (await manage.ask('POST', '/v1/detect', { ...asked, ja4h: given })).body.fingerprints.ja4h,
    given,
  )
  const both = await manage.ask('POST', '/v1/detect', { ...asked, user_agent: 'curl/8.5.0' })
  assert.equal(both.body.fingerprints.ja4h, made.body.fingerprints.ja4h)
  assert.equal(both.body.software.id, 'curl')
})

test('what one description shows is not held against the next', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const shown = async (path: string) => {
    const { body } = await manage.ask('POST', '/v1/detect', { user_agent: 'x/1', path })
    return body.evidence.map(({ kind }: { kind: string }) => kind)
  }
  assert.ok((await shown('/robots.txt')).includes('robots-first'))
  const next = await shown('/sitemap.xml')
  assert.ok(next.includes('asks-sitemap'))
  assert.ok(!next.includes('robots-first') && !next.includes('crawls'), next.join())
  assert.deepEqual(await shown('/sitemap.xml'), next)
})

test('facts that a description omits do not make a browser a crawler', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const kinds = async (body: object) =>
    (await manage.ask('POST', '/v1/detect', body)).body.evidence.map(({ kind }: { kind: string }) => kind)
  for (const described of [{ user_agent: CHROME }, { user_agent: CHROME, ja4: CHROME_JA4 }])
    assert.deepEqual(await kinds({ ...described, path: '/sitemap.xml' }), await kinds(described))
  const odd = await kinds({ user_agent: CHROME, ja4: NODE_JA4, path: '/sitemap.xml' })
  assert.ok(odd.includes('asks-sitemap'), odd.join())
})

test('an address that its vendor publishes verifies an agent', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const user_agent = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
  const { body } = await manage.ask('POST', '/v1/detect', { user_agent, ip: '66.249.66.1' })
  assert.deepEqual([body.agent_id, body.verified], ['googlebot', 'ip-range'])
  const other = await manage.ask('POST', '/v1/detect', { user_agent, ip: '198.51.100.7' })
  assert.deepEqual([other.body.agent_id, other.body.verified], ['googlebot', null])
})

test('what cannot be read is refused, and where', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const CASES: readonly (readonly [body: unknown, ...errors: RegExp[]])[] = [
    [{}, /^ contains nothing to judge:/],
    [{ ja4: '', user_agent: null, headers: {} }, /^ contains nothing to judge:/],
    [{ method: 'GET', ip: '192.0.2.1', http_version: '2' }, /^ contains nothing to judge:/],
    [{ ja4: 't13d1516h2_8daaf6152771' }, /^\/ja4 .*2 parts; a ja4 has 3/],
    [{ ja4: 't13d1516h2_8daaf615277_e5627efa2ab1' }, /^\/ja4 has a part b /],
    [{ ja4: 't13d1516h2_8daaf6152771_E5627EFA2AB1' }, /^\/ja4 has a part c /],
    [{ ja4: 'x13d1516h2_8daaf6152771_e5627efa2ab1' }, /^\/ja4 has a part a .*transport/],
    [{ ja4: '*_8daaf6152771_e5627efa2ab1' }, /^\/ja4 has a part a /],
    [{ ja4s: 't1302h2_13_000000000000', ja4h: 'nonsense' }, /^\/ja4h /, /^\/ja4s has a part b /],
    [{ ja4x: 'a_b_c' }, /^\/ja4x has a part a /],
    [{ user_agent: 7 }, /^\/user_agent must be a string/],
    [
      { useragent: 'x' },
      /^\/useragent is unknown \(did you mean "user_agent"\?\)/,
      /^ contains nothing to judge/,
    ],
    [{ headers: { 'a b': 'x' } }, /^\/headers\/a b is not a valid header name/],
    [{ headers: { a: 'x\r\nX-Agent-Verdict: human' } }, /^\/headers\/a must be one line/],
    [{ headers: { a: ['x', 'y\0'] } }, /^\/headers\/a\/1 must be a string of one line/],
    [{ headers: { a: 1 } }, /^\/headers\/a must be /],
    [{ headers: ['a', 'b'] }, /^\/headers must be /],
    [
      { headers: Object.fromEntries(Array.from({ length: 1001 }, (_, i) => [`h${i}`, ''])) },
      /^\/headers has more/,
    ],
    [{ user_agent: 'x', ip: 'somewhere' }, /^\/ip is not a valid IP address/],
    [{ user_agent: 'x', http_version: '4' }, /^\/http_version must be one of/],
    [{ user_agent: 'x', path: 'no' }, /^\/path must start with/],
    [{ user_agent: 'x'.repeat(70_000) }, /^\/user_agent is longer/],
    [[], /^ must be an object/],
    [null, /^ must be an object/],
  ]
  for (const [body, ...errors] of CASES) {
    const answer = await manage.ask('POST', '/v1/detect', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body))
    const said = answer.body.errors.map(
      ({ pointer, detail }: Record<string, string>) => `${pointer} ${detail}`,
    )
    assert.equal(said.length, errors.length, JSON.stringify([body, said]))
    for (const [i, error] of errors.entries()) assert.match(said[i], error)
  }
  assert.deepEqual(manage.failures, [])
})

test('a key that may not, a method that does not, a body that is none', async (t) => {
  const manage = await TestManagement.start(t)
  const bearer = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
  const refused = await manage.ask('POST', '/v1/detect', { user_agent: 'x' }, bearer)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'])
  const notYet = await manage.ask('POST', '/v1/detect', { user_agent: 'x' })
  assert.deepEqual([notYet.status, notYet.body.code], [503, 'unavailable'])
  assert.equal((await manage.ask('GET', '/v1/detect')).status, 405)
  const text = await manage.ask('POST', '/v1/detect', 'x', { 'content-type': 'text/plain' })
  assert.equal(text.status, 415)
})

test('nobody makes it fail', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const text = fc.oneof(
    fc.string({ unit: ANY_CHARACTER }),
    fc.constantFrom(GPTBOT, CHROME, NODE_JA4, '', '__proto__'),
  )
  const member = fc.oneof(
    text,
    fc.constant(null),
    fc.integer(),
    fc.dictionary(text, fc.oneof(text, fc.array(text))),
  )
  const body = fc.record(
    {
      ...{ user_agent: member, ja4: member, ja4h: member, ja4s: member, ja4x: member, headers: member },
      ...{ method: member, path: member, http_version: member, ip: member, http2: member },
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(body, async (asked) => {
      const { status } = await manage.ask('POST', '/v1/detect', asked)
      assert.ok(status === 200 || status === 400, String(status))
    }),
    { numRuns: 300, interruptAfterTimeLimit: 5000 },
  )
  assert.deepEqual(manage.failures, [])
})

test('what is read without the schema is what the schema takes, as it is', async () => {
  const odd = fc.constantFrom<unknown>(undefined, 7, [], {}, 'x', '\0', '*', NODE_JA4.slice(1))
  const mostly = (usual: fc.Arbitrary<unknown>) =>
    fc.oneof({ weight: 20, arbitrary: usual }, { weight: 1, arbitrary: odd })
  const line = mostly(fc.oneof(fc.constantFrom('', GPTBOT, 'é', '日'), fc.string()))
  const name = fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom('user-agent', 'Accept', ':path') },
    { weight: 1, arbitrary: fc.constantFrom('a b', '', 'x\n', 'x\0') },
  )
  const headers = fc.dictionary(name, fc.oneof(line, mostly(fc.array(line, { maxLength: 3 }))))
  const text = fc.oneof(line, fc.constantFrom(null, 'x'.repeat(65_536), 'x'.repeat(65_537), 'x\ny'))
  const ja4 = mostly(fc.constantFrom(NODE_JA4, '', null))
  const body = mostly(
    fc.record(
      {
        user_agent: text,
        headers: mostly(headers),
        ja4,
        ja4h: mostly(fc.constantFrom('', null)),
        http2: ja4,
        // Nobody has asked for it, and nearly nobody says it.
        disabled_at: fc.oneof(
          { weight: 9, arbitrary: fc.constant(undefined) },
          { weight: 1, arbitrary: fc.constantFrom(null, 'x') },
        ),
      },
      { requiredKeys: [] },
    ),
  )
  const seen = { taken: 0, refused: 0 }
  fc.assert(
    fc.property(body, (given) => {
      const asked: unknown = JSON.parse(JSON.stringify(given) ?? 'null')
      const { success, data } = detectionRequest.safeParse(asked)
      const isTaken = success && !JSON.stringify(asked).includes('\\u0000')
      seen[isTaken ? 'taken' : 'refused']++
      if (isTaken) assert.deepEqual(validated(detectionRequest, asked, 'body'), data)
      else assert.throws(() => validated(detectionRequest, asked, 'body'), { code: 'invalid_request' })
    }),
    { numRuns: 2_000 },
  )
  assert.ok(seen.taken > 100 && seen.refused > 100, JSON.stringify(seen))
})

/** As the contract has it, with all that a proxy has seen of the first request. */
function requestOf({ print, requests }: CorpusRow): DetectionRequest | null {
  const [first] = requests
  if (first === undefined) return null
  const { method, target, version, rawHeaders } = first.head
  const headers: Record<string, string | string[]> = {}
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name, value] = [rawHeaders[i]!, rawHeaders[i + 1]!]
    const before = headers[name]
    headers[name] = before === undefined ? value : [before, value].flat()
  }
  const http_version = `${version[0]}.${version[1]}`
  return { method, path: target, http_version, headers, ja4: print.ja4, http2: print.http2 }
}

test('the verdict is that of the proxy on the first request of a connection', async () => {
  let compared = 0
  for (const row of ROWS) {
    const asked = requestOf(row)
    if (asked === null || row.requests[0]!.head.rawHeaders.length === 0) continue
    const { head, ja4h } = row.requests[0]!
    // A name sent twice stands together in a map, which is the one thing that it cannot tell.
    const order = describeRequest(toldIn(asked), true).head.rawHeaders
    if (order.join('\n') !== head.rawHeaders.join('\n')) continue
    // What the API cannot be told.
    const print = { connection: { ...row.print, stable: null, traits: null }, ja4h }
    const seen = classify(KNOWLEDGE, { print, head, conduct: new Conduct(null, '', '') })
    const described = classifyDescribed(KNOWLEDGE, describeRequest(toldIn(asked), true), 0)
    assert.deepEqual(described.verdict, seen, row.id)
    const { agent, automation, human } = described.probabilities
    assert.ok(Math.abs(agent + automation + human - 1) < 2e-4, row.id)
    if (seen.kind === 'agent') assert.equal(agent, seen.confidence, row.id)
    compared++
  }
  assert.ok(compared > 100, String(compared))
})

test('of the requests scored so high, so many are agents', async () => {
  for (const [form, errorMax] of [
    ['all', 0.02],
    ['user-agent and ja4', 0.15],
  ] as const) {
    const bins = Array.from({ length: 10 }, () => ({ said: 0, agents: 0 }))
    const posing = weightOfPosing(ROWS)
    let total = 0
    for (const row of ROWS) {
      const all = requestOf(row)
      const truth = truthOf(row.label)
      if (all === null || truth === null) continue
      const userAgent = Object.entries(all.headers!).find(
        ([name]) => name.toLowerCase() === 'user-agent',
      )?.[1]
      const asked = form === 'all' ? all : { user_agent: String(userAgent ?? ''), ja4: all.ja4 }
      const { probabilities } = classifyDescribed(KNOWLEDGE, describeRequest(toldIn(asked), true), 0)
      const bin = bins[Math.min(9, Math.floor(probabilities.agent * 10))]!
      // These are far more here, beside three people, than confidences are made for.
      const weight = ['browser-agent', 'spoofed-browser'].includes(row.label) ? posing : 1
      bin.said += weight * probabilities.agent
      bin.agents += truth === 'agent' ? weight : 0
      total += weight
    }
    const error = bins.reduce((sum, { said, agents }) => sum + Math.abs(said - agents), 0) / total
    assert.ok(error <= errorMax, `${form}: ${error}`)
  }
})
