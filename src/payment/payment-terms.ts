/** How payments are taken here: the part of the settings that offers need. */
export interface PaymentTerms {
  /** `null`: no payments over x402. */
  readonly x402: X402Terms | null
  /** `null`: no payments on account. */
  readonly crawlerPrice: CrawlerPriceTerms | null
  /** `null`: no license tokens. */
  readonly license: LicenseTerms | null
}

/** The asset in which x402 payments are made, and who receives it. */
export interface X402Terms {
  /** CAIP-2, as in `eip155:8453`. */
  readonly network: string
  /** The address of the token contract. */
  readonly asset: string
  /** The name and version of the token in signatures (EIP-712). */
  readonly assetName: string
  readonly assetVersion: string
  /** How many decimal places the token has. */
  readonly decimals: number
  /** What one token is worth. */
  readonly currency: string
  readonly payTo: string
  /** How long a payment may take from its offer to its settlement. */
  readonly validS: number
}

export interface CrawlerPriceTerms {
  readonly currency: string
  /** Ids of the agents that have an account with the operator. */
  readonly accounts: readonly string[]
}

/** Tokens of a license server (RSL 1.0 §5 and §6). */
export interface LicenseTerms {
  /** Whether the app gets the token. */
  readonly isForwarded: boolean
}

export const NO_PAYMENTS: PaymentTerms = { x402: null, crawlerPrice: null, license: null }
