import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config/config.ts'
import type { ConfigInput } from '../../src/config/config.ts'
import { variablesOf } from '../../src/config/layers.ts'
import { SETTINGS } from '../../src/config/schema.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { chartReadme } from './docs.ts'
import { matches, podsOf } from './pods.ts'
import {
  CHART,
  type Manifest,
  NotRendered,
  problemOf,
  rendered,
  templates,
  type Values,
  withoutRenderer,
} from './chart.ts'

const BUS = { bus: { url: 'nats://nats.data.svc:4222', existingSecret: 'nats-users' } }
const MANAGE = {
  ...BUS,
  manage: {
    ...{ enabled: true, storeUrl: 'postgres://gatehouse@postgres.data.svc:5432/gatehouse' },
    ...{ existingSecret: 'gatehouse-manage', hasAdminKey: true, publicUrl: 'https://gatehouse.example' },
  },
}
const BUS_WITH_ALL = {
  bus: {
    ...{ url: 'tls://nats.data.svc:4222', name: 'fleet', login: 'credentials', existingSecret: 'nats-users' },
    ...{
      manageCertificateSecret: 'nats-manage',
      proxyCertificateSecret: 'nats-proxy',
      caConfigMap: 'nats-ca',
    },
  },
}
const OWNER = {
  ...{ storeUrl: 'postgres://gatehouse_owner@postgres.data.svc:5432/gatehouse', existingSecret: 'owner' },
  ...{ tolerations: [{ key: 'jobs', operator: 'Exists' }], nodeSelector: { pool: 'jobs' } },
  serviceAccountName: 'migrator',
}
const ALL_MONITORING = {
  monitoring: {
    podMonitor: { enabled: true, labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true },
    dashboard: { enabled: true },
  },
}
const MODES: Readonly<Record<string, Values>> = {
  'as it is': {},
  'a gateway with all it can have': {
    ...ALL_MONITORING,
    fullnameOverride: 'front',
    commonLabels: { team: 'edge' },
    podAnnotations: { note: 'x' },
    image: { digest: `sha256:${'ab'.repeat(32)}`, pullSecrets: ['registry'] },
    gateway: {
      ...{ certificateSecret: 'tls', ticketKeySecret: 'tickets', nodeSelector: { pool: 'edge' } },
      ...{ tolerations: [{ key: 'edge', operator: 'Exists' }], affinity: { podAntiAffinity: {} } },
      config: { proxy: { limits: { connections_max: 5_000 } }, log: { level: 'warn' } },
      extraEnv: [
        {
          name: 'GATEHOUSE_PROXY_SIGNATURE_KEY',
          valueFrom: { secretKeyRef: { name: 'signature', key: 'key' } },
        },
      ],
      service: { type: 'LoadBalancer', port: 8443, annotations: { a: 'b' } },
    },
    networkPolicy: {
      enabled: true,
      manageFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    },
  },
  'a gateway of a fleet that keeps its Snapshot on a volume': {
    ...BUS_WITH_ALL,
    gateway: {
      bootstrapConfigMap: 'first-snapshot',
      persistence: { enabled: true, size: '2Gi', storageClass: 'fast' },
      service: { plainPort: 80, loadBalancerClass: 'lb', loadBalancerSourceRanges: ['192.0.2.0/24'] },
      extraVolumes: [{ name: 'manage-tls', secret: { secretName: 'gate-manage-tls' } }],
      extraVolumeMounts: [{ name: 'manage-tls', mountPath: '/etc/gatehouse-manage-tls' }],
      config: {
        manage: {
          tls: {
            cert_file: '/etc/gatehouse-manage-tls/tls.crt',
            key_file: '/etc/gatehouse-manage-tls/tls.key',
          },
        },
      },
      priorityClassName: 'edge',
    },
    networkPolicy: { enabled: true, egress: { enabled: true } },
  },
  'a gateway that is not scaled, of a fleet': {
    ...BUS,
    gateway: {
      autoscaling: { enabled: false },
      podDisruptionBudget: { enabled: false },
      service: { type: 'ClusterIP' },
    },
  },
  'managers alone': { ...MANAGE, gateway: { enabled: false } },
  'managers that migrate themselves, with a CA for NATS': {
    ...MANAGE,
    manage: { ...MANAGE.manage, migrations: { enabled: false }, hasAdminKey: false },
    bus: { ...BUS.bus, url: 'tls://nats:4222', caConfigMap: 'nats-ca', replicas: 3 },
  },
  'managers with TLS, whose tables have an owner': {
    ...MANAGE,
    ...BUS_WITH_ALL,
    gateway: { enabled: false },
    manage: {
      ...MANAGE.manage,
      ...{ certificateSecret: 'manage-tls', storeCaConfigMap: 'postgres-ca' },
      migrations: OWNER,
    },
    networkPolicy: { enabled: true, egress: { enabled: true, extra: [{ ports: [{ port: 6514 }] }] } },
  },
  'the webhook alone': {
    gateway: { enabled: false },
    inject: { enabled: true },
    serviceAccount: { create: false },
  },
  'the webhook with cert-manager': {
    ...BUS,
    gateway: { enabled: false },
    inject: {
      ...{ enabled: true, failurePolicy: 'Ignore', excludedNamespaces: ['monitoring'] },
      certManager: { enabled: true, issuerRef: { name: 'internal', kind: 'ClusterIssuer' } },
      sidecar: { certificate: 'web-tls', cpu: '100m' },
    },
  },
  everything: {
    ...MANAGE,
    ...ALL_MONITORING,
    inject: { enabled: true },
    networkPolicy: { enabled: true, egress: { enabled: true } },
  },
}
const CLUSTER_WIDE = new Set(['MutatingWebhookConfiguration', 'ClusterRole', 'ClusterRoleBinding'])
const VARIABLES = new Set(variablesOf(SETTINGS.members).keys())
const skip = withoutRenderer()

