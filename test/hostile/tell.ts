import net from 'node:net'

/** Everything that is received, however much can be sent. */
export async function tell(port: number, sent: string): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  let heard = ''
  socket
    .on('error', () => undefined)
    .setEncoding('latin1')
    .on('data', (text) => (heard += text))
  socket.write(sent)
  const timer = setTimeout(() => socket.destroy(), PATIENCE_MS)
  socket.on('end', () => socket.destroy())
  await new Promise((resolve) => socket.once('close', resolve))
  clearTimeout(timer)
  return heard
}

/** Far longer than any wait here on a busy machine. */
export const PATIENCE_MS = 60_000
