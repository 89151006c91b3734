import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import { UNKNOWN } from '../../src/classify/verdict/verdict.ts'
import { Cashier } from '../../src/manage/payments/cashier.ts'
import { PaymentMetrics } from '../../src/manage/payments/payment-metrics.ts'
import type { PaymentMessage } from '../../src/payment/claim.ts'
import { readPaymentMessage, writePaymentMessage } from '../../src/plane/payment-messages.ts'
import { NO_PAYMENTS } from '../../src/payment/payment-terms.ts'
import { readCharge } from '../../src/policy/charging/charge.ts'
import type { Paid } from '../../src/proxy/request/pay/paid-exchange.ts'
import { Toll, type TollJudgement, type TollVisit } from '../../src/proxy/request/pay/toll.ts'
import { RateLimiter } from '../../src/proxy/request/rate-limiter.ts'
import type { RefusalAnswer } from '../../src/proxy/request/refuse.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { Place } from '../../src/shared/problem.ts'
import { NO_NEWS } from '../manage/till.ts'
import { TestLicenseServer, WRONG_MOODS } from '../payment/license-server.ts'
import type { PaymentFilter } from '../../src/store/work/payments.ts'
import { freshUrl, openAt } from '../store/databases.ts'

const TERMS = { ...NO_PAYMENTS, license: { isForwarded: false } }
const SITE = 'https://shop.example'

test('a request without a license is told where to get one', async (t) => {
  const { come, messages } = await gate(t)
  const { refusal } = await come(null)
  assert.equal(refusal!.status, 402)
  assert.deepEqual(headersOf(refusal!), [
    ['Link', `<${SITE}/license.xml>; rel="license"; type="application/rsl+xml"`],
    ['WWW-Authenticate', 'License error="invalid_request"'],
  ])
  assert.equal((await come('Bearer abc')).refusal!.status, 402)
  assert.deepEqual(messages, [])
})

test('a valid token lets in for its URLs and is asked about once in its time', async (t) => {
  const { come, server, clock, store } = await gate(t)
  server.licenses.set('good', {
    url: `${SITE}/articles/`,
    more: { token_type: 'License', client_id: 'reader' },
  })
  const first = await come('License good', { path: '/articles/1?page=2' })
  assert.deepEqual([first.refusal, first.paid?.headers], [null, []])
  first.paid!.done(200)
  assert.deepEqual(server.asked, [
    {
      token: 'good',
      resource: `${SITE}/articles/1?page=2`,
      authorization: `Basic ${btoa('gate+1:pass%3Aword')}`,
    },
  ])
  assert.notEqual((await come('license good', { path: '/articles/1?page=2' })).paid, null)
  assert.equal(server.asked.length, 1)
  assert.equal((await come('License good', { path: '/other' })).refusal!.status, 401)
  assert.equal(server.asked.length, 2)
  clock.nowMs += 60_000
  assert.notEqual((await come('License good', { path: '/articles/1?page=2' })).paid, null)
  assert.equal(server.asked.length, 3)
  const { items } = await store.payments.list({ after: null, limit: 9 }, ANY)
  assert.deepEqual(
    items.map(({ scheme, state, amount, payer }) => [scheme, state, amount, payer]),
    [['license', 'paid', 0, 'reader']],
  )
})

test('an expired token, one of another type and an unknown one let no one in', async (t) => {
  const { come, server, clock } = await gate(t)
  const nowS = Math.floor(clock.nowMs / 1_000)
  for (const [token, more] of Object.entries({
    expired: { exp: nowS - 1 },
    early: { nbf: nowS + 60 },
    bearer: { token_type: 'Bearer' },
  }))
    server.licenses.set(token, { url: SITE, more })
  for (const token of ['expired', 'early', 'bearer', 'unknown']) {
    const { refusal } = await come(`License ${token}`)
    assert.equal(refusal!.status, 401, token)
    assert.ok(
      headersOf(refusal!).some(([name, value]) => name === 'WWW-Authenticate' && /invalid_token/.test(value)),
    )
  }
  server.licenses.set('short', { url: SITE, more: { exp: nowS + 10 } })
  assert.notEqual((await come('License short')).paid, null)
  clock.nowMs += 11_000
  assert.equal((await come('License short')).refusal!.status, 401)
})

