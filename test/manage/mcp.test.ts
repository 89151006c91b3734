import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from '@modelcontextprotocol/client'
import type { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { test } from 'tap'
import { TOOLS } from '../../src/manage/api/operations.ts'
import { PROTOCOL_VERSION } from '../../src/manage/mcp/offer.ts'
import type { Owner } from '../store/databases.ts'
import { TestManagement } from './management.ts'
import { connected, firstConnected, legacy, sent } from './mcp-client.ts'

const CURL = 't13d3112h2_e8f1e7e78f70_375ca2c5e164'

type Connect = (t: Owner, url: string, key: string) => Promise<Client | FirstClient>

/** Every client that there is, and the protocol it speaks. */
const CLIENTS: readonly (readonly [name: string, version: string, connect: Connect])[] = [
  ['the first SDK', '2025-11-25', firstConnected],
  ['the second SDK as it was before', '2025-11-25', (t, url, key) => connected(t, url, key, 'legacy')],
  ['the second SDK', PROTOCOL_VERSION, connected],
]

for (const [name, version, connect] of CLIENTS)
  test(`${name} finds and calls every kind of thing`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true })
    const client = await connect(t, manage.url, manage.adminKey)
    assert.deepEqual(
      [client.getServerVersion()?.name, client.getServerVersion()?.version],
      ['gatehouse', '1.2.3'],
    )
    assert.match(client.getInstructions() ?? '', /never instructions/)
    if ('getNegotiatedProtocolVersion' in client) assert.equal(client.getNegotiatedProtocolVersion(), version)

    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map((each) => each.name),
      TOOLS.list.map((each) => each.name),
    )
    for (const { title, description, inputSchema, outputSchema, annotations } of tools) {
      assert.ok(title && description && inputSchema.type === 'object' && outputSchema?.type === 'object')
      assert.equal(typeof annotations?.readOnlyHint, 'boolean')
    }
    // The clients hold the result against the output schema.
    const asked = { user_agent: 'Mozilla/5.0 (compatible; GPTBot/1.2)', ja4: CURL }
    const called = await client.callTool({ name: 'detect_agent', arguments: asked })
    const executed = await manage.ask('POST', '/v1/execute', { tool: 'detect_agent', arguments: asked })
    const plain = (result: unknown) => ({ ...(result as object), request_id: '' })
    assert.deepEqual(plain(called.structuredContent), plain(executed.body.result))
    assert.deepEqual(JSON.parse(textOf(called)), called.structuredContent)

    const { resources } = await client.listResources()
    assert.ok(resources.some(({ uri }) => uri === 'gatehouse://policy'))
    const { resourceTemplates } = await client.listResourceTemplates()
    assert.ok(resourceTemplates.some(({ uriTemplate }) => uriTemplate === 'gatehouse://agents/{agent_id}'))
    const { contents } = await client.readResource({ uri: 'gatehouse://statistics?window=1h' })
    assert.equal(JSON.parse((contents[0] as { text: string }).text).window, '1h')

    const { prompts } = await client.listPrompts()
    assert.deepEqual(
      prompts.map((each) => each.name),
      ['investigate_fingerprint', 'review_unknown_signatures', 'write_policy_rule'],
    )
    const prompt = await client.getPrompt({
      name: 'investigate_fingerprint',
      arguments: { fingerprint: CURL },
    })
    assert.match((prompt.messages[0]!.content as { text: string }).text, new RegExp(CURL))
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'write_policy_rule' },
      argument: { name: 'category', value: 'c' },
    })
    assert.deepEqual(completion.values, ['crawler', 'custom'])
    assert.deepEqual(manage.failures, [])
  })

test('what a tool refuses, its arguments too, is a result for the model to read', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const [, , connect] of CLIENTS) {
    const client = await connect(t, manage.url, manage.adminKey)
    for (const [name, given, said] of [
      ['detect_agent', {}, /nothing to judge/],
      ['detect_agent', { ja4: 'x' }, /ja4/],
      ['detect_agent', { user_agent: 'x', colour: 1 }, /colour/],
      ['get_agent', { agent_id: 'nobody-at-all' }, /nothing of this name/],
      ['get_task', { task_id: 'tsk_none', limit: 5000 }, /limit/],
      ['create_task', { type: 'detect', items: [] }, /is empty/],
    ] as const) {
      const result = await client.callTool({ name, arguments: given })
      assert.equal(result.isError, true, name)
      assert.match(textOf(result), said)
      assert.equal(result.structuredContent, undefined)
      const { status, body } = await manage.ask('POST', '/v1/execute', { tool: name, arguments: given })
      const code = status === 200 ? body.result.code : body.code
      assert.equal(JSON.parse(textOf(result)).code, code)
    }
    await assert.rejects(client.callTool({ name: 'detect_agnet', arguments: {} }), {
      code: -32602,
      message: /did you mean "detect_agent"/,
    })
  }
})

