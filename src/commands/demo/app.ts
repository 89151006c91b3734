import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type SeenByGate, seenIn, seenText } from './seen.ts'

/** Called for each request with the client that its path names, and the gate's headers. */
type OnRequest = (client: string | null, seen: SeenByGate) => void

/** An app without fingerprinting: everything it shows about clients comes from the gate's headers. */
export class DemoApp {
  readonly url: string
  readonly #server: Server

  static async start(told: OnRequest): Promise<DemoApp> {
    const server = createServer((request, response) => void answer(request, response, told))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new DemoApp(server)
  }

  private constructor(server: Server) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/** The path for a client, so that requests can be assigned to it. */
export function pathOf(client: string): string {
  return `/from/${client}`
}

async function answer(request: IncomingMessage, response: ServerResponse, told: OnRequest): Promise<void> {
  const seen = seenIn(request.headers)
  const [, client = null, own] =
    /^\/from\/([a-z\d-]{1,20})(\/.*)?$/.exec(request.url!.split('?', 1)[0]!) ?? []
  const path = client === null ? request.url!.split('?', 1)[0]! : (own ?? '/')
  told(client, seen)
  try {
    if (path === '/robots.txt') return say(response, 'text/plain', 'User-agent: *\nAllow: /\n')
    if (path === '/events') return tell(response)
    if (path === '/mcp') return say(response, 'application/json', mcpAnswer(await text(request)))
    if (path.startsWith('/api'))
      return say(response, 'application/json', `${JSON.stringify(seen, null, 2)}\n`)
    const wantsText = !(request.headers.accept ?? '').includes('text/html')
    if (wantsText) return say(response, 'text/plain', `Hello. The gate says: ${seenText(seen)}.\n`)
    say(response, 'text/html', page(seen))
  } catch {
    // The client has disconnected.
    response.destroy()
  }
}

function say(response: ServerResponse, type: string, body: string): void {
  response.writeHead(200, { 'Content-Type': `${type}; charset=utf-8` }).end(body)
}

/** An endless stream, as some apps have. */
function tell(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  const timer = setInterval(() => response.write(`data: ${new Date().toISOString()}\n\n`), 1_000)
  response.on('close', () => clearInterval(timer))
}

/** The part of MCP that a client needs to connect and to find no tools. */
function mcpAnswer(body: string): string {
  const { id = null, method } = JSON.parse(body) as { id?: unknown; method?: string }
  const result =
    method === 'initialize'
      ? { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'demo', version: '1' } }
      : { tools: [] }
  return JSON.stringify({ jsonrpc: '2.0', id, result })
}

function page(seen: SeenByGate): string {
  const rows = Object.entries(seen)
    .map(([name, value]) => `<tr><th scope="row">${name}</th><td>${escaped(value ?? 'not said')}</td></tr>`)
    .join('')
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Demo app</title><style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}
th{text-align:left;padding-right:1rem}td{overflow-wrap:anywhere}</style>
<h1>Who you are</h1><p>This app knows nothing of fingerprints. The gate in front of it says of this request:
<strong>${escaped(seenText(seen))}</strong>.</p><table>${rows}</table>
<p>Ask with another program, and look again: <code>/api</code> says the same as JSON.</p></html>
`
}

function escaped(value: string): string {
  return value.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
}
