import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { caseDraft } from '../../src/manage/events/threats/threat-cases.ts'
import { EventLog } from '../../src/manage/events/event-log.ts'
import type { NewEvent } from '../../src/store/events/events.ts'
import { seen } from '../contract/seen.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { TestManagement } from './management.ts'
import { event } from './webhook-site.ts'

const JA4 = 't13d1312h2_f57a46bbacb6_ab7e3b40a677'
const SPOOFED = {
  evidence: ['spoofed-browser'],
  forged: [],
  verdict: 'automation',
  ja4: JA4,
  software: null,
  agent: null,
}

test('the subject of a case is the campaign, the agent, the fingerprint or the network', (t) => {
  const subjectOf = (given: Partial<NewEvent>, data: object) => {
    const draft = caseDraft(threat(data, given))!
    return [draft.identity, draft.campaign, draft.agent, draft.ja4, draft.address]
  }
  const detection = { fingerprints: { ja4: JA4 } }
  const request = { address: '192.0.2.77' }
  const of = { detection, request }
  assert.deepEqual(subjectOf({}, { ...of, campaign_id: 'cmp_1' }), [
    ...['blocked * campaign cmp_1', 'cmp_1', null, null, null],
  ])
  assert.deepEqual(subjectOf({ agent: 'gptbot', app: 'shop' }, of), [
    ...['blocked shop agent gptbot', null, 'gptbot', null, null],
  ])
  assert.deepEqual(subjectOf({}, of), [`blocked * ja4 ${JA4}`, null, null, JA4, null])
  const plain = { detection: { fingerprints: { ja4: '' } } }
  const network = (address: string | null) => subjectOf({}, { ...plain, request: { address } })[4]
  assert.equal(network('192.0.2.77'), '192.0.2.0/24')
  assert.equal(network('2001:db8:1:2::3'), '2001:db8:1::/48')
  assert.equal(network('192.0.2.0/24'), '192.0.2.0/24')
  assert.equal(network('hash:0123456789abcdef'), 'hash:0123456789abcdef')
  assert.equal(network('nonsense'), null)
  // A summary of many clients names the first of them, which says nothing about the others.
  const examples = [{ address: '192.0.2.1' }]
  assert.deepEqual(subjectOf({}, { ...of, examples }), ['blocked * many ', null, null, null, null])
  assert.equal(subjectOf({ agent: 'gptbot' }, { ...of, examples })[2], 'gptbot')
  for (const not of [{ type: 'new_agent' }, { type: 'test' }, { data: '{}' }, { data: '{"reason":"x"}' }])
    assert.equal(caseDraft({ ...threat({}), ...(not as Partial<NewEvent>) }), null)
  t.end()
})

