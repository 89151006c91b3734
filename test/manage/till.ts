import assert from 'node:assert/strict'
import type { Test } from 'tap'
import { Cashier, type PaymentNews } from '../../src/manage/payments/cashier.ts'
import { PaymentMetrics } from '../../src/manage/payments/payment-metrics.ts'
import type { PaymentAnswer, PaymentClaim } from '../../src/payment/claim.ts'
import { requirementsFor } from '../../src/payment/x402.ts'
import { createLogTo } from '../../src/shared/log.ts'
import type { Store } from '../../src/store/store.ts'
import { type Payer, TestFacilitator, X402_TERMS } from '../payment/facilitator.ts'
import { encodePaymentSignatureHeader } from '../payment/wire.ts'
import { freshUrl, openAt } from '../store/databases.ts'

export const SITE = 'https://shop.example'
const offer = requirementsFor(X402_TERMS, '0.01')!

/** Reports nothing. */
export const NO_NEWS: PaymentNews = { changed: async () => () => undefined, refused: () => undefined }

interface TillOptions {
  readonly url?: string
  readonly timeoutMs?: number
  readonly facilitator?: TestFacilitator
  readonly nowMs?: () => number
  readonly newsAt?: (store: Store) => PaymentNews
}

/** What takes payments, with a facilitator and a ledger of its own. */
export async function till(
  t: Test,
  { url, timeoutMs = 5_000, nowMs = Date.now, newsAt, ...given }: TillOptions = {},
) {
  const facilitator = given.facilitator ?? (await TestFacilitator.start(t))
  const store = await openAt(t, url ?? (await freshUrl('sqlite', t)))
  const metrics = new PaymentMetrics()
  const written: string[] = []
  const settings = {
    terms: { x402: X402_TERMS, crawlerPrice: { currency: 'USD', accounts: ['gptbot'] }, license: null },
    licenseServer: null,
    facilitator: { url: facilitator.url, token: null, ca: null, timeoutMs },
    retentionMs: 86_400_000,
  }
  const cashier = new Cashier(settings, {
    store,
    news: newsAt?.(store) ?? NO_NEWS,
    metrics,
    log: log(written),
    nowMs,
  })
  t.teardown(() => cashier.close())
  return {
    ...{ cashier, facilitator, store, settings },
    failures: () => metrics.facilitatorFailures,
    said: () => written.join(''),
  }
}

function log(written: string[] = []) {
  return createLogTo('info', { write: (line) => void written.push(line) })
}

export function payment(payer: Payer, nowS?: number) {
  return {
    x402Version: 2,
    resource: { url: `${SITE}/a` },
    accepted: offer,
    payload: payer.pay(offer as never, nowS),
  }
}

export function claimOf(payer: Payer): PaymentClaim {
  return {
    ...{ kind: 'claim', app: 'shop', rule: 'paid', decisionId: 'd', agent: null, key: null },
    ...{ host: 'shop.example', path: '/a', url: `${SITE}/a`, price: '0.01', currency: 'USD' },
    ...{ passMs: 0, dayMax: null, purposes: [], license: null },
    payment: encodePaymentSignatureHeader(payment(payer) as never),
  }
}

export function idOf(answer: PaymentAnswer): string {
  assert.equal(answer.kind, 'paid', JSON.stringify(answer))
  return (answer as { id: string }).id
}