for (const [mode, values] of Object.entries(MODES)) {
  test(`${mode}: Kubernetes takes every manifest, and each finds what it speaks of`, { skip }, async () => {
    const manifests = rendered(values)
    assert.ok(manifests.length > 0)
    for (const manifest of manifests) {
      assert.equal(problemOf(manifest), null, `${manifest.kind} ${manifest.metadata.name}`)
      assert.match(manifest.metadata.name, /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/)
      assert.equal(manifest.metadata.labels?.['app.kubernetes.io/name'] ?? 'gatehouse', 'gatehouse')
      assert.ok(!CLUSTER_WIDE.has(manifest.kind) || manifest.metadata.namespace === undefined)
      assert.ok(CLUSTER_WIDE.has(manifest.kind) || manifest.metadata.namespace === 'web')
    }
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    assert.equal(new Set(names).size, names.length)
    findsItsParts(manifests, values)
  })

  test(`${mode}: every Pod runs as an unprivileged user and can write to its volumes only`, {
    skip,
  }, async () => {
    const manifests = rendered(values)
    const isByCertManager = manifests.some(({ kind }) => kind === 'Certificate')
    for (const { name, spec, labels } of podsOf(manifests)) {
      // Only the webhook asks the API server anything, and only where it makes its certificate itself.
      const asks = labels['app.kubernetes.io/component'] === 'inject' && !isByCertManager
      assert.equal(spec.automountServiceAccountToken, asks, name)
      const { runAsNonRoot, runAsUser, seccompProfile } = spec.securityContext
      assert.deepEqual([runAsNonRoot, runAsUser, seccompProfile.type], [true, 65532, 'RuntimeDefault'])
      for (const { securityContext, image, resources } of spec.containers) {
        assert.deepEqual(securityContext.capabilities.drop, ['ALL'])
        assert.deepEqual(
          [securityContext.readOnlyRootFilesystem, securityContext.allowPrivilegeEscalation],
          [true, false],
        )
        assert.ok(!/latest$/.test(image) && /[:@]./.test(image))
        assert.ok(resources.requests['cpu'] && resources.requests['memory'] && resources.limits['memory'])
      }
    }
  })

  test(`${mode}: the program takes the configuration and the command it is started with`, {
    skip,
  }, async () => {
    const manifests = rendered(values)
    const configs = new Map(
      manifests
        .filter(({ kind }) => kind === 'ConfigMap')
        .map((each) => [each.metadata.name, each['data'] as Record<string, string>]),
    )
    for (const { spec } of podsOf(manifests)) {
      const [container] = spec.containers
      const [command] = container!.args ?? []
      if (container!.name === 'ask') continue
      assert.ok(
        COMMANDS.some(({ name }) => name === command),
        command,
      )
      const config = spec.volumes.find(({ name }) => name === 'config')?.configMap?.name
      const text = config === undefined ? null : configs.get(config)!['gatehouse.yaml']!
      const role = (command === 'migrate' ? 'store' : command) as NonNullable<ConfigInput['role']>
      const { config: read } = parseConfig({
        flags: {},
        env: Object.fromEntries(container!.env?.map(({ name, value }) => [name, value]) ?? []),
        file: text === null ? null : { name: 'gatehouse.yaml', text },
        role,
        readSecret: () => 'a secret that is long enough for everything',
      })
      assert.equal(read.manage.listen.port, 9080)
      for (const { name } of container!.env ?? []) assert.ok(VARIABLES.has(name), name)
      // Every file that the settings name is mounted.
      for (const [path] of `${text} ${JSON.stringify(container!.env)}`.matchAll(/\/etc\/gatehouse-[\w-]+/g))
        assert.ok(
          container!.volumeMounts.some(({ mountPath }) => mountPath === path),
          path,
        )
    }
  })
}

