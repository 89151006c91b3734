import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { secretOf } from '../../src/manage/jobs/signing.ts'
import { readWebhookUrl } from '../../src/manage/events/webhooks/webhook-url.ts'
import { Secret } from '../../src/shared/secret.ts'
import { Store } from '../../src/store/store.ts'
import { TestManagement } from './management.ts'

/** On the public internet, and looked up by nobody. */
const URL_GIVEN = 'https://93.184.216.34/hook'

test('a webhook is registered, shown, changed and removed', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await manage.ask('POST', '/v1/webhooks', {
    url: URL_GIVEN,
    events: ['threat_detected', 'new_agent', 'new_agent'],
    description: 'pager',
  })
  assert.equal(made.status, 201)
  const { secret, ...shown } = made.body
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.match(shown.id, /^whk_/)
  const { id, created_at, ...rest } = shown
  assert.deepEqual(rest, {
    url: URL_GIVEN,
    events: ['new_agent', 'threat_detected'],
    description: 'pager',
    apps: '*',
    enabled: true,
    updated_at: created_at,
    old_secret_expires_at: null,
    filters: null,
    ...{ disabled_at: null, disabled_reason: null, paused_until: null },
    ...{ pending: 0, last_delivery_at: null, failing_since: null },
  })
  assert.deepEqual((await manage.ask('GET', `/v1/webhooks/${id}`)).body, shown)
  const listed = await manage.ask('GET', '/v1/webhooks')
  assert.deepEqual([listed.body.webhooks, listed.body.total], [[shown], 1])
  const filters = { apps: ['shop', 'default'] }
  const filtered = await manage.ask('PATCH', `/v1/webhooks/${id}`, { filters })
  assert.deepEqual([filtered.status, filtered.body.filters], [200, filters])
  assert.equal((await manage.ask('PATCH', `/v1/webhooks/${id}`, { filters: null })).body.filters, null)
  const changed = await manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: false, description: null })
  assert.deepEqual(
    [changed.status, changed.body.enabled, changed.body.description, changed.body.events, changed.body.url],
    [200, false, null, ['new_agent', 'threat_detected'], URL_GIVEN],
  )
  const tag = (await manage.ask('GET', `/v1/webhooks/${id}`)).headers.get('etag')!
  const patch = (etag: string) =>
    manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: true }, { 'if-match': etag })
  assert.deepEqual(
    [(await patch('"x"')).status, (await patch(tag)).status, (await patch(tag)).status],
    [412, 200, 412],
  )
  assert.equal((await manage.ask('PATCH', `/v1/webhooks/${id}`, {})).status, 200)
  assert.equal((await manage.ask('DELETE', `/v1/webhooks/${id}`)).status, 204)
  for (const [method, path] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
  ])
    assert.equal((await manage.ask(method!, `/v1/webhooks/${id}${path}`)).status, 404)
  assert.equal((await manage.ask('PATCH', `/v1/webhooks/${id}`, { enabled: true })).status, 404)
  assert.deepEqual(manage.failures, [])
})

test('only an administrator sees webhooks', async (t) => {
  const manage = await TestManagement.start(t)
  const authorization = `Bearer ${await manage.key({ scopes: ['read', 'write', 'detect', 'mcp'] })}`
  for (const [method, path] of [
    ['GET', '/v1/webhooks'],
    ['POST', '/v1/webhooks'],
    ['GET', '/v1/policy'],
    ['PUT', '/v1/policy'],
  ])
    assert.equal((await manage.ask(method!, path!, undefined, { authorization })).status, 403)
})

test('what a registration is refused for', async (t) => {
  const manage = await TestManagement.start(t)
  const cases: [unknown, string][] = [
    [{ events: ['new_agent'] }, '/url is missing'],
    [{ url: URL_GIVEN }, '/events is missing'],
    [{ url: URL_GIVEN, events: [] }, '/events is empty'],
    [{ url: URL_GIVEN, events: 'new_agent' }, '/events must be a list'],
    [
      { url: URL_GIVEN, events: ['new_agents'] },
      '/events/0 must be one of new_agent, new_signature, threat_detected, payment (did you mean "new_agent"?)',
    ],
    [{ url: URL_GIVEN, events: ['new_agent'], evnts: 1 }, '/evnts is unknown (did you mean "events"?)'],
    [{ url: URL_GIVEN, events: ['new_agent'], secret: 'mine' }, '/secret is unknown'],
    [
      { url: URL_GIVEN, events: ['new_agent'], filters: { apps: ['Shop'] } },
      '/filters/apps/0 must be up to 63 letters a-z, digits and hyphens, without a hyphen at either end',
    ],
    [{ url: URL_GIVEN, events: ['new_agent'], filters: { apps: [] } }, '/filters/apps is empty'],
    [{ url: 5, events: ['new_agent'] }, '/url must be a string'],
    [{ url: `https://a/${'x'.repeat(2048)}`, events: ['new_agent'] }, '/url is longer than 2048 characters'],
    [
      { url: 'https://127.0.0.1/', events: ['new_agent'] },
      '/url is not on the public internet; webhooks.allow_private_addresses allows it',
    ],
  ]
  for (const [body, said] of cases) {
    const { status, body: problem } = await manage.ask('POST', '/v1/webhooks', body)
    const errors = problem.errors.map(
      (each: { pointer: string; detail: string }) => `${each.pointer} ${each.detail}`,
    )
    assert.deepEqual([status, errors[0]], [400, said])
  }
  const { body } = await manage.ask('POST', '/v1/webhooks', { url: URL_GIVEN, events: ['new_agent'] })
  const moved = await manage.ask('PATCH', `/v1/webhooks/${body.id}`, { url: 'http://169.254.169.254/' })
  assert.deepEqual([moved.status, moved.body.errors[0].pointer], [400, '/url'])
  assert.equal((await manage.ask('GET', `/v1/webhooks/${body.id}`)).body.url, URL_GIVEN)
})

