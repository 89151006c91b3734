import { Store } from '../../../src/store/store.ts'
import type { PaymentDraft } from '../../../src/store/work/payments.ts'
import { HOUR_MS, MINUTE_MS, NOW_MS } from '../../contract/seen.ts'

/** A ledger with every state of a payment, and a grant that waits for a decision. */
export async function fillRecords(storeUrl: string): Promise<void> {
  const store = await Store.open(storeUrl)
  try {
    for (let number = 0; number < PAYMENTS; number++) await pay(store, number)
    await store.gnapGrants.add(GRANT, 10)
  } finally {
    await store.close()
  }
}

/** The `number`th payment of the last three days, the newest first. */
async function pay(store: Store, number: number): Promise<void> {
  const { payments } = store
  const id = `pay_${number}`
  const createdAtMs = NOW_MS - 7 * MINUTE_MS - number * 1.8 * HOUR_MS
  const scheme = SCHEMES[number % SCHEMES.length]!
  const agent = AGENTS[number % AGENTS.length]!
  await payments.reserve({ ...PAYMENT, id, identity: id, scheme, agent, createdAtMs }, null)
  if (number === 0) return
  if (number % 11 === 0) await payments.refused(id, 'insufficient_funds')
  else if (scheme !== 'crawler-price')
    await payments.settled(id, { transaction: `0x${number}`, settledAtMs: createdAtMs, passUntilMs: 0 })
  if (number % 11 !== 0) await payments.served(id, createdAtMs)
  if (number % 13 === 0)
    await store.transaction((queries) =>
      store.payments.refund(id, 'The page was empty', createdAtMs + HOUR_MS, queries),
    )
}

const PAYMENTS = 40
const SCHEMES = ['x402', 'crawler-price', 'license']
const AGENTS = ['gptbot', 'claudebot', null, 'bingbot']
const PAYMENT: PaymentDraft = {
  ...{ id: '', identity: '', scheme: 'x402', app: 'shop', rule: 'paid', account: 'me' },
  ...{ agent: null, key: null, payer: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', host: 'shop.example' },
  ...{ path: '/articles/1', amount: 10_000, currency: 'USD', network: 'eip155:8453', asset: '0x2' },
  ...{ purposes: [], license: null, decisionId: 'd', createdAtMs: 0, leaseUntilMs: 0, passUntilMs: 0 },
}
const GRANT = {
  ...{ id: 'grt_1', thumbprint: 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs', jwk: { kty: 'EC' } },
  ...{ display: { name: 'Acme Agent', uri: 'https://acme.example' }, finish: null },
  wanted: { isList: false, tokens: [{ label: null, actions: ['read', 'detect'], isBearer: false }] },
  ...{ scopes: ['read', 'detect'], nextAtMs: 0, interactHash: 'interact', continueHash: 'continue' },
  ...{ createdAtMs: NOW_MS - 4 * MINUTE_MS, expiresAtMs: NOW_MS + HOUR_MS },
}
