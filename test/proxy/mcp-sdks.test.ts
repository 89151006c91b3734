import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { buffer } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as EarlierClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as EarlierClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer as EarlierServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { type Test, test } from 'tap'
import * as z from 'zod'
import { startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

const POLICY = {
  rules: [
    { name: 'no deletes', when: { path: '/mcp', mcp_tool: 'delete_*' }, action: 'block' },
    { name: 'calls', when: { path: '/mcp', mcp_method: '*' }, action: 'tag' },
  ],
}
const APPS = { 'the SDK': currentApp, 'the SDK of version 1': earlierApp } as const
const CLIENTS = { 'its client': currentClient, 'the client of version 1': earlierClient } as const

for (const [app, startApp] of Object.entries(APPS))
  for (const [client, connect] of Object.entries(CLIENTS))
    test(`a server of ${app} is called by ${client} through the gate`, { timeout: 60_000 }, async (t) => {
      const { url, gate, deleted } = await startBehindGate(t, startApp)
      const { call, listTools } = await connect(t, url)
      assert.deepEqual((await listTools()).sort(), ['count', 'delete_all', 'echo'])
      assert.equal(await call('echo', { text: 'hello' }), 'hello')
      const steps: number[] = []
      assert.equal(await call('count', { to: 3 }, (step) => void steps.push(step)), '3')
      assert.deepEqual(steps, [1, 2, 3])
      await assert.rejects(call('delete_all', {}), /not allowed here/)
      assert.equal(deleted(), 0)
      const calls = gate.sightings.filter(({ mcpTool }) => mcpTool !== null)
      assert.deepEqual(
        calls.map(({ mcpTool, done }) => [mcpTool, done]),
        [
          ['echo', 'tag'],
          ['count', 'tag'],
          ['delete_all', 'block'],
        ],
      )
    })

test('a call with the headers of another one does not reach a server of the SDK', async (t) => {
  const { url, deleted } = await startBehindGate(t, currentApp)
  const lying: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    if (headers.get('mcp-name') === 'delete_all') headers.set('mcp-name', 'count')
    return fetch(input, { ...init, headers })
  }
  const { call } = await currentClient(t, url, lying)
  await assert.rejects(call('delete_all', {}), /disagree/)
  assert.equal(deleted(), 0)
})

type Call = (tool: string, given: object, progress?: (step: number) => void) => Promise<string>
interface Caller {
  readonly call: Call
  listTools(): Promise<string[]>
}

async function currentClient(t: Test, url: URL, by: typeof fetch = fetch): Promise<Caller> {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: by }))
  t.teardown(() => client.close())
  return callerOf(client as never)
}

async function earlierClient(t: Test, url: URL): Promise<Caller> {
  const client = new EarlierClient({ name: 'test', version: '1' })
  await client.connect(new EarlierClientTransport(url) as never)
  t.teardown(() => client.close())
  return callerOf({
    listTools: () => client.listTools(),
    callTool: (params: object, options: object) =>
      client.callTool(params as never, undefined, options as never),
  } as never)
}

function callerOf(client: {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(params: object, options: object): Promise<{ content: { text: string }[] }>
}): Caller {
  return {
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, given, progress) => {
      const onprogress = ({ progress: step }: { progress: number }) => progress?.(step)
      const options = progress === undefined ? {} : { onprogress }
      const { content } = await client.callTool({ name, arguments: given }, options)
      return content[0]!.text
    },
  }
}

type StartApp = (deletes: () => void) => http.RequestListener

/** Both SDKs have the same methods here. */
function addTools(server: McpServer, deletes: () => void): void {
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async ({ text }) =>
    answer(text),
  )
  server.registerTool('delete_all', { inputSchema: z.object({}) }, async () => {
    deletes()
    return answer('deleted')
  })
  server.registerTool('count', { inputSchema: z.object({ to: z.number() }) }, async ({ to }, context) => {
    const { _meta, sendNotification } = shownIn(context)
    for (let progress = 1; progress <= to && _meta?.progressToken !== undefined; progress++)
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken: _meta.progressToken, progress },
      })
    return answer(String(to))
  })
}

interface ToolContext {
  readonly _meta?: { readonly progressToken?: string | number }
  sendNotification(notification: object): Promise<void>
}

/** The SDK has moved these since version 1. */
function shownIn(context: unknown): ToolContext {
  const { mcpReq } = context as {
    mcpReq?: { _meta?: ToolContext['_meta']; notify: ToolContext['sendNotification'] }
  }
  if (mcpReq === undefined) return context as ToolContext
  return { ...(mcpReq._meta && { _meta: mcpReq._meta }), sendNotification: (each) => mcpReq.notify(each) }
}

function currentApp(deletes: () => void): http.RequestListener {
  const { fetch: serve } = createMcpHandler(() => {
    const server = new McpServer({ name: 'app', version: '1' })
    addTools(server, deletes)
    return server
  })
  return async (request, response) => {
    const body = request.method === 'POST' ? await buffer(request) : null
    const answered = await serve(
      new Request(`http://app.test${request.url}`, {
        method: request.method!,
        headers: request.headers as Record<string, string>,
        body: body as never,
      }),
    )
    response.writeHead(answered.status, Object.fromEntries(answered.headers))
    if (answered.body === null) response.end()
    else await pipeline(Readable.fromWeb(answered.body as never), response).catch(() => undefined)
  }
}

function earlierApp(deletes: () => void): http.RequestListener {
  return async (request, response) => {
    const server = new EarlierServer({ name: 'app', version: '1' })
    addTools(server as never, deletes)
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined as never })
    await server.connect(transport as never)
    response.on('close', () => void transport.close())
    await transport.handleRequest(request, response)
  }
}

async function startBehindGate(t: Test, startApp: StartApp) {
  let count = 0
  const app = http.createServer(startApp(() => void count++))
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => {
    app.close()
    app.closeAllConnections()
  })
  const upstream = `http://127.0.0.1:${(app.address() as AddressInfo).port}`
  const gate = await startGate(t, { upstreams: [settingsFor([upstream])], policy: POLICY })
  const url = new URL(`http://127.0.0.1:${gate.plain.port}/mcp`)
  return { url, gate, deleted: () => count }
}

function answer(text: string) {
  return { content: [{ type: 'text' as const, text }] }
}
