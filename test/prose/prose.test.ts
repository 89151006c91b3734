import assert from 'node:assert/strict'
import { test } from 'tap'
import { COMMENT_LINES_MAX, idiomsIn, longCommentsIn, subjectProblem } from './rules.ts'

test('idioms are found with their line and what to write instead', async () => {
  assert.deepEqual(idiomsIn('Fine.\nWhoever asks, it is held for a bot.'), [
    { line: 2, found: 'Whoever', advice: 'name the subject: the client, the caller, an admin, no one' },
    { line: 2, found: 'held for', advice: 'is classified as' },
  ])
  for (const text of [
    'a policy that is none',
    'it says to be Chrome',
    'said to be Chrome',
    'this cannot be had',
    'he is a crawler',
    'it is no setting',
    'what is not there',
    'by way of NATS',
    'for all that follows',
    'is sent to whom?',
    'who has signed it',
    'by what came of them',
    'the set is made anew',
    "'takes a list of keys'",
    'a certificate will disappoint',
  ])
    assert.equal(idiomsIn(text).length, 1, text)
})

test('some rules are only for code', async () => {
  assert.equal(idiomsIn('what becomes of a request', true).length, 1)
  assert.deepEqual(idiomsIn('what becomes of a request', false), [])
})

test('plain English passes', async () => {
  for (const text of [
    'There is no database yet.',
    'The setting is no longer used.',
    'If the database is unreachable, ready answers 503.',
    'The client that signs the request has a key.',
    'users who sign in',
    'const nobodyElse = 1',
    'who: string',
  ])
    assert.deepEqual(idiomsIn(text), [], text)
})

test('a comment is short, unless it is the first of its file', async () => {
  const block = (lines: number) => `/**\n${' * why\n'.repeat(lines)} */\n`
  const slashes = (lines: number) => '// why\n'.repeat(lines)
  const long = COMMENT_LINES_MAX + 1
  assert.deepEqual(longCommentsIn(block(long)), [])
  assert.deepEqual(longCommentsIn(`${block(long)}const a = 1\n${block(COMMENT_LINES_MAX)}`), [])
  for (const comment of [block(long), slashes(long)]) {
    const [finding, ...others] = longCommentsIn(`/** First. */\nconst a = 1\n${comment}const b = 2\n`)
    assert.deepEqual(others, [])
    assert.equal(finding?.line, 3)
    assert.match(finding.found, /of 6 lines/)
  }
})

test('a commit subject is `area: imperative`, short and without commas', async () => {
  assert.equal(subjectProblem('proxy: reject methods that differ only by case'), null)
  assert.equal(subjectProblem('test/prose: check commit subjects'), null)
  assert.match(subjectProblem('reject methods')!, /form/)
  assert.match(subjectProblem('proxy: reject this, and that')!, /comma/)
  assert.match(subjectProblem(`proxy: ${'x'.repeat(60)}`)!, /67 characters, at most 60/)
})
