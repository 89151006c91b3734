import { atomicAmount } from './money.ts'
import type { X402Terms } from './payment-terms.ts'

/** What a client has to pay: PaymentRequirements of x402 version 2. */
export interface X402Requirements {
  readonly scheme: 'exact'
  readonly network: string
  readonly amount: string
  readonly asset: string
  readonly payTo: string
  readonly maxTimeoutSeconds: number
  readonly extra: { readonly name: string; readonly version: string }
}

export interface X402Resource {
  readonly url: string
  readonly description?: string
}

/** A payment that fits its offer, in the form that facilitators take. */
export interface X402Payment {
  readonly x402Version: 2
  readonly resource: X402Resource
  readonly accepted: X402Requirements
  readonly payload: { readonly signature: string; readonly authorization: X402Authorization }
}

/** EIP-3009: the payer allows one transfer. */
export interface X402Authorization {
  readonly from: string
  readonly to: string
  readonly value: string
  /** In seconds, here and below. */
  readonly validAfter: string
  readonly validBefore: string
  /** Makes the transfer unique for its payer. */
  readonly nonce: string
}

/** `null`: the asset has no unit as small as the price. */
export function requirementsFor(terms: X402Terms, price: string): X402Requirements | null {
  const amount = atomicAmount(price, terms.decimals)
  if (amount === null) return null
  const { network, asset, payTo, validS, assetName: name, assetVersion: version } = terms
  const extra = { name, version }
  return { scheme: 'exact', network, amount, asset, payTo, maxTimeoutSeconds: validS, extra }
}

/** Header values are JSON in base64, as are offers and receipts. */
export function encodedJson(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64')
}

/** What was wrong with a payment; each is a word for the client. */
export type X402Fault =
  | 'invalid_payload'
  | 'unsupported_version'
  | 'offer_changed'
  | 'wrong_resource'
  | 'wrong_recipient'
  | 'wrong_amount'
  | 'not_yet_valid'
  | 'expired'
  | 'valid_too_long'

/**
 * Reads a payment and compares it with what was offered. Nothing of it is trusted but what is equal to the offer; the
 * facilitator says whether its signature is good. `isPass`: it may have been made for another URL of the site.
 */
export function readPayment(
  header: string,
  offered: X402Requirements,
  url: string,
  isPass: boolean,
): X402Payment | X402Fault {
  const value = header.length > HEADER_LENGTH_MAX ? null : decoded(header)
  if (value === null) return 'invalid_payload'
  if (value['x402Version'] !== 2) return 'unsupported_version'
  const accepted = record(value['accepted'])
  if (accepted === null) return 'invalid_payload'
  if (!isOffered(accepted, offered)) return 'offer_changed'
  const named = value['resource'] === undefined ? url : record(value['resource'])?.['url']
  if (named !== url && !(isPass && originOf(named) === originOf(url))) return 'wrong_resource'
  const brought = record(value['payload'])
  const signature = brought?.['signature']
  const authorization = authorizationIn(record(brought?.['authorization']))
  if (authorization === null || typeof signature !== 'string' || !SIGNATURE.test(signature))
    return 'invalid_payload'
  if (authorization.to.toLowerCase() !== offered.payTo.toLowerCase()) return 'wrong_recipient'
  if (authorization.value !== offered.amount) return 'wrong_amount'
  const payload = { signature, authorization }
  return { x402Version: 2, resource: { url }, accepted: offered, payload }
}

/** Whether a payment can be settled at this time; `null`: it can. */
export function timeFaultOf({ accepted, payload }: X402Payment, nowS: number): X402Fault | null {
  const { validAfter, validBefore } = payload.authorization
  if (Number(validAfter) > nowS) return 'not_yet_valid'
  if (Number(validBefore) <= nowS) return 'expired'
  return Number(validBefore) > nowS + accepted.maxTimeoutSeconds + SKEW_S ? 'valid_too_long' : null
}

/** One payment has one identity, whatever else its header says: the contract accepts a nonce of a payer once. */
export function identityOf({ accepted: { network, asset }, payload }: X402Payment): string {
  const { from, nonce } = payload.authorization
  return `${network}/${asset}/${from}/${nonce}`.toLowerCase()
}

function originOf(url: unknown): string | null {
  return typeof url === 'string' ? (ORIGIN.exec(url)?.[0] ?? null) : null
}

function isOffered(accepted: Readonly<Record<string, unknown>>, offered: X402Requirements): boolean {
  const extra = record(accepted['extra'])
  const same = (['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'] as const).every(
    (name) => accepted[name] === offered[name],
  )
  return same && extra?.['name'] === offered.extra.name && extra?.['version'] === offered.extra.version
}

function authorizationIn(value: Readonly<Record<string, unknown>> | null): X402Authorization | null {
  if (value === null) return null
  const { from, to, value: amount, validAfter, validBefore, nonce } = value as Record<string, unknown>
  const isWhole = isText(from, ADDRESS) && isText(to, ADDRESS) && isText(nonce, NONCE)
  if (!isWhole || !isText(amount, AMOUNT) || !isText(validAfter, TIME) || !isText(validBefore, TIME))
    return null
  return { from, to, value: amount, validAfter, validBefore, nonce }
}

function decoded(header: string): Readonly<Record<string, unknown>> | null {
  if (!BASE64.test(header)) return null
  try {
    return record(JSON.parse(Buffer.from(header, 'base64').toString()))
  } catch {
    return null
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> | null {
  const isRecord = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isRecord ? (value as Readonly<Record<string, unknown>>) : null
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value)
}

const ORIGIN = /^https?:\/\/[^/?#]+/
/** A payment has about 1,200 characters. */
const HEADER_LENGTH_MAX = 8_192
const BASE64 = /^[\w+/-]+={0,2}$/
const ADDRESS = /^0x[0-9a-f]{40}$/i
const NONCE = /^0x[0-9a-f]{64}$/i
const SIGNATURE = /^0x(?:[0-9a-f]{2}){65,1024}$/i
const AMOUNT = /^(?:0|[1-9]\d{0,77})$/
const TIME = /^\d{1,12}$/
/** By how much the payer's clock may be ahead of ours. */
const SKEW_S = 60
