import assert from 'node:assert/strict'
import type { IPod } from 'kubernetes-models/v1/Pod'
import { Pod } from 'kubernetes-models/v1/Pod'
import { test } from 'tap'
import {
  again,
  answerTo,
  busSettings,
  checkReferences,
  podAfter,
  REVIEWS,
  sidecarSettings,
} from './reviews.ts'

const PATCHED = [
  ...['daemon-set', 'deployment', 'dry-run', 'host-network', 'init-containers', 'job'],
  ...['mark-without-sidecar', 'named-ports', 'unknown-annotation'],
]
const LEFT_ALONE = [
  ...['delete', 'disabled', 'injected', 'injected-by-older', 'mirror', 'no-label', 'other-kind'],
  ...['subresource', 'update', 'windows'],
]
const REFUSED: Readonly<Record<string, RegExp>> = {
  'bad-annotations':
    /^Gatehouse cannot be put into this Pod: annotation gatehouse\.dev\/listen-port is 443; expected a whole number from 1024 to 65535; annotation gatehouse\.dev\/plain-port is "off"; .*annotation gatehouse\.dev\/upstream-scheme is "htpp"; expected http, https, h2c, h2 \(did you mean "http"\?\); annotation gatehouse\.dev\/take-port is "HTTPS"; expected the name of a port; annotation gatehouse\.dev\/config is "My Config"; .*; annotation gatehouse\.dev\/memory is "1GB"; .*; annotation gatehouse\.dev\/cpu is "8"; at most "2" may be asked for$/,
  'host-network-unsaid':
    /annotation gatehouse\.dev\/listen-port and gatehouse\.dev\/manage-port has to say which$/,
  'label-typo': /label gatehouse\.dev\/inject must be enabled, true, disabled or false$/,
  'port-taken':
    /: container web has port 8443, on which the sidecar is to listen: give it another with annotation gatehouse\.dev\/listen-port$/,
  'several-ports': /the containers have 2 TCP ports: annotation gatehouse\.dev\/upstream-port has to say/,
}

test('every recorded review has its test', async () => {
  assert.deepEqual([...REVIEWS.keys()].sort(), [...PATCHED, ...LEFT_ALONE, ...Object.keys(REFUSED)].sort())
})

