import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { test } from 'tap'
import { offersAt } from '../../src/dashboard/pages/policy/text/complete.ts'
import { placeIn } from '../../src/dashboard/pages/policy/text/place.ts'
import { CONDITIONS, VALUES } from '../../src/dashboard/pages/policy/text/words.ts'
import { readWritten } from '../../src/dashboard/pages/policy/written.ts'
import { policyProblems, summaryOf, syntaxProblems } from '../../src/dashboard/pages/policy/text/problems.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import { timeBox } from '../time-box.ts'
import { POLICY_WORDS_FILE, policyWordsText } from './policy-words.ts'

const RULE = 'rules:\n  - name: x\n'

/** The caret is at `|`. */
function offers(marked: string, isOfApp = false) {
  const caret = marked.indexOf('|')
  return offersAt(marked.replace('|', ''), caret, isOfApp)
}

function words(marked: string, isOfApp = false): readonly string[] {
  return offers(marked, isOfApp)?.offers.map(({ word }) => word) ?? []
}

test('what the editor completes is what the policy has: npm run openapi', async () => {
  assert.equal(readFileSync(POLICY_WORDS_FILE, 'utf8'), policyWordsText())
  for (const [word, about] of [...CONDITIONS, ...VALUES['purpose']!]) assert.notEqual(about, '', word)
})

test('a place is found in blocks, in brackets and in JSON', async () => {
  for (const [text, path, word] of [
    ['', '', ''],
    ['ru', '', 'ru'],
    ['rules:\n  - ', 'rules/-', ''],
    ['rules:\n- name: x\n  wh', 'rules/-', 'wh'],
    [`${RULE}    when:\n      ca`, 'rules/-/when', 'ca'],
    [`${RULE}\n  # why: x\n    act`, 'rules/-', 'act'],
    [`${RULE}    when:\n      verdict:\n        - ag`, 'rules/-/when/verdict/-', 'ag'],
    [`${RULE}    when: {verdict: [agent, au`, 'rules/-/when/verdict/-', 'au'],
    [`${RULE}    when: {path: /a*, signer: https://x.example/a, ca`, 'rules/-/when', 'ca'],
    [`${RULE}    when:\n      expression: |-\n        a: b\n    act`, 'rules/-', 'act'],
    [`${RULE}otherwise: bl`, 'otherwise', 'bl'],
    ['{"rules": [\n  {"name": "x", "when": {"category": "cr', 'rules/-/when/category', 'cr'],
  ] as const) {
    const place = placeIn(text, text.length)
    assert.deepEqual([place?.path.join('/'), place?.word], [path, word], text)
  }
  for (const text of [
    '# ru',
    'rules: # x',
    `${RULE}    when:\n      expression: |\n        a`,
    'when: {a: b}',
    'a: "b" ',
  ])
    assert.equal(placeIn(text, text.length), null, text)
})

test('a place is found in any text, and its word ends at the caret', async () => {
  const piece = fc.constantFrom(
    'rules',
    ':',
    ' ',
    '\n',
    '  ',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ',',
    '"',
    "'",
    '#',
    '|',
    'é',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), fc.nat(100), (pieces, at) => {
      const text = pieces.join('')
      const caret = Math.min(at, text.length)
      const place = placeIn(text, caret)
      if (place !== null) assert.equal(text.slice(place.from, caret), place.word)
      offersAt(text, caret, false)
    }),
    timeBox(5_000, 2_000),
  )
  const deep = '{"a": ['.repeat(20_000)
  assert.equal(placeIn(deep, deep.length)?.path.length, 40_000)
})

test('keys are offered where a mapping has none of them yet', async () => {
  assert.deepEqual(words('|'), ['rules', 'first', 'last', 'otherwise', 'unknown_signer'])
  assert.deepEqual(words('|', true), ['rules', 'otherwise', 'unknown_signer'])
  assert.deepEqual(words('first: |', true), [])
  assert.deepEqual(words(`${RULE}    |`), ['when', 'action', 'dry_run', 'expires'])
  assert.ok(words(`${RULE}    when: {verdict: agent, |`).includes('category'))
  assert.ok(!words(`${RULE}    when: {verdict: agent, |`).includes('verdict'))
  assert.ok(!words(`${RULE}    when: {not: {|`).includes('not'))
  assert.ok(words(`${RULE}    action: {charge: {free: {|`).includes('requests'))
  assert.deepEqual(words(`${RULE}    nonsense:\n      |`), [])
  const about = offers(`${RULE}    |`)!.offers.find(({ word }) => word === 'dry_run')!.about
  assert.match(about, /^On trial/)
})

