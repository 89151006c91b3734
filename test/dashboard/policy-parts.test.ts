import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import type { Request } from '../../src/dashboard/api/operations.ts'
import { recorded, writtenRequest } from '../../src/dashboard/pages/policy/described.ts'
import { type DiffLine, diffOf, shortened } from '../../src/dashboard/pages/policy/diff.ts'
import { conditionsOf, withMadeRule, withoutTrial } from '../../src/dashboard/parts/made-rule.ts'
import { effectOf } from '../../src/dashboard/pages/policy/effect.ts'
import { readWritten, writtenAs } from '../../src/dashboard/pages/policy/written.ts'
import { timeBox } from '../time-box.ts'

test('a diff gives both texts, and no more changes than there are', async () => {
  const of = (lines: readonly DiffLine[], other: DiffLine['kind']) =>
    lines.flatMap(({ kind, text }) => (kind === other ? [] : [text])).join('\n')
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 })
    .map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffOf(before, after)
      assert.equal(of(lines, 'added'), before)
      assert.equal(of(lines, 'removed'), after)
      if (before === after) assert.ok(lines.every(({ kind }) => kind === 'same'))
    }),
    timeBox(5_000, 1_000),
  )
  assert.deepEqual(diffOf('a\nb\nc', 'a\nx\nc'), [
    { kind: 'same', text: 'a' },
    { kind: 'removed', text: 'b' },
    { kind: 'added', text: 'x' },
    { kind: 'same', text: 'c' },
  ])
  const long = Array.from({ length: 5_000 }, (_, line) => `${line}`).join('\n')
  assert.equal(diffOf(long, long.replace('2500', 'x')).filter(({ kind }) => kind !== 'same').length, 2)
  assert.equal(diffOf(long, long.replaceAll('1', 'x')).length > 5_000, true)
})

test('of a long diff what changed is left, with what is around it', async () => {
  const before = Array.from({ length: 100 }, (_, line) => `${line}`)
  const after = before.with(50, 'x')
  const shown = shortened(diffOf(before.join('\n'), after.join('\n')), 1)
  assert.deepEqual(
    shown.map((line) => line?.text ?? null),
    [null, '49', '50', 'x', '51', null],
  )
})

test('a recorded request is explained with the purposes of its agent', async () => {
  const request = {
    ...{ method: 'GET', host: 'app.test', path: '/', user_agent: 'Bot/1.0', address: '192.0.2.1' },
    ...{
      verdict: 'agent',
      agent_id: 'bot',
      agent_category: 'crawler',
      agent_purpose: ['search', 'training'],
    },
    fingerprints: { ja4: '', ja4s: '', ja4h: '', ja4x: '' },
  } as unknown as Request
  const written = writtenRequest(recorded(request))
  assert.ok(typeof written !== 'string')
  const agent = { id: 'bot', category: 'crawler', purpose: ['search', 'training'] }
  assert.deepEqual(written.verdict, { kind: 'agent', agent })
  const unknown = writtenRequest(recorded({ ...request, agent_purpose: [] }))
  assert.ok(typeof unknown !== 'string')
  assert.deepEqual(unknown.verdict, { kind: 'agent', agent: { id: 'bot', category: 'crawler' } })
})

test('reads a policy from YAML or JSON, or says in which lines it is invalid', async () => {
  const json = readWritten('{"rules": []}')
  assert.ok(json.kind === 'policy')
  assert.deepEqual(json.policy, { rules: [] })
  for (const [text, line] of [
    ['{\n  "rules": [\n}', 3],
    ['rules:\n  - name: x\n    when: {a: [}\n', 3],
    ['rules: []\nrules: []', 2],
    ['a: 1\n---\nb: 2', 2],
    ['[]', 1],
    ['null', 1],
    ['', 1],
    ['# nothing', 1],
  ] as const) {
    const written = readWritten(text)
    assert.ok(written.kind === 'wrong', text)
    assert.equal(written.problems[0]!.line, line, text)
  }
  const written = readWritten('# why\nrules:\n  - name: x\n    when: {category: crawlr}\n    action: block\n')
  assert.ok(written.kind === 'policy')
  const lines = ['/rules/0/when/category', '/rules/0/action', '/rules/0/none', ''].map(written.lineOf)
  assert.deepEqual(lines, [4, 5, 3, 2])
})

test('any policy is read as it was written', async () => {
  const shared = ['a']
  assert.doesNotMatch(writtenAs({ rules: [{ when: shared }, { when: shared }] }), /[&*]/)
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (policy) => {
      const plain = JSON.parse(JSON.stringify(policy))
      const written = readWritten(writtenAs(plain))
      assert.ok(written.kind === 'policy', writtenAs(plain))
      assert.deepEqual(written.policy, plain)
    }),
    timeBox(5_000, 1_000),
  )
})

test('a valid policy that stops requests is shown as a warning, with how many', async () => {
  const change = (from: string, to: string, count: number) => ({ from, to, count })
  const passing = effectOf({
    sightings: 10,
    transitions: [change('block', 'pass', 3), change('pass', 'tag', 2)],
    verdicts: [],
  })
  assert.deepEqual(passing, { look: 'good', text: 'Valid policy.' })
  assert.deepEqual(effectOf({ sightings: 0, transitions: [], verdicts: [] }), passing)
  const { look, text } = effectOf({
    sightings: 100,
    transitions: [
      change('tag', 'block 403', 40),
      change('pass', 'tarpit', 1),
      change('block 404', 'tarpit 2000ms', 9),
    ],
    verdicts: [
      { name: 'human', ...change('tag', 'block 403', 2) },
      { name: 'human', ...change('block 404', 'tarpit 2000ms', 9) },
      { name: 'agent', ...change('tag', 'block 403', 38) },
    ],
  })
  assert.equal(look, 'warn')
  assert.match(
    text,
    /^Valid policy\. It stops 41 of 100 recorded requests \(41 %\) .*, 2 of them from people\.$/,
  )
})

test('a rule for filters of requests stands first in the policy, on trial, under a name of its own', async () => {
  assert.deepEqual(conditionsOf({ agent_id: 'gptbot', verified: 'false', http_version: '2', host: '' }), {
    agent: 'gptbot',
    verified: false,
  })
  assert.deepEqual(conditionsOf({ verified: 'ip-range' }), { verified: 'ip-range' })
  assert.equal(conditionsOf({ path: '/reset/[redacted]', rule: 'x' }), null)
  const rule = { name: 'gptbot', when: { agent: 'gptbot' }, action: 'block', dry_run: true }
  const text = JSON.stringify({ agent: 'gptbot' })
  assert.deepEqual(withMadeRule({}, text), { name: 'gptbot', policy: { rules: [rule] } })
  const other = { name: 'gptbot', when: {}, action: 'tag', dry_run: true }
  const second = { ...rule, name: 'gptbot 2' }
  const made = withMadeRule({ first: [other], otherwise: 'tag' }, text)!
  assert.deepEqual(made.policy, { first: [other], otherwise: 'tag', last: [second] })
  const { dry_run: _, ...decided } = second
  assert.deepEqual(withoutTrial(made.policy, made.name), { ...made.policy, last: [decided] })
  const named = withMadeRule({ rules: [] }, JSON.stringify({ host: 'ä"<>'.repeat(99), path: '/a/b' }))!
  assert.match(named.name, /^[A-Za-z0-9 ._:/-]{1,64}$/)
  for (const wrong of ['', '[]', '1', '{', 'null']) assert.equal(withMadeRule({}, wrong), null, wrong)
})
