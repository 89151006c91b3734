import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseConfig } from '../../src/config/config.ts'
import { PASSWORDS } from '../config/nats-server.ts'
import { asked, eventually, startManager } from '../e2e/fleet.ts'
import { skipped } from '../e2e/programs.ts'
import { injectedPod } from '../inject/injected-pod.ts'
import { startSidecar } from '../inject/pod-process.ts'
import { startTlsNats, textIn } from '../inject/tls-nats.ts'
import { freshUrl } from '../store/databases.ts'
import { rendered, withoutRenderer } from './chart.ts'

const skip = skipped('nats-server', 'openssl') || withoutRenderer()

test('a sidecar in another namespace logs in to the NATS that the chart is set up with', {
  skip,
}, async (t) => {
  const nats = await startTlsNats(t)
  const values = {
    bus: {
      ...{ url: nats.url, name: 'gatehouse', existingSecret: 'nats-users', caConfigMap: 'nats-ca' },
      ...{ manageCertificateSecret: 'nats-manage', proxyCertificateSecret: 'nats-proxy' },
    },
    inject: { enabled: true },
  }
  const settings = rendered(values).find(
    ({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'gate-inject',
  )!
  const text = (settings['data'] as Record<string, string>)['gatehouse.yaml']!
  // The passwords are in Secrets. The chart knows only their names.
  assert.doesNotMatch(text, /password/)
  const file = { name: 'gatehouse.yaml', text }
  const { sidecar } = parseConfig({ flags: {}, env: {}, file, role: 'inject' }).config.inject
  const pod = await injectedPod(t, { ...sidecar, image: sidecar.image! })

  const manager = await startManager(
    t,
    { nats: nats.url, postgres: await freshUrl('postgres', t), bus: 'gatehouse' },
    {
      ...{ GATEHOUSE_BUS_USER: 'manage', GATEHOUSE_BUS_PASSWORD: PASSWORDS.manage },
      ...{ GATEHOUSE_BUS_CA_FILE: nats.caFile, GATEHOUSE_BUS_CERTIFICATE_FILE: nats.client.certificateFile },
      GATEHOUSE_BUS_KEY_FILE: nats.client.keyFile,
    },
  )
  // What helm/README.md says to create in the namespace of the app.
  await startSidecar(t, pod, {
    secrets: {
      'gatehouse-bus': { password: PASSWORDS.proxy },
      'gatehouse-bus-tls': {
        'tls.crt': textIn(nats.client.certificateFile),
        'tls.key': textIn(nats.client.keyFile),
      },
    },
    configMaps: { 'gatehouse-bus-ca': { 'ca.crt': textIn(nats.caFile) } },
  })
  await eventually(async () => {
    const { proxies } = await asked(manager, 'GET', '/v1/fleet/proxies')
    return proxies.length === 1 && proxies[0].snapshot_source === 'bus'
  })
})