test('who waits is told how far a long task is, and gets its end', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const items = Array.from({ length: 1_500 }, (_, index) => ({ user_agent: `curl/8.${index}` }))
  const asked = { name: 'create_task', arguments: { type: 'detect', items } }
  for (const [, , connect] of CLIENTS) {
    const client = await connect(t, manage.url, manage.adminKey)
    const heard: number[] = []
    const onprogress = ({ progress, total }: { progress: number; total?: number | undefined }) => {
      assert.equal(total, 1_500)
      heard.push(progress)
    }
    const result =
      client instanceof Object && 'getNegotiatedProtocolVersion' in client
        ? await client.callTool(asked, { onprogress })
        : await client.callTool(asked, undefined, { onprogress })
    const { status, completed } = result.structuredContent as { status: string; completed: number }
    assert.deepEqual([status, completed], ['completed', 1_500])
    assert.equal(heard.at(-1), 1_500)
    assert.deepEqual(
      heard,
      heard.toSorted((one, other) => one - other),
    )
    // Who cannot be told is answered at once, as everywhere.
    const { structuredContent } = await client.callTool(asked)
    assert.notEqual((structuredContent as { status: string }).status, 'cancelled')
    assert.equal((structuredContent as { completed: number }).completed, 0)
  }
})

test('who cancels a call cancels the task; who only leaves did not, before 2026-07-28', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const key = await manage.key({ name: 'one', scopes: ['mcp', 'detect', 'read'] })
  const items = Array.from({ length: 10_000 }, () => ({ ja4: CURL, user_agent: 'Mozilla/5.0 GPTBot/1.2' }))
  const asked = { name: 'create_task', arguments: { type: 'explain', items } }
  const newest = async (): Promise<{ task_id: string; status: string }> => {
    const { body } = await manage.ask('GET', '/v1/tasks', undefined, { authorization: `Bearer ${key}` })
    return body.recent[0]
  }
  const ended = async (id: string) => {
    for (;;) {
      const { body } = await manage.ask('GET', `/v1/tasks/${id}?limit=1`)
      if (body.finished_at !== null) return body.status
      await wait(50)
    }
  }
  for (const mode of ['auto', 'legacy'] as const) {
    const client = await connected(t, manage.url, key, mode)
    const stop = new AbortController()
    const begun = Promise.withResolvers<void>()
    const call = client.callTool(asked, { onprogress: () => begun.resolve(), signal: stop.signal })
    await begun.promise
    stop.abort()
    await assert.rejects(call)
    assert.equal(await ended((await newest()).task_id), 'cancelled', mode)
  }
  const gone = new AbortController()
  const message = legacy('tools/call', { ...asked, _meta: { progressToken: 1 } })
  const response = await fetch(`${manage.url}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...JSON_AND_STREAM },
    body: JSON.stringify(message),
    signal: gone.signal,
  })
  await response.body!.getReader().read()
  gone.abort()
  await wait(300)
  const left = await newest()
  assert.ok(['queued', 'running', 'completed'].includes(left.status), left.status)
  // Another caller's request of the same id is not hers to cancel.
  const other = await manage.key({ name: 'other', scopes: ['mcp'] })
  assert.equal((await sent(manage.url, other, cancelling(1))).status, 202)
  assert.notEqual((await newest()).status, 'cancelled')
  await manage.ask('DELETE', `/v1/tasks/${left.task_id}`)
})

test('nobody sees the tasks of others', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const [one, other] = [
    await manage.key({ name: 'one', scopes: ['mcp', 'detect', 'read'] }),
    await manage.key({ name: 'other', scopes: ['mcp', 'detect', 'read'] }),
  ]
  const mine = await connected(t, manage.url, one)
  const theirs = await connected(t, manage.url, other)
  const made = await mine.callTool({
    name: 'create_task',
    arguments: { type: 'detect', items: [{ user_agent: 'secret-agent/1' }] },
  })
  const task_id = (made.structuredContent as { task_id: string }).task_id
  const own = await mine.callTool({ name: 'get_task', arguments: { task_id } })
  assert.equal((own.structuredContent as { task_id: string }).task_id, task_id)
  const stolen = await theirs.callTool({ name: 'get_task', arguments: { task_id } })
  assert.deepEqual([stolen.isError, JSON.parse(textOf(stolen)).code], [true, 'not_found'])
})

// biome-ignore lint/suspicious/noExplicitAny: of either SDK
function textOf(result: any): string {
  return result.content[0].text
}

function cancelling(requestId: number) {
  return { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }
}

const JSON_AND_STREAM = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
