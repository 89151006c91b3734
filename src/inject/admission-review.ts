import { mappingAt, optionalBooleanAt, optionalMappingAt, optionalTextAt, textAt } from './json-value.ts'
import { Fault } from '../shared/fault.ts'
import type { Injection } from './injection.ts'

/** A request of the API server (AdmissionReview, admission.k8s.io/v1). */
interface AdmissionRequest {
  readonly uid: string
  readonly namespace: string
  readonly isDryRun: boolean
  /** Not validated yet; `null`: the request is not about the creation of a Pod. */
  readonly pod: { readonly value: unknown } | null
}

/** Throws a Fault that says what is invalid. */
export function parseReview(value: unknown): AdmissionRequest {
  const review = mappingAt('the body', value)
  if (review.get('apiVersion') !== API_VERSION || review.get('kind') !== KIND)
    throw new Fault('REVIEW_INVALID', `the body is no ${KIND} of ${API_VERSION}`)
  const request = mappingAt('request', review.get('request'))
  const uid = textAt('request.uid', request.get('uid'))
  if (uid === '' || uid.length > UID_LENGTH_MAX)
    throw new Fault('REVIEW_INVALID', `request.uid has from 1 to ${UID_LENGTH_MAX} characters`)
  const subresource = optionalTextAt('request.subResource', request.get('subResource'))
  const isNewPod =
    textAt('request.operation', request.get('operation')) === 'CREATE' &&
    isOfPods(request.get('resource')) &&
    (subresource === null || subresource === '')
  return {
    uid,
    namespace: optionalTextAt('request.namespace', request.get('namespace')) ?? '',
    isDryRun: optionalBooleanAt('request.dryRun', request.get('dryRun')),
    pod: isNewPod ? { value: request.get('object') } : null,
  }
}

/** The response in the API server's format. */
export function reviewAnswer(uid: string, injection: Injection): unknown {
  return { apiVersion: API_VERSION, kind: KIND, response: { uid, ...answerOf(injection) } }
}

function answerOf(injection: Injection): object {
  switch (injection.kind) {
    case 'nothing':
      return { allowed: true, ...said(injection.warnings) }
    case 'patch': {
      const patch = Buffer.from(JSON.stringify(injection.patch)).toString('base64')
      return { allowed: true, patchType: 'JSONPatch', patch, ...said(injection.warnings) }
    }
    case 'refused': {
      const message = `Gatehouse cannot be put into this Pod: ${injection.problems.join('; ')}`
      return { allowed: false, status: { status: 'Failure', message, reason: 'Invalid', code: 422 } }
    }
  }
}

function said(warnings: readonly string[]): object {
  if (warnings.length === 0) return {}
  const shortened = warnings.slice(0, WARNINGS_MAX).map((warning) => warning.slice(0, WARNING_LENGTH_MAX))
  return { warnings: shortened }
}

function isOfPods(value: unknown): boolean {
  const resource = optionalMappingAt('request.resource', value)
  if (resource === null) return false
  const group = resource.get('group')
  const isCore = group === '' || group === undefined
  return isCore && resource.get('version') === 'v1' && resource.get('resource') === 'pods'
}

const API_VERSION = 'admission.k8s.io/v1'
const KIND = 'AdmissionReview'
/** A UUID has 36 characters. */
const UID_LENGTH_MAX = 256
/** The API server truncates longer warnings and drops excess ones. */
const WARNING_LENGTH_MAX = 250
const WARNINGS_MAX = 15