for (const name of PATCHED) {
  test(`${name}: a patch that applies, gives a valid Pod, and is not given twice`, async () => {
    const text = REVIEWS.get(name)!
    const answer = answerTo(text)
    assert.equal(answer.allowed, true)
    const after = podAfter(text, answer)
    assert.equal(after.metadata?.annotations?.['gatehouse.dev/injected'], '0.1.0')
    const sidecar = after.spec!.initContainers!.at(-1)!
    assert.deepEqual([sidecar.name, sidecar.restartPolicy], ['gatehouse', 'Always'])
    assert.deepEqual(sidecar.securityContext, {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: 65_532,
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    checkReferences(after)
    const second = answerTo(again(text, after))
    assert.deepEqual([second.allowed, second.patch, second.warnings], [true, undefined, undefined])
  })
}

for (const name of LEFT_ALONE) {
  test(`${name}: is left alone`, async () => {
    const { allowed, patch, warnings } = answerTo(REVIEWS.get(name)!)
    assert.deepEqual([allowed, patch], [true, undefined])
    assert.equal(
      warnings?.[0],
      name === 'windows' ? 'Pods for Windows get no sidecar of Gatehouse' : undefined,
    )
  })
}

for (const [name, words] of Object.entries(REFUSED)) {
  test(`${name}: is refused in words`, async () => {
    const { allowed, patch, status } = answerTo(REVIEWS.get(name)!)
    assert.deepEqual([allowed, patch, status?.code], [false, undefined, 422])
    assert.match(status!.message, words)
  })
}

test('a plain Pod gets a sidecar in front of its only port', async () => {
  const { sidecar, after } = injected('deployment')
  assert.deepEqual(sidecar.args, ['proxy'])
  assert.deepEqual(environment(sidecar), {
    GATEHOUSE_DATA_DIR: '/var/lib/gatehouse',
    GATEHOUSE_PROXY_LISTEN: '0.0.0.0:8443',
    GATEHOUSE_MANAGE_LISTEN: '0.0.0.0:9080',
    GATEHOUSE_PROXY_APP: 'shop-web',
    GATEHOUSE_PROXY_UPSTREAM: 'http://127.0.0.1:3000',
  })
  assert.deepEqual(
    sidecar.ports?.map(({ name, containerPort, hostPort }) => [name, containerPort, hostPort]),
    [
      ['gatehouse', 8443, undefined],
      ['gatehouse-probe', 9080, undefined],
    ],
  )
  assert.deepEqual(sidecar.resources, {
    requests: { cpu: '50m', memory: '256Mi' },
    limits: { memory: '512Mi' },
  })
  assert.deepEqual(sidecar.startupProbe?.httpGet, { path: '/health/live', port: 9080 })
  assert.deepEqual(sidecar.readinessProbe?.httpGet, { path: '/health/ready', port: 9080 })
  const { containers } = after.spec!
  assert.deepEqual(containers, podIn('deployment').spec!.containers, 'the app is as it was')
})

test('with init containers it is the last one; Secrets and ConfigMaps are there by reference', async () => {
  const { sidecar, after } = injected('init-containers')
  assert.deepEqual(
    after.spec!.initContainers!.map(({ name }) => name),
    ['migrate', 'vault-agent', 'gatehouse'],
  )
  const { GATEHOUSE_CONFIG, GATEHOUSE_PROXY_TLS_CERT_FILE, GATEHOUSE_PROXY_TLS_KEY_FILE } =
    environment(sidecar)
  assert.equal(GATEHOUSE_CONFIG, '/etc/gatehouse/gatehouse.yaml')
  assert.equal(GATEHOUSE_PROXY_TLS_CERT_FILE, '/etc/gatehouse-tls/tls.crt')
  assert.equal(GATEHOUSE_PROXY_TLS_KEY_FILE, '/etc/gatehouse-tls/tls.key')
  assert.deepEqual(after.spec!.volumes!.slice(1), [
    { name: 'gatehouse-data', emptyDir: {} },
    { name: 'gatehouse-config', configMap: { name: 'web-gatehouse' } },
    { name: 'gatehouse-tls', secret: { secretName: 'web-tls' } },
  ])
  assert.deepEqual(
    sidecar.volumeMounts!.map(({ mountPath, readOnly }) => [mountPath, readOnly ?? false]),
    [
      ['/var/lib/gatehouse', false],
      ['/etc/gatehouse', true],
      ['/etc/gatehouse-tls', true],
    ],
  )
  const { annotations } = after.metadata!
  assert.equal(
    annotations!['kubectl.kubernetes.io/restartedAt'],
    '2026-10-02T11:20:31Z',
    'the others are there still',
  )
})

test('a port is taken over by its name; what asked for it by name still reaches the app', async () => {
  const { sidecar, after } = injected('named-ports')
  const [app, exporter] = after.spec!.containers
  assert.deepEqual(
    app!.ports!.map(({ name, containerPort }) => [name, containerPort]),
    [
      ['app-https2', 8080], // app-https is a port of the other container
      ['metrics', 9100],
      ['quic', 8080],
    ],
  )
  assert.equal(app!.startupProbe!.httpGet!.port, 8080)
  assert.equal(app!.readinessProbe!.httpGet!.port, 8080)
  assert.equal(app!.livenessProbe!.tcpSocket!.port, 8080)
  assert.equal(app!.lifecycle!.preStop!.httpGet!.port, 8080)
  assert.equal(exporter!.livenessProbe!.httpGet!.port, 'app-https', 'a name is of its own container')
  assert.equal(targetOf(podIn('named-ports'), 'https'), 8080)
  assert.equal(targetOf(after, 'https'), 8443, 'a Service reaches the sidecar')
  assert.equal(targetOf(after, 'metrics'), 9100)
  const { GATEHOUSE_PROXY_UPSTREAM, GATEHOUSE_PROXY_PLAIN_LISTEN } = environment(sidecar)
  assert.equal(GATEHOUSE_PROXY_UPSTREAM, 'http://127.0.0.1:8080')
  assert.equal(GATEHOUSE_PROXY_PLAIN_LISTEN, '0.0.0.0:8081')
  assert.deepEqual(sidecar.resources, {
    requests: { cpu: '200m', memory: '512Mi' },
    limits: { memory: '1024Mi' },
  })
})

test('a name that several containers have is taken over from all, and each gets one of its own', async () => {
  const text = REVIEWS.get('deployment')!
  const pod = JSON.parse(text).request.object
  const [app] = pod.spec.containers
  app.ports = [{ name: 'http', containerPort: 3000 }]
  pod.spec.containers.push({ ...app, name: 'second', ports: [{ name: 'http', containerPort: 4000 }] })
  pod.metadata.annotations = { 'gatehouse.dev/take-port': 'http' }
  const asked = again(text, pod)
  const after = podAfter(asked, answerTo(asked))
  const names = after.spec!.containers.flatMap(({ ports }) => ports!.map(({ name }) => name))
  assert.deepEqual(names, ['app-http', 'app-http2'])
  const { GATEHOUSE_PROXY_UPSTREAM } = environment(after.spec!.initContainers![0]!)
  assert.equal(GATEHOUSE_PROXY_UPSTREAM, 'http://127.0.0.1:3000', 'the one that a Service would have reached')
})

test("one of the sidecar's own names is taken over as any other is", async () => {
  const text = REVIEWS.get('deployment')!
  const pod = JSON.parse(text).request.object
  pod.spec.containers[0].ports = [{ name: 'gatehouse-probe', containerPort: 3000 }]
  pod.metadata.annotations = { 'gatehouse.dev/take-port': 'gatehouse-probe' }
  const asked = again(text, pod)
  const after = podAfter(asked, answerTo(asked))
  checkReferences(after)
  assert.equal(targetOf(after, 'gatehouse-probe'), 8443)
  assert.equal(after.spec!.containers[0]!.ports![0]!.name, 'app-gatehouse-p')
})

test('on the network of the node its ports are the ones the Pod says, there too', async () => {
  const { sidecar } = injected('host-network')
  assert.deepEqual(
    sidecar.ports!.map(({ containerPort, hostPort }) => [containerPort, hostPort]),
    [
      [10_443, 10_443],
      [10_080, 10_080],
    ],
  )
})

test('a Job that says where its app is', async () => {
  const { GATEHOUSE_PROXY_UPSTREAM } = environment(injected('job').sidecar)
  assert.equal(GATEHOUSE_PROXY_UPSTREAM, 'h2c://127.0.0.1:8000')
})

test("a volume of the app's that is called like ours stays its own", async () => {
  const { sidecar, after } = injected('daemon-set')
  assert.equal(sidecar.volumeMounts![0]!.name, 'gatehouse-data-2')
  assert.deepEqual(after.spec!.volumes!.at(-1), { name: 'gatehouse-data-2', emptyDir: {} })
})

test('valid annotations that are probably not meant cause warnings', async () => {
  assert.deepEqual(answerTo(REVIEWS.get('unknown-annotation')!).warnings, [
    'annotation gatehouse.dev/take-prot is unknown (did you mean "take-port"?)',
    'port "http" of container web keeps its hostPort, which leads past Gatehouse',
  ])
})

test("the webhook's own settings", async () => {
  const settings = sidecarSettings({
    ...{ image: 'gate:2', pullPolicy: 'Always', listenAddress: '::', listenPort: 9443, plainPort: 8080 },
    ...{
      configMap: 'gate',
      certificate: 'gate-tls',
      bus: busSettings({
        urls: ['tls://nats-0.gate.svc:4222', 'tls://nats-1.gate.svc:4222'],
        secret: 'gate-nats',
      }),
    },
    ...{ user: 1000, cpu: '1', memory: '1Gi', upstreamScheme: 'https' },
  })
  const text = REVIEWS.get('deployment')!
  const after = podAfter(text, answerTo(text, settings))
  const sidecar = after.spec!.initContainers![0]!
  assert.deepEqual([sidecar.image, sidecar.imagePullPolicy], ['gate:2', 'Always'])
  assert.equal(sidecar.securityContext!.runAsUser, 1000)
  assert.deepEqual(environment(sidecar), {
    GATEHOUSE_CONFIG: '/etc/gatehouse/gatehouse.yaml',
    GATEHOUSE_DATA_DIR: '/var/lib/gatehouse',
    GATEHOUSE_PROXY_LISTEN: '[::]:9443',
    GATEHOUSE_PROXY_PLAIN_LISTEN: '[::]:8080',
    GATEHOUSE_MANAGE_LISTEN: '[::]:9080',
    GATEHOUSE_PROXY_APP: 'shop-web',
    GATEHOUSE_PROXY_UPSTREAM: 'https://127.0.0.1:3000',
    GATEHOUSE_PROXY_TLS_CERT_FILE: '/etc/gatehouse-tls/tls.crt',
    GATEHOUSE_PROXY_TLS_KEY_FILE: '/etc/gatehouse-tls/tls.key',
    GATEHOUSE_BUS_URL: 'tls://nats-0.gate.svc:4222,tls://nats-1.gate.svc:4222',
    GATEHOUSE_BUS_CREDENTIALS_FILE: '/etc/gatehouse-bus/nats.creds',
  })
  const off = annotated(text, { 'gatehouse.dev/plain-port': 'none' })
  const withoutPlain = podAfter(off, answerTo(off, settings)).spec!.initContainers![0]!
  const { GATEHOUSE_PROXY_PLAIN_LISTEN } = environment(withoutPlain)
  assert.equal(GATEHOUSE_PROXY_PLAIN_LISTEN, undefined)
})

const BUS = busSettings({
  ...{ urls: ['tls://nats.gate.svc:4222'], name: 'gate', user: 'proxy', secret: 'gate-bus' },
  ...{ certificate: 'gate-bus-tls', caConfigMap: 'nats-ca' },
})

test('the sidecar gets everything that it needs for NATS; the Pod names secrets and never contains them', async () => {
  const text = REVIEWS.get('deployment')!
  const after = podAfter(text, answerTo(text, sidecarSettings({ bus: BUS })))
  checkReferences(after)
  const sidecar = after.spec!.initContainers![0]!
  const ofBus = Object.entries(environment(sidecar)).filter(([name]) => name.startsWith('GATEHOUSE_BUS_'))
  assert.deepEqual(Object.fromEntries(ofBus), {
    GATEHOUSE_BUS_URL: 'tls://nats.gate.svc:4222',
    GATEHOUSE_BUS_NAME: 'gate',
    GATEHOUSE_BUS_USER: 'proxy',
    GATEHOUSE_BUS_PASSWORD_FILE: '/etc/gatehouse-bus/password',
    GATEHOUSE_BUS_CERTIFICATE_FILE: '/etc/gatehouse-bus-tls/tls.crt',
    GATEHOUSE_BUS_KEY_FILE: '/etc/gatehouse-bus-tls/tls.key',
    GATEHOUSE_BUS_CA_FILE: '/etc/gatehouse-bus-ca/ca.crt',
  })
  const item = (key: string) => ({ key, path: key })
  // Not optional, and each key by its name: the kubelet starts no Pod without them.
  assert.deepEqual(after.spec!.volumes!.slice(-3), [
    { name: 'gatehouse-bus', secret: { secretName: 'gate-bus', items: [item('password')] } },
    {
      name: 'gatehouse-bus-tls',
      secret: { secretName: 'gate-bus-tls', items: [item('tls.crt'), item('tls.key')] },
    },
    { name: 'gatehouse-bus-ca', configMap: { name: 'nats-ca', items: [item('ca.crt')] } },
  ])
  assert.deepEqual(
    sidecar.volumeMounts!.slice(-3).map(({ name, mountPath, readOnly }) => [name, mountPath, readOnly]),
    [
      ['gatehouse-bus', '/etc/gatehouse-bus', true],
      ['gatehouse-bus-tls', '/etc/gatehouse-bus-tls', true],
      ['gatehouse-bus-ca', '/etc/gatehouse-bus-ca', true],
    ],
  )
})

test('a Snapshot to start with is in a ConfigMap that a Pod can do without', async () => {
  const text = REVIEWS.get('deployment')!
  const bus = { ...BUS, firstSnapshot: 'wait', bootstrapConfigMap: 'fleet' } as const
  const after = podAfter(text, answerTo(text, sidecarSettings({ bus })))
  checkReferences(after)
  assert.deepEqual(after.spec!.volumes!.at(-1), {
    name: 'gatehouse-bootstrap',
    configMap: {
      ...{ name: 'fleet', optional: true },
      items: [{ key: 'fleet.snapshot', path: 'fleet.snapshot' }],
    },
  })
  const { GATEHOUSE_BUS_FIRST_SNAPSHOT, GATEHOUSE_BUS_BOOTSTRAP_FILE } = environment(
    after.spec!.initContainers![0]!,
  )
  assert.equal(GATEHOUSE_BUS_FIRST_SNAPSHOT, 'wait')
  assert.equal(GATEHOUSE_BUS_BOOTSTRAP_FILE, '/etc/gatehouse-bootstrap/fleet.snapshot')
})

test('a Pod may log in to NATS with a user and a Secret of its own', async () => {
  const pod = annotated(REVIEWS.get('deployment')!, {
    'gatehouse.dev/bus-user': 'proxy-web',
    'gatehouse.dev/bus-secret': 'web-bus',
    'gatehouse.dev/bus-certificate': 'web-bus-tls',
  })
  const after = podAfter(pod, answerTo(pod, sidecarSettings({ bus: BUS })))
  const { GATEHOUSE_BUS_USER, GATEHOUSE_BUS_NAME } = environment(after.spec!.initContainers![0]!)
  assert.deepEqual([GATEHOUSE_BUS_USER, GATEHOUSE_BUS_NAME], ['proxy-web', 'gate'])
  assert.deepEqual(
    after.spec!.volumes!.flatMap(({ secret }) => secret?.secretName ?? []),
    ['web-bus', 'web-bus-tls'],
  )
  const alone = annotated(REVIEWS.get('deployment')!, { 'gatehouse.dev/bus-user': 'proxy-web' })
  assert.match(
    answerTo(alone).status!.message,
    /annotation gatehouse\.dev\/bus-secret is missing: it names the Secret with the password of gatehouse\.dev\/bus-user$/,
  )
})

test('Secrets to pull the image of the sidecar with are added to those of the Pod, each once', async () => {
  const settings = sidecarSettings({ pullSecrets: ['registry', 'mirror'] })
  const after = (imagePullSecrets: unknown) => {
    const review = JSON.parse(REVIEWS.get('deployment')!)
    if (imagePullSecrets !== undefined) review.request.object.spec.imagePullSecrets = imagePullSecrets
    const text = JSON.stringify(review)
    return podAfter(text, answerTo(text, settings)).spec!.imagePullSecrets
  }
  const [registry, mirror, own] = [{ name: 'registry' }, { name: 'mirror' }, { name: 'own' }]
  assert.deepEqual(after(undefined), [registry, mirror])
  assert.deepEqual(after(null), [registry, mirror])
  assert.deepEqual(after([]), [registry, mirror])
  assert.deepEqual(after([own, mirror, {}]), [own, mirror, {}, registry])
})

test('probes use the scheme of the management port', async () => {
  const scheme = (settings: Parameters<typeof sidecarSettings>[0], annotations: Record<string, string>) => {
    const pod = annotated(REVIEWS.get('deployment')!, annotations)
    const sidecar = podAfter(pod, answerTo(pod, sidecarSettings(settings))).spec!.initContainers![0]!
    const { startupProbe, livenessProbe, readinessProbe } = sidecar
    return [startupProbe, livenessProbe, readinessProbe].map((probe) => probe!.httpGet!.scheme ?? 'HTTP')
  }
  assert.deepEqual(scheme({}, {}), ['HTTP', 'HTTP', 'HTTP'])
  assert.deepEqual(scheme({ manageScheme: 'https' }, {}), ['HTTPS', 'HTTPS', 'HTTPS'])
  assert.deepEqual(scheme({}, { 'gatehouse.dev/manage-scheme': 'https' }), ['HTTPS', 'HTTPS', 'HTTPS'])
  assert.deepEqual(scheme({ manageScheme: 'https' }, { 'gatehouse.dev/manage-scheme': 'http' })[0], 'HTTP')
})

test('the app of a sidecar: its annotation, or the namespace and the workload of the Pod', async () => {
  const appOf = (
    metadata: Record<string, unknown>,
    { namespace = 'retail', app = 'workload' as 'workload' | 'config' } = {},
  ) => {
    const review = JSON.parse(REVIEWS.get('named-ports')!)
    review.request.namespace = namespace
    const { name: _, generateName: __, ownerReferences: ___, ...kept } = review.request.object.metadata
    Object.assign(review.request.object, {
      metadata: {
        ...{ ...kept, ...metadata },
        labels: { ...kept.labels, ...(metadata['labels'] as object) },
        annotations: { ...kept.annotations, ...(metadata['annotations'] as object) },
      },
    })
    const text = JSON.stringify(review)
    const answer = answerTo(text, sidecarSettings({ app }))
    if (!answer.allowed) return answer.status!.message.replace(/^[^:]*: /, '')
    return environment(podAfter(text, answer).spec!.initContainers!.at(-1)!)['GATEHOUSE_PROXY_APP']
  }
  const owned = (kind: string, name: string, controller = true) => {
    return { ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: '1', controller }] }
  }
  const annotated = (app: string) => ({ annotations: { 'gatehouse.dev/app': app } })
  const hash = { labels: { 'pod-template-hash': '6d4cf56db6' } }
  assert.equal(appOf({ ...owned('ReplicaSet', 'web-6d4cf56db6'), ...hash }), 'retail-web')
  assert.equal(appOf({ ...owned('ReplicaSet', 'web-other'), ...hash }), 'retail-web-other')
  assert.equal(appOf({ ...owned('ReplicaSet', '-6d4cf56db6'), ...hash }), 'retail--6d4cf56db6')
  assert.equal(appOf(owned('StatefulSet', 'shop.eu')), 'retail-shop-eu')
  assert.equal(appOf(owned('Job', 'report-29391040')), 'retail-report')
  assert.equal(appOf(owned('Job', 'report-2')), 'retail-report-2')
  assert.equal(appOf({ name: 'alone' }), 'retail-alone')
  assert.equal(appOf({ ...owned('Node', 'other', false), name: 'alone' }), 'retail-alone')
  assert.equal(appOf({ generateName: 'many-' }), undefined, 'it has no name yet')
  assert.equal(appOf({ name: 'alone' }, { app: 'config' }), undefined)
  const long = [`${'a'.repeat(70)}1`, `${'a'.repeat(70)}2`].map((name) => String(appOf({ name })))
  assert.match(long[0]!, /^retail-a{47}-[0-9a-f]{8}$/)
  assert.notEqual(long[0], long[1])
  assert.equal(appOf({ ...annotated('shop'), name: 'alone' }), 'shop')
  assert.equal(appOf({ ...annotated('shop'), name: 'alone' }, { app: 'config' }), 'shop')
  assert.match(String(appOf(annotated('Shop'))), /^annotation gatehouse\.dev\/app is "Shop"; expected/)
  assert.match(String(appOf(annotated('default'))), /gatehouse\.dev\/app .*reserved/)
})

