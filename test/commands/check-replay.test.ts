import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import type { Sighting } from '../../src/plane/sighting.ts'
import { sighting } from '../contract/bus.ts'
import { memoryIo } from './memory-io.ts'

const CRAWLER = {
  verdict: 'agent',
  agent: 'gptbot',
  category: 'crawler',
  software: 'gptbot',
  userAgent: 'GPTBot/1.2',
}
const NEW = `rules:
  - {name: keyed, when: {path: /keyed, header: {x-key: a}}, action: pass}
  - {name: crawlers, when: {category: crawler, path: /api/*}, action: {block: {status: 429}}}
  - {name: trial, when: {category: crawler}, action: block, dry_run: true}
  - {name: curl, when: {software: curl, evidence: names-*}, action: {rate_limit: {per: address, requests: 5, window: 1m}}}
`
const OLD = `rules:
  - {name: crawlers, when: {category: crawler, path: /api/*}, action: block}
`

test('against what was done', async (t) => {
  const { at, replay } = workbench(t)
  const file = at(
    's.jsonl',
    lines([
      { ...CRAWLER, path: '/api/a' },
      { ...CRAWLER, path: '/api/a' },
      { ...CRAWLER, path: '/api/\u001b[31m', action: 'block', rule: 'crawlers' },
      { ...CRAWLER, path: '/' },
      { software: null, path: '/keyed' },
      { software: 'curl', path: '/b' },
      { software: null, rule: 'proxy.fail', action: 'block' },
      { software: null, rule: 'trial', action: 'block', dryRun: true },
    ]),
  )
  const { exitCode, out, err } = await replay(file, at('new.yaml', NEW), ['--json'])
  assert.deepEqual([exitCode, err], [0, ''])
  const report = JSON.parse(out)
  const { sightings, changed, unchanged, unjudged, by_settings } = report
  assert.deepEqual([sightings, changed, unchanged, unjudged, by_settings], [8, 3, 2, 2, 1])
  assert.deepEqual(report.transitions, [
    { from: 'tag', to: 'block', count: 2 },
    { from: 'tag', to: 'rate_limit', count: 1 },
  ])
  assert.deepEqual(report.agents[0], { name: 'gptbot', count: 2, from: 'tag', to: 'block' })
  assert.deepEqual(report.paths[0], { name: '/api/a', count: 2, from: 'tag', to: 'block' })
  assert.deepEqual(report.rules, [
    { rule: 'keyed', layer: 'last', app: null, before: null, after: 0, on_trial: 0 },
    { rule: 'crawlers', layer: 'last', app: null, before: 1, after: 3, on_trial: 0 },
    { rule: 'trial', layer: 'last', app: null, before: null, after: 0, on_trial: 1 },
    { rule: 'curl', layer: 'last', app: null, before: null, after: 1, on_trial: 0 },
    { rule: 'otherwise', layer: 'last', app: null, before: 5, after: 2, on_trial: 0 },
  ])
  assert.deepEqual(
    report.open.map((each: { rule: string; sightings: number }) => [each.rule, each.sightings]),
    [
      ['keyed', 1],
      ['trial', 1],
    ],
  )
  assert.deepEqual(report.open[0].needs, ['header x-key'])
})

