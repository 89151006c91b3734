import {
  busName,
  busUrl,
  choice,
  type HostPort,
  integer,
  INVALID,
  type Kind,
  listenAddress,
  optional,
  path,
  text,
} from './kinds.ts'
import { list, secret, section, setting, type ValueOf } from './items.ts'
import { Fault } from '../shared/fault.ts'
import { shown } from '../shared/problem.ts'
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

export type FirstSnapshot = 'wait' | 'serve'
export type ManageScheme = 'http' | 'https'
export type UpstreamScheme = 'http' | 'https' | 'h2c' | 'h2'

/** Names of Secrets, ConfigMaps and most other Kubernetes objects (RFC 1123). */
export const kubernetesName: Kind<string> = {
  takes: 'name in Kubernetes',
  parse(raw) {
    if (typeof raw === 'string' && raw.length <= 253 && SUBDOMAIN.test(raw)) return raw
    throw refused(raw, 'a name of Kubernetes: small letters, digits, - and . between them')
  },
  fromText: (given) => given,
}

/** Names of Services and namespaces, which are a label of a host name. */
export const kubernetesLabel: Kind<string> = {
  takes: 'name in Kubernetes',
  parse(raw) {
    if (typeof raw === 'string' && LABEL.test(raw)) return raw
    throw refused(raw, 'a name of Kubernetes: at most 63 small letters, digits, and - between them')
  },
  fromText: (given) => given,
}

/** Ports below 1024 need root, and the sidecar does not run as root. */
export const sidecarPort: Kind<number> = integer(1024, 65_535)

export const upstreamScheme: Kind<UpstreamScheme> = choice('http', 'https', 'h2c', 'h2')

export const manageScheme: Kind<ManageScheme> = choice('http', 'https')

/** The user name that a sidecar logs in to NATS with. */
export const busUser: Kind<string> = text

export const cpu: Kind<string> = {
  takes: '10m to 64',
  parse(raw) {
    const amount = typeof raw === 'string' ? cpuAmount(raw) : Number.NaN
    if (amount >= 10 && amount <= 64_000) return raw as string
    throw refused(raw, 'cores from 10m to 64, in quotes: "500m", "1.5"')
  },
  fromText: (given) => given,
}

