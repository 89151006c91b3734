import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Verdict } from '../../../classify/verdict/verdict.ts'
import type { PaymentAnswer, PaymentClaim } from '../../../payment/claim.ts'
import { agreesTo, CRAWLER_CHARGED, type CrawlerFault } from '../../../payment/crawler-price.ts'
import { isLicense, type LicenseFault, licenseToken } from '../../../payment/license-token.ts'
import type { PaymentTerms } from '../../../payment/payment-terms.ts'
import { encodedJson, identityOf, readPayment, type X402Payment } from '../../../payment/x402.ts'
import type { ProxyBus } from '../../../plane/bus.ts'
import type { ChargeAction } from '../../../policy/charging/charge.ts'
import { Glob } from '../../../policy/glob.ts'
import { clientNetwork } from '../../../wire/ip-address.ts'
import { hostOf } from '../../../wire/host.ts'
import type { DecisionId } from '../../connection/decision-id.ts'
import type { ReceivedHead } from '../../connection/received-head.ts'
import type { RateLimiter } from '../rate-limiter.ts'
import type { RefusalAnswer } from '../refuse.ts'
import { allowsAccounts, allowsLicenses, offered, type Unpaid, x402Offer } from './offer.ts'
import type { Paid } from './paid-exchange.ts'

export interface TollParts {
  readonly terms: PaymentTerms
  /** Where the licence of the site is published; `null`: nowhere. */
  readonly rslPath: string | null
  readonly bus: Pick<ProxyBus, 'pay'>
  readonly limiter: RateLimiter
  readonly clock: { readonly nowMs: number }
}

/** A request, as far as it matters for a charge. */
export interface TollVisit {
  readonly connection: { readonly isTls: boolean }
  readonly head: ReceivedHead
  readonly authority: string
}

/** What is known of the request. */
export interface TollJudgement {
  readonly id: DecisionId
  readonly verdict: Verdict
  readonly decision: { readonly rule: string }
  readonly app: { readonly id: string }
  readonly received: { readonly hop: { readonly forwardedProto: string | null } }
  readonly address: string
}

/** Exactly one of `letIn` and `answer` is called, possibly after `hold`. */
export interface TollGate {
  /** `null`: without a payment. */
  letIn(paid: Paid | null): void
  answer(refusal: RefusalAnswer): void
  /** `letGo` is called if the client disconnects. */
  hold(letGo: () => void): void
}

/** Decides whether a request that costs something may go on. Only requests with a payment, or of a key, wait. */
export class Toll {
  readonly #parts: TollParts
  /** By rule and payment or key: until when it has a pass. */
  readonly #passes = new LRUCache<string, number>({ max: PASSES_MAX })
  /** Hashes of tokens that were valid. */
  readonly #licenses = new LRUCache<string, true>({ max: LICENSES_MAX, ttl: LICENSE_KEPT_MS })
  #waiting = 0

  constructor(parts: TollParts) {
    this.#parts = parts
  }

