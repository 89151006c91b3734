import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { memoryIo } from '../commands/memory-io.ts'
import type { TestManagement } from '../manage/management.ts'
import { a2aDoors } from '../manage/a2a-door.ts'
import { connected, firstConnected } from '../manage/mcp-client.ts'
import type { Owner } from '../store/databases.ts'
import { GATEHOUSE } from './programs.ts'

/** The result of a call through any interface. */
export interface Outcome {
  readonly isError: boolean
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  readonly result: any
}

/** A way to have a tool run. */
export interface Door {
  readonly name: string
  call(tool: string, given: Readonly<Record<string, unknown>>): Promise<Outcome>
}

/** Every interface that this key opens. */
export async function doorsTo(t: Owner, manage: TestManagement, key: string): Promise<readonly Door[]> {
  const doors = await Promise.all(DOORS.map((open) => open(t, manage, key)))
  return [...doors, ...a2aDoors(manage, key)]
}

type Open = (t: Owner, manage: TestManagement, key: string) => Promise<Door>

const execute: Open = async (_t, manage, key) => ({
  name: 'REST',
  call: async (tool, given) => {
    const headers = { authorization: `Bearer ${key}` }
    const { status, body } = await manage.ask('POST', '/v1/execute', { tool, arguments: given }, headers)
    // Arguments that are wrong are a problem there.
    if (status === 400) return { isError: true, result: problem(body) }
    assert.equal(status, 200, JSON.stringify(body))
    return { isError: body.is_error, result: body.result }
  },
})

const mcp: Open = async (t, manage, key) => {
  const client = await connected(t, manage.url, key)
  return {
    name: 'MCP',
    call: async (name, given) => outcomeOf(await client.callTool({ name, arguments: given })),
  }
}

const mcpBefore: Open = async (t, manage, key) => {
  const client = await firstConnected(t, manage.url, key)
  return {
    name: 'MCP before 2026-07-28',
    call: async (name, given) => outcomeOf(await client.callTool({ name, arguments: given })),
  }
}

const mcpOverStdio: Open = async (t, manage, key) => {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  t.teardown(() => client.close())
  const args = [GATEHOUSE, 'mcp', '--url', manage.url]
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, env: { GATEHOUSE_KEY: key } }),
  )
  return {
    name: 'MCP over standard input',
    call: async (name, given) => outcomeOf(await client.callTool({ name, arguments: given })),
  }
}

const commandLine: Open = async (_t, manage, key) => ({
  name: 'command line',
  call: async (tool, given) => {
    const io = memoryIo(JSON.stringify(given), { env: { GATEHOUSE_URL: manage.url, GATEHOUSE_KEY: key } })
    const code = await runCli(COMMANDS, ['tools', 'call', tool, '-'], io)
    if (io.out !== '') return { isError: code === 1, result: JSON.parse(io.out) }
    return { isError: true, result: problem(problemIn(io.err)) }
  },
})

/** `gatehouse tools call: why (code)`, and a line for each place. */
function problemIn(said: string): Parameters<typeof problem>[0] {
  const errors = [...said.matchAll(/^ {2}(\/\S*): (.+)$/gm)]
  return {
    code: /\((\w+)\)$/m.exec(said)![1]!,
    errors: errors.map(([, pointer, detail]) => ({ pointer: pointer!, detail: detail! })),
  }
}

/** Of an MCP client. */
function outcomeOf(called: object): Outcome {
  const { isError, structuredContent, content } = called as {
    isError?: boolean
    structuredContent?: unknown
    content: readonly { readonly text: string }[]
  }
  const text: unknown = JSON.parse(content[0]!.text)
  if (isError !== true) assert.deepEqual(text, structuredContent)
  return { isError: isError === true, result: text }
}

/** What each door says of arguments that are wrong; where they stand is told from where the arguments begin. */
function problem({ code, errors }: { code: string; errors: readonly { pointer: string; detail: string }[] }) {
  const inArguments = errors.map((each) => ({ ...each, pointer: each.pointer.replace(/^\/arguments/, '') }))
  return { code, errors: inArguments }
}

const DOORS: readonly Open[] = [execute, mcp, mcpBefore, mcpOverStdio, commandLine]