export const memory: Kind<string> = {
  takes: '64Mi to 64Gi',
  parse(raw) {
    const amount = typeof raw === 'string' ? memoryAmount(raw) : Number.NaN
    if (amount >= 64 * 2 ** 20 && amount <= 64 * 2 ** 30) return raw as string
    throw refused(raw, 'bytes from 64Mi to 64Gi, with their unit: M, G, Mi or Gi')
  },
  fromText: (given) => given,
}

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
  'What `gatehouse inject` does: the admission webhook of Kubernetes that puts a sidecar into Pods with the label `gatehouse.dev/inject`. Of all other settings it has `manage.listen`, where its health and metrics are, `data.dir` and `log.level`.',
  {
    listen: setting(listenAddress, '0.0.0.0:9443', 'Where the API server of Kubernetes connects, with TLS.'),
    tls: section('Its certificate.', {
      cert_file: setting(
        optional(path),
        null,
        'PEM with its chain, DER, or PKCS#12 with its key. Loaded anew when it changes. `null`: it is self-made.',
      ),
      key_file: setting(optional(path), null, 'Its private key, where that is in a file of its own.'),
      key_passphrase: secret('Of an encrypted key, or of PKCS#12.', 0),
    }),
    service: setting(
      kubernetesLabel,
      'gatehouse-inject',
      'The Service in front of it. A self-made certificate is for `SERVICE.NAMESPACE.svc`, as the API server asks for it.',
    ),
    namespace: setting(
      optional(kubernetesLabel),
      null,
      'The namespace of the Service and of `secret`. `null`: that of the service account.',
    ),
    secret: setting(
      kubernetesName,
      'gatehouse-inject-certificate',
      'The Secret in which all replicas keep the self-made certificate and its CA. One that somebody else has filled is never written to.',
    ),
    webhook: setting(
      kubernetesName,
      'gatehouse-inject',
      'The MutatingWebhookConfiguration that is told the self-made CA (`caBundle`), wherever it calls the Service.',
    ),
    service_account_dir: setting(
      path,
      '/var/run/secrets/kubernetes.io/serviceaccount',
      'Where `token`, `ca.crt` and `namespace` are with which the API server is asked. Only for a self-made certificate.',
    ),
    sidecar: section('What a Pod gets that has no annotations.', {
      image: setting(optional(text), null, 'The image of the sidecar; `gatehouse inject` needs it.'),
      pull_policy: setting(
        choice('Always', 'IfNotPresent', 'Never'),
        'IfNotPresent',
        'When a node pulls the image.',
      ),
      pull_secrets: list(
        kubernetesName,
        "Secrets in the Pod's namespace that the image is pulled with, in addition to those that the Pod has.",
      ),
      listen_address: setting(
        choice('0.0.0.0', '::'),
        '0.0.0.0',
        'Where all its ports are: `::` in clusters that have IPv6.',
      ),
      listen_port: setting(sidecarPort, 8443, 'Where clients connect with TLS. `gatehouse.dev/listen-port`.'),
      plain_port: setting(
        optional(sidecarPort),
        null,
        'Where they connect without, if anywhere. `gatehouse.dev/plain-port`.',
        (port) =>
          port === null ? null : 'all that is sent there can be read and changed on its way, in each Pod',
      ),
      manage_port: setting(sidecarPort, 9080, 'Its health and metrics. `gatehouse.dev/manage-port`.'),
      manage_scheme: setting(
        manageScheme,
        'http',
        'How probes ask that port: `https` where the ConfigMap sets `manage.tls`. `gatehouse.dev/manage-scheme`.',
      ),
      upstream_scheme: setting(
        upstreamScheme,
        'http',
        'How the app in the Pod is spoken to. `gatehouse.dev/upstream-scheme`.',
      ),
      config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace, whose `gatehouse.yaml` has all other settings. `gatehouse.dev/config`.",
      ),
      certificate: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with `tls.crt` and `tls.key`. `gatehouse.dev/certificate`. `null`: what the ConfigMap says, else each sidecar makes one that nobody trusts.",
      ),
      bus_url: list(busUrl, 'Its `bus.url`. None: what the ConfigMap says.'),
      bus_name: setting(
        optional(busName),
        null,
        'Its `bus.name`. `null`: what the ConfigMap says, else the default.',
      ),
      bus_user: setting(
        optional(busUser),
        null,
        'Its `bus.user`; the password is in `bus_secret`. `gatehouse.dev/bus-user`.',
      ),
      bus_secret: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with what the sidecar logs in to NATS with: the key `password` if there is a `bus_user`, else the key `nats.creds`, a credentials file. If the Secret or the key is missing, the Pod does not start, and its events say why. `gatehouse.dev/bus-secret`.",
      ),
      bus_certificate: setting(
        optional(kubernetesName),
        null,
        "A Secret in the Pod's namespace with `tls.crt` and `tls.key`: the client certificate for NATS. `gatehouse.dev/bus-certificate`.",
      ),
      bus_ca_config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace whose `ca.crt` has the CAs that NATS is trusted by. `null`: those of the system.",
      ),
      bus_first_snapshot: setting(
        optional(choice('wait', 'serve')),
        null,
        'Its `bus.first_snapshot`. `null`: what the ConfigMap says, else the default.',
      ),
      bus_bootstrap_config_map: setting(
        optional(kubernetesName),
        null,
        "A ConfigMap in the Pod's namespace whose `fleet.snapshot` is its `bus.bootstrap_file`. The Pod starts without it too.",
      ),
      user: setting(integer(1, 2_147_483_647), 65_532, 'The number of the user it runs as.'),
      cpu: setting(cpu, '50m', 'What it asks for. `gatehouse.dev/cpu`.'),
      cpu_max: setting(cpu, '2', 'The most that an annotation may ask for.'),
      memory: setting(
        memory,
        '256Mi',
        'What it asks for; it may have twice as much. Many connections take more: some 75 KB each. `gatehouse.dev/memory`.',
      ),
      memory_max: setting(memory, '2Gi', 'The most that an annotation may ask for.'),
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
    refuse(`${at}/manage_port`, 'is also listen_port')
  if (plain_port !== undefined && (plain_port === listen_port || plain_port === manage_port))
    refuse(`${at}/plain_port`, `is also ${plain_port === listen_port ? 'listen_port' : 'manage_port'}`)
  if (cpu && cpu_max && cpuAmount(cpu) > cpuAmount(cpu_max)) refuse(`${at}/cpu`, 'is more than cpu_max')
  if (memory && memory_max && memoryAmount(memory) > memoryAmount(memory_max))
    refuse(`${at}/memory`, 'is more than memory_max')
  if (sidecar.bus_user && sidecar.bus_secret === null)
    refuse(`${at}/bus_user`, 'needs bus_secret: the Secret with the password of this user')
}

/** Warns about settings without effect, or with less effect than expected. */
export function warnInject({ tls, sidecar }: InjectSettings, warn: Say): void {
  if (tls.cert_file === null && tls.key_file !== null)
    warn('/inject/tls/key_file', 'has no effect without cert_file')
  if (sidecar.bus_url.length > 0 || sidecar.config_map !== null) return
  for (const name of BUS_SETTINGS)
    if (sidecar[name] !== null)
      warn(`/inject/sidecar/${name}`, 'has no effect without bus_url or a config_map that says it')
}

type InjectSettings = ValueOf<typeof INJECT>
type Say = (pointer: string, what: string) => void
type Compared =
  | ('listen_port' | 'plain_port' | 'manage_port')
  | ('cpu' | 'cpu_max' | 'memory' | 'memory_max')
  | ('bus_user' | 'bus_secret')
interface PartlyInject {
  readonly sidecar: { readonly [Name in Compared]: InjectSettings['sidecar'][Name] | undefined }
}

function refused(raw: unknown, takes: string): Fault {
  return new Fault(INVALID, `is ${shown(raw)}; expected ${takes}`)
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