test('closed vocabularies are offered, and each of their words is valid', async () => {
  assert.deepEqual(words(`${RULE}    when:\n      verdict: |`), ['agent', 'automation', 'human', 'unknown'])
  assert.deepEqual(words(`${RULE}    when: {not: {forged: |`), ['true', 'false'])
  assert.deepEqual(words(`${RULE}    action: |`), ['pass', 'tag', 'block', 'tarpit'])
  assert.ok(words(`${RULE}    action: {block: {status: |`).includes('451'))
  assert.deepEqual(words(`${RULE}    action: {rate_limit: {then: |`), ['block', 'tarpit'])
  assert.deepEqual(words('unknown_signer: |'), ['pass'])
  let count = 0
  for (const [name] of CONDITIONS)
    for (const word of words(`${RULE}    when: {${name}: |`)) {
      const text = `${RULE}    when: {${name}: ${word}}\n    action: tag\n`
      const written = readWritten(text)
      assert.ok(written.kind === 'policy')
      parsePolicy(written.policy)
      count++
    }
  assert.ok(count > 100)
})

test('what is inserted is YAML where it stands', async () => {
  const inserted = (marked: string, word: string) => {
    const found = offers(marked)!
    const offer = found.offers.find((each) => each.word === word)!
    return marked.slice(0, found.from) + offer.text + marked.slice(marked.indexOf('|') + 1)
  }
  assert.equal(inserted('ru|', 'rules'), 'rules:\n  - ')
  assert.equal(inserted('rules:\n  - na|', 'name'), 'rules:\n  - name: ')
  assert.equal(inserted(`${RULE}    wh|`, 'when'), `${RULE}    when:\n      `)
  assert.equal(inserted(`${RULE}    ac|`, 'action'), `${RULE}    action: `)
  assert.equal(inserted(`${RULE}    when: {ca|}`, 'category'), `${RULE}    when: {category: }`)
  assert.equal(inserted('{"rules": [{"na|"', 'name'), '{"rules": [{"name"')
})

test('ids are asked for where agents or software are named', async () => {
  const found = offers(`${RULE}    when:\n      agent: [gptbot, "claude|`)!
  assert.deepEqual([found.idsLike, found.writtenId('a: b')], ['claude', 'a: b'])
  const plain = offers(`${RULE}    when: {software: cu|`)!
  assert.equal(plain.idsLike, 'cu')
  assert.deepEqual(['gptbot', 'true', '1a', 'a: b'].map(plain.writtenId), [
    'gptbot',
    '"true"',
    '"1a"',
    '"a: b"',
  ])
  assert.equal(offers(`${RULE}    when: {verdict: ag|`)!.idsLike, null)
})

test('problems of the text and of the policy are at their lines', async () => {
  const text = `${RULE}    when: {category: crawlr}\n    action: blok\n`
  const written = readWritten(text)
  const errors = [
    { pointer: '/policy/rules/0/when/category', detail: 'unknown category "crawlr"' },
    { pointer: '/policy/rules/0/action', detail: 'is "blok"' },
    { pointer: '/request', detail: 'is of the request' },
  ]
  const problems = policyProblems(written, 'error', errors, '/policy')
  assert.deepEqual(
    problems.map(({ line }) => line),
    [3, 4],
  )
  assert.equal(summaryOf(problems), 'Line 3: unknown category "crawlr" (and 1 more)')
  assert.equal(summaryOf([]), null)
  assert.equal(syntaxProblems(readWritten('a: [\n'))[0]!.severity, 'error')
  assert.deepEqual(syntaxProblems(written), [])
})
