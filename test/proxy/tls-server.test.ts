import assert from 'node:assert/strict'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { test } from 'tap'
import { ClientConnection } from '../../src/proxy/connection/connection.ts'
import { readOpening } from '../../src/proxy/connection/hello.ts'
import { TlsServer } from '../../src/proxy/tls/tls-server.ts'
import { isCollected } from '../collected.ts'
import { identities } from './front.ts'

test('a connection keeps nothing of the hello it began with, but what has been made of it', async (t) => {
  const options = {
    certificates: await identities(),
    ticketKeys: Buffer.alloc(48, 3),
    minVersion: 'TLSv1.2',
    requestClientCertificate: false,
    clientCa: null,
    handshakeTimeoutMs: 5000,
    ja4plus: true,
  } as const
  const secured = Promise.withResolvers<ClientConnection>()
  const server = new TlsServer(options, {
    secured: secured.resolve,
    failed: (_, reason, code) => secured.reject(new Error(`${reason} ${code}`)),
  })
  const hellos: WeakRef<object>[] = []
  const front = net.createServer({ pauseOnConnect: true }, (raw) => {
    const connection = new ClientConnection(1, raw, true, '127.0.0.1')
    const limits = { isTls: true, timeoutMs: 5000, bytesMax: 65_536, proxyHeader: 'none' } as const
    readOpening(
      raw,
      limits,
      () => true,
      (opening) => {
        if (opening.kind !== 'tls') return secured.reject(new Error(opening.kind))
        hellos.push(new WeakRef(opening.hello!), new WeakRef(opening.message!))
        server.accept({ connection, message: opening.message, hello: opening.hello })
      },
    )
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  const { port } = front.address() as AddressInfo
  const client = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  t.after(() => {
    client.destroy()
    front.close()
  })
  await once(client, 'secureConnect')
  const { print, stream } = await secured.promise
  assert.match(print.ja4!, /^t13/)
  for (const hello of hellos) assert.ok(await isCollected(hello))
  assert.equal(hellos.length, 2)
  assert.ok(!stream.destroyed && !client.destroyed)
})
