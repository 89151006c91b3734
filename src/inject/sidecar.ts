import { type SidecarConfig, twiceTheMemory } from '../config/inject.ts'
import type { Pod } from './pod.ts'
import type { PodSettings } from './pod-settings.ts'
import type { PortPlan } from './ports.ts'

/** The same for every Pod of a cluster, except for annotations. */
export interface SidecarSettings extends SidecarConfig {
  readonly image: string
}

/** The objects to add to the Pod, in Kubernetes format. */
interface Sidecar {
  readonly container: unknown
  readonly volumes: readonly unknown[]
}

/** An init container with `restartPolicy: Always`: a native sidecar (Kubernetes 1.29 and later). */
export function makeSidecar(
  pod: Pod,
  settings: PodSettings,
  ports: PortPlan,
  common: SidecarSettings,
): Sidecar {
  const volumes = volumesOf(pod, settings)
  const container = {
    name: SIDECAR,
    image: common.image,
    imagePullPolicy: common.pullPolicy,
    args: ['proxy'],
    restartPolicy: 'Always',
    ports: containerPorts(pod, settings, ports),
    env: environment(settings, ports, common),
    resources: {
      requests: { cpu: settings.cpu, memory: settings.memory },
      // No CPU limit: throttling the sidecar would slow down the app.
      limits: { memory: twiceTheMemory(settings.memory) },
    },
    volumeMounts: volumes.map(({ name, mountPath, isWritable }) =>
      isWritable ? { name, mountPath } : { name, mountPath, readOnly: true },
    ),
    // The app starts only after this probe succeeds, so the probe must not depend on the app.
    startupProbe: { ...probe('/health/live', settings), periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { ...probe('/health/live', settings), periodSeconds: 10, failureThreshold: 6 },
    readinessProbe: { ...probe('/health/ready', settings), periodSeconds: 5, failureThreshold: 2 },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsGroup: common.user,
      runAsNonRoot: true,
      runAsUser: common.user,
      seccompProfile: { type: 'RuntimeDefault' },
    },
  }
  return { container, volumes: volumes.map(({ name, source }) => ({ name, ...source })) }
}

interface Volume {
  readonly name: string
  readonly mountPath: string
  readonly isWritable: boolean
  readonly source: object
}

/** Secrets are mounted, not copied: anyone who may list Pods can read what is written in a Pod. */
function volumesOf(pod: Pod, { configMap, certificate, bus }: PodSettings): Volume[] {
  const volume = (name: string, mountPath: string, source: object, isWritable = false): Volume => {
    return { name: freeVolumeName(pod, name), mountPath, source, isWritable }
  }
  return [
    volume('gatehouse-data', DATA, { emptyDir: {} }, true),
    ...(configMap === null ? [] : [volume('gatehouse-config', CONFIG, { configMap: { name: configMap } })]),
    ...(certificate === null
      ? []
      : [volume('gatehouse-tls', CERTIFICATE, { secret: { secretName: certificate } })]),
    ...(bus.secret === null
      ? []
      : [volume('gatehouse-bus', BUS, secretKeys(bus.secret, [bus.user === null ? CREDENTIALS : PASSWORD]))]),
    ...(bus.certificate === null
      ? []
      : [volume('gatehouse-bus-tls', BUS_TLS, secretKeys(bus.certificate, ['tls.crt', 'tls.key']))]),
    ...(bus.caConfigMap === null
      ? []
      : [
          volume('gatehouse-bus-ca', BUS_CA, {
            configMap: { name: bus.caConfigMap, items: items(['ca.crt']) },
          }),
        ]),
    ...(bus.bootstrapConfigMap === null
      ? []
      : [
          volume('gatehouse-bootstrap', BOOTSTRAP, {
            // Needed only while NATS is down: without it the Pod starts all the same.
            configMap: { name: bus.bootstrapConfigMap, items: items([SNAPSHOT]), optional: true },
          }),
        ]),
  ]
}

/**
 * Lists each key by name: if one is missing, the kubelet reports it in an event and does not start the Pod.
 */
function secretKeys(secretName: string, keys: readonly string[]): object {
  return { secret: { secretName, items: items(keys) } }
}

function items(keys: readonly string[]) {
  return keys.map((key) => ({ key, path: key }))
}