  stop(visit: TollVisit, judged: TollJudgement, action: ChargeAction, gate: TollGate): void {
    const letIn = (paid: Paid | null) => gate.letIn(paid)
    const { limiter, clock } = this.#parts
    const charged = chargedRequest(visit, judged, action)
    if (isExempt(action, judged.verdict)) return letIn(null)
    if (action.free !== null && limiter.take(`free ${charged.ofPayer}`, action.free, clock.nowMs) === 0)
      return letIn(null)
    const license = this.#license(visit, charged, gate)
    if (license) return
    const brought = this.#brought(visit, charged)
    const passes = brought === null ? [charged.keyPass] : [brought.pass, charged.keyPass]
    if (passes.some((pass) => pass !== null && this.#isOpen(pass, charged))) return letIn(PAID_BEFORE)
    const refuse = (unpaid: Unpaid) => gate.answer(this.#offered(charged, unpaid))
    if (brought?.unpaid) return refuse(brought.unpaid)
    if (brought?.claim) return this.#claim(gate, charged, brought, refuse)
    const { keyPass, claim } = charged
    if (keyPass === null || this.#passes.has(keyPass)) return refuse(NOTHING_BROUGHT)
    const { key, app, rule } = claim
    this.#ask(gate, { kind: 'pass', key: key!, app, rule }, (answer) => {
      const untilMs = answer.kind === 'pass' ? answer.untilMs : 0
      this.#passes.set(keyPass, untilMs, { ttl: ASK_AGAIN_MS })
      if (this.#isOpen(keyPass, charged)) letIn(PAID_BEFORE)
      else refuse(NOTHING_BROUGHT)
    })
  }

  /** Removes the token of a license from the headers for the app, unless the settings say otherwise. */
  hideLicense(headers: string[]): void {
    const { license } = this.#parts.terms
    if (license === null || license.isForwarded) return
    for (let i = headers.length - 2; i >= 0; i -= 2)
      if (headers[i]!.toLowerCase() === 'authorization' && isLicense(headers[i + 1]!)) headers.splice(i, 2)
  }

  /** `true`: the request brings a license token, which decides. */
  #license({ head }: TollVisit, charged: Charged, gate: TollGate): boolean {
    const { limiter, clock, terms } = this.#parts
    const { action, judged, url, ofRule } = charged
    const header = allowsLicenses(action, terms) ? headerOf(head.rawHeaders, 'authorization') : null
    const token = header === null ? null : header === SEVERAL ? 'invalid_request' : licenseToken(header)
    if (token === null) return false
    const refuse = (licenseFault: LicenseFault, retryMs = 0) =>
      gate.answer(this.#offered(charged, { why: licenseFault, licenseFault, retryMs }))
    // A shorter URL would be another resource.
    if (token === 'invalid_request' || !url.endsWith(head.target)) {
      refuse('invalid_request')
      return true
    }
    const name = hash('sha256', token)
    const pass = `${ofRule} license ${name} ${url}`
    if ((this.#passes.get(pass) ?? 0) > clock.nowMs) {
      gate.letIn(PAID_BEFORE)
      return true
    }
    // Tokens that were valid for another URL are no guesses.
    const isKnown = this.#licenses.has(name)
    const retryMs = isKnown
      ? 0
      : limiter.take(`payment ${clientNetwork(judged.address)}`, PAYMENTS, clock.nowMs)
    if (retryMs > 0) {
      gate.answer(this.#offered(charged, { why: 'too_many_payments', retryMs }))
      return true
    }
    const { kind: _, payment: __, ...claim } = charged.claim
    this.#ask(gate, { kind: 'license', token, ...claim }, (answer) => {
      switch (answer.kind) {
        case 'paid':
          this.#licenses.set(name, true)
          if (answer.passUntilMs > 0) this.#passes.set(pass, answer.passUntilMs, { ttl: PASS_KEPT_MS })
          return gate.letIn({ headers: [], done: onceFor(500, (isServed) => this.#use(answer.id, isServed)) })
        case 'refused':
          this.#licenses.delete(name)
          return refuse('invalid_token')
        default:
          if (action.fail === 'open') return gate.letIn(null)
          return refuse('server_error', UNAVAILABLE_RETRY_MS)
      }
    })
    return true
  }

  #offered({ judged, action, url }: Charged, unpaid: Unpaid): RefusalAnswer {
    const { terms, rslPath } = this.#parts
    return offered(judged.id, action, { ...terms, rslPath }, url, unpaid)
  }

  /** The payment of a request, and what is wrong with it. `null`: it brings none. */
  #brought({ head }: TollVisit, { action, claim, url, ofRule, keyPass }: Charged): Brought | null {
    const { terms } = this.#parts
    const requirements = x402Offer(action, terms)
    const header = headerOf(head.rawHeaders, 'payment-signature')
    if (requirements !== null && header !== null) {
      const payment =
        header === SEVERAL ? 'invalid_payload' : readPayment(header, requirements, url, action.passMs > 0)
      if (typeof payment === 'string') return { pass: null, claim: null, unpaid: { why: payment } }
      const pass = action.passMs > 0 ? passOf(ofRule, payment, claim.key) : null
      return { pass, claim: { ...claim, payment: header }, unpaid: null }
    }
    if (!allowsAccounts(action, terms)) return null
    const [exact, most] = [
      headerOf(head.rawHeaders, 'crawler-exact-price'),
      headerOf(head.rawHeaders, 'crawler-max-price'),
    ]
    const agreed = agreesTo({ exact, most }, action.price, action.currency)
    if (agreed === null) return null
    const fault = agreed === true ? this.#accountFault(claim) : agreed
    if (fault === null) return { pass: keyPass, claim, unpaid: null }
    return { pass: null, claim: null, unpaid: { why: fault, crawlerFault: fault } }
  }

  /** Only a signature proves an account. */
  #accountFault({ agent, key }: PaymentClaim): CrawlerFault | null {
    if (agent === null || key === null) return 'StrongAuthRequired'
    return this.#parts.terms.crawlerPrice!.accounts.includes(agent) ? null : 'NoAccount'
  }

  #claim(gate: TollGate, charged: Charged, { claim, pass }: Brought, refuse: (unpaid: Unpaid) => void): void {
    const { limiter, clock } = this.#parts
    const { judged, action } = charged
    const retryMs = limiter.take(`payment ${clientNetwork(judged.address)}`, PAYMENTS, clock.nowMs)
    if (retryMs > 0) return refuse({ why: 'too_many_payments', retryMs })
    this.#ask(gate, claim!, (answer) => {
      switch (answer.kind) {
        case 'paid':
          if (answer.passUntilMs > 0)
            for (const each of new Set([pass, charged.keyPass]))
              if (each !== null) this.#passes.set(each, answer.passUntilMs, { ttl: PASS_KEPT_MS })
          return gate.letIn(this.#paid(answer, action))
        case 'refused':
          return refuse({ why: answer.why })
        case 'pending':
          return refuse({ why: 'payment_pending', retryMs: answer.retryMs })
        default:
          if (action.fail === 'open') return gate.letIn(null)
          return refuse({ why: 'payment_unavailable', retryMs: UNAVAILABLE_RETRY_MS })
      }
    })
  }

  /** Sends the question, and holds the request until its answer. */
  #ask(gate: TollGate, message: Parameters<ProxyBus['pay']>[0], then: (answer: PaymentAnswer) => void): void {
    if (this.#waiting >= WAITING_MAX) return then({ kind: 'unavailable' })
    this.#waiting++
    let isGone = false
    gate.hold(() => {
      isGone = true
    })
    void this.#parts.bus.pay(message).then((answer) => {
      this.#waiting--
      if (!isGone) then(answer)
      else if (answer.kind === 'paid') this.#use(answer.id, false)
    })
  }

  #paid({ id, receipt }: PaymentAnswer & { readonly kind: 'paid' }, action: ChargeAction): Paid {
    const { price, currency } = action
    return {
      headers:
        receipt === null
          ? [CRAWLER_CHARGED, `${currency} ${price}`]
          : ['PAYMENT-RESPONSE', encodedJson(receipt)],
      // What is on account is charged for successful answers only, as crawlers expect.
      done: onceFor(receipt === null ? 400 : 500, (isServed) => this.#use(id, isServed)),
    }
  }

  #use(id: string, isServed: boolean): void {
    void this.#parts.bus.pay({ kind: 'use', id, isServed })
  }

  #isOpen(pass: string, { action: { path }, claim }: Charged): boolean {
    if ((this.#passes.get(pass) ?? 0) <= this.#parts.clock.nowMs) return false
    return path === null || Glob.parse(path, 'exact').matches(claim.path)
  }
}

