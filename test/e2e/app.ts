import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
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

/** An app of node:http that keeps what it is asked; what has no route is answered with `ok`. */
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

/** Once the whole body is there. */
export async function bodyOf(request: IncomingMessage): Promise<void> {
  request.resume()
  if (!request.complete) await once(request, 'end')
}
