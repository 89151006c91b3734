import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Ends a connection so that the client sees that what it got is not all. TLS says so by itself. */
export function cutOff(socket: Socket | TLSSocket): void {
  // A reset while the own end is still on its way is refused, and Node then never closes the socket at all.
  if ('encrypted' in socket || socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
