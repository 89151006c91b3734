import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import { classify } from '../../src/classify/verdict/classify.ts'
import { Conduct } from '../../src/classify/verdict/conduct.ts'
import { NO_PROOFS } from '../../src/classify/verdict/proof.ts'
import { Scratch } from '../../src/classify/verdict/scratch.ts'
import type { Knowledge } from '../../src/classify/known/knowledge.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import { NOTHING_KNOWN } from '../../src/proxy/connection/connection.ts'

const NOW_MS = Date.UTC(2026, 10, 21, 12)
const DAY_MS = 86_400_000
const OWN = '192.0.2.9'
const ELSEWHERE = '198.51.100.7'
const BOT = 'Mozilla/5.0 (compatible; Bot/1.0; +https://bot.test)'
const CHROME =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36'
const WEIGHTS = parseWeights(
  JSON.parse(readFileSync(new URL('../../signatures/weights.json', import.meta.url), 'utf8')),
)
const KNOWLEDGE = knowledge()
/** It remembers verdicts, as that of a worker does. */
const SCRATCH = new Scratch()

test('a claimed agent at a published address is proven', async () => {
  for (const address of [OWN, `::ffff:${OWN}`, '2001:db8::77', '2001:DB8:0:0::1']) {
    const verdict = judged({ userAgent: BOT, address })
    assert.deepEqual(verdict.agent, { id: 'bot', name: 'Bot', category: 'crawler', purposes: [] })
    assert.deepEqual([verdict.kind, verdict.verified], ['agent', 'ip-range'])
    const { detail, weight } = evidence(verdict, 'address-published')!
    assert.equal(
      detail,
      'the address is in the published ranges of Bot (bot.test/ips.json, 2026-11-01, 20 days old)',
    )
    assert.ok(weight > 1)
    assert.ok(verdict.confidence > judged({ userAgent: BOT }).confidence)
  }
})

test('a header can say so, too', async () => {
  assert.equal(judged({ headers: ['x-bot', '1'], address: OWN }).verified, 'ip-range')
})

test('a foreign address is reported, and changes only how sure the name is', async () => {
  const { evidence: without, ...unplaced } = judged({ userAgent: BOT })
  const { evidence: all, ...placed } = judged({ userAgent: BOT, address: ELSEWHERE })
  assert.deepEqual(placed, { ...unplaced, nameConfidence: 0.05, conflicts: ['address-foreign'] })
  assert.equal(unplaced.nameConfidence, 0.5)
  assert.equal(placed.verified, null)
  const foreign = evidence({ evidence: all }, 'address-foreign')
  assert.deepEqual(foreign, {
    kind: 'address-foreign',
    detail: 'the address is not in the published ranges of Bot (bot.test/ips.json, 2026-11-01, 20 days old)',
    weight: 0,
  })
  assert.deepEqual(
    all.filter((each) => each !== foreign),
    without,
  )
})

test('of an address that is unknown or many have, by a list that is old or lacks some, nothing is said', async () => {
  const nothing = judged({ userAgent: BOT })
  for (const address of ['', '127.0.0.1', '10.0.0.1', '::1', 'fd00::1', 'unknown'])
    assert.deepEqual(judged({ userAgent: BOT, address }), nothing, address)
  assert.deepEqual(judged({ userAgent: BOT, address: ELSEWHERE, nowMs: NOW_MS + 91 * DAY_MS }), nothing)
  assert.deepEqual(judged({ userAgent: BOT, address: ELSEWHERE, nowMs: 0 }), nothing)
  assert.deepEqual(judged({ userAgent: 'Half/1', address: ELSEWHERE }), judged({ userAgent: 'Half/1' }))
  assert.equal(judged({ userAgent: 'Half/1', address: '203.0.113.1' }).verified, 'ip-range')
})

test('an address says nothing about a client that claims no agent with a list', async () => {
  const headers = fc.constantFrom([], ['accept', 'text/html'], ['x-unknown', '1'], ['sec-ch-ua', '"x"'])
  const userAgents = fc.constantFrom(null, CHROME, 'curl/8.0', 'Lister/1', 'thing/1', 'a crawler', '')
  fc.assert(
    fc.property(userAgents, headers, fc.constantFrom(OWN, '203.0.113.1'), (userAgent, headers, address) => {
      assert.deepEqual(judged({ userAgent, headers, address }), judged({ userAgent, headers }))
    }),
  )
})

test('the addresses of one prove nothing of another', async () => {
  const other = judged({ userAgent: 'Other/1', address: OWN })
  assert.deepEqual([other.agent?.id, other.verified], ['other', null])
  assert.ok(evidence(other, 'address-foreign'))
})

test('an agent proven on a connection stays proven, and only that agent', async () => {
  const conduct = new Conduct(null, '', OWN)
  assert.equal(judged({ userAgent: CHROME, conduct }).verified, null)
  assert.equal(judged({ userAgent: BOT, conduct }).verified, 'ip-range')
  const later = judged({ userAgent: CHROME, conduct })
  assert.deepEqual([later.agent?.id, later.verified], ['bot', 'ip-range'])
  const other = judged({ userAgent: 'Other/1', conduct })
  assert.deepEqual([other.agent?.id, other.verified], ['other', null])
  assert.equal(judged({ userAgent: BOT, conduct }).verified, 'ip-range')
})

