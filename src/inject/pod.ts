import {
  type Mapping,
  mappingAt,
  optionalBooleanAt,
  optionalListAt,
  optionalMappingAt,
  optionalTextAt,
  portAt,
  textAt,
} from './json-value.ts'
import { workloadIn } from './workload.ts'

/** The part of a Pod that injection needs. */
export interface Pod {
  /** The Pod's name, or its generated-name prefix. */
  readonly name: string
  readonly namespace: string
  /** The name of the Deployment, or of another controller. `null`: unknown. */
  readonly workload: string | null
  readonly labels: ReadonlyMap<string, string>
  /** `null` here and below: the member is missing, so a patch must create it. */
  readonly annotations: ReadonlyMap<string, string> | null
  readonly containers: readonly Container[]
  readonly initContainers: readonly Container[] | null
  /** Volume names. */
  readonly volumes: readonly string[] | null
  /** Names of Secrets. */
  readonly imagePullSecrets: readonly string[] | null
  readonly usesHostNetwork: boolean
  readonly isForWindows: boolean
}

export interface Container {
  /** JSON pointer in the Pod: `/spec/containers/0`. */
  readonly pointer: string
  readonly name: string
  /** Whether it runs alongside the app, not before it: only then can a Service reach its ports. */
  readonly isRunning: boolean
  readonly ports: readonly ContainerPort[]
  readonly portUses: readonly PortUse[]
}

export interface ContainerPort {
  readonly pointer: string
  readonly name: string | null
  readonly port: number
  readonly isTcp: boolean
  readonly isOnHost: boolean
}

/** A probe or hook that refers to a port of its container by name. */
interface PortUse {
  readonly pointer: string
  readonly name: string
}

/**
 * Throws a Fault that says what differs from the Kubernetes format. Does not validate unused members. A new Pod
 * does not name its namespace.
 */
export function parsePod(value: unknown, namespace: string): Pod {
  const pod = mappingAt('the Pod', value)
  const metadata = mappingAt('metadata', pod.get('metadata'))
  const spec = mappingAt('spec', pod.get('spec'))
  const name = optionalTextAt('metadata.name', metadata.get('name'))
  const generateName = optionalTextAt('metadata.generateName', metadata.get('generateName'))
  const labels = textsAt('metadata.labels', metadata.get('labels')) ?? new Map<string, string>()
  return {
    name: name || generateName || '',
    namespace,
    workload: workloadIn(metadata, labels),
    labels,
    annotations: textsAt('metadata.annotations', metadata.get('annotations')),
    containers: containersAt('containers', spec) ?? [],
    initContainers: containersAt('initContainers', spec),
    volumes: namesAt('spec.volumes', spec.get('volumes')),
    imagePullSecrets: pullSecretsAt('spec.imagePullSecrets', spec.get('imagePullSecrets')),
    usesHostNetwork: optionalBooleanAt('spec.hostNetwork', spec.get('hostNetwork')),
    isForWindows: isForWindows(spec),
  }
}

function textsAt(at: string, value: unknown): ReadonlyMap<string, string> | null {
  const found = optionalMappingAt(at, value)
  return found === null
    ? null
    : new Map([...found].map(([name, text]) => [name, textAt(`${at} ${name}`, text)]))
}

function namesAt(at: string, value: unknown): string[] | null {
  const found = optionalListAt(at, value)?.map((each, index) => {
    const item = mappingAt(`${at}[${index}]`, each)
    return textAt(`${at}[${index}].name`, item.get('name'))
  })
  return found ?? null
}

/** Kubernetes accepts an item without a name. */
function pullSecretsAt(at: string, value: unknown): string[] | null {
  const found = optionalListAt(at, value)?.map((each, index) => {
    const item = mappingAt(`${at}[${index}]`, each)
    return optionalTextAt(`${at}[${index}].name`, item.get('name')) ?? ''
  })
  return found ?? null
}

function containersAt(list: 'containers' | 'initContainers', spec: Mapping): Container[] | null {
  const found = optionalListAt(`spec.${list}`, spec.get(list))
  return found?.map((value, index) => containerAt(list, index, value)) ?? null
}

function containerAt(list: 'containers' | 'initContainers', index: number, value: unknown): Container {
  const at = `spec.${list}[${index}]`
  const pointer = `/spec/${list}/${index}`
  const container = mappingAt(at, value)
  const ports = optionalListAt(`${at}.ports`, container.get('ports')) ?? []
  const restartPolicy = optionalTextAt(`${at}.restartPolicy`, container.get('restartPolicy'))
  return {
    pointer,
    name: textAt(`${at}.name`, container.get('name')),
    isRunning: list === 'containers' || restartPolicy === 'Always',
    ports: ports.map((port, each) =>
      containerPortAt(`${at}.ports[${each}]`, `${pointer}/ports/${each}`, port),
    ),
    portUses: [
      ...PROBES.flatMap((probe) => portUsesAt(at, pointer, probe, container)),
      ...hooksAt(at, pointer, container),
    ],
  }
}

function containerPortAt(at: string, pointer: string, value: unknown): ContainerPort {
  const port = mappingAt(at, value)
  const protocol = optionalTextAt(`${at}.protocol`, port.get('protocol'))
  const hostPort = port.get('hostPort')
  return {
    pointer,
    name: optionalTextAt(`${at}.name`, port.get('name')) || null,
    port: portAt(`${at}.containerPort`, port.get('containerPort')),
    isTcp: protocol === null || protocol === 'TCP',
    isOnHost: hostPort !== undefined && hostPort !== null && hostPort !== 0,
  }
}

function hooksAt(at: string, pointer: string, container: Mapping): PortUse[] {
  const lifecycle = optionalMappingAt(`${at}.lifecycle`, container.get('lifecycle'))
  if (lifecycle === null) return []
  return HOOKS.flatMap((hook) => portUsesAt(`${at}.lifecycle`, `${pointer}/lifecycle`, hook, lifecycle))
}

/** The target of a probe or hook: `httpGet: {port: http}` or `tcpSocket: {port: http}`. */
function portUsesAt(at: string, pointer: string, name: string, around: Mapping): PortUse[] {
  const handler = optionalMappingAt(`${at}.${name}`, around.get(name))
  if (handler === null) return []
  return ASKING.flatMap((way) => {
    const asked = optionalMappingAt(`${at}.${name}.${way}`, handler.get(way))?.get('port')
    return typeof asked === 'string' ? [{ pointer: `${pointer}/${name}/${way}/port`, name: asked }] : []
  })
}

function isForWindows(spec: Mapping): boolean {
  const os = optionalMappingAt('spec.os', spec.get('os'))?.get('name')
  const selector = optionalMappingAt('spec.nodeSelector', spec.get('nodeSelector'))
  return os === 'windows' || selector?.get('kubernetes.io/os') === 'windows'
}

const PROBES = ['startupProbe', 'readinessProbe', 'livenessProbe']
const HOOKS = ['postStart', 'preStop']
const ASKING = ['httpGet', 'tcpSocket']
