import assert from 'node:assert/strict'
import { test } from 'tap'
import { dialTls, startFront } from './front.ts'

test('ALPN: what a client offers is what it is served, also HTTP/1.0 alone as curl --http1.0 offers it', async (t) => {
  const front = await startFront()
  t.teardown(() => front.close())
  for (const offered of ['http/1.0', 'http/1.1', null]) {
    const peer = await dialTls(front.port, offered === null ? {} : { ALPNProtocols: [offered] })
    peer.write('GET /a HTTP/1.0\r\n\r\n')
    assert.match(await peer.hears('GET /a'), /^HTTP\/1\.1 200 OK\r\n/)
    await peer.closed
  }
})

test('ALPN: a client that offers nothing we speak is told so', async (t) => {
  const front = await startFront()
  t.teardown(() => front.close())
  await assert.rejects(dialTls(front.port, { ALPNProtocols: ['spdy/3'] }), {
    code: 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
  })
})
