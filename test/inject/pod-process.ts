import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IPod } from 'kubernetes-models/v1/Pod'
import type { Test } from 'tap'
import { type ServingProcess, startProcess } from '../e2e/gatehouse.ts'
import { temporaryFolder } from '../e2e/programs.ts'

/** By name: what the keys of a Secret or ConfigMap hold. */
export type Objects = Readonly<Record<string, Readonly<Record<string, string | Buffer>>>>

/** The Secrets and ConfigMaps of the namespace that a Pod is in. */
export interface Namespace {
  readonly secrets: Objects
  readonly configMaps: Objects
}

/** What a kubelet says in an event of a Pod whose volume it cannot mount. */
export class FailedMount extends Error {}

/** Starts the sidecar of a Pod as a kubelet does. Throws FailedMount. */
export function startSidecar(
  t: Test,
  pod: IPod,
  namespace: Namespace,
  expects?: RegExp,
): Promise<ServingProcess> {
  const { argv, folder, variables } = mounted(t, pod.spec!, 'gatehouse', namespace)
  return startProcess(t, argv, { folder, variables, ...(expects === undefined ? {} : { expects }) })
}

export interface MountedProcess {
  readonly argv: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  readonly folder: string
}

/**
 * What a kubelet starts a container with: its arguments, its variables and its volumes, and nothing else. The volumes
 * are in a folder of the test, and every text that names their paths names that folder. Throws FailedMount.
 */
export function mounted(t: Test, spec: PodSpec, name: string, namespace: Namespace): MountedProcess {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  const { args = [], env = [], volumeMounts = [] } = containers.find((each) => each.name === name)!
  const folder = temporaryFolder(t)
  const paths = volumeMounts.map(({ mountPath }) => mountPath).filter((path) => path !== '/tmp')
  const inFolder = (text: string) =>
    text.replace(PATHS, (path) => (paths.includes(path) ? folder + path : path))
  for (const mount of volumeMounts) {
    const path = join(folder, mount.mountPath)
    mkdirSync(path, { recursive: true })
    const volume = (spec.volumes ?? []).find((each) => each.name === mount.name)
    assert.ok(volume !== undefined, mount.name)
    for (const [file, content] of Object.entries(filesOf(volume, namespace)))
      writeFileSync(join(path, file), typeof content === 'string' ? inFolder(content) : content, {
        mode: 0o600,
      })
  }
  const variables = Object.fromEntries(env.map(({ name, value }) => [name, inFolder(value!)]))
  return { argv: args.map(inFolder), variables, folder }
}

type PodSpec = NonNullable<IPod['spec']>
/** Where the chart and the webhook mount volumes. */
const PATHS = /\/(?:etc|var\/lib)\/gatehouse[\w-]*/g

type Volume = NonNullable<PodSpec['volumes']>[number]

function filesOf(
  { name, secret, configMap, emptyDir }: Volume,
  { secrets, configMaps }: Namespace,
): Readonly<Record<string, string | Buffer>> {
  if (emptyDir !== undefined) return {}
  if (secret !== undefined)
    return keysOf(`secret "${secret.secretName}"`, secrets[secret.secretName!], secret)
  assert.ok(configMap !== undefined, name)
  return keysOf(`configmap "${configMap.name}"`, configMaps[configMap.name!], configMap)
}

interface Source {
  readonly items?: readonly { readonly key: string; readonly path: string }[]
  readonly optional?: boolean
}

function keysOf(
  what: string,
  keys: Readonly<Record<string, string | Buffer>> | undefined,
  { items, optional = false }: Source,
): Readonly<Record<string, string | Buffer>> {
  if (keys === undefined && optional) return {}
  if (keys === undefined) throw new FailedMount(`${what} not found`)
  if (items === undefined) return keys
  return Object.fromEntries(
    items.map(({ key, path }) => {
      if (keys[key] === undefined) throw new FailedMount(`${what} references non-existent key: ${key}`)
      return [path, keys[key]]
    }),
  )
}
