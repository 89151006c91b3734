import { buffer } from 'node:stream/consumers'
import * as z from 'zod'
import { Fault } from '../shared/fault.ts'
import { USAGE } from '../terminal/arguments.ts'
import type { CommandAction, Arguments, ExitCode, Group } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { JSON_OPTION } from '../terminal/json-option.ts'
import { asked } from './access/ask-running.ts'
import { RUNNING_OPTIONS } from '../runtime/running.ts'
import { renderTable } from '../terminal/table.ts'

const list: CommandAction = {
  name: 'list',
  summary: 'List the tools',
  operands: [],
  options: [JSON_OPTION, ...RUNNING_OPTIONS],
  examples: [
    { command: 'tools list --key-file ~/.gatehouse-key', description: 'Names and descriptions' },
    { command: 'tools list --json', description: 'With their schemas' },
  ],
  run: runList,
}

const call: CommandAction = {
  name: 'call',
  summary: 'Run a tool, and print its answer',
  description: [
    'ARGUMENTS is a JSON object, or "-" to read one from standard input (default: {}). Prints the answer as JSON. If the ' +
      'tool reports an error, the answer contains it and the exit code is 1.',
  ],
  operands: [
    { name: 'TOOL', description: 'Its name, as "tools list" shows it' },
    { name: 'ARGUMENTS', description: 'The arguments', optional: true },
  ],
  options: RUNNING_OPTIONS,
  examples: [
    {
      command: `tools call detect_agent '{"user_agent": "GPTBot/1.2"}'`,
      description: 'Classify a User-Agent, with GATEHOUSE_KEY',
    },
    { command: 'tools call create_task - < task.json', description: 'Arguments from a file' },
  ],
  run: runCall,
}

export const tools: Group = {
  name: 'tools',
  summary: 'Run the tools for agents at a running Gatehouse',
  description: [
    'The tools that MCP and A2A clients call and /v1/execute runs. They run in that Gatehouse, with the permissions of the ' +
      'key: an API key with the scope mcp, or an access token. It is read from the file, otherwise from GATEHOUSE_KEY.',
  ],
  subcommands: [list, call],
}

async function runList(given: Arguments, io: Io): Promise<ExitCode> {
  const { tools: all } = await asked(given, io, toolsAnswer, '/v1/tools', null)
  if (given.flag('json')) {
    io.stdout.write(`${JSON.stringify(all, null, 2)}\n`)
    return 0
  }
  const rows = all.map(({ name, title, scopes }) => [name, title, scopes.join(' or ')])
  const columns = [{ title: 'TOOL' }, { title: 'DOES', flexible: true as const }, { title: 'NEEDS' }]
  io.stdout.write(`${renderTable(columns, rows, io.columns).join('\n')}\n`)
  return 0
}

async function runCall(given: Arguments, io: Io): Promise<ExitCode> {
  const [tool, text] = given.operands
  const body = { tool, arguments: await argumentsIn(text, io) }
  const { result, is_error } = await asked(given, io, executeAnswer, '/v1/execute', body)
  io.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
  return is_error ? 1 : 0
}

async function argumentsIn(text: string | undefined, io: Io): Promise<unknown> {
  if (text === undefined) return {}
  const given = text === '-' ? (await buffer(io.stdin)).toString('utf8') : text
  try {
    return JSON.parse(given)
  } catch (error) {
    throw new Fault(USAGE, `ARGUMENTS is not valid JSON: ${(error as Error).message}`, { cause: error })
  }
}

const toolsAnswer = z.object({
  tools: z.array(z.looseObject({ name: z.string(), title: z.string(), scopes: z.array(z.string()) })),
})
const executeAnswer = z.object({ result: z.unknown(), is_error: z.boolean() })
