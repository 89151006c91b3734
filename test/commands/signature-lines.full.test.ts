import assert from 'node:assert/strict'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { parseSignatureLine } from '../../src/classify/known/signature-line.ts'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { knowledgeOf } from '../../src/runtime/signatures/knowledge-files.ts'
import { SignatureCompiler } from '../../src/runtime/signatures/signature-compiler.ts'
import { loadContent } from '../../src/runtime/signatures/signature-content.ts'
import { loadSoftware } from '../../src/runtime/signatures/signature-files.ts'
import { parseWeights } from '../../src/classify/known/weights.ts'
import { KnowledgeReader } from '../../src/plane/signature-set.ts'
import { withoutDescriptors } from '../descriptors.ts'
import { memoryIo } from './memory-io.ts'
import { childrenOf } from '../processes.ts'
import { until } from '../until.ts'

const SOURCE = { source: 'measured here', date: '2026-11-21' }
const MINE = { id: 'mine', name: 'Mine', kind: 'tool', signatures: [{ user_agent: 'mine/', ...SOURCE }] }
const JA4 = (i: number) => `t13d1516h2_${i.toString(16).padStart(12, '0')}_02713d6af862`

test('a long list adds software, and fingerprints to it and to what comes with Gatehouse', async (t) => {
  const { at } = workbench(t)
  const file = at('long.jsonl', [MINE, of('mine', 1, 7), '', of('curl', 1, 3), of('curl', 2)])
  const { list, fingerprints, weights } = await loadContent({ feeds: [], paths: [file], weightsFile: null })
  const knowledge = knowledgeOf(list, parseWeights(weights), fingerprints)
  const found = (i: number) =>
    knowledge.fingerprints.find('ja4', JA4(i), 'exact').map(({ software, observations }) => {
      return [list[software]!.id, observations]
    })
  assert.deepEqual(found(1), [
    ['mine', 7],
    ['curl', 3],
  ])
  assert.deepEqual(found(2), [['curl', 0]])
  assert.equal(knowledge.userAgents.claim('mine/1.0').software?.id, 'mine')
  const curl = list.find(({ id }) => id === 'curl')!
  assert.ok(curl.signatures.length > 1, 'ours is still what it is')
})

test('software of a long list takes the place of ours, with all of its fingerprints', async (t) => {
  const { at } = workbench(t)
  const ours = (await loadSoftware(null)).find(({ id, signatures }) => {
    return id === 'curl' && signatures.some(({ type }) => type === 'ja4')
  })!
  const ja4 = ours.signatures.find(({ type }) => type === 'ja4') as { value: string }
  const file = at('long.jsonl', [{ id: 'curl', name: 'My curl', kind: 'tool' }, of('curl', 5)])
  const { list, fingerprints, weights } = await loadContent({ feeds: [], paths: [file], weightsFile: null })
  const knowledge = knowledgeOf(list, parseWeights(weights), fingerprints)
  const whose = (value: string) =>
    knowledge.fingerprints.find('ja4', value, 'exact').map(({ software }) => list[software]!.name)
  assert.deepEqual(whose(JA4(5)), ['My curl'])
  assert.ok(!whose(ja4.value).includes('My curl'))
})

test('every line is checked, and each problem has its line', async (t) => {
  const { at, signatures } = workbench(t)
  const own = at('a.yaml', '- {id: taken, name: T, kind: tool}')
  const file = at('long.jsonl', [
    ...['{"id": ', '7', '{"id": "taken", "name": "N", "kind": "tool"}', of('unknown', 1)],
    ...[
      { software: 'taken', ja4: 't13', ...SOURCE },
      { software: 7, ja4: JA4(1), ...SOURCE },
    ],
    ...[
      { software: 'taken', user_agent: 'taken/', ...SOURCE },
      { software: 'taken', ja4: JA4(1) },
    ],
    ...[{ id: 'x', name: 'X', kind: 'robot' }, of('x', 1), ' '.repeat(2 ** 20 + 1)],
  ])
  appendFileSync(file, Buffer.from([0x22, 0xff, 0x22]))
  const { exitCode, err } = await signatures('validate', own, file)
  assert.equal(exitCode, 1)
  assert.deepEqual(err.trimEnd().split('\n'), [
    `${file}:1: is not valid JSON`,
    `${file}:2: is 7; expected a mapping`,
    `${file}:3: "taken" is taken: it stands at ${own}:1:4`,
    `${file}:4: no software has the id "unknown": it stands above its fingerprints, or in another file`,
    `${file}:5: ja4: "t13" is not a valid ja4`,
    `${file}:6: has the \`software\` 7; expected an id`,
    `${file}:7: is not a fingerprint; put it into the \`signatures\` of its software`,
    `${file}:8: needs \`source\` and \`date\``,
    `${file}:9: software "x": kind: is "robot"; expected agent, tool, browser`,
    `${file}:10: no software has the id "x": it stands above its fingerprints, or in another file`,
    `${file}:11: is longer than 1048576 bytes`,
    `${file}:12: is not UTF-8`,
    '12 problems',
  ])
})

