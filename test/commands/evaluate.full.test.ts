import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import type { Comparison } from '../../src/classify/measure/comparison.ts'
import type { Evaluation } from '../../src/classify/measure/evaluation.ts'
import { EVIDENCE_KINDS } from '../../src/classify/known/evidence.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { ja4h } from '../../src/fingerprint/ja4plus/ja4h.ts'
import { memoryIo } from './memory-io.ts'
import { skipped } from '../e2e/programs.ts'

const RECORDED = 'test/classify/recorded.jsonl'
const ACME = `- id: acme
  name: Acme
  kind: agent
  category: llm-sdk
  signatures:
    - {user_agent: AcmeSDK/, source: made for this test, date: 2026-11-21}
- id: plainget
  name: plainget
  kind: tool
  signatures:
    - {user_agent: plainget/, source: made for this test, date: 2026-11-21}
`
const SHARE = '[0-9.]+ %'
const JA4 = 't13d5212h1_b262b3658495_8e6e362c5eac'

test('one JSON object, with the verdicts for each label', async () => {
  const { code, json, err } = await evaluated([RECORDED])
  assert.deepEqual([code, err], [0, ''])
  const lines = readFileSync(RECORDED, 'utf8').trimEnd().split('\n')
  const rows = lines.map((line) => JSON.parse(line) as { label: string; requests: readonly object[] })
  const withRequests = rows.filter(({ requests }) => requests.length > 0)
  assert.equal(json.connections, withRequests.length)
  assert.equal(json.without_requests, rows.length - withRequests.length)
  assert.equal(json.verdicts.length, json.connections)
  for (const member of ['release', 'labels', 'brier', 'ece', 'misses']) assert.ok(member in json, member)
  assert.deepEqual(new Set(Object.keys(json.labels)), new Set(withRequests.map(({ label }) => label)))
  for (const [label, counts] of Object.entries(json.labels)) {
    assert.deepEqual(Object.keys(counts).sort(), [
      ...['agent', 'automation', 'human', 'incomparable', 'marked', 'marked_agent', 'n', 'named'],
      ...['self_named', 'self_named_right', 'spoof_flagged', 'unknown'],
    ])
    assert.equal(counts.n, withRequests.filter((row) => row.label === label).length, label)
    assert.equal(counts.agent + counts.automation + counts.human + counts.unknown, counts.n, label)
    assert.ok(counts.self_named_right <= Math.min(counts.self_named, counts.named), label)
    assert.ok(counts.marked_agent <= counts.marked && counts.marked + counts.incomparable <= counts.n, label)
    assert.ok(counts.named <= counts.n && counts.spoof_flagged <= counts.n, label)
  }
  assert.ok(json.brier >= 0 && json.brier <= 1 && json.ece >= 0 && json.ece <= 1)
  const misses = json.misses.map(({ id }) => id)
  assert.ok(misses.every((id) => lines.some((line) => line.startsWith(`{"id":"${id}",`))))
})

test('a report for people says the same', async () => {
  const { json } = await evaluated([RECORDED])
  const { code, out, err } = await run(['evaluate', RECORDED])
  assert.deepEqual([code, err], [0, ''])
  assert.ok(
    out.startsWith(`${json.connections} connections; ${json.without_requests} more without a request\n`),
  )
  assert.ok(out.includes(`Brier ${json.brier}, expected calibration error ${json.ece}\n`))
  for (const [label, { n, agent }] of Object.entries(json.labels))
    assert.match(out, new RegExp(`^${label} +${n} +${agent} `, 'm'))
  const acting = ['llm-sdk', 'orchestrator', 'mcp-client', 'crawler'].map((label) => json.labels[label]!)
  const says = acting.reduce((sum, { self_named }) => sum + self_named, 0)
  const right = acting.reduce((sum, { self_named_right }) => sum + self_named_right, 0)
  assert.match(out, new RegExp(`: of ${says} that say who they are, ${right} \\(${SHARE}\\) named so\\n`))
  const { n, agent, marked, marked_agent, incomparable } = json.labels['browser-agent']!
  const rest = incomparable === 0 ? '' : ` and ${incomparable} that nothing was recorded to compare with`
  const lines = `: of ${marked} that leave a mark, ${marked_agent} \\(${SHARE}\\) called agent; of ${n - marked - incomparable} that leave none${rest}, ${agent - marked_agent}\\n`
  assert.match(out, new RegExp(lines))
  for (const { id, client } of json.misses) assert.ok(out.includes(`  ${id} ${client} (`), id)
})

