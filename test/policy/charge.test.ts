import assert from 'node:assert/strict'
import { test } from 'tap'
import { NO_PAYMENTS, type PaymentTerms } from '../../src/payment/payment-terms.ts'
import type { ChargeAction } from '../../src/policy/charging/charge.ts'
import { parsePolicy } from '../../src/policy/policy.ts'
import type { DocumentFault } from '../../src/shared/problem.ts'
import { X402_TERMS } from '../payment/facilitator.ts'

const TERMS: PaymentTerms = {
  x402: { ...X402_TERMS, decimals: 2 },
  crawlerPrice: { currency: 'EUR', accounts: ['gptbot'] },
  license: null,
}

test('charge says what is sold and what for', async () => {
  assert.deepEqual(chargeIn({ price: '0.01', currency: 'USD', scheme: 'x402' }), {
    ...{ kind: 'charge', price: '0.01', currency: 'USD', schemes: ['x402'], description: null },
    ...{ path: null, purposes: [], license: null, passMs: 0, free: null, exempt: [], dayMax: null },
    fail: 'closed',
  })
  const all = chargeIn({
    ...{ price: 2, currency: 'USD', scheme: ['x402'], description: 'An hour', path: '/news/*' },
    ...{ purpose: ['training', 'search'], license: 'https://a.example/l', pass: '1h', day_max: '10' },
    ...{ free: { requests: 3, window: '1d' }, exempt: ['user-triggered'], fail: 'open' },
  })
  assert.deepEqual([all.price, all.passMs, all.dayMax], ['2', 3_600_000, 10_000_000])
  assert.deepEqual(all.free, { requests: 3, windowMs: 86_400_000, burst: 3 })
})

test('a charge that makes no sense is refused with its place', async () => {
  for (const [change, problem] of [
    [{ price: undefined }, 'rule "r": rules.0.action.charge: needs price'],
    [{ price: '0' }, /price: is "0"; expected a price above 0/],
    [{ price: '0.0000001' }, /price: is "0\.0000001"/],
    [{ price: '0.001' }, /price: has more places than payments\.x402\.decimals/],
    [{ currency: 'usd' }, /currency: is "usd"; expected a currency/],
    [{ currency: 'EUR' }, /currency: is EUR, but payments\.x402\.currency is USD/],
    [{ scheme: 'crawler-price' }, /currency: is USD, but payments\.crawler_price\.currency is EUR/],
    [
      { scheme: 'x403' },
      /scheme: is "x403"; expected x402, crawler-price, license \(did you mean "x402"\?\)/,
    ],
    [{ scheme: [] }, /scheme: is an empty list/],
    [{ path: '/a' }, /path: has no effect without pass/],
    [{ path: 'a', pass: '1m' }, /path: is "a"; expected a path that starts with \//],
    [{ purpose: ['sell'] }, /purpose\.0: is "sell"; expected search/],
    [{ license: 'javascript:1' }, /license: is "javascript:1"; expected a URL/],
    [{ pass: '40d' }, /pass: is "40d"; expected/],
    [{ free: { requests: 0 } }, /free\.requests: is 0/],
    [{ exempt: ['all'] }, /exempt\.0: is "all"; expected verified-search, user-triggered/],
    [{ day_max: '0.001' }, /day_max: is less than the price of 0\.01; raise it/],
    [{ fail: 'shut' }, /fail: is "shut"; expected open, closed/],
    [{ prize: 1 }, /prize: unknown field \(did you mean "price"\?\)/],
  ] as const) {
    const given = { price: '0.01', currency: 'USD', scheme: 'x402', ...change }
    const found = problemOf(JSON.parse(JSON.stringify(given)), TERMS)
    if (typeof problem === 'string') assert.equal(found, problem)
    else assert.match(found, problem)
  }
})

test('without settings, a charge is refused and the message says what to set', async () => {
  const off = problemOf({ price: '1', currency: 'USD', scheme: ['x402', 'crawler-price'] }, NO_PAYMENTS)
  assert.match(off, /x402 is off: set payments\.x402\.facilitator/)
  assert.match(off, /crawler-price is off: set payments\.crawler_price\.accounts/)
  assert.match(problemOf('charge', NO_PAYMENTS, true), /charge takes settings/)
})

function chargeIn(charge: object): ChargeAction {
  const rules = [{ name: 'r', when: {}, action: { charge } }]
  return parsePolicy({ rules }, { payments: TERMS }).last.rules[0]!.decision.action as ChargeAction
}

function problemOf(charge: unknown, payments: PaymentTerms, isWhole = false): string {
  const rules = [{ name: 'r', when: {}, action: isWhole ? charge : { charge } }]
  let message = ''
  assert.throws(
    () => parsePolicy({ rules }, { payments }),
    (error: DocumentFault) => {
      message = error.message
      return true
    },
  )
  return message
}
