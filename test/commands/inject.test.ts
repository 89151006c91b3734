import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { endWith, GATEHOUSE, plainEnvironment, run, skipped, temporaryFolder } from '../e2e/programs.ts'
import { certificateFiles } from '../inject/certificates.ts'
import { FakeApiServer } from '../inject/fake-api-server.ts'
import { podAfter, responseIn, REVIEWS } from '../inject/reviews.ts'
import { start } from './gateway-process.ts'

const NAME = 'gatehouse-inject.gate.svc'
const REVIEW = 'test/inject/reviews/named-ports.json'

test('with a certificate in files, which curl asks, and which is loaded anew', {
  skip: skipped('curl'),
}, async (t) => {
  const folder = temporaryFolder(t)
  const first = await certificateFiles(folder)
  writeFileSync(
    join(folder, 'g.yaml'),
    `inject:
  listen: 127.0.0.1:0
  tls: {cert_file: tls.crt, key_file: tls.key}
  sidecar: {image: "gate:1", certificate: web-tls}
manage: {listen: "127.0.0.1:0"}
`,
  )
  const gatehouse = await start(t, folder, 'inject')
  const asked = await curl(`https://${gatehouse.listen}/mutate?timeout=5s`, first.ca, REVIEW)
  const review = REVIEWS.get('named-ports')!
  const after = podAfter(review, responseIn(JSON.parse(asked), JSON.parse(review).request.uid))
  assert.equal(after.spec!.initContainers![0]!.image, 'gate:1')
  await gatehouse.until('inject_reviews_total{outcome="patched"}', 1)
  const ready = await fetch(`http://${gatehouse.manage}/health/ready`)
  assert.deepEqual([ready.status, await ready.json()], [200, { status: 'ready', reasons: [] }])
  assert.equal((await fetch(`http://${gatehouse.manage}/health/live`)).status, 200)
  assert.equal((await fetch(`http://${gatehouse.manage}/mutate`, { method: 'POST' })).status, 404)

  const second = await certificateFiles(join(folder, 'second'))
  cpSync(second.key, first.key)
  cpSync(second.cert, first.cert)
  await gatehouse.until('loaded_version{what="inject-certificate"}', 2)
  await curl(`https://${gatehouse.listen}/mutate`, second.ca, REVIEW)
  assert.doesNotMatch(gatehouse.said(), /a setting is risky|"level":"error"/)
  await gatehouse.stop()
})

test('with a certificate of its own, which two replicas share', { skip: skipped('curl') }, async (t) => {
  const folder = temporaryFolder(t)
  const api = await FakeApiServer.start(t, join(folder, '.'))
  writeFileSync(
    join(folder, 'g.yaml'),
    `inject:
  listen: 127.0.0.1:0
  service_account_dir: .
  sidecar: {image: "gate:1"}
manage: {listen: "127.0.0.1:0"}
`,
  )
  const variables = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(api.port) }
  const replicas = await Promise.all([
    start(t, folder, 'inject', variables),
    start(t, folder, 'inject', variables),
  ])
  const bundle = join(folder, 'bundle.pem')
  writeFileSync(bundle, api.bundles[0]!)
  for (const { listen, said } of replicas) {
    const port = listen.split(':').at(-1)!
    const asked = await curl(`https://${NAME}:${port}/mutate`, bundle, REVIEW, [
      ...['--resolve', `${NAME}:${port}:127.0.0.1`],
    ])
    assert.equal(JSON.parse(asked).response.allowed, true)
    assert.doesNotMatch(said(), /PRIVATE|token-1/)
    assert.match(said(), /inject\.sidecar\.certificate: is not set/)
  }
  await Promise.all(replicas.map(({ stop }) => stop()))
})

