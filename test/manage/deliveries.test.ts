import assert from 'node:assert/strict'
import { test } from 'tap'
import { KINDS, openFresh } from '../store/databases.ts'
import { HookReceiver } from './webhook-receiver.ts'
import { event, WebhookSite } from './webhook-site.ts'

for (const kind of KINDS) {
  test(`${kind}: whoever verifies what comes with standardwebhooks, or svix, takes it`, async (t) => {
    const receiver = await HookReceiver.start(t)
    const site = await WebhookSite.start(t, await openFresh(kind, t))
    const { id, secret } = await site.webhook(`${receiver.url}/hook?x=1`)
    receiver.secret = secret
    const told = Array.from({ length: 40 }, () => event())
    const data = { text: 'ä "quoted" \u2028 \u0000 🎈', nested: [1, null, { a: 1.5 }] }
    await site.add(...told.slice(0, 39), { ...told[39]!, data: JSON.stringify(data) })
    await receiver.has(40)
    const deliveries = await site.until(id, (all) => all.every(({ status }) => status === 'delivered'))
    assert.equal(deliveries.length, 40)
    assert.deepEqual(receiver.unverified, [])
    assert.deepEqual(new Set(receiver.ids), new Set(told.map(({ id }) => id)))
    const last = receiver.all.find((each) => each.id === told[39]!.id)!
    assert.deepEqual(last.body, {
      ...{ type: 'new_signature', timestamp: new Date(told[39]!.atMs).toISOString(), data },
    })
    assert.deepEqual([last.path, last.headers['content-type']], ['/hook?x=1', 'application/json'])
    assert.ok(Math.abs(Number(last.headers['webhook-timestamp']) * 1000 - Date.now()) < 20_000)
    assert.ok(receiver.connections <= 20, `connections are kept: ${receiver.connections}`)
    assert.equal(await site.store.deliveries.countPending(), 0)
    const { health } = (await site.store.webhooks.byId(id))!
    assert.ok(health.lastDeliveryAtMs! > Date.now() - 20_000)
  })
}
