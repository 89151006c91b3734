import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server, Socket } from 'node:net'
import { ByteQueue } from '../../../wire/byte-queue.ts'
import { type ProxySource, parseProxyHeader } from '../../../wire/proxy-protocol.ts'
import { type ClientAddresses, peerAddress } from './client-address.ts'

/** Why a connection was closed at its PROXY header. */
export type ProxyHeaderFault = (typeof PROXY_HEADER_FAULTS)[number]

export const PROXY_HEADER_FAULTS = ['untrusted', 'missing', 'malformed', 'incomplete'] as const

interface ProxyHeaderSettings {
  readonly mode: 'optional' | 'required'
  readonly timeoutMs: number
  refused(fault: ProxyHeaderFault): void
}

/**
 * Takes the PROXY header off each connection of a trusted proxy before the server, or its TLS, reads the
 * connection. A header from another peer is not recognised, so it is an invalid request.
 */
export function takeProxyHeaders(
  server: Server,
  addresses: ClientAddresses,
  { mode, timeoutMs, refused }: ProxyHeaderSettings,
): void {
  const listeners = server.listeners('connection') as ((socket: Socket) => void)[]
  // TLS makes its own socket for the connection. The asynchronous context carries the address to it.
  const proxied = new AsyncLocalStorage<string>()
  server.on('secureConnection', (socket: Socket) => {
    const address = proxied.getStore()
    if (address !== undefined) addresses.setProxied(socket, address)
  })
  const serve = (socket: Socket, source: ProxySource | null) => {
    const accept = () => {
      for (const listener of listeners) listener.call(server, socket)
    }
    if (source === null) return accept()
    addresses.setProxied(socket, source.address)
    proxied.run(source.address, accept)
  }
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (!addresses.trusted.has(peerAddress(socket))) {
      if (mode === 'optional') return serve(socket, null)
      refused('untrusted')
      return void socket.destroy()
    }
    readProxyHeader(socket, timeoutMs, (read) => {
      const fault = read === 'none' ? (mode === 'required' ? 'missing' : null) : faultOf(read)
      if (fault === null) return serve(socket, typeof read === 'string' ? null : read.source)
      refused(fault)
      socket.destroy()
    })
  })
}

/** `none`: the connection begins with something else, which can still be read. */
type HeaderRead = { readonly source: ProxySource | null } | 'none' | 'malformed' | 'incomplete'

function faultOf(read: Exclude<HeaderRead, 'none'>): ProxyHeaderFault | null {
  return typeof read === 'string' ? read : null
}

/** `done` is called once. Bytes after the header are put back. */
function readProxyHeader(socket: Socket, timeoutMs: number, done: (read: HeaderRead) => void): void {
  const queue = new ByteQueue()
  const finish = (read: HeaderRead) => {
    clearTimeout(timer)
    socket.off('readable', onReadable).off('end', onEnd).off('close', onEnd).off('error', ignore)
    const goesOn = read === 'none' || typeof read === 'object'
    if (goesOn && queue.length > 0) socket.unshift(queue.rest())
    done(read)
  }
  const onReadable = () => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      queue.push(chunk)
      const read = parseProxyHeader(queue.rest())
      if (read.kind === 'need-more') continue
      if (read.kind !== 'header') return finish(read.kind)
      queue.skip(read.length)
      return finish({ source: read.source })
    }
  }
  const onEnd = () => finish('incomplete')
  const ignore = () => undefined // 'close' follows
  const timer = setTimeout(onEnd, timeoutMs)
  socket.on('readable', onReadable).on('end', onEnd).on('close', onEnd).on('error', ignore)
}
