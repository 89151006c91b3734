import assert from 'node:assert/strict'
import { test } from 'tap'
import { type CampaignList, MEMBERS_MAX } from '../../src/classify/campaign/members.ts'
import { REQUEST_KIND } from '../../src/classify/campaign/seen-request.ts'
import { type ActiveCampaign, Campaigns } from '../../src/manage/intake/campaigns.ts'
import { belongsTo, parseCampaign } from '../../src/manage/intake/campaign-record.ts'
import { SILENT } from '../contract/seen.ts'
import type { Store } from '../../src/store/store.ts'
import { KINDS, openFresh } from '../store/databases.ts'
import { CHROME, crawled, CRAWLED_MS } from './crawled.ts'
import { TestManagement } from './management.ts'
import { until } from '../until.ts'

const NOW_MS = CRAWLED_MS
/** What a manager does with Sightings: it takes them in, and runs once a second. */
class Manager {
  readonly campaigns: Campaigns
  readonly published: CampaignList[] = []
  readonly reported: ActiveCampaign[] = []

  constructor(store: Store, isShared = false) {
    this.campaigns = new Campaigns({
      store,
      log: SILENT,
      isShared,
      publish: (list) => this.published.push(list),
      report: async (active) => void this.reported.push(...active),
    })
  }

  async runFor(fromMs: number, seconds: number): Promise<void> {
    for (let s = 0; s <= seconds; s++) while ((await this.campaigns.run(fromMs + s * 1_000)) === 'more');
  }
}

for (const kind of KINDS) {
  test(`${kind}: a campaign is found, stored, published and reported once`, async (t) => {
    const store = await openFresh(kind, t)
    const manager = new Manager(store)
    await manager.runFor(NOW_MS, 0)
    const batch = crawled(800)
    manager.campaigns.take(batch)
    await manager.runFor(NOW_MS + 80_000, 12)
    const { items, total } = await store.campaigns.list({ page: 1, limit: 10 })
    assert.equal(total, 1)
    const record = parseCampaign(items[0]!.document)!
    assert.deepEqual(
      [record.host, record.software, record.ja4, record.members.length],
      ['shop.test', 'chrome', CHROME.ja4, 200],
    )
    assert.ok(record.signs.coverage.distinct > 300, `${record.signs.coverage.distinct}`)
    assert.deepEqual(
      manager.reported.map(({ isNew }) => isNew),
      [true],
    )
    const list = manager.published.at(-1)!
    assert.deepEqual(
      list.campaigns.map(({ id, program, members }) => [id, program, members.length]),
      [[record.id, CHROME.program, 200]],
    )
    // Its members' pages are its requests, also those from before, and no one else's.
    const isOf = belongsTo(record)
    assert.equal(batch.filter(isOf).length, 800)
    const [one] = batch
    const others = [
      { ...one!, address: '198.51.100.250' },
      { ...one!, program: 1 },
      { ...one!, requestKind: REQUEST_KIND.part },
      { ...one!, host: 'other.test' },
    ]
    assert.deepEqual(others.filter(isOf), [])
    assert.equal(isOf({ ...others[0]!, campaign: record.id }), true)
    // It goes on.
    manager.campaigns.take(crawled(100, NOW_MS + 100_000))
    await manager.runFor(NOW_MS + 111_000, 12)
    assert.deepEqual(
      manager.reported.slice(1).map(({ isNew, requests }) => [isNew, requests]),
      [[false, 100]],
    )
  })

  test(`${kind}: a process that starts knows the campaigns that go on`, async (t) => {
    const store = await openFresh(kind, t)
    const first = new Manager(store)
    await first.runFor(NOW_MS, 0)
    first.campaigns.take(crawled(800))
    await first.runFor(NOW_MS + 80_000, 12)
    const next = new Manager(store)
    await next.runFor(NOW_MS + 200_000, 0)
    assert.deepEqual(next.published, [first.published.at(-1)])
    next.campaigns.take(crawled(50, NOW_MS + 201_000))
    await next.runFor(NOW_MS + 210_000, 12)
    assert.deepEqual(
      next.reported.map(({ isNew, requests }) => [isNew, requests]),
      [[false, 50]],
    )
    const late = new Manager(store)
    await late.runFor(NOW_MS + 2 * 3_600_000, 0)
    assert.deepEqual(late.published, [])
  })

  test(`${kind}: the leader counts what all managers receive`, async (t) => {
    const store = await openFresh(kind, t)
    const managers = [new Manager(store, true), new Manager(store, true), new Manager(store, true)]
    const [leader] = managers
    const batch = crawled(800)
    for (const [i, manager] of managers.entries())
      manager.campaigns.take(batch.filter((_, at) => at % 3 === i))
    await leader!.runFor(NOW_MS + 80_000, 0)
    await until(async () => {
      await leader!.runFor(NOW_MS + 81_000, 12)
      return leader!.reported.length > 0
    })
    assert.equal(leader!.published.at(-1)!.campaigns[0]!.members.length, 200)
    assert.deepEqual(await store.campaigns.take(10), [])
    assert.deepEqual(
      managers.slice(1).flatMap(({ published }) => published),
      [],
    )
  })

  test(`${kind}: campaigns and what was left for the leader are forgotten`, async (t) => {
    const { campaigns } = await openFresh(kind, t)
    const row = (id: string, lastSeenMs: number) => ({ id, foundAtMs: 1, lastSeenMs, document: '{}' })
    await campaigns.put([row('cmp_1', 10), row('cmp_2', 20)])
    await campaigns.put([row('cmp_1', 30)])
    assert.equal(await campaigns.forget(25, 10), 1)
    assert.deepEqual(
      (await campaigns.since(0, 10)).map(({ id }) => id),
      ['cmp_1'],
    )
    assert.equal(await campaigns.byId('cmp_2'), null)
    await campaigns.leave('[]', 5)
    await campaigns.leave('[1]', 15)
    assert.equal(await campaigns.forgetLeft(10, 10), 1)
    assert.deepEqual(await campaigns.take(10), ['[1]'])
  })
}

