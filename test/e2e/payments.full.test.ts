import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { decodePaymentResponseHeader, wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import { type Test, test } from 'tap'
import { Agent, fetch as dialFetch } from 'undici'
import { Payer, TestFacilitator, X402_TERMS } from '../payment/facilitator.ts'
import { until } from '../until.ts'
import { type App, startApp } from './app.ts'
import { type RunningGatehouse, startGatehouse } from './gatehouse.ts'
import { temporaryFolder } from './programs.ts'

const ADMIN = 'an-admin-key-of-a-test-0123456789abcdef'

for (const protocol of ['h1', 'h2'] as const)
  test(`the package of x402 buys a page over ${protocol}`, async (t) => {
    const { gate, app, facilitator } = await shop(t)
    const fetcher = fetcherOf(t, gate, protocol)
    const payer = new Payer(`buyer over ${protocol}`)
    const schemes = [{ network: X402_TERMS.network as `${string}:${string}`, client: payer }]
    const buy = wrapFetchWithPaymentFromConfig(fetcher as unknown as typeof fetch, {
      schemes,
      spendControls: false,
    })
    const answer = await buy(`${gate.url}/articles/1?a=b`)
    assert.equal(answer.status, 200)
    assert.equal(await answer.text(), 'ok')
    const receipt = decodePaymentResponseHeader(answer.headers.get('payment-response')!)
    assert.deepEqual([receipt.success, receipt.payer], [true, payer.address])
    assert.equal(answer.headers.get('cache-control'), 'private')
    assert.deepEqual(
      facilitator.transfers.map(({ value }) => value),
      ['10000'],
    )
    assert.deepEqual(
      app.asked.map(({ url }) => url),
      ['/articles/1?a=b'],
    )
    // The ledger has it, and the export.
    const ask = asker(gate)
    await until(async () => (await ask('GET', '/v1/payments')).payments[0].served_at !== null)
    const [paid] = (await ask('GET', '/v1/payments')).payments
    assert.deepEqual(
      [paid.state, paid.price, paid.currency, paid.payer, paid.path, paid.rule],
      ['paid', '0.01', 'USD', payer.address, '/articles/1', 'articles'],
    )
    const file = await (await answerOf(gate, 'GET', '/v1/payments/export?format=csv')).text()
    assert.match(file, new RegExp(`^id,created_at.*\r\n${paid.id},`))
    const refunded = await ask('POST', `/v1/payments/${paid.id}/refund`, { note: 'sorry' })
    assert.deepEqual([refunded.state, refunded.refund_note], ['refunded', 'sorry'])
    assert.equal((await answerOf(gate, 'POST', `/v1/payments/${paid.id}/refund`, {})).status, 409)
  })

test('replayed, altered, foreign and expired payments are refused', async (t) => {
  const { gate, app, facilitator } = await shop(t)
  const fetcher = fetcherOf(t, gate, 'h1')
  const url = `${gate.url}/articles/2`
  const payer = new Payer('cheat')
  const required = await offerOf(await fetcher(url))
  const pay = (change: (payment: Payment) => void = () => {}, nowS?: number) => {
    const [accepted] = required.accepts
    const payment: Payment = {
      ...{ x402Version: 2, resource: { ...required.resource }, accepted: { ...accepted! } },
      payload: payer.pay(accepted!, nowS),
    }
    change(payment)
    return { headers: { 'PAYMENT-SIGNATURE': encodePaymentSignatureHeader(payment as never) } }
  }
  for (const [name, request] of [
    ['offer_changed', pay(({ accepted }) => Object.assign(accepted, { amount: '1' }))],
    ['wrong_amount', pay(({ payload }) => Object.assign(payload.authorization, { value: '1' }))],
    ['wrong_recipient', pay(({ payload }) => Object.assign(payload.authorization, { to: payer.address }))],
    ['wrong_resource', pay(({ resource }) => Object.assign(resource, { url: `${gate.url}/articles/3` }))],
    ['expired', pay(() => {}, Math.floor(Date.now() / 1_000) - 500)],
    [
      'invalid_exact_evm_signature',
      pay(({ payload }) => Object.assign(payload.authorization, { from: `0x${'11'.repeat(20)}` })),
    ],
    ['invalid_payload', { headers: { 'PAYMENT-SIGNATURE': 'bm8=' } }],
  ] as const) {
    const answer = await fetcher(url, request)
    assert.equal(answer.status, 402, name)
    assert.equal((await offerOf(answer)).error, name)
  }
  assert.deepEqual([facilitator.transfers, app.asked], [[], []])
  const good = pay()
  const answers = await Promise.all(Array.from({ length: 8 }, () => fetcher(url, good)))
  assert.equal(answers.filter(({ status }) => status === 200).length, 1)
  await until(async () => (await offerOf(await fetcher(url, good))).error === 'already_used')
  assert.equal(facilitator.transfers.length, 1)
  assert.equal(app.asked.length, 1)
})

test('a gateway killed between payment and answer charges once', async (t) => {
  const dataFolder = temporaryFolder(t)
  let isHeld = true
  const first = await shop(t, { dataFolder, route: () => isHeld })
  const { facilitator, app } = first
  const fetcher = fetcherOf(t, first.gate, 'h1')
  const required = await offerOf(await fetcher(`${first.gate.url}/articles/4`))
  const payer = new Payer('unlucky')
  const held = { x402Version: 2, accepted: required.accepts[0]!, payload: payer.pay(required.accepts[0]!) }
  const request = { headers: { 'PAYMENT-SIGNATURE': encodePaymentSignatureHeader(held as never) } }
  const lost = fetcher(`${first.gate.url}/articles/4`, request).then(
    () => assert.fail('it was served'),
    () => 'lost',
  )
  await until(() => app.asked.length === 1) // paid, and the app is answering
  await first.gate.kill()
  assert.equal(await lost, 'lost')
  isHeld = false
  const again = await shop(t, { dataFolder, facilitator, app })
  const retry = fetcherOf(t, again.gate, 'h1')
  const url = `${again.gate.url}/articles/4`
  let answer = await retry(url, request)
  while (answer.status === 402) {
    assert.equal((await offerOf(answer)).error, 'payment_pending')
    await wait(Number(answer.headers.get('retry-after')) * 1_000)
    answer = await retry(url, request)
  }
  assert.deepEqual([answer.status, await answer.text()], [200, 'ok'])
  assert.equal(facilitator.transfers.length, 1)
})

test('a failing facilitator lets in what the rule says', async (t) => {
  const { gate, facilitator, app } = await shop(t, { fail: 'open' })
  const fetcher = fetcherOf(t, gate, 'h1')
  const required = await offerOf(await fetcher(`${gate.url}/articles/5`))
  const [accepted] = required.accepts
  const payment = { x402Version: 2, accepted, payload: new Payer('lucky').pay(accepted!) }
  const request = { headers: { 'PAYMENT-SIGNATURE': encodePaymentSignatureHeader(payment as never) } }
  facilitator.mood = 'broken'
  assert.equal((await fetcher(`${gate.url}/articles/5`, request)).status, 200)
  assert.equal((await fetcher(`${gate.url}/articles/5`)).status, 402)
  assert.equal(app.asked.length, 1)
  const metrics = await (await fetch(`${gate.manage}/metrics`)).text()
  assert.match(metrics, /gatehouse_payment_facilitator_failures_total 1/)
})

interface Payment {
  readonly x402Version: number
  readonly resource: object
  readonly accepted: object
  readonly payload: ReturnType<Payer['pay']>
}

interface ShopOptions {
  readonly dataFolder?: string
  readonly facilitator?: TestFacilitator
  readonly app?: App
  readonly fail?: 'open' | 'closed'
  /** Whether the app holds its answers back. */
  readonly route?: () => boolean
}

/** A gateway that sells its articles, and everything else is free. */
async function shop(t: Test, { dataFolder, fail = 'closed', route, ...given }: ShopOptions = {}) {
  const facilitator = given.facilitator ?? (await TestFacilitator.start(t))
  const held = (_: unknown, response: { end(text: string): void }) => {
    if (route?.() !== true) response.end('ok')
  }
  const app = given.app ?? (await startApp(t, route === undefined ? {} : { '/articles/4': held }))
  const folder = temporaryFolder(t)
  const policy = join(folder, 'policy.json')
  const charge = { price: '0.01', currency: 'USD', scheme: 'x402', description: 'An article', fail }
  const rules = [{ name: 'articles', when: { path: '/articles/*' }, action: { charge } }]
  writeFileSync(policy, JSON.stringify({ rules, otherwise: 'pass' }))
  const { network, asset, payTo, assetName } = X402_TERMS
  const gate = await startGatehouse(t, {
    command: 'up',
    upstream: app.url,
    expects: /a payment cannot be checked/,
    variables: {
      GATEHOUSE_POLICY_FILE: policy,
      GATEHOUSE_ADMIN_KEY: ADMIN,
      GATEHOUSE_PROXY_WORKERS: '2',
      ...(dataFolder === undefined ? {} : { GATEHOUSE_DATA_DIR: dataFolder }),
      GATEHOUSE_PAYMENTS_X402_FACILITATOR: facilitator.url,
      GATEHOUSE_PAYMENTS_X402_PAY_TO: payTo,
      GATEHOUSE_PAYMENTS_X402_NETWORK: network,
      GATEHOUSE_PAYMENTS_X402_ASSET: asset,
      GATEHOUSE_PAYMENTS_X402_ASSET_NAME: assetName,
    },
  })
  return { gate, app, facilitator }
}

function fetcherOf(t: Test, { ca }: RunningGatehouse, protocol: 'h1' | 'h2') {
  const agent = new Agent({ allowH2: protocol === 'h2', connect: { ca } })
  t.teardown(() => agent.destroy())
  return async (input: string | Request | URL, init: { headers?: Record<string, string> } = {}) => {
    const request = input instanceof Request ? input : new Request(input, init)
    const { url, method } = request
    return dialFetch(url, { method, headers: Object.fromEntries(request.headers), dispatcher: agent })
  }
}

async function offerOf(answer: {
  readonly status: number
  readonly headers: { get(name: string): string | null }
}) {
  assert.equal(answer.status, 402)
  return decodePaymentRequiredHeader(answer.headers.get('payment-required')!)
}

function answerOf(
  { manage }: RunningGatehouse,
  method: string,
  path: string,
  body?: object,
): Promise<Response> {
  return fetch(`${manage}${path}`, {
    method,
    headers: { Authorization: `Bearer ${ADMIN}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

function asker(gate: RunningGatehouse) {
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  return async (method: string, path: string, body?: object): Promise<any> => {
    const answer = await answerOf(gate, method, path, body)
    assert.ok(answer.ok, `${path}: ${answer.status} ${answer.ok ? '' : await answer.text()}`)
    return answer.json()
  }
}
