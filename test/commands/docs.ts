import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { COMMANDS } from '../../src/commands/commands.ts'
import type { CommandAction, Command } from '../../src/terminal/command.ts'

/** config/guide/commands.md, made from the command table: `npm run commands:docs` writes it, and a test compares it. */
export async function commandsPage(): Promise<string> {
  const commands = new Map(
    await Promise.all(COMMANDS.map(async (entry) => [entry.name, await entry.load()] as const)),
  )
  const named = new Set(GROUPS.flatMap(([, , names]) => names))
  for (const name of commands.keys()) assert.ok(named.has(name), `${name} is in no group`)
  const groups = GROUPS.map(([title, about, names]) => {
    const rows = names.flatMap((name) => rowsOf(commands.get(name)!))
    return `## ${title}\n\n${about}\n\n| command | does | example |\n|---|---|---|\n${rows.join('\n')}\n`
  })
  return [HEAD, ...groups, TAIL].join('\n')
}

function rowsOf(command: Command): string[] {
  if (!('subcommands' in command)) return [rowOf(command.name, command)]
  return command.subcommands.map((action) => rowOf(`${command.name} ${action.name}`, action))
}

function rowOf(path: string, { summary, examples }: CommandAction): string {
  const [example] = examples
  return `| \`${path}\` | ${cell(summary)} | \`gatehouse ${cell(example!.command)}\` |`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|')
}

const GROUPS: readonly (readonly [title: string, about: string, names: readonly string[]])[] = [
  [
    'Run',
    'Each of these runs until a signal ends it, except `migrate`. [A fleet](fleet.md) has managers and proxies of its own.',
    ['up', 'demo', 'proxy', 'manage', 'inject', 'migrate'],
  ],
  [
    'Check and operate',
    '[Operations](operations.md) says when to use which.',
    ['check', 'publish', 'doctor', 'top', 'apps', 'backup', 'restore', 'erase', 'rekey', 'snapshot'],
  ],
  [
    'Give access',
    'These work on the database, whether the gateway runs or not. [Authentication](authentication.md) explains the kinds of access.',
    ['keys', 'clients', 'trust', 'users'],
  ],
  [
    'Recognise clients',
    '[Packet captures and fingerprints](captures.md), [Recordings and evaluation](recordings.md), [signatures/README.md](../../signatures/README.md).',
    ['analyze', 'fingerprint', 'signatures', 'record', 'evaluate'],
  ],
  [
    'Act as an agent',
    '[Signed requests](signing.md), [MCP and A2A](mcp-and-a2a.md).',
    ['sign', 'verify', 'card', 'tools', 'mcp'],
  ],
  ['Get help', '`gatehouse help` lists the topics of this manual, too.', ['help', 'completion']],
]

const HEAD = `# Commands

Generated from the commands by \`npm run commands:docs\`; do not edit by hand. Every command, with one example. See all options and
examples of a command, and all commands and topics:

\`\`\`sh
gatehouse help keys create
gatehouse help
\`\`\`

In a checkout, \`npm run -s gatehouse -- COMMAND\` is \`gatehouse COMMAND\`. \`npm run package\` makes a package; where that is installed,
it is \`npx gatehouse COMMAND\`.

| exit code | means |
|---|---|
| 0 | success |
| 1 | the command found something wrong |
| 2 | wrong usage: unknown command, option or value |
| 70 | a bug in Gatehouse |
`

const TAIL = `## Add measured signatures

\`gatehouse signatures import\` adds recorded connections, one JSON object a line, or signatures of others (\`*.yaml\`):

\`\`\`sh
gatehouse record --out curl.jsonl --client curl --label http-library --requests 1
gatehouse signatures import --dry-run curl.jsonl
\`\`\`

It changes the signatures that come with Gatehouse; \`--into FOLDER\` names others.

- It adds JA4, stable key, HTTP/2 fingerprint, JA4H without its cookie parts and, for browsers, the header order of page
  requests, to the software whose id or alias is the \`client\` of the recording. It lists unknown clients and adds nothing for them.
- It counts a source (\`--source\`, by default the name of the file) once: a second import replaces the observations of that source.
- It changes only what it adds or replaces. If any line of any file is bad, it writes nothing.
`

if (import.meta.main)
  writeFileSync(new URL('../../config/guide/commands.md', import.meta.url), await commandsPage())
