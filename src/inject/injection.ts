import { appended, member, type PatchOperation } from './json-patch.ts'
import type { Pod } from './pod.ts'
import { INJECTED, PREFIX, readPodSettings } from './pod-settings.ts'
import { planPorts } from './ports.ts'
import { makeSidecar, SIDECAR, type SidecarSettings } from './sidecar.ts'

/** What becomes of a Pod. */
export type Injection =
  | { readonly kind: 'nothing'; readonly warnings: readonly string[] }
  | {
      readonly kind: 'patch'
      readonly patch: readonly PatchOperation[]
      readonly warnings: readonly string[]
    }
  /** It asks for a sidecar that it cannot have, in words for its author. */
  | { readonly kind: 'refused'; readonly problems: readonly string[] }

/** Pure: the same Pod gets the same sidecar, and one that has it gets nothing. */
export function inject(pod: Pod, common: SidecarSettings, version: string): Injection {
  const wish = wishOf(pod)
  if (wish === null) return NOTHING
  if (wish === 'unknown') return { kind: 'refused', problems: [LABEL_PROBLEM] }
  if (hasSidecar(pod) || isMirror(pod)) return NOTHING
  if (pod.isForWindows) return { kind: 'nothing', warnings: ['Pods for Windows get no sidecar of Gatehouse'] }

  const read = readPodSettings(pod, common)
  // What a wrong annotation would do to ports is of no interest, before it is right.
  if (read.problems.length > 0) return { kind: 'refused', problems: read.problems }
  const ports = planPorts(pod, read.settings)
  if (ports.problems.length > 0) return { kind: 'refused', problems: ports.problems }

  const sidecar = makeSidecar(pod, read.settings, ports, common)
  return {
    kind: 'patch',
    patch: [
      ...ports.patch,
      // The last: what runs before the app needs nobody to take requests, and has the Pod's resources to itself.
      ...appended('/spec/initContainers', pod.initContainers, [sidecar.container]),
      ...appended('/spec/volumes', pod.volumes, sidecar.volumes),
      ...pullSecrets(pod, common),
      marked(pod, version),
    ],
    warnings: [...read.warnings, ...ports.warnings],
  }
}

/** `null`: it wants none. */
function wishOf({ labels }: Pod): 'sidecar' | 'unknown' | null {
  const label = labels.get(LABEL)
  if (label === undefined || label === 'disabled' || label === 'false') return null
  return label === 'enabled' || label === 'true' ? 'sidecar' : 'unknown'
}

/** Of whichever version, and whoever put it there: this webhook, or the author. */
function hasSidecar({ containers, initContainers }: Pod): boolean {
  return [...containers, ...(initContainers ?? [])].some(({ name }) => name === SIDECAR)
}

/** What a node says of a Pod that it runs by a file of its own: changing it here would change nothing there. */
function isMirror({ annotations }: Pod): boolean {
  return annotations?.has('kubernetes.io/config.mirror') === true
}

/** For the image of the sidecar. Those that the Pod has already are not added again. */
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
const LABEL_PROBLEM = `label ${LABEL} takes enabled or true, and disabled or false`
const NOTHING = { kind: 'nothing', warnings: [] } as const
