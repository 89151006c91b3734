import { choice, integer, type Kind, optional, path, text, written } from './kinds.ts'
import { busName, busUrl, type HostPort, listenAddress } from './network-kinds.ts'
import { list, secret, section, setting, type ValueOf } from './items.ts'
import type { Secret } from '../shared/secret.ts'

/** Settings of `gatehouse inject`, the admission webhook that adds a sidecar to Pods. */
export interface InjectConfig {
  readonly listen: HostPort
  /** `null`: a self-made certificate, stored in the Secret. */
  readonly certificate: {
    readonly certificateFile: string
    readonly keyFile: string | null
    readonly passphrase: Secret<string> | null
  } | null
  readonly service: string
  /** `null`: the namespace of the service account. */
  readonly namespace: string | null
  readonly secret: string
  readonly webhook: string
  readonly serviceAccountFolder: string
  readonly sidecar: SidecarConfig
}

/** Defaults for Pods, which their annotations can override. */
export interface SidecarConfig {
  readonly image: string | null
  readonly pullPolicy: 'Always' | 'IfNotPresent' | 'Never'
  readonly pullSecrets: readonly string[]
  /** The app of Pods without an annotation. */
  readonly app: 'workload' | 'config'
  readonly listenAddress: '0.0.0.0' | '::'
  readonly listenPort: number
  /** `null`: no plain port. */
  readonly plainPort: number | null
  readonly managePort: number
  readonly manageScheme: ManageScheme
  readonly upstreamScheme: UpstreamScheme
  /** Names of ConfigMaps and Secrets in the Pod's own namespace; `null`: not used. */
  readonly configMap: string | null
  readonly certificate: string | null
  readonly bus: SidecarBusConfig
  readonly user: number
  readonly cpu: string
  readonly cpuMax: string
  readonly memory: string
  readonly memoryMax: string
}

/**
 * How the sidecar reaches NATS and logs in. Secrets and ConfigMaps are in the Pod's own namespace; `null`:
 * not used.
 */
export interface SidecarBusConfig {
  readonly urls: readonly string[]
  /** `null`: the Pod's ConfigMap or the default of `bus.name` applies. */
  readonly name: string | null
  /** If a user is set, the Secret has its password; otherwise the Secret has a `.creds` file. */
  readonly user: string | null
  readonly secret: string | null
  readonly certificate: string | null
  readonly caConfigMap: string | null
  /** `null`: the Pod's ConfigMap or the default of `bus.first_snapshot` applies. */
  readonly firstSnapshot: FirstSnapshot | null
  readonly bootstrapConfigMap: string | null
}

type FirstSnapshot = 'wait' | 'serve'
export type ManageScheme = 'http' | 'https'
export type UpstreamScheme = 'http' | 'https' | 'h2c' | 'h2'

/** Names of Secrets, ConfigMaps and most other Kubernetes objects (RFC 1123). */
export const kubernetesName: Kind<string> = written({
  takes: 'Kubernetes name',
  expected: 'a Kubernetes name: lower-case letters and digits, with - and . between them',
  parse: (given) => (given.length <= 253 && SUBDOMAIN.test(given) ? given : null),
})

/** Names of Services and namespaces, which are a label of a host name. */
const kubernetesLabel: Kind<string> = written({
  takes: 'Kubernetes name',
  expected: 'a Kubernetes name: at most 63 lower-case letters and digits, with - between them',
  parse: (given) => (LABEL.test(given) ? given : null),
})

/** Ports below 1024 need root, and the sidecar does not run as root. */
export const sidecarPort: Kind<number> = integer(1024, 65_535)

export const upstreamScheme: Kind<UpstreamScheme> = choice('http', 'https', 'h2c', 'h2')

export const manageScheme: Kind<ManageScheme> = choice('http', 'https')

/** The user name that a sidecar logs in to NATS with. */
export const busUser: Kind<string> = text