test('automated browsers that nothing can be compared with are said apart', async (t) => {
  const headers = [['User-Agent', 'Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0.0.0 Safari/537.36']]
  const file = corpus(t, [row({ label: 'browser-agent', requests: [request({ headers })] })])
  const { out } = await run(['evaluate', file])
  assert.match(
    out,
    /of 0 that leave a mark, 0 called agent; of 0 that leave none and 1 that nothing was recorded/,
  )
})

test('several files are judged together, and in the same way each time', async (t) => {
  const file = corpus(t, [row({ id: 'a' }), row({ id: 'b' })])
  const { json } = await evaluated([file, file])
  assert.equal(json.connections, 4)
  assert.deepEqual((await evaluated([file, file])).json, json)
})

test('lines that are no rows are named, and the rest is judged', async (t) => {
  const file = corpus(t, [row(), '{"id":', row({ label: 7 }), '', 'null', row({ id: 'last' })])
  const { code, json, err } = await evaluated([file])
  assert.equal(code, 1)
  assert.equal(json.connections, 2)
  const named = [...err.matchAll(/^(.*):(\d+): \S/gm)].map(([, path, number]) => [path, Number(number)])
  assert.deepEqual(named, [
    [file, 2],
    [file, 3],
    [file, 5],
  ])
})

test('compared with what another release printed, each change is counted and named', async (t) => {
  const recorded = corpus(t, [
    row({ id: 'a' }),
    row({ id: 'b' }),
    row({ id: 'c', label: 'custom' }),
    row({ id: 'd' }),
  ])
  const { json } = await evaluated([recorded])
  const [a, b, c, d] = json.verdicts
  const file = (verdicts: unknown, misses: unknown = []) => {
    const path = join(folder(t), 'before.json')
    writeFileSync(path, JSON.stringify({ ...json, release: '0.0.1', verdicts, misses }))
    return path
  }
  const wrong = a!.verdict === 'human' ? 'agent' : 'human'

  const same = await evaluated([recorded, '--compare', file(json.verdicts)])
  assert.equal(same.code, 0)
  assert.deepEqual(same.json.comparison?.changes, [])
  assert.equal(same.json.comparison?.release, '0.0.1')

  const before = file([
    { ...a, verdict: wrong },
    { ...b, software: 'elsewhere' },
    { ...c, verdict: wrong },
  ])
  const better = await evaluated([recorded, '--compare', before])
  assert.equal(better.code, 0)
  const { labels, changes, unmatched } = better.json.comparison!
  assert.deepEqual(
    changes.map(({ id, change }) => [id, change]),
    [
      ['a', 'better'],
      ['b', 'other'],
      ['c', 'other'],
    ],
  )
  assert.equal(unmatched, 1)
  assert.deepEqual(labels[a!.label], { n: 2, right_before: 1, right: 2, worse: 0, better: 1, other: 1 })
  const report = await run(['evaluate', recorded, '--compare', before])
  assert.match(report.out, /^Compared with 0\.0\.1:\n/)
  assert.match(report.out, new RegExp(`Wrong before, right now:\\n  a .*: ${wrong}`))

  const lied = corpus(t, [row({ id: 'a', label: 'human-browser' })])
  const lie = (await evaluated([lied])).json.verdicts
  assert.notEqual(lie[0]!.verdict, 'human')
  const worse = await evaluated([lied, '--compare', file([{ ...lie[0], verdict: 'human' }])])
  assert.equal(worse.code, 1)
  assert.equal(worse.json.comparison?.changes[0]?.change, 'worse')
  // A release that has no verdicts by connection was right, except for its misses.
  const older = await evaluated([lied, '--compare', file(undefined, [])])
  assert.deepEqual(older.json.comparison?.changes[0]?.before, { verdict: 'human', confidence: null })
  assert.equal(d!.id, 'd')
})

