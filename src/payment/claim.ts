/**
 * A request of a proxy to the management plane, which alone settles payments and keeps the ledger. Plain data: it crosses
 * processes.
 */
export type PaymentMessage = PaymentClaim | LicenseClaim | PassQuestion | PaymentUse

/** A request that brings a payment. */
export interface PaymentClaim extends ChargedRequest {
  readonly kind: 'claim'
  /** The payment over x402, as the client sent it; `null`: on account. */
  readonly payment: string | null
}

/** A request that brings a license token. */
export interface LicenseClaim extends ChargedRequest {
  readonly kind: 'license'
  readonly token: string
}

export interface ChargedRequest extends ChargedRule {
  /** Of the request. */
  readonly decisionId: string
  /** The URL that is paid for. */
  readonly url: string
  /** The proven agent; `null`: none. */
  readonly agent: string | null
  /** The thumbprint of the proven key; `null`: none. */
  readonly key: string | null
  readonly host: string
  readonly path: string
  readonly price: string
  readonly currency: string
  /** 0: for one request. */
  readonly passMs: number
  /** In millionths; `null`: no limit. */
  readonly dayMax: number | null
  readonly purposes: readonly string[]
  readonly license: string | null
}

/** Whether a key has a pass. */
export interface PassQuestion extends ChargedRule {
  readonly kind: 'pass'
  readonly key: string
}

/** The outcome of a paid request. If it was not served, the payment stays good for another try. */
export interface PaymentUse {
  readonly kind: 'use'
  readonly id: string
  readonly isServed: boolean
}

/** A pass is good where its rule charges. */
interface ChargedRule {
  readonly app: string
  readonly rule: string
}

export type PaymentAnswer =
  /** `receipt`: for the client; `null`: on account. */
  | {
      readonly kind: 'paid'
      readonly id: string
      readonly receipt: PaymentReceipt | null
      readonly passUntilMs: number
    }
  /** `why`: a word for the client. */
  | { readonly kind: 'refused'; readonly why: string }
  /** Another request is using the payment, or its outcome is unknown yet. */
  | { readonly kind: 'pending'; readonly retryMs: number }
  /** It cannot be checked now. */
  | { readonly kind: 'unavailable' }
  /** 0: the payer has no pass. */
  | { readonly kind: 'pass'; readonly untilMs: number }
  | { readonly kind: 'noted' }

/** The answer of the facilitator, as the client gets it. */
export interface PaymentReceipt {
  readonly success: true
  readonly transaction: string
  readonly network: string
  readonly payer: string
}

export const UNAVAILABLE: PaymentAnswer = { kind: 'unavailable' }

export function schemeOf(claim: PaymentClaim | LicenseClaim): 'x402' | 'crawler-price' | 'license' {
  if (claim.kind === 'license') return 'license'
  return claim.payment === null ? 'crawler-price' : 'x402'
}
