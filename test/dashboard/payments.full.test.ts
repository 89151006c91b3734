import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'tap'
import { Store } from '../../src/store/store.ts'
import type { PaymentDraft } from '../../src/store/work/payments.ts'
import { skipped } from '../e2e/programs.ts'
import { looksFine, openDashboard } from './browser.ts'

const skip = skipped('chromium')

test('the ledger is filtered, summed, exported and refunded', { skip }, async (t) => {
  const { manage, page, goTo } = await openDashboard(t)
  await goTo('payments')
  await page.getByText('No matching payments').waitFor()
  await looksFine(page, 'payments-none')
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  for (let i = 0; i < 3; i++) {
    await store.payments.reserve({ ...PAYMENT, id: `pay_${i}`, identity: `${i}` }, null)
    await store.payments.settled(`pay_${i}`, { transaction: '0x3', settledAtMs: Date.now(), passUntilMs: 0 })
  }
  await goTo('payments?state=paid')
  const table = page.getByRole('table', { name: 'Payments' })
  await table.getByText('0.01 USD').first().waitFor()
  await page.getByText('0.03 USD').waitFor()
  await page.getByRole('button', { name: 'By day' }).click()
  await page.getByText(new Date(PAYMENT.createdAtMs).toISOString().slice(0, 10)).waitFor()
  await looksFine(page, 'payments')
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ])
  assert.equal((await readFile(await saved.path(), 'utf8')).trim().split('\n').length, 4)
  await page.getByRole('button', { name: 'Refund pay_1' }).click()
  await page.getByLabel('Note').fill('The page was empty')
  await page.getByRole('button', { name: 'Mark as refunded' }).click()
  await page.getByRole('button', { name: 'Refund pay_1' }).waitFor({ state: 'detached' })
  assert.equal((await store.payments.byId('pay_1'))?.refundNote, 'The page was empty')
})

const PAYMENT: PaymentDraft = {
  ...{ id: 'pay_1', identity: '1', scheme: 'x402', app: 'default', rule: 'paid', account: 'me' },
  ...{ agent: 'gptbot', key: null, payer: '0x1', host: 'shop.example', path: '/a', amount: 10_000 },
  ...{ currency: 'USD', network: 'eip155:1', asset: '0x2', purposes: [], license: null, decisionId: 'd' },
  ...{ createdAtMs: Date.now(), leaseUntilMs: 0, passUntilMs: 0 },
}