for (const kind of KINDS) {
  test(`${kind}: two managers file the threats of one subject in one case, with all their events`, async (t) => {
    const url = await freshUrl(kind, t)
    const stores = [await openAt(t, url), await openAt(t, url)]
    const data = { detection: { fingerprints: { ja4: JA4 } }, count: 2 }
    const events = Array.from({ length: 12 }, (_, i) => threat(data, { atMs: 1_000 + i }))
    await Promise.all(
      [0, 1, 2, 3].map((part) => {
        const store = stores[part % 2]!
        const own = events.slice(part * 3, part * 3 + 3)
        return store.transaction((queries) => new EventLog(store).add(own, queries))
      }),
    )
    const { items } = await stores[0]!.cases.list({ page: 1, limit: 9 }, EVERY)
    assert.equal(items.length, 1)
    assert.deepEqual(
      [items[0]?.events, items[0]?.requests, items[0]?.firstAtMs, items[0]?.lastAtMs],
      [12, 24, 1_000, 1_011],
    )
    const filed = await stores[1]!.events.list(
      { page: 1, limit: 50 },
      { ...NO_FILTER, caseId: items[0]!.id },
      '*',
    )
    assert.deepEqual(
      filed.items.map(({ id }) => id),
      events.map(({ id }) => id).toReversed(),
    )
    // The manager was killed before its commit.
    const killed = stores[0]!.transaction(async (queries) => {
      await new EventLog(stores[0]!).add([threat(data)], queries)
      throw new Error('killed')
    })
    await assert.rejects(killed, /killed/)
    assert.equal((await stores[1]!.cases.byId(items[0]!.id, '*'))?.events, 12)
  })

  test(`${kind}: managers that are killed leave one case for each subject, with all its events`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    // Only one process opens a SQLite file.
    const rounds =
      kind === 'sqlite'
        ? [[5], [9]]
        : [
            [5, 40],
            [9, 40],
          ]
    const acknowledged: string[] = []
    for (const round of rounds) {
      const told = await Promise.all(round.map((killAfter) => filing(url, killAfter)))
      acknowledged.push(...told.flat())
    }
    assert.ok(acknowledged.length >= 14)
    const { items } = await store.cases.list({ page: 1, limit: 9 }, EVERY)
    assert.deepEqual(items.map(({ ja4 }) => ja4).toSorted(), ['t13d_0', 't13d_1', 't13d_2'])
    const filed: string[] = []
    for (const { id, events, requests } of items) {
      const found = await store.events.list({ page: 1, limit: 200 }, { ...NO_FILTER, caseId: id }, '*')
      assert.deepEqual([events, requests], [found.total, found.total])
      filed.push(...found.items.map((each) => each.id))
    }
    assert.deepEqual(
      acknowledged.filter((id) => !filed.includes(id)),
      [],
    )
    const all = await store.events.list({ page: 1, limit: 1 }, { ...NO_FILTER, caseId: null }, '*')
    assert.equal(filed.length, all.total)
  })

  test(`${kind}: a false alarm gives feedback on the requests that are kept`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, storeUrl: await freshUrl(kind, t) })
    const ask = (method: string, path: string, body?: unknown, headers = {}) =>
      manage.ask(method, path, body, headers)
    await manage.take(
      [1, 2].map((number) =>
        seen(number, { ...SPOOFED, address: `192.0.2.${number}`, seenAtMs: Date.now() }),
      ),
    )
    const { body: list } = await ask('GET', '/v1/cases?status=open&reason=spoofed_browser')
    assert.equal(list.total, 1)
    const [found] = list.cases
    assert.deepEqual(
      [found.ja4, found.agent_id, found.events, found.requests, found.status, found.changed_by],
      [JA4, null, 2, 2, 'open', null],
    )
    const path = `/v1/cases/${found.id}`
    const { body: events } = await ask('GET', `/v1/events?case_id=${found.id}`)
    assert.equal(events.total, 2)
    const reader = { authorization: `Bearer ${await manage.key({ scopes: ['read'] })}` }
    assert.equal((await ask('PATCH', path, { status: 'accepted' }, reader)).status, 403)
    assert.equal((await ask('PATCH', path, { verdict: 'human' })).status, 400)
    assert.equal((await ask('PATCH', path, { status: 'accepted', verdict: 'human' })).status, 400)
    assert.equal((await ask('PATCH', '/v1/cases/cas_none', { status: 'accepted' })).status, 404)
    const closed = await ask('PATCH', path, { status: 'false_alarm', note: 'our own monitor' })
    assert.deepEqual(
      [closed.status, closed.body.status, closed.body.note, closed.body.feedback],
      [200, 'false_alarm', 'our own monitor', 2],
    )
    assert.notEqual(closed.body.changed_at, null)
    const { body: audit } = await ask('GET', '/v1/audit?limit=50')
    const actions = audit.audit.map(({ action }: { action: string }) => action)
    assert.equal(actions.filter((each: string) => each === 'giveFeedback').length, 2)
    const entry = audit.audit.find(({ action }: { action: string }) => action === 'updateCase')
    assert.deepEqual(entry.subject, found.id)
    assert.deepEqual(entry.detail, {
      before: { status: 'open', note: null },
      after: { status: 'false_alarm', feedback: 2, note: 'our own monitor' },
    })
    // Later threats stay in the case, and do not open it again.
    await manage.take([seen(3, { ...SPOOFED, address: '192.0.2.3', seenAtMs: Date.now() })])
    const { body: later } = await ask('GET', path)
    assert.deepEqual([later.status, later.events], ['false_alarm', 3])
    assert.equal((await ask('GET', '/v1/cases?status=open')).body.total, 0)
    const none = await ask('PATCH', path, { status: 'false_alarm', verdict: null })
    assert.deepEqual([none.body.feedback, none.body.note], [0, 'our own monitor'])
    assert.equal((await ask('PATCH', path, { status: 'open' })).body.status, 'open')
  })
}

