import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { parseConfig } from '../../src/config/config.ts'
import { endWith, GATEHOUSE, plainEnvironment, temporaryFolder } from '../e2e/programs.ts'
import { certificateFiles } from './certificates.ts'
import { again, answerTo, busSettings, podAfter, REVIEWS, sidecarSettings } from './reviews.ts'

test('the settings of a sidecar are ones that the proxy takes', async () => {
  const env = environmentOf(
    { 'gatehouse.dev/certificate': 'web-tls', 'gatehouse.dev/upstream-scheme': 'h2c' },
    {
      ...{ listenAddress: '::', plainPort: 8080 },
      bus: busSettings({ urls: ['tls://nats-0:4222', 'tls://nats-1:4222'], secret: 'gate-nats' }),
    },
  )
  const { config } = parseConfig({ flags: {}, env, file: null, role: 'proxy' })
  assert.deepEqual(config.proxy.listen, { host: '::', port: 8443 })
  assert.deepEqual(config.proxy.plainListen, { host: '::', port: 8080 })
  assert.deepEqual(config.manage.listen, { host: '::', port: 9080 })
  assert.deepEqual(config.proxy.upstreams[0]!.urls, ['h2c://127.0.0.1:3000'])
  assert.equal(config.data.dir, '/var/lib/gatehouse')
  assert.deepEqual(config.bus.urls, ['tls://nats-0:4222', 'tls://nats-1:4222'])
  assert.equal(config.bus.credentialsFile, '/etc/gatehouse-bus/nats.creds')
  const [certificate] = config.proxy.tls.certificates
  assert.equal(certificate!.certificateFile, '/etc/gatehouse-tls/tls.crt')
  assert.equal(certificate!.keyFile, '/etc/gatehouse-tls/tls.key')
})

test('what the webhook puts into a Pod is started, found ready, and takes requests for the app', async (t) => {
  const app = createServer((asked, response) => {
    response.end(`${asked.url} ${asked.headers['x-forwarded-proto']}`)
  }).listen(0, '127.0.0.1')
  await once(app, 'listening')
  t.teardown(() => void app.close().closeAllConnections())
  const folder = temporaryFolder(t)
  const files = await certificateFiles(folder)
  const [listenPort, managePort] = await freePorts()
  const env = environmentOf({
    'gatehouse.dev/upstream-port': String((app.address() as AddressInfo).port),
    'gatehouse.dev/listen-port': String(listenPort),
    'gatehouse.dev/manage-port': String(managePort),
    'gatehouse.dev/certificate': 'web-tls',
  })
  // Where its volumes would be.
  const mounted = {
    ...env,
    GATEHOUSE_DATA_DIR: join(folder, 'data'),
    GATEHOUSE_PROXY_TLS_CERT_FILE: files.cert,
    GATEHOUSE_PROXY_TLS_KEY_FILE: files.key,
  }
  const child = spawn(process.execPath, [GATEHOUSE, 'proxy'], {
    cwd: folder,
    env: plainEnvironment(folder, mounted),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  child.stderr.resume()
  const ended = once(child, 'exit')
  for (const path of ['live', 'ready']) {
    const isAnswered = () =>
      fetch(`http://127.0.0.1:${managePort}/health/${path}`).then(
        ({ ok }) => ok,
        () => false,
      )
    while (!(await isAnswered())) {
      assert.equal(child.exitCode, null)
      await wait(50)
    }
  }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { host: '127.0.0.1', port: listenPort, path: '/hello', ca: files.caText, agent: false }
    request(options, resolve).on('error', reject).end()
  })
  assert.equal(await text(response), '/hello https')
  child.kill('SIGINT')
  assert.deepEqual(await ended, [0, null])
})

function environmentOf(
  annotations: Readonly<Record<string, string>>,
  settings: Parameters<typeof sidecarSettings>[0] = {},
): Record<string, string> {
  const review = REVIEWS.get('deployment')!
  const pod = JSON.parse(review).request.object
  pod.metadata.annotations = annotations
  const asked = again(review, pod)
  const after = podAfter(asked, answerTo(asked, sidecarSettings(settings)))
  return Object.fromEntries(after.spec!.initContainers![0]!.env!.map(({ name, value }) => [name, value!]))
}

async function freePorts(): Promise<readonly [number, number]> {
  const servers = [
    createNetServer().listen(0, '127.0.0.1'),
    createNetServer().listen(0, '127.0.0.1'),
  ] as const
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const [one, two] = servers.map((server) => (server.address() as AddressInfo).port)
  for (const server of servers) server.close()
  return [one!, two!]
}
