import type { PatchOperation } from './json-patch.ts'
import type { Container, ContainerPort, Pod } from './pod.ts'
import { annotationOf, type PodSettings, PREFIX } from './pod-settings.ts'

/** The ports in the Pod once the sidecar is added. */
export interface PortPlan {
  /** The app's port; `null`: the sidecar's configuration sets it. */
  readonly upstreamPort: number | null
  /** The name of the port that the sidecar takes over from the app; `null`: no port. */
  readonly takenName: string | null
  /** Changes to the app's containers. */
  readonly patch: readonly PatchOperation[]
  readonly problems: readonly string[]
  readonly warnings: readonly string[]
}

export function planPorts(pod: Pod, settings: PodSettings): PortPlan {
  const running = containersOf(pod).filter(({ isRunning }) => isRunning)
  const taken = takenPorts(running, settings.takePort)
  const upstream = upstreamPort(pod, running, taken, settings)
  return {
    upstreamPort: upstream.port,
    takenName: settings.takePort,
    patch: taken.length === 0 ? [] : renamed(pod, taken, settings.takePort!),
    problems: [
      ...(taken.length === 0 && settings.takePort !== null
        ? [noSuchPort('take-port', settings.takePort)]
        : []),
      ...(upstream.problem === null ? [] : [upstream.problem]),
      ...collisions(running, settings, upstream.port),
      ...(pod.usesHostNetwork ? unsaidHostPorts(pod, settings) : []),
    ],
    warnings: taken.flatMap(({ container, port }) =>
      port.isOnHost
        ? [
            `port "${port.name}" of container ${container.name} keeps its hostPort, which leads past Gatehouse`,
          ]
        : [],
    ),
  }
}

interface PortOf {
  readonly container: Container
  readonly port: ContainerPort
}

function containersOf({ containers, initContainers }: Pod): Container[] {
  return [...containers, ...(initContainers ?? [])]
}

function portsOf(containers: readonly Container[]): PortOf[] {
  return containers.flatMap((container) => container.ports.map((port) => ({ container, port })))
}

/** A Service that targets a port name gets the first container with such a port and matching protocol. */
function takenPorts(running: readonly Container[], name: string | null): PortOf[] {
  return name === null ? [] : portsOf(running).filter(({ port }) => port.isTcp && port.name === name)
}

/** Renames the app's port. Probes and hooks of the same container that refer to the name get the number. */
function renamed(pod: Pod, taken: readonly PortOf[], name: string): PatchOperation[] {
  const names = new Set(portsOf(containersOf(pod)).map(({ port }) => port.name))
  return taken.flatMap(({ container, port }) => {
    const free = freePortName(`app-${name}`, names)
    names.add(free)
    return [
      { op: 'replace', path: `${port.pointer}/name`, value: free } as const,
      ...container.portUses
        .filter((use) => use.name === name)
        .map(({ pointer }) => ({ op: 'replace', path: pointer, value: port.port }) as const),
    ]
  })
}

function freePortName(wanted: string, names: ReadonlySet<string | null>): string {
  for (let number = 1; ; number++) {
    const ending = number === 1 ? '' : String(number)
    const name = wanted.slice(0, PORT_NAME_LENGTH_MAX - ending.length).replace(/-$/, '') + ending
    if (!names.has(name)) return name
  }
}

/** The annotation, else the port that is taken over, else the only port. */
function upstreamPort(
  pod: Pod,
  running: readonly Container[],
  taken: readonly PortOf[],
  { upstreamPort: said }: PodSettings,
): { readonly port: number | null; readonly problem: string | null } {
  if (typeof said === 'number') return { port: said, problem: null }
  if (said !== null) {
    const port = takenPorts(running, said)[0]?.port.port ?? null
    return { port, problem: port === null ? noSuchPort('upstream-port', said) : null }
  }
  if (taken.length > 0) return { port: taken[0]!.port.port, problem: null }
  const tcpPorts = portsOf(pod.containers).filter(({ port }) => port.isTcp)
  const numbers = new Set(tcpPorts.map(({ port }) => port.port))
  if (numbers.size === 1) return { port: [...numbers][0]!, problem: null }
  if (annotationOf(pod, 'config') !== null) return { port: null, problem: null }
  const found = numbers.size === 0 ? 'no TCP port' : `${numbers.size} TCP ports`
  return {
    port: null,
    problem: `the containers have ${found}: annotation ${PREFIX}upstream-port has to say on which one the app is`,
  }
}

function noSuchPort(annotation: string, name: string): string {
  return `annotation ${PREFIX}${annotation} is "${name}", and no container has a TCP port of that name`
}

/** The containers of a Pod share one network, so each port can be used once. */
function collisions(running: readonly Container[], settings: PodSettings, upstream: number | null): string[] {
  const ours = ourPorts(settings)
  const problems: string[] = []
  for (const [index, { annotation, port }] of ours.entries()) {
    const other = ours.slice(0, index).find((each) => each.port === port)
    if (other !== undefined)
      problems.push(
        `port ${port} is both ${PREFIX}${other.annotation} and ${PREFIX}${annotation} of the sidecar`,
      )
    const theirs = portsOf(running).find((each) => each.port.isTcp && each.port.port === port)
    const who = theirs === undefined ? 'the app' : `container ${theirs.container.name}`
    if (theirs !== undefined || port === upstream)
      problems.push(
        `${who} has port ${port}, on which the sidecar is to listen: give it another with annotation ${PREFIX}${annotation}`,
      )
  }
  return problems
}

/** On the host network all Pods of a node share ports, so the author must choose free ones. */
function unsaidHostPorts(pod: Pod, settings: PodSettings): string[] {
  const unsaid = ourPorts(settings).filter(({ annotation }) => annotationOf(pod, annotation) === null)
  if (unsaid.length === 0) return []
  const names = unsaid.map(({ annotation }) => PREFIX + annotation).join(' and ')
  return [
    `the Pod has the network of its node, so that its ports are taken there: annotation ${names} has to say which`,
  ]
}

function ourPorts({ listenPort, plainPort, managePort }: PodSettings) {
  return [
    { annotation: 'listen-port', port: listenPort },
    { annotation: 'manage-port', port: managePort },
    ...(plainPort === null ? [] : [{ annotation: 'plain-port', port: plainPort } as const]),
  ] as const
}

const PORT_NAME_LENGTH_MAX = 15
