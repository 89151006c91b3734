import { MCP_PATH } from '../manage/mcp/offer.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { lines } from '../terminal/lines.ts'
import { McpRelay } from './mcp-relay.ts'
import { keyGiven, RUNNING_OPTIONS, urlGiven } from '../runtime/running.ts'

export const mcp: CommandAction = {
  name: 'mcp',
  summary: 'Speak MCP on standard input and output, for clients on this machine',
  description: [
    'For clients that start their servers themselves. It forwards each message to the MCP endpoint of a running Gatehouse, ' +
      'and the answers back. Tools run there, with the permissions of the key.',
    'The key is an API key with the scope mcp (access write includes it) or an access token. It is read from the file, ' +
      'otherwise from GATEHOUSE_KEY. A key on the command line would be visible to all users of the machine.',
  ],
  operands: [],
  options: RUNNING_OPTIONS,
  examples: [
    { command: 'mcp --key-file ~/.gatehouse-key', description: 'The gateway on this machine' },
    { command: 'mcp --url https://gate.example.com', description: 'Another gateway, with GATEHOUSE_KEY' },
  ],
  run: runMcp,
}

async function runMcp(given: Arguments, io: Io): Promise<ExitCode> {
  const endpoint = endpointOf(urlGiven(given, io))
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

/** Also accepts the URL of the endpoint itself. */
function endpointOf(url: URL): URL {
  if (!url.pathname.endsWith(MCP_PATH)) url.pathname = url.pathname.replace(/\/$/, '') + MCP_PATH
  return url
}

/** The limit of the endpoint, plus room for the envelope. */
const LINE_BYTES_MAX = 9 * 1_048_576
