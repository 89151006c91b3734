import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { USAGE } from '../../src/terminal/arguments.ts'
import { runCli } from '../../src/commands/cli.ts'
import { help } from '../../src/commands/help.ts'
import type { CommandAction, Command, CommandEntry } from '../../src/terminal/command.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { completion } from '../../src/commands/completion.ts'
import { wantsColour } from '../../src/terminal/io.ts'
import { Fault } from '../../src/shared/fault.ts'
import { memoryIo } from './memory-io.ts'
import { GATEHOUSE, skipped } from '../e2e/programs.ts'

/** Says on stdout what it was given. */
const scan: CommandAction = {
  name: 'scan',
  summary: 'Scan captures',
  description: [
    'Reads every capture to its end and says what is in it, however long this sentence has to be for it.',
  ],
  operands: [{ name: 'FILE', description: 'A capture', many: true }],
  options: [
    { name: 'json', short: 'j', description: 'Print JSON' },
    { name: 'keylog', short: 'k', value: 'FILE', description: 'TLS secrets' },
    { name: 'form', value: 'FORM', description: 'The form', choices: ['raw', 'hashed'], default: 'hashed' },
  ],
  examples: [{ command: 'scan a.pcap', description: 'One capture' }],
  run: async (given, io) => {
    const { operands } = given
    const seen = {
      operands,
      json: given.flag('json'),
      keylogs: given.values('keylog'),
      form: given.value('form'),
    }
    io.stdout.write(JSON.stringify(seen))
    return 0
  },
}

const keys: Command = {
  name: 'keys',
  summary: "The owner's keys: made and revoked",
  subcommands: [
    { ...scan, name: 'create', operands: [{ name: 'NAME', description: 'Its name' }] },
    {
      ...scan,
      name: 'revoke',
      operands: [{ name: 'WHEN', description: 'Now or later', optional: true, choices: ['now'] }],
    },
  ],
}

const broken: CommandAction = { ...scan, name: 'broken', operands: [] }

const entries: CommandEntry[] = [
  entry(scan),
  entry(keys),
  entry({
    ...broken,
    name: 'fault',
    run: () => Promise.reject(new Fault('NO_FILE', 'cannot read a.pcap: no such file')),
  }),
  entry({
    ...broken,
    name: 'misuse',
    run: () => Promise.reject(new Fault(USAGE, '--json and --form raw exclude each other')),
  }),
  entry({ ...broken, name: 'bug', run: () => Promise.reject(new TypeError('undefined is not a function')) }),
  entry({ ...broken, name: 'curious', run: async (given) => (given.flag('undeclared') ? 0 : 1) }),
  { name: 'help', summary: 'Show the help of a command', load: async () => help(entries) },
  {
    name: 'completion',
    summary: 'Print the completion script of a shell',
    load: async () => completion(entries),
  },
]

const PROGRAM = GATEHOUSE
/** For `env`: tap gives every child a NODE_OPTIONS of its own, which among other things listens for signals. */
const NODE = ['-u', 'NODE_OPTIONS', '-u', 'FORCE_COLOR', process.execPath]

test('a command gets its operands and options', async () => {
  const { exitCode, out } = await run('scan', 'a.pcap', '-jk', 'one', '--keylog=two', '--', '--json')
  assert.deepEqual(JSON.parse(out), {
    operands: ['a.pcap', '--json'],
    json: true,
    keylogs: ['one', 'two'],
    form: 'hashed',
  })
  assert.equal(exitCode, 0)
})

test('a subcommand gets its own', async () => {
  assert.deepEqual(JSON.parse((await run('keys', 'create', 'mine')).out).operands, ['mine'])
  assert.deepEqual(JSON.parse((await run('keys', 'revoke')).out).operands, [])
})

test('- is an operand and a value', async () => {
  const { operands, keylogs } = JSON.parse((await run('scan', '-', '--keylog', '-')).out)
  assert.deepEqual([operands, keylogs], [['-'], ['-']])
})

