import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { COMMANDS } from '../../src/commands/commands.ts'
import { parseArguments } from '../../src/terminal/arguments.ts'
import type { CommandAction } from '../../src/terminal/command.ts'
import { commandsPage } from './docs.ts'

test('config/guide/commands.md lists the commands: else "npm run commands:docs"', async () => {
  assert.equal(readFileSync('config/guide/commands.md', 'utf8'), await commandsPage())
})

test('every command has the same summary in the list and in its help', async () => {
  for (const entry of COMMANDS) assert.equal((await entry.load()).summary, entry.summary, entry.name)
})

test('every command has an example, and every example is one of its calls', async () => {
  for (const entry of COMMANDS) {
    const command = await entry.load()
    if (!('subcommands' in command)) checkExamples(command.name, command)
    else for (const each of command.subcommands) checkExamples(`${command.name} ${each.name}`, each)
  }
})

function checkExamples(path: string, action: CommandAction): void {
  assert.ok(action.examples.length > 0, path)
  for (const { command } of action.examples) {
    const parts = command.split(/ (?:[|<>]|2>) /).map((part) => part.replace(/^gatehouse /, ''))
    const own = parts.find((part) => part === path || part.startsWith(`${path} `))
    assert.ok(own !== undefined, command)
    assert.notEqual(parseArguments(action, wordsOf(own.slice(path.length))), 'help', command)
  }
}

/** As a shell takes them apart. */
function wordsOf(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c!)
}