test('where the app is: its annotation, then the port that is taken, then its only one, then the ConfigMap', async () => {
  const text = REVIEWS.get('named-ports')!
  const upstream = (annotations: Record<string, string>, of = text) => {
    const given = annotated(of, annotations)
    const answer = answerTo(given)
    if (!answer.allowed) return answer.status!.message.replace(/^[^:]*: /, '')
    return environment(podAfter(given, answer).spec!.initContainers!.at(-1)!)['GATEHOUSE_PROXY_UPSTREAM']
  }
  assert.equal(upstream({ 'gatehouse.dev/upstream-port': 'metrics' }), 'http://127.0.0.1:9100')
  assert.equal(upstream({ 'gatehouse.dev/upstream-port': '7000' }), 'http://127.0.0.1:7000')
  assert.equal(
    upstream({ 'gatehouse.dev/upstream-port': 'web' }),
    'annotation gatehouse.dev/upstream-port is "web", and no container has a TCP port of that name',
  )
  assert.match(
    String(upstream({ 'gatehouse.dev/take-port': 'quic' })),
    /^annotation gatehouse\.dev\/take-port is "quic", and no container has a TCP port of that name; /,
  )
  const two = REVIEWS.get('several-ports')!
  assert.equal(upstream({ 'gatehouse.dev/config': 'web' }, two), undefined, 'the ConfigMap says it')
  assert.match(
    String(upstream({ 'gatehouse.dev/upstream-port': '8443' }, two)),
    /gatehouse.dev\/listen-port$/,
  )
})