const MISUSED: readonly (readonly [argv: string, line: string])[] = [
  ['scna', 'gatehouse: unknown command "scna" (did you mean "scan"?); see "gatehouse --help"'],
  ['xyzzy', 'gatehouse: unknown command "xyzzy"; see "gatehouse --help"'],
  ['--verison', 'gatehouse: unknown option --verison (did you mean "--version"?); see "gatehouse --help"'],
  [
    'scan a --jsn',
    'gatehouse scan: unknown option --jsn (did you mean "--json"?); see "gatehouse scan --help"',
  ],
  ['scan a -x', 'gatehouse scan: unknown option -x; see "gatehouse scan --help"'],
  ['scan a --json=yes', 'gatehouse scan: --json takes no value; see "gatehouse scan --help"'],
  ['scan a --keylog', 'gatehouse scan: --keylog needs a value: FILE; see "gatehouse scan --help"'],
  ['scan a --keylog --json', 'gatehouse scan: --keylog needs a value: FILE; see "gatehouse scan --help"'],
  [
    'scan a --form=row',
    'gatehouse scan: --form is one of raw, hashed, not "row" (did you mean "raw"?); see "gatehouse scan --help"',
  ],
  ['scan', 'gatehouse scan: FILE is missing; see "gatehouse scan --help"'],
  ['keys', 'gatehouse keys: needs a subcommand: create, revoke; see "gatehouse keys --help"'],
  [
    'keys creat',
    'gatehouse keys: unknown subcommand "creat" (did you mean "create"?); see "gatehouse keys --help"',
  ],
  ['keys create a b', 'gatehouse keys create: unexpected operand "b"; see "gatehouse keys create --help"'],
  [
    'keys revoke then',
    'gatehouse keys revoke: WHEN is one of now, not "then"; see "gatehouse keys revoke --help"',
  ],
  ['misuse', 'gatehouse misuse: --json and --form raw exclude each other; see "gatehouse misuse --help"'],
]

test('used wrongly: exit code 2, and one line that says what to do', async (t) => {
  for (const [argv, line] of MISUSED) {
    t.test(argv, async () =>
      assert.deepEqual(await run(...argv.split(' ')), { exitCode: 2, out: '', err: `${line}\n` }),
    )
  }
})

test('no command at all: the help on stderr, and exit code 2', async () => {
  const { exitCode, out, err } = await run()
  assert.deepEqual([exitCode, out], [2, ''])
  assert.match(err, /^Usage: gatehouse COMMAND/)
})

test("the world's failure: exit code 1, one line and no stack", async () => {
  assert.deepEqual(await run('fault'), {
    exitCode: 1,
    out: '',
    err: 'gatehouse fault: cannot read a.pcap: no such file\n',
  })
})

test('our failure: exit code 70, and the stack', async () => {
  for (const [command, message] of [
    ['bug', 'TypeError: undefined is'],
    ['curious', 'did not declare: undeclared'],
  ] as const) {
    const { exitCode, err } = await run(command)
    assert.equal(exitCode, 70)
    assert.ok(err.includes(message) && err.includes('    at '), err)
  }
})

test('--help comes first, whatever else is wrong, and loads no command it is not about', async () => {
  const unloadable = entries.map((each) => ({
    ...each,
    load: () => Promise.reject(new Error(`loaded ${each.name}`)),
  }))
  const io = memoryIo()
  assert.equal(await runCli(unloadable, ['--help'], io), 0)
  assert.match(io.out, /^ {2}scan +Scan captures$/m)
  assert.equal((await run('scan', '--nonsense', '--help')).exitCode, 0)
})

test('help of a command, asked for in either way', async () => {
  for (const path of [['scan'], ['keys'], ['keys', 'create']]) {
    const asked = await run(...path, '-h')
    assert.deepEqual(asked, await run('help', ...path))
    assert.deepEqual([asked.exitCode, asked.err], [0, ''])
  }
  assert.deepEqual(await run('help'), await run('--help'))
})

test('help shows everything about a command, wrapped to the width of the terminal', async () => {
  const io = memoryIo('', { columns: 50 })
  await runCli(entries, ['scan', '--help'], io)
  assert.equal(
    io.out,
    `Usage: gatehouse scan [OPTION…] FILE…

Scan captures.

Reads every capture to its end and says what is in
it, however long this sentence has to be for it.

Operands:
  FILE  A capture

Options:
  -j, --json         Print JSON
  -k, --keylog FILE  TLS secrets
      --form FORM    The form: raw, hashed
                     (default: hashed)
  -h, --help         Show this help

Examples:
  gatehouse scan a.pcap  One capture
`,
  )
})

test('help is plain, or bold where colours are wanted', async () => {
  const io = memoryIo('', { colour: true })
  await runCli(entries, ['--help'], io)
  assert.ok(io.out.includes('\x1b[1mCommands:\x1b[22m'))
  assert.ok(!(await run('--help')).out.includes('\x1b'))
})

test('colours: on a terminal, unless the environment says otherwise', async () => {
  assert.equal(wantsColour({}, true), true)
  assert.equal(wantsColour({}, false), false)
  assert.equal(wantsColour({ TERM: 'dumb' }, true), false)
  assert.equal(wantsColour({ NO_COLOR: '1' }, true), false)
  assert.equal(wantsColour({ NO_COLOR: '' }, true), true)
  assert.equal(wantsColour({ FORCE_COLOR: '1' }, false), true)
  assert.equal(wantsColour({ FORCE_COLOR: '0' }, true), false)
  assert.equal(wantsColour({ FORCE_COLOR: '1', NO_COLOR: '1' }, false), true)
})

