import assert from 'node:assert/strict'
import { test } from 'tap'
import { type CorpusRow, KNOWN_LABELS, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { evaluate, type Judgement, judgeRow } from '../../src/classify/measure/evaluation.ts'
import { truthOf } from '../../src/classify/measure/truth.ts'
import { parseSoftwareList } from '../../src/classify/known/software.ts'
import type { Verdict } from '../../src/classify/verdict/verdict.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'

test('connections are counted by their label and by their client', async () => {
  const { connections, without_requests, labels, clients } = evaluate(
    [
      judgement('llm-sdk', 'agent', 0.9, { isNamed: true, namesItself: true }),
      judgement('llm-sdk', 'automation', 0.6, { namesItself: true }),
      judgement('llm-sdk', 'unknown', 0.4, { client: 'other' }),
      judgement('spoofed-browser', 'agent', 0.8, { client: 'sham', isSpoofFlagged: true }),
      judgement('human-browser', 'human', 0.7, { client: 'chromium', isNamed: true }),
    ],
    3,
  )
  const none = {
    ...{ n: 0, agent: 0, automation: 0, human: 0, unknown: 0, named: 0, spoof_flagged: 0 },
    ...{ self_named: 0, self_named_right: 0, marked: 0, marked_agent: 0, incomparable: 0 },
  }
  const own = { self_named: 2, self_named_right: 1 }
  assert.deepEqual([connections, without_requests], [5, 3])
  assert.deepEqual(labels, {
    'llm-sdk': { ...none, ...own, n: 3, agent: 1, automation: 1, unknown: 1, named: 1 },
    'spoofed-browser': { ...none, n: 1, agent: 1, spoof_flagged: 1 },
    'human-browser': { ...none, n: 1, human: 1, named: 1 },
  })
  assert.deepEqual(clients, {
    client: { ...none, ...own, label: 'llm-sdk', n: 2, agent: 1, automation: 1, named: 1 },
    other: { ...none, label: 'llm-sdk', n: 1, unknown: 1 },
    sham: { ...none, label: 'spoofed-browser', n: 1, agent: 1, spoof_flagged: 1 },
    chromium: { ...none, label: 'human-browser', n: 1, human: 1, named: 1 },
  })
})

test('of automated browsers those are counted that differ from the recorded people', async () => {
  const { labels } = evaluate(
    [
      judgement('human-browser', 'human', 0.9, { userAgents: ['Chrome/156'] }),
      judgement('browser-agent', 'human', 0.9, { userAgents: ['Chrome/156'] }),
      judgement('browser-agent', 'agent', 0.9, { userAgents: ['HeadlessChrome/156'] }),
      judgement('browser-agent', 'human', 0.9, { userAgents: ['HeadlessChrome/156'] }),
      judgement('browser-agent', 'agent', 0.9, { userAgents: ['Chrome/147'] }),
      judgement('llm-sdk', 'agent', 0.9, { userAgents: ['HeadlessChrome/156'] }),
    ],
    0,
  )
  const of = (label: string) => {
    const { n, marked, marked_agent, incomparable } = labels[label]!
    return [n, marked, marked_agent, incomparable]
  }
  assert.deepEqual(of('browser-agent'), [4, 2, 1, 1])
  assert.deepEqual(of('human-browser'), [1, 0, 0, 0])
  assert.deepEqual(of('llm-sdk'), [1, 0, 0, 0])
})

test('misses are those that are not what they are', async () => {
  const { misses } = evaluate(
    [
      judgement('llm-sdk', 'agent', 0.9),
      judgement('http-library', 'agent', 0.65, { software: 'curl', evidence: ['crawls', 'names-tool'] }),
      judgement('human-browser', 'unknown', 0.5),
      judgement('a label of their own', 'agent', 0.5),
    ],
    0,
  )
  assert.deepEqual(
    misses.map(({ label, verdict }) => [label, verdict]),
    [
      ['http-library', 'agent'],
      ['human-browser', 'unknown'],
    ],
  )
  const [{ confidence, software, evidence }] = misses as [(typeof misses)[number]]
  assert.deepEqual([confidence, software, evidence], [0.65, 'curl', ['crawls', 'names-tool']])
})

test('the Brier score is the mean square of what confidence and truth differ by', async () => {
  const { brier } = evaluate(
    [
      judgement('llm-sdk', 'agent', 0.9),
      judgement('llm-sdk', 'automation', 0.6),
      judgement('human-browser', 'human', 1),
      // Of these two nothing is said, or nothing is known.
      judgement('human-browser', 'unknown', 0.99),
      judgement('a label of their own', 'agent', 0.2),
    ],
    0,
  )
  assert.equal(brier, Math.round(((0.1 ** 2 + 0.6 ** 2 + 0) / 3) * 10_000) / 10_000)
})

test('the expected calibration error weighs each bin by how many are in it', async () => {
  const { ece, reliability } = evaluate(
    [
      ...[true, true, true, false].map((isRight) =>
        judgement('llm-sdk', isRight ? 'agent' : 'automation', 0.85),
      ),
      ...[true, false].map((isRight) => judgement('llm-sdk', isRight ? 'agent' : 'automation', 0.65)),
      judgement('llm-sdk', 'unknown', 0.15),
    ],
    0,
  )
  assert.deepEqual(reliability, [
    { from: 0.6, to: 0.7, n: 2, confidence: 0.65, right: 0.5 },
    { from: 0.8, to: 0.9, n: 4, confidence: 0.85, right: 0.75 },
  ])
  assert.equal(ece, Math.round(((2 * 0.15 + 4 * 0.1) / 6) * 10_000) / 10_000)
})

test('the reliability of each verdict is that of its own connections', async () => {
  const { reliability_by_verdict } = evaluate(
    [
      ...[true, false].map((isRight) =>
        judgement(isRight ? 'human-browser' : 'browser-agent', 'human', 0.95),
      ),
      judgement('llm-sdk', 'agent', 0.95),
      judgement('human-browser', 'unknown', 0),
    ],
    0,
  )
  assert.deepEqual(reliability_by_verdict, {
    agent: [{ from: 0.9, to: 1, n: 1, confidence: 0.95, right: 1 }],
    automation: [],
    human: [{ from: 0.9, to: 1, n: 2, confidence: 0.95, right: 0.5 }],
  })
})

test('full confidence is in the last bin, and none in the first', async () => {
  const { reliability } = evaluate([judgement('llm-sdk', 'agent', 1), judgement('llm-sdk', 'agent', 0)], 0)
  assert.deepEqual(
    reliability.map(({ from, n, right }) => [from, n, right]),
    [
      [0, 1, 1],
      [0.9, 1, 1],
    ],
  )
})

test('nothing to judge', async () => {
  const { connections, brier, ece, reliability, labels, misses } = evaluate([], 2)
  assert.deepEqual([connections, brier, ece, reliability, labels, misses], [0, 0, 0, [], {}, []])
})

test('every label of the recordings has a truth', async () => {
  for (const label of KNOWN_LABELS) assert.notEqual(truthOf(label), null, label)
  assert.equal(truthOf('human-browser'), 'human')
  assert.equal(truthOf('http-library'), 'automation')
  assert.equal(truthOf('spoofed-browser'), 'agent')
  assert.equal(truthOf('constructor'), null)
})

test('labels that objects have members of are only labels', async () => {
  for (const label of ['constructor', 'toString', '__proto__'])
    assert.equal(evaluate([judgement(label, 'agent', 0.5, { client: label })], 0).labels[label]?.n, 1, label)
})

const KNOWLEDGE = knowledgeOf(
  parseSoftwareList([
    {
      ...{ id: 'acme', name: 'Acme SDK', kind: 'agent', category: 'llm-sdk', aliases: ['@acme/sdk'] },
      signatures: [{ user_agent: 'AcmeSDK/', source: 'made for this test', date: '2026-11-21' }],
    },
  ]),
  parseWeights({ temperature: 1, weights: { 'names-agent': { agent: 3, automation: 0, human: 0 } } }),
)

test('a connection is judged by all it shows up to its last request', async () => {
  const judged = judgeRow(KNOWLEDGE, row('acme', ['AcmeSDK/1.0', 'thing/1']))!
  assert.deepEqual([judged.verdict.kind, judged.verdict.software?.id], ['agent', 'acme'])
  assert.equal(judgeRow(KNOWLEDGE, row('acme', [])), null, 'without a request')
})

test('a client is named by its id, its name or an alias, however they are written', async () => {
  for (const client of ['acme', 'Acme SDK', 'ACME-sdk', '@acme/sdk'])
    assert.ok(judgeRow(KNOWLEDGE, row(client, ['AcmeSDK/1.0']))!.isNamed, client)
  for (const client of ['acm', 'acme-2', 'sdk'])
    assert.ok(!judgeRow(KNOWLEDGE, row(client, ['AcmeSDK/1.0']))!.isNamed, client)
  assert.ok(!judgeRow(KNOWLEDGE, row('acme', ['thing/1']))!.isNamed, 'it is not named')
})

test('whether a client says its name has nothing to do with whether it is known', async () => {
  for (const [client, userAgent, isNamed, namesItself] of [
    ['acme', 'AcmeSDK/1.0', true, true],
    ['acme', 'thing/1', false, false],
    ['thing', 'thing/1', false, true],
    ['thing', 'AcmeSDK/1.0', false, false],
  ] as const) {
    const judged = judgeRow(KNOWLEDGE, row(client, [userAgent]))!
    assert.deepEqual([judged.isNamed, judged.namesItself], [isNamed, namesItself], `${client} ${userAgent}`)
  }
})

function judgement(
  label: string,
  kind: Verdict['kind'],
  confidence: number,
  more: {
    client?: string
    software?: string
    evidence?: readonly string[]
    isNamed?: boolean
    namesItself?: boolean
    userAgents?: readonly string[]
    isSpoofFlagged?: boolean
  } = {},
): Judgement {
  const { client = 'client', software = null, evidence = [] } = more
  return {
    row: { ...row(client, more.userAgents ?? []), label },
    verdict: {
      ...{ kind, agent: null, confidence, nameConfidence: 0, proof: null, conflicts: [] },
      software: software === null ? null : { id: software, name: software, kind: 'tool' },
      evidence: evidence.map((each) => ({ kind: each, detail: '', weight: 0 })),
    },
    agentProbability: kind === 'agent' ? confidence : 0,
    isNamed: more.isNamed ?? false,
    namesItself: more.namesItself ?? false,
    isSpoofFlagged: more.isSpoofFlagged ?? false,
  }
}

function row(client: string, userAgents: readonly string[]): CorpusRow {
  const requests = userAgents.map((userAgent) => ({
    ...{ http: '1.1', method: 'GET', path: '/' },
    headers: [['User-Agent', userAgent]],
  }))
  return parseCorpusRow({ id: 'r1', client, label: 'llm-sdk', requests })
}
