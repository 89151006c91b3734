import { createHash } from 'node:crypto'
import { appId } from '../config/apps.ts'
import { Place } from '../shared/problem.ts'
import { type Mapping, mappingAt, optionalListAt, optionalTextAt } from './json-value.ts'

/**
 * The name of what the Pod belongs to: a Deployment, another controller, or the Pod itself. `null`: a Pod without
 * a name of its own.
 */
export function workloadIn(metadata: Mapping, labels: ReadonlyMap<string, string>): string | null {
  const owners = optionalListAt('metadata.ownerReferences', metadata.get('ownerReferences')) ?? []
  const parsed = owners.map((value, index) => mappingAt(`metadata.ownerReferences[${index}]`, value))
  const controller = parsed.find((owner) => owner.get('controller') === true)
  if (controller === undefined) return optionalTextAt('metadata.name', metadata.get('name')) || null
  const name = optionalTextAt('the name of the controller', controller.get('name'))
  if (!name) return null
  const kind = controller.get('kind')
  // A Deployment names its ReplicaSets after itself and the Pods, a CronJob its Jobs after itself and the minute.
  const hash = labels.get('pod-template-hash')
  if (kind === 'ReplicaSet' && hash) return without(name, `-${hash}`)
  return kind === 'Job' ? name.replace(/-\d{7,10}$/, '') : name
}

/** The id of the app that stands for a workload: `NAMESPACE-WORKLOAD`, shortened if that is too long. */
export function appOfWorkload(namespace: string, workload: string | null): string | null {
  if (namespace === '' || workload === null) return null
  const name = `${namespace}-${workload.replaceAll('.', '-')}`
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH)
  const isLong = name.length > APP_ID_LENGTH_MAX
  const id = isLong ? `${name.slice(0, APP_ID_LENGTH_MAX - HASH_LENGTH - 1)}-${hash}` : name
  return appId.read(Place.of(id, []))
}

function without(text: string, end: string): string {
  return text.endsWith(end) && text.length > end.length ? text.slice(0, -end.length) : text
}

const APP_ID_LENGTH_MAX = 63
const HASH_LENGTH = 8
