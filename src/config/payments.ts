import type { PaymentTerms } from '../payment/payment-terms.ts'
import type { Secret } from '../shared/secret.ts'
import type { Say } from './inject.ts'
import { list, secret, section, setting, type ValueOf } from './items.ts'
import { boolean, duration, integer, matching, optional, path, text, written } from './kinds.ts'
import { webUrl } from './network-kinds.ts'

const account = written({
  takes: 'an address',
  expected: '0x and 40 hexadecimal digits',
  parse: matching(/^0x[0-9a-f]{40}$/i),
})
const network = written({
  takes: 'eip155:NUMBER',
  expected: 'a network of the kind eip155, like eip155:8453 for Base',
  parse: matching(/^eip155:[1-9]\d{0,17}$/),
})
const currency = written({
  takes: 'a currency, like USD',
  parse: matching(/^[A-Z]{3,8}$/),
})
const agent = written({
  takes: 'the id of an agent',
  parse: matching(/^[\w.:/-]{1,200}$/),
})

export const PAYMENTS = section(
  'Payments of agents, for rules with the action `charge`; config/guide/payments.md. All processes of an installation need the same.',
  {
    x402: section('Payments over x402 (version 2, scheme `exact`).', {
      facilitator: setting(
        optional(webUrl),
        null,
        'The URL of the facilitator, which checks and settles payments. `null`: off; without it, no money is moved.',
      ),
      token: secret('Token sent to the facilitator (`Authorization: Bearer`).', 0),
      ca_file: setting(
        optional(path),
        null,
        'PEM file with CAs that are trusted for the facilitator instead of those of the system.',
      ),
      timeout: setting(
        duration('100ms', '20s'),
        '10s',
        'Time limit for each of the two answers of the facilitator. The request waits for them.',
      ),
      pay_to: setting(optional(account), null, 'Your address, to which payments go.'),
      network: setting(network, 'eip155:8453', 'The network on which payments are made (CAIP-2).'),
      asset: setting(
        account,
        '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        'The contract of the token that is paid with. The default is USDC on Base.',
      ),
      asset_name: setting(text, 'USD Coin', 'The name of the token in signatures (EIP-712).'),
      asset_version: setting(text, '2', 'The version of the token in signatures (EIP-712).'),
      decimals: setting(integer(0, 18), 6, 'How many decimal places the token has.'),
      currency: setting(currency, 'USD', 'What one token is worth: the currency of prices.'),
      valid_for: setting(
        duration('10s', '1h'),
        '60s',
        'How long an offer may take from its payment to its settlement.',
      ),
    }),
    crawler_price: section(
      'Payments on account: agents that sign with Web Bot Auth and agree to the price (`crawler-exact-price` or `crawler-max-price`). The ledger notes what they owe; no money is moved.',
      {
        accounts: list(
          agent,
          'Ids of the agents that have an account with you. Empty: off. Each needs a proof of a key.',
        ),
        currency: setting(currency, 'USD', 'The currency of prices.'),
      },
    ),
    license: section(
      'License tokens (`Authorization: License`), as in RSL 1.0: the license server says whether one is valid for a URL.',
      {
        introspection: setting(
          optional(webUrl),
          null,
          'The URL at which the license server checks tokens (RFC 7662). `null`: off.',
        ),
        client_id: setting(optional(text), null, 'The name of this installation at the license server.'),
        client_secret: secret('Its password there.', 0),
        ca_file: setting(
          optional(path),
          null,
          'PEM file with CAs that are trusted for the license server instead of those of the system.',
        ),
        timeout: setting(
          duration('100ms', '20s'),
          '5s',
          'Time limit for an answer of the license server. The request waits for it.',
        ),
        cache: setting(
          duration('0s', '1h'),
          '60s',
          'How long a valid token is valid for the same URL without another question, at most until it expires.',
        ),
        forward: setting(boolean, false, 'Whether the app gets license tokens.'),
      },
    ),
    retention: setting(duration('1d', '3650d'), '400d', 'How long payments are kept in the ledger.'),
  },
)

