import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { test } from 'tap'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { GATEHOUSE } from '../e2e/programs.ts'
import { TestManagement } from '../manage/management.ts'
import { legacy, modern } from '../manage/mcp-client.ts'
import { memoryIo } from './memory-io.ts'

const WHO = { name: 'test', version: '1.0.0' }

test('clients that start their servers themselves: every SDK, both protocols', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const server = serverOf(manage)
  const first = new FirstClient(WHO)
  const clients = [
    first,
    new Client(WHO, { versionNegotiation: { mode: 'legacy' } }),
    new Client(WHO, { versionNegotiation: { mode: 'auto' } }),
  ]
  t.teardown(() => Promise.all(clients.map((client) => client.close())))
  await first.connect(new FirstTransport(server))
  for (const client of clients.slice(1) as Client[]) await client.connect(new StdioClientTransport(server))
  const versions = (clients.slice(1) as Client[]).map((client) => client.getNegotiatedProtocolVersion())
  assert.deepEqual(versions, ['2025-11-25', '2026-07-28'])
  const asked = { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)' }
  const direct = await manage.ask('POST', '/v1/execute', { tool: 'detect_agent', arguments: asked })
  for (const client of clients) {
    assert.ok((await client.listTools()).tools.length >= 10)
    const { structuredContent } = await client.callTool({ name: 'detect_agent', arguments: asked })
    assert.deepEqual(withoutId(structuredContent), withoutId(direct.body.result))
    // A name that cannot stand in a header.
    const odd = client.callTool({ name: 'détection', arguments: {} })
    await assert.rejects(odd, { code: -32602, message: /unknown tool/ })
    const { contents } = await client.readResource({ uri: 'gatehouse://openapi' })
    assert.ok((contents[0] as { text: string }).text.length > 10_000)
  }
  const items = Array.from({ length: 10_000 }, () => ({ user_agent: 'Mozilla/5.0 GPTBot/1.2' }))
  for (const client of clients.slice(1) as Client[]) {
    const stop = new AbortController()
    let told = 0
    const onprogress = () => void (++told === 2 && stop.abort())
    const call = { name: 'create_task', arguments: { type: 'explain', items } }
    await assert.rejects(client.callTool(call, { onprogress, signal: stop.signal }))
    assert.equal(await statusOfNewest(manage), 'cancelled')
  }
  const listening = await (clients[2] as Client).listen({ resourcesListChanged: true })
  const changed = Promise.withResolvers<void>()
  ;(clients[2] as Client).setNotificationHandler('notifications/resources/list_changed', () =>
    changed.resolve(),
  )
  await manage.publish({ rules: [] })
  await changed.promise
  await listening.close()
})

test('the client that asked gets an error if the relay fails', async (t) => {
  const manage = await TestManagement.start(t)
  const relayed = async (lines: readonly unknown[], argv: readonly string[] = [], key = manage.adminKey) => {
    const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
    const io = memoryIo(`${text}\n`, { env: { GATEHOUSE_KEY: key } })
    assert.equal(await runCli(COMMANDS, ['mcp', '--url', manage.url, ...argv], io), 0)
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
    const said: any[] =
      io.out.trim() === ''
        ? []
        : io.out
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line))
    return { said, err: io.err }
  }
  const { said } = await relayed(['{', '[]', '"x"', '', legacy('ping', {}, 'a'), legacy('tools/none', {}, 7)])
  const errors = said.filter(({ id }) => id === null).map(({ error }) => error.code)
  assert.deepEqual(errors, [-32700, -32700, -32700])
  assert.deepEqual(said.find(({ id }) => id === 'a')?.result, {})
  assert.equal(said.find(({ id }) => id === 7)?.error.code, -32601)

  const twice = await relayed([
    modern('tools/list', {}, 1),
    modern('tools/list', {}, 1),
    modern('tools/list', {}, '1'),
  ])
  assert.deepEqual(
    twice.said.filter(({ error }) => error !== undefined).map(({ id }) => id),
    [1],
  )
  assert.equal(twice.said.length, 3)

  const stranger = await relayed([modern('tools/list', {}, 5)], [], 'gh_wrong')
  assert.deepEqual([stranger.said[0].id, stranger.said[0].error.data.code], [5, 'invalid_token'])
  const reader = await manage.key({ name: 'r', scopes: ['mcp'] })
  const refused = await relayed([modern('resources/read', { uri: 'gatehouse://policy' }, 6)], [], reader)
  assert.deepEqual([refused.said[0].id, refused.said[0].error.data.code], [6, 'insufficient_scope'])
  const unreachable = await relayed([modern('tools/list', {}, 8)], ['--url', 'http://127.0.0.1:1'])
  assert.match(unreachable.said[0].error.message, /127\.0\.0\.1:1\/mcp cannot be reached/)
  const silent = await relayed(
    [{ jsonrpc: '2.0', method: 'notifications/initialized' }],
    ['--url', 'http://127.0.0.1:1'],
  )
  assert.deepEqual(silent.said, [])
  assert.match(silent.err, /cannot be reached/)
  const other = await relayed([modern('tools/list', {}, 9)], ['--url', `${manage.url}/v1`])
  assert.equal(other.said[0].id, 9)
  assert.ok(other.said[0].error)
})

