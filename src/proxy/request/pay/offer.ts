import { CRAWLER_ERROR, CRAWLER_PRICE, type CrawlerFault } from '../../../payment/crawler-price.ts'
import { encodedJson, requirementsFor, type X402Requirements } from '../../../payment/x402.ts'
import type { LicenseFault } from '../../../payment/license-token.ts'
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
  /** Of a license token; `null`: none. */
  readonly licenseFault?: LicenseFault | null
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

export function allowsLicenses(action: ChargeAction, { license }: PaymentTerms): boolean {
  return license !== null && action.schemes.includes('license')
}

/** What an offer states. */
interface OfferTerms extends PaymentTerms {
  /** Where the licence of the site is published; `null`: nowhere. */
  readonly rslPath: string | null
}

/** The answer 402: the offer in headers for programs, and in the body. */
export function offered(
  decisionId: DecisionId,
  action: ChargeAction,
  terms: OfferTerms,
  url: string,
  { why, crawlerFault = null, licenseFault = null, retryMs = 0 }: Unpaid,
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
  const isLicensed = allowsLicenses(action, terms)
  const licensed =
    action.license ?? (isLicensed && terms.rslPath !== null ? originOf(url) + terms.rslPath : null)
  const type = isLicensed ? '; type="application/rsl+xml"' : ''
  if (licensed !== null) headers.push('Link', `<${licensed}>; rel="license"${type}`)
  if (isLicensed) headers.push('WWW-Authenticate', `License error="${licenseFault ?? 'invalid_request'}"`)
  const detail = `This costs ${price} ${currency}${passText(action)}.`
  const members = { error, ...x402, offer: offerOf(action) }
  const status = licenseFault === null ? 402 : STATUS_OF[licenseFault]
  const code = licenseFault === null ? 'payment_required' : 'license_refused'
  return { status, detail, code, decisionId, headers, members }
}

function offerOf({ price, currency, schemes, description, path, purposes, license, passMs }: ChargeAction) {
  const pass = passMs === 0 ? null : { seconds: passMs / 1_000, path }
  return { price, currency, schemes, description, pass, purposes, license }
}

function originOf(url: string): string {
  return ORIGIN.exec(url)![0]
}

function passText({ passMs }: ChargeAction): string {
  return passMs === 0 ? '' : ` for ${passMs / 1_000} seconds`
}

/** RSL 1.0 §6.3.1. */
const STATUS_OF: Readonly<Record<LicenseFault, number>> = {
  invalid_request: 401,
  invalid_token: 401,
  server_error: 503,
}
const ORIGIN = /^https?:\/\/[^/?#]+/
