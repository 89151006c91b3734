import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'
import { run, start } from './gateway-process.ts'

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
const key = parseFeedPrivateKey(makeFeedPrivateKey())
const TOKEN = 'never-to-be-shown-to-any-reader'

test('a gateway fetches a feed, takes a rollback, and starts again while the server is down', async (t) => {
  const folder = temporaryFolder(t)
  let version = 1
  const server = createServer({ cert: leaf.certificate, key: leaf.key }, (request, response) => {
    const isKnown = request.headers.authorization === `Bearer ${TOKEN}`
    response.writeHead(isKnown ? 200 : 401).end(signed(version))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  writeFileSync(join(folder, 'ca.pem'), ca.certificate)
  const url = `https://localhost:${(server.address() as AddressInfo).port}/acme.json`
  const trust = `public_keys: "${feedKeyOf(key).text}", ca_file: ca.pem, allow_private: true, token: ${TOKEN}`
  mkdirSync(join(folder, 'own'))
  writeFileSync(
    join(folder, 'g.yaml'),
    `proxy: {upstream: "http://127.0.0.1:9", listen: "127.0.0.1:0"}\nmanage: {listen: "127.0.0.1:0"}\n` +
      `signatures: own\nfeeds: [{name: acme, url: "${url}", ${trust}}]\n`,
    { mode: 0o600 },
  )

  const first = await start(t, folder)
  await first.until('feed_version{feed="acme"}', 1)
  version = 2
  first.hangUp()
  await first.until('feed_version{feed="acme"}', 2)
  const back = await run(folder, 'signatures', 'rollback', 'acme', '--config', 'g.yaml')
  assert.match(back, /^acme: version 1, .* is in use/)
  first.hangUp() // as its watch would do in the end
  await first.until('feed_version{feed="acme"}', 1)
  await first.until('feed_pinned{feed="acme"}', 1)
  writeFileSync(join(folder, 'own', 'bad.yaml'), '- {id: x}\n')
  await first.until('reload_current{what="signatures"}', 0)
  writeFileSync(join(folder, 'own', 'bad.yaml'), '- {id: x, name: x, kind: tool}\n')
  await first.until('reload_current{what="signatures"}', 1)
  await first.stop()
  assert.ok(!first.said().includes(TOKEN))

  server.close()
  server.closeAllConnections()
  const second = await start(t, folder)
  await second.until('feed_version{feed="acme"}', 1)
  await second.until('feed_failures_total{feed="acme",reason="network"}', 1)
  await run(folder, 'signatures', 'rollback', 'acme', '--unpin', '--config', 'g.yaml')
  second.hangUp()
  await second.until('feed_version{feed="acme"}', 2)
  const shown = await run(folder, 'check', '--config', 'g.yaml')
  assert.match(shown, /token: <redacted>/)
  assert.ok(!shown.includes(TOKEN))
})

function signed(version: number): string {
  const software = [{ id: 'acme-bot', name: 'Acme', kind: 'agent', category: 'crawler' }]
  return signFeed({ name: 'acme', version, created: '2026-11-21T10:00:00Z', expires: null, software }, [key])
}