test('reading ends after a hundred problems, and where a file is too large or not there', async (t) => {
  const { at, folder, signatures } = workbench(t)
  const bad = at('bad.jsonl', Array(1000).fill('no'))
  const { err } = await signatures('validate', bad)
  assert.match(err, /bad\.jsonl:100: is not valid JSON\n.*bad\.jsonl: is read no further: 100 problems\n/)
  assert.doesNotMatch(err, /:101:/)
  const large = at('large.jsonl', [])
  truncateSync(large, 1024 ** 4)
  assert.match((await signatures('validate', large)).err, /large\.jsonl:?\d*: is longer than|is larger than/)
  assert.match((await signatures('validate', join(folder, 'none.jsonl'))).err, /none\.jsonl: no such file/)
})

test('validate counts a long list, beside others', async (t) => {
  const { at, folder, signatures } = workbench(t)
  at('a.yaml', '- {id: a, name: A, kind: tool}')
  at('b.jsonl', [MINE, of('mine', 1), of('a', 2), of('curl', 3)])
  const { out, err } = await signatures('validate', folder)
  assert.equal(out, '2 software (0 agents, 2 tools, 0 browsers) with 4 signatures in 2 files\n')
  assert.equal(err, '')
})

test('list counts the fingerprints of a long list, and explain shows those that are asked for', async (t) => {
  const { at, folder, signatures } = workbench(t)
  at('a.yaml', '- {id: a, name: A, kind: tool, aliases: [also]}')
  at('b.jsonl', [MINE, of('mine', 1, 7), of('a', 1, 3), of('a', 2), of('curl', 3)])
  const { out } = await signatures('list', folder, '--json')
  const counts = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    counts.map(({ id, signatures }) => [id, signatures]),
    [
      ['a', 2],
      ['curl', 1],
      ['mine', 2],
    ],
  )
  const explain = async (text: string) => (await signatures('explain', '--from', folder, text)).out
  for (const name of ['a', 'also']) assert.equal((await explain(name)).match(/^ja4 /gm)?.length, 2, name)
  const whole = (await explain(JA4(1))).split('\n\n')[0]!
  assert.match(whole, /^mine +tool +70\.0 % +7 /m)
  assert.match(whole, /^a +tool +30\.0 % +3 /m)
  assert.match(await explain(JA4(2)), /^a +tool +- +2026/m)
  const parts = (await explain('t13d9999h1_000000000001_ffffffffffff')).split('\n\n')[1]!
  assert.deepEqual(parts.match(/^\w+ +tool +b /gm)?.length, 2)
  assert.match(await explain('mine/1.0'), /names Mine/)
})

test('what is exported as a long list says the same, and is imported', async (t) => {
  const { at, folder, signatures } = workbench(t)
  const exported = at('all.jsonl', (await signatures('export', '--format', 'jsonl')).out.split('\n'))
  const byId = (list: readonly { readonly id: string }[]) =>
    [...list].sort((a, b) => (a.id < b.id ? -1 : 1)).map((software) => JSON.parse(JSON.stringify(software)))
  const again = byId(await loadSoftware([exported]))
  const ours = byId(await loadSoftware(null))
  const sorted = (list: typeof ours) =>
    list.map((each) => ({ ...each, signatures: each.signatures.map(JSON.stringify).sort() }))
  assert.deepEqual(sorted(again), sorted(ours))

  rmSync(exported)
  at('own/a.yaml', '- {id: a, name: A, kind: tool}\n')
  const more = at('more.jsonl', [of('a', 1, 9), MINE, of('mine', 2, 3)].slice(1))
  const { exitCode, err } = await signatures('import', '--into', join(folder, 'own'), more)
  assert.deepEqual([exitCode, err], [0, ''])
  assert.match(
    readFileSync(join(folder, 'own/more.yaml'), 'utf8'),
    /user_agent: mine\/[\s\S]*ja4: t13d1516h2/,
  )
})

