import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config/config.ts'
import type { Item, Items } from '../../src/config/items.ts'
import { SETTINGS } from '../../src/config/schema.ts'
import { problemOf, rendered, templates, type Values, withoutRenderer } from './chart.ts'
import { matches, podsOf } from './pods.ts'

const skip = withoutRenderer()

const BUS = { url: 'nats://nats.data.svc:4222', existingSecret: 'nats-users' }
const MANAGE = {
  ...{ enabled: true, storeUrl: 'postgres://gatehouse_runtime@postgres.data.svc:5432/gatehouse' },
  existingSecret: 'managers',
}
const FLEET = { bus: BUS, gateway: {}, manage: MANAGE, inject: { enabled: true } }

test('each Pod is scraped once, by the operator or by annotations', { skip }, async () => {
  const monitored = rendered({ ...FLEET, monitoring: { podMonitor: { enabled: true } } })
  const monitors = monitored.filter(({ kind }) => ['PodMonitor', 'ServiceMonitor'].includes(kind))
  const scrapes = podsOf(monitored).map(({ name, labels, spec }) => {
    const ports = spec.containers.flatMap((container) => container.ports ?? [])
    const count = monitors.filter((each) => {
      const { selector, podMetricsEndpoints } = each['spec'] as PodMonitorSpec
      const isSelected = selector.matchLabels !== undefined && matches(selector.matchLabels, labels)
      return isSelected && ports.some((port) => port.name === podMetricsEndpoints[0]!.port)
    }).length
    return [name, count]
  })
  assert.deepEqual(Object.fromEntries(scrapes), {
    ...{ 'gate-gateway': 1, 'gate-manage': 1, 'gate-inject': 1 },
    ...{ 'gate-migrate': 0, 'gate-test': 0 },
  })
  // Sidecars are found by the label of their Pods, which no Pod of the release has.
  const sidecars = monitors.find(({ metadata }) => metadata.name === 'gate-sidecars')![
    'spec'
  ] as PodMonitorSpec
  assert.equal(sidecars.podMetricsEndpoints[0]!.port, 'gatehouse-probe')
  assert.ok(podsOf(monitored).every(({ labels }) => labels['gatehouse.dev/inject'] === undefined))

  const annotated = rendered({ ...FLEET, monitoring: { annotations: { enabled: true } } })
  assert.ok(!annotated.some(({ kind }) => kind === 'PodMonitor'))
  const asked = podsOf(annotated).filter(({ annotations }) => annotations['prometheus.io/scrape'] === 'true')
  assert.deepEqual(asked.map(({ name }) => name).sort(), ['gate-gateway', 'gate-inject', 'gate-manage'])

  for (const values of [
    { monitoring: { podMonitor: { enabled: true }, annotations: { enabled: true } } },
    { monitoring: { podMonitor: { enabled: true } }, podAnnotations: { 'prometheus.io/scrape': 'true' } },
  ])
    assert.throws(() => rendered(values), { message: /would (?:both )?scrape each Pod/ })
})