/** Calls only for the first status. */
function onceFor(failedFrom: number, use: (isServed: boolean) => void): Paid['done'] {
  let isDone = false
  return (status) => {
    if (isDone) return
    isDone = true
    use(status > 0 && status < failedFrom)
  }
}

interface Brought {
  /** Under which it may have a pass. */
  readonly pass: string | null
  readonly claim: PaymentClaim | null
  readonly unpaid: Unpaid | null
}

/** A request, as it is charged. */
interface Charged {
  readonly judged: TollJudgement
  readonly action: ChargeAction
  readonly url: string
  /** Names the rule. */
  readonly ofRule: string
  /** Names the rule and the client. */
  readonly ofPayer: string
  /** The name of the pass of its key; `null`: it has no proven key, or there are no passes. */
  readonly keyPass: string | null
  /** On account. */
  readonly claim: PaymentClaim
}

function chargedRequest(
  { connection, head, authority }: TollVisit,
  judged: TollJudgement,
  action: ChargeAction,
): Charged {
  const { verdict, decision, app, received } = judged
  const { proof } = verdict
  const key = proof?.key ?? null
  const agent = proof === null ? null : (verdict.agent?.id ?? proof.agent)
  const ofRule = `${app.id}/${decision.rule}`
  const scheme = received.hop.forwardedProto ?? (connection.isTls ? 'https' : 'http')
  const path = pathOf(head.target)
  const { price, currency, passMs, dayMax, purposes, license } = action
  return {
    ...{ judged, action, ofRule },
    url: urlOf(`${scheme}://${authority}`, head.target, path),
    ofPayer: `${ofRule} ${agent ?? `address ${clientNetwork(judged.address)}`}`,
    keyPass: key === null || passMs === 0 ? null : `${ofRule} key ${key}`,
    claim: {
      ...{ kind: 'claim', payment: null, agent, key, path: path.slice(0, URL_LENGTH_MAX) },
      ...{ price, currency, passMs, dayMax, purposes, license },
      app: app.id,
      rule: decision.rule,
      decisionId: judged.id,
      url: urlOf(`${scheme}://${authority}`, head.target, path),
      host: hostOf(authority),
    },
  }
}

