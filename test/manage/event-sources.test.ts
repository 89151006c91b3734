import assert from 'node:assert/strict'
import { test } from 'tap'
import { parseSoftware } from '../../src/classify/known/software.ts'
import type { EventLog } from '../../src/manage/events/event-log.ts'
import { SightingKeeper } from '../../src/manage/intake/sighting-keeper.ts'
import { IngestMetrics } from '../../src/manage/intake/ingest-metrics.ts'
import { Metrics, metricsText } from '../../src/shared/metrics.ts'
import { DAY_MS, ingestInto, NOW_MS, RETENTION, SILENT, START_MS } from '../contract/seen.ts'
import type { DatabaseKind } from '../../src/store/engine/database.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { blocked, quiet, type Told, Watching } from './event-sources.ts'

for (const kind of KINDS) {
  test(`${kind}: an agent that is seen for the first time is told once, claimed or proven`, async (t) => {
    const watching = new Watching(await known(kind, t))
    const first = quiet(2, { ...GPTBOT, ja4s: 't130200_1301_a56c5b993250', userAgent: 'GPTBot/1.2' })
    await watching.ingest.take([quiet(5, GPTBOT), first, quiet(3, GPTBOT), quiet(4)])
    await watching.ingest.take([first, quiet(6, { ...GPTBOT, verified: 'ip-range' })])
    const signed = { verified: 'web-bot-auth', signer: 'https://claude.test', key: 'k1' }
    await watching.ingest.take([quiet(7, { ...GPTBOT, agent: 'claudebot', ...signed })])
    const [gptbot, claudebot, ...others] = await watching.told()
    assert.deepEqual(others, [])
    assert.deepEqual(gptbot, {
      ...{ type: 'new_agent', atMs: NOW_MS, subject: `ja4 ${JA4}` },
      ...{ agent: 'gptbot', category: 'crawler', severity: null, confidence: 0.9, app: 'default' },
      data: {
        app: 'default',
        agent: { id: 'gptbot', name: 'GPTBot', category: 'crawler', purpose: ['training'] },
        fingerprints: { ja4: JA4, ja4s: 't130200_1301_a56c5b993250', ja4h: '', ja4x: '' },
        ...{ verified: null, proof: null },
        first_seen: new Date(first.seenAtMs).toISOString(),
        sighting: {
          ...{ id: first.id, seen_at: new Date(first.seenAtMs).toISOString(), proxy: 'one', app: 'default' },
          ...{ method: 'GET', host: 'app.example.test', path: '/', address: '192.0.2.1' },
          ...{ user_agent: 'GPTBot/1.2', verdict: 'agent', confidence: 0.9, name_confidence: 0.5 },
          ...{ rule: 'otherwise', layer: 'last', action: 'tag', dry_run: null },
        },
      },
    })
    // Nobody knows what it is called.
    const claude = { id: 'claudebot', name: 'claudebot', category: 'crawler', purpose: ['training'] }
    assert.deepEqual(claudebot!.data['agent'], claude)
    assert.equal(claudebot!.data['verified'], 'web-bot-auth')
    const proof = { method: 'web-bot-auth', agent: 'https://claude.test', key: 'k1' }
    assert.deepEqual(claudebot!.data['proof'], proof)
  })

  test(`${kind}: a threat is told at once, and what follows when the window ends`, async (t) => {
    const watching = new Watching(await known(kind, t))
    const change = { ...GPTBOT, software: 'gptbot', evidence: ['names-agent', 'address-foreign'], path: '/a' }
    await watching.ingest.take([blocked(3), quiet(2), blocked(1), quiet(4, { ...GPTBOT, address: '::1' })])
    await watching.ingest.take([quiet(5, change)])
    const [, first, foreign, ...others] = await watching.told()
    assert.deepEqual(others, [])
    assert.deepEqual(first, {
      ...{ type: 'threat_detected', atMs: NOW_MS, subject: `ja4 ${JA4}` },
      ...{ agent: null, category: null, severity: 'low', confidence: 0.25, app: 'default' },
      data: {
        app: 'default',
        ...{ reason: 'blocked', severity: 'low', detail: 'it was refused (block) by no curl' },
        detection: {
          ...{ is_agent: false, confidence: 0, agent_name: null, agent_category: null },
          fingerprints: { ja4: JA4, ja4s: '', ja4h: '' },
          ...{
            agent_purpose: [],
            name_confidence: 0,
            agent_id: null,
            verified: null,
            proof: null,
            conflicts: [],
            verdict: 'unknown',
            software: null,
          },
          evidence: [{ kind: 'names-tool', detail: 'names tool', weight: 0 }],
          request_id: blocked(1).id,
        },
        action: 'block',
        request: { method: 'GET', host: 'app.example.test', path: '/', address: '192.0.2.1' },
        ...{ count: 2, since: isoOf(1), until: isoOf(3) },
      },
    })
    assert.deepEqual([foreign!.severity, foreign!.agent, foreign!.category], ['high', 'gptbot', 'crawler'])
    const { agent_name, software: program } = foreign!.data['detection'] as Record<string, unknown>
    assert.deepEqual([agent_name, program], ['GPTBot', { id: 'gptbot', name: 'GPTBot', kind: 'agent' }])

    await watching.later(299_999)
    await watching.ingest.take([blocked(9), blocked(7), blocked(8, { address: '192.0.2.9' })])
    await watching.ingest.take([blocked(6), blocked(9)])
    assert.deepEqual((await watching.counts()).slice(3), ['blocked 1'])
    await watching.later(1)
    const followed = (await watching.told()).at(-1)!
    assert.deepEqual(followed.data, {
      ...first!.data,
      ...{ count: 3, since: isoOf(6), until: isoOf(9) },
    })
    assert.equal(followed.subject, first!.subject)
    // It goes on, and is counted for as long again.
    await watching.ingest.take([blocked(20)])
    await watching.later(299_999)
    assert.deepEqual((await watching.counts()).slice(3), ['blocked 1', 'blocked 3'])
    await watching.later(1)
    // Nothing follows in that one: it is over, and the next is told at once.
    await watching.later(300_000)
    assert.equal(await watching.store.threatWindows.rows(), 0)
    await watching.ingest.take([blocked(10)])
    const told = await watching.counts()
    assert.deepEqual(told.slice(3), ['blocked 1', 'blocked 3', 'blocked 1', 'blocked 1'])
  })

  test(`${kind}: however often batches come, and in whatever order, each request counts once`, async (t) => {
    const watching = new Watching(await openFresh(kind, t))
    const batch = Array.from({ length: 100 }, (_, number) =>
      blocked(number, { address: `192.0.2.${number % 4}` }),
    )
    const slices = [batch.slice(60), batch.slice(0, 70), batch.slice(30), batch, batch.toReversed()]
    await Promise.all(slices.map((slice) => watching.ingest.take(slice)))
    for (const slice of slices) await watching.ingest.take(slice)
    await watching.later(300_000)
    const told = await watching.told()
    const addresses = told.map(({ data }) => (data['request'] as { address: string }).address)
    assert.deepEqual([...new Set(addresses)].length, 4)
    assert.equal(sumOf(told), 100)
  })

  test(`${kind}: what is not stored is neither counted nor told`, async (t) => {
    const store = await known(kind, t)
    const watching = new Watching(store)
    let failing = true
    const { ingest } = ingestInto(store, {
      events: async (...given) => {
        const afterCommit = await watching.sources.sightings(...given)
        if (failing) throw Object.assign(new Error('full'), { code: 'STORE_FULL' })
        return afterCommit
      },
    })
    await assert.rejects(ingest.take([blocked(1), quiet(2, GPTBOT)]), { code: 'STORE_FULL' })
    assert.deepEqual(await watching.told(), [])
    assert.equal(await store.threatWindows.rows(), 0)
    failing = false
    await ingest.take([blocked(1), quiet(2, GPTBOT), blocked(3)])
    assert.deepEqual(await watching.counts(), ['new_agent', 'blocked 2'])
    const metrics = new Metrics()
    watching.metrics.addTo(metrics)
    const text = await metricsText([await metrics.read()])
    assert.match(text, /^gatehouse_events_total\{type="new_agent"\} 1$/m)
    assert.match(text, /^gatehouse_events_total\{type="threat_detected"\} 1$/m)
    assert.match(text, /^gatehouse_threats_total\{reason="blocked"\} 2$/m)
    assert.match(text, /^gatehouse_threats_suppressed_total\{reason="blocked"\} 0$/m)
  })

  test(`${kind}: a storm is one event a minute, whatever is different in it`, async (t) => {
    const watching = new Watching(await openFresh(kind, t), { eventsPerMinute: 3 })
    let number = 0
    const storm = (count: number) =>
      Array.from({ length: count }, () => {
        const at = number++
        return blocked(at, { address: `10.1.${at >> 8}.${at & 255}`, ja4: `t13d_${at % 7}` })
      })
    await watching.ingest.take(storm(200))
    await watching.ingest.take(storm(300))
    await watching.ingest.take([quiet(number++, { limited: true })])
    assert.deepEqual(await watching.counts(), ['blocked 1', 'blocked 1', 'blocked 1', 'rate_limited 1'])
    await watching.later(60_000)
    const [, , , , told, ...others] = await watching.told()
    assert.deepEqual(others, [])
    const { count, addresses, fingerprints, examples, since, until, reason } = told!.data
    assert.deepEqual([reason, count, fingerprints, since, until], ['blocked', 497, 7, isoOf(3), isoOf(499)])
    assert.ok((addresses as number) > 300 && (addresses as number) < 700, `${addresses}`)
    assert.deepEqual((examples as unknown[]).length, 5)
    assert.deepEqual((examples as unknown[])[0], {
      ...{ address: '10.1.0.3', fingerprint: 't13d_3', agent_id: null, count: 1 },
    })
    assert.deepEqual([told!.subject, told!.severity, told!.confidence], ['blocked', 'low', 0.25])
    // The next minute is another, and what is told of the last one is told by whoever comes first.
    await watching.ingest.take(storm(5))
    watching.nowMs += 60_000
    await watching.ingest.take(storm(1))
    assert.deepEqual((await watching.counts()).slice(5), [...THRICE, 'blocked 2', 'blocked 1'])
    assert.equal(await watching.store.threatWindows.rows(), 8)
  })

  test(`${kind}: threats and storms of one app hide none of another`, async (t) => {
    const watching = new Watching(await openFresh(kind, t), { eventsPerMinute: 2 })
    const flood = Array.from({ length: 50 }, (_, at) => blocked(at, { app: 'shop', address: `10.1.1.${at}` }))
    const same = { address: '10.1.1.0' }
    await watching.ingest.take([
      ...flood,
      blocked(60, { ...same, app: 'blog' }),
      blocked(61, { ...same, app: 'blog' }),
      blocked(62, same),
    ])
    const shown = async () =>
      (await watching.told()).map(({ app, subject, data }) => [app, data['app'], data['count'], subject])
    assert.deepEqual(await shown(), [
      ['shop', 'shop', 1, `ja4 ${JA4}`],
      ['shop', 'shop', 1, `ja4 ${JA4}`],
      ['blog', 'blog', 2, `ja4 ${JA4}`],
      ['default', 'default', 1, `ja4 ${JA4}`],
    ])
    await watching.later(60_000)
    assert.deepEqual((await shown()).slice(4), [['shop', 'shop', 48, 'blocked shop']])
    await watching.ingest.take([blocked(70, { ...same, app: 'blog' })])
    await watching.later(300_000)
    assert.deepEqual((await shown()).slice(5), [['blog', 'blog', 1, `ja4 ${JA4}`]])
    const { count } = (await watching.told()).at(-1)!.data
    assert.equal(count, 1)
  })

  test(`${kind}: windows of an earlier version go on, without an app`, async (t) => {
    const watching = new Watching(await openFresh(kind, t))
    await watching.ingest.take([blocked(1)])
    const [window] = await watching.store.threatWindows.ended(Number.MAX_SAFE_INTEGER, 1)
    const { app: _, ...draft } = JSON.parse(window!.event)
    await watching.store.transaction(async (queries) => {
      await watching.store.threatWindows.remove([window!.key], queries)
      await watching.store.threatWindows.put([{ ...window!, event: JSON.stringify(draft) }], queries)
    })
    await watching.ingest.take([blocked(2)])
    await watching.later(300_000)
    assert.deepEqual(
      (await watching.told()).map(({ app }) => app),
      ['default', null],
    )
  })

  test(`${kind}: of a storm is said whose it is, where it is one’s`, async (t) => {
    const watching = new Watching(await openFresh(kind, t), { eventsPerMinute: 1 })
    const by = (number: number, agent: string, confidence: number) =>
      blocked(number, { ...GPTBOT, agent, confidence, address: `10.1.2.${number}` })
    const last = async () => {
      await watching.later(60_000)
      const { agent, category, confidence } = (await watching.told()).at(-1)!
      return [agent, category, confidence]
    }
    await watching.ingest.take([by(1, 'gptbot', 0.7), by(2, 'gptbot', 0.9), by(3, 'gptbot', 0.8)])
    await watching.ingest.take([by(4, 'gptbot', 0.95)])
    assert.deepEqual(await last(), ['gptbot', 'crawler', 0.8])
    await watching.ingest.take([by(5, 'gptbot', 0.7), by(6, 'gptbot', 0.9)])
    await watching.ingest.take([by(7, 'claudebot', 0.8)])
    assert.deepEqual(await last(), [null, 'crawler', 0.8])
  })

  test(`${kind}: windows that end with a storm are told in it, and go`, async (t) => {
    const watching = new Watching(await openFresh(kind, t), { eventsPerMinute: 2, windowMs: 60_000 })
    const of = (number: number, address: number) => blocked(number, { address: `10.1.1.${address}` })
    await watching.ingest.take([of(1, 1), of(2, 2)])
    await watching.ingest.take([of(3, 1), of(4, 2), of(5, 2)])
    watching.nowMs += 60_000
    // Two others take what may be told in this minute.
    await watching.ingest.take([of(6, 3), of(7, 4)])
    await watching.later(0)
    assert.deepEqual((await watching.counts()).slice(4), [])
    assert.equal(await watching.store.threatWindows.rows(), 2)
    await watching.later(60_000)
    const { data } = (await watching.told()).at(-1)!
    assert.deepEqual([data['count'], data['addresses'], data['fingerprints']], [3, 2, 1])
    assert.deepEqual(data['examples'], [
      { address: '10.1.1.1', fingerprint: JA4, agent_id: null, count: 1 },
      { address: '10.1.1.2', fingerprint: JA4, agent_id: null, count: 2 },
    ])
  })

  test(`${kind}: signatures that enter the database are told in the form of the API`, async (t) => {
    const store = await known(kind, t)
    const watching = new Watching(store, { eventsPerMinute: 2 })
    const observed = { addressesMin: 1, requestsMin: 1, max: 100 }
    const settings = { sightingsMs: DAY_MS, sightingsMax: 1e6, bytesMax: null, rollups: RETENTION, observed }
    const keeper = new SightingKeeper({
      ...{ store, settings, observed: watching.signatures.observed, metrics: new IngestMetrics() },
      ...{ log: SILENT, isLeading: () => true },
    })
    const { ingest } = ingestInto(store, { stored: (_, unnamed) => keeper.noticed(unnamed) })
    await ingest.take([quiet(1, { ja4: 'one' }), quiet(2, { ja4: 'one' })])
    await keeper.observe()
    await keeper.observe()
    const [one, ...others] = await watching.told()
    assert.deepEqual(others, [])
    assert.deepEqual(one, {
      ...{ type: 'new_signature', atMs: NOW_MS, subject: 'ja4 one' },
      ...{ agent: null, category: null, severity: null, confidence: 0, app: null },
      data: {
        app: null,
        signature: {
          ...{ fingerprint: 'one', type: 'ja4', agent_name: null, agent_id: null, kind: null },
          ...{ first_seen: isoOf(1), last_seen: isoOf(2), confidence: 0, observations: 2 },
          ...{ requests_seen: 2, source: 'observed', status: 'unknown', decisive: false },
        },
      },
    })
    // Many at once are one more, and then one for all.
    await ingest.take(Array.from({ length: 40 }, (_, number) => quiet(number + 10, { ja4: `many${number}` })))
    await keeper.observe()
    assert.deepEqual((await watching.told()).length, 2)
    await watching.later(60_000)
    const { type, subject, data } = (await watching.told()).at(-1)!
    assert.deepEqual([type, subject, data['count']], ['new_signature', 'new_signature', 39])
    assert.deepEqual(Object.keys(data).sort(), [
      ...['app', 'count', 'examples', 'fingerprints', 'signature', 'since', 'until'],
    ])
  })

  test(`${kind}: an agent that asks for far more than it does is told once, by any process`, async (t) => {
    const store = await known(kind, t)
    const watching = new Watching(store)
    const minute = Math.floor(NOW_MS / 60_000) * 60_000
    let number = 0
    const at = (minutesAgo: number, count: number, agent: string) =>
      Array.from({ length: count }, () =>
        quiet(number++, { ...GPTBOT, agent, seenAtMs: minute - minutesAgo * 60_000 }),
      )
    const past = Array.from({ length: 20 }, (_, hour) => 21 + hour * 5)
    await watching.ingest.take([
      ...past.flatMap((ago) => [...at(ago, 4, 'gptbot'), ...at(ago, 40, 'claudebot')]),
      ...[...at(3, 350, 'gptbot'), ...at(3, 350, 'claudebot'), ...at(3, 350, 'newcomer')],
    ])
    const before = (await watching.told()).length
    const other = new Watching(store)
    await Promise.all([watching.sources.compare(), other.sources.compare()])
    await watching.sources.compare()
    const [told, ...others] = (await watching.told()).slice(before)
    assert.deepEqual(others, [])
    assert.deepEqual(told, {
      ...{ type: 'threat_detected', atMs: NOW_MS, subject: 'agent gptbot', agent: 'gptbot' },
      ...{ category: 'crawler', severity: 'medium', confidence: null, app: null },
      data: {
        app: null,
        ...{ reason: 'rate_anomaly', severity: 'medium' },
        detail: '350 requests in five minutes, where 4 are usual for it',
        detection: {
          ...{ is_agent: true, confidence: 0, agent_name: 'GPTBot', agent_category: 'crawler' },
          fingerprints: { ja4: '', ja4s: '', ja4h: '' },
          ...{
            agent_purpose: ['training'],
            name_confidence: 0,
            agent_id: 'gptbot',
            verified: null,
            proof: null,
          },
          ...{ conflicts: [], verdict: 'agent' },
          software: { id: 'gptbot', name: 'GPTBot', kind: 'agent' },
          ...{ evidence: [], request_id: '' },
        },
        action: null,
        request: { method: null, host: null, path: null, address: null },
        count: 350,
        since: new Date(minute - 300_000).toISOString(),
        until: new Date(minute).toISOString(),
      },
    })
    // It goes on: what is new of it is counted, once.
    watching.nowMs = NOW_MS + 60_000
    await watching.ingest.take(at(0, 30, 'gptbot'))
    for (let time = 0; time < 2; time++) await watching.sources.compare()
    await watching.later(300_000)
    assert.deepEqual((await watching.counts()).slice(before), ['rate_anomaly 350', 'rate_anomaly 30'])
  })
}

