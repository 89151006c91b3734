import type { Socket } from 'node:net'
import type { View } from './app-view.ts'
import type { Plan } from './plan.ts'

/** The app's side of an upgraded connection: what comes goes back, until the plan's bytes have. */
export function upgrade(plan: Plan, view: View, socket: Socket, head: Buffer): void {
  const { id, status, size, fault } = plan
  socket.on('error', () => socket.destroy())
  const lines = [`x-soak-id: ${id}`, `x-soak-view: ${JSON.stringify(view)}`]
  if (status !== 101) {
    const declined = [`HTTP/1.1 ${status} Declined`, ...lines, 'Content-Length: 0', 'Connection: close']
    return void socket.end(`${declined.join('\r\n')}\r\n\r\n`)
  }
  const agreed = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', ...lines]
  socket.write(`${agreed.join('\r\n')}\r\n\r\n`)
  const endsAt = fault === 'cut-body' ? Math.floor(size * Math.random()) : Number.POSITIVE_INFINITY
  let bytes = 0
  const echo = (piece: Buffer) => {
    bytes += piece.length
    if (bytes >= endsAt) return void socket.resetAndDestroy()
    if (!socket.write(piece)) socket.pause()
    if (bytes >= size) socket.end()
  }
  socket.on('drain', () => socket.resume())
  socket.on('data', echo)
  socket.on('end', () => socket.end())
  if (head.length > 0) echo(head)
}