/** Whether a proven agent only searches, or is sent by a user. */
function isExempt({ exempt }: ChargeAction, { proof, agent }: Verdict): boolean {
  if (exempt.length === 0 || proof === null || agent === null || agent.purposes.length === 0) return false
  const isAll = (...purposes: readonly string[]) => agent.purposes.every((each) => purposes.includes(each))
  if (exempt.includes('verified-search') && isAll('search')) return true
  return exempt.includes('user-triggered') && isAll('assistant', 'agent')
}

/** An offer is a header, so the URL in it is bounded: without the query, or without the path. */
function urlOf(origin: string, target: string, path: string): string {
  return origin + ([target, path].find((each) => each.length <= URL_LENGTH_MAX) ?? '/')
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query === -1 ? target : target.slice(0, query)
}

function passOf(ofRule: string, payment: X402Payment, key: string | null): string {
  return `${ofRule} ${identityOf(payment)} ${key ?? ''}`
}

/** `null`: not sent. */
function headerOf(rawHeaders: readonly string[], name: string): string | null {
  let found: string | null = null
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]!.length !== name.length || rawHeaders[i]!.toLowerCase() !== name) continue
    if (found !== null) return SEVERAL
    found = rawHeaders[i + 1]!
  }
  return found
}

const NOTHING_BROUGHT: Unpaid = { why: null }
/** No shared cache keeps the answer. */
const PAID_BEFORE: Paid = { headers: [], done: () => undefined }
/** Two headers of one name are no value of it. */
const SEVERAL = ''
const URL_LENGTH_MAX = 1_024
/** Of one network. Each costs the facilitator an answer. */
const PAYMENTS = { requests: 120, windowMs: 60_000, burst: 60 }
const WAITING_MAX = 256
const PASSES_MAX = 10_000
const LICENSES_MAX = 1_000
const LICENSE_KEPT_MS = 600_000
const ASK_AGAIN_MS = 5_000
/** A refund ends a pass after this time at the latest. */
const PASS_KEPT_MS = 60_000
const UNAVAILABLE_RETRY_MS = 10_000
