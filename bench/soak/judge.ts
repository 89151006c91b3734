import type { Answer } from './answer.ts'
import type { View } from './app-view.ts'
import type { Outcome } from './messages.ts'
import { hasBody, type Plan } from './plan.ts'

export interface Judgement {
  readonly outcome: Outcome
  readonly what: string
  /** What Gatehouse says of it. */
  readonly code: string | null
}

/** On which connection it came. */
export interface Seen {
  readonly helloKind: string
  readonly protocol: 'h1' | 'h2'
}

/** Says what an answer is worth, by the plan that asked for it. */
export class Judge {
  /** The JA4 of each kind of hello, as the first of them was said to have. */
  readonly #ja4s = new Map<string, string>()

  judge(plan: Plan, answer: Answer, hasLeft: boolean, seen: Seen): Judgement {
    if (answer.wrong !== null) return wrong(answer.wrong)
    if (answer.isFromApp) {
      const view = this.#viewProblem(plan, answer, seen)
      if (view !== null) return wrong(view)
    }
    if (!answer.isWhole) return hasLeft ? { outcome: 'left', what: '', code: null } : cut(plan, answer)
    return answer.isFromApp ? ofApp(plan, answer) : ofOurs(plan, answer)
  }

  /** What the app was told of the client has to be true of this connection. */
  #viewProblem({ route }: Plan, answer: Answer, { helloKind, protocol }: Seen): string | null {
    const view = JSON.parse(answer.header('x-soak-view') ?? 'null') as View | null
    if (view === null) return 'no view of the app'
    const { ja4, http2, revision, forwardedFor } = view
    if (route === 'pass')
      return ja4 === null && http2 === null ? null : 'fingerprints where there should be none'
    const known = this.#ja4s.get(helloKind)
    if (ja4 === null) return 'the app was told of no JA4'
    if (known === undefined) this.#ja4s.set(helloKind, ja4)
    else if (known !== ja4) return `the JA4 ${ja4} for a hello of ${known} (${helloKind})`
    if ((http2 !== null) !== (protocol === 'h2')) return `an HTTP/2 fingerprint of ${http2} over ${protocol}`
    if (forwardedFor !== '127.0.0.1') return `X-Forwarded-For: ${forwardedFor}`
    if (route === '' && !/^good-\d+$/.test(revision ?? '')) return `decided by the policy ${revision}`
    return null
  }
}

/** It broke off. */
function cut({ fault }: Plan, answer: Answer): Judgement {
  // An app that closes before it has read the request has TCP take the rest of its answer back.
  const isPlanned = fault === 'cut-body' || fault === 'stalled' || fault === 'early-close'
  if (isPlanned) return { outcome: 'failed-as-planned', what: 'cut', code: null }
  const what = answer.status === 0 ? 'no answer' : `cut off after ${answer.bytes} bytes of ${answer.status}`
  return { outcome: 'lost', what, code: null }
}

function ofApp(plan: Plan, answer: Answer): Judgement {
  const { id, status, size, fault, route, hasTrailers } = plan
  if (fault === 'cut-head' || fault === 'cut-body' || fault === 'silent' || fault === 'stalled')
    return wrong('an answer looks whole that was cut')
  if (route === 'blocked' || route === 'redirected' || route === 'tarpit')
    return wrong('the policy let it through')
  if (answer.status !== status) return wrong(`status ${answer.status} instead of ${status}`)
  if (hasBody(plan) && answer.bytes !== size) return wrong(`${answer.bytes} bytes of ${size} look whole`)
  if (answer.headers.get('set-cookie')?.join() !== `one=${id},two=${id}; Path=/`)
    return wrong(`cookies: ${answer.headers.get('set-cookie')?.join()}`)
  const trailer = answer.trailers.get('x-soak-trailer')?.join() ?? null
  if (trailer !== (hasTrailers ? id : null)) return wrong(`a trailer of ${trailer}`)
  return { outcome: 'right', what: '', code: null }
}

/** Gatehouse answered instead of the app. */
function ofOurs(plan: Plan, answer: Answer): Judgement {
  const { route, fault, method } = plan
  const { status, code, text } = answer
  if (method === 'HEAD' && text !== '') return wrong('a body after HEAD')
  if (BY_POLICY[route]?.includes(status) === true) return policyAnswer(plan, answer)
  if (BY_FAULT[fault]?.some((expected) => expected === code) === true)
    return { outcome: 'failed-as-planned', what: String(code), code }
  return { outcome: 'lost', what: `answered ${status} ${code ?? text.slice(0, 200)}`, code }
}

function policyAnswer({ route }: Plan, answer: Answer): Judgement {
  if (route === 'redirected' && answer.header('location') !== '/elsewhere')
    return wrong(`redirected to ${answer.header('location')}`)
  if (route === 'limited' && answer.header('retry-after') === null) return wrong('no Retry-After')
  return { outcome: 'right', what: '', code: null }
}

function wrong(what: string): Judgement {
  return { outcome: 'wrong', what, code: null }
}

const BY_POLICY: Readonly<Record<string, readonly number[]>> = {
  blocked: [451],
  redirected: [302],
  tarpit: [403],
  limited: [429],
}
/**
 * An app that answers and closes before it has read may take the answer back with it: TCP resets. One that stalls on a
 * busy machine may do so before it has begun.
 */
const BY_FAULT: Readonly<Record<string, readonly string[]>> = {
  'cut-head': ['upstream_reset'],
  'cut-body': ['upstream_reset'],
  'early-close': ['upstream_reset'],
  silent: ['upstream_head_timeout'],
  stalled: ['upstream_head_timeout'],
}
