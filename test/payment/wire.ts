import type { X402Requirements, X402Resource } from '../../src/payment/x402.ts'

/** The headers of x402 version 2 as a client reads and writes them. */
export function encodePaymentSignatureHeader(payment: object): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}

export interface RequiredPayment {
  readonly x402Version: number
  readonly error: string
  readonly resource: X402Resource
  readonly accepts: readonly X402Requirements[]
}

export function decodePaymentRequiredHeader(header: string): RequiredPayment {
  return JSON.parse(Buffer.from(header, 'base64').toString())
}
