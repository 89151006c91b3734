import { appId } from '../config/apps.ts'
import {
  busUser,
  cpu,
  cpuAmount,
  kubernetesName,
  type ManageScheme,
  manageScheme,
  memory,
  memoryAmount,
  type SidecarBusConfig,
  type SidecarConfig,
  sidecarPort,
  type UpstreamScheme,
  upstreamScheme,
} from '../config/inject.ts'
import { integer, type Kind, written } from '../config/kinds.ts'
import { didYouMean } from '../shared/did-you-mean.ts'
import { type DocumentProblem, Place } from '../shared/problem.ts'
import type { Pod } from './pod.ts'
import { appOfWorkload } from './workload.ts'

/** Settings for the sidecar of one Pod: the webhook's settings, overridden by the Pod's annotations. */
export interface PodSettings {
  /** The app of all its requests. `null`: the ConfigMap says it, or the hosts of the apps. */
  readonly app: string | null
  readonly listenPort: number
  readonly plainPort: number | null
  readonly managePort: number
  readonly manageScheme: ManageScheme
  readonly upstreamScheme: UpstreamScheme
  /** A number, or the name of a port; `null`: not set. */
  readonly upstreamPort: number | string | null
  /** The name of an app port that the sidecar takes over. */
  readonly takePort: string | null
  readonly configMap: string | null
  readonly certificate: string | null
  readonly bus: SidecarBusConfig
  readonly cpu: string
  readonly memory: string
}

interface ReadPodSettings {
  /** Valid only without problems. */
  readonly settings: PodSettings
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export function readPodSettings(pod: Pod, defaults: SidecarConfig): ReadPodSettings {
  const problems: string[] = []
  const read = <Value>(name: Annotation, kind: Kind<Value>, usual: Value): Value => {
    const text = annotationOf(pod, name)
    if (text === null) return usual
    const found: DocumentProblem[] = []
    const value = kind.read(Place.of(kind.fromText(text), found))
    for (const { what } of found) problems.push(`annotation ${PREFIX}${name} ${what}`)
    return found.length > 0 ? usual : (value as Value)
  }
  const usualApp = defaults.app === 'workload' ? appOfWorkload(pod.namespace, pod.workload) : null
  const settings: PodSettings = {
    app: read('app', appId, usualApp),
    listenPort: read('listen-port', sidecarPort, defaults.listenPort),
    plainPort: read('plain-port', portOrNone, defaults.plainPort),
    managePort: read('manage-port', sidecarPort, defaults.managePort),
    manageScheme: read('manage-scheme', manageScheme, defaults.manageScheme),
    upstreamScheme: read('upstream-scheme', upstreamScheme, defaults.upstreamScheme),
    upstreamPort: read('upstream-port', portOrName, null),
    takePort: read('take-port', portName, null),
    configMap: read('config', kubernetesName, defaults.configMap),
    certificate: read('certificate', kubernetesName, defaults.certificate),
    bus: {
      ...defaults.bus,
      user: read('bus-user', busUser, defaults.bus.user),
      secret: read('bus-secret', kubernetesName, defaults.bus.secret),
      certificate: read('bus-certificate', kubernetesName, defaults.bus.certificate),
    },
    cpu: read('cpu', cpu, defaults.cpu),
    memory: read('memory', memory, defaults.memory),
  }
  if (cpuAmount(settings.cpu) > cpuAmount(defaults.cpuMax))
    problems.push(
      `annotation ${PREFIX}cpu is "${settings.cpu}"; at most "${defaults.cpuMax}" may be asked for`,
    )
  if (memoryAmount(settings.memory) > memoryAmount(defaults.memoryMax))
    problems.push(
      `annotation ${PREFIX}memory is "${settings.memory}"; at most "${defaults.memoryMax}" may be asked for`,
    )
  if (settings.bus.user !== null && settings.bus.secret === null)
    problems.push(
      `annotation ${PREFIX}bus-secret is missing: it names the Secret with the password of ${PREFIX}bus-user`,
    )
  return { settings, problems, warnings: unknownAnnotations(pod) }
}

/** `null`: not set. */
export function annotationOf(pod: Pod, name: Annotation): string | null {
  return pod.annotations?.get(PREFIX + name) ?? null
}

/** A warning only: other programs may use annotations with this prefix. */
function unknownAnnotations({ annotations }: Pod): string[] {
  return [...(annotations?.keys() ?? [])].flatMap((key) => {
    if (!key.startsWith(PREFIX) || key === INJECTED) return []
    const name = key.slice(PREFIX.length)
    if (ANNOTATIONS.some((known) => known === name)) return []
    return [`annotation ${key} is unknown${didYouMean(name, ANNOTATIONS)}`]
  })
}

type Annotation = (typeof ANNOTATIONS)[number]

const portName: Kind<string> = written({
  takes: 'name of a port',
  expected: 'the name of a port',
  parse: (given) => (isPortName(given) ? given : null),
})

const anyPort = integer(1, 65_535)

const portOrName: Kind<number | string | null> = {
  takes: 'number or name of a port',
  read: (place) => (typeof place.value === 'string' ? portName : anyPort).read(place),
  fromText: anyPort.fromText,
}

const portOrNone: Kind<number | null> = {
  takes: `${sidecarPort.takes}, or none`,
  read: (place) => (place.value === 'none' ? null : sidecarPort.read(place)),
  fromText: sidecarPort.fromText,
}

/**
 * RFC 6335 §5.1: at most 15 lower-case letters, digits and single hyphens between them, with at least one
 * letter.
 */
function isPortName(name: string): boolean {
  return name.length <= 15 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name) && /[a-z]/.test(name)
}

export const PREFIX = 'gatehouse.dev/'
/** Set on each Pod that got a sidecar; the value is the version. */
export const INJECTED = `${PREFIX}injected`
const ANNOTATIONS = [
  'app',
  'listen-port',
  'plain-port',
  'manage-port',
  'manage-scheme',
  'upstream-scheme',
  'upstream-port',
  'take-port',
  'config',
  'certificate',
  'bus-user',
  'bus-secret',
  'bus-certificate',
  'cpu',
  'memory',
] as const
