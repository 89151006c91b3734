import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'

/** What clients sent to a server, connection after connection. */
export async function recorded(
  server: net.Server,
  clients: (port: number) => Promise<void>,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  const recorder = net.createServer((client) => {
    const toServer = net.connect((server.address() as AddressInfo).port)
    client.on('data', (chunk) => chunks.push(chunk))
    client.pipe(toServer).pipe(client)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await once(recorder.listen(0, '127.0.0.1'), 'listening')
  try {
    await clients((recorder.address() as AddressInfo).port)
  } finally {
    recorder.close()
    server.close()
  }
  return Buffer.concat(chunks)
}
