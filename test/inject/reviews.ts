import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import type { IPod } from 'kubernetes-models/v1/Pod'
import { Pod } from 'kubernetes-models/v1/Pod'
import { parseConfig } from '../../src/config/config.ts'
import { parseReview, reviewAnswer } from '../../src/inject/admission-review.ts'
import { inject } from '../../src/inject/injection.ts'
import { parsePod } from '../../src/inject/pod.ts'
import type { SidecarSettings } from '../../src/inject/sidecar.ts'
import { applyPatch } from './apply-patch.ts'

/** What an API server sends when such objects are made, as it sends it. */
export const REVIEWS: ReadonlyMap<string, string> = new Map(
  globSync('test/inject/reviews/*.json')
    .sort()
    .map((file) => [basename(file, '.json'), readFileSync(file, 'utf8')]),
)

export const VERSION = '0.1.0'

/** The defaults, but for what is given. */
export function sidecarSettings(given: Partial<SidecarSettings> = {}): SidecarSettings {
  const { config } = parseConfig({ flags: {}, env: {}, file: null, role: 'store' })
  return { ...config.inject.sidecar, image: 'gatehouse:0.1.0', ...given }
}

/** A sidecar without NATS, except for what is given. */
export function busSettings(given: Partial<SidecarSettings['bus']> = {}): SidecarSettings['bus'] {
  return {
    ...{ urls: [], name: null, user: null, secret: null, certificate: null, caConfigMap: null },
    ...{ firstSnapshot: null, bootstrapConfigMap: null },
    ...given,
  }
}

export interface Answer {
  readonly uid: string
  readonly allowed: boolean
  readonly patchType?: string
  readonly patch?: string
  readonly warnings?: readonly string[]
  readonly status?: { readonly message: string; readonly code: number }
}

/** As the webhook does, from text to what is sent back. */
export function answerTo(text: string, settings = sidecarSettings()): Answer {
  const { uid, namespace, pod } = parseReview(JSON.parse(text))
  const injection =
    pod === null
      ? ({ kind: 'nothing', warnings: [] } as const)
      : inject(parsePod(pod.value, namespace), settings, VERSION)
  return responseIn(JSON.parse(JSON.stringify(reviewAnswer(uid, injection))), uid)
}

/** Holds an AdmissionReview against what the API server takes for an answer. */
export function responseIn(review: Record<string, unknown>, uid: string): Answer {
  assert.deepEqual(Object.keys(review).sort(), ['apiVersion', 'kind', 'response'])
  assert.deepEqual([review['apiVersion'], review['kind']], ['admission.k8s.io/v1', 'AdmissionReview'])
  const answer = review['response'] as Answer
  assert.equal(answer.uid, uid)
  assert.equal(typeof answer.allowed, 'boolean')
  // Both or none, and none with a refusal: anything else is an error of the webhook to the API server.
  assert.equal(answer.patchType, answer.patch === undefined ? undefined : 'JSONPatch')
  if (!answer.allowed) assert.equal(answer.patch, undefined)
  for (const warning of answer.warnings ?? []) assert.ok(warning.length <= 250, warning)
  return answer
}

/** The Pod that comes of it, found valid by Kubernetes' own schema. */
export function podAfter(text: string, answer: Answer): IPod {
  const pod = JSON.parse(text).request.object
  const patch = answer.patch === undefined ? [] : JSON.parse(Buffer.from(answer.patch, 'base64').toString())
  const after = applyPatch(pod, patch) as IPod
  new Pod(after).validate()
  return after
}

/** The same request for what has come of it: what the API server sends when it asks again. */
export function again(text: string, pod: unknown): string {
  const review = JSON.parse(text)
  review.request.object = pod
  return JSON.stringify(review)
}

/** What a schema does not say, and the API server asks for. */
export function checkReferences({ spec }: IPod): void {
  const names = (list: readonly { name?: string }[] = []) => list.map(({ name }) => name)
  const volumes = names(spec!.volumes)
  const containers = [...spec!.containers, ...(spec!.initContainers ?? [])]
  for (const list of [volumes, names(containers)]) assert.equal(new Set(list).size, list.length)
  for (const { name, ports, volumeMounts = [] } of containers) {
    const portNames = names(ports).filter((each) => each !== undefined)
    assert.equal(new Set(portNames).size, portNames.length, name)
    for (const each of portNames) assert.match(each, /^(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*$/)
    for (const mount of volumeMounts) assert.ok(volumes.includes(mount.name), mount.name)
  }
}