test('what cannot work is refused in words', { skip }, async () => {
  for (const [values, said] of [
    [{ gatway: {} }, /additional properties/],
    [{ gateway: { upstream: 'app' } }, /upstream must match/],
    [{ image: { tag: 'latest' } }, /tag must NOT be valid/],
    [{ bus: { url: 'http://nats' } }, /url must match/],
    [{ manage: { enabled: true } }, /manage.storeUrl is missing/],
    [{ ...MANAGE, bus: {} }, /bus.url is missing/],
    [{ ...MANAGE, manage: { ...MANAGE.manage, existingSecret: '' } }, /existingSecret is missing/],
    [{ ...MANAGE, manage: { ...MANAGE.manage, storeUrl: 'postgres://u:p@h/d' } }, /storeUrl must match/],
    [{ bus: { firstSnapshot: 'waits' } }, /firstSnapshot must be equal to one of the allowed values/],
    [{ bus: { login: 'token' } }, /login must be equal to one of the allowed values/],
    [{ manage: { migrations: true } }, /migrations must be object/],
    [
      { gateway: { terminationGracePeriodSeconds: 20 } },
      /is 20, less than proxy.drain_timeout \(30s\): .* to at least 45/,
    ],
    [{ gateway: { autoscaling: { minReplicas: 20 } } }, /minReplicas is 20, more than maxReplicas \(10\)/],
    [{ gateway: { persistence: { size: 'small' } } }, /size must match/],
    [{ inject: { busSecret: '' } }, /busSecret must NOT have fewer/],
    [{ inject: { enabled: true, certManager: { enabled: true } } }, /issuerRef is missing/],
    [{ monitoring: { podMonitor: { interval: '30' } } }, /interval must match/],
  ] as const)
    assert.throws(
      () => rendered(values),
      (error) => error instanceof NotRendered && said.test(error.message),
      `${said}`,
    )
})