function freeVolumeName({ volumes }: Pod, wanted: string): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`
    if (volumes === null || !volumes.includes(name)) return name
  }
}

function containerPorts(pod: Pod, { listenPort, plainPort, managePort }: PodSettings, ports: PortPlan) {
  const taken = ports.takenName ?? SIDECAR
  const port = (name: string, containerPort: number) => ({
    // Port names are unique in a container, and the name that is taken over is needed.
    ...(name === taken && containerPort !== listenPort ? {} : { name }),
    containerPort,
    ...(pod.usesHostNetwork ? { hostPort: containerPort } : {}),
    protocol: 'TCP',
  })
  return [
    port(taken, listenPort),
    ...(plainPort === null ? [] : [port('gatehouse-plain', plainPort)]),
    port('gatehouse-probe', managePort),
  ]
}

function environment(
  { app, listenPort, plainPort, managePort, upstreamScheme, configMap, certificate, bus }: PodSettings,
  { upstreamPort }: PortPlan,
  { listenAddress }: SidecarConfig,
) {
  const at = (port: number) => (listenAddress === '::' ? `[::]:${port}` : `${listenAddress}:${port}`)
  const variables: readonly (readonly [name: string, value: string | null])[] = [
    ['GATEHOUSE_CONFIG', configMap === null ? null : `${CONFIG}/gatehouse.yaml`],
    ['GATEHOUSE_DATA_DIR', DATA],
    ['GATEHOUSE_PROXY_APP', app],
    ['GATEHOUSE_PROXY_LISTEN', at(listenPort)],
    ['GATEHOUSE_PROXY_PLAIN_LISTEN', plainPort === null ? null : at(plainPort)],
    ['GATEHOUSE_MANAGE_LISTEN', at(managePort)],
    [
      'GATEHOUSE_PROXY_UPSTREAM',
      upstreamPort === null ? null : `${upstreamScheme}://127.0.0.1:${upstreamPort}`,
    ],
    ['GATEHOUSE_PROXY_TLS_CERT_FILE', certificate === null ? null : `${CERTIFICATE}/tls.crt`],
    ['GATEHOUSE_PROXY_TLS_KEY_FILE', certificate === null ? null : `${CERTIFICATE}/tls.key`],
    ['GATEHOUSE_BUS_URL', bus.urls.length === 0 ? null : bus.urls.join(',')],
    ['GATEHOUSE_BUS_NAME', bus.name],
    ['GATEHOUSE_BUS_USER', bus.user],
    ['GATEHOUSE_BUS_PASSWORD_FILE', bus.user === null ? null : `${BUS}/${PASSWORD}`],
    [
      'GATEHOUSE_BUS_CREDENTIALS_FILE',
      bus.secret === null || bus.user !== null ? null : `${BUS}/${CREDENTIALS}`,
    ],
    ['GATEHOUSE_BUS_CERTIFICATE_FILE', bus.certificate === null ? null : `${BUS_TLS}/tls.crt`],
    ['GATEHOUSE_BUS_KEY_FILE', bus.certificate === null ? null : `${BUS_TLS}/tls.key`],
    ['GATEHOUSE_BUS_CA_FILE', bus.caConfigMap === null ? null : `${BUS_CA}/ca.crt`],
    ['GATEHOUSE_BUS_FIRST_SNAPSHOT', bus.firstSnapshot],
    ['GATEHOUSE_BUS_BOOTSTRAP_FILE', bus.bootstrapConfigMap === null ? null : `${BOOTSTRAP}/${SNAPSHOT}`],
  ]
  return variables.flatMap(([name, value]) => (value === null ? [] : [{ name, value }]))
}

/** By number: another port may take over the name. */
function probe(path: string, { managePort, manageScheme }: PodSettings) {
  const scheme = manageScheme === 'https' ? { scheme: 'HTTPS' } : {}
  return { httpGet: { path, port: managePort, ...scheme }, timeoutSeconds: 2 }
}

export const SIDECAR = 'gatehouse'
const DATA = '/var/lib/gatehouse'
const CONFIG = '/etc/gatehouse'
const CERTIFICATE = '/etc/gatehouse-tls'
const BUS = '/etc/gatehouse-bus'
const BUS_TLS = '/etc/gatehouse-bus-tls'
const BUS_CA = '/etc/gatehouse-bus-ca'
const BOOTSTRAP = '/etc/gatehouse-bootstrap'
const SNAPSHOT = 'fleet.snapshot'
const PASSWORD = 'password'
const CREDENTIALS = 'nats.creds'
