import { appended, member, type PatchOperation } from './json-patch.ts'
import type { Pod } from './pod.ts'
import { INJECTED, PREFIX, readPodSettings } from './pod-settings.ts'
import { planPorts } from './ports.ts'
import { makeSidecar, SIDECAR, type SidecarSettings } from './sidecar.ts'

/** The decision about a Pod. */
export type Injection =
  | { readonly kind: 'nothing'; readonly warnings: readonly string[] }
  | {
      readonly kind: 'patch'
      readonly patch: readonly PatchOperation[]
      readonly warnings: readonly string[]
    }
  /** The Pod requests a sidecar that is impossible, in words for its author. */
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** A pure function: the same Pod gets the same sidecar, and a Pod that has one gets nothing. */
export function inject(pod: Pod, common: SidecarSettings, version: string): Injection {
  const wish = wishOf(pod)
  if (wish === null) return NOTHING
  if (wish === 'unknown') return { kind: 'refused', problems: [LABEL_PROBLEM] }
  if (hasSidecar(pod) || isMirror(pod)) return NOTHING
  if (pod.isForWindows) return { kind: 'nothing', warnings: ['Pods for Windows get no sidecar of Gatehouse'] }

  const read = readPodSettings(pod, common)
  // Report annotation problems first: port problems may follow from them.
  if (read.problems.length > 0) return { kind: 'refused', problems: read.problems }
  const ports = planPorts(pod, read.settings)
  if (ports.problems.length > 0) return { kind: 'refused', problems: ports.problems }

  const sidecar = makeSidecar(pod, read.settings, ports, common)
  return {
    kind: 'patch',
    patch: [
      ...ports.patch,
      // Last: init containers before it need no proxy, and keep the Pod's resources to themselves.
      ...appended('/spec/initContainers', pod.initContainers, [sidecar.container]),
      ...appended('/spec/volumes', pod.volumes, sidecar.volumes),
      ...pullSecrets(pod, common),
      marked(pod, version),
    ],
    warnings: [...read.warnings, ...ports.warnings],
  }
}

/** `null`: no sidecar requested. */
function wishOf({ labels }: Pod): 'sidecar' | 'unknown' | null {
  const label = labels.get(LABEL)
  if (label === undefined || label === 'disabled' || label === 'false') return null
  return label === 'enabled' || label === 'true' ? 'sidecar' : 'unknown'
}

/** Whether the Pod has a sidecar of any version, added by this webhook or by the author. */
function hasSidecar({ containers, initContainers }: Pod): boolean {
  return [...containers, ...(initContainers ?? [])].some(({ name }) => name === SIDECAR)
}

/**
 * A mirror Pod reports a Pod that a node runs from a local file. Changing the mirror would not change that
 * Pod.
 */
function isMirror({ annotations }: Pod): boolean {
  return annotations?.has('kubernetes.io/config.mirror') === true
}

/** Pull secrets for the sidecar's image that the Pod does not have yet. */
function pullSecrets({ imagePullSecrets }: Pod, common: SidecarSettings): PatchOperation[] {
  const missing = common.pullSecrets.filter((name) => imagePullSecrets?.includes(name) !== true)
  if (missing.length === 0) return []
  return appended(
    '/spec/imagePullSecrets',
    imagePullSecrets,
    missing.map((name) => ({ name })),
  )
}

function marked({ annotations }: Pod, version: string): PatchOperation {
  return annotations === null
    ? { op: 'add', path: '/metadata/annotations', value: { [INJECTED]: version } }
    : { op: 'add', path: member('/metadata/annotations', INJECTED), value: version }
}

const LABEL = `${PREFIX}inject`
const LABEL_PROBLEM = `label ${LABEL} must be enabled, true, disabled or false`
const NOTHING = { kind: 'nothing', warnings: [] } as const