test('a token that cannot be one is not sent', async (t) => {
  const { come, server } = await gate(t)
  for (const value of ['License', 'License ', 'License a b', 'License ä', `License ${'x'.repeat(5_000)}`])
    assert.equal((await come(value)).refusal!.status, 401, value)
  // A long path would be cut.
  server.licenses.set('good', { url: SITE })
  assert.equal((await come('License good', { path: `/${'x'.repeat(2_000)}` })).refusal!.status, 401)
  assert.deepEqual(server.asked, [])
})

for (const [mood, protocol] of WRONG_MOODS.flatMap((each) => [[each], [each, 'h2']] as const))
  test(`if the license server is wrong (${mood}, ${protocol ?? 'http/1.1'}), the rule decides`, async (t) => {
    const { come, server, said } = await gate(t, {}, await TestLicenseServer.start(t, protocol))
    server.licenses.set('good-secret', { url: SITE })
    server.mood = mood
    const { refusal } = await come('License good-secret')
    assert.equal(refusal!.status, 503)
    assert.equal(server.asked.length, 1, 'it is asked once, and nowhere else')
    assert.deepEqual(
      headersOf(refusal!).filter(([name]) => name !== 'Link'),
      [
        ['Retry-After', '10'],
        ['WWW-Authenticate', 'License error="server_error"'],
      ],
    )
    assert.match(said(), /a payment cannot be checked/)
    assert.ok(!said().includes('good-secret'), said())
    const open = await gate(t, { fail: 'open' }, server)
    assert.deepEqual(await open.come('License good-secret'), { paid: null, refusal: null })
  })

test('a license server is asked over HTTP/2 if it has it', async (t) => {
  for (const [speaks, protocol] of [
    ['h2', '2.0'],
    ['h2 and http/1.1', '2.0'],
    ['http/1.1', '1.1'],
  ] as const) {
    const server = await TestLicenseServer.start(t, speaks)
    const { come } = await gate(t, {}, server)
    server.licenses.set('good', { url: SITE })
    const paths = Array.from({ length: 6 }, (_, i) => `/${i}`)
    const answers = await Promise.all(paths.map((path) => come('License good', { path })))
    assert.ok(
      answers.every(({ paid }) => paid !== null),
      speaks,
    )
    assert.equal((await come('License bad')).refusal!.status, 401)
    assert.deepEqual([[...server.protocols], server.asked.length], [[protocol], 7], speaks)
  }
})

test('a license server with a certificate of another CA is not asked', async (t) => {
  const server = await TestLicenseServer.start(t, 'h2')
  const { come } = await gate(t, {}, server, null)
  server.licenses.set('good', { url: SITE })
  assert.equal((await come('License good')).refusal!.status, 503)
  assert.deepEqual(server.asked, [])
})

test('after a wrong answer, a license server that works again is believed', async (t) => {
  for (const protocol of ['h2', 'http/1.1'] as const) {
    const { come, server } = await gate(t, {}, await TestLicenseServer.start(t, protocol))
    server.licenses.set('good', { url: SITE })
    for (const mood of WRONG_MOODS) {
      server.mood = mood
      assert.equal((await come('License good')).paid, null, mood)
      server.mood = 'honest'
      assert.notEqual((await come('License good', { path: `/${mood}` })).paid, null, mood)
    }
  }
})

test('guesses are limited and valid tokens are not', async (t) => {
  const { come, server } = await gate(t)
  server.licenses.set('good', { url: SITE })
  assert.notEqual((await come('License good', { path: '/0' })).paid, null)
  for (let i = 0; i < 100; i++) await come(`License guess-${i}`)
  const asked = server.asked.length
  assert.ok(asked <= 61, `${asked}`)
  assert.match(JSON.stringify((await come('License guess')).refusal!.members), /too_many_payments/)
  for (let i = 1; i < 100; i++)
    assert.notEqual((await come('License good', { path: `/${i}` })).paid, null, `${i}`)
})