test('without an API server it says that it is not ready, and stops when it is told to', async (t) => {
  const folder = temporaryFolder(t)
  const api = await FakeApiServer.start(t, folder)
  api.intercept = () => ({ status: 403, body: '{"message":"secrets is forbidden"}' })
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const manage = placeOf(free)
  free.close()
  const child = spawnInject(t, folder, ['--manage', manage, '--listen', '127.0.0.1:0'], {
    GATEHOUSE_INJECT_SIDECAR_IMAGE: 'gate:1',
    GATEHOUSE_INJECT_SERVICE_ACCOUNT_DIR: folder,
    ...{ KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(api.port) },
  })
  const said = text(child.stderr)
  while (api.asked.length < 2) await wait(20)
  const ready = await fetch(`http://${manage}/health/ready`)
  const { reasons } = (await ready.json()) as {
    reasons: readonly { readonly code: string; readonly detail: string }[]
  }
  assert.equal(ready.status, 503)
  assert.deepEqual(
    [reasons[0]?.code, reasons[1]?.code, reasons[1]?.detail.replace(/GET [^:]+/, 'GET it')],
    ['starting', 'certificate', 'GET it: 403 secrets is forbidden'],
  )
  assert.equal((await fetch(`http://${manage}/health/live`)).status, 200)
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
  const lines = (await said).trim().split('\n')
  assert.ok(lines.some((line) => JSON.parse(line).error?.message.endsWith('403 secrets is forbidden')))
  assert.equal(JSON.parse(lines.at(-1)!).message, 'stopped before it was ready')
})

test('what cannot be is said at once', async (t) => {
  const folder = temporaryFolder(t)
  await certificateFiles(folder)
  const env = { GATEHOUSE_INJECT_TLS_CERT_FILE: 'tls.crt', GATEHOUSE_INJECT_TLS_KEY_FILE: 'tls.key' }
  const image = { GATEHOUSE_INJECT_SIDECAR_IMAGE: 'gate:1' }
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const there = placeOf(taken)
  const cases: readonly (readonly [string[], NodeJS.ProcessEnv, RegExp])[] = [
    [[], env, /inject\.sidecar\.image: is missing; set the image of the sidecar/],
    [[], image, /KUBERNETES_SERVICE_HOST .* give inject\.tls\.cert_file/],
    [
      ['--listen', '9443'],
      { ...env, ...image },
      /^gatehouse inject: --listen: is "9443"; expected HOST:PORT/,
    ],
    [
      ['--listen', there, '--manage', '127.0.0.1:0'],
      { ...env, ...image },
      /cannot listen on 127\.0\.0\.1 port \d+: another program listens there; give it another with --listen/,
    ],
    [['--manage', there], { ...env, ...image }, /give it another with --manage/],
    [
      ['--manage', '127.0.0.1:0'],
      { ...image, GATEHOUSE_INJECT_TLS_CERT_FILE: 'none.crt' },
      /none\.crt does not exist/,
    ],
  ]
  for (const [argv, variables, words] of cases) {
    const child = spawnInject(t, folder, argv, variables)
    const [said, [status]] = await Promise.all([text(child.stderr), once(child, 'exit')])
    const last = said.split('\n').filter((line) => line !== '' && !line.startsWith('{'))
    assert.equal(status, 1, said)
    assert.match(last.join('\n'), words)
  }
})

function spawnInject(t: Test, cwd: string, argv: readonly string[], variables: NodeJS.ProcessEnv) {
  const child = spawn(process.execPath, [GATEHOUSE, 'inject', ...argv], {
    cwd,
    env: plainEnvironment(cwd, variables),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  endWith(t, child)
  return child
}

function placeOf(server: Server): string {
  const place = server.address()
  assert.ok(typeof place === 'object' && place !== null)
  return `127.0.0.1:${place.port}`
}

async function curl(url: string, ca: string, review: string, more: readonly string[] = []): Promise<string> {
  const argv = ['-sS', '--fail', '--cacert', ca, '-H', 'Content-Type: application/json', ...more]
  const { status, stdout, stderr } = await run('curl', [...argv, '--data-binary', `@${review}`, url], {
    env: plainEnvironment('.'),
  })
  assert.equal(status, 0, stderr)
  return stdout
}
