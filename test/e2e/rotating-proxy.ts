import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * A forward proxy with many addresses, as residential proxies are: the name that a client gives is the loopback
 * address from which its connection goes on.
 */
export async function startRotatingProxy(t: Test): Promise<string> {
  const server = createServer((_, response) => response.writeHead(405).end())
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }
  server.on('connect', ({ url, headers }, client: Socket) => {
    keep(client)
    const given = headers['proxy-authorization']?.replace(/^Basic /, '')
    if (given === undefined) {
      client.end(
        'HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="a"\r\nContent-Length: 0\r\n\r\n',
      )
      return
    }
    const [localAddress] = Buffer.from(given, 'base64').toString().split(':')
    const port = Number(url!.split(':').at(-1))
    const onward = connect({ host: '127.0.0.1', port, localAddress: localAddress! }, () => {
      client.write('HTTP/1.1 200 Connected\r\n\r\n')
      client.pipe(onward).pipe(client)
    })
    keep(onward)
    client.on('close', () => onward.destroy())
    onward.on('close', () => client.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