test('the table says of each command what the command says of itself', async () => {
  for (const { name, summary, load } of COMMANDS) {
    const command = await load()
    assert.deepEqual([command.name, command.summary], [name, summary])
  }
})

test('--version is the one in package.json', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
  assert.deepEqual(await run('--version'), { exitCode: 0, out: `gatehouse ${version}\n`, err: '' })
})

test('started as a program', async (t) => {
  t.test('it prints help without colours, 80 columns wide', async () => {
    const { status, stdout } = gatehouse('--help')
    assert.equal(status, 0)
    assert.ok(!stdout.includes('\x1b') && stdout.split('\n').every((line) => line.length <= 80))
  })

  t.test("its exit code is the command line's", async () => {
    const { status, stderr } = gatehouse('analyse')
    assert.equal(status, 2)
    assert.match(stderr, /^gatehouse: unknown command "analyse" \(did you mean "analyze"\?\)/)
  })

  t.test('a reader that closes early is not a failure', async () => {
    const pipe = `set -o pipefail; env "$@" ${PROGRAM} --help | true`
    const { status, stderr } = spawnSync('bash', ['--norc', '-c', pipe, 'bash', ...NODE], {
      encoding: 'utf8',
    })
    assert.deepEqual([status, stderr], [0, ''])
  })

  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    t.test(`${signal} ends it with exit code ${exitCode}`, async () => {
      const busy = `await import('${PROGRAM}'); setInterval(() => {}, 1000)`
      const child = spawn('env', [...NODE, '--input-type=module', '-e', busy, 'gatehouse', '--version'])
      await once(child.stdout, 'data')
      child.kill(signal)
      const [[status], stderr] = await Promise.all([once(child, 'exit'), text(child.stderr)])
      assert.deepEqual([status, stderr], [exitCode, ''])
    })
  }

  t.test('on a Node that is too old it says what to do', async () => {
    const old = `Object.defineProperty(process.versions, 'node', { value: '20.19.5' }); import('${PROGRAM}')`
    const { status, stderr, stdout } = spawnSync('env', [...NODE, '-e', old], { encoding: 'utf8' })
    assert.deepEqual([status, stdout], [2, ''])
    assert.match(stderr, /needs Node\.js 24 or newer and was started by Node\.js 20\.19\.5.*npx gatehouse/s)
  })
})

test('completion uses the shell in $SHELL, and suggests the nearest for an unknown one', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { exitCode, out, err } = await runIn({ SHELL: `/usr/bin/${shell}` }, 'completion')
    assert.deepEqual([exitCode, err], [0, `completion for ${shell}, the shell in $SHELL\n`])
    assert.equal(out, (await run('completion', shell)).out)
  }
  const asked = await runIn({ SHELL: '/bin/zsh' }, 'completion', 'fish')
  assert.deepEqual([asked.err, asked.out], ['', (await run('completion', 'fish')).out])
  for (const [env, argv, why] of [
    [{}, [], 'SHELL is missing; name one of bash, zsh, fish'],
    [
      { SHELL: '/bin/dash' },
      [],
      'completion does not support dash, the shell in $SHELL (did you mean "bash"?); name one of bash, zsh, fish',
    ],
    [{ SHELL: '/bin/zsh' }, ['fihs'], 'SHELL is one of bash, zsh, fish, not "fihs" (did you mean "fish"?)'],
  ] as const) {
    const { exitCode, out, err } = await runIn(env, 'completion', ...argv)
    assert.deepEqual([exitCode, out], [2, ''])
    assert.equal(err, `gatehouse completion: ${why}; see "gatehouse completion --help"\n`)
  }
})

