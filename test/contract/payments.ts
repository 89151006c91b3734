import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { ALL_APPS } from '../../src/apps/app-scope.ts'
import type { Store } from '../../src/store/store.ts'
import type { PaymentDraft, PaymentFilter } from '../../src/store/work/payments.ts'

/** What any Store must do about payments. `open` with the same URL is another process. */
export function paymentsContract(
  name: string,
  freshUrl: (t: Test) => Promise<string>,
  open: (t: Test, url: string) => Promise<Store>,
): void {
  const fresh = async (t: Test) => (await open(t, await freshUrl(t))).payments

  test(`${name}: of parallel reservations of a payment, one succeeds`, async (t) => {
    const payments = await fresh(t)
    const drafts = Array.from({ length: 12 }, (_, i) => draft({ id: `pay_${i}`, identity: 'same' }))
    const outcomes = await Promise.all(drafts.map((each) => payments.reserve(each, null)))
    assert.equal(outcomes.filter((each) => each === 'reserved').length, 1)
    assert.equal(outcomes.filter((each) => each === 'taken').length, 11)
  })

  test(`${name}: of parallel requests with a payment whose request ended, one takes it over`, async (t) => {
    const payments = await fresh(t)
    await payments.reserve(draft({ leaseUntilMs: 1_000 }), null)
    const take = (nowMs: number) =>
      Promise.all(Array.from({ length: 8 }, () => payments.takeOver('pay_1', nowMs, nowMs + 500)))
    assert.deepEqual(new Set(await take(999)), new Set([false]))
    assert.equal((await take(1_000)).filter(Boolean).length, 1)
    assert.equal((await take(1_400)).filter(Boolean).length, 0)
    await payments.settled('pay_1', { transaction: '0xfeed', settledAtMs: 1_450, passUntilMs: 0 })
    await payments.served('pay_1', 1_460)
    assert.equal((await take(9_999)).filter(Boolean).length, 0)
  })

  test(`${name}: an account never spends more than its maximum of a day`, async (t) => {
    const payments = await fresh(t)
    const drafts = Array.from({ length: 20 }, (_, i) =>
      draft({ id: `pay_${i}`, identity: `${i}`, amount: 300 }),
    )
    const outcomes = await Promise.all(drafts.map((each) => payments.reserve(each, 1_000)))
    assert.ok(outcomes.filter((each) => each === 'reserved').length <= 3)
    const one = (more: Partial<PaymentDraft>) =>
      payments.reserve(draft({ id: JSON.stringify(more), identity: JSON.stringify(more), ...more }), 1_000)
    assert.equal(await one({ account: 'other', amount: 1_000 }), 'reserved')
    assert.equal(await one({ account: 'other', amount: 1 }), 'over')
    assert.equal(await one({ account: 'other', amount: 1_000, rule: 'another' }), 'reserved')
    assert.equal(await one({ account: 'other', amount: 1_000, createdAtMs: 86_400_000 }), 'reserved')
    const { total } = await payments.list({ page: 1, limit: 1 }, { ...ANY, agent: 'other' })
    assert.equal(total, 0) // what is over the maximum leaves nothing
  })

  test(`${name}: what is refused is not spent`, async (t) => {
    const payments = await fresh(t)
    await payments.reserve(draft({ amount: 900 }), 1_000)
    await payments.refused('pay_1', 'insufficient_funds')
    assert.equal(
      await payments.reserve(draft({ id: 'pay_2', identity: '2', amount: 900 }), 1_000),
      'reserved',
    )
    assert.equal((await payments.byId('pay_1'))?.why, 'insufficient_funds')
  })

  test(`${name}: on account, only served requests are owed`, async (t) => {
    const payments = await fresh(t)
    const onAccount = { scheme: 'crawler-price', payer: null, network: null, asset: null }
    await payments.reserve(draft(onAccount), null)
    await payments.reserve(draft({ ...onAccount, id: 'pay_2', identity: '2' }), null)
    await payments.served('pay_1', 5)
    await payments.released('pay_2')
    await payments.released('pay_1') // too late
    assert.equal((await payments.byId('pay_1'))?.state, 'owed')
    assert.equal((await payments.byId('pay_2'))?.state, 'refused')
  })

  test(`${name}: a key has a pass until it ends or is refunded`, async (t) => {
    const url = await freshUrl(t)
    const store = await open(t, url)
    const { payments } = store
    await payments.reserve(draft({ key: 'k' }), null)
    assert.equal(await payments.passUntil('k', 'shop', 'paid', 1), 0)
    await payments.settled('pay_1', { transaction: '0xfeed', settledAtMs: 10, passUntilMs: 500 })
    assert.equal(await payments.passUntil('k', 'shop', 'paid', 499), 500)
    for (const [key, app, rule, nowMs] of [
      ['k', 'shop', 'paid', 500],
      ['other', 'shop', 'paid', 1],
      ['k', 'blog', 'paid', 1],
      ['k', 'shop', 'other', 1],
    ] as const)
      assert.equal(await payments.passUntil(key, app, rule, nowMs), 0)
    const refund = () => store.transaction((queries) => payments.refund('pay_1', 'empty page', 20, queries))
    assert.deepEqual([await refund(), await refund()], [true, false])
    assert.equal(await payments.passUntil('k', 'shop', 'paid', 1), 0)
    assert.deepEqual(
      pick(await payments.byId('pay_1'), 'state', 'refundedAtMs', 'refundNote', 'transaction'),
      ['refunded', 20, 'empty page', '0xfeed'],
    )
  })

  test(`${name}: payments are summed by agent and app and day of what one may see`, async (t) => {
    const payments = await fresh(t)
    const rows: readonly Partial<PaymentDraft>[] = [
      { agent: 'reader' },
      { agent: 'reader', amount: 2_000_000, createdAtMs: 86_400_000 },
      { app: 'blog', amount: 5_000_000 },
      { amount: 7_000_000 }, // never settled
    ]
    for (const [i, row] of rows.entries()) {
      await payments.reserve(draft({ id: `pay_${i}`, identity: `${i}`, ...row }), null)
      if (i < 3) await payments.settled(`pay_${i}`, { transaction: null, settledAtMs: 1, passUntilMs: 0 })
    }
    const sums = async (by: 'agent' | 'app' | 'day', filter: Partial<PaymentFilter> = {}, most = 9) =>
      (await payments.sums(by, { ...ANY, ...filter }, most)).map((each) => [
        each.of,
        each.payments,
        each.amount,
      ])
    assert.deepEqual(await sums('agent'), [
      [null, 1, 5_000_000],
      ['reader', 2, 2_010_000],
    ])
    assert.deepEqual(await sums('day'), [
      [1, 1, 2_000_000],
      [0, 2, 5_010_000],
    ])
    assert.deepEqual(await sums('app', {}, 1), [['blog', 1, 5_000_000]])
    assert.deepEqual(await sums('app', { scope: new Set(['shop']) }), [['shop', 2, 2_010_000]])
    assert.deepEqual(await sums('app', { scope: new Set() }), [])
  })

  test(`${name}: the ledger is listed by what one may see, and forgotten`, async (t) => {
    const payments = await fresh(t)
    for (let i = 0; i < 5; i++)
      await payments.reserve(
        draft({ id: `pay_${i}`, identity: `${i}`, app: i % 2 === 0 ? 'shop' : 'blog', createdAtMs: i }),
        null,
      )
    const ids = async (filter: Partial<PaymentFilter>) =>
      (await payments.list({ after: null, limit: 9 }, { ...ANY, ...filter })).items.map(({ id }) => id)
    assert.deepEqual(await ids({}), ['pay_4', 'pay_3', 'pay_2', 'pay_1', 'pay_0'])
    assert.deepEqual(await ids({ scope: new Set(['blog']) }), ['pay_3', 'pay_1'])
    assert.deepEqual(await ids({ scope: new Set() }), [])
    assert.deepEqual(await ids({ app: 'shop', sinceMs: 1, untilMs: 4 }), ['pay_2'])
    assert.deepEqual(await ids({ state: 'paid' }), [])
    const first = await payments.list({ after: null, limit: 2 }, ANY)
    const second = await payments.list({ after: first.next, limit: 9 }, ANY)
    assert.deepEqual(
      second.items.map(({ id }) => id),
      ['pay_2', 'pay_1', 'pay_0'],
    )
    assert.equal(await payments.forget(3, 2), 2)
    assert.deepEqual(await ids({}), ['pay_4', 'pay_3', 'pay_2'])
    assert.deepEqual((await payments.byIdentity('4'))?.purposes, ['training'])
  })
}

function draft(more: Partial<PaymentDraft> = {}): PaymentDraft {
  return {
    ...{ id: 'pay_1', identity: '1', scheme: 'x402', app: 'shop', rule: 'paid', account: 'me', agent: null },
    ...{ key: null, payer: '0x1', host: 'shop.example', path: '/', amount: 10_000, currency: 'USD' },
    ...{ network: 'eip155:1', asset: '0x2', purposes: ['training'], license: null, decisionId: 'd' },
    ...{ createdAtMs: 0, leaseUntilMs: 0, passUntilMs: 0 },
    ...more,
  }
}

function pick<Value extends object>(value: Value | null, ...names: (keyof Value)[]): unknown[] {
  return names.map((name) => value?.[name])
}

const ANY: PaymentFilter = {
  ...{ scope: ALL_APPS, app: null, agent: null, state: null, scheme: null, sinceMs: null, untilMs: null },
}
