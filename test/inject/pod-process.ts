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

/**
 * Starts the sidecar of a Pod as a kubelet does: with its arguments, its variables and its volumes, and nothing else.
 * The volumes are in a folder of the test, and the variables name them there. Throws FailedMount.
 */
export function startSidecar(
  t: Test,
  pod: IPod,
  namespace: Namespace,
  expects?: RegExp,
): Promise<ServingProcess> {
  const sidecar = pod.spec!.initContainers!.find(({ name }) => name === 'gatehouse')!
  const root = temporaryFolder(t)
  for (const { name, mountPath } of sidecar.volumeMounts!) {
    const folder = join(root, mountPath)
    mkdirSync(folder, { recursive: true })
    const volume = pod.spec!.volumes!.find((each) => each.name === name)
    assert.ok(volume !== undefined, name)
    for (const [file, content] of Object.entries(filesOf(volume, namespace)))
      writeFileSync(join(folder, file), content, { mode: 0o600 })
  }
  const paths = sidecar.volumeMounts!.map(({ mountPath }) => mountPath)
  const variables = Object.fromEntries(
    sidecar.env!.map(({ name, value }) => {
      const isMounted = paths.some((path) => value === path || value!.startsWith(`${path}/`))
      return [name, isMounted ? join(root, value!) : value!]
    }),
  )
  return startProcess(t, sidecar.args!, {
    folder: root,
    variables,
    ...(expects === undefined ? {} : { expects }),
  })
}

type Volume = NonNullable<NonNullable<IPod['spec']>['volumes']>[number]

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
