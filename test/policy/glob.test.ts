import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { asBytes, Glob } from '../../src/policy/glob.ts'
import { ANY_CHARACTER } from '../any-character.ts'

test('what stars stand for', async () => {
  const cases: readonly (readonly [pattern: string, yes: readonly string[], no: readonly string[]])[] = [
    ['', [''], ['a']],
    ['*', ['', 'a', '\xff'], []],
    ['**', ['', 'a'], []],
    ['a', ['a'], ['', 'A', 'aa', 'b']],
    ['a*', ['a', 'ab', 'aa'], ['', 'ba']],
    ['*a', ['a', 'ba'], ['', 'ab']],
    ['*a*', ['a', 'bab'], ['', 'b']],
    ['ab*ba', ['abba', 'abxba'], ['aba', 'ab', 'ba', 'abb']],
    ['a*b*c', ['abc', 'a_b_c', 'abbcbc'], ['ac', 'acb', 'abcd']],
    ['*aab*', ['aaab', 'aabaab', 'aaaaaabx'], ['aaaa', 'abab']],
    ['*.example.test', ['a.example.test', '.example.test'], ['example.test', 'example.test.x']],
  ]
  for (const [pattern, yes, no] of cases) {
    const glob = Glob.parse(pattern, 'exact')
    for (const text of yes) assert.ok(glob.matches(text), `${pattern} on ${text}`)
    for (const text of no) assert.ok(!glob.matches(text), `${pattern} on ${text}`)
  }
})

test('case: as it is, or none at all', async () => {
  assert.ok(Glob.parse('*GptBot/*', 'ignore-case').matches('mozilla gptbot/1'))
  assert.ok(!Glob.parse('*GptBot/*', 'exact').matches('mozilla gptbot/1'))
  assert.ok(Glob.parse('*GptBot/*', 'exact').matches('Mozilla GptBot/1'))
})

test('a pattern is text, and what it is held against is its bytes', async () => {
  assert.ok(Glob.parse('/\u00fcber*', 'exact').matches(Buffer.from('/\u00fcber/x').toString('latin1')))
  assert.ok(!Glob.parse('/\u00fcber*', 'exact').matches('/\u00fcber/x'))
  assert.ok(!Glob.parse('*a*', 'exact').matches('\u0161\u4e61'), 'nothing wraps around beyond a byte')
})

test('only the part asked about is looked at', async () => {
  const glob = Glob.parse('b*d', 'exact')
  assert.ok(glob.matches('abcde', 1, 4))
  assert.ok(!glob.matches('abcde', 1, 3))
  assert.ok(!glob.matches('abcde', 0, 4))
  assert.ok(!Glob.parse('*de*', 'exact').matches('abcde', 0, 4))
  assert.ok(!Glob.parse('bc*cd', 'exact').matches('abcd', 1, 4), 'ends do not overlap')
})

test('agrees with a slow model', async () => {
  const letters = (alphabet: string[], maxLength: number) =>
    fc.array(fc.constantFrom(...alphabet), { maxLength }).map((all) => all.join(''))
  fc.assert(
    fc.property(letters(['a', 'b', 'B', '*'], 12), letters(['a', 'b', 'A', 'B'], 30), (pattern, text) => {
      assert.equal(Glob.parse(pattern, 'exact').matches(text), model(pattern, text))
      const ignoring = model(pattern.toLowerCase(), text.toLowerCase())
      assert.equal(Glob.parse(pattern, 'ignore-case').matches(text.toLowerCase()), ignoring)
    }),
    { numRuns: 5000 },
  )
  fc.assert(
    fc.property(fc.string({ unit: ANY_CHARACTER, maxLength: 20 }), (text) => {
      assert.ok(Glob.parse(text.replaceAll('*', ''), 'exact').matches(asBytes(text.replaceAll('*', ''))))
    }),
  )
})

test('the worst patterns finish, because matching is linear', async () => {
  const text = 'a'.repeat(16_777_216)
  assert.ok(!Glob.parse(`*${'aaaaaaab*'.repeat(20)}`, 'exact').matches(text))
  assert.ok(!Glob.parse(`${'a*'.repeat(200)}b*a`, 'exact').matches(text))
  assert.ok(Glob.parse(`*${'a*'.repeat(200)}`, 'exact').matches(text))
})

/** Says nothing about speed: tries every way. */
function model(pattern: string, text: string): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return text === ''
  const tail = rest.join('')
  if (first !== '*') return text[0] === first && model(tail, text.slice(1))
  const reachable = tail.replaceAll('*', '').length
  for (let skipped = 0; skipped + reachable <= text.length; skipped++)
    if (model(tail, text.slice(skipped))) return true
  return false
}
