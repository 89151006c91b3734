import { CRAWLER_ERROR, CRAWLER_PRICE, type CrawlerFault } from '../../../payment/crawler-price.ts'
import { encodedJson, requirementsFor, type X402Requirements } from '../../../payment/x402.ts'
import type { PaymentTerms } from '../../../payment/payment-terms.ts'
import type { ChargeAction } from '../../../policy/charging/charge.ts'
import type { DecisionId } from '../../connection/decision-id.ts'
import type { RefusalAnswer } from '../refuse.ts'

/** Why a request is answered with an offer though it brought a payment. */
export interface Unpaid {
  /** A word for programs; `null`: it brought none. */
  readonly why: string | null
  /** Of pay per crawl; `null`: none. */
  readonly crawlerFault?: CrawlerFault | null
  /** 0: at once. */
  readonly retryMs?: number
}

/** What a client has to pay over x402; `null`: the rule or the settings do not allow it. */
export function x402Offer(action: ChargeAction, { x402 }: PaymentTerms): X402Requirements | null {
  const isAllowed = x402 !== null && x402.currency === action.currency && action.schemes.includes('x402')
  return isAllowed ? requirementsFor(x402, action.price) : null
}

export function allowsAccounts(action: ChargeAction, { crawlerPrice }: PaymentTerms): boolean {
  return crawlerPrice?.currency === action.currency && action.schemes.includes('crawler-price')
}

/** The answer 402: the offer in headers for programs, and in the body. */
export function offered(
  decisionId: DecisionId,
  action: ChargeAction,
  terms: PaymentTerms,
  url: string,
  { why, crawlerFault = null, retryMs = 0 }: Unpaid,
): RefusalAnswer {
  const { price, currency, description } = action
  const headers = retryMs > 0 ? ['Retry-After', String(Math.ceil(retryMs / 1_000))] : []
  const requirements = x402Offer(action, terms)
  const resource = description === null ? { url } : { url, description }
  const error = why ?? 'payment_required'
  const x402 = requirements === null ? null : { x402Version: 2, error, resource, accepts: [requirements] }
  if (x402 !== null) headers.push('PAYMENT-REQUIRED', encodedJson(x402))
  if (allowsAccounts(action, terms)) headers.push(CRAWLER_PRICE, `${currency} ${price}`)
  if (crawlerFault !== null) headers.push(CRAWLER_ERROR, crawlerFault)
  if (action.license !== null) headers.push('Link', `<${action.license}>; rel="license"`)
  const detail = `This costs ${price} ${currency}${passText(action)}.`
  const members = { error, ...x402, offer: offerOf(action) }
  return { status: 402, detail, code: 'payment_required', decisionId, headers, members }
}

function offerOf({ price, currency, schemes, description, path, purposes, license, passMs }: ChargeAction) {
  const pass = passMs === 0 ? null : { seconds: passMs / 1_000, path }
  return { price, currency, schemes, description, pass, purposes, license }
}

function passText({ passMs }: ChargeAction): string {
  return passMs === 0 ? '' : ` for ${passMs / 1_000} seconds`
}
