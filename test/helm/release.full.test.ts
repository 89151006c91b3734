import assert from 'node:assert/strict'
import type { IPod } from 'kubernetes-models/v1/Pod'
import { test } from 'tap'
import { PASSWORDS, startGuardedNats } from '../config/nats-server.ts'
import { freePort } from '../e2e/ports.ts'
import { ADMIN_KEY, asked, echoApp, eventually } from '../e2e/fleet.ts'
import { startProcess } from '../e2e/gatehouse.ts'
import { GATEHOUSE, plainEnvironment, run, skipped } from '../e2e/programs.ts'
import { mounted } from '../inject/pod-process.ts'
import { roles } from '../store/roles.ts'
import { rendered, withoutRenderer } from './chart.ts'
import { podsOf } from './pods.ts'

const skip = skipped('nats-server') || withoutRenderer()

test('the Pods of a release work together: the Job migrates as the owner, managers and gateways log in', {
  skip,
}, async (t) => {
  const { owner, runtime } = await roles(t)
  const nats = await startGuardedNats(t, (text) => text)
  const app = await echoApp(t)
  const [managePort, gatewayPort, listenPort] = [await freePort(), await freePort(), await freePort()]
  // On one machine all have one network: each needs ports of its own.
  const manifests = rendered({
    bus: { url: `nats://127.0.0.1:${nats}`, existingSecret: 'nats-users' },
    gateway: {
      upstream: app.url,
      config: {
        proxy: { listen: `127.0.0.1:${listenPort}` },
        manage: { listen: `127.0.0.1:${gatewayPort}` },
      },
    },
    manage: {
      ...{ enabled: true, storeUrl: runtime, existingSecret: 'managers', hasAdminKey: true },
      migrations: { storeUrl: owner, existingSecret: 'owner' },
      config: { manage: { listen: `127.0.0.1:${managePort}` }, bus: { sightings_bytes: '64MiB' } },
    },
  })
  const configMaps = Object.fromEntries(
    manifests
      .filter(({ kind }) => kind === 'ConfigMap')
      .map((each) => [each.metadata.name, each['data'] as Record<string, string>]),
  )
  const namespace = {
    configMaps,
    secrets: {
      'nats-users': { 'manage-password': PASSWORDS.manage, 'proxy-password': PASSWORDS.proxy },
      managers: {
        ...{ 'store-password': 'of the managers', 'encryption-key': 'a key that managers share' },
        'admin-key': ADMIN_KEY,
      },
      owner: { 'store-password': 'of the owner' },
    },
  }
  const container = (name: string, container: string, there: typeof namespace) => {
    const pod = podsOf(manifests).find((each) => each.name === name)!
    return mounted(t, pod.spec as unknown as NonNullable<IPod['spec']>, container, there)
  }

  // Nothing of the release exists before the Job has run.
  const job = container('gate-migrate', 'migrate', { ...namespace, configMaps: {} })
  const migrated = await run(process.execPath, [GATEHOUSE, ...job.argv], {
    env: plainEnvironment(job.folder, job.variables),
  })
  assert.equal(migrated.status, 0, migrated.stderr)
  assert.match(migrated.stdout, /from an empty database/)

  const start = async (name: string) => {
    const { argv, folder, variables } = container(name, 'gatehouse', namespace)
    return startProcess(t, argv, { folder, variables })
  }
  const manager = await start('gate-manage')
  await start('gate-gateway')
  await eventually(async () => {
    const { proxies } = await asked(manager, 'GET', '/v1/fleet/proxies')
    return proxies.length === 1 && proxies[0].snapshot_source === 'bus'
  })
  for (const port of [managePort, gatewayPort]) {
    const ready = await fetch(`http://127.0.0.1:${port}/health/ready`)
    assert.equal(ready.status, 200, await ready.text())
  }
})