test('no verdict is another address’s, whatever came before', async () => {
  const addresses = fc.constantFrom(OWN, ELSEWHERE, '203.0.113.1', '2001:db8::1', '10.0.0.1', '')
  const userAgents = fc.constantFrom(BOT, 'Other/1', 'Half/1', CHROME)
  const verified: Readonly<Record<string, readonly string[]>> = {
    [BOT]: [OWN, '2001:db8::1'],
    'Other/1': ['203.0.113.1'],
    'Half/1': ['203.0.113.1'],
    [CHROME]: [],
  }
  fc.assert(
    fc.property(fc.array(fc.tuple(userAgents, addresses), { minLength: 2, maxLength: 30 }), (requests) => {
      for (const [userAgent, address] of requests) {
        const expected = verified[userAgent]!.includes(address) ? 'ip-range' : null
        assert.equal(judged({ userAgent, address }).verified, expected, `${userAgent} ${address}`)
      }
    }),
  )
})

test('new signatures count at once, for who was named by the ones before, too', async () => {
  const conduct = new Conduct(null, '', OWN)
  assert.equal(judged({ userAgent: BOT, conduct }).verified, 'ip-range')
  const moved = knowledge({ prefixes: ['198.51.100.0/24'], date: '2026-11-20' })
  const since = judged({ userAgent: BOT, conduct }, moved)
  assert.equal(since.verified, null)
  assert.match(evidence(since, 'address-foreign')!.detail, /2026-11-20, a day old/)
  assert.equal(judged({ userAgent: CHROME, conduct }, moved).verified, null)
  assert.equal(judged({ userAgent: CHROME, conduct }).verified, 'ip-range')
})

test('the age is that of the day, and equal verdicts of one day are one', async () => {
  const conduct = new Conduct(null, '', OWN)
  const on = (day: number) => verdictOn({ userAgent: BOT, conduct, nowMs: NOW_MS + day * DAY_MS })
  assert.equal(on(0), on(0.1))
  assert.match(evidence(on(1), 'address-published')!.detail, /, 21 days old\)/)
  assert.match(evidence(on(1000), 'address-published')!.detail, /, 1020 days old\)/)
  assert.match(evidence(on(-21), 'address-published')!.detail, /2026-11-01\)$/)
  assert.equal(on(0), verdictOn({ userAgent: BOT, address: '192.0.2.200' }), 'of another address in the list')
})

test('weights of one’s own that do not know the evidence leave the proof as it is', async () => {
  const { verified, evidence: all } = judged(
    { userAgent: BOT, address: OWN },
    knowledge({}, { temperature: 1, weights: { 'names-agent': { agent: 9, automation: 0, human: 0 } } }),
  )
  assert.equal(verified, 'ip-range')
  assert.equal(evidence({ evidence: all }, 'address-published')?.weight, 0)
})

test('a client that custom weights classify as a tool is no agent, proven or not', async () => {
  const weights = { temperature: 1, weights: { 'names-agent': { agent: 0, automation: 9, human: 0 } } }
  const { kind, agent, verified } = judged({ userAgent: BOT, address: OWN }, knowledge({}, weights))
  assert.deepEqual([kind, agent, verified], ['automation', null, null])
})

interface Said {
  readonly userAgent?: string | null
  readonly headers?: readonly string[]
  readonly address?: string
  readonly conduct?: Conduct
  readonly nowMs?: number
}

function judged(said: Said, by = KNOWLEDGE): Verdict & { readonly verified: string | null } {
  const verdict = verdictOn(said, by)
  return { ...verdict, verified: verdict.proof?.method ?? null }
}

function verdictOn(said: Said, by = KNOWLEDGE): Verdict {
  const { userAgent = null, headers = [], address = '', nowMs = NOW_MS } = said
  const { conduct = new Conduct(null, '', address) } = said
  const rawHeaders = [...(userAgent === null ? [] : ['User-Agent', userAgent]), ...headers]
  const head = { method: 'GET', target: '/', version: '11', rawHeaders } as const
  return classify(
    by,
    { print: { connection: NOTHING_KNOWN, ja4h: null }, head, conduct, nowMs },
    NO_PROOFS,
    SCRATCH,
  )
}

function evidence({ evidence }: Pick<Verdict, 'evidence'>, kind: string) {
  return evidence.find((each) => each.kind === kind)
}

function knowledge(ranges: object = {}, weights: unknown = null): Knowledge {
  const own = { source: 'bot.test/ips.json', date: '2026-11-01', prefixes: ['192.0.2.0/24', '2001:db8::/32'] }
  const net = { source: 'other.test', date: '2026-11-20', prefixes: ['203.0.113.0/28'] }
  const list = parseSoftwareList([
    agent('bot', 'Bot', { ...own, ...ranges }, [{ user_agent: 'Bot/' }, { header: 'x-bot' }]),
    agent('other', 'Other', net, [{ user_agent: 'Other/' }]),
    agent('half', 'Half', { ...net, partial: true }, [{ user_agent: 'Half/' }]),
    agent('lister', 'Lister', null, [{ user_agent: 'Lister/' }]),
    {
      ...{ id: 'chrome', name: 'Chrome', kind: 'browser', engine: 'blink' },
      signatures: [{ user_agent: 'Chrome/', source: 's', date: '2026-11-01' }],
    },
    {
      ...{ id: 'curl', name: 'curl', kind: 'tool' },
      signatures: [{ user_agent: 'curl/', source: 's', date: '2026-11-01' }],
    },
  ])
  return knowledgeOf(list, weights === null ? WEIGHTS : parseWeights(weights))
}

function agent(id: string, name: string, ranges: object | null, patterns: readonly object[]): object {
  return {
    ...{ id, name, kind: 'agent', category: 'crawler' },
    ...(ranges !== null && { verification: { ranges } }),
    signatures: patterns.map((pattern) => ({ ...pattern, source: 's', date: '2026-11-01' })),
  }
}
