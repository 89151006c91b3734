import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { feedKeyOf, makeFeedPrivateKey, parseFeedPrivateKey, signFeed } from '../../src/plane/feed.ts'
import { endWith, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import { testCa, testLeaf } from '../proxy/test-certificates.ts'

const ca = await testCa()
const leaf = await testLeaf(ca, ['localhost'])
const key = parseFeedPrivateKey(makeFeedPrivateKey())
const TOKEN = 'never-to-be-shown-to-anybody'

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

async function start(t: Test, folder: string) {
  const child = spawn(process.execPath, [PROGRAM, 'proxy', '--config', 'g.yaml'], {
    cwd: folder,
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  let said = ''
  const ready = Promise.withResolvers<string>()
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    said += chunk
    const line = said.split('\n').find((each) => each.includes('"message":"ready"') && each.endsWith('}'))
    if (line !== undefined) ready.resolve(JSON.parse(line).manage)
  })
  const ended = once(child, 'exit')
  const manage = await Promise.race([ready.promise, ended.then(() => assert.fail(`it ended: ${said}`))])
  return {
    said: () => said,
    hangUp: () => child.kill('SIGHUP'),
    async stop() {
      child.kill('SIGINT')
      assert.deepEqual(await ended, [0, null])
    },
    /** Waits for as long as the test may take. */
    async until(metric: string, value: number) {
      for (;;) {
        const metrics = await (await fetch(`http://${manage}/metrics`)).text()
        if (metrics.split('\n').includes(`gatehouse_${metric} ${value}`)) return
        await wait(50)
      }
    },
  }
}

async function run(folder: string, ...argv: readonly string[]): Promise<string> {
  const env = plainEnvironment(folder)
  const child = spawn(process.execPath, [PROGRAM, ...argv], { cwd: folder, env })
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  assert.equal(child.exitCode, 0, err)
  return out
}

function signed(version: number): string {
  const software = [{ id: 'acme-bot', name: 'Acme', kind: 'agent', category: 'crawler' }]
  return signFeed({ name: 'acme', version, created: '2026-11-21T10:00:00Z', expires: null, software }, [key])
}

const PROGRAM = resolve('src/bin.js')
