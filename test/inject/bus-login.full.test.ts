import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:https'
import { join } from 'node:path'
import { test } from 'tap'
import { PASSWORDS, startGuardedNats } from '../config/nats-server.ts'
import { asked, eventually, startManager } from '../e2e/fleet.ts'
import { GATEHOUSE, plainEnvironment, run, skipped, temporaryFolder } from '../e2e/programs.ts'
import { freshUrl } from '../store/databases.ts'
import { FailedMount, startSidecar } from './pod-process.ts'
import { injectedPod } from './injected-pod.ts'
import { busSettings } from './reviews.ts'
import { startTlsNats, textIn } from './tls-nats.ts'

const skip = skipped('nats-server') || skipped('openssl')

test('an injected sidecar logs in to a NATS with users, TLS and client certificates', { skip }, async (t) => {
  const nats = await startTlsNats(t)
  const login = {
    ...{ GATEHOUSE_BUS_USER: 'manage', GATEHOUSE_BUS_PASSWORD: PASSWORDS.manage },
    ...{ GATEHOUSE_BUS_CA_FILE: nats.caFile, GATEHOUSE_BUS_CERTIFICATE_FILE: nats.client.certificateFile },
    GATEHOUSE_BUS_KEY_FILE: nats.client.keyFile,
  }
  const place = { nats: nats.url, postgres: await freshUrl('postgres', t), bus: 'gatehouse' }
  const manager = await startManager(t, place, login)
  const bus = busSettings({
    ...{ urls: [nats.url], name: 'gatehouse', user: 'proxy', secret: 'gatehouse-bus' },
    ...{ certificate: 'gatehouse-bus-tls', caConfigMap: 'nats-ca' },
  })
  const pod = await injectedPod(t, { bus })
  assert.ok(!JSON.stringify(pod).includes(PASSWORDS.proxy))
  const namespace = {
    secrets: {
      'gatehouse-bus': { password: PASSWORDS.proxy },
      'gatehouse-bus-tls': {
        'tls.crt': textIn(nats.client.certificateFile),
        'tls.key': textIn(nats.client.keyFile),
      },
    },
    configMaps: { 'nats-ca': { 'ca.crt': textIn(nats.caFile) } },
  }
  await startSidecar(t, pod, namespace)
  await eventually(async () => {
    const { proxies } = await asked(manager, 'GET', '/v1/fleet/proxies')
    return proxies.length === 1 && proxies[0].snapshot_source === 'bus'
  })

  // The login of a manager is enough to write a Snapshot for other sidecars to start with.
  const folder = temporaryFolder(t)
  const exported = await run(process.execPath, [GATEHOUSE, 'snapshot', 'export'], {
    env: plainEnvironment(folder, {
      GATEHOUSE_BUS_URL: nats.url,
      GATEHOUSE_STORE_URL: place.postgres,
      ...login,
    }),
  })
  assert.equal(exported.status, 0, exported.stderr)
  assert.ok(exported.stdout.length > 10_000)

  // Without any one of them the kubelet does not start the Pod, and says why.
  for (const [missing, said] of [
    [{ ...namespace, secrets: {} }, 'secret "gatehouse-bus" not found'],
    [
      { ...namespace, secrets: { ...namespace.secrets, 'gatehouse-bus': { 'proxy-password': 'x' } } },
      'secret "gatehouse-bus" references non-existent key: password',
    ],
    [{ ...namespace, configMaps: {} }, 'configmap "nats-ca" not found'],
  ] as const)
    assert.throws(() => startSidecar(t, pod, missing), new FailedMount(said))
})

test('an injected sidecar with a wrong password is not let in, and its log says why', {
  skip,
}, async (t) => {
  const port = await startGuardedNats(t, (text) => text)
  const bus = busSettings({
    ...{ urls: [`nats://127.0.0.1:${port}`], user: 'proxy', secret: 'gatehouse-bus' },
    firstSnapshot: 'serve',
  })
  const namespace = { secrets: { 'gatehouse-bus': { password: 'a guess' } }, configMaps: {} }
  const sidecar = await startSidecar(t, await injectedPod(t, { bus }), namespace)
  await eventually(async () => /Authorization Violation/.test(sidecar.said()))
  assert.ok(!sidecar.said().includes('a guess'))
  const metrics = await (await fetch(`${sidecar.manage}/metrics`)).text()
  assert.match(metrics, /^gatehouse_bus_up 0$/m)
})

test('while NATS is down an injected sidecar starts from the Snapshot in a ConfigMap, and waits without it', async (t) => {
  const folder = temporaryFolder(t)
  writeFileSync(
    join(folder, 'fleet.yaml'),
    'policy: {file: policy.yaml}\nproxy: {upstream: "http://127.0.0.1:9"}\ndata: {dir: data}\n',
  )
  writeFileSync(
    join(folder, 'policy.yaml'),
    'rules: [{name: closed, when: {path: /closed}, action: block}]\n',
  )
  const file = join(folder, 'fleet.snapshot')
  const argv = ['snapshot', 'export', '--config', join(folder, 'fleet.yaml'), '--from', 'files']
  const exported = await run(process.execPath, [GATEHOUSE, ...argv, '--output', file], {
    env: plainEnvironment(folder),
  })
  assert.equal(exported.status, 0, exported.stderr)
  const bus = busSettings({ urls: ['nats://127.0.0.1:9'], bootstrapConfigMap: 'fleet' })
  const configMaps = { fleet: { 'fleet.snapshot': readFileSync(file) } }
  const pod = await injectedPod(t, { bus })
  const sidecar = await startSidecar(t, pod, { secrets: {}, configMaps })
  const port = new URL(`https://${sidecar.ready['listen']}`).port
  const insecure = new Agent({ rejectUnauthorized: false })
  const status = await new Promise((resolve, reject) => {
    const sent = get({ host: '127.0.0.1', port, path: '/closed', agent: insecure }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    })
    sent.on('error', reject)
  })
  insecure.destroy()
  assert.equal(status, 403)

  const waiting = await injectedPod(t, { bus })
  const { env } = waiting.spec!.initContainers!.find(({ name }) => name === 'gatehouse')!
  const manage = env!.find(({ name }) => name === 'GATEHOUSE_MANAGE_LISTEN')!.value!.split(':')[1]
  startSidecar(t, waiting, { secrets: {}, configMaps: {} }, /bootstrap_file/).catch(() => undefined)
  await eventually(async () => {
    const response = await fetch(`http://127.0.0.1:${manage}/health/ready`)
    const text = await response.text()
    return response.status === 503 && text.includes('first_snapshot')
  })
})