test('the migration runs with the credentials of the owner alone, where the cluster has room for it', {
  skip,
}, async () => {
  const own = migration({
    migrations: {
      ...{ storeUrl: 'postgres://gatehouse_owner@postgres.data.svc:5432/gatehouse', existingSecret: 'owner' },
      ...{ tolerations: [{ key: 'jobs', operator: 'Exists' }], nodeSelector: { pool: 'jobs' } },
      ...{ affinity: { nodeAffinity: {} }, resources: { requests: { memory: '1Gi' } } },
      serviceAccountName: 'migrator',
    },
  })
  const { env, volumeMounts, resources } = own.containers[0]!
  assert.deepEqual(Object.fromEntries(env!.map(({ name, value }) => [name, value])), {
    GATEHOUSE_STORE_URL: 'postgres://gatehouse_owner@postgres.data.svc:5432/gatehouse',
    GATEHOUSE_STORE_PASSWORD_FILE: '/etc/gatehouse-secrets/store-password',
    GATEHOUSE_DATA_DIR: '/var/lib/gatehouse',
  })
  // Neither the encryption key of the managers, nor their password, nor what they log in to NATS with.
  assert.deepEqual(
    own.volumes.flatMap(({ secret }) => secret ?? []),
    [
      {
        ...{ secretName: 'owner', defaultMode: 0o440 },
        items: [{ key: 'store-password', path: 'store-password' }],
      },
    ],
  )
  assert.ok(volumeMounts.every(({ mountPath }) => !mountPath.startsWith('/etc/gatehouse-bus')))
  assert.deepEqual(resources.requests['memory'], '1Gi')
  assert.deepEqual(
    [own.nodeSelector, own.tolerations, own.affinity, own.serviceAccountName],
    [{ pool: 'jobs' }, [{ key: 'jobs', operator: 'Exists' }], { nodeAffinity: {} }, 'migrator'],
  )
  const placed = { tolerations: [{ key: 'all', operator: 'Exists' }], nodeSelector: { pool: 'web' } }
  const inherited = migration(placed)
  assert.deepEqual([inherited.nodeSelector, inherited.tolerations], [placed.nodeSelector, placed.tolerations])
  assert.equal(inherited.volumes[0]!.secret!.secretName, 'managers')
})

