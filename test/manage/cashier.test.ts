import assert from 'node:assert/strict'
import { encodePaymentSignatureHeader } from '../payment/wire.ts'
import { test } from 'tap'
import { Cashier } from '../../src/manage/payments/cashier.ts'
import { PaymentMetrics } from '../../src/manage/payments/payment-metrics.ts'
import type { PaymentClaim } from '../../src/payment/claim.ts'
import { Payer, X402_TERMS } from '../payment/facilitator.ts'
import { freshUrl } from '../store/databases.ts'
import { until } from '../until.ts'
import { claimOf, idOf, NO_NEWS, payment, SITE, till } from './till.ts'
import { SILENT } from '../contract/seen.ts'

test('a payment is settled once and lets one request in', async (t) => {
  const { cashier, facilitator, store } = await till(t)
  const claim = claimOf(new Payer('one'))
  const paid = await cashier.pay(claim)
  assert.equal(paid.kind, 'paid')
  assert.equal(facilitator.transfers.length, 1)
  assert.deepEqual(facilitator.transfers[0]!.to, X402_TERMS.payTo)
  await cashier.pay({ kind: 'use', id: idOf(paid), isServed: true })
  assert.deepEqual(await cashier.pay(claim), { kind: 'refused', why: 'already_used' })
  assert.equal(facilitator.transfers.length, 1)
  const record = await store.payments.byId(idOf(paid))
  assert.deepEqual(
    [record!.state, record!.amount, record!.payer, record!.rule],
    ['paid', 10_000, facilitator.transfers[0]!.from, 'paid'],
  )
  assert.ok(record!.transaction!.startsWith('0x'))
})

test('a payment that is spent in parallel at two processes lets one request in', async (t) => {
  const url = await freshUrl('sqlite', t)
  const { cashier, facilitator, store, settings } = await till(t, { url })
  const other = new Cashier(settings, {
    ...{ store, news: NO_NEWS, metrics: new PaymentMetrics(), log: SILENT, nowMs: Date.now },
  })
  t.teardown(() => other.close())
  const claim = claimOf(new Payer('two'))
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? cashier : other).pay(claim)),
  )
  assert.equal(answers.filter(({ kind }) => kind === 'paid').length, 1)
  assert.ok(answers.every(({ kind }) => kind === 'paid' || kind === 'pending' || kind === 'refused'))
  assert.equal(facilitator.transfers.length, 1)
})

test('a payment whose request was not served can be used again', async (t) => {
  const { cashier, facilitator } = await till(t)
  const claim = claimOf(new Payer('three'))
  const paid = await cashier.pay(claim)
  assert.equal((await cashier.pay(claim)).kind, 'pending')
  await cashier.pay({ kind: 'use', id: idOf(paid), isServed: false })
  assert.deepEqual(await cashier.pay({ ...claim, path: '/other' }), {
    kind: 'refused',
    why: 'wrong_resource',
  })
  assert.deepEqual(await cashier.pay(claim), paid)
  assert.equal(facilitator.transfers.length, 1)
})

test('a settlement whose answer is lost is found again and charged once', async (t) => {
  const { cashier, facilitator, failures } = await till(t)
  const claim = claimOf(new Payer('four'))
  facilitator.mood = 'forgetful'
  assert.deepEqual(await cashier.pay(claim), { kind: 'unavailable' })
  assert.equal(facilitator.transfers.length, 1)
  facilitator.mood = 'honest'
  assert.equal((await cashier.pay(claim)).kind, 'paid')
  assert.equal(facilitator.transfers.length, 1)
  assert.equal(failures(), 1)
})

test('a payment that the facilitator refuses lets no one in', async (t) => {
  const { cashier, facilitator, store } = await till(t)
  const poor = new Payer('five')
  facilitator.poor.add(poor.address)
  assert.deepEqual(await cashier.pay(claimOf(poor)), { kind: 'refused', why: 'insufficient_funds' })
  const forged = payment(new Payer('six'))
  forged.payload.signature = `0x${'00'.repeat(65)}`
  const claim = { ...claimOf(poor), payment: encodePaymentSignatureHeader(forged as never) }
  assert.deepEqual(await cashier.pay(claim), { kind: 'refused', why: 'invalid_exact_evm_signature' })
  const ofAnother = payment(new Payer('seven'))
  ofAnother.payload.authorization.from = poor.address
  const foreign = { ...claimOf(poor), payment: encodePaymentSignatureHeader(ofAnother as never) }
  assert.equal((await cashier.pay(foreign)).kind, 'refused')
  assert.deepEqual(facilitator.transfers, [])
  assert.equal(await store.payments.passUntil('k', 'shop', 'paid', 0), 0)
})

