import fc from 'fast-check'

const portName = fc.constantFrom(
  'http',
  'https',
  'app-https',
  'gatehouse',
  'gatehouse-probe',
  'a-name-of-15-ch',
  'app-a-name-of-1',
)
const mostly = <Value>(usual: fc.Arbitrary<Value>, unusual: fc.Arbitrary<Value>, weight = 20) =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: unusual })
/** As JSON has it: left out, and mostly so. */
const rarely = <Value>(arbitrary: fc.Arbitrary<Value>) => mostly(fc.constant(undefined), arbitrary, 6)
const anyPort = mostly(fc.constantFrom(80, 3000, 3001), fc.constantFrom(8080, 8443, 9080, 9443))
const probe = fc.record({
  httpGet: fc.record({ path: fc.constant('/'), port: fc.oneof(portName, anyPort) }),
})
const container = (names: readonly string[], isInit: boolean) =>
  fc.record(
    {
      name: fc.constantFrom(...names),
      image: fc.constant('app:1'),
      ports: fc.uniqueArray(
        fc.record(
          {
            name: portName,
            containerPort: anyPort,
            protocol: fc.constantFrom('TCP', 'UDP'),
            hostPort: anyPort,
          },
          { requiredKeys: ['containerPort'] },
        ),
        { maxLength: 3, selector: ({ name, containerPort }) => name ?? containerPort },
      ),
      readinessProbe: probe,
      livenessProbe: fc.record({ tcpSocket: fc.record({ port: fc.oneof(portName, anyPort) }) }),
      lifecycle: fc.record({ preStop: probe }),
      ...(isInit ? { restartPolicy: fc.constant('Always') } : {}),
    },
    { requiredKeys: ['name', 'image'] },
  )
const annotations = fc.record({
  'gatehouse.dev/app': rarely(
    mostly(fc.constantFrom('shop', 'a'.repeat(63)), fc.constantFrom('Shop', 'default', '')),
  ),
  'gatehouse.dev/listen-port': rarely(mostly(fc.constant('9443'), fc.constantFrom('443', 'x', '3000'))),
  'gatehouse.dev/plain-port': rarely(fc.constantFrom('18080', 'none')),
  'gatehouse.dev/manage-port': rarely(fc.constantFrom('9081', '19080')),
  'gatehouse.dev/upstream-port': fc.constantFrom(undefined, '3000', '8080', 'http', 'https'),
  'gatehouse.dev/upstream-scheme': rarely(fc.constantFrom('http', 'https', 'h2c', 'h2', 'ftp')),
  'gatehouse.dev/take-port': mostly(fc.constant(undefined), portName, 2),
  'gatehouse.dev/config': rarely(mostly(fc.constant('web'), fc.constant('Web'))),
  'gatehouse.dev/certificate': rarely(fc.constant('web-tls')),
  'gatehouse.dev/manage-scheme': rarely(fc.constantFrom('http', 'https', 'HTTPS')),
  'gatehouse.dev/bus-user': rarely(mostly(fc.constant('proxy-web'), fc.constant(''))),
  'gatehouse.dev/bus-secret': rarely(mostly(fc.constant('web-bus'), fc.constant('Web'))),
  'gatehouse.dev/bus-certificate': rarely(fc.constant('web-bus-tls')),
  'gatehouse.dev/cpu': rarely(mostly(fc.constantFrom('100m', '1.5'), fc.constantFrom('8', ''))),
  'gatehouse.dev/memory': rarely(mostly(fc.constantFrom('128Mi', '1G'), fc.constant('8Gi'))),
  'gatehouse.dev/injected': rarely(fc.constant('0.0.1')),
  'example.test/a~b': rarely(fc.string()),
})

/** Pods as Kubernetes takes them, with and without what Gatehouse makes of them. */
export const anyPod = fc
  .record(
    {
      labels: fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom('enabled', 'true') },
        { weight: 1, arbitrary: fc.constantFrom('disabled', 'yes', '') },
      ),
      annotations: fc.option(annotations),
      containers: fc.uniqueArray(container(['web', 'extra', 'more'], false), {
        minLength: 1,
        selector: ({ name }) => name,
      }),
      initContainers: fc.option(
        fc.uniqueArray(mostly(container(['first', 'second'], true), container(['gatehouse'], true)), {
          selector: ({ name }) => name,
        }),
      ),
      volumes: fc.option(
        fc.uniqueArray(fc.constantFrom('data', 'gatehouse-data', 'gatehouse-data-2', 'gatehouse-tls')),
      ),
      imagePullSecrets: rarely(fc.constantFrom(null, [], [{ name: 'registry' }], [{ name: 'own' }, {}])),
      hostNetwork: mostly(fc.constantFrom(undefined, false), fc.constant(true), 8),
      os: rarely(fc.constant({ name: 'windows' })),
    },
    { requiredKeys: ['labels', 'containers'] },
  )
  .map(({ labels, annotations, volumes, os, ...spec }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      labels: { 'gatehouse.dev/inject': labels },
      ...(annotations === undefined || annotations === null ? {} : { annotations }),
    },
    spec: {
      ...spec,
      ...(volumes === undefined ? {} : { volumes: volumes?.map((name) => ({ name, emptyDir: {} })) ?? null }),
      ...(os ? { os } : {}),
    },
  }))
export const anySettings = fc.record(
  {
    plainPort: fc.constantFrom(null, 8081),
    pullSecrets: fc.constantFrom([], ['registry'], ['registry', 'mirror']),
    configMap: fc.constantFrom(null, 'gate'),
    certificate: fc.constantFrom(null, 'gate-tls'),
    bus: fc.record({
      urls: fc.constantFrom([], ['tls://nats.gate.svc:4222']),
      name: fc.constantFrom(null, 'gate'),
      user: fc.constant(null),
      secret: fc.constantFrom(null, 'gate-bus'),
      certificate: fc.constantFrom(null, 'gate-bus-tls'),
      caConfigMap: fc.constantFrom(null, 'nats-ca'),
      firstSnapshot: fc.constantFrom(null, 'wait', 'serve'),
      bootstrapConfigMap: fc.constantFrom(null, 'fleet'),
    }),
    listenAddress: fc.constantFrom('0.0.0.0' as const, '::' as const),
  },
  { requiredKeys: [] },
)