test('a license that is marked as refunded lets no one in', async (t) => {
  const { come, server, store, clock } = await gate(t)
  server.licenses.set('good', { url: SITE })
  const { paid } = await come('License good')
  paid!.done(500) // it stays valid
  const [record] = (await store.payments.list({ after: null, limit: 1 }, ANY)).items
  assert.equal(record!.state, 'paid')
  await store.transaction((queries) => store.payments.refund(record!.id, null, 1, queries))
  clock.nowMs += 60_000
  assert.equal((await come('License good')).refusal!.status, 401)
})

test('the app gets no license token unless a setting says so', async (t) => {
  const { toll } = await gate(t)
  const headers = ['Host', 'a', 'authorization', 'license good', 'Authorization', 'Bearer x']
  toll.hideLicense(headers)
  assert.deepEqual(headers, ['Host', 'a', 'Authorization', 'Bearer x'])
  const kept = ['Authorization', 'License good']
  const forwarding = { ...NO_PAYMENTS, license: { isForwarded: true } }
  for (const terms of [forwarding, NO_PAYMENTS]) tollOf(terms).hideLicense(kept)
  assert.deepEqual(kept, ['Authorization', 'License good'])
})

async function gate(
  t: Test,
  members: object = {},
  given: TestLicenseServer | null = null,
  ca: string | null = given?.ca ?? null,
) {
  const server = given ?? (await TestLicenseServer.start(t))
  const store = await openAt(t, await freshUrl('sqlite', t))
  const clock = { nowMs: Date.now() }
  const lines: string[] = []
  const log = createLogTo('debug', { write: (line) => void lines.push(line) })
  const cashier = new Cashier(
    {
      ...{ terms: TERMS, facilitator: null, retentionMs: 1 },
      licenseServer: {
        ...{ url: server.url, ca, timeoutMs: 300, cacheMs: 60_000 },
        ...{ clientId: 'gate 1', clientSecret: 'pass:word' },
      },
    },
    { store, news: NO_NEWS, metrics: new PaymentMetrics(), log, nowMs: () => clock.nowMs },
  )
  t.teardown(() => cashier.close())
  const messages: PaymentMessage[] = []
  const bus = {
    pay: (message: PaymentMessage) => {
      messages.push(message)
      // As over NATS.
      return cashier.pay(readPaymentMessage(writePaymentMessage(message)))
    },
  }
  const toll = new Toll({ terms: TERMS, rslPath: '/license.xml', bus, limiter: new RateLimiter(), clock })
  const problems: [] = []
  const action = readCharge(
    Place.of({ price: '0.01', currency: 'USD', scheme: 'license', ...members }, problems),
    TERMS,
  )!
  assert.deepEqual(problems, [])
  let ids = 0
  const come = (authorization: string | null, { path = '/a' }: { readonly path?: string } = {}) => {
    const done = Promise.withResolvers<{
      readonly paid: Paid | null
      readonly refusal: RefusalAnswer | null
    }>()
    const judged = {
      ...{ id: `decision-${ids++}`, address: '192.0.2.7', app: { id: 'shop' } },
      received: { hop: { forwardedProto: null } },
      verdict: { ...UNKNOWN, agent: null, proof: null },
      decision: { rule: 'paid', layer: 'last', action, wouldHave: null },
    } as unknown as TollJudgement
    const visit = {
      connection: { isTls: true },
      head: { target: path, rawHeaders: authorization === null ? [] : ['Authorization', authorization] },
      authority: 'shop.example',
    } as unknown as TollVisit
    toll.stop(visit, judged, action, {
      letIn: (paid) => done.resolve({ paid, refusal: null }),
      answer: (refusal) => done.resolve({ paid: null, refusal }),
      hold: () => undefined,
    })
    return done.promise
  }
  return { come, messages, server, store, clock, toll, said: () => lines.join('') }
}

function tollOf(terms: typeof NO_PAYMENTS): Toll {
  const bus = { pay: async () => ({ kind: 'unavailable' }) as const }
  return new Toll({ terms, rslPath: null, bus, limiter: new RateLimiter(), clock: { nowMs: 0 } })
}

function headersOf({ headers = [] }: RefusalAnswer): [string, string][] {
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as [string, string]] : []))
}

const ANY: PaymentFilter = {
  app: null,
  agent: null,
  state: null,
  scheme: null,
  sinceMs: null,
  untilMs: null,
  scope: ALL_APPS,
}
