import {
  acceptedContent,
  type CallToolResult,
  type ContentBlock,
  completable,
  createRequestStateCodec,
  fromJsonSchema,
  inputRequired,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import type { MakeServer } from '../../src/manage/mcp/asker.ts'

// What the conformance suite wants a server to have that is only there to be tried: contents of every kind, and questions
// to the client, none of which Gatehouse has. It stands behind our endpoint in the place of our own.

export const makeFixtures: MakeServer = () => {
  const server = new McpServer(
    { name: 'fixtures', version: '1.0.0' },
    {
      capabilities: { tools: { listChanged: false }, prompts: { listChanged: false }, logging: {} },
      requestState: { verify: STATE.verify },
    },
  )
  addContents(server)
  addTalk(server)
  addQuestions(server)
  addResources(server)
  addPrompts(server)
  return server
}

function addContents(server: McpServer): void {
  const contents: Readonly<Record<string, readonly ContentBlock[]>> = {
    test_simple_text: [{ type: 'text', text: 'This is a simple text response for testing.' }],
    test_image_content: [IMAGE],
    test_audio_content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
    test_embedded_resource: [EMBEDDED],
    test_multiple_content_types: [{ type: 'text', text: 'Multiple content types test:' }, IMAGE, EMBEDDED],
  }
  for (const [name, content] of Object.entries(contents))
    server.registerTool(name, { description: name }, () => ({ content: [...content] }))
  server.registerTool('test_error_handling', { description: 'Fails.' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  const inputSchema = fromJsonSchema({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  })
  server.registerTool('json_schema_2020_12_tool', { description: 'Its schema is.', inputSchema }, () =>
    said('ok'),
  )
  const region = z.string().meta({ 'x-mcp-header': 'Region' })
  const inHeader = z.object({ region, query: z.string().optional() })
  server.registerTool('test_custom_headers', { description: 'Has one.', inputSchema: inHeader }, () =>
    said('ok'),
  )
}

/** What is sent while a tool works. */
function addTalk(server: McpServer): void {
  const log = async ({ mcpReq }: ServerContext) => {
    for (const text of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await mcpReq.log('info', text)
      await wait(50)
    }
    return said('logged')
  }
  server.registerTool('test_tool_with_logging', { description: 'Logs.' }, log)
  server.registerTool('test_logging_tool', { description: 'Logs.' }, log)
  server.registerTool(
    'test_tool_with_progress',
    { description: 'Says how far it is.' },
    async ({ mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken ?? 0
      for (const progress of [0, 50, 100]) {
        await mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken, progress, total: 100 },
        })
        await wait(50)
      }
      return said('done')
    },
  )
  server.registerTool('test_missing_capability', { description: 'Needs one.' }, () =>
    asking({ question: CAPITAL }),
  )
  server.registerTool('test_streaming_elicitation', { description: 'Asks.' }, () =>
    asking({ user_name: NAME }),
  )
}

/** What needs an answer of the client before it is done. */
function addQuestions(server: McpServer): void {
  const add = (name: string, answer: (ctx: ServerContext) => Answer | Promise<Answer>) =>
    server.registerTool(`test_input_required_result_${name}`, { description: name }, answer)
  add('elicitation', ({ mcpReq }) => {
    const { name } = acceptedContent<{ name: string }>(mcpReq.inputResponses, 'user_name') ?? {}
    return typeof name === 'string' ? said(`Hello, ${name}!`) : asking({ user_name: NAME })
  })
  add('sampling', ({ mcpReq }) =>
    has(mcpReq, 'capital_question') ? said(mcpReq.inputResponses) : asking({ capital_question: CAPITAL }),
  )
  add('list_roots', ({ mcpReq }) =>
    has(mcpReq, 'client_roots') ? said(mcpReq.inputResponses) : asking({ client_roots: ROOTS }),
  )
  add('request_state', async ({ mcpReq }) =>
    has(mcpReq, 'confirm') && mcpReq.requestState() !== undefined
      ? said('state-ok')
      : asking({ confirm: CONFIRM }, await STATE.mint({ step: 1 })),
  )
  add('tampered_state', async ({ mcpReq }) =>
    has(mcpReq, 'confirm') && mcpReq.requestState() !== undefined
      ? said('state-ok')
      : asking({ confirm: CONFIRM }, await STATE.mint({ step: 1 })),
  )
  add('multiple_inputs', async ({ mcpReq }) =>
    ['user_name', 'greeting', 'client_roots'].every((key) => has(mcpReq, key))
      ? said(mcpReq.inputResponses)
      : asking({ user_name: NAME, greeting: CAPITAL, client_roots: ROOTS }, await STATE.mint({ step: 1 })),
  )
  add('multi_round', async ({ mcpReq }) => {
    const step = mcpReq.requestState<{ step: number }>()?.step ?? 0
    if (step === 0) return asking({ step1: NAME }, await STATE.mint({ step: 1 }))
    return step === 1 ? asking({ step2: COLOUR }, await STATE.mint({ step: 2 })) : said('done')
  })
  add('capabilities', () => {
    const able = server.server.getClientCapabilities() ?? {}
    return asking({
      ...('sampling' in able ? { capital_question: CAPITAL } : {}),
      ...('elicitation' in able ? { user_name: NAME } : {}),
    })
  })
}

function addResources(server: McpServer): void {
  const text = 'This is the content of the static text resource.'
  server.registerResource('text', 'test://static-text', { mimeType: 'text/plain' }, ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'text/plain', text }],
  }))
  server.registerResource('binary', 'test://static-binary', { mimeType: 'image/png' }, ({ href: uri }) => ({
    contents: [{ uri, mimeType: 'image/png', blob: PIXEL }],
  }))
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined })
  server.registerResource(
    'template',
    template,
    { mimeType: 'application/json' },
    ({ href: uri }, { id }) => ({
      contents: [{ uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true }) }],
    }),
  )
}

