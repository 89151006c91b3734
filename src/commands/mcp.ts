import { readFileSync } from 'node:fs'
import { CLIENT_VARIABLES } from '../config-schema.ts'
import { Fault } from '../fault.ts'
import { MCP_PATH } from '../manage/mcp/offer.ts'
import { USAGE } from './arguments.ts'
import type { Action, Arguments, ExitCode } from './command.ts'
import type { Io } from './io.ts'
import { lines } from './lines.ts'
import { McpRelay } from './mcp-relay.ts'
import { unreadable } from './unreadable.ts'

export const mcp: Action = {
  name: 'mcp',
  summary: 'Speak MCP on standard input and output, for clients on this machine',
  description: [
    'For clients that start their servers themselves. It hands each message to a Gatehouse that runs, at its address for ' +
      'MCP, and its answers back: what a tool says and who may use it is found out there, as for anybody else.',
    'The key is an API key with the scope mcp, as one of access write has, or an access token. It is taken from the file, ' +
      'else from GATEHOUSE_KEY: on a command line everybody on the machine could read it.',
  ],
  operands: [],
  options: [
    {
      name: 'url',
      value: 'URL',
      description: 'Where its management port is; GATEHOUSE_URL names it too',
    },
    { name: 'key-file', value: 'FILE', description: 'Whose first line is the key' },
  ],
  examples: [
    { command: 'mcp --key-file ~/.gatehouse-key', description: 'To the one on this machine' },
    { command: 'mcp --url https://gate.example.com', description: 'To another one, with GATEHOUSE_KEY' },
  ],
  run: runMcp,
}

async function runMcp(given: Arguments, io: Io): Promise<ExitCode> {
  const endpoint = endpointOf(given.value('url') ?? io.env[CLIENT_VARIABLES.url] ?? DEFAULT_URL)
  const relay = new McpRelay({
    endpoint,
    key: keyGiven(given, io),
    write: (line) => new Promise((resolve) => void io.stdout.write(line, () => resolve())),
    warn: (text) => void io.stderr.write(`${text}\n`),
  })
  for await (const batch of lines(io.stdin, LINE_BYTES_MAX))
    for (const { text } of batch) {
      if (text === null) await relay.tooLong(LINE_BYTES_MAX)
      else if (text.trim() !== '') relay.take(text)
    }
  await relay.end()
  return 0
}

function endpointOf(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.username !== '')
    throw new Fault(USAGE, `--url takes http://HOST:PORT or https://HOST, not "${text}"`)
  const path = url.pathname.replace(/\/$/, '')
  url.pathname = path.endsWith(MCP_PATH) ? path : path + MCP_PATH
  return url
}

function keyGiven(given: Arguments, io: Io): string {
  const file = given.value('key-file')
  const key = file === null ? io.env[CLIENT_VARIABLES.key] : firstLine(file)
  if (key === undefined || key === '')
    throw new Fault(USAGE, file === null ? 'give --key-file, or GATEHOUSE_KEY' : `${file} has no key in it`)
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Fault(USAGE, 'the key has characters that no key has')
  return key
}

function firstLine(file: string): string {
  try {
    return readFileSync(file, 'utf8').split('\n', 1)[0]!.trim()
  } catch (error) {
    throw new Fault('UNREADABLE', `${file}: ${unreadable(error).message}`, { cause: error })
  }
}

const DEFAULT_URL = 'http://127.0.0.1:9080'
/** What the endpoint takes, and some room for what is around it. */
const LINE_BYTES_MAX = 9 * 1_048_576