test('a URL that leads where nobody from outside may go is none for a webhook', async () => {
  const names: Record<string, readonly string[]> = {
    'inside.example': ['10.0.0.1'],
    'both.example': ['93.184.216.34', '127.0.0.1'],
    'mapped.example': ['::ffff:127.0.0.1'],
    'outside.example': ['93.184.216.34', '2606:2800:220:1::1'],
  }
  const find = async (name: string) => names[name] ?? Promise.reject(new Error('ENOTFOUND'))
  for (const url of [
    ...['', 'x', '/hook', 'ftp://outside.example/', 'file:///etc/passwd', 'javascript:alert(1)', 'https://'],
    ...['https://a@outside.example/', 'https://a:b@outside.example/', 'https://:b@outside.example/'],
    ...['https://outside.example/#', 'https://outside.example/#x', 'http://outside.example/'],
    ...['https://localhost/', 'https://LOCALHOST./', 'https://a.localhost/', 'https://127.1/'],
    ...['https://2130706433/', 'https://0x7f000001/', 'https://017700000001/', 'https://0/', 'https://[::]/'],
    ...['https://[::1]/', 'https://[::ffff:127.0.0.1]/', 'https://[::ffff:7f00:1]/', 'https://[fe80::1]/'],
    ...['https://[fd00::1]/', 'https://[64:ff9b::7f00:1]/', 'https://[2002:7f00:1::]/', 'https://10.1.2.3/'],
    ...['https://172.16.0.1/', 'https://192.168.1.1/', 'https://169.254.169.254/', 'https://100.64.0.1/'],
    ...['https://224.0.0.1/', 'https://255.255.255.255/', 'https://192.0.2.1/', 'https://１２７.0.0.1/'],
    ...['https://inside.example/', 'https://both.example/', 'https://mapped.example/'],
  ])
    assert.ok('refused' in (await readWebhookUrl(url, false, find)), url)
  for (const [given, url] of [
    ['https://outside.example:8443/a?b=c', 'https://outside.example:8443/a?b=c'],
    ['HTTPS://Outside.Example', 'https://outside.example/'],
    ['https://nobody-knows-it-yet.example/', 'https://nobody-knows-it-yet.example/'],
    ['https://[2606:2800:220:1::1]/', 'https://[2606:2800:220:1::1]/'],
  ])
    assert.deepEqual(await readWebhookUrl(given!, false, find), { url })
  for (const url of ['http://127.0.0.1:8080/hook', 'https://localhost/', 'http://outside.example/'])
    assert.deepEqual(await readWebhookUrl(url, true, find), { url })
  assert.ok('refused' in (await readWebhookUrl('http://a@127.0.0.1/', true, find)))
})

test('a name server that never answers holds nobody', async () => {
  const started = performance.now()
  const read = await readWebhookUrl('https://slow.example/', false, () => new Promise(() => undefined))
  assert.deepEqual(read, { url: 'https://slow.example/' })
  assert.ok(performance.now() - started < 10_000)
})

test('the operator can allow addresses in here', async (t) => {
  const manage = await TestManagement.start(t, { allowPrivateWebhooks: true })
  const body = { url: 'http://127.0.0.1:9/hook', events: ['new_agent'] }
  assert.equal((await manage.ask('POST', '/v1/webhooks', body)).status, 201)
})

