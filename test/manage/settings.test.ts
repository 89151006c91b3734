import assert from 'node:assert/strict'
import { type Test, test } from 'tap'
import type { Effective } from '../../src/config/reader.ts'
import type { Items, Setting as ConfigSetting } from '../../src/config/items.ts'
import { readValue } from '../../src/config/kinds.ts'
import { SETTINGS } from '../../src/config/schema.ts'
import { createLogTo } from '../../src/shared/log.ts'
import { LIVE_SETTINGS, LiveSettings, type LiveSetting } from '../../src/manage/publish/live-settings.ts'
import { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const NAMES = Object.keys(LIVE_SETTINGS) as LiveSetting[]

test('what a setting takes while it runs is what the configuration takes', async () => {
  const samples = [
    'debug',
    'silent',
    'trace',
    '',
    'true',
    true,
    false,
    0,
    1,
    1.5,
    -1,
    1_000_000_000,
    1_000_000_001,
    null,
  ]
  for (const name of NAMES) {
    const { kind } = configItem(name)
    for (const sample of samples) {
      const isTaken = (() => {
        try {
          readValue(kind, sample)
          return true
        } catch {
          return false
        }
      })()
      assert.equal(LIVE_SETTINGS[name].safeParse(sample).success, isTaken, `${name}: ${sample}`)
    }
  }
})

test('all settings are shown with who said them, and no secret', async (t) => {
  const manage = await TestManagement.start(t, { rateLimits: { freePerDay: 7 } })
  const { status, body } = await manage.ask('GET', '/v1/settings')
  assert.equal(status, 200)
  const named = (name: string) => body.settings.find((each: { name: string }) => each.name === name)
  assert.deepEqual(named('limits.free_per_day'), {
    ...{ name: 'limits.free_per_day', value: 7, configured: 7, origin: 'GATEHOUSE_LIMITS_FREE_PER_DAY' },
    ...{ changeable: true, description: 'Requests per day with the plan `free`.', changed_at: null },
  })
  assert.deepEqual([named('log.level').value, named('log.level').origin], ['info', 'default'])
  assert.deepEqual(
    [named('proxy.listen').changeable, named('proxy.upstreams[0].name').value],
    [false, 'default'],
  )
  assert.equal(named('store.password').value, '<redacted>')
  assert.ok(!JSON.stringify(body).includes('nobody-sees-this'))
  const changeable = body.settings.filter((each: { changeable: boolean }) => each.changeable)
  assert.deepEqual(changeable.map((each: { name: string }) => each.name).sort(), [...NAMES].sort())
})

test('a setting is changed at once, and goes back to what is configured', async (t) => {
  const manage = await TestManagement.start(t, { rateLimits: { freePerDay: 3 } })
  const authorization = `Bearer ${await manage.key({ plan: 'free', scopes: ['admin'] })}`
  const asFree = async () => (await manage.ask('GET', '/v1/keys', undefined, { authorization })).status
  assert.deepEqual([await asFree(), await asFree(), await asFree(), await asFree()], [200, 200, 200, 429])
  const changed = await manage.ask('PATCH', '/v1/settings', { 'limits.free_per_day': 5 })
  assert.equal(changed.status, 200)
  const named = (name: string) => changed.body.settings.find((each: { name: string }) => each.name === name)
  const { value, configured, origin, changed_at } = named('limits.free_per_day')
  assert.deepEqual([value, configured, origin], [5, 3, 'api'])
  assert.ok(Math.abs(Date.parse(changed_at) - Date.now()) < 10_000)
  // The refused request was not counted.
  assert.deepEqual([await asFree(), await asFree(), await asFree()], [200, 200, 429])
  const back = await manage.ask('PATCH', '/v1/settings', { 'limits.free_per_day': null })
  assert.deepEqual(back.body, { settings: (await manage.ask('GET', '/v1/settings')).body.settings })
  assert.equal(await asFree(), 429)

  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const { items } = await store.audit.list({ page: 1, limit: 9 })
  const audited = items.filter(({ action }) => action === 'updateSettings').map(({ detail }) => detail)
  assert.deepEqual(audited.toReversed(), [
    { 'limits.free_per_day': { before: 3, after: 5 } },
    { 'limits.free_per_day': { before: 5, after: 3 } },
  ])
  assert.deepEqual(manage.failures, [])
})

test('what a change is refused for, and then changes nothing', async (t) => {
  const manage = await TestManagement.start(t)
  const { body: before, headers } = await manage.ask('GET', '/v1/settings')
  for (const [changes, said] of [
    [{ 'log.levl': 'debug' }, '/log.levl is unknown (did you mean "log.level"?)'],
    [{ log: { level: 'debug' } }, '/log is unknown (did you mean "log.level"?)'],
    [
      { 'log.level': 'debig' },
      '/log.level must be one of debug, info, warn, error, silent (did you mean "debug"?)',
    ],
    [{ 'manage.access_log': 'true' }, '/manage.access_log must be a boolean'],
    [{ 'limits.free_per_day': 0 }, '/limits.free_per_day'],
    [{ 'limits.free_per_day': 1.5 }, '/limits.free_per_day'],
    [{ 'limits.standard_per_hour': 5, 'proxy.listen': ':1' }, '/proxy.listen is unknown'],
    [{ constructor: 1 }, '/constructor is unknown'],
    [[], ' must be an object'],
  ] as const) {
    const { status, body } = await manage.ask('PATCH', '/v1/settings', changes)
    const [first] = body.errors
    assert.equal(status, 400)
    assert.ok(`${first.pointer} ${first.detail}`.startsWith(said), `${first.pointer} ${first.detail}`)
  }
  const stale = await manage.ask('PATCH', '/v1/settings', { 'log.level': 'warn' }, { 'if-match': '"x"' })
  assert.deepEqual([stale.status, stale.body.code], [412, 'precondition_failed'])
  assert.deepEqual((await manage.ask('PATCH', '/v1/settings', {})).body, before)
  assert.deepEqual((await manage.ask('GET', '/v1/settings')).body, before)
  const tag = { 'if-match': headers.get('etag')! }
  assert.equal((await manage.ask('PATCH', '/v1/settings', { 'log.level': 'warn' }, tag)).status, 200)
  assert.equal((await manage.ask('PATCH', '/v1/settings', { 'log.level': 'info' }, tag)).status, 412)
})

for (const kind of KINDS) {
  test(`${kind}: what one process changes, others follow, and what nobody can use is left where it is`, async (t) => {
    const url = await freshUrl(kind, t)
    const one = await settingsOn(t, url)
    const other = await settingsOn(t, url)
    await one.settings.change({ 'log.level': 'debug', 'manage.access_log': true }, ACTOR, 1)
    assert.deepEqual([one.heard, other.heard], [['debug'], []])
    await other.settings.follow()
    await other.settings.follow()
    assert.deepEqual(other.heard, ['debug'])
    assert.equal(other.settings.value('manage.access_log'), true)
    await one.settings.change({ 'log.level': 'debug' }, ACTOR, 2)
    assert.equal((await one.store.audit.list({ page: 1, limit: 9 })).total, 1, 'nothing has changed')

    await one.store.settings.put('log.level', { toString: 'x' }, null, 3)
    await one.store.settings.put('somebody.elses', 'x', null, 3)
    for (let count = 0; count < 3; count++) await other.settings.follow()
    assert.deepEqual([other.heard, other.settings.value('log.level')], [['debug'], 'debug'])
    assert.equal(other.said.filter((line) => line.includes('cannot be used')).length, 1)
    const restarted = await settingsOn(t, url)
    assert.equal(restarted.settings.value('log.level'), 'info')
    assert.equal(restarted.settings.value('manage.access_log'), true)
    assert.ok(!restarted.settings.shown().some(({ name }) => name === 'somebody.elses'))
    await restarted.settings.change({ 'log.level': null }, ACTOR, 4)
    await other.settings.follow()
    assert.deepEqual(other.heard, ['debug', 'info'])
  })
}

async function settingsOn(t: Test, url: string) {
  const said: string[] = []
  const heard: string[] = []
  const settings = new LiveSettings(CONFIGURED, createLogTo('info', { write: (line) => said.push(line) }))
  settings.onChange('log.level', (level) => heard.push(level))
  const store = await Store.open(url)
  t.teardown(() => store.close())
  await settings.open(store)
  return { settings, store, said, heard }
}

function configItem(name: string): ConfigSetting<unknown> {
  let items: Items = SETTINGS.members
  for (const token of name.split('.')) {
    const item = items[token]!
    if (item.item === 'setting') return item
    if (item.item === 'section') items = item.members
  }
  return assert.fail(name)
}

const ACTOR = { id: 'key_test', address: null, requestId: null }
const CONFIGURED: readonly Effective[] = [
  { pointer: '/log/level', value: 'info', from: 'default' },
  { pointer: '/manage/access_log', value: false, from: 'default' },
]