test('compared with a release in a folder, its own code judges', async (t) => {
  const recorded = corpus(t, [row({ id: 'a' }), row({ id: 'b' })])
  const { code, json } = await evaluated([recorded, '--compare', '.', '--folds', '2'])
  assert.equal(code, 0)
  assert.equal(json.comparison?.release, json.release)
  assert.deepEqual([json.comparison?.changes, json.comparison?.unmatched], [[], 0])

  const other = folder(t)
  mkdirSync(join(other, 'node_modules/gatehouse/dist'), { recursive: true })
  const script = `const rest = process.argv.slice(2)
if (rest.join(' ') !== ${JSON.stringify(`evaluate --json -- ${recorded}`)}) process.exit(2)
console.log(JSON.stringify({ brier: 1, ece: 1, misses: [], verdicts: [] }))`
  writeFileSync(join(other, 'node_modules/gatehouse/dist/bin.js'), script)
  const fake = await evaluated([recorded, '--compare', other])
  assert.equal(fake.json.comparison?.unmatched, 2)
  assert.equal(fake.json.comparison?.brier, 1)
})

test('a path without a release is named', async (t) => {
  const recorded = corpus(t, [row()])
  const text = join(folder(t), 'other.json')
  writeFileSync(text, '{"a":1}')
  const failing = folder(t)
  mkdirSync(join(failing, 'dist'))
  writeFileSync(join(failing, 'dist/bin.js'), 'process.stderr.write("too old"); process.exit(2)')
  for (const [path, expected] of [
    [join(folder(t), 'none'), /no such file|does not exist|ENOENT/i],
    [folder(t), /contains no release of Gatehouse/],
    [text, /is not what evaluate --json prints; if it is a package, install it with npm install/],
    [failing, /exit code 2: too old/],
  ] as const) {
    const { code, out, err } = await run(['evaluate', recorded, '--compare', path])
    assert.notEqual(code, 0)
    assert.equal(out, '')
    assert.match(err, expected)
  }
})

test('a file that is not there is an error, and nothing is printed', async (t) => {
  const missing = join(folder(t), 'none.jsonl')
  for (const operands of [[missing], [RECORDED, missing], [folder(t)]]) {
    const { code, out, err } = await run(['evaluate', '--json', ...operands])
    assert.notEqual(code, 0)
    assert.equal(out, '')
    assert.ok(err.includes(operands.at(-1)!), err)
  }
})

test('a file without rows', async (t) => {
  const { code, json } = await evaluated([corpus(t, [])])
  assert.equal(code, 0)
  assert.deepEqual([json.connections, json.labels, json.brier, json.ece, json.misses], [0, {}, 0, 0, []])
  assert.equal((await run(['evaluate', corpus(t, [])])).code, 0)
  assert.equal((await run(['evaluate', '--folds', '3', corpus(t, [])])).code, 0)
})

test('rows with a JA4 in place of a hello, or with neither, are judged by what there is', async (t) => {
  const bare = { headers: [['Accept', '*/*']] }
  const file = corpus(t, [
    row({ id: 'hello-less', requests: [request()] }),
    row({ id: 'ja4', ja4: JA4, requests: [request()] }),
    row({ id: 'silent', client: 'fetch', ja4: JA4, requests: [request(bare)] }),
    row({ id: 'bare', requests: [request(bare)] }),
    row({ id: 'unused', ja4: JA4, requests: [] }),
  ])
  const { code, json, err } = await evaluated([file])
  assert.deepEqual([code, err], [0, ''])
  assert.deepEqual([json.connections, json.without_requests], [4, 1])
  const { agent, automation, human, unknown } = json.labels['http-library']!
  assert.equal(agent + automation + human + unknown, 4)
  const evidence = await evidenceOf(t, row({ ja4: JA4, requests: [request()] }))
  assert.ok(evidence.some((kind) => kind.startsWith('stack-')))
  const without = await evidenceOf(t, row({ requests: [request()] }))
  assert.ok(!without.some((kind) => kind.startsWith('stack-')))
})

test('--signatures takes the place of ours', async (t) => {
  const signatures = written(t, 'acme.yaml', ACME)
  const rows = [
    row({ id: 'a', client: 'acme', label: 'llm-sdk', requests: [request({ userAgent: 'AcmeSDK/1.0' })] }),
    row({ id: 'b', client: 'curl', requests: [request({ userAgent: 'curl/8.0' })] }),
  ]
  const file = corpus(t, rows)
  const ours = (await evaluated([file])).json
  assert.deepEqual([ours.labels['llm-sdk']!.named, ours.labels['http-library']!.named], [0, 1])
  const theirs = (await evaluated(['--signatures', signatures, file])).json
  assert.deepEqual([theirs.labels['llm-sdk']!.named, theirs.labels['http-library']!.named], [1, 0])
})

