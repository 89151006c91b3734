import assert from 'node:assert/strict'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from './wire.ts'
import fc from 'fast-check'
import { test } from 'tap'
import { agreesTo } from '../../src/payment/crawler-price.ts'
import { atomicAmount, isPrice, millionthsOf, priceOf } from '../../src/payment/money.ts'
import {
  encodedJson,
  identityOf,
  readPayment,
  requirementsFor,
  timeFaultOf,
  type X402Payment,
} from '../../src/payment/x402.ts'
import { Payer, X402_TERMS } from './facilitator.ts'

const NOW_S = 1_800_000_000
const URL = 'https://shop.example/articles/1'
const offer = requirementsFor(X402_TERMS, '0.01')!
const payer = new Payer('reader')

test('a price is text with at most six places', async () => {
  for (const good of ['0.01', '1', '999999999.999999', '0.000001']) assert.ok(isPrice(good), good)
  for (const bad of ['0', '0.0', '-1', '1.', '.5', '1e3', '0.0000001', '1000000000', '', ' 1', '1 '])
    assert.ok(!isPrice(bad), bad)
  assert.equal(millionthsOf('12.5'), 12_500_000)
  assert.equal(atomicAmount('0.01', 6), '10000')
  assert.equal(atomicAmount('1.50', 1), '15')
  assert.equal(atomicAmount('0.01', 18), '10000000000000000')
  assert.equal(atomicAmount('0.001', 2), null)
})

test('a sum of prices is exact', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 999_999_999_999_999 }), (millionths) => {
      assert.equal(millionthsOf(priceOf(millionths)), millionths)
    }),
  )
})

test('a client reads an offer, and its payment is read', async () => {
  const required = { x402Version: 2, error: 'payment_required', resource: { url: URL }, accepts: [offer] }
  assert.deepEqual(decodePaymentRequiredHeader(encodedJson(required)), required)
  const payment = read(brought())
  assert.equal(typeof payment, 'object')
  assert.equal(timeFaultOf(payment as X402Payment, NOW_S), null)
})

test('a payment that differs from its offer is refused', async () => {
  const { payload } = brought()
  const { authorization } = payload
  for (const [change, why] of [
    [{ x402Version: 1 }, 'unsupported_version'],
    [{ accepted: { ...offer, amount: '1' } }, 'offer_changed'],
    [{ accepted: { ...offer, payTo: payer.address } }, 'offer_changed'],
    [{ accepted: { ...offer, network: 'eip155:1' } }, 'offer_changed'],
    [{ accepted: { ...offer, asset: payer.address } }, 'offer_changed'],
    [{ accepted: { ...offer, extra: { name: 'USDC', version: '3' } } }, 'offer_changed'],
    [{ accepted: { ...offer, maxTimeoutSeconds: 9_999 } }, 'offer_changed'],
    [{ accepted: null }, 'invalid_payload'],
    [{ resource: { url: 'https://shop.example/articles/2' } }, 'wrong_resource'],
    [{ resource: { url: 7 } }, 'wrong_resource'],
    [{ payload: { ...payload, authorization: { ...authorization, to: payer.address } } }, 'wrong_recipient'],
    [{ payload: { ...payload, authorization: { ...authorization, value: '1' } } }, 'wrong_amount'],
    [{ payload: { ...payload, authorization: { ...authorization, value: '0x2710' } } }, 'invalid_payload'],
    [{ payload: { ...payload, authorization: { ...authorization, nonce: '0x1' } } }, 'invalid_payload'],
    [{ payload: { ...payload, signature: 'no' } }, 'invalid_payload'],
    [{ payload: { transaction: 'AAAA' } }, 'invalid_payload'],
  ] as const)
    assert.equal(read({ ...brought(), ...change }), why, JSON.stringify(change))
})

test('a payment is good for a time', async () => {
  const payment = read(brought()) as X402Payment
  assert.equal(timeFaultOf(payment, NOW_S + 61), 'expired')
  assert.equal(timeFaultOf(payment, NOW_S - 100), 'not_yet_valid')
  const { payload } = brought()
  const authorization = { ...payload.authorization, validBefore: String(NOW_S + 3_600) }
  const long = read({ ...brought(), payload: { ...payload, authorization } }) as X402Payment
  assert.equal(timeFaultOf(long, NOW_S), 'valid_too_long')
})

test('a payment for a pass may name another URL of the site', async () => {
  const other = { ...brought(), resource: { url: 'https://shop.example/articles/2' } }
  assert.equal(typeof read(other, true), 'object')
  assert.equal(read({ ...other, resource: { url: 'https://shop.example.test/' } }, true), 'wrong_resource')
})

test('a payment has one identity however it is written', async () => {
  const sent = brought()
  const { authorization, signature } = sent.payload
  const upper = { ...authorization, from: `0x${authorization.from.slice(2).toUpperCase()}` }
  const again = {
    ...sent,
    extensions: { a: 1 },
    payload: { authorization: upper, signature: `${signature}00` },
  }
  assert.equal(identityOf(read(again) as X402Payment), identityOf(read(sent) as X402Payment))
})

test('any other text is an invalid payment', async () => {
  for (const header of ['', 'no', '{}', encodedJson(null), encodedJson([]), 'A'.repeat(9_000), '====']) {
    const found = readPayment(header, offer, URL, false)
    assert.ok(found === 'invalid_payload' || found === 'unsupported_version', header.slice(0, 20))
  }
  fc.assert(
    fc.property(fc.anything(), (value) => {
      const text = encodedJson(value ?? null)
      assert.equal(typeof readPayment(text, offer, URL, false), 'string')
    }),
  )
})

test('a crawler agrees to an exact or a highest price', async () => {
  const agreed = (exact: string | null, most: string | null) => agreesTo({ exact, most }, '0.01', 'USD')
  assert.equal(agreed(null, null), null)
  assert.equal(agreed('USD 0.01', null), true)
  assert.equal(agreed('USD 0.010', null), true)
  assert.equal(agreed('USD 0.02', null), 'PriceTooLow')
  assert.equal(agreed(null, 'USD 0.02'), true)
  assert.equal(agreed(null, 'USD 0.009'), 'PriceTooLow')
  assert.equal(agreed(null, 'EUR 5'), 'PriceTooLow')
  for (const bad of ['0.01', 'usd 0.01', 'USD -1', 'USD 1e9', 'USD', ''])
    assert.equal(agreed(bad, null), 'InvalidCrawlerPriceValue', bad)
  assert.equal(agreed('USD 0.01', 'USD 0.02'), 'InvalidCrawlerPriceValue')
})

function brought() {
  const payload = payer.pay(offer as never, NOW_S)
  return { x402Version: 2, resource: { url: URL }, accepted: offer, payload }
}

function read(payment: object, isPass = false) {
  return readPayment(encodePaymentSignatureHeader(payment as never), offer, URL, isPass)
}
