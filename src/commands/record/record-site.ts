import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

interface RecordSite {
  readonly url: string
  close(): void
}

/** A small site on which clients can act: browse, follow links, call an API, a model or a tool. */
export async function startRecordSite(): Promise<RecordSite> {
  const server: Server = createServer((request, response) => {
    text(request).then(
      (body) => answer(request, body, response),
      () => response.destroy(), // the client has disconnected
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

function answer({ method, url = '/' }: IncomingMessage, body: string, response: ServerResponse): void {
  const path = url.split('?')[0]!
  const content = (method === 'POST' ? posted(path, body) : null) ?? PAGES.get(path) ?? notFound(path)
  response.writeHead(content.status ?? 200, {
    'Content-Type': content.type,
    'Content-Length': Buffer.byteLength(content.body),
    ...content.headers,
  })
  response.end(method === 'HEAD' ? undefined : content.body)
}

interface Content {
  readonly type: string
  readonly body: string | Buffer
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

function posted(path: string, body: string): Content | null {
  return path === '/mcp' ? mcpAnswer(body) : (POSTED.get(path) ?? null)
}

/** The part of MCP that a client needs to call a tool. Notifications get no answer. */
function mcpAnswer(body: string): Content {
  const call = parseCall(body)
  if (call === null) return { type: 'text/plain', body: 'no JSON-RPC\n', status: 400 }
  if (call.id === undefined) return { type: 'text/plain', body: '', status: 202 }
  const result = MCP_RESULTS.get(call.method) ?? {}
  const sent = json({ jsonrpc: '2.0', id: call.id, result })
  return call.method === 'initialize' ? { ...sent, headers: { 'Mcp-Session-Id': 'recorded' } } : sent
}

function parseCall(body: string): { readonly id: unknown; readonly method: string } | null {
  try {
    const { id, method } = JSON.parse(body) as { id?: unknown; method?: unknown }
    return typeof method === 'string' ? { id, method } : null
  } catch {
    return null
  }
}

/** Unknown paths below /api get a JSON answer, because every client library has its own paths. */
function notFound(path: string): Content {
  if (/^\/(?:api|v\d)\//.test(path)) return json({ ok: true, path })
  return { ...page('Not found', '<p><a href="/">Home</a></p>'), status: 404 }
}

function page(title: string, body: string): Content {
  const head = `<meta charset="utf-8"><title>${title}</title><link rel="stylesheet" href="/site.css">`
  return {
    type: 'text/html; charset=utf-8',
    body: `<!doctype html><html lang="en"><head>${head}</head><body><h1>${title}</h1>${body}</body></html>\n`,
    headers: { 'Set-Cookie': 'visit=1; Path=/' },
  }
}

function json(value: unknown): Content {
  return { type: 'application/json', body: JSON.stringify(value) }
}

const LINKS =
  '<ul><li><a href="/page/1">One</a><li><a href="/page/2">Two</a><li><a href="/form">Form</a></ul>'

const PAGES: ReadonlyMap<string, Content> = new Map(
  Object.entries({
    '/': page('Home', `${LINKS}<img src="/image.png" alt=""><script src="/site.js"></script>`),
    '/page/1': page('One', '<p><a href="/page/2">Two</a> <a href="/">Home</a></p>'),
    '/page/2': page('Two', '<p><a href="/page/1">One</a> <a href="/">Home</a></p>'),
    '/form': page(
      'Form',
      '<form method="post" action="/form"><input name="text" value="hello"><button id="send">Send</button></form>',
    ),
    '/site.css': { type: 'text/css', body: 'body { font-family: sans-serif; margin: 2em }\n' },
    '/site.js': {
      type: 'text/javascript',
      body: "fetch('/api/items').then((answer) => answer.json())\n",
    },
    '/image.png': {
      type: 'image/png',
      body: Buffer.from(
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
        'base64',
      ),
    },
    '/robots.txt': { type: 'text/plain', body: 'User-agent: *\nAllow: /\nSitemap: /sitemap.xml\n' },
    '/sitemap.xml': {
      type: 'application/xml',
      body: '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>\n',
    },
    '/api/items': json({ items: [{ id: 1, name: 'One' }] }),
    '/v1/models': json({ object: 'list', data: [{ id: 'recorded', object: 'model', owned_by: 'site' }] }),
    '/mcp': { type: 'text/plain', body: 'POST only\n', status: 405, headers: { Allow: 'POST' } },
  }),
)

const POSTED: ReadonlyMap<string, Content> = new Map(
  Object.entries({
    '/form': page('Thank you', '<p><a href="/">Home</a></p>'),
    '/v1/chat/completions': json({
      id: 'chat-1',
      object: 'chat.completion',
      created: 1,
      model: 'recorded',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
    '/v1/responses': json({
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: 'recorded',
      status: 'completed',
      output: [
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
        },
      ],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    }),
    '/v1/messages': json({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'recorded',
      stop_reason: 'end_turn',
      content: [{ type: 'text', text: 'Hello' }],
      usage: { input_tokens: 1, output_tokens: 1 },
    }),
  }),
)

const MCP_RESULTS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  [
    'initialize',
    {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'record-site', version: '1' },
    },
  ],
  ['tools/list', { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }],
  ['tools/call', { content: [{ type: 'text', text: 'Hello' }] }],
])