test('hooks need nothing that the release makes, and leave nothing behind', { skip }, async () => {
  const manifests = rendered({ ...FLEET, networkPolicy: { enabled: true, egress: { enabled: true } } })
  const hooks = manifests.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] !== undefined)
  assert.deepEqual(hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
    ...['Job gate-migrate', 'NetworkPolicy gate-migrate', 'Pod gate-test'],
  ])
  for (const { metadata } of hooks)
    assert.equal(metadata.annotations!['helm.sh/hook-delete-policy'], 'before-hook-creation,hook-succeeded')
  const made = new Set(manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`))
  for (const { hook, spec } of podsOf(manifests).filter((pod) => pod.hook?.startsWith('pre-'))) {
    assert.equal(hook, 'pre-install,pre-upgrade')
    assert.equal(spec.serviceAccountName, undefined)
    for (const { configMap, secret } of spec.volumes) {
      assert.ok(!made.has(`ConfigMap/${configMap?.name}`), configMap?.name)
      assert.ok(!made.has(`Secret/${secret?.secretName}`), secret?.secretName)
    }
  }
})

test('probes, Services and scrapes use the scheme of the management port', { skip }, async () => {
  const tls = { manage: { tls: { cert_file: '/etc/x/tls.crt', key_file: '/etc/x/tls.key' } } }
  const monitoring = { podMonitor: { enabled: true } }
  const plain = schemes({ ...FLEET, monitoring })
  assert.deepEqual(plain, { gateway: 'HTTP', inject: 'HTTP', manage: 'HTTP' })
  const secret = schemes({ ...FLEET, monitoring, manage: { ...MANAGE, certificateSecret: 'manage-tls' } })
  assert.deepEqual(secret, { gateway: 'HTTP', inject: 'HTTP', manage: 'HTTPS' })
  const settings = schemes({
    ...{ ...FLEET, monitoring, manage: { ...MANAGE, config: tls } },
    ...{ gateway: { config: tls }, inject: { enabled: true, config: tls } },
  })
  assert.deepEqual(settings, { gateway: 'HTTPS', inject: 'HTTPS', manage: 'HTTPS' })
  const variable = { name: 'GATEHOUSE_MANAGE_TLS_CERT_FILE', value: '/etc/x/tls.crt' }
  const byVariable = schemes({ ...FLEET, monitoring, gateway: { extraEnv: [variable] } })
  assert.deepEqual(byVariable, { gateway: 'HTTPS', inject: 'HTTP', manage: 'HTTP' })
  const values = { ...FLEET, manage: { ...MANAGE, certificateSecret: 'manage-tls' } }
  assert.match(
    templates(values)['templates/tests/health.yaml']!,
    /https:\/\/gate-manage\.web\.svc:80\/health/,
  )
  assert.match(templates(values)['templates/NOTES.txt']!, /curl -k .* https:\/\/127\.0\.0\.1:9080/)
})

test('a Secret that changed restarts the Pods that use it, and its content is nowhere', {
  skip,
}, async () => {
  const version = (of: string, resourceVersion: string) => ({
    [of]: { metadata: { resourceVersion }, data: { password: 'c2VjcmV0' } },
  })
  const values = { ...FLEET, bus: { ...BUS, caConfigMap: 'nats-ca' } }
  const before = checksums(values, {})
  const changed = (cluster: ReturnType<typeof version>, more: Values = {}) => {
    const after = checksums({ ...values, ...more }, cluster)
    return Object.keys(after).filter((name) => after[name] !== before[name])
  }
  assert.deepEqual(changed(version('Secret/managers', '7')), ['gate-manage'])
  assert.deepEqual(changed(version('Secret/nats-users', '7')), ['gate-gateway', 'gate-manage'])
  assert.deepEqual(changed(version('ConfigMap/nats-ca', '7')), ['gate-gateway', 'gate-manage'])
  assert.deepEqual(changed(version('Secret/unrelated', '7')), [])
  assert.deepEqual(changed({}, { secretsVersion: '2026-11-26' }), [
    'gate-gateway',
    'gate-inject',
    'gate-manage',
  ])
  const text = JSON.stringify(templates(values, { cluster: version('Secret/managers', '7') }))
  assert.ok(!text.includes('c2VjcmV0'))
  // Another number of replicas restarts none.
  assert.deepEqual(changed({}, { manage: { ...MANAGE, replicas: 5 }, gateway: { replicas: 9 } }), [])
})

test('with persistence a gateway has a volume for each Pod, and everything else as before', {
  skip,
}, async () => {
  const [plain, kept] = [{}, { persistence: { enabled: true } }].map((gateway) =>
    rendered({ bus: BUS, gateway }),
  )
  const one = plain!.find(({ metadata, kind }) => kind === 'Deployment' && metadata.name === 'gate-gateway')!
  const other = kept!.find(({ kind }) => kind === 'StatefulSet')!
  assert.ok(!kept!.some(({ kind }) => kind === 'Deployment'))
  const { volumeClaimTemplates, serviceName, template } = other['spec'] as StatefulSetSpec
  const [claim] = volumeClaimTemplates
  assert.deepEqual(claim!.spec, {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
  })
  const headless = kept!.find(({ kind, metadata }) => kind === 'Service' && metadata.name === serviceName)!
  assert.equal((headless['spec'] as { clusterIP: string }).clusterIP, 'None')
  const { volumes, ...spec } = template.spec
  const { volumes: others, ...same } = (one['spec'] as StatefulSetSpec).template.spec
  assert.deepEqual(spec, same)
  assert.deepEqual(
    volumes,
    others.filter(({ name }) => name !== 'data'),
  )
})

test('a Pod has time to drain before it is killed', { skip }, async () => {
  for (const [drain, seconds] of [
    ...([
      ['30s', 45],
      ['2m', 135],
      ['1500ms', 17],
      ['1h', 3615],
    ] as const),
    ['0', 15],
  ] as const) {
    const values = { gateway: { config: { proxy: { drain_timeout: drain } } } }
    const gateway = podsOf(rendered(values)).find(({ name }) => name === 'gate-gateway')!
    assert.equal(gateway.spec.terminationGracePeriodSeconds, seconds, drain)
  }
})

test('with egress policies each Pod reaches what it needs', { skip }, async () => {
  const manifests = rendered({
    ...FLEET,
    manage: {
      ...MANAGE,
      storeUrl: 'postgres://u@postgres/d',
      migrations: { storeUrl: 'postgres://o@[2001:db8::1]:6432/d' },
      config: { tracing: { endpoint: 'http://otel.monitoring:4318/v1/traces' } },
    },
    gateway: { upstream: 'https://app.default.svc' },
    networkPolicy: { enabled: true, egress: { enabled: true } },
  })
  const ports = (name: string) => {
    const policy = manifests.find(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === `gate-${name}`,
    )!
    assert.equal(problemOf(policy), null)
    const { egress, policyTypes } = policy['spec'] as NetworkPolicySpec
    assert.deepEqual(policyTypes, ['Ingress', 'Egress'])
    return egress[0]!.ports.map(({ port, protocol }) => `${protocol} ${port}`)
  }
  const dns = ['UDP 53', 'TCP 53']
  assert.deepEqual(ports('gateway'), [...dns, 'TCP 443', 'TCP 4222'])
  assert.deepEqual(ports('manage'), [...dns, 'TCP 443', 'TCP 5432', 'TCP 4222', 'TCP 4318'])
  assert.deepEqual(ports('inject'), [...dns, 'TCP 443', 'TCP 6443'])
  assert.deepEqual(ports('migrate'), [...dns, 'TCP 6432'])
})

test('a chart that depends on this one gets a sidecar that can log in to NATS', { skip }, async () => {
  const template = `
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: web}
spec:
  containers: [{name: app, image: "app:1"}]
  initContainers:
    {{- include "gatehouse.sidecar" (dict "root" . "upstream" "http://127.0.0.1:3000" "certificateSecret" "web-tls") | nindent 4 }}
  volumes:
    {{- include "gatehouse.sidecarVolumes" (dict "root" . "certificateSecret" "web-tls") | nindent 4 }}
