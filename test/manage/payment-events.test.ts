import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import { EventLog } from '../../src/manage/events/event-log.ts'
import { EventMetrics } from '../../src/manage/events/event-metrics.ts'
import { EventSources } from '../../src/manage/events/event-sources.ts'
import { PaymentEvents } from '../../src/manage/events/payment-events.ts'
import { cefOf } from '../../src/manage/events/sinks/cef.ts'
import { NOW_MS, SILENT } from '../contract/seen.ts'
import { Payer } from '../payment/facilitator.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { SETTINGS } from './event-sources.ts'
import { claimOf, idOf, till } from './till.ts'

for (const kind of KINDS) {
  test(`${kind}: a settled payment and its refund are one event each`, async (t) => {
    const { cashier, store, events, told } = await eventful(t, kind)
    const claim = claimOf(new Payer('one'))
    const paid = idOf(await cashier.pay(claim))
    await cashier.pay({ kind: 'use', id: paid, isServed: true })
    await store.transaction(async (queries) => {
      await store.payments.refund(paid, 'empty', NOW_MS, queries)
      await events.changed((await store.payments.byId(paid, queries))!, queries)
    })
    const [settled, refunded, ...others] = await told()
    assert.deepEqual(others, [])
    const { outcome, agent, payment } = settled!.data as { [name: string]: { [name: string]: unknown } }
    assert.deepEqual(
      [settled!.type, settled!.app, outcome, agent, payment!['id'], payment!['state'], payment!['price']],
      ['payment', 'shop', 'settled', null, paid, 'paid', '0.01'],
    )
    assert.deepEqual([refunded!.data['outcome'], refunded!.subject], ['refunded', settled!.subject])
    assert.match(
      cefOf((await store.events.after(0, 1))[0]!, '1'),
      /\|payment\|Payment\|1\|.* dhost=shop\.example request=\/a destinationServiceName=shop act=settled .*flexString1=0\.01 USD flexString1Label=price/,
    )
  })

  test(`${kind}: a flood of refusals is a few events, and all of them are counted`, async (t) => {
    const { cashier, events, told, later } = await eventful(t, kind)
    const claim = { ...claimOf(new Payer('one')), payment: null, key: 'k' }
    for (let second = 0; second < 40; second++) {
      await Promise.all(Array.from({ length: 50 }, () => cashier.pay({ ...claim, agent: 'stranger' })))
      await events.tell()
    }
    assert.equal((await told()).length, 30)
    assert.deepEqual((({ reason, count, outcome }) => [outcome, reason, count])((await told())[0]!.data), [
      'refused',
      'NoAccount',
      50,
    ])
    await later(60_000)
    const all = await told()
    assert.equal(all.length, 31)
    assert.deepEqual([all[30]!.data['count'], all[30]!.agent], [500, 'stranger'])
    assert.equal(sum(all), 2_000)
    assert.ok(!JSON.stringify(all).includes('"fingerprints"'))
  })
}

test('refusals for very many reasons are bounded, and those for one app hide none for another', async (t) => {
  const { events, told } = await eventful(t, 'sqlite')
  const claim = claimOf(new Payer('one'))
  for (let i = 0; i < 1_000; i++) events.refused({ ...claim, agent: `agent-${i}` }, 'expired')
  await events.tell()
  assert.equal((await told()).length, 30)
  events.refused({ ...claim, app: 'blog' }, 'expired')
  await events.tell()
  assert.equal((await told()).at(-1)!.app, 'blog')
})

test('an event says nothing of the payment that was refused but what is public', async (t) => {
  const { cashier, events, told } = await eventful(t, 'sqlite')
  const claim = { ...claimOf(new Payer('one')), path: '/of/sk-live-4eC39HqLyjWDarjtT1zdp7dc', price: '0.02' }
  assert.equal((await cashier.pay(claim)).kind, 'refused')
  await events.tell()
  const text = JSON.stringify(await told())
  assert.ok(!text.includes(claim.payment!) && !text.includes('4eC39Hq'), text)
})

async function eventful(t: Test, kind: (typeof KINDS)[number]) {
  let nowMs = NOW_MS
  const url = await freshUrl(kind, t)
  let events: PaymentEvents
  const { cashier, store } = await till(t, {
    url,
    newsAt: (store) => {
      const metrics = new EventMetrics()
      events = new PaymentEvents({
        ...{ store, log: new EventLog(store), metrics, eventsPerMinute: 30, nowMs: () => nowMs },
      })
      return events
    },
  })
  const management = {
    store,
    events: new EventLog(store),
    snapshot: () => null,
    log: SILENT,
    nowMs: () => nowMs,
  }
  const sources = new EventSources(management, SETTINGS, new EventMetrics())
  return {
    ...{ cashier, store, events: events! },
    told: async () =>
      (await store.events.after(0, 1_000)).map(({ data, ...event }) => ({
        ...event,
        data: JSON.parse(data) as Readonly<Record<string, unknown>>,
      })),
    later: async (ms: number) => {
      nowMs += ms
      await sources.followUp()
    },
  }
}

function sum(events: readonly { readonly data: Readonly<Record<string, unknown>> }[]): number {
  return events.reduce((total, { data }) => total + Number(data['count']), 0)
}
