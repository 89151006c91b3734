import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench, Examples } from '../bench.ts'

export const examples: Examples = [
  ['"tools/call"', callsATool],
  ['tools list', usesTheCommandLine],
  ['"servers"', isAnMcpServer],
  ['"mcpServers"', isStartedByAnMcpClient],
  ['a2a/v1/message:send', sendsMessages],
]

async function isAnMcpServer({ gate, folder }: Bench, example: string): Promise<void> {
  const { url, headers, type } = JSON.parse(example).servers.gatehouse
  assert.equal(type, 'http')
  const authorization = headers.Authorization.replace(
    /\$\{input:gatehouse-key\}/,
    readFileSync(join(folder, 'key'), 'utf8').trim(),
  )
  const response = await fetch(url.replace('https://gate.example.com', gate.manage), {
    method: 'POST',
    headers: {
      authorization,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(INITIALIZE),
  })
  assert.match(await response.text(), /"serverInfo"/)
}

async function isStartedByAnMcpClient({ gate, folder, shell }: Bench, example: string): Promise<void> {
  const { command, args } = JSON.parse(example).mcpServers.gatehouse
  const given = args.map((each: string) =>
    each.replace('http://127.0.0.1:9080', gate.manage).replace('/home/me', folder),
  )
  const { json } = await shell([command, ...given].join(' '), { input: `${JSON.stringify(INITIALIZE)}\n` })
  assert.ok(json[0].result.serverInfo)
}

async function callsATool({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /gptbot/)
}

async function usesTheCommandLine({ gate, shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example, { instead: [['--key-file', `--url ${gate.manage} --key-file`]] })
  assert.match(out, /compare_fingerprints/)
  assert.match(out, /gptbot/)
}

async function sendsMessages({ shell }: Bench, example: string): Promise<void> {
  const { out } = await shell(example)
  assert.match(out, /gptbot/)
  assert.match(out, /TASK_STATE_COMPLETED/)
}

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'reader', version: '1' } },
}