`
  const bus = { ...BUS, name: 'fleet', caConfigMap: 'nats-ca', proxyCertificateSecret: 'nats-proxy' }
  const [pod] = rendered({ bus }, { template }).filter(({ metadata }) => metadata.name === 'other')
  assert.equal(problemOf(pod!), null)
  const spec = pod!['spec'] as SidecarSpec
  const [{ env, volumeMounts, securityContext }] = spec.initContainers
  const ofBus = env.filter(({ name }) => name.startsWith('GATEHOUSE_BUS_'))
  assert.deepEqual(Object.fromEntries(ofBus.map(({ name, value }) => [name, value])), {
    GATEHOUSE_BUS_URL: BUS.url,
    GATEHOUSE_BUS_NAME: 'fleet',
    GATEHOUSE_BUS_USER: 'proxy',
    GATEHOUSE_BUS_PASSWORD_FILE: '/etc/gatehouse-bus/password',
    GATEHOUSE_BUS_CERTIFICATE_FILE: '/etc/gatehouse-bus-tls/tls.crt',
    GATEHOUSE_BUS_KEY_FILE: '/etc/gatehouse-bus-tls/tls.key',
    GATEHOUSE_BUS_CA_FILE: '/etc/gatehouse-bus-ca/ca.crt',
    GATEHOUSE_BUS_FIRST_SNAPSHOT: 'wait',
  })
  assert.deepEqual([securityContext.readOnlyRootFilesystem, securityContext.runAsUser], [true, 65_532])
  const names = spec.volumes.map(({ name }) => name)
  for (const { name } of volumeMounts) assert.ok(names.includes(name), name)
  // Another chart's Pod has no fsGroup: what only a group can read, the sidecar cannot.
  for (const { secret } of spec.volumes) assert.ok(((secret?.defaultMode ?? 0o644) & 0o004) !== 0)
})

test('a secret in the settings is refused: it would be readable in a ConfigMap', { skip }, async () => {
  const secrets: string[] = []
  const others = new Set<string>()
  const walk = (members: Items, at: readonly string[]): void => {
    for (const [name, item] of Object.entries(members)) {
      const here = [...at, name]
      if (item.item === 'section') walk(item.members, here)
      else if (item.item === 'sections') walk(item.section.members, [...here, '0'])
      else if (isSecret(item)) secrets.push(here.join('.'))
      else others.add(name)
    }
  }
  walk(SETTINGS.members, [])
  assert.ok(secrets.length > 12)
  for (const path of secrets) {
    assert.ok(!others.has(path.split('.').at(-1)!), `${path}: another setting with this name is public`)
    for (const part of ['gateway', 'manage', 'inject']) {
      const values = { ...FLEET, [part]: { ...FLEET[part as 'manage'], config: nested(path.split('.')) } }
      assert.throws(
        () => rendered(values),
        { message: /\.config\..* would be readable in a ConfigMap/ },
        path,
      )
    }
  }
  const files = { store: { password_file: '/etc/x/password' }, bus: { password_file: '/etc/x/bus' } }
  rendered({ ...FLEET, manage: { ...MANAGE, config: files } })
})

test('a Snapshot to start with is mounted where the settings of gateways and sidecars say', {
  skip,
}, async () => {
  const manifests = rendered({
    ...{ ...FLEET, bus: { ...BUS, firstSnapshot: 'serve' } },
    ...{ gateway: { bootstrapConfigMap: 'fleet' }, inject: { enabled: true, bootstrapConfigMap: 'first' } },
  })
  const config = (name: string) => {
    const map = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name)!
    return parse((map['data'] as Record<string, string>)['gatehouse.yaml']!)
  }
  const { bootstrap_file, first_snapshot } = config('gate-gateway').bus
  assert.deepEqual([bootstrap_file, first_snapshot], ['/etc/gatehouse-bootstrap/fleet.snapshot', 'serve'])
  const gateway = podsOf(manifests).find(({ name }) => name === 'gate-gateway')!.spec
  assert.deepEqual(
    gateway.volumes.find(({ name }) => name === 'bootstrap'),
    { name: 'bootstrap', configMap: { name: 'fleet', optional: true } },
  )
  const { bus_bootstrap_config_map, bus_first_snapshot } = config('gate-inject').inject.sidecar
  assert.deepEqual([bus_bootstrap_config_map, bus_first_snapshot], ['first', 'serve'])
  assert.equal(config('gate-manage').bus.first_snapshot, undefined)
})

test('the examples of the README are values that the chart takes', { skip }, async () => {
  const blocks = readFileSync('helm/README.md', 'utf8').matchAll(/```yaml\n([^`]*?)```/g)
  const examples = [...blocks].map(([, text]) => text!).filter((text) => !text.includes('{{'))
  assert.ok(examples.length >= 2)
  for (const text of examples) {
    const manifests = rendered(parse(text))
    for (const manifest of manifests) assert.equal(problemOf(manifest), null)
    const configs = manifests.filter(
      ({ kind, metadata }) => kind === 'ConfigMap' && !/dashboard/.test(metadata.name),
    )
    for (const { metadata, ...map } of configs) {
      const file = { name: metadata.name, text: (map['data'] as Record<string, string>)['gatehouse.yaml']! }
      const role = /manage/.test(metadata.name) ? 'manage' : /inject/.test(metadata.name) ? 'inject' : 'proxy'
      parseConfig({ flags: {}, env: {}, file, role, readSecret: () => 'a secret that is long enough' })
    }
  }
})