export const cpu: Kind<string> = written({
  takes: '10m to 64',
  expected: 'CPU cores from 10m to 64, in quotes, like "500m" or "1.5"',
  parse(given) {
    const amount = cpuAmount(given)
    return amount >= 10 && amount <= 64_000 ? given : null
  },
})

export const memory: Kind<string> = written({
  takes: '64Mi to 64Gi',
  expected: '64Mi to 64Gi, with the unit M, G, Mi or Gi',
  parse(given) {
    const amount = memoryAmount(given)
    return amount >= 64 * 2 ** 20 && amount <= 64 * 2 ** 30 ? given : null
  },
})

/** Thousandths of a core; NaN if the text is invalid or more precise. */
export function cpuAmount(written: string): number {
  const [, number, unit] = CPU.exec(written) ?? []
  const amount = Number(number) * (unit === 'm' ? 1 : 1000)
  return Number.isInteger(amount) ? amount : Number.NaN
}

/** Bytes; NaN if the text is invalid. */
export function memoryAmount(written: string): number {
  const [, number, unit = ''] = MEMORY.exec(written) ?? []
  return Number(number) * (MEMORY_UNITS.get(unit) ?? Number.NaN)
}

export function twiceTheMemory(written: string): string {
  const [, number, unit] = MEMORY.exec(written)!
  return `${2 * Number(number)}${unit}`
}