test('a set with a long list is made by another process after the first, and fits the first one', async (t) => {
  const { at, folder } = workbench(t)
  const compiler = new SignatureCompiler(join(folder, 'snapshots'))
  const file = at('long.jsonl', [MINE, of('mine', 1)])
  const sources = { feeds: [], paths: [file], weightsFile: null }
  const first = await compiler.make(sources)
  assert.equal(await compiler.make(sources), first, 'nothing has changed')
  at('long.jsonl', [MINE, ...Array.from({ length: 5000 }, (_, i) => of('mine', i))])
  const second = await compiler.make(sources)
  assert.notEqual(second.hash, first.hash)
  assert.deepEqual(second.pieces, first.pieces, 'what travels does not grow with fingerprints')
  const knowledge = await new KnowledgeReader().read(second)
  assert.equal(knowledge.fingerprints.find('ja4', JA4(4999), 'exact').length, 1)
  writeFileSync(file, 'no\n')
  await assert.rejects(compiler.make(sources), {
    code: 'SIGNATURES_INVALID',
    message: `${file}:1: is not valid JSON`,
  })
  at('long.jsonl', [MINE, ...Array.from({ length: 5000 }, (_, i) => of('mine', i))])
  assert.equal(await compiler.make(sources), second)
})

test('abandoned work leaves no process', async (t) => {
  const { at, folder } = workbench(t)
  for (const isUnderWay of [false, true]) {
    const compiler = new SignatureCompiler(join(folder, 'snapshots'))
    const sources = { feeds: [], paths: [at('long.jsonl', [MINE])], weightsFile: null }
    await compiler.make(sources)
    at('long.jsonl', [MINE, of('mine', 1)])
    const files = readdirSync(join(folder, 'snapshots'))
    const settled = compiler.make(sources).then(
      () => 'settled',
      () => 'settled',
    )
    if (isUnderWay) await child()
    compiler.close()
    await until(() => children().length === 0)
    assert.equal(await Promise.race([settled, wait(50, 'given up')]), 'given up')
    assert.deepEqual(readdirSync(join(folder, 'snapshots')), files)
    assert.deepEqual(children(), [])
  }
})

test('a process that dies leaves the set there was, and the next one is made by another', async (t) => {
  const { at, folder } = workbench(t)
  const compiler = new SignatureCompiler(join(folder, 'snapshots'))
  const sources = { feeds: [], paths: [at('long.jsonl', [MINE])], weightsFile: null }
  const first = await compiler.make(sources)
  at('long.jsonl', [MINE, of('mine', 1)])
  const failed = assert.rejects(compiler.make(sources), { code: 'HELPER_GONE' })
  process.kill(await child(), 'SIGKILL')
  await failed
  assert.notEqual(await compiler.make(sources), first)
})

test('where no process can be started the set there was stays, and the next one is made', async (t) => {
  const { at, folder } = workbench(t)
  const compiler = new SignatureCompiler(join(folder, 'snapshots'))
  t.teardown(() => compiler.close())
  const sources = { feeds: [], paths: [at('long.jsonl', [MINE])], weightsFile: null }
  const first = await compiler.make(sources)
  at('long.jsonl', [MINE, of('mine', 1)])
  await withoutDescriptors(async () => {
    compiler.stayReady()
    for (let i = 0; i < 2; i++) await assert.rejects(compiler.make(sources), { code: 'HELPER_GONE' })
  })
  const second = await compiler.make(sources)
  assert.notEqual(second, first)
  at('long.jsonl', [MINE, of('mine', 2)])
  assert.notEqual(await compiler.make(sources), second)
})

test('a line is software or a fingerprint', async () => {
  assert.equal(parseSignatureLine(MINE).kind, 'software')
  assert.equal(parseSignatureLine(of('x', 1)).kind, 'fingerprint')
  for (const bad of [null, 7, [], {}, { software: 'x' }, { software: {}, ...SOURCE }])
    assert.throws(() => parseSignatureLine(bad), { code: 'SIGNATURES_INVALID' }, JSON.stringify(bad))
})

/** As soon as there is one. */
async function child(): Promise<number> {
  for (;;) {
    const [pid] = children()
    if (pid !== undefined) return pid
    await wait(5)
  }
}

function children(): readonly number[] {
  return childrenOf(process.pid).map(({ pid }) => pid)
}

function of(software: string, i: number, observations = 0): Readonly<Record<string, unknown>> {
  return { software, ja4: JA4(i), ...SOURCE, ...(observations > 0 && { observations }) }
}

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-lines-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  return {
    folder,
    at(name: string, lines: string | readonly (string | object)[]): string {
      const file = join(folder, name)
      const text = typeof lines === 'string' ? lines : lines.map(lineOf).join('')
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
      return file
    },
    async signatures(...argv: readonly string[]) {
      const io = memoryIo()
      const exitCode = await runCli(COMMANDS, ['signatures', ...argv], io)
      return { exitCode, out: io.out, err: io.err }
    },
  }
}

function lineOf(line: string | object): string {
  return `${typeof line === 'string' ? line : JSON.stringify(line)}\n`
}