function isSecret(item: Item): boolean {
  return item.item === 'secret' || item.item === 'secrets' || (item.item === 'short' && isSecret(item.of))
}

function nested(path: readonly string[]): unknown {
  const [name, ...rest] = path
  if (name === undefined) return 'a secret'
  return name === '0' ? [nested(rest)] : { [name]: nested(rest) }
}

test('only the webhook has rights, and only those that its own certificate needs', { skip }, async () => {
  const rules = (values: Values) =>
    rendered(values)
      .filter(({ kind }) => kind === 'Role' || kind === 'ClusterRole')
      .flatMap((role) => role['rules'] as readonly RbacRule[])
      .map(({ resources, resourceNames, verbs }) => `${verbs} ${resources} ${resourceNames ?? '*'}`)
  assert.deepEqual(rules(FLEET), [
    'create secrets *',
    'get,update secrets gate-inject-certificate',
    'get,patch mutatingwebhookconfigurations gate-inject',
  ])
  const certManager = { enabled: true, issuerRef: { name: 'internal' } }
  assert.deepEqual(rules({ ...FLEET, inject: { enabled: true, certManager } }), [])
})

function migration(manage: Values) {
  const manifests = rendered({ ...FLEET, manage: { ...MANAGE, ...manage } })
  return podsOf(manifests).find(({ name }) => name === 'gate-migrate')!.spec
}

