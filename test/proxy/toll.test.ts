import assert from 'node:assert/strict'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '../payment/wire.ts'
import { type Test, test } from 'tap'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { Cashier } from '../../src/manage/payments/cashier.ts'
import { PaymentMetrics } from '../../src/manage/payments/payment-metrics.ts'
import { type PaymentAnswer, type PaymentMessage, UNAVAILABLE } from '../../src/payment/claim.ts'
import type { PaymentTerms } from '../../src/payment/payment-terms.ts'
import { type ChargeAction, readCharge } from '../../src/policy/charging/charge.ts'
import type { Paid } from '../../src/proxy/request/pay/paid-exchange.ts'
import { Toll, type TollJudgement, type TollVisit } from '../../src/proxy/request/pay/toll.ts'
import { RateLimiter } from '../../src/proxy/request/rate-limiter.ts'
import type { RefusalAnswer } from '../../src/proxy/request/refuse.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Place } from '../../src/shared/problem.ts'
import { NO_NEWS } from '../manage/till.ts'
import { Payer, TestFacilitator, X402_TERMS } from '../payment/facilitator.ts'
import { freshUrl, openAt } from '../store/databases.ts'
import { until } from '../until.ts'

const TERMS: PaymentTerms = {
  x402: X402_TERMS,
  crawlerPrice: { currency: 'USD', accounts: ['gptbot'] },
  license: null,
}

test('a client that brings nothing gets the offer, and no message is sent', async (t) => {
  const { come, messages } = await booth(t, { license: 'https://shop.example/license', pass: '10m' })
  const { refusal } = await come({})
  assert.equal(refusal!.status, 402)
  const headers = headersOf(refusal!)
  const offer = decodePaymentRequiredHeader(headers.get('PAYMENT-REQUIRED')!)
  assert.deepEqual(offer.resource, { url: 'https://shop.example/a?b=c' })
  assert.deepEqual(
    offer.accepts.map(({ amount, payTo }) => [amount, payTo]),
    [['10000', X402_TERMS.payTo]],
  )
  assert.equal(headers.get('crawler-price'), 'USD 0.01')
  assert.equal(headers.get('Link'), '<https://shop.example/license>; rel="license"')
  assert.deepEqual(messages, [])
})

test('a paid request goes on with a receipt; one that the app failed is not used up', async (t) => {
  const { come, messages, facilitator } = await booth(t)
  const header = await pay(come)
  const first = await come({ 'PAYMENT-SIGNATURE': header })
  assert.equal(first.paid!.headers[0], 'PAYMENT-RESPONSE')
  assert.equal((await come({ 'PAYMENT-SIGNATURE': header })).why, 'payment_pending')
  first.paid!.done(503)
  await until(() => messages.some(({ kind }) => kind === 'use'))
  await until(async () => {
    const again = await come({ 'PAYMENT-SIGNATURE': header })
    again.paid?.done(200)
    return again.paid !== null
  })
  await until(async () => (await come({ 'PAYMENT-SIGNATURE': header })).why === 'already_used')
  assert.equal(facilitator.transfers.length, 1)
})

test('a client that has left keeps its payment', async (t) => {
  const { come, facilitator, store } = await booth(t)
  const header = await pay(come)
  facilitator.afterSettling = async () => left.go()
  const left = come({ 'PAYMENT-SIGNATURE': header }, { waits: false })
  await until(async () => {
    const [row] = (await store.payments.list({ page: 1, limit: 9 }, ANY)).items
    return row?.state === 'paid' && row.leaseUntilMs === 0
  })
  assert.ok((await come({ 'PAYMENT-SIGNATURE': header })).paid !== null)
  assert.equal(facilitator.transfers.length, 1)
})

test('a request with two payments is refused as invalid', async (t) => {
  const { come, messages } = await booth(t)
  const header = await pay(come)
  const { why } = await come({ 'PAYMENT-SIGNATURE': header, 'payment-signature': header })
  assert.deepEqual([why, messages], ['invalid_payload', []])
})

