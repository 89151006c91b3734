import assert from 'node:assert/strict'
import { test } from 'tap'
import { AddressHasher } from '../../src/plane/privacy/address-form.ts'
import { Campaigns } from '../../src/manage/intake/campaigns.ts'
import { parseCampaign } from '../../src/manage/intake/campaign-record.ts'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { erase, type Erased } from '../../src/manage/privacy/erase.ts'
import type { Store } from '../../src/store/store.ts'
import { SILENT, seen } from '../contract/seen.ts'
import { allText } from '../store/all-text.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { CRAWLED_MS, crawled } from './crawled.ts'
import { SETTINGS, TestManagement } from './management.ts'
import { HookReceiver } from './webhook-receiver.ts'
import { until } from '../until.ts'

const HASHER = new AddressHasher('the key of this test')
const OLD_HASHER = new AddressHasher('an earlier key of this test')
const COOKIES = 'c00c1ec00c1e'

for (const kind of KINDS) {
  for (const [address, forms, others] of CLIENTS())
    test(`${kind}: ${address} is erased in every form and every table, and others stay`, async (t) => {
      const { store, storeUrl } = await filled(t, kind, [...forms, ...others])
      const before = await allText(storeUrl)
      for (const form of [...forms, ...others]) assert.ok(before.includes(`"${form}"`), form)

      const dry = await rowsOf(store, { address }, true)
      assert.ok((await allText(storeUrl)) === before, 'a dry run changes nothing')
      const done = await rowsOf(store, { address })
      const { sighting_profiles: profiles, ...counted } = done
      assert.deepEqual(counted, dry)
      assert.ok(profiles! >= 1, 'the profiles that no other request has')
      assert.equal(done['sightings'], 3 * forms.length)
      for (const table of ['events', 'deliveries', 'threat_windows', 'event_storms', 'fingerprints_seen'])
        assert.ok(done[table]! > 0, table)

      const text = await allText(storeUrl)
      for (const form of forms) assert.ok(!text.includes(`${form}"`), `${form} is nowhere`)
      assert.ok(!text.includes(`/of/${forms[0]}`), 'no path of the client')
      assert.ok(!text.includes(COOKIES), 'no hash of its cookies')
      for (const form of others) assert.ok(text.includes(`"${form}"`), `${form} stays`)
      assert.ok(!text.includes(`"${address}"`), 'not in the audit log either')

      const again = await rowsOf(store, { address })
      assert.deepEqual(new Set(Object.values(again)), new Set([0]))
      const { items } = await store.audit.list({ page: 1, limit: 1 })
      assert.deepEqual(
        [items[0]!.action, items[0]!.subject, items[0]!.detail['of']],
        ['erasePerson', null, 'address'],
      )
      const events = await store.events.after(0, 100)
      const blank = events.filter(({ data }) => JSON.parse(data).request?.address === null)
      assert.equal(blank.length, done['events'], 'the events stay')
    })

  test(`${kind}: a user is erased with sessions, tasks and e-mail address, and others stay`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const ids = await Promise.all(
      ['anna@example.com', 'ben@example.com'].map(async (email) => {
        const made = await manage.ask('POST', '/v1/users', { email, scopes: ['read'] })
        return made.body.id as string
      }),
    )
    const store = await openAt(t, storeUrl)
    for (const id of ids) await fillAccount(store, id)
    await manage.stop()
    const [anna, ben] = ids as [string, string]
    const done = await rowsOf(store, { user: 'Anna@example.com' })
    for (const [table, rows] of Object.entries(done)) assert.ok(rows > 0, table)
    const text = await allText(storeUrl)
    assert.ok(!text.includes('anna@example.com'))
    assert.equal(await store.users.byId(anna), null)
    assert.equal((await store.users.byId(ben))?.email, 'ben@example.com')
    for (const [table, rows] of Object.entries(await ownedBy(store, ben))) assert.ok(rows > 0, table)
    for (const [table, rows] of Object.entries(await ownedBy(store, anna))) assert.equal(rows, 0, table)
    const { items } = await store.audit.list({ page: 1, limit: 100 })
    const own = items.filter(({ principal }) => principal === anna)
    assert.deepEqual(
      own.map(({ action, address }) => [action, address]),
      [['changePassword', null]],
      'what they did stays, without their address',
    )
    for (const user of ['anna@example.com', anna])
      assert.deepEqual(new Set(Object.values(await rowsOf(store, { user }))), new Set([0]), user)
  })

  test(`${kind}: what a deleted account left behind is found by its e-mail address`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const made = await manage.ask('POST', '/v1/users', { email: 'anna@example.com', scopes: ['read'] })
    assert.equal((await manage.ask('DELETE', `/v1/users/${made.body.id}`)).status, 204)
    await manage.stop()
    assert.ok((await allText(storeUrl)).includes('anna@example.com'))
    const store = await openAt(t, storeUrl)
    assert.equal((await rowsOf(store, { user: 'anna@example.com' }))['audit'], 2)
    assert.ok(!(await allText(storeUrl)).includes('anna@example.com'))
  })

  test(`${kind}: a member of a campaign is erased from the database and from the memory of the leader`, async (t) => {
    const store = await openFresh(kind, t)
    const published: number[] = []
    const leader = new Campaigns({
      ...{ store, log: SILENT, isShared: kind === 'postgres', report: async () => undefined },
      publish: ({ campaigns }) => published.push(campaigns[0]!.members.length),
    })
    const run = async (fromMs: number, seconds: number) => {
      for (let s = 0; s <= seconds; s++) while ((await leader.run(fromMs + s * 1_000)) === 'more');
    }
    await run(CRAWLED_MS, 0)
    leader.take(crawled(800))
    await until(async () => kind === 'sqlite' || (await store.campaigns.take(0)).length === 0)
    await run(CRAWLED_MS + 80_000, 12)
    const stored = async () =>
      parseCampaign((await store.campaigns.list({ page: 1, limit: 1 })).items[0]!.document)!
    assert.equal((await stored()).members.length, 200)
    const address = '198.51.100.0'
    assert.equal((await rowsOf(store, { address }))['campaigns'], 1)
    assert.equal((await stored()).members.length, 199)
    // The leader writes what it remembers.
    await run(CRAWLED_MS + 93_000, 30)
    assert.equal((await stored()).members.length, 199)
    assert.equal(published.at(-1), 199)
  })
}

