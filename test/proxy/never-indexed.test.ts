import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2 from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'tap'
import { startGate } from './test-gate.ts'
import { settingsFor } from './upstream-fixture.ts'

test('RFC 7541 §7.1.3: a field that is never indexed goes on as one to an app of HTTP/2 and back', async (t) => {
  const app = http2.createServer()
  const seen: unknown[] = []
  app.on('stream', (stream, headers) => {
    const names = Reflect.get(headers, http2.sensitiveHeaders)
    seen.push(names, headers['x-plan'])
    stream.respond(
      { 'x-secret': 'b', 'x-plan': 'gold', [http2.sensitiveHeaders]: names },
      { endStream: true },
    )
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => app.close())
  const url = `h2c://127.0.0.1:${(app.address() as AddressInfo).port}`
  const gate = await startGate(t, { upstreams: [settingsFor([url])] })
  const client = http2.connect(`https://127.0.0.1:${gate.secure.port}`, { rejectUnauthorized: false })
  t.teardown(() => client.destroy())
  for (const names of [['x-secret'], []]) {
    const headers = { 'x-plan': 'gold', 'x-secret': 'a', [http2.sensitiveHeaders]: names }
    const [answer] = await once(client.request(headers).resume(), 'response')
    assert.deepEqual(
      [answer[http2.sensitiveHeaders], answer['x-secret'], answer['x-plan']],
      [names, 'b', 'gold'],
    )
  }
  assert.deepEqual(seen, [['x-secret'], 'gold', [], 'gold'])
})