function addPrompts(server: McpServer): void {
  const user = (content: ContentBlock) => ({ role: 'user' as const, content })
  const text = (words: string) => user({ type: 'text', text: words })
  server.registerPrompt('test_simple_prompt', { description: 'Simple.' }, () => ({
    messages: [text('This is a simple prompt for testing.')],
  }))
  const arg1 = completable(z.string(), (value) =>
    ['paris', 'park', 'party'].filter((each) => each.startsWith(value)),
  )
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'With arguments.', argsSchema: z.object({ arg1, arg2: z.string() }) },
    ({ arg1, arg2 }) => ({ messages: [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'With a resource.', argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri: uri }) => ({
      messages: [user({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'Embedded.' } })],
    }),
  )
  server.registerPrompt('test_prompt_with_image', { description: 'With an image.' }, () => ({
    messages: [user(IMAGE), text('Please analyze the image above.')],
  }))
  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks.' }, ({ mcpReq }) =>
    has(mcpReq, 'user_context') ? { messages: [text('With context.')] } : asking({ user_context: NAME }),
  )
}

type Answer = CallToolResult | ReturnType<typeof inputRequired>
type Asked = NonNullable<Parameters<typeof inputRequired>[0]['inputRequests']>

function asking(inputRequests: Asked, requestState?: string) {
  return inputRequired({ inputRequests, ...(requestState === undefined ? {} : { requestState }) })
}

function said(what: unknown): CallToolResult {
  return { content: [{ type: 'text', text: typeof what === 'string' ? what : JSON.stringify(what) }] }
}

function has({ inputResponses }: ServerContext['mcpReq'], key: string): boolean {
  return inputResponses !== undefined && key in inputResponses
}

function question(message: string, requestedSchema: z.ZodObject) {
  return inputRequired.elicit({ message, requestedSchema })
}

const STATE = createRequestStateCodec({ key: Buffer.alloc(32, 7) })
const NAME = question('What is your name?', z.object({ name: z.string() }))
const COLOUR = question('What is your favorite color?', z.object({ color: z.string() }))
const CONFIRM = question('Please confirm', z.object({ ok: z.boolean() }))
const CAPITAL = inputRequired.createMessage({
  messages: [{ role: 'user', content: { type: 'text', text: 'What is the capital of France?' } }],
  maxTokens: 100,
})
const ROOTS = inputRequired.listRoots()
/** One pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
/** Silence. */
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='
const IMAGE: ContentBlock = { type: 'image', data: PIXEL, mimeType: 'image/png' }
const EMBEDDED: ContentBlock = {
  type: 'resource',
  resource: {
    uri: 'test://embedded-resource',
    mimeType: 'text/plain',
    text: 'This is an embedded resource content.',
  },
}
