import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { cutOff } from '../../src/proxy/connection/cut-off.ts'

export interface SyslogReceiver {
  readonly port: number
  /** What came, message by message. */
  readonly messages: readonly string[]
  /** From now on nothing that comes is read. */
  hang(): void
  /** At once, with whatever is under way. */
  die(): Promise<void>
}

export interface ReceiverTls {
  readonly cert: string
  readonly key: string
}

/** What counts octets, as RFC 6587 and 5425 have it. */
export async function streamReceiver(port = 0, tls: ReceiverTls | null = null): Promise<SyslogReceiver> {
  const messages: string[] = []
  const sockets = new Set<Socket>()
  const onConnection = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let waiting: Buffer = Buffer.alloc(0)
    socket.on('data', (data) => {
      waiting = readFrames(Buffer.concat([waiting, data]), messages)
    })
  }
  const server: Server = tls === null ? createServer(onConnection) : createTlsServer({ ...tls }, onConnection)
  server.on('tlsClientError', () => undefined)
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    messages,
    hang: () => {
      for (const socket of sockets) socket.pause()
    },
    die: async () => {
      server.close()
      for (const socket of sockets) cutOff(socket)
      await once(server, 'close')
    },
  }
}

export async function udpReceiver(port = 0): Promise<SyslogReceiver> {
  const messages: string[] = []
  const socket = createSocket('udp4', (message) => messages.push(message.toString()))
  socket.bind(port, '127.0.0.1')
  await once(socket, 'listening')
  return {
    port: socket.address().port,
    messages,
    hang: () => undefined,
    die: async () => {
      socket.close()
      await once(socket, 'close')
    },
  }
}

function readFrames(bytes: Buffer, messages: string[]): Buffer {
  for (;;) {
    const [, digits] = /^(\d{1,9}) /.exec(bytes.subarray(0, 10).toString('latin1')) ?? []
    if (digits === undefined) return bytes
    const start = digits.length + 1
    const end = start + Number(digits)
    if (bytes.length < end) return bytes
    messages.push(bytes.subarray(start, end).toString())
    bytes = bytes.subarray(end)
  }
}