test('the key: from a file, else from the variable, and never from the command line', async (t) => {
  const manage = await TestManagement.start(t)
  const file = join(manage.folder, 'key')
  writeFileSync(file, `${manage.adminKey}\nand a remark\n`)
  const ask = async (argv: readonly string[], env: Record<string, string>) => {
    const io = memoryIo(`${JSON.stringify(modern('tools/list'))}\n`, { env })
    return { code: await runCli(COMMANDS, ['mcp', ...argv], io), out: io.out, err: io.err }
  }
  const byFile = await ask(['--url', `${manage.url}/mcp/`, '--key-file', file], { GATEHOUSE_KEY: 'other' })
  assert.ok(JSON.parse(byFile.out).result)
  assert.ok(
    JSON.parse((await ask([], { GATEHOUSE_KEY: manage.adminKey, GATEHOUSE_URL: manage.url })).out).result,
  )
  for (const [argv, env, said] of [
    [[], {}, /--key-file, or GATEHOUSE_KEY/],
    [['--key-file', '/nowhere/at/all'], {}, /no such file/],
    [['--url', 'ftp://x'], { GATEHOUSE_KEY: 'x' }, /--url must be/],
    [['--url', 'http://a:b@x'], { GATEHOUSE_KEY: 'x' }, /--url must be/],
    [[], { GATEHOUSE_KEY: 'two words' }, /no key has/],
  ] as const) {
    const { code, err } = await ask(argv, env)
    assert.notEqual(code, 0)
    assert.match(err, said)
  }
})

test('a client that only listens does not delay the end', async (t) => {
  const manage = await TestManagement.start(t)
  const stdin = new PassThrough()
  const io = memoryIo('', { stdin, env: { GATEHOUSE_KEY: manage.adminKey } })
  const ended = runCli(COMMANDS, ['mcp', '--url', manage.url], io)
  const notifications = { resourcesListChanged: true }
  stdin.write(`${JSON.stringify(modern('subscriptions/listen', { notifications }, 'l'))}\n`)
  while (!io.out.includes('acknowledged')) await wait(10)
  stdin.end()
  assert.equal(await ended, 0)
})

function serverOf(manage: TestManagement) {
  const args = [GATEHOUSE, 'mcp', '--url', manage.url]
  return { command: process.execPath, args, env: { GATEHOUSE_KEY: manage.adminKey } }
}

async function statusOfNewest(manage: TestManagement): Promise<string> {
  for (let tries = 0; ; tries++) {
    const { body } = await manage.ask('GET', '/v1/tasks')
    if (body.recent[0].finished_at !== null || tries > 100) return body.recent[0].status
    await wait(50)
  }
}

function withoutId(result: unknown) {
  return { ...(result as object), request_id: '' }
}