/** Of probes, and of what scrapes: the same for each part. */
function schemes(values: Values): Readonly<Record<string, string>> {
  const manifests = rendered(values)
  const parts = podsOf(manifests).flatMap(({ labels, spec }) => {
    const [{ startupProbe, livenessProbe, readinessProbe }] = spec.containers as unknown as [Probes]
    if (startupProbe === undefined) return []
    const part = labels['app.kubernetes.io/component']!
    const monitor = manifests.find(
      ({ kind, metadata }) => kind === 'PodMonitor' && metadata.name === `gate-${part}`,
    )!
    const [endpoint] = (monitor['spec'] as PodMonitorSpec).podMetricsEndpoints
    const all = [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet.scheme)
    assert.equal(new Set([...all, endpoint!.scheme.toUpperCase()]).size, 1, part)
    const service = manifests.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'gate-manage',
    )!
    if (part === 'manage') {
      const { ports } = service['spec'] as { ports: readonly { name: string }[] }
      assert.equal(ports[0]!.name.toUpperCase(), all[0])
    }
    return [[part, all[0]!] as const]
  })
  return Object.fromEntries(parts.toSorted())
}

function checksums(values: Values, cluster: NonNullable<Parameters<typeof rendered>[1]>['cluster']) {
  const pods = podsOf(rendered(values, { ...(cluster === undefined ? {} : { cluster }) }))
  return Object.fromEntries(
    pods
      .filter(({ kind }) => kind === 'Deployment')
      .map(({ name, annotations }) => [name, JSON.stringify(annotations)] as const)
      .toSorted(),
  )
}

interface RbacRule {
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}
interface PodMonitorSpec {
  readonly selector: { readonly matchLabels?: Readonly<Record<string, string>> }
  readonly podMetricsEndpoints: readonly { readonly port: string; readonly scheme: string }[]
}
interface StatefulSetSpec {
  readonly serviceName: string
  readonly template: { readonly spec: { readonly volumes: readonly { readonly name: string }[] } }
  readonly volumeClaimTemplates: readonly { readonly spec: unknown }[]
}
interface NetworkPolicySpec {
  readonly policyTypes: readonly string[]
  readonly egress: readonly {
    readonly ports: readonly { readonly port: number; readonly protocol: string }[]
  }[]
}
type Probe = { readonly httpGet: { readonly scheme: string } }
interface Probes {
  readonly startupProbe?: Probe
  readonly livenessProbe: Probe
  readonly readinessProbe: Probe
}
interface SidecarSpec {
  readonly initContainers: readonly [
    {
      readonly env: readonly { readonly name: string; readonly value: string }[]
      readonly volumeMounts: readonly { readonly name: string }[]
      readonly securityContext: { readonly readOnlyRootFilesystem: boolean; readonly runAsUser: number }
    },
  ]
  readonly volumes: readonly { readonly name: string; readonly secret?: { readonly defaultMode?: number } }[]
}