test('against another policy, in words', async (t) => {
  const { at, replay } = workbench(t)
  const file = at(
    's.jsonl',
    lines([
      { ...CRAWLER, path: '/api/\u001b[31m', rule: 'gone', action: 'pass' },
      { software: 'curl', path: '/keyed' },
      { software: 'curl', path: '/b' },
    ]),
  )
  const { out } = await replay(file, at('new.yaml', NEW), ['--against', at('old.yaml', OLD)])
  for (const pattern of [
    /^3 Sightings: 2 changed \(66\.7 %\), 0 unchanged, 1 that cannot be judged$/m,
    /^block 403 {2}block 429 +1$/m,
    /^tag +rate_limit 5 in 60000ms +1$/m,
    /^gptbot +block 403 +block 429 +1$/m,
    /^\/api\/\\u\{1b\}\[31m +block 403 +block 429 +1$/m,
    /^crawlers +last +1 +1$/m,
    /^keyed +last +- +0$/m,
    /^new +keyed +last +header x-key +1$/m,
    /^Whether a client would go over a limit is not replayed\.$/m,
  ])
    assert.match(out, pattern)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
  assert.ok(!/[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(out), out)
})

test('Sightings tell which agent was proven, and how', async (t) => {
  const { at, replay } = workbench(t)
  const signed = { verdict: 'agent', verified: 'web-bot-auth', signer: 'https://a.test', key: 'k' }
  const file = at(
    's.jsonl',
    lines([
      { ...CRAWLER, ...signed },
      { ...signed, software: null },
      { ...signed, software: null, signer: 'https://b.test' },
      { ...CRAWLER, verified: 'ip-range' },
      { ...CRAWLER, evidence: ['signature-failed'], signatureFault: 'expired' },
      CRAWLER,
    ]),
  )
  const policy = `rules:
  - {name: by address, when: {verified: [ip-range, reverse-dns]}, action: block}
  - {name: listed, when: {verified: true, listed: true}, action: block}
  - {name: partner, when: {signer: 'https://a.test'}, action: block}
  - {name: method, when: 'verdict.proof_method == "web-bot-auth"', action: block}
  - {name: failed, when: {evidence: signature-failed}, action: block}
`
  const { out } = await replay(file, at('p.yaml', policy), ['--json'])
  const rules: { rule: string; after: number }[] = JSON.parse(out).rules
  const names = ['by address', 'listed', 'partner', 'method', 'failed', 'otherwise']
  assert.deepEqual(
    rules.map(({ rule, after }) => [rule, after]),
    names.map((name) => [name, 1]),
  )
})

test('the same policy changes nothing', async (t) => {
  const { at, replay } = workbench(t)
  const file = at('s.jsonl', lines([{ ...CRAWLER, path: '/api/a' }, { software: 'curl' }]))
  const { out } = await replay(file, at('a.yaml', OLD), ['--against', at('b.yaml', OLD), '--json'])
  const { changed, unchanged, transitions } = JSON.parse(out)
  assert.deepEqual([changed, unchanged, transitions], [0, 2, []])
})

test('lines that are no Sighting are left out, and said', async (t) => {
  const { at, replay } = workbench(t)
  const good = JSON.stringify(sighting(1))
  const many = Array.from({ length: 12 }, () => '{}\n').join('')
  const file = at(
    's.jsonl',
    `${good}\n\n{"id": 1}\n${many}${'x'.repeat(1_100_000)}\n${good}\n${good.slice(0, 50)}`,
  )
  const { exitCode, out, err } = await replay(file, at('p.yaml', OLD), ['--json'])
  assert.equal(exitCode, 0)
  assert.deepEqual([JSON.parse(out).sightings, JSON.parse(out).left_out.count], [2, 15])
  const said = err.trimEnd().split('\n')
  assert.equal(said[0], `${file}:3: id is not what it should be; left out`)
  assert.equal(said.length, 11)
  assert.equal(said.at(-1), `${file}: 5 more lines are left out`)
})

test('nothing to replay, and what does not go together', async (t) => {
  const { at, replay, run } = workbench(t)
  const policy = at('p.yaml', OLD)
  const empty = await replay(at('s.jsonl', 'nothing\n'), policy)
  assert.equal(empty.exitCode, 1)
  assert.match(empty.out, /^0 Sightings: 0 changed, 0 unchanged/m)
  const missing = await replay('/there/is/none.jsonl', policy)
  assert.equal(missing.exitCode, 1)
  assert.match(missing.err, /\/there\/is\/none\.jsonl: no such file/)
  const bad = await replay(at('s.jsonl', ''), policy, ['--against', at('bad.yaml', 'rules: 1\n')])
  assert.match(bad.err, /bad\.yaml:1:1: rules: is 1; expected a list of rules/)
  assert.equal((await run(['--against', policy])).exitCode, 2)
  assert.equal((await run(['--explain', policy, '--replay', policy])).exitCode, 2)
})

function lines(sightings: readonly Partial<Sighting>[]): string {
  return sightings.map((each, index) => `${JSON.stringify({ ...sighting(index), ...each })}\n`).join('')
}

function workbench(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-replay-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const run = async (argv: readonly string[]) => {
    const io = memoryIo()
    const exitCode = await runCli(COMMANDS, ['check', ...argv], io)
    return { exitCode, out: io.out, err: io.err }
  }
  return {
    run,
    at(name: string, text: string): string {
      const file = join(folder, name)
      writeFileSync(file, text)
      return file
    },
    replay: (file: string, policy: string, more: readonly string[] = []) =>
      run(['--replay', file, '--policy', policy, ...more]),
  }
}