test('an expired or altered payment does not reach the facilitator', async (t) => {
  const { cashier, facilitator } = await till(t)
  const claim = claimOf(new Payer('eight'))
  const late = payment(new Payer('nine'), Math.floor(Date.now() / 1_000) - 600)
  const expired = { ...claim, payment: encodePaymentSignatureHeader(late as never) }
  assert.deepEqual(await cashier.pay(expired), { kind: 'refused', why: 'expired' })
  assert.deepEqual(await cashier.pay({ ...claim, price: '0.02' }), { kind: 'refused', why: 'offer_changed' })
  assert.deepEqual(await cashier.pay({ ...claim, url: `${SITE}/b` }), {
    kind: 'refused',
    why: 'wrong_resource',
  })
  assert.deepEqual(await cashier.pay({ ...claim, currency: 'EUR' }), { kind: 'unavailable' })
  assert.deepEqual(facilitator.asked, [])
})

for (const mood of ['broken', 'silent', 'lying', 'endless'] as const)
  test(`a facilitator that is ${mood} makes payments unavailable, and nothing is served`, async (t) => {
    const { cashier, facilitator, failures, said } = await till(t, { timeoutMs: 300 })
    facilitator.mood = mood
    const claim = claimOf(new Payer(mood))
    assert.deepEqual(await cashier.pay(claim), { kind: 'unavailable' })
    assert.equal(failures(), 1)
    assert.match(said(), /a payment cannot be checked/)
    facilitator.mood = 'honest'
    assert.equal((await cashier.pay(claim)).kind, 'paid')
    assert.equal(facilitator.transfers.length, 1)
  })

test('a facilitator that lies about a settlement is not believed', async (t) => {
  const { cashier, facilitator } = await till(t)
  facilitator.beforeSettling = async () => {
    facilitator.mood = 'silent'
  }
  const claim = claimOf(new Payer('ten'))
  const first = cashier.pay(claim)
  await until(() => facilitator.transfers.length === 1)
  assert.equal((await first).kind, 'paid') // its own answer is honest
  facilitator.mood = 'lying'
  const { cashier: other } = await till(t, { facilitator })
  assert.equal((await other.pay(claimOf(new Payer('eleven')))).kind, 'unavailable')
})

test('a pass lets in with its payment, or with the key, for its time', async (t) => {
  let nowMs = Date.now()
  const { cashier, facilitator } = await till(t, { nowMs: () => nowMs })
  const claim = { ...claimOf(new Payer('twelve')), passMs: 600_000, key: 'k', agent: 'reader' }
  const paid = await cashier.pay(claim)
  assert.equal(paid.kind === 'paid' && paid.passUntilMs, nowMs + 600_000)
  await cashier.pay({ kind: 'use', id: idOf(paid), isServed: true })
  nowMs += 500_000 // the authorization has expired by now
  assert.equal((await cashier.pay(claim)).kind, 'paid')
  assert.equal((await cashier.pay({ ...claim, key: null })).kind, 'refused')
  const question = { kind: 'pass', key: 'k', app: 'shop', rule: 'paid' } as const
  assert.deepEqual(await cashier.pay(question), { kind: 'pass', untilMs: nowMs + 100_000 })
  assert.deepEqual(await cashier.pay({ ...question, key: 'other' }), { kind: 'pass', untilMs: 0 })
  nowMs += 100_000
  assert.deepEqual(await cashier.pay(claim), { kind: 'refused', why: 'already_used' })
  assert.deepEqual(await cashier.pay(question), { kind: 'pass', untilMs: 0 })
  assert.equal(facilitator.transfers.length, 1)
})

test('only agents with an account pay on account, up to the maximum of a day', async (t) => {
  const { cashier, facilitator, store } = await till(t)
  const claim: PaymentClaim = {
    ...claimOf(new Payer('none')),
    ...{ payment: null, agent: 'gptbot', key: 'k', dayMax: 20_000 },
  }
  const first = await cashier.pay({ ...claim, decisionId: '1' })
  await cashier.pay({ kind: 'use', id: idOf(first), isServed: true })
  assert.equal((await store.payments.byId(idOf(first)))?.state, 'owed')
  assert.equal((await cashier.pay({ ...claim, decisionId: '2' })).kind, 'paid')
  assert.deepEqual(await cashier.pay({ ...claim, decisionId: '3' }), {
    kind: 'refused',
    why: 'day_max_reached',
  })
  assert.deepEqual(await cashier.pay({ ...claim, agent: 'other' }), { kind: 'refused', why: 'NoAccount' })
  assert.deepEqual(await cashier.pay({ ...claim, key: null }), { kind: 'refused', why: 'NoAccount' })
  assert.deepEqual(facilitator.asked, [])
})