test('the API erases like the command line: for an admin of all apps, and audited without the address', async (t) => {
  const manage = await TestManagement.start(t)
  await manage.take([1, 2, 3].map((number) => seen(number, { address: '203.0.113.7', seenAtMs: Date.now() })))
  const ask = (body: unknown, headers = {}) => manage.ask('POST', '/v1/erasures', body, headers)
  const rows = async (body: object) => {
    const { status, body: answer } = await ask(body)
    assert.equal(status, 200, JSON.stringify(answer))
    return answer.tables.find(({ table }: { table: string }) => table === 'sightings').rows
  }
  const address = '203.0.113.7'
  for (const wanted of [{ apps: ['default'] }, { scopes: ['write' as const] }]) {
    const refused = await ask({ address }, { authorization: `Bearer ${await manage.key(wanted)}` })
    assert.equal(refused.status, 403)
  }
  assert.equal(await rows({ address, dry_run: true }), 3)
  assert.equal(await rows({ address }), 3)
  assert.equal(await rows({ address }), 0)
  for (const body of [
    {},
    { address, user: 'anna@example.com' },
    { address: '203.0.113.0/24' },
    { user: 'anna' },
  ])
    assert.equal((await ask(body)).status, 400, JSON.stringify(body))
  const { body } = await manage.ask('GET', '/v1/audit?action=erasePerson')
  assert.equal(body.audit.length, 2)
  assert.deepEqual(body.audit[1].detail.rows.sightings, 3)
  assert.ok(!JSON.stringify(body).includes(address))
})

test('only an address or an account can be erased', async (t) => {
  const store = await openFresh('sqlite', t)
  for (const address of ['203.0.113.0/24', '2001:db8::/48', 'anna', '', 'hash:short', '203.0.113.7/33'])
    await assert.rejects(rowsOf(store, { address }), { code: 'ERASE_UNREADABLE' }, address)
  for (const user of ['', 'anna', 'usr_', `usr_' or 1=1`, 'key_1'])
    await assert.rejects(rowsOf(store, { user }), { code: 'ERASE_UNREADABLE' }, user)
})

/** An address, all forms in which it may be stored, and others that must stay. */
function CLIENTS(): readonly (readonly [
  address: string,
  forms: readonly string[],
  others: readonly string[],
])[] {
  return [
    [
      '203.0.113.7',
      ['203.0.113.7', '203.0.113.0/24', HASHER.hashOf('203.0.113.7'), OLD_HASHER.hashOf('203.0.113.7')],
      ['203.0.113.8', '203.0.114.0/24', HASHER.hashOf('203.0.113.8')],
    ],
    [
      '2001:db8:1:2::3',
      ['2001:db8:1:2::3', '2001:db8:1::/48', HASHER.hashOf('2001:db8:1:2::3')],
      ['2001:db8:1:2::4', HASHER.hashOf('2001:db8:1:2::4'), '2001:db8:2::/48'],
    ],
    [
      '2001:db8:1:2::/64',
      ['2001:db8:1:2::3', '2001:db8:1:2:1:2:3:4', HASHER.hashOf('2001:db8:1:2::3')],
      ['2001:db8:1:3::3', HASHER.hashOf('2001:db8:1:3::3')],
    ],
  ]
}

