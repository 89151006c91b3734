import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { agreement, echoer } from '../proxy/web-socket.ts'

/** The app's side of a WebSocket: every message comes back as it came, in the same frames. */
export function echoWebSocket(request: IncomingMessage, socket: Duplex): void {
  const protocol = request.headers['sec-websocket-protocol']?.split(',')[0]
  const key = `Sec-WebSocket-Key: ${request.headers['sec-websocket-key']}\r\n`
  socket.write(agreement(key, ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`])))
  const echo = echoer(() => socket.end())
  socket.on('error', () => socket.destroy()).on('data', (bytes: Buffer) => socket.write(echo(bytes)))
}
