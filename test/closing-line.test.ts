import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { COUNTS_VARIABLE, closingLine, sumOf } from './closing-line.ts'

test('leaves are counted, and the closing line stands alone at the end', async () => {
  const lines = reported(`TAP version 14
1..2
# Subtest: test/a.test.ts
    # Subtest: with node:assert
        1..0
    ok 1 - with node:assert # time=3.9ms
    # Subtest: with two assertions of tap
        ok 1 - one
        ok 2 - two
        1..2
    ok 2 - with two assertions of tap # time=1ms
    ok 3 - zsh completes # SKIP zsh is not installed
    ok 4 - some day # TODO when there is time
    1..4
ok 1 - test/a.test.ts # time=812ms
# Subtest: test/b.test.ts
    # Subtest: with node:assert
        not ok 1 - one is not two
          ---
          stack: |
            test/b.test.ts:5:37
          source: |
            assert.equal(1, 2)
          ...
        1..1
    not ok 1 - with node:assert # time=14ms
    1..1
not ok 2 - test/b.test.ts # time=49ms
`)
  assert.deepEqual(lines, [
    'ok     test/a.test.ts (0.8 s)',
    'FAILED test/b.test.ts (0.0 s)',
    '',
    '  test/b.test.ts > with node:assert > one is not two',
    '    stack: test/b.test.ts:5:37',
    '',
    'skipped test/a.test.ts > zsh completes: zsh is not installed',
    'skipped test/a.test.ts > some day: when there is time',
    'FAILED test/b.test.ts > with node:assert > one is not two',
    '',
    '3 passed, 1 failed, 2 skipped',
  ])
})

test('files that share a process are told one by one', async () => {
  const lines = reported(`TAP version 14
1..3
# Subtest: .tap/groups/manage-1.mjs
    # Subtest: test/manage/a.test.ts
        # Subtest: works
            ok 1 - one
            1..1
        ok 1 - works # time=1ms
        1..1
    ok 1 - test/manage/a.test.ts # time=200ms
    # Subtest: test/manage/b.test.ts
        not ok 1 - two
        1..1
    not ok 2 - test/manage/b.test.ts # time=300ms
    1..2
not ok 1 - .tap/groups/manage-1.mjs # time=900ms
# Subtest: .tap/groups/wire-1.mjs
    # Subtest: test/wire/c.test.ts
        ok 1 - three # SKIP no
        1..1
    ok 1 - test/wire/c.test.ts # time=100ms
    1..1
ok 2 - .tap/groups/wire-1.mjs # time=900ms
not ok 3 - .tap/groups/wire-2.mjs # time=400ms
  ---
  exitCode: 3
  ...
`)
  assert.deepEqual(lines, [
    'ok     test/manage/a.test.ts (0.2 s)',
    'FAILED test/manage/b.test.ts (0.3 s)',
    '',
    '  test/manage/b.test.ts > two',
    '',
    'FAILED .tap/groups/manage-1.mjs (0.9 s)',
    'ok     test/wire/c.test.ts (0.1 s)',
    'FAILED .tap/groups/wire-2.mjs (0.4 s)',
    '',
    '  .tap/groups/wire-2.mjs',
    '    exitCode: 3',
    '',
    'skipped test/wire/c.test.ts > three: no',
    'FAILED test/manage/b.test.ts > two',
    'FAILED .tap/groups/wire-2.mjs',
    '',
    '1 passed, 2 failed, 1 skipped',
  ])
})

test('a file that dies after its tests have passed is a failure', async () => {
  const lines = reported(`TAP version 14
1..1
# Subtest: test/a.test.ts
    ok 1 - fine
    1..1
not ok 1 - test/a.test.ts # time=49ms
  ---
  exitCode: 3
  ...
`)
  assert.deepEqual(lines, [
    'FAILED test/a.test.ts (0.0 s)',
    '',
    '  test/a.test.ts',
    '    exitCode: 3',
    '',
    'FAILED test/a.test.ts',
    '',
    '1 passed, 1 failed, 0 skipped',
  ])
})

test('a run that ends before its plan is fulfilled is a failure', async () => {
  for (const cutShort of [
    '',
    'TAP version 14\n1..2\nok 1 - test/a.test.ts\n',
    'TAP version 14\nBail out! no room\n',
  ]) {
    assert.match(reported(cutShort).at(-1)!, /^\d passed, 1 failed, 0 skipped$/)
  }
})

test('what a test prints by itself is passed on', async () => {
  const lines = reported('TAP version 14\n1..1\n# Subtest: a\n    hello\n    ok 1 - x\n    1..1\nok 1 - a\n')
  assert.deepEqual(lines.map((line) => line.trim()).slice(0, 2), ['hello', 'ok     a'])
})

test('with a file for the counts, they are added to it and no closing line is printed', async (t) => {
  const before = '{"passed":1,"failed":0,"skipped":0,"failedFiles":[]}\n'
  const file = join(t.testdir({ counts: before }), 'counts')
  const tap = `TAP version 14
1..1
# Subtest: test/a.test.ts
    ok 1 - x
    not ok 2 - y > z
    not ok 3 - w
    1..3
not ok 1 - test/a.test.ts
`
  reported(tap, { [COUNTS_VARIABLE]: file })
  assert.deepEqual(sumOf(readFileSync(file, 'utf8')), {
    passed: 2,
    failed: 2,
    skipped: 0,
    failedFiles: ['test/a.test.ts'],
  })
  assert.equal(closingLine({ passed: 2, failed: 0, skipped: 1 }), '2 passed, 0 failed, 1 skipped')
})

function reported(tap: string, env: NodeJS.ProcessEnv = {}): string[] {
  const { stdout, stderr } = spawnSync(process.execPath, ['test/closing-line.ts'], {
    input: tap,
    encoding: 'utf8',
    env: { ...process.env, [COUNTS_VARIABLE]: undefined, ...env },
  })
  assert.equal(stderr, '')
  return stdout.trimEnd().split('\n')
}
