import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'tap'
import { aloneOf, groupsOf, longestFirst } from './groups.ts'
import { ranking, recordOf, timesIn } from './report-times.ts'
import { TIMES_VARIABLE } from './test-times.ts'

test('every file is in one group of at most twelve of its folder', async () => {
  const files = globSync('test/**/*.test.ts').sort()
  const groups = [...groupsOf(files)]
  assert.deepEqual(groups.flatMap(([, members]) => members).sort(), files)
  for (const [name, members] of groups) {
    assert.ok(members.length <= 12, name)
    assert.ok(
      members.every((file) => dirname(file).replaceAll('/', '-') === name.replace(/-\d+$/, '')),
      name,
    )
  }
})

test('the group that takes longest is the first', async () => {
  const groups = new Map([
    ['short', ['a', 'unknown']],
    ['long', ['b', 'c']],
    ['longest', ['d']],
  ])
  const names = longestFirst(groups, { a: 2, b: 4, c: 5, d: 10 }).map(([name]) => name)
  assert.deepEqual(names, ['longest', 'long', 'short'])
  assert.deepEqual(
    [...aloneOf(['test/e2e/chaos.full.test.ts'])],
    [['test-e2e-chaos.full.test', ['test/e2e/chaos.full.test.ts']]],
  )
})

test('times of files are ranked and recorded', async () => {
  const lines = [
    { file: 'test/a.test.ts', cpuS: 3, wallS: 4 },
    { file: '.tap/groups/001-test-1.mjs', cpuS: 8, wallS: 9 },
    { file: 'test/b.test.ts', cpuS: 5, wallS: 40 },
    { file: 'test/c.test.ts', cpuS: 1, wallS: 1.4 },
    { file: 'test/a.test.ts', cpuS: 3, wallS: 6 },
  ]
  const times = timesIn(lines.map((line) => JSON.stringify(line)).join('\n'))
  assert.deepEqual(recordOf(times), { 'test/a.test.ts': 6, 'test/b.test.ts': 40 })
  const [first, second] = ranking(times, 2).split('\n')
  assert.match(first!, /^ +8\.0 s +9\.0 s .*001-test-1\.mjs$/)
  assert.match(second!, /^ +5\.0 s +40\.0 s .*b\.test\.ts$/)
})

test('each file has its tests and its end to itself', async (t) => {
  const folder = t.testdir({
    'one.mjs': `import { after, test } from 'tap'
after(() => console.log('one has ended'))
test('good', async (t) => t.ok(true))
test('skipped', { skip: 'not here' }, () => undefined)`,
    'two.mjs': `import { test } from 'tap'
test('bad', async (t) => t.ok(false))
test('after the bad', async (t) => t.ok(true))`,
    'three.mjs': '// none',
    'four.mjs': 'throw new Error("at its top")',
    'five.mjs': `import { test } from 'tap'
console.log('five begins')
test('good', (t) => { t.ok(true); t.end() })`,
  })
  const names = ['one', 'two', 'three', 'four', 'five']
  const files = names.map((name) => join(folder, `${name}.mjs`))
  const { stdout, status } = spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import { runFiles } from './test/groups/run-files.ts'\nawait runFiles(${JSON.stringify(files)})`,
    ],
    { encoding: 'utf8', env: { ...process.env, TAP: '1', [TIMES_VARIABLE]: undefined } },
  )
  assert.equal(status, 1)
  const outcomes = stdout.match(/^(not )?ok \d+ - .*$/gm)!.map((line) => line.replace(/ # time.*| \{$/, ''))
  assert.deepEqual(
    outcomes,
    files.map((file, index) => `${index % 4 === 0 ? 'ok' : 'not ok'} ${index + 1} - ${file}`),
  )
  assert.match(stdout, /three.mjs has no test/)
  assert.match(stdout, /at its top/)
  assert.match(stdout, / {4}ok 2 - after the bad/)
  assert.ok(stdout.indexOf('one has ended') < stdout.indexOf('five begins'))
})
