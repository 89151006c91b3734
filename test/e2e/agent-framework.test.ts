import assert from 'node:assert/strict'
import { createMCPClient } from '@ai-sdk/mcp'
import { generateText, isStepCount, jsonSchema, type ModelMessage, tool } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { test } from 'tap'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { TestManagement } from '../manage/management.ts'
import { basic, clientFor, postForm } from '../manage/oauth-client.ts'

/** On live traffic, without an owner: the ciphers are curl's, the rest is not. */
const UNKNOWN = 't13d3112h1_e8f1e7e78f70_0123456789ab'

test('an agent of a framework finds an unknown fingerprint, looks into it, and submits what it has found', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  await manage.fillCatalogue()
  const { db, close } = await openDatabase(manage.storeUrl, null, async () => undefined)
  const seen = { first_seen_ms: 1000, last_seen_ms: 2000, requests: 40, addresses: 7, sketch: '', rank: 1 }
  await db
    .insertInto('fingerprints_seen')
    .values({ type: 'ja4', value: UNKNOWN, is_named: 0, ...seen })
    .execute()
  await close()

  const client = await createMCPClient({
    transport: { type: 'http', url: `${manage.url}/mcp`, headers: { authorization: await tokenFor(manage) } },
  })
  t.teardown(() => client.close())
  assert.equal(client.serverInfo.name, 'gatehouse')
  const prompt = await client.getPrompt({
    name: 'review_unknown_signatures',
    arguments: { type: 'ja4', limit: '5' },
  })
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => nextStep(prompt as ModelMessage[]),
  })
  const readResource = tool({
    description: 'Reads a resource of the server.',
    inputSchema: jsonSchema<{ uri: string }>({ type: 'object', properties: { uri: { type: 'string' } } }),
    execute: async ({ uri }) => (await client.readResource({ uri })).contents,
  })
  const { steps, text } = await generateText({
    model,
    instructions: client.instructions ?? '',
    messages: prompt.messages.map(({ content }) => {
      assert.ok(content.type === 'text')
      return { role: 'user', content: content.text }
    }),
    tools: { ...(await client.tools()), read_resource: readResource },
    stopWhen: isStepCount(8),
  })
  const called = steps.flatMap(({ toolCalls }) => toolCalls.map(({ toolName }) => toolName))
  assert.deepEqual(called, ['read_resource', 'lookup_fingerprint', 'explain_detection', 'submit_signature'])
  // What it ends with is in the database, under the name of the client that it came from.
  const { body } = await manage.ask('GET', '/v1/submissions')
  assert.equal(body.total, 1)
  const [submission] = body.submissions
  assert.deepEqual([submission.fingerprint, submission.status], [UNKNOWN, 'pending'])
  assert.match(text, new RegExp(submission.id))
  assert.deepEqual(manage.failures, [])
})

/** The model: it does what a careful one would, and knows nothing but what it has been told. */
function nextStep(messages: readonly ModelMessage[]) {
  const told = messages.flatMap((message) => (message.role === 'tool' ? message.content : []))
  const results = told.flatMap((part) => (part.type === 'tool-result' ? [JSON.stringify(part.output)] : []))
  switch (results.length) {
    case 0: {
      const asked = JSON.stringify(messages.find(({ role }) => role === 'user'))
      return calling('read_resource', { uri: /gatehouse:\/\/signatures\?[\w=&-]+/.exec(asked)![0] })
    }
    case 1:
      return calling('lookup_fingerprint', {
        fingerprint: fingerprintIn(results[0]!),
        type: 'ja4',
        match: 'partial',
      })
    case 2: {
      // Some software shares parts of it, but none has all of it.
      assert.match(results[1]!, /curl/)
      return calling('explain_detection', { ja4: fingerprintIn(results[0]!) })
    }
    case 3: {
      assert.match(results[2]!, /verdict/)
      const notes = 'Shares its ciphers with curl, not its extensions.'
      const names = { agent_name: 'Patient Fetcher', category: 'custom' }
      return calling('submit_signature', {
        fingerprint: fingerprintIn(results[0]!),
        type: 'ja4',
        ...names,
        notes,
      })
    }
    default:
      return ending(`Submitted as ${/sub_[\w-]+/.exec(results[3]!)![0]}; an administrator decides.`)
  }
}

function fingerprintIn(text: string): string {
  return /t13d[0-9a-z]+_[0-9a-f]{12}_[0-9a-f]{12}/.exec(text)![0]
}

function calling(toolName: string, input: object) {
  const call = { type: 'tool-call' as const, toolCallId: toolName, toolName, input: JSON.stringify(input) }
  return {
    content: [call],
    finishReason: { unified: 'tool-calls' as const, raw: undefined },
    usage: USAGE,
    warnings: [],
  }
}

function ending(text: string) {
  const content = [{ type: 'text' as const, text }]
  return { content, finishReason: { unified: 'stop' as const, raw: undefined }, usage: USAGE, warnings: [] }
}

/** Of OAuth, as an agent has one. */
async function tokenFor(manage: TestManagement): Promise<string> {
  const client = await clientFor(manage, { scopes: ['read', 'detect', 'write', 'mcp'] })
  const form = { grant_type: 'client_credentials', resource: `${manage.url}/mcp` }
  const { body } = await postForm(manage.url, '/oauth/token', form, basic(client))
  return `Bearer ${body.access_token}`
}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
}
