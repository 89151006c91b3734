import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { parseSoftware } from '../../src/classify/known/software.ts'
import { SoftwareNames } from '../../src/classify/known/software-names.ts'
import { deliveryJobs } from '../../src/manage/events/webhooks/delivery-jobs.ts'
import { DeliveryMetrics } from '../../src/manage/events/webhooks/delivery-metrics.ts'
import { wants } from '../../src/manage/events/webhooks/event-filter.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import type { WebhookFilters } from '../../src/store/events/webhooks.ts'
import { KINDS, openFresh } from '../store/databases.ts'
import { HookReceiver } from './webhook-receiver.ts'
import { event, WebhookSite } from './webhook-site.ts'

for (const kind of KINDS) {
  test(`${kind}: what is about one subject goes one after the other, in the order of events`, async (t) => {
    let atOnce = 0
    const waiting = new Map<string, number>()
    const receiver = await HookReceiver.start(t, (response, number, { body }) => {
      const { subject } = body.data
      waiting.set(subject, (waiting.get(subject) ?? 0) + 1)
      atOnce = Math.max(atOnce, waiting.get(subject)!)
      setTimeout(
        () => {
          waiting.set(subject, waiting.get(subject)! - 1)
          // Now and then one fails, and all behind it wait for its retry.
          response.writeHead(number % 7 === 3 ? 500 : 200).end()
        },
        number % 3 === 0 ? 10 : 1,
      )
    })
    const store = await openFresh(kind, t)
    const sites = await Promise.all([1, 2].map(() => WebhookSite.start(t, store, { retryBaseMs: 5 })))
    const { id } = await sites[0]!.webhook(receiver.url)
    const told: NewEvent[] = []
    for (let round = 0; round < 8; round++) {
      const some = [0, 1, 2, 0].map((subject) => about(`s${subject}`))
      told.push(...some)
      await sites[round % 2]!.add(...some)
    }
    await sites[0]!.until(id, (all) => all.every(({ status }) => status === 'delivered'))
    assert.equal(atOnce, 1)
    for (const subject of ['s0', 's1', 's2']) {
      const came = receiver.all.filter(({ body }) => body.data.subject === subject).map(({ id }) => id)
      const firsts = came.filter((id, index) => came[index - 1] !== id)
      assert.deepEqual(
        firsts,
        told.flatMap((each) => (each.subject === subject ? [each.id] : [])),
      )
    }
  })

  test(`${kind}: one that has failed three times holds up those behind it no longer`, async (t) => {
    const [first, second, third, other] = [about('s'), about('s'), about('s'), about('t')]
    const receiver = await HookReceiver.start(t, (response, _number, { id }) =>
      response.writeHead(id === first.id ? 500 : 200).end(),
    )
    const site = await WebhookSite.start(t, await openFresh(kind, t), { retryBaseMs: 40 })
    const { id } = await site.webhook(receiver.url)
    await site.add(first, second, third, other)
    await receiver.has(6)
    assert.deepEqual(
      receiver.ids.filter((id) => id !== other.id),
      [first.id, first.id, first.id, second.id, third.id],
    )
    assert.equal(receiver.ids.indexOf(other.id) < 2, true, 'another subject waits for nobody')
    // What comes after that waits for it neither.
    const fourth = about('s')
    await site.add(fourth)
    await site.until(id, ([newest]) => newest!.eventId === fourth.id && newest!.status === 'delivered')
  })

  test(`${kind}: a line whose first is forgotten with its event goes on`, async (t) => {
    const store = await openFresh(kind, t)
    const receiver = await HookReceiver.start(t)
    const site = await WebhookSite.start(t, store)
    const { id } = await site.webhook(receiver.url)
    const [oldMs, last] = [1_000, about('s')]
    // The first is not sent yet, as it is held by somebody who is gone.
    await site.deliverer.close()
    await site.add({ ...about('s'), atMs: oldMs }, last)
    assert.equal(await store.events.forget(oldMs + 1, 1_000, 10), 1)
    assert.deepEqual(
      (await site.deliveries(id)).map(({ eventId, nextAtMs }) => [eventId, nextAtMs]),
      [[last.id, null]],
    )
    const other = await WebhookSite.start(t, store)
    const [job] = deliveryJobs(other.management, 1, new DeliveryMetrics()).filter(({ name }) =>
      name.startsWith('call what waits'),
    )
    assert.equal(await job!.run(Date.now()), 'done')
    await receiver.has(1)
    assert.deepEqual(receiver.ids, [last.id])
  })
}