test('two processes tell of one threat once, and count together', async (t) => {
  const url = await freshUrl('postgres', t)
  const [one, two] = [new Watching(await openAt(t, url)), new Watching(await openAt(t, url))]
  const half = (from: number) => Array.from({ length: 50 }, (_, at) => blocked(from + at * 2))
  await Promise.all([0, 1].flatMap((from) => [one.ingest.take(half(from)), two.ingest.take(half(from))]))
  two.nowMs += 300_000
  await Promise.all([one.later(300_000), two.later(0)])
  const told = await one.told()
  assert.ok(told.length <= 2, `${told.length}`)
  assert.equal(sumOf(told), 100)
})

test('whoever sends events is told that there are some, once they are there', async (t) => {
  const watching = new Watching(await openFresh('sqlite', t))
  let times = 0
  const log: EventLog = watching.log
  log.onAdded(() => times++)
  await watching.ingest.take([quiet(1)])
  assert.equal(times, 0)
  await watching.ingest.take([blocked(2)])
  await watching.ingest.take([blocked(3)])
  assert.equal(times, 1)
})

async function known(kind: DatabaseKind, t: Parameters<typeof openFresh>[1]): Promise<Store> {
  const store = await openFresh(kind, t)
  await store.transaction((queries) =>
    store.catalogue.addSoftware(parseSoftware(SOFTWARE), START_MS, queries),
  )
  return store
}

function sumOf(told: readonly Told[]): number {
  return told.reduce((sum, { data }) => sum + (data['count'] as number), 0)
}

function isoOf(number: number): string {
  return new Date(START_MS + number).toISOString()
}

const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const GPTBOT = {
  ...{ verdict: 'agent', agent: 'gptbot', category: 'crawler', confidence: 0.9, nameConfidence: 0.5 },
  purposes: ['training'],
}
const SOFTWARE = {
  ...{ id: 'gptbot', name: 'GPTBot', kind: 'agent', category: 'crawler' },
  purpose: { is: 'training', source: 'gptbot.test', date: '2026-11-21' },
}
const THRICE = ['blocked 1', 'blocked 1', 'blocked 1']