function injected(name: string) {
  const text = REVIEWS.get(name)!
  const after = podAfter(text, answerTo(text))
  return { after, sidecar: after.spec!.initContainers!.at(-1)! }
}

function podIn(name: string): IPod {
  return JSON.parse(REVIEWS.get(name)!).request.object
}

function annotated(text: string, annotations: Record<string, string>): string {
  const pod = JSON.parse(text).request.object
  pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations }
  return again(text, pod)
}

type Container = NonNullable<NonNullable<IPod['spec']>['initContainers']>[number]

function environment({ env }: Container): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(env!.map(({ name, value }) => [name, value]))
}

/** What a Service with this `targetPort` sends to, as Kubernetes looks it up: containers first, then sidecars. */
function targetOf({ spec }: IPod, name: string): number | undefined {
  const sidecars = (spec!.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const ports = [...spec!.containers, ...sidecars].flatMap(({ ports = [] }) => ports)
  return ports.find((port) => port.name === name && (port.protocol ?? 'TCP') === 'TCP')?.containerPort
}

test('the schema that Pods are held against refuses an invalid Pod', async () => {
  const pod = structuredClone(injected('deployment').after)
  Reflect.set(pod.spec!.initContainers![0]!, 'restartPolicy', 1)
  assert.throws(() => new Pod(pod).validate())
})