test('a dead endpoint with a thousand waiting deliveries delays another by nothing, and is asked one at a time', async (t) => {
  const dead = await HookReceiver.start(t, () => undefined) // it hangs
  const healthy = await HookReceiver.start(t)
  const store = await openFresh('sqlite', t)
  const site = await WebhookSite.start(t, store, { timeoutMs: 500, retryBaseMs: 60 })
  const waits = await site.webhook(dead.url, { events: ['threat_detected'] })
  const goes = await site.webhook(healthy.url, { events: ['new_agent'] })
  await site.add(...Array.from({ length: 1_000 }, () => event({ type: 'threat_detected' })))
  await dead.has(5)
  await site.add(...Array.from({ length: 200 }, () => event({ type: 'new_agent' })))
  const startedMs = Date.now()
  const untilAllMs = startedMs + 10_000
  while (new Set(healthy.ids).size < 200 && Date.now() < untilAllMs) await wait(10)
  assert.equal(new Set(healthy.ids).size, 200)
  // Were it to wait for the other's attempts, 32 at a time, it would be sixteen seconds.
  assert.ok(Date.now() - startedMs < 5_000, String(Date.now() - startedMs))
  await site.until(goes.id, (all) => all.every(({ status }) => status === 'delivered'))
  // From then on one at a time, with growing pauses; the others use up no attempt.
  await site.health(waits.id, ({ pauses }) => pauses >= 3)
  const asked = dead.all.length
  // Four failures make room for four others; behind the fifth there is one in each pause.
  const { pauses } = await site.health(waits.id, () => true)
  assert.ok(asked <= 32 + 4 + pauses, `${asked} with ${pauses} pauses`)
  assert.equal((await store.deliveries.pending([waits.id])).get(waits.id), 1_000)
  // It is back: all of them come.
  dead.answer = (response) => response.end()
  const untilMs = Date.now() + 30_000
  while ((await store.deliveries.countPending()).count > 0 && Date.now() < untilMs) await wait(20)
  assert.deepEqual(await store.deliveries.countPending(), { count: 0, oldestMs: null })
  assert.equal(new Set(dead.ids).size, 1_000)
  const { failures, pausedUntilMs, failingSinceMs } = await site.health(waits.id, () => true)
  assert.deepEqual([failures, pausedUntilMs, failingSinceMs], [0, null, null])
})

test('410 disables a webhook at once; what waits goes on when it is enabled', async (t) => {
  const receiver = await HookReceiver.start(t, (response) => response.writeHead(410).end())
  const store = await openFresh('sqlite', t)
  const site = await WebhookSite.start(t, store)
  const { id } = await site.webhook(receiver.url)
  const told = event()
  await site.add(told)
  const { disabledReason, disabledAtMs } = await site.health(id, (health) => health.disabledReason !== null)
  assert.equal(disabledReason, 'its URL answers 410 (Gone)')
  assert.ok(disabledAtMs! > Date.now() - 10_000)
  assert.equal((await store.webhooks.byId(id))!.isEnabled, false)
  const [entry] = (await store.audit.list({ page: 1, limit: 5 })).items
  assert.deepEqual(
    [entry!.action, entry!.principal, entry!.subject, entry!.detail['reason']],
    ['disableWebhook', 'gatehouse', id, disabledReason],
  )
  await site.add(event()) // for nobody
  await wait(100)
  const deliveries = await site.deliveries(id)
  assert.deepEqual([deliveries.length, deliveries[0]!.status, receiver.all.length], [1, 'pending', 1])
  receiver.answer = (response) => response.end()
  await site.change(id, { isEnabled: true })
  site.deliverer.wake()
  await receiver.has(2)
  assert.deepEqual(receiver.ids, [told.id, told.id])
})

test('five days of failure without a success disable a webhook', async (t) => {
  let nowMs = Date.now()
  const receiver = await HookReceiver.start(t, (response) => response.writeHead(503).end())
  const site = await WebhookSite.start(t, await openFresh('sqlite', t), { nowMs: () => nowMs })
  const { id } = await site.webhook(receiver.url)
  await site.add(event())
  await site.health(id, ({ failures }) => failures > 0)
  nowMs += 4.9 * 86_400_000
  await site.health(id, ({ failures }) => failures > 1)
  assert.equal((await site.store.webhooks.byId(id))!.isEnabled, true)
  nowMs += 0.2 * 86_400_000
  const { disabledReason } = await site.health(id, (health) => health.disabledReason !== null)
  assert.equal(
    disabledReason,
    'nothing could be delivered for five days, the last time because it answers 503',
  )
})