test('a damaged campaign is left out, and requests that no proxy sends are not counted', async (t) => {
  const store = await openFresh('sqlite', t)
  const damaged = { id: 'cmp_1', foundAtMs: NOW_MS, lastSeenMs: NOW_MS, document: '{"id":1}' }
  await store.campaigns.put([damaged])
  for (const left of ['{', '[{"address":1}]', 'null', '{"words":"AAAA","programs":[],"hosts":[]}'])
    await store.campaigns.leave(left, NOW_MS)
  const manager = new Manager(store, true)
  await manager.runFor(NOW_MS, 10)
  assert.deepEqual([manager.published, manager.reported], [[], []])
})

test('each part of a stored campaign is read as if anyone had written it', async (t) => {
  const store = await openFresh('sqlite', t)
  const manager = new Manager(store)
  await manager.runFor(NOW_MS, 0)
  manager.campaigns.take(crawled(800))
  await manager.runFor(NOW_MS + 80_000, 12)
  const { items } = await store.campaigns.list({ page: 1, limit: 10 })
  const good = JSON.parse(items[0]!.document)
  assert.notEqual(parseCampaign(JSON.stringify(good)), null)
  const members = Array.from({ length: MEMBERS_MAX + 1 }, (_, i) => [i, NOW_MS])
  for (const bad of [
    ...[{ id: 'cmp_\n' }, { id: 1 }, { members }, { members: [[1]] }, { members: [[2 ** 32, NOW_MS]] }],
    ...[{ members: [[1, '1']] }, { members: [null] }, { foundAtMs: 1e300 }, { lastSeenMs: -1 }],
    ...[{ requests: null }, { userAgent: 'x'.repeat(1_025) }, { host: 1 }, { signs: null }, { salt: 1.5 }],
  ])
    assert.equal(parseCampaign(JSON.stringify({ ...good, ...bad })), null, JSON.stringify(bad).slice(0, 80))
  // It cannot go on for ever.
  const late = {
    ...good,
    lastSeenMs: NOW_MS * 2,
    members: good.members.map(([of]: [number]) => [of, NOW_MS * 2]),
  }
  await store.campaigns.put([{ ...late, document: JSON.stringify(late) }])
  const next = new Manager(store)
  await next.runFor(NOW_MS + 90_000, 0)
  assert.equal(next.campaigns.running.length, 1)
  await next.runFor(NOW_MS + 2 * 3_600_000, 6)
  assert.deepEqual(next.campaigns.running, [])
})