test('alerts and the dashboard ask for metrics there are', async () => {
  const named = new Set(
    globSync('src/**/*.ts').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/\b(?:gauge|counter|histograms?|count)\(\s*'(\w+)'/g)].map(
        ([, name]) => `gatehouse_${name}`,
      ),
    ),
  )
  const asked = ['alerts.yaml', 'dashboards/gatehouse.json'].flatMap((file) => {
    const text = readFileSync(`${CHART}/${file}`, 'utf8')
    return [...text.matchAll(/\bgatehouse_[a-z_]+/g)].map(([name]) =>
      name.replace(/_(?:bucket|sum|count)$/, ''),
    )
  })
  assert.ok(asked.length > 25)
  for (const name of asked) assert.ok(named.has(name), name)
  for (const rule of parse(readFileSync(`${CHART}/alerts.yaml`, 'utf8')).groups[0].rules) {
    assert.deepEqual(
      Object.keys(rule).filter((each) => each !== 'for'),
      ['alert', 'expr', 'labels', 'annotations'],
    )
  }
})

test('the README says what the values say', async () => {
  assert.equal(readFileSync(`${CHART}/README.md`, 'utf8'), chartReadme())
})

test('a chart of others has the sidecar by its template', { skip }, async () => {
  const helpers = readFileSync(`${CHART}/templates/_helpers.tpl`, 'utf8')
  for (const name of ['gatehouse.sidecar', 'gatehouse.sidecarVolumes'])
    assert.ok(helpers.includes(`define "${name}"`))
  assert.match(templates({})['templates/NOTES.txt']!, /gate-gateway/)
})

/** Selectors, ports by name, volumes, Secrets and service accounts. */
function findsItsParts(manifests: readonly Manifest[], values: Values): void {
  const pods = podsOf(manifests)
  for (const { kind, metadata, ...rest } of manifests) {
    const spec = rest['spec'] as Shape
    if (kind === 'Service') {
      const chosen = pods.filter(({ labels }) => matches(spec['selector'] as Record<string, string>, labels))
      assert.equal(chosen.length, 1, metadata.name)
      for (const { targetPort } of spec['ports'] as { targetPort: string }[])
        assert.ok(chosen[0]!.spec.containers[0]!.ports.some(({ name }) => name === targetPort))
    }
    if (kind === 'PodDisruptionBudget' || kind === 'NetworkPolicy') {
      const { matchLabels } = (spec['selector'] ?? spec['podSelector']) as {
        matchLabels: Record<string, string>
      }
      assert.equal(pods.filter(({ labels }) => matches(matchLabels, labels)).length, 1, metadata.name)
    }
    if (kind === 'HorizontalPodAutoscaler') {
      const { name } = spec['scaleTargetRef'] as { name: string }
      const { kind: target } = spec['scaleTargetRef'] as { kind: string }
      assert.ok(manifests.some((each) => each.kind === target && each.metadata.name === name))
    }
  }
  const said = JSON.stringify(values)
  const made = (kind: string, name: string) =>
    manifests.some((each) => each.kind === kind && each.metadata.name === name)
  for (const { spec } of pods) {
    const account = spec.serviceAccountName
    if (account !== undefined && !said.includes('"create":false') && !said.includes(`"${account}"`))
      assert.ok(made('ServiceAccount', account), account)
    for (const { name, secret, configMap } of spec.volumes) {
      if (configMap !== undefined)
        assert.ok(made('ConfigMap', configMap.name) || said.includes(configMap.name), name)
      if (secret !== undefined)
        assert.ok(
          said.includes(`"${secret.secretName}"`) ||
            made('Certificate', secret.secretName.replace(/-tls$/, '')),
          name,
        )
    }
    const volumes = spec.volumes.map(({ name }) => name)
    for (const { volumeMounts } of spec.containers)
      for (const { name } of volumeMounts ?? []) assert.ok(volumes.includes(name), name)
  }
}

type Shape = Readonly<Record<string, unknown>>