const THREAT: Partial<NewEvent> = { type: 'threat_detected', severity: 'medium', confidence: 0.8 }
const CRAWLER: Partial<NewEvent> = { type: 'new_agent', agent: 'gptbot', category: 'crawler' }
/** Filters, and which of the events pass: the crawler, a threat by it, a threat by nobody known, a signature. */
const FILTERS: readonly [WebhookFilters | null, readonly number[]][] = [
  [null, [0, 1, 2, 3]],
  [{}, [0, 1, 2, 3]],
  [{ categories: ['crawler'] }, [0, 1]],
  [{ categories: ['llm-sdk', 'custom'] }, []],
  [{ agents: ['gptbot', 'claudebot'] }, [0, 1]],
  [{ agents: ['claudebot'] }, []],
  [{ min_severity: 'medium' }, [0, 1, 2, 3]],
  [{ min_severity: 'high' }, [0, 2, 3]],
  [{ min_severity: 'critical' }, [0, 3]],
  [{ min_confidence: 0.8 }, [0, 1, 3]],
  [{ min_confidence: 0.81 }, [0, 3]],
  [{ agents: ['gptbot'], min_severity: 'high' }, [0]],
  [{ apps: ['shop', 'blog'] }, [2]],
  [{ apps: ['default'] }, [0]],
  [{ apps: ['blog'] }, []],
]
test('a webhook gets the events of agents with the purposes that it asks for', async () => {
  const from = { source: 'a test', date: '2026-11-21' }
  const agent = (id: string, purpose: readonly string[]) =>
    parseSoftware({
      ...{ id, name: id, kind: 'agent', category: 'crawler', robots_token: id },
      ...(purpose.length > 0 && { purpose: purpose.map((is) => ({ is, ...from })) }),
    })
  const names = SoftwareNames.of([agent('gptbot', ['archive', 'training']), agent('unpublished', [])])
  const passes = (purposes: readonly string[], id: string | null, known: SoftwareNames | null = names) =>
    wants(
      { events: ['new_agent'], apps: '*', filters: { purposes } },
      event({ ...CRAWLER, agent: id }),
      known,
    )
  assert.equal(passes(['training'], 'gptbot'), true)
  assert.equal(passes(['search', 'archive'], 'gptbot'), true)
  assert.equal(passes(['search'], 'gptbot'), false)
  for (const id of ['unpublished', 'missing', null])
    assert.equal(passes(['training'], id), false, id ?? 'none')
  // Before the signatures are loaded, an event is sent rather than lost.
  assert.equal(passes(['training'], 'gptbot', null), true)
  assert.equal(passes(['training'], null, null), false)
})

test('a webhook is told of what its filters let pass', async (t) => {
  const site = await WebhookSite.start(t, await openFresh('sqlite', t))
  const receiver = await HookReceiver.start(t)
  const ids: string[] = []
  for (const [filters] of FILTERS) ids.push((await site.webhook(receiver.url, { filters })).id)
  const told = [
    event({ ...CRAWLER, app: 'default' }),
    event({ ...CRAWLER, ...THREAT }),
    event({ ...THREAT, severity: 'high', confidence: 0.1, app: 'shop' }),
    event(),
  ]
  await site.add(...told)
  for (const [index, [filters, passing]] of FILTERS.entries()) {
    const deliveries = await site.deliveries(ids[index]!)
    assert.deepEqual(
      deliveries.map(({ eventId }) => told.findIndex(({ id }) => id === eventId)).sort(),
      passing,
      JSON.stringify(filters),
    )
  }
  const types = await site.webhook(receiver.url, { events: ['new_agent'] })
  const off = await site.webhook(receiver.url, { isEnabled: false })
  await site.add(event(CRAWLER), event(THREAT))
  assert.equal((await site.deliveries(types.id)).length, 1)
  assert.equal((await site.deliveries(off.id)).length, 0)
})

function about(subject: string): NewEvent {
  return event({ subject, data: JSON.stringify({ subject }) })
}
