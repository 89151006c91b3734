import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { type App, startApp } from './app.ts'
import { curl } from './curl.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { freePort, untilOpen } from './ports.ts'
import { endWith, plainEnvironment, skipped, temporaryFolder } from './programs.ts'

const ADMIN_KEY = 'an admin key of this test'
const REQUIRED = ['trusted_proxies: [127.0.0.1]', 'proxy_protocol: required']

for (const [version, sending] of Object.entries({ 1: 'send-proxy', 2: 'send-proxy-v2' })) {
  test(`HAProxy sends PROXY headers of version ${version}`, {
    skip: skipped('haproxy', 'curl'),
  }, async (t) => {
    const app = await startApp(t)
    const direct = await startGatehouse(t, { upstream: app.url })
    const behind = await startGatehouse(t, {
      command: 'up',
      upstream: app.url,
      settings: REQUIRED,
      variables: {
        GATEHOUSE_MANAGE_TRUSTED_PROXIES: '127.0.0.1',
        GATEHOUSE_MANAGE_PROXY_PROTOCOL: 'required',
        GATEHOUSE_ADMIN_KEY: ADMIN_KEY,
        GATEHOUSE_AUTH_FAILURES_PER_MINUTE: '3',
      },
    })
    const port = await startHaproxy(t, sending, `127.0.0.1:${behind.port}`)
    const managePort = await startHaproxy(t, sending, new URL(behind.manage).host)

    for (const protocol of ['--http1.1', '--http2'])
      t.test(`before the proxy: the app sees the client, curl ${protocol}`, async () => {
        const seen = await seenByApp(t, behind, app, [protocol, port])
        assert.equal(seen.address, '127.0.0.7')
        assert.match(seen.ja4, /^t13d/)
        assert.deepEqual(seen, await seenByApp(t, direct, app, [protocol, direct.port]))
      })

    t.test('before the management port: each client has a throttle of its own', async () => {
      const guesses: number[] = []
      for (let time = 0; time < 5; time++) guesses.push(await askedFor(managePort, '127.0.0.2', 'wrong'))
      assert.deepEqual(guesses, [401, 401, 401, 429, 429])
      assert.equal(await askedFor(managePort, '127.0.0.3', 'wrong'), 401)
      assert.equal(await askedFor(managePort, '127.0.0.4', ADMIN_KEY), 200)
    })
  })
}

/** What the app is told of a request that curl sends from 127.0.0.7 to this port. */
async function seenByApp(
  t: Test,
  { caFile }: RunningGatehouse,
  app: App,
  [protocol, port]: readonly [protocol: string, port: number],
): Promise<{ readonly address: string; readonly ja4: string }> {
  const url = `https://localhost:${port}/`
  const argv = [protocol, '--interface', '127.0.0.7', '--cacert', caFile, url]
  const { exitCode, heads } = await curl(temporaryFolder(t), argv)
  assert.equal(exitCode, 0)
  assert.equal(heads.at(-1)!.status, '200')
  const { rawHeaders } = app.asked.at(-1)!
  return { address: headerIn(rawHeaders, 'X-Real-IP'), ja4: headerIn(rawHeaders, 'X-JA4-Fingerprint') }
}

/** The status of a request for the audit log, in a connection of its own. */
async function askedFor(port: number, localAddress: string, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` }
  const path = '/v1/audit'
  const sent = request({ port, localAddress, path, headers, host: '127.0.0.1', agent: new Agent() }).end()
  const [response] = await once(sent, 'response')
  await text(response)
  return response.statusCode
}

/** Passes the bytes of connections on to the server, each with a PROXY header before them. Returns its port. */
async function startHaproxy(t: Test, sending: string, server: string): Promise<number> {
  const folder = temporaryFolder(t)
  const port = await freePort()
  const lines = [
    'defaults',
    '  mode tcp',
    '  timeout connect 5s',
    '  timeout client 30s',
    '  timeout server 30s',
    'listen gatehouse',
    `  bind 127.0.0.1:${port}`,
    `  server gatehouse ${server} ${sending}`,
  ]
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, `${lines.join('\n')}\n`)
  const child = spawn('haproxy', ['-db', '-f', file], {
    env: plainEnvironment(folder),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  endWith(t, child)
  await untilOpen(port, child)
  return port
}

function headerIn(rawHeaders: readonly string[], name: string): string {
  const at = rawHeaders.findIndex((found, i) => i % 2 === 0 && found === name)
  assert.notEqual(at, -1, `the app got ${name}`)
  return rawHeaders[at + 1]!
}