test('--weights takes the place of ours', async (t) => {
  const human = { temperature: 1, bias: { agent: 0, automation: 0, human: 9 } }
  const weights = written(t, 'weights.json', JSON.stringify(human))
  const { json } = await evaluated(['--weights', weights, corpus(t, [row()])])
  assert.deepEqual([json.labels['http-library']!.human, json.labels['http-library']!.automation], [1, 0])
  const bad = written(t, 'bad.json', '{\n  "temperature": 0\n}\n')
  const { code, err } = await run(['evaluate', '--weights', bad, corpus(t, [row()])])
  assert.notEqual(code, 0)
  assert.ok(err.includes(bad), err)
})

test('--folds judges each client by what is known of the others', async (t) => {
  const signatures = written(t, 'acme.yaml', ACME)
  const rows = ['one', 'two', 'three', 'four'].flatMap((client) => [
    row({ id: `${client}-a`, client, label: 'llm-sdk', requests: [request({ userAgent: 'AcmeSDK/1.0' })] }),
    row({ id: `${client}-l`, client: `${client}-l`, requests: [request({ userAgent: 'plainget/1' })] }),
  ])
  const { code, json, err } = await evaluated(['--folds', '2', '--signatures', signatures, corpus(t, rows)])
  assert.deepEqual([code, err], [0, ''])
  assert.equal(json.connections, 8)
  assert.equal(json.labels['llm-sdk']!.agent, 4)
  assert.equal(json.labels['http-library']!.automation, 4)
})

test('--folds takes its time, and says on a terminal how far it is', {
  skip: skipped('script'),
}, async (t) => {
  const lines = readFileSync(RECORDED, 'utf8').split('\n')
  const some = join(
    t.testdir({ 'some.jsonl': lines.filter((_, at) => at % 12 === 0).join('\n') }),
    'some.jsonl',
  )
  const command = `${process.execPath} src/bin.js evaluate --json --folds 8 ${some} > /dev/null`
  const { status, stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { encoding: 'utf8' })
  assert.equal(status, 0, stdout)
  const drawn = stdout.split('\r').filter((each) => each.includes('%'))
  assert.ok(drawn.length > 0, JSON.stringify(stdout))
  for (const bar of drawn) {
    assert.match(bar, /^ [█░]{10,40} \d{1,3} % of 8 groups/)
    assert.ok(bar.endsWith('groups\x1b[K'))
  }
  assert.ok(stdout.endsWith('\r\x1b[K'), JSON.stringify(stdout.slice(-100)))
})

const TWELVE = Array.from({ length: 12 }, (_, i) => [`x-${i}`, '1'])
test('--folds holds back the order of headers that was measured on a client itself', async (t) => {
  const signatures = written(t, 'acme.yaml', measured())
  const rows = ['acme', 'other'].map((client) =>
    row({ id: client, client, label: 'human-browser', requests: [request({ headers: TWELVE })] }),
  )
  const file = corpus(t, rows)
  const found = (json: Evaluation) =>
    json.misses.filter(({ evidence }) => evidence.includes('headers-of-agents'))
  const all = (await evaluated(['--signatures', signatures, file])).json
  assert.deepEqual(
    found(all).map(({ client }) => client),
    ['acme', 'other'],
  )
  const held = (await evaluated(['--folds', '2', '--signatures', signatures, file])).json
  assert.ok(!found(held).some(({ client }) => client === 'acme'))
})

test('JA4+ is not used for verdicts if it is turned off', async (t) => {
  const operands = [
    '--signatures',
    written(t, 'acme.yaml', measured()),
    corpus(t, [row({ label: 'human-browser', requests: [request({ headers: TWELVE })] })]),
  ]
  const io = memoryIo('', { env: { GATEHOUSE_FINGERPRINTS_JA4PLUS: 'false' } })
  assert.equal(await runCli(COMMANDS, ['evaluate', '--json', ...operands], io), 0)
  assert.doesNotMatch(io.out, /headers-of-agents/)
  assert.match((await evaluated(operands)).out, /headers-of-agents/)
})