test('a pass of a key needs no header, and is of that key and path', async (t) => {
  const { come, messages, clock } = await booth(t, { pass: '10m', path: '/a*' })
  const key = 'thumbprint'
  const signed = { agent: AGENT, key }
  assert.equal((await come({}, signed)).why, 'payment_required')
  const header = await pay(come)
  const first = await come({ 'PAYMENT-SIGNATURE': header }, signed)
  first.paid!.done(200)
  const sent = messages.length
  assert.deepEqual([(await come({}, signed)).isFree, messages.length], [true, sent])
  assert.equal((await come({}, { ...signed, path: '/b' })).refusal!.status, 402)
  assert.equal((await come({ 'PAYMENT-SIGNATURE': header })).refusal!.status, 402)
  assert.equal((await come({}, { ...signed, key: 'other' })).refusal!.status, 402)
  clock.nowMs += 600_001
  assert.equal((await come({}, signed)).refusal!.status, 402)
})

test('a pass of an unsigned payment is for the client that sends it', async (t) => {
  const { come, facilitator } = await booth(t, { pass: '10m' })
  const header = await pay(come)
  const first = await come({ 'PAYMENT-SIGNATURE': header })
  first.paid!.done(200)
  for (const path of ['/a', '/other']) {
    const again = await come({ 'PAYMENT-SIGNATURE': header }, { path })
    assert.equal(again.refusal, null, path)
  }
  assert.equal((await come({})).refusal!.status, 402)
  assert.equal(facilitator.transfers.length, 1)
})

test('a crawler with an account agrees to the price', async (t) => {
  const { come, store } = await booth(t)
  const signed = { agent: AGENT, key: 'k' }
  for (const [headers, who, fault] of [
    [{ 'Crawler-Max-Price': 'USD 1' }, {}, 'StrongAuthRequired'],
    [{ 'crawler-exact-price': 'USD 0.02' }, signed, 'PriceTooLow'],
    [{ 'crawler-exact-price': 'a cent' }, signed, 'InvalidCrawlerPriceValue'],
    [{ 'crawler-max-price': 'USD 1' }, { agent: { ...AGENT, id: 'other' }, key: 'k' }, 'NoAccount'],
  ] as const) {
    const { refusal } = await come(headers, who)
    assert.equal(headersOf(refusal!).get('crawler-error'), fault)
  }
  const served = await come({ 'crawler-max-price': 'USD 1' }, signed)
  assert.deepEqual(served.paid!.headers, ['crawler-charged', 'USD 0.01'])
  served.paid!.done(200)
  const failed = await come({ 'crawler-exact-price': 'USD 0.01' }, signed)
  failed.paid!.done(404)
  const states = async () =>
    (await store.payments.list({ page: 1, limit: 9 }, ANY)).items.map(({ state }) => state).toSorted()
  await until(async () => String(await states()) === 'owed,refused')
})

test('free requests and exemptions cost nothing', async (t) => {
  const { come, messages } = await booth(t, {
    free: { requests: 2, window: '1h' },
    exempt: ['verified-search', 'user-triggered'],
  })
  const outcomes = []
  for (let i = 0; i < 3; i++) outcomes.push((await come({}, { address: '192.0.2.1' })).isFree)
  assert.deepEqual(outcomes, [true, true, false])
  assert.ok((await come({}, { address: '192.0.2.9' })).isFree)
  const spent = { address: '192.0.2.1' }
  const as = (...purposes: string[]) => ({ ...spent, agent: { ...AGENT, id: 'fresh', purposes } })
  for (let i = 0; i < 2; i++) await come({}, { ...as('training'), key: 'k' })
  assert.ok((await come({}, { ...as('search'), key: 'k' })).isFree)
  assert.ok((await come({}, { ...as('assistant', 'agent'), key: 'k' })).isFree)
  assert.ok(!(await come({}, { ...as('search', 'training'), key: 'k' })).isFree)
  assert.ok(!(await come({}, { ...as(), key: 'k' })).isFree)
  assert.ok(!(await come({}, as('search'))).isFree) // without a proof
  assert.deepEqual(messages, [])
})

test('a rule decides what happens while payments cannot be checked', async (t) => {
  for (const fail of ['open', 'closed'] as const) {
    const { come } = await booth(t, { fail }, async () => UNAVAILABLE)
    const { isFree, why } = await come({ 'PAYMENT-SIGNATURE': await pay(come) })
    assert.deepEqual([isFree, why], fail === 'open' ? [true, null] : [false, 'payment_unavailable'])
  }
})

test('payments of one network are limited', async (t) => {
  const { come, messages } = await booth(t)
  const header = await pay(come)
  const whys = []
  for (let i = 0; i < 70; i++) whys.push((await come({ 'PAYMENT-SIGNATURE': header })).why)
  assert.ok(whys.filter((why) => why === 'too_many_payments').length >= 5)
  assert.ok(messages.length <= 66)
})