export const INJECT = section(
  'Settings of `gatehouse inject`, the Kubernetes admission webhook that adds a sidecar to Pods with the label `gatehouse.dev/inject`. Of the other settings it uses only `manage.listen` (health and metrics), `data.dir` and `log.level`.',
  {
    listen: setting(
      listenAddress,
      '0.0.0.0:9443',
      'Address for connections from the Kubernetes API server, with TLS.',
    ),
    tls: section('The certificate of the webhook.', {
      cert_file: setting(
        optional(path),
        null,
        'The certificate: PEM with its chain, DER, or PKCS#12 with its key. Reloaded when it changes. `null`: self-signed.',
      ),
      key_file: setting(optional(path), null, 'Its private key, if it is in a separate file.'),
      key_passphrase: secret('Passphrase of an encrypted key, or of a PKCS#12 file.', 0),
    }),
    service: setting(
      kubernetesLabel,
      'gatehouse-inject',
      'The Service of the webhook. A self-signed certificate is valid for `SERVICE.NAMESPACE.svc`, the name that the API server uses.',
    ),
    namespace: setting(
      optional(kubernetesLabel),
      null,
      'The namespace of the Service and of `secret`. `null`: the namespace of the service account.',
    ),
    secret: setting(
      kubernetesName,
      'gatehouse-inject-certificate',
      'The Secret in which all replicas store the self-signed certificate and its CA. A Secret with other contents is never overwritten.',
    ),
    webhook: setting(
      kubernetesName,
      'gatehouse-inject',
      'The MutatingWebhookConfiguration in which the self-signed CA is set (`caBundle`) for each webhook that calls the Service.',
    ),
    service_account_dir: setting(
      path,
      '/var/run/secrets/kubernetes.io/serviceaccount',
      'The folder with `token`, `ca.crt` and `namespace`, which are used to call the API server. Only for a self-signed certificate.',
    ),
    sidecar: section('Defaults for the sidecar; annotations of a Pod override them.', {
      image: setting(optional(text), null, 'The image of the sidecar; `gatehouse inject` needs it.'),
      pull_policy: setting(
        choice('Always', 'IfNotPresent', 'Never'),
        'IfNotPresent',
        'When a node pulls the image.',
      ),
      pull_secrets: list(
        kubernetesName,
        "Secrets in the Pod's namespace for pulling the image, in addition to those of the Pod.",
      ),
      app: setting(
        choice('workload', 'config'),
        'workload',
        'The app of the requests (`proxy.app`) of Pods without the annotation `gatehouse.dev/app`. `workload`: `NAMESPACE-NAME`, with the name of the Deployment or other controller. `config`: the value in the ConfigMap, otherwise the hosts of the apps decide.',
      ),
      listen_address: setting(
        choice('0.0.0.0', '::'),
        '0.0.0.0',
        'Address on which the sidecar listens: `::` in clusters with IPv6.',
      ),
      listen_port: setting(
        sidecarPort,
        8443,
        'Port for client connections with TLS. `gatehouse.dev/listen-port`.',
      ),
      plain_port: setting(
        optional(sidecarPort),
        null,
        'Port for client connections without TLS. `null`: none. `gatehouse.dev/plain-port`.',
        (port) => (port === null ? null : 'this traffic is not encrypted, in each Pod'),
      ),
      manage_port: setting(
        sidecarPort,
        9080,
        'Port for health checks and metrics. `gatehouse.dev/manage-port`.',
      ),
      manage_scheme: setting(
        manageScheme,
        'http',
        'The scheme that probes use on `manage_port`: set `https` if the ConfigMap sets `manage.tls`. `gatehouse.dev/manage-scheme`.',
      ),
      upstream_scheme: setting(
        upstreamScheme,
        'http',
        'The scheme for connections to the app in the Pod. `gatehouse.dev/upstream-scheme`.',
      ),
      config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace whose key `gatehouse.yaml` has all other settings. `gatehouse.dev/config`.",
      ),
      certificate: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with `tls.crt` and `tls.key`. `gatehouse.dev/certificate`. `null`: the value in the ConfigMap, otherwise each sidecar creates an untrusted one.",
      ),
      bus_url: list(busUrl, 'Its `bus.url`. Empty: the value in the ConfigMap.'),
      bus_name: setting(
        optional(busName),
        null,
        'Its `bus.name`. `null`: the value in the ConfigMap, otherwise the default.',
      ),
      bus_user: setting(
        optional(busUser),
        null,
        'Its `bus.user`; the password is in `bus_secret`. `gatehouse.dev/bus-user`.',
      ),
      bus_secret: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with the NATS credentials: the key `password` if `bus_user` is set, otherwise the key `nats.creds`, a credentials file. If the Secret or the key is missing, the Pod does not start, and its events say why. `gatehouse.dev/bus-secret`.",
      ),
      bus_certificate: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with `tls.crt` and `tls.key`: the client certificate for NATS. `gatehouse.dev/bus-certificate`.",
      ),
      bus_ca_config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace whose key `ca.crt` has the CAs that are trusted for NATS. `null`: the CAs of the system.",
      ),
      bus_first_snapshot: setting(
        optional(choice('wait', 'serve')),
        null,
        'Its `bus.first_snapshot`. `null`: the value in the ConfigMap, otherwise the default.',
      ),
      bus_bootstrap_config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace whose key `fleet.snapshot` is its `bus.bootstrap_file`. The Pod also starts without it.",
      ),
      user: setting(integer(1, 2_147_483_647), 65_532, 'The numeric user ID that the sidecar runs as.'),
      cpu: setting(cpu, '50m', 'CPU request of the sidecar. `gatehouse.dev/cpu`.'),
      cpu_max: setting(cpu, '2', 'The maximum CPU request that an annotation may set.'),
      memory: setting(
        memory,
        '256Mi',
        'Memory request of the sidecar; its limit is twice as much. Many connections need more: about 75 KB each. `gatehouse.dev/memory`.',
      ),
      memory_max: setting(memory, '2Gi', 'The maximum memory request that an annotation may set.'),
    }),
  },
)