/** Requests of each form, with threats: an event, a window, and an example of a storm, and deliveries of the events. */
async function filled(
  t: Parameters<typeof freshUrl>[1],
  kind: (typeof KINDS)[number],
  forms: readonly string[],
) {
  const storeUrl = await freshUrl(kind, t)
  const threats = { ...SETTINGS.threats, eventsPerMinute: forms.length }
  const manage = await TestManagement.start(t, { storeUrl, threats, allowPrivateWebhooks: true })
  const receiver = await HookReceiver.start(t)
  receiver.answer = (response, _, delivered) => response.end(delivered.text)
  const hook = await manage.ask('POST', '/v1/webhooks', { url: receiver.url, events: ['threat_detected'] })
  assert.equal(hook.status, 201, JSON.stringify(hook.body))
  let number = 0
  for (const round of [0, 1, 2])
    await manage.take(
      forms.map((address, at) =>
        seen(number++, {
          address,
          path: `/of/${address}`,
          userAgent: `Browser of ${at === 0 ? 'the client' : 'others'}`,
          // Each round has another fingerprint: a threat of its own, beyond the limit of single events in the end.
          ja4: `t13d151${round}h2_8daaf6152771_e5627efa2ab1`,
          stable: null,
          ja4h: at === 0 ? `ge11nn060000_4e59edc1297a_4da5efaf0cbd_${COOKIES}` : null,
          done: 'block',
          seenAtMs: Date.now(),
        }),
      ),
    )
  const pending = () => manage.ask('GET', `/v1/webhooks/${hook.body.id}/deliveries?status=pending`)
  await until(async () => receiver.all.length > 0 && (await pending()).body.deliveries.length === 0)
  await manage.stop()
  const store = await openAt(t, storeUrl)
  const entry = {
    id: 'aud_own',
    atMs: Date.now(),
    principal: 'anonymous',
    action: 'failSignIn',
    subject: null,
  }
  await store.transaction((queries) =>
    store.audit.add({ ...entry, apps: '*', detail: {}, address: forms[0]!, requestId: null }, queries),
  )
  return { store, storeUrl }
}

/** A row of each kind that an account can have. */
async function fillAccount(store: Store, id: string): Promise<void> {
  const atMs = Date.now()
  const times = { created_at_ms: atMs, expires_at_ms: atMs + 1e8 }
  const of = { thumbprint: id, jwk: '{}', scopes: '[]' }
  await store.transaction(async (queries) => {
    await store.users.setCodes(id, 'sealed', ['a hash'], queries)
    const passkey = { id: `passkey of ${id}`, userId: id, publicKey: 'key', counter: 0, name: 'a device' }
    await store.passkeys.add({ ...passkey, createdAtMs: atMs, usedAtMs: null }, queries)
    const grant = { id: `grant ${id}`, state: 'approved', ...of, display: '{}', wanted: '{}', finish: null }
    const hashes = { interact_hash: id, reference_hash: null, continue_hash: id, next_at_ms: 0 }
    await queries
      .insertInto('gnap_grants')
      .values({ ...grant, ...hashes, ...times, decided_by: id, decided_at_ms: atMs })
      .execute()
    const token = { id: `token ${id}`, hash: id, manage_hash: id, ...of, name: 'a robot', label: null }
    await queries
      .insertInto('gnap_tokens')
      .values({
        ...{ ...token, is_bearer: 0, is_approved: 1, approved_by: id, approved_at_ms: atMs },
        ...{ expires_at_ms: atMs + 1e8, ends_at_ms: atMs + 1e8, revoked_at_ms: null },
      })
      .execute()
    await queries
      .insertInto('idempotency')
      .values({
        principal: id,
        key_digest: id,
        request_hash: '',
        status: 200,
        headers: '',
        body: '',
        ...times,
      })
      .execute()
    const entry = {
      id: `aud_${id}`,
      atMs,
      principal: id,
      action: 'changePassword',
      subject: id,
      requestId: null,
    }
    await store.audit.add(
      { ...entry, apps: '*', detail: { email: 'an address' }, address: '192.0.2.9' },
      queries,
    )
  })
  const record = { id: `session ${id}`, kind: 'Session', sealed: '', personId: id, expiresAtMs: atMs + 1e8 }
  await store.oauthRecords.put({ ...record, grantId: null, uid: null, userCode: null, clientId: null })
  const chunks = [{ number: 0, from: 0, items: [{ ip: '192.0.2.9' }] }]
  await store.tasks.add({ id: `tsk_${id}`, principal: id, apps: '*', type: 'detect', atMs, chunks })
}

async function rowsOf(
  store: Store,
  erased: Erased,
  isDry = false,
): Promise<Readonly<Record<string, number>>> {
  const context = { store, addressHashers: [HASHER, OLD_HASHER] }
  const report = await erase(context, erased, COMMAND_LINE, { isDry, nowMs: Date.now() })
  return Object.fromEntries(report.tables.map(({ table, rows }) => [table, rows]))
}

async function ownedBy(store: Store, id: string): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries(await store.accountErasure.count(id))
}
