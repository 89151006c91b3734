import assert from 'node:assert/strict'
import { test } from 'tap'
import { Store } from '../../src/store/store.ts'
import type { PaymentDraft } from '../../src/store/work/payments.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

for (const kind of KINDS)
  test(`${kind}: no parameter makes the ledger fail, and readers see no secrets of paths`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const store = await Store.open(manage.storeUrl)
    t.teardown(() => store.close())
    await store.payments.reserve(PAYMENT, null)
    await store.payments.settled(PAYMENT.id, SETTLED)
    for (const query of [
      ...['app=%00', 'agent_id=%00', `app=${'a'.repeat(300)}`, 'app=', 'state=%00', 'scheme=none'],
      ...['since=yesterday', 'until=2026-13-01T00:00:00Z', 'cursor=%00', 'limit=0', 'more=x'],
    ])
      for (const path of ['payments', 'payments/export']) {
        const { status } = await manage.ask('GET', `/v1/${path}?${query}`)
        assert.equal(status, 400, `${path}?${query}`)
      }
    for (const id of ['%00', 'x%00y', 'none', '__proto__'])
      assert.equal((await manage.ask('POST', `/v1/payments/${id}/refund`, {})).status, 404, id)
    const reader = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
    const pathFor = async (caller: Record<string, string> | undefined) =>
      (await manage.ask('GET', '/v1/payments?app=shop', undefined, caller)).body.payments[0].path
    assert.equal(await pathFor(undefined), PAYMENT.path)
    assert.equal(await pathFor(reader), '/of/[redacted]')
    const sums = await manage.ask('GET', '/v1/payments/sums?by=day&app=shop', undefined, reader)
    const day = new Date(PAYMENT.createdAtMs).toISOString().slice(0, 10)
    assert.deepEqual(sums.body.sums, [
      { of: day, currency: 'USD', payments: 1, amount: '0.01', state: 'paid' },
    ])
    assert.equal((await manage.ask('GET', '/v1/payments/sums?by=key')).status, 400)
    assert.deepEqual(
      (await manage.ask('GET', '/v1/payments/sums')).body,
      (await manage.ask('GET', '/v1/payments/sums?by=agent')).body,
    )
    assert.deepEqual((await manage.ask('GET', '/v1/payments?team=none')).body.payments, [])
    const limited = { authorization: `Bearer ${await manage.key({ scopes: ['read'], apps: ['blog'] })}` }
    assert.deepEqual((await manage.ask('GET', '/v1/payments/sums?by=app', undefined, limited)).body.sums, [])
    const csv = await manage.ask('GET', '/v1/payments/export?format=csv&app=shop')
    // A spreadsheet runs no cell of it.
    assert.match(csv.body, /,'=cmd\(\),/)
    assert.deepEqual(manage.failures, [])
  })

const SETTLED = { transaction: '0x3', settledAtMs: Date.now(), passUntilMs: 0 }
const PAYMENT: PaymentDraft = {
  ...{ id: 'pay_1', identity: '1', scheme: 'x402', app: 'shop', rule: '=cmd()', account: 'me', agent: null },
  ...{ key: null, payer: '0x1', host: 'shop.example', path: '/of/person@example.com', amount: 10_000 },
  ...{ currency: 'USD', network: 'eip155:1', asset: '0x2', purposes: ['training'], license: null },
  ...{ decisionId: 'd', createdAtMs: Date.now(), leaseUntilMs: 0, passUntilMs: 0 },
}