export function injectConfig({ tls, sidecar, ...inject }: InjectSettings): InjectConfig {
  const { cert_file: certificateFile, key_file: keyFile, key_passphrase: passphrase } = tls
  return {
    listen: inject.listen,
    certificate: certificateFile === null ? null : { certificateFile, keyFile, passphrase },
    service: inject.service,
    namespace: inject.namespace,
    secret: inject.secret,
    webhook: inject.webhook,
    serviceAccountFolder: inject.service_account_dir,
    sidecar: {
      image: sidecar.image,
      pullPolicy: sidecar.pull_policy,
      pullSecrets: sidecar.pull_secrets,
      listenAddress: sidecar.listen_address,
      listenPort: sidecar.listen_port,
      plainPort: sidecar.plain_port,
      managePort: sidecar.manage_port,
      manageScheme: sidecar.manage_scheme,
      app: sidecar.app,
      upstreamScheme: sidecar.upstream_scheme,
      configMap: sidecar.config_map,
      certificate: sidecar.certificate,
      bus: {
        urls: sidecar.bus_url,
        name: sidecar.bus_name,
        user: sidecar.bus_user,
        secret: sidecar.bus_secret,
        certificate: sidecar.bus_certificate,
        caConfigMap: sidecar.bus_ca_config_map,
        firstSnapshot: sidecar.bus_first_snapshot,
        bootstrapConfigMap: sidecar.bus_bootstrap_config_map,
      },
      user: sidecar.user,
      cpu: sidecar.cpu,
      cpuMax: sidecar.cpu_max,
      memory: sidecar.memory,
      memoryMax: sidecar.memory_max,
    },
  }
}

/** Checks settings against each other. Settings that are invalid by themselves are undefined here. */
export function checkInject({ sidecar }: PartlyInject, refuse: Say): void {
  const at = '/inject/sidecar'
  const { listen_port, plain_port, manage_port, cpu, cpu_max, memory, memory_max } = sidecar
  if (manage_port !== undefined && manage_port === listen_port)
    refuse(`${at}/manage_port`, 'is the same port as listen_port')
  if (plain_port !== undefined && (plain_port === listen_port || plain_port === manage_port))
    refuse(
      `${at}/plain_port`,
      `is the same port as ${plain_port === listen_port ? 'listen_port' : 'manage_port'}`,
    )
  if (cpu && cpu_max && cpuAmount(cpu) > cpuAmount(cpu_max)) refuse(`${at}/cpu`, 'is greater than cpu_max')
  if (memory && memory_max && memoryAmount(memory) > memoryAmount(memory_max))
    refuse(`${at}/memory`, 'is greater than memory_max')
  if (sidecar.bus_user && sidecar.bus_secret === null)
    refuse(`${at}/bus_user`, 'needs bus_secret, the Secret with the password of this user')
}

/** Warns about settings without effect, or with less effect than expected. */
export function warnInject({ tls, sidecar }: InjectSettings, warn: Say): void {
  if (tls.cert_file === null && tls.key_file !== null)
    warn('/inject/tls/key_file', 'has no effect without cert_file')
  if (sidecar.bus_url.length > 0 || sidecar.config_map !== null) return
  for (const name of BUS_SETTINGS)
    if (sidecar[name] !== null) warn(`/inject/sidecar/${name}`, 'has no effect without bus_url or config_map')
}

type InjectSettings = ValueOf<typeof INJECT>
export type Say = (pointer: string, what: string) => void
type Compared =
  | ('listen_port' | 'plain_port' | 'manage_port')
  | ('cpu' | 'cpu_max' | 'memory' | 'memory_max')
  | ('bus_user' | 'bus_secret')
interface PartlyInject {
  readonly sidecar: { readonly [Name in Compared]: InjectSettings['sidecar'][Name] | undefined }
}

const BUS_SETTINGS = [
  ...(['bus_name', 'bus_secret', 'bus_certificate', 'bus_ca_config_map'] as const),
  ...(['bus_first_snapshot', 'bus_bootstrap_config_map'] as const),
] as const
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/
const CPU = /^(\d{1,6}(?:\.\d{1,3})?)(m?)$/
const MEMORY = /^(\d{1,9})(M|G|Mi|Gi)$/
const MEMORY_UNITS: ReadonlyMap<string, number> = new Map([
  ['M', 1e6],
  ['G', 1e9],
  ['Mi', 2 ** 20],
  ['Gi', 2 ** 30],
])