test('a secret is in the answer that made it and nowhere else, and deliveries can know it again', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await manage.ask('POST', '/v1/webhooks', {
    url: 'https://93.184.216.34/services/T0/top-secret-path',
    events: ['new_agent'],
  })
  const { id, secret } = made.body
  const rotated = await manage.ask('POST', `/v1/webhooks/${id}/rotate`)
  assert.equal(rotated.status, 200)
  assert.notEqual(rotated.body.secret, secret)
  const leftMs = Date.parse(rotated.body.old_secret_expires_at) - Date.now()
  assert.ok(leftMs > 86_390_000 && leftMs <= 86_400_000, String(leftMs))
  assert.equal((await manage.ask('GET', `/v1/webhooks/${id}`)).body.secret, undefined)

  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const sealer = new Sealer([], join(manage.folder, 'store.key'))
  const secrets = await store.webhooks.secrets([id], Date.now())
  const opened = await Promise.all(
    secrets.map(async (each) => (await sealer.open(each.sealed, secretOf(id, each.id))).reveal()),
  )
  assert.deepEqual(opened, [rotated.body.secret, secret])
  assert.deepEqual(
    (await store.webhooks.secrets([id], Date.now() + 86_400_001)).map(({ id }) => id),
    [secrets[0]!.id],
  )

  const audit = JSON.stringify((await store.audit.list({ page: 1, limit: 50 })).items)
  assert.match(audit, /"action":"createWebhook".*93\.184\.216\.34|93\.184\.216\.34.*"action":"createWebhook"/)
  assert.match(audit, /rotateWebhookSecret/)
  const key = readFileSync(join(manage.folder, 'store.key'), 'utf8').trim()
  const files = readdirSync(manage.folder).filter((name) => name !== 'store.key')
  const everywhere = [
    audit,
    ...manage.said,
    ...files.map((name) => readFileSync(join(manage.folder, name), 'latin1')),
  ]
  for (const hidden of [secret, rotated.body.secret, secret.slice(6), key])
    assert.ok(!everywhere.some((text) => text.includes(hidden)))
  assert.ok(!audit.includes('top-secret-path'))
  assert.equal(statSync(join(manage.folder, 'store.key')).mode & 0o777, 0o600)
})

test('of those that rotate at once each has a secret that signs, and there is an end to it', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await manage.ask('POST', '/v1/webhooks', { url: URL_GIVEN, events: ['new_agent'] })
  const rotations = await Promise.all(
    Array.from({ length: 8 }, () => manage.ask('POST', `/v1/webhooks/${made.body.id}/rotate`)),
  )
  const statuses = rotations.map(({ status }) => status).sort()
  assert.deepEqual(statuses, [200, 200, 200, 200, 409, 409, 409, 409])
  const store = await Store.open(manage.storeUrl)
  t.teardown(() => store.close())
  const secrets = await store.webhooks.secrets([made.body.id], Date.now())
  assert.equal(secrets.length, 5)
  assert.deepEqual(
    secrets.filter(({ expiresAtMs }) => expiresAtMs === null),
    [secrets[0]],
  )
})

test('there are a hundred webhooks and no more', async (t) => {
  const manage = await TestManagement.start(t)
  const make = () => manage.ask('POST', '/v1/webhooks', { url: URL_GIVEN, events: ['new_agent'] })
  const made = await Promise.all(Array.from({ length: 103 }, make))
  assert.equal(made.filter(({ status }) => status === 201).length, 100)
  const refused = made.find(({ status }) => status !== 201)!
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'])
  const page = await manage.ask('GET', '/v1/webhooks?limit=30&page=4')
  assert.deepEqual([page.body.webhooks.length, page.body.total], [10, 100])
  assert.equal((await manage.ask('DELETE', `/v1/webhooks/${page.body.webhooks[0].id}`)).status, 204)
  assert.equal((await make()).status, 201)
})

test('what was sealed opens with its key only, as what it is, and unchanged', async (t) => {
  const manage = await TestManagement.start(t)
  const file = join(manage.folder, 'some.key')
  const sealer = new Sealer([], file)
  await assert.rejects(sealer.open('v1.00000000.' + 'A'.repeat(64), 'x'), { code: 'SEAL_KEY_UNUSABLE' })
  const [sealed, again] = await Promise.all([sealer.seal('ä secret', 'x'), sealer.seal('ä secret', 'x')])
  assert.notEqual(sealed, again)
  assert.equal((await new Sealer([], file).open(sealed, 'x')).reveal(), 'ä secret')
  await assert.rejects(sealer.open(sealed, 'y'), { code: 'SEAL_BROKEN' })
  for (let at = sealed.lastIndexOf('.') + 1; at < sealed.length - 1; at++) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    const changed = sealed.slice(0, at) + other + sealed.slice(at + 1)
    await assert.rejects(sealer.open(changed, 'x'), { code: 'SEAL_BROKEN' })
  }
  for (const broken of ['', 'x', 'v1', 'v1..', 'v1.aaaaaaaa.AAAA', `${sealed}.`, `v2${sealed.slice(2)}`])
    await assert.rejects(sealer.open(broken, 'x'), { code: 'SEAL_BROKEN' })
  const given = new Sealer([new Secret('a key that all processes share')], file)
  await assert.rejects(given.open(sealed, 'x'), { code: 'SEAL_KEY_WRONG' })
  const shared = await given.seal('s', 'x')
  const elsewhere = new Sealer([new Secret('a key that all processes share')], '/nowhere')
  assert.equal((await elsewhere.open(shared, 'x')).reveal(), 's')
  writeFileSync(file, 'short')
  await assert.rejects(new Sealer([], file).seal('s', 'x'), { code: 'SEAL_KEY_UNUSABLE' })
  const two = join(manage.folder, 'two.key')
  const both = await Promise.all([1, 2, 3, 4].map(() => new Sealer([], two).seal('s', 'x')))
  for (const each of both) assert.equal((await new Sealer([], two).open(each, 'x')).reveal(), 's')
  assert.deepEqual(
    readdirSync(manage.folder).filter((name) => name.startsWith('two.key')),
    ['two.key'],
  )
})
