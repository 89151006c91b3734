import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { completion } from '../../src/commands/completion.ts'
import { help } from '../../src/commands/help.ts'
import { Guide } from '../../src/shared/guide.ts'
import type { CommandEntry } from '../../src/terminal/command.ts'
import type { Io } from '../../src/terminal/io.ts'
import { markdownPage } from '../../src/terminal/markdown-page.ts'
import { GATEHOUSE } from '../e2e/programs.ts'
import { memoryIo } from './memory-io.ts'

const FERRY = `# The ferry

It crosses the [river](river.md) with \`gatehouse top\`, see [it](https://ferry.example).

## Timetable

| hour | place |
|---|---|
| 7 | North bank, and in summer also the small landing stage at the mill |
`

/** A manual with these pages, and the commands `top` and `help`. */
function folderWith(t: Test): string {
  const folder = t.testdir({
    'README.md': '# Settings\n\nEvery setting.\n',
    'METRICS.md': '# Metrics\n\nEvery metric.\n',
  })
  mkdirSync(join(folder, 'guide'))
  writeFileSync(
    join(folder, 'guide/README.md'),
    '# Manual\n\n| page | for |\n|---|---|\n| [top.md](top.md) | seeing |\n',
  )
  writeFileSync(join(folder, 'guide/ferry.md'), FERRY)
  writeFileSync(join(folder, 'guide/top.md'), '# Top\n\nWhat to watch.\n')
  return folder
}

async function run(t: Test, argv: readonly string[], settings: Partial<Io> = {}) {
  const guide = new Guide(folderWith(t))
  const io = memoryIo('', settings)
  const entries: CommandEntry[] = [
    ...COMMANDS.filter(({ name }) => name === 'top' || name === 'keys'),
    { name: 'help', summary: 'Show help', load: async () => help(entries, guide) },
    { name: 'completion', summary: 'Print a script', load: async () => completion(entries) },
  ]
  const exitCode = await runCli(entries, argv, io)
  return { exitCode, out: io.out, err: io.err, folder: guide.pages[0]!.file }
}

test('a topic: the page as it is for a pipe', async (t) => {
  assert.deepEqual((await run(t, ['help', 'ferry'])).out, FERRY)
  assert.match((await run(t, ['help', 'settings'])).out, /^# Settings/)
})

test('a topic: formatted and wrapped on a terminal', async () => {
  const page = markdownPage(FERRY, memoryIo('', { columns: 40 }))
  assert.equal(
    page,
    `The ferry

It crosses the river (help river) with
\`gatehouse top\`, see it
(https://ferry.example).

Timetable

hour  place
7     North bank, and in summer also the
      small landing stage at the mill
`,
  )
  assert.match(
    markdownPage('[Top](top.md)', memoryIo(), (topic) => `${topic}.md`),
    /^Top \(help top\.md\)$/m,
  )
  const coloured = markdownPage(FERRY, memoryIo('', { colour: true }))
  assert.ok(coloured.includes('\x1b[1m\x1b[4mThe ferry\x1b[24m\x1b[22m'), coloured)
  assert.ok(coloured.includes('\x1b[36mgatehouse\x1b[39m \x1b[36mtop\x1b[39m'))
})

test('a table that is too wide becomes lists', async () => {
  const table =
    '| setting | takes | meaning |\n|---|---|---|\n| `a.long.name` | HOST:PORT or a list of them | It is used. |\n'
  assert.equal(
    markdownPage(table, memoryIo('', { columns: 50 })),
    '`a.long.name`\n    takes: HOST:PORT or a list of them\n    meaning: It is used.\n',
  )
})

test('a topic on a terminal goes through the pager', async () => {
  const program = `import { showPaged } from ${JSON.stringify(new URL('../../src/terminal/pager.ts', import.meta.url).href)}
    await showPaged('a page\\n', { isTerminal: true, env: { PATH: process.env.PATH, PAGER: process.env.PAGER }, stdout: process.stdout })`
  const shown = (PAGER: string) => {
    const argv = ['--input-type=module', '--eval', program]
    const { stdout, stderr } = spawnSync(process.execPath, argv, {
      encoding: 'utf8',
      env: { ...process.env, PAGER },
    })
    assert.equal(stderr, '')
    return stdout
  }
  assert.equal(shown('sed s/^/pager:/'), 'pager:a page\n')
  // Without a pager the page is still shown.
  assert.equal(shown(''), 'a page\n')
  assert.equal(shown('no-such-pager'), 'a page\n')
  // A reader who leaves early.
  assert.equal(shown('true'), '')
})

test('a command that has a topic: its help, and where the page is', async (t) => {
  const { exitCode, out } = await run(t, ['help', 'top'])
  assert.equal(exitCode, 0)
  assert.match(out, /^Usage: gatehouse top[\s\S]*\nA page of the manual: gatehouse help top\.md\n$/)
  assert.match((await run(t, ['help', 'top.md'])).out, /^# Top\n/)
  assert.match((await run(t, ['help', 'keys', 'create'])).out, /^Usage: gatehouse keys create/)
})

test('an unknown topic gets the nearest names, or the pages about it', async (t) => {
  const said = async (...argv: string[]) => {
    const { exitCode, err } = await run(t, ['help', ...argv])
    assert.equal(exitCode, 2)
    return err.replace('; see "gatehouse help --help"\n', '')
  }
  assert.equal(await said('fery'), 'gatehouse help: unknown command or topic "fery" (did you mean "ferry"?)')
  assert.equal(await said('kyes'), 'gatehouse help: unknown command or topic "kyes" (did you mean "keys"?)')
  assert.equal(
    await said('timetable'),
    'gatehouse help: unknown command or topic "timetable"; these topics have a section about it: ferry',
  )
  assert.equal(await said('xyzzy'), 'gatehouse help: unknown command or topic "xyzzy"')
  assert.equal(await said('ferry', 'x'), 'gatehouse help: unexpected operand "x"')
})

test('help lists the topics, and completion offers them', async (t) => {
  const io = memoryIo()
  await runCli(COMMANDS, ['help'], io)
  assert.match(io.out, /\nTopics:\n {2}what-the-app-sees /)
  for (const { topic } of new Guide().pages) assert.ok(io.out.includes(`\n  ${topic} `), topic)
  // Once, although it is also a command.
  assert.equal(
    (await run(t, ['completion', 'bash'])).out.match(/words='[^']*\btop\b[^']*\bferry\b[^']*'/g)?.length,
    1,
  )
  for (const shell of ['bash', 'zsh', 'fish'])
    assert.match((await run(t, ['completion', shell])).out, /keys help completion ferry settings metrics/)
})

test('the program finds the manual in its package', async () => {
  const { status, stdout } = spawnSync(process.execPath, [GATEHOUSE, 'help', 'policy'], { encoding: 'utf8' })
  assert.equal(status, 0)
  assert.equal(stdout, readFileSync('config/guide/policy.md', 'utf8'))
})

test('every page of the manual fits on a terminal', async () => {
  const guide = new Guide()
  for (const page of guide.pages) {
    assert.ok(page.title !== page.topic && page.about.length > 10, page.topic)
    const lines = markdownPage(guide.text(page), memoryIo('', { columns: 80 })).split('\n')
    assert.ok(lines.length > 5, page.topic)
  }
})
