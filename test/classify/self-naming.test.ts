import assert from 'node:assert/strict'
import { test } from 'tap'
import { classify } from '../../src/classify/verdict/classify.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import type { ConnectionPrint } from '../../src/fingerprint/print.ts'

/**
 * What SDKs, frameworks and MCP clients send that name themselves, on an unknown stack: by public source code,
 * see where each signature says it is from. Full User-Agents alone are in user-agents.json.
 */
const CLIENTS: readonly (readonly [headers: Headers, id: string, category: string])[] = [
  // The User-Agent is the HTTP library's, and a header says who it is.
  [
    { 'user-agent': 'python-httpx/0.28.1', 'x-fern-language': 'Python', 'x-fern-sdk-name': 'cohere' },
    'cohere-sdk-python',
    'llm-sdk',
  ],
  [{ 'user-agent': 'node', 'x-portkey-api-key': '-', 'x-portkey-virtual-key': '-' }, 'portkey', 'llm-sdk'],
  [
    { 'user-agent': 'python-requests/2.32.3', 'x-client-source': 'tavily-python' },
    'tavily-sdk-python',
    'llm-sdk',
  ],
  [{ 'user-agent': 'grpc-python-asyncio/1.73.1', 'xai-sdk-version': 'python/1.4.0' }, 'xai-sdk', 'llm-sdk'],
  [{ 'user-agent': 'Go-http-client/1.1', 'x-goog-api-client': 'genkit-go/0.6.2' }, 'genkit', 'orchestrator'],
  [
    {
      'user-agent': 'python-httpx/0.28.1',
      'x-goog-api-client': 'google-genai-sdk/1.20.0 gl-python/3.12.1 google-adk/1.4.2',
    },
    'google-adk',
    'orchestrator',
  ],
  [{ 'semantic-kernel-version': '1.60.0' }, 'semantic-kernel', 'orchestrator'],
  [{ 'user-agent': 'node', 'anthropic-version': '2023-06-01' }, 'anthropic-api-client', 'llm-sdk'],
  [{ 'user-agent': 'python-httpx/0.28.1', 'a2a-version': '0.3' }, 'a2a-client', 'orchestrator'],
  // The first request of MCP has none of its headers yet, and says what it takes in either order.
  [
    { 'user-agent': 'python-httpx/0.28.1', accept: 'application/json, text/event-stream' },
    'mcp-client',
    'mcp-client',
  ],
  [{ accept: 'text/event-stream, application/json' }, 'mcp-client', 'mcp-client'],
  [
    { 'user-agent': 'Java-http-client/17.0.2', 'mcp-protocol-version': '2025-06-18' },
    'mcp-client',
    'mcp-client',
  ],
  [
    { 'user-agent': 'claude-code/2.1.0', accept: 'application/json, text/event-stream' },
    'claude-code',
    'orchestrator',
  ],
  // A client that names more than the SDK is named first.
  [
    { 'user-agent': 'Agents/Python 0.2.3', 'x-stainless-lang': 'python' },
    'openai-agents-sdk',
    'orchestrator',
  ],
  [
    { 'user-agent': 'OpenAI/JS 6.1.0', 'x-stainless-lang': 'js', 'x-title': 'Kilo Code' },
    'openai-sdk-js',
    'llm-sdk',
  ],
  [{ 'user-agent': 'node', 'x-stainless-lang': 'js', 'x-title': 'Kilo Code' }, 'kilo-code', 'orchestrator'],
  // An SDK of a known generator, by an unknown author.
  [{ 'user-agent': 'AsyncAcme/Python 0.1.0', 'x-stainless-lang': 'python' }, 'stainless-sdk', 'llm-sdk'],
  [
    { 'user-agent': 'acme/0.1.0', 'x-fern-language': 'Python', 'x-fern-sdk-name': 'acme' },
    'fern-sdk',
    'llm-sdk',
  ],
  // One whose name is known, in a User-Agent that is not.
  [{ 'user-agent': 'mcp-inspector/1.0', 'mcp-session-id': 'a' }, 'mcp-client', 'mcp-client'],
  [{ 'user-agent': 'llamaindex/1.0', 'x-stainless-lang': 'js' }, 'llamaindex-js', 'orchestrator'],
]

const CONNECTION: ConnectionPrint = {
  ...{
    ja4: null,
    unresumed: null,
    pageWeight: null,
    stable: null,
    traits: null,
    ja4s: null,
    ja4x: null,
    http2: null,
  },
  ...{ noHello: 'not-tls', ja4Source: null },
}
const KNOWLEDGE = await loadKnowledge(null, null)

test('who names itself is called so, and an agent', async () => {
  for (const [headers, id, category] of CLIENTS) {
    const { kind, agent } = verdictOf(headers)
    assert.deepEqual([kind, agent?.id, agent?.category], ['agent', id, category], JSON.stringify(headers))
  }
})

test('an SDK is not an agent because of its generator', async () => {
  const { kind, software } = verdictOf({
    'user-agent': 'speakeasy-sdk/python 0.1.3 2.721.3 1.0.0 griddy-nfl',
    accept: 'application/json',
  })
  assert.deepEqual([kind, software?.id], ['automation', 'speakeasy-sdk'])
})

test('a tool that is called as an agent is a tool', async () => {
  for (const name of ['make', 'operator', 'continue']) {
    const { kind, agent } = verdictOf({ 'user-agent': `${name}/4.3`, accept: '*/*' })
    assert.deepEqual([kind, agent], ['automation', null], name)
  }
})

type Headers = Readonly<Record<string, string>>

function verdictOf(headers: Headers) {
  const rawHeaders = Object.entries({ ...headers, 'content-type': 'application/json' }).flat()
  const head = { method: 'POST', target: '/', version: '11', rawHeaders } as const
  return classify(KNOWLEDGE, { print: { connection: CONNECTION, ja4h: null }, head, conduct: null })
}