for (const isShared of [false, true])
  test(`requests of other times do not stop the search ${isShared ? 'in a fleet' : 'of one gateway'}`, async (t) => {
    const store = await openFresh('sqlite', t)
    const manager = new Manager(store, isShared)
    await manager.runFor(NOW_MS, 0)
    const [one] = crawled(1)
    manager.campaigns.take([0, 1, NOW_MS - 86_400_000, NOW_MS * 2].map((seenAtMs) => ({ ...one!, seenAtMs })))
    manager.campaigns.take(crawled(800))
    await manager.runFor(NOW_MS + 80_000, 0)
    await until(async () => {
      await manager.runFor(NOW_MS + 81_000, 12)
      return manager.reported.length > 0
    })
    assert.equal(manager.campaigns.running[0]!.members.size, 200)
  })

test('the API lists campaigns and the requests of each, and an event is told', async (t) => {
  const manage = await TestManagement.start(t)
  const fromMs = Date.now() - 120_000
  const began = await manage.ask('GET', '/v1/campaigns')
  assert.deepEqual([began.status, began.body.campaigns, began.body.total], [200, [], 0])
  // What comes before the first run is not counted.
  let rounds = 0
  await until(async () => {
    await manage.take(crawled(800, fromMs, 1_000 * rounds++))
    return (await manage.ask('GET', '/v1/campaigns')).body.total === 1
  })
  const { body } = await manage.ask('GET', '/v1/campaigns')
  const [campaign] = body.campaigns
  assert.deepEqual(
    [campaign.state, campaign.host, campaign.software_id, campaign.fingerprints.ja4],
    ['running', 'shop.test', 'chrome', CHROME.ja4],
  )
  assert.deepEqual((await manage.ask('GET', `/v1/campaigns/${campaign.id}`)).body.id, campaign.id)
  assert.equal((await manage.ask('GET', '/v1/campaigns/cmp_none')).status, 404)
  // A reader sees no secret of a client.
  const { key } = (await manage.ask('POST', '/v1/keys', { name: 'reader', scopes: ['read'] })).body
  const asReader = { authorization: `Bearer ${key}` }
  for (const path of ['/v1/campaigns', `/v1/campaigns/${campaign.id}`]) {
    const { status, body } = await manage.ask('GET', path, undefined, asReader)
    assert.equal(status, 200)
    assert.match(JSON.stringify(body), /Chrome\/156\.0\.0\.0 \[redacted\]/)
  }
  const { key: detector } = (await manage.ask('POST', '/v1/keys', { name: 'd', scopes: ['detect'] })).body
  const asDetector = { authorization: `Bearer ${detector}` }
  assert.equal((await manage.ask('GET', '/v1/campaigns', undefined, asDetector)).status, 403)
  assert.equal((await manage.ask('GET', "/v1/campaigns/'%20or%201=1")).status, 404)
  const of = await manage.ask('GET', `/v1/requests?campaign_id=${campaign.id}&limit=50`)
  assert.equal(of.body.requests.length, 50)
  const none = await manage.ask('GET', '/v1/requests?campaign_id=cmp_none')
  assert.deepEqual([none.status, none.body.requests], [200, []])
  const events = await manage.ask('GET', '/v1/events?types=threat_detected')
  const told = events.body.events.find(
    ({ data }: { data: { reason: string } }) => data.reason === 'crawl_campaign',
  )
  assert.equal(told.data.campaign_id, campaign.id)
})

test('without the setting, no campaign is looked for', async (t) => {
  const manage = await TestManagement.start(t, { findsCampaigns: false })
  await manage.take(crawled(800, Date.now() - 120_000))
  assert.equal((await manage.ask('GET', '/v1/campaigns')).body.total, 0)
})