export interface PaymentConfig {
  readonly terms: PaymentTerms
  /** `null`: x402 is off. */
  readonly facilitator: {
    readonly url: string
    readonly token: Secret<string> | null
    readonly caFile: string | null
    readonly timeoutMs: number
  } | null
  /** `null`: license tokens are off. */
  readonly licenseServer: {
    readonly url: string
    readonly clientId: string | null
    readonly clientSecret: Secret<string> | null
    readonly caFile: string | null
    readonly timeoutMs: number
    readonly cacheMs: number
  } | null
  readonly retentionMs: number
}

export function paymentConfig({
  x402,
  crawler_price,
  license,
  retention,
}: ValueOf<typeof PAYMENTS>): PaymentConfig {
  const { facilitator, pay_to: payTo } = x402
  const { accounts, currency } = crawler_price
  const isOn = facilitator !== null && payTo !== null
  const asset = { asset: x402.asset, assetName: x402.asset_name, assetVersion: x402.asset_version }
  const unit = { decimals: x402.decimals, currency: x402.currency }
  return {
    terms: {
      x402: isOn
        ? { network: x402.network, ...asset, ...unit, payTo, validS: Math.round(x402.valid_for / 1_000) }
        : null,
      crawlerPrice: accounts.length === 0 ? null : { currency, accounts },
      license: license.introspection === null ? null : { isForwarded: license.forward },
    },
    facilitator: isOn
      ? { url: facilitator, token: x402.token, caFile: x402.ca_file, timeoutMs: x402.timeout }
      : null,
    licenseServer:
      license.introspection === null
        ? null
        : {
            ...{
              url: license.introspection,
              clientId: license.client_id,
              clientSecret: license.client_secret,
            },
            ...{ caFile: license.ca_file, timeoutMs: license.timeout, cacheMs: license.cache },
          },
    retentionMs: retention,
  }
}

/** Settings that are invalid by themselves are undefined here. */
export function checkPayments(
  payments: { readonly x402: CheckedX402; readonly license: CheckedLicense },
  refuse: Say,
): void {
  checkX402(payments.x402, refuse)
  checkLicense(payments.license, refuse)
}

function checkX402(x402: CheckedX402, refuse: Say): void {
  const { facilitator, pay_to: payTo, token } = x402
  if (facilitator && payTo === null)
    refuse('/payments/x402/pay_to', 'is missing; set the address to which payments go')
  if (payTo && facilitator === null)
    refuse('/payments/x402/facilitator', 'is missing; set the URL of the facilitator that settles payments')
  if (facilitator && !isGuarded(facilitator))
    refuse('/payments/x402/facilitator', 'is a plain http:// URL of another machine; use https://')
  if (token && !BEARER_TOKEN.test(token.reveal()))
    refuse('/payments/x402/token', 'contains a character that is not allowed in a token')
}

function checkLicense(license: CheckedLicense, refuse: Say): void {
  const { introspection, client_id: id, client_secret: password } = license
  if (introspection && !isGuarded(introspection))
    refuse('/payments/license/introspection', 'is a plain http:// URL of another machine; use https://')
  if ((id === null) !== (password === null))
    refuse('/payments/license/client_id', 'and client_secret belong together; set both or neither')
  if (introspection === null && id)
    refuse(
      '/payments/license/introspection',
      'is missing; set the URL at which the license server checks tokens',
    )
}

/** Whether no one on the way can change the answers of the facilitator. */
function isGuarded(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || ['127.0.0.1', '[::1]', 'localhost'].includes(hostname)
}

interface CheckedX402 {
  readonly facilitator: string | null | undefined
  readonly pay_to: string | null | undefined
  readonly token: Secret<string> | null | undefined
}

interface CheckedLicense {
  readonly introspection: string | null | undefined
  readonly client_id: string | null | undefined
  readonly client_secret: Secret<string> | null | undefined
}

/** RFC 6750 §2.1. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/