test('bash completes from the script', { skip: skipped('bash') }, async (t) => {
  const script = (await run('completion', 'bash')).out
  const folder = folderWithFiles(t)
  const complete = (...words: string[]): string[] => {
    const drive = `${script}\nCOMP_WORDS=(gatehouse "$@") COMP_CWORD=$#\n_gatehouse\nprintf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-uc', drive, 'bash', ...words], {
      cwd: folder,
      encoding: 'utf8',
    })
    assert.equal(stderr, '')
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .sort()
  }

  assert.deepEqual(complete(''), entries.map((each) => each.name).sort())
  assert.deepEqual(complete('sc'), ['scan'])
  assert.deepEqual(complete('--v'), ['--version'])
  assert.deepEqual(complete('keys', ''), ['create', 'revoke'])
  assert.deepEqual(complete('keys', 'revoke', ''), ['now'])
  assert.deepEqual(complete('keys', 'create', ''), [])
  assert.deepEqual(complete('scan', '--'), ['--form', '--help', '--json', '--keylog'])
  assert.deepEqual(complete('scan', 'keys', 'a'), ['a capture.pcap'])
  assert.deepEqual(complete('scan', '--form', ''), ['hashed', 'raw'])
  assert.deepEqual(complete('scan', '--form', '='), ['hashed', 'raw'])
  assert.deepEqual(complete('scan', '--form', '=', 'r'), ['raw'])
  assert.deepEqual(complete('scan', '-k', 'o'), ['other.txt'])
  assert.deepEqual(complete('help', 'key'), ['keys'])
  assert.deepEqual(complete('help', 'comm'), ['commands'])
})

test('fish completes from the script', { skip: skipped('fish') }, async (t) => {
  const script = (await run('completion', 'fish')).out
  const folder = folderWithFiles(t)
  const complete = (line: string): string[] => {
    const drive = `${script}\ncomplete -C ${JSON.stringify(line)}`
    const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', drive], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, HOME: folder },
    })
    assert.equal(stderr, '')
    return stdout.split('\n').filter((word) => word !== '')
  }

  assert.deepEqual(complete('gatehouse sc'), ['scan\tScan captures'])
  assert.deepEqual(complete('gatehouse ke'), ["keys\tThe owner's keys: made and revoked"])
  assert.deepEqual(complete('gatehouse keys re'), ['revoke\tScan captures'])
  assert.deepEqual(complete('gatehouse scan --k'), ['--keylog\tTLS secrets'])
  assert.deepEqual(complete('gatehouse scan --form r'), ['raw\tThe form'])
  assert.deepEqual(complete('gatehouse scan oth'), ['other.txt'])
  assert.deepEqual(complete('gatehouse keys create oth'), [])
})

test('what carries traffic starts with sizes of its own, unless they are given', async () => {
  const starts = (...nodeOptions: string[]) => {
    const report = `--import=data:text/javascript,console.error(JSON.stringify(process.execArgv))`
    const argv = [process.execPath, ...nodeOptions, PROGRAM, 'proxy', '--help']
    const { status, stderr } = spawnSync('env', [`NODE_OPTIONS=${report}`, ...argv], { encoding: 'utf8' })
    assert.equal(status, 0)
    return stderr.trim().split('\n')
  }
  assert.deepEqual(starts(), ['[]', '["--max-semi-space-size=16","--v8-pool-size=1"]'])
  assert.deepEqual(starts('--max-semi-space-size=4'), ['["--max-semi-space-size=4"]'])
})

test('what carries traffic starts with flags under which Node takes its own compiled code', async () => {
  const tag = (...flags: string[]) =>
    execFileSync(process.execPath, [...flags, '-p', 'v8.cachedDataVersionTag()'], { encoding: 'utf8' })
  assert.equal(tag('--max-semi-space-size=16', '--v8-pool-size=1'), tag())
  assert.notEqual(tag('--expose-gc'), tag())
})

test('what carries traffic asks for large pages, unless it is told otherwise', async () => {
  const starts = (...given: string[]) => {
    const report = `--import=data:text/javascript,console.error(process.env.GLIBC_TUNABLES)`
    const argv = [
      '-u',
      'GLIBC_TUNABLES',
      ...given,
      `NODE_OPTIONS=${report}`,
      process.execPath,
      PROGRAM,
      'up',
      '--help',
    ]
    const { status, stderr } = spawnSync('env', argv, { encoding: 'utf8' })
    assert.equal(status, 0)
    return stderr.trim().split('\n')
  }
  const ours = 'glibc.malloc.hugetlb=1'
  assert.deepEqual(starts(), ['undefined', ours])
  const theirs = 'glibc.malloc.hugetlb=0'
  assert.deepEqual(starts(`GLIBC_TUNABLES=${theirs}`), [theirs, `${ours}:${theirs}`])
})

test('zsh accepts the script', { skip: skipped('zsh') }, async () => {
  const script = (await run('completion', 'zsh')).out
  const { status, stderr } = spawnSync('zsh', ['-f', '-c', `autoload -U compinit; compinit -D; ${script}`], {
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, ''])
})

function folderWithFiles(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-completion-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const name of ['a capture.pcap', 'other.txt']) writeFileSync(join(folder, name), '')
  return folder
}

interface Outcome {
  readonly exitCode: number
  readonly out: string
  readonly err: string
}

function run(...argv: string[]): Promise<Outcome> {
  return runIn({}, ...argv)
}

async function runIn(env: Record<string, string>, ...argv: string[]): Promise<Outcome> {
  const io = memoryIo('', { env })
  const exitCode = await runCli(entries, argv, io)
  return { exitCode, out: io.out, err: io.err }
}

function gatehouse(...argv: string[]) {
  return spawnSync('env', [...NODE, PROGRAM, ...argv], { encoding: 'utf8' })
}

function entry(command: Command): CommandEntry {
  return { name: command.name, summary: command.summary, load: async () => command }
}
