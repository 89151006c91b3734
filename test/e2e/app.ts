import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { echoWebSocket } from './web-socket.ts'

/** What the app was asked, as it was sent to it. */
export interface Asked {
  readonly method: string
  readonly url: string
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
  readonly body: string
  readonly rawTrailers: readonly string[]
}

export interface App {
  readonly url: string
  readonly asked: Asked[]
}

export type Route = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>

/** An app of node:http that records its requests; a path without a route is answered with `ok`. */
export async function startApp(t: Test, routes: Readonly<Record<string, Route>> = {}): Promise<App> {
  const asked: Asked[] = []
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const hash = createHash('sha256')
    request.on('data', (bytes) => hash.update(bytes))
    request.on('end', () => {
      const { method, url, httpVersion, rawHeaders, rawTrailers } = request
      asked.push({
        method: method!,
        url: url!,
        httpVersion,
        rawHeaders,
        body: hash.digest('hex'),
        rawTrailers,
      })
    })
    const route = routes[request.url!.split('?')[0]!]
    if (route !== undefined) return route(request, response)
    await bodyOf(request)
    response.end('ok')
  }
  const server = createServer(answer)
  server.on('checkContinue', answer)
  server.on('upgrade', echoWebSocket)
  const sockets = new Set<IncomingMessage['socket']>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** An app of HTTP/2 without TLS that answers everything in the same way, with every part that an answer can have. */
export async function startHttp2App(t: Test): Promise<App> {
  const asked: Asked[] = []
  const server = createHttp2Server()
  server.on('stream', async (stream, headers, _flags, raw) => {
    stream.on('error', () => undefined)
    const method = headers[':method']!
    const hash = createHash('sha256')
    let rawTrailers: readonly string[] = []
    stream.on('trailers', (_headers, _flags, raw) => {
      rawTrailers = raw
    })
    if (headers.expect !== undefined) stream.additionalHeaders({ ':status': 100 })
    stream.additionalHeaders({ ':status': 103, link: ['</a.css>; rel=preload', '</b.js>; rel=preload'] })
    for await (const bytes of stream) hash.update(bytes)
    const pairs = raw.flatMap((name, i) => (i % 2 === 0 && !name.startsWith(':') ? [name, raw[i + 1]!] : []))
    const rawHeaders = ['host', headers[':authority']!, ...pairs]
    asked.push({
      method,
      url: headers[':path']!,
      httpVersion: '2',
      rawHeaders,
      body: hash.digest('hex'),
      rawTrailers,
    })
    const head = { ':status': 200, 'set-cookie': ['a=1', 'b=2'], 'x-empty': '', 'content-type': 'text/x-odd' }
    if (method === 'HEAD') return stream.respond(head, { endStream: true })
    stream.respond(head, { waitForTrailers: headers['te'] === 'trailers' })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-sum': '7' }))
    stream.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sessions = new Set<ServerHttp2Session>()
  server.on('session', (session) => sessions.add(session))
  t.teardown(() => {
    for (const session of sessions) session.destroy()
    server.close()
  })
  return { url: `h2c://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

/** Once the whole body is there. */
export async function bodyOf(request: IncomingMessage): Promise<void> {
  request.resume()
  if (!request.complete) await once(request, 'end')
}