test('a change of a case needs the tag of its last change, which events do not touch', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const send = (number: number) =>
    manage.take([seen(number, { ...SPOOFED, address: `192.0.2.${number}`, seenAtMs: Date.now() })])
  await send(1)
  const path = `/v1/cases/${(await manage.ask('GET', '/v1/cases')).body.cases[0].id}`
  const read = await manage.ask('GET', path)
  const tag = read.headers.get('etag')!
  await send(2)
  assert.equal((await manage.ask('GET', path, undefined, { 'if-none-match': tag })).status, 200)
  const change = (ifMatch: string) =>
    manage.ask('PATCH', path, { status: 'accepted' }, { 'if-match': ifMatch })
  const both = await Promise.all([change(tag), change(tag)])
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 412])
  assert.equal((await change(tag)).status, 412)
  assert.equal((await change('*')).status, 200)
  const { headers } = await manage.ask('GET', path)
  assert.equal((await change(headers.get('etag')!)).status, 200)
})

test('credentials for some apps see their cases, and give no feedback', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  for (const id of ['shop', 'blog']) await manage.ask('POST', '/v1/apps', { id, hosts: [`${id}.example`] })
  await manage.take(
    ['shop', 'blog'].map((app, i) =>
      seen(i, { ...SPOOFED, app, address: '192.0.2.1', seenAtMs: Date.now() }),
    ),
  )
  const own = { authorization: `Bearer ${await manage.key({ scopes: ['read', 'admin'], apps: ['shop'] })}` }
  const { body } = await manage.ask('GET', '/v1/cases', undefined, own)
  assert.deepEqual(
    body.cases.map(({ app }: { app: string }) => app),
    ['shop'],
  )
  const { body: other } = await manage.ask('GET', '/v1/cases?app=blog')
  const foreign = `/v1/cases/${other.cases[0].id}`
  assert.equal((await manage.ask('GET', foreign, undefined, own)).status, 404)
  assert.equal((await manage.ask('PATCH', foreign, { status: 'accepted' }, own)).status, 404)
  const events = await manage.ask('GET', `/v1/events?case_id=${other.cases[0].id}`, undefined, own)
  assert.equal(events.body.total, 0)
  const path = `/v1/cases/${body.cases[0].id}`
  const refused = await manage.ask('PATCH', path, { status: 'false_alarm', verdict: 'human' }, own)
  assert.deepEqual([refused.status, refused.body.code], [403, 'needs_all_apps'])
  const closed = await manage.ask('PATCH', path, { status: 'false_alarm' }, own)
  assert.deepEqual([closed.status, closed.body.feedback], [200, 0])
})

/** A manager that is killed after so many threats. Resolves to those that it acknowledged. */
async function filing(url: string, killAfter: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [PROGRAM, url, '40'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const said: string[] = []
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line)
    if (said.length === killAfter) child.kill('SIGKILL')
  }
  await ended
  return said
}

const PROGRAM = new URL('case-process.ts', import.meta.url).pathname

function threat(data: object, given: Partial<NewEvent> = {}): NewEvent {
  return event({ type: 'threat_detected', data: JSON.stringify({ reason: 'blocked', ...data }), ...given })
}

const EVERY = { scope: '*', status: null, reasons: null, sinceMs: null, untilMs: null } as const
const NO_FILTER = {
  ...{ types: [], categories: [], agents: [], apps: [], severities: null, minConfidence: null },
  ...{ sinceMs: null, untilMs: null },
}
