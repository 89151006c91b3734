import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'

/** As much of the package ws, which brings no types, as is used here. */
export interface WsSocket {
  send(data: unknown, options?: { readonly binary?: boolean }): void
  ping(data: string): void
  close(code: number, reason: string): void
  terminate(): void
  on(event: 'message', heard: (data: Buffer, isBinary: boolean) => void): this
  on(event: 'pong' | 'ping', heard: (data: Buffer) => void): this
  on(event: 'close', heard: (code: number, reason: Buffer) => void): this
  on(event: 'open' | 'error', heard: (error?: Error) => void): this
}

interface WsServer {
  handleUpgrade(request: unknown, socket: Duplex, head: Buffer, done: (socket: WsSocket) => void): void
}

const { WebSocketServer } = (await import('ws' as string)) as {
  readonly WebSocketServer: new (options: object) => WsServer
}

export interface SocketApp {
  readonly url: string
  /** The headers of each handshake, as sent to the app. */
  readonly handshakes: (readonly string[])[]
  /** The code, the reason and the pongs of each WebSocket that has ended. */
  readonly ended: (readonly [code: number, reason: string, pongs: number])[]
}

/** A page, and a server of the package ws that sends every message back, after a ping. */
export async function startSocketApp(t: Test, { deflates = true } = {}): Promise<SocketApp> {
  const app = { url: '', handshakes: [] as string[][], ended: [] as [number, string, number][] }
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: deflates, maxPayload: 10_000_000 })
  const server = createServer((_, response) => {
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>A page</title>')
  })
  server.on('upgrade', (request, socket, head) => {
    app.handshakes.push(request.rawHeaders)
    sockets.handleUpgrade(request, socket, head, (found) => {
      let pongs = 0
      found.on('pong', () => pongs++).on('error', () => undefined)
      found.on('message', (data, isBinary) => {
        if (!isBinary && data.toString() === 'close') return found.close(4002, 'as you like')
        found.ping('are you there?')
        found.send(data, { binary: isBinary })
      })
      found.on('close', (code, reason) => void app.ended.push([code, reason.toString(), pongs]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  app.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return app
}

/**
 * What a client says on two WebSockets, for a page or for Node. No empty message comes last: Chromium (156) may keep it
 * back over HTTP/2, from node:http2 too.
 */
export const CONVERSATION = `async (url, options) => {
  const talk = (path, messages, end) => new Promise((resolve) => {
    const socket = new WebSocket(url + path, options)
    socket.binaryType = 'arraybuffer'
    const heard = []
    socket.onopen = () => messages.forEach((message) => socket.send(message))
    socket.onmessage = ({ data }) => {
      heard.push(typeof data === 'string' ? [data.length, data.slice(-9)] : [data.byteLength, new Uint8Array(data).at(-1)])
      if (heard.length === messages.length) end(socket)
    }
    socket.onerror = () => heard.push('error')
    socket.onclose = ({ code, reason, wasClean }) =>
      resolve([heard, socket.protocol, code, reason, wasClean, socket.extensions.split(';')[0]])
  })
  const large = new Uint8Array(1048576).map((_, i) => (i * 2654435761) >>> 24)
  const many = Array.from({ length: 100 }, (_, i) => 'message ' + i)
  return JSON.stringify([
    await talk('/one', ['hello', 'grüße', large, '', 'x'.repeat(1048576), Uint8Array.of(7)], (socket) => socket.close(4001, 'that is all')),
    await talk('/two', many, (socket) => socket.send('close')),
  ])
}`

const MANY = Array.from({ length: 100 }, (_, i) => [`message ${i}`.length, `message ${i}`.slice(-9)])
const LARGE = [1_048_576, Number(((1_048_575n * 2_654_435_761n) & 0xffff_ffffn) >> 24n)]

export function expectedTalk(extension: string): unknown {
  const one = [[5, 'hello'], [5, 'grüße'], LARGE, [0, ''], [1_048_576, 'xxxxxxxxx'], [1, 7]]
  return [
    [one, 'chat', 4001, 'that is all', true, extension],
    [MANY, 'chat', 4002, 'as you like', true, extension],
  ]
}

/** By name in lower case. */
export function headMap(rawHeaders: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (let i = 0; i < rawHeaders.length; i += 2) found.set(rawHeaders[i]!.toLowerCase(), rawHeaders[i + 1]!)
  return found
}
