import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

/** Ends a connection so that the client sees that the answer is incomplete. TLS shows this by itself. */
export function cutOff(socket: Socket | TLSSocket): void {
  // If our own end is still being sent, Node refuses the reset and would then never close the socket.
  if ('encrypted' in socket || socket.writableEnded) socket.destroy()
  else socket.resetAndDestroy()
}