const AGENT = { id: 'gptbot', name: 'GPTBot', category: 'crawler', purposes: ['training'] }
const ANY = {
  ...{ scope: '*' as const, app: null, agent: null, state: null, scheme: null, sinceMs: null, untilMs: null },
}

interface Who {
  readonly agent?: typeof AGENT
  readonly key?: string
  readonly address?: string
  readonly path?: string
}

type Pay = (message: PaymentMessage) => Promise<PaymentAnswer>
type Came = Awaited<ReturnType<Awaited<ReturnType<typeof booth>>['come']>>

/** A toll with a cashier behind it. */
async function booth(t: Test, members: object = {}, answers: Pay | null = null) {
  const facilitator = await TestFacilitator.start(t)
  const store = await openAt(t, await freshUrl('sqlite', t))
  const clock = { nowMs: Date.now() }
  const settings = {
    terms: TERMS,
    facilitator: { url: facilitator.url, token: null, ca: null, timeoutMs: 5_000 },
    licenseServer: null,
    retentionMs: 1,
  }
  const log = createLogTo('silent', { write: () => {} })
  const parts = { store, news: NO_NEWS, metrics: new PaymentMetrics(), log, nowMs: () => clock.nowMs }
  const cashier = new Cashier(settings, parts)
  t.teardown(() => cashier.close())
  const messages: PaymentMessage[] = []
  const bus = {
    pay: (message: PaymentMessage) => {
      messages.push(message)
      return answers === null ? cashier.pay(message) : answers(message)
    },
  }
  const toll = new Toll({ terms: TERMS, rslPath: null, bus, limiter: new RateLimiter(), clock })
  const action = chargeOf(members)
  let ids = 0
  const come = (headers: Record<string, string>, who: Who & { readonly waits?: false } = {}) => {
    const done = Promise.withResolvers<{
      readonly isFree: boolean
      readonly paid: Paid | null
      readonly refusal: RefusalAnswer | null
      readonly why: string | null
    }>()
    let letGo = () => {}
    const { agent = null, key = null, address = '192.0.2.7', path = '/a?b=c' } = who
    const proof = key === null ? null : { method: 'web-bot-auth', agent: 'https://agent.example', key }
    const judged = {
      ...{
        id: `decision-${ids++}`,
        address,
        app: { id: 'shop' },
        received: { hop: { forwardedProto: null } },
      },
      verdict: { ...UNKNOWN, agent, proof },
      decision: { rule: 'paid', layer: 'last', action, wouldHave: null },
    } as unknown as TollJudgement
    const visit = {
      connection: { isTls: true },
      head: { target: path, rawHeaders: Object.entries(headers).flat() },
      authority: 'shop.example',
    } as unknown as TollVisit
    toll.stop(visit, judged, action, {
      letIn: (paid) => {
        const isFree = paid === null || paid.headers.length === 0
        done.resolve({ isFree, paid, refusal: null, why: null })
      },
      answer: (refusal) => {
        const { error = null } = (refusal.members ?? {}) as { error?: string | null }
        done.resolve({ isFree: false, paid: null, refusal, why: error })
      },
      hold: (release) => {
        letGo = release
      },
    })
    return Object.assign(done.promise, { go: () => letGo() })
  }
  return { come, messages, facilitator, store, clock }
}

function chargeOf(members: object): ChargeAction {
  const problems: [] = []
  const given = { price: '0.01', currency: 'USD', scheme: ['x402', 'crawler-price'], ...members }
  const read = readCharge(Place.of(given, problems), TERMS)
  assert.deepEqual(problems, [])
  return read!
}

/** A payment of a new payer for the offer that the client gets. */
async function pay(come: (headers: Record<string, string>) => Promise<Came>): Promise<string> {
  const { refusal } = await come({})
  const { resource, accepts } = decodePaymentRequiredHeader(headersOf(refusal!).get('PAYMENT-REQUIRED')!)
  const payload = new Payer(`payer ${Math.random()}`).pay(accepts[0]!)
  const payment = { x402Version: 2, resource, accepted: accepts[0], payload }
  return encodePaymentSignatureHeader(payment as never)
}

function headersOf({ headers = [] }: RefusalAnswer): Map<string, string> {
  return new Map(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : [])))
}
