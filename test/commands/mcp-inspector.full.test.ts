import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { GATEHOUSE } from '../e2e/programs.ts'
import { TestManagement } from '../manage/management.ts'

test("the inspector's command line, over HTTP and over standard input", async (t) => {
  const manage = await TestManagement.start(t)
  const http = [
    `${manage.url}/mcp`,
    '--transport',
    'http',
    '--header',
    `Authorization: Bearer ${manage.adminKey}`,
  ]
  const relay = [process.execPath, GATEHOUSE, 'mcp', '--url', manage.url]
  const stdio = [...relay, '-e', `GATEHOUSE_KEY=${manage.adminKey}`]
  const inspect = async (...argv: string[]) => {
    const { stdout } = await run(process.execPath, [INSPECTOR, '--cli', ...argv], {
      maxBuffer: 16 * 1_048_576,
    })
    return JSON.parse(stdout)
  }
  const [listed, strictly, called, read] = await Promise.all([
    inspect(...stdio, '--method', 'tools/list'),
    // It ends with 6 at a schema that some clients would not take.
    inspect(...http, '--method', 'tools/list', '--strict'),
    inspect(...http, '--method', 'tools/call', '--tool-name', 'list_agents', '--tool-arg', 'limit=1'),
    inspect(...stdio, '--method', 'resources/read', '--uri', 'gatehouse://statistics'),
  ])
  assert.deepEqual(listed.tools, strictly.tools)
  assert.equal(called.structuredContent.limit, 1)
  assert.equal(JSON.parse(read.contents[0].text).window, '24h')
})

const run = promisify(execFile)
const INSPECTOR = resolve('node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js')