test('--folds takes a whole number', async (t) => {
  for (const folds of ['0', '1', '-3', '2.5', 'ten', '', '1001', '1e9']) {
    const { code, out, err } = await run(['evaluate', `--folds=${folds}`, corpus(t, [row()])])
    assert.deepEqual([code, out], [2, ''], folds)
    assert.match(err, /--folds/)
  }
})

test('--fit writes weights that --weights reads, and the same ones each time', async (t) => {
  const signatures = written(t, 'acme.yaml', ACME)
  const rows = ['one', 'two', 'three'].flatMap((client) => [
    row({ id: `${client}-a`, client, label: 'llm-sdk', requests: [request({ userAgent: 'AcmeSDK/1.0' })] }),
    row({ id: `${client}-l`, client: `${client}-l`, requests: [request({ userAgent: 'plainget/1' })] }),
  ])
  const file = corpus(t, rows)
  const texts: string[] = []
  for (const name of ['first.json', 'second.json']) {
    const fitted = join(folder(t), name)
    const { code, err } = await run(['evaluate', '--fit', fitted, '--signatures', signatures, file])
    assert.deepEqual([code, err], [0, ''])
    texts.push(readFileSync(fitted, 'utf8'))
    const { json } = await evaluated(['--weights', fitted, '--signatures', signatures, file])
    assert.deepEqual([json.labels['llm-sdk']!.agent, json.labels['http-library']!.automation], [3, 3])
  }
  assert.equal(texts[0], texts[1])
  const { about, weights } = JSON.parse(texts[0]!) as { about: string; weights: object }
  assert.match(about, /^Fitted to 6 connections of 6 clients/)
  assert.deepEqual(Object.keys(weights), [...EVIDENCE_KINDS])
  parseWeights(JSON.parse(texts[0]!))
})

test('--fit where it cannot be written is an error that says where', async (t) => {
  const nowhere = join(folder(t), 'none', 'weights.json')
  const { code, err } = await run(['evaluate', '--fit', nowhere, corpus(t, [row()])])
  assert.notEqual(code, 0)
  assert.ok(err.includes(nowhere), err)
  assert.doesNotMatch(err, /\n {4}at /)
})

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function run(argv: readonly string[]): Promise<Ran> {
  const io = memoryIo()
  const code = await runCli(COMMANDS, argv, io)
  return { code, out: io.out, err: io.err }
}

interface Evaluated extends Evaluation {
  readonly release: string
  readonly comparison?: Comparison & { release: string | null; brier: number; ece: number }
}

async function evaluated(operands: readonly string[]): Promise<Ran & { readonly json: Evaluated }> {
  const ran = await run(['evaluate', '--json', ...operands])
  assert.match(ran.out, /^\{.*\}\n$/, ran.err)
  return { ...ran, json: JSON.parse(ran.out) as Evaluated }
}

/** Of `acme`, whose headers they are. */
function measured(): string {
  const value = ja4h({ method: 'GET', target: '/', version: '11', rawHeaders: TWELVE.flat() })
  return `- id: acme
  name: Acme
  kind: agent
  category: llm-sdk
  signatures:
    - {ja4h: ${value.replace(/_0+_0+$/, '_*_*')}, source: made for this test, date: 2026-11-21, observations: 3}
`
}

/** The evidence of one row: its label is turned so that it is missed. */
async function evidenceOf(t: Test, one: object): Promise<readonly string[]> {
  const { json } = await evaluated([corpus(t, [{ ...one, label: 'human-browser' }])])
  return json.misses[0]!.evidence
}

function corpus(t: Test, rows: readonly (object | string)[]): string {
  const lines = rows.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`)
  return written(t, 'corpus.jsonl', lines.join(''))
}

function written(t: Test, name: string, text: string): string {
  const path = join(folder(t), name)
  writeFileSync(path, text)
  return path
}

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'evaluate-'))
  t.teardown(() => rmSync(path, { recursive: true }))
  return path
}

function row(more: object = {}): object {
  return { id: 'r1', client: 'curl', label: 'http-library', requests: [request()], ...more }
}

function request({
  userAgent = 'curl/8.0',
  headers,
}: {
  userAgent?: string
  headers?: string[][]
} = {}): object {
  const sent = headers ?? [
    ['Host', 'a.test'],
    ['User-Agent', userAgent],
  ]
  return { http: '1.1', method: 'GET', path: '/', headers: sent }
}
