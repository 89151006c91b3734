import assert from 'node:assert/strict'
import { test } from 'tap'
import { looksLikeKey } from '../../src/manage/auth/api-keys.ts'
import { setTimeout as wait } from 'node:timers/promises'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { TestManagement } from './management.ts'

test('a key is shown once, opens what it may, and is revoked at once', async (t) => {
  const manage = await TestManagement.start(t)
  const made = await manage.ask('POST', '/v1/keys', { name: 'ci', access: 'read' })
  assert.equal(made.status, 201)
  assert.ok(looksLikeKey(made.body.key))
  assert.deepEqual(
    [made.body.scopes, made.body.plan, made.body.expires_at],
    [['read', 'detect'], 'standard', null],
  )
  const bearer = { authorization: `bearer ${made.body.key}` }
  const refused = await manage.ask('GET', '/v1/keys', undefined, bearer)
  assert.deepEqual([refused.status, refused.body.code], [403, 'insufficient_scope'])
  const listed = await manage.ask('GET', '/v1/keys')
  assert.deepEqual(listed.body.total, 2)
  assert.ok(!JSON.stringify(listed.body).includes(made.body.key))
  assert.equal((await manage.ask('DELETE', `/v1/keys/${made.body.id}`)).status, 204)
  const after = await manage.ask('GET', '/v1/keys', undefined, bearer)
  assert.deepEqual([after.status, after.body.code], [401, 'invalid_token'])
  assert.equal((await manage.ask('DELETE', `/v1/keys/${made.body.id}`)).status, 404)
})

test('of two who revoke a key at once one did, and the audit log says so', async (t) => {
  const manage = await TestManagement.start(t)
  const { body } = await manage.ask('POST', '/v1/keys', { name: 'ci', access: 'read' })
  const both = [1, 2, 3].map(() => manage.ask('DELETE', `/v1/keys/${body.id}`))
  assert.deepEqual((await Promise.all(both)).map(({ status }) => status).sort(), [204, 404, 404])
  assert.equal((await manage.ask('GET', '/v1/audit?action=revokeKey')).body.total, 1)
})

test('what is wrong with a request is said all at once, and where', async (t) => {
  const manage = await TestManagement.start(t)
  const body = { name: '', acess: 'read', scopes: ['raed'] }
  const { status, body: problem } = await manage.ask('POST', '/v1/keys', body)
  assert.equal(status, 400)
  assert.deepEqual(
    problem.errors.map((each: { pointer: string; detail: string }) => `${each.pointer} ${each.detail}`),
    [
      '/name is empty',
      '/scopes/0 must be one of read, detect, write, admin, mcp (did you mean "read"?)',
      '/acess is unknown (did you mean "access"?)',
    ],
  )
})

test('without a key, with none of ours, with another scheme', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [authorization, code] of [
    ['', 'missing_token'],
    ['Basic eDp5', 'invalid_token'],
    ['Bearer ', 'invalid_token'],
    ['Bearer ghk_x', 'invalid_token'],
    [`Bearer ${'x'.repeat(10_000)}`, 'invalid_token'],
  ] as const) {
    const { status, body, headers } = await manage.ask('GET', '/v1/keys', undefined, { authorization })
    assert.deepEqual([status, body.code], [401, code], authorization)
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer .*resource_metadata="http/)
  }
})

for (const kind of KINDS)
  test(`${kind}: a key that another process has revoked opens nothing within a second`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const { body } = await manage.ask('POST', '/v1/keys', { name: 'ci', access: 'admin' })
    const bearer = { authorization: `Bearer ${body.key}` }
    const status = async () => (await manage.ask('GET', '/v1/keys', undefined, bearer)).status
    assert.equal(await status(), 200)
    const other = await openAt(t, storeUrl)
    await other.keys.revoke(body.id, Date.now())
    await wait(600)
    assert.equal(await status(), 401)
  })

test('an expired key is told so', async (t) => {
  let nowMs = Date.now()
  const manage = await TestManagement.start(t, { nowMs: () => nowMs })
  const key = await manage.key({ expiresAtMs: nowMs + 60_000 })
  const bearer = { authorization: `Bearer ${key}` }
  assert.equal((await manage.ask('GET', '/v1/keys', undefined, bearer)).status, 200)
  nowMs += 60_001
  const { status, body } = await manage.ask('GET', '/v1/keys', undefined, bearer)
  assert.deepEqual([status, body.code], [401, 'expired_token'])
})

test('the key of the configuration opens everything, and nothing near it does', async (t) => {
  const adminKey = 'über secret, with spaces & 100%'
  const manage = await TestManagement.start(t, { adminKey })
  const as = async (key: string) => {
    const authorization = `Bearer ${Buffer.from(key).toString('latin1')}` // what curl sends: UTF-8
    return (await manage.ask('GET', '/v1/keys', undefined, { authorization })).status
  }
  assert.equal(await as(adminKey), 200)
  for (const wrong of [adminKey.slice(1), `${adminKey}x`, adminKey.toUpperCase(), 'x'])
    assert.equal(await as(wrong), 401)
  const authorization = `Bearer ${Buffer.from(adminKey).toString('latin1')}`
  await manage.ask('POST', '/v1/keys', { name: 'second', access: 'admin' }, { authorization })
  const { body } = await manage.ask('GET', '/v1/audit?principal=bootstrap')
  assert.deepEqual([body.total, body.audit[0].action, body.audit[0].detail.name], [1, 'createKey', 'second'])
  const without = await TestManagement.start(t)
  assert.equal((await without.ask('GET', '/v1/keys', undefined, { authorization })).status, 401)
})

test('who guesses is told to wait; who has a key is not; and the audit log knows of it once', async (t) => {
  const manage = await TestManagement.start(t, { authFailuresPerMinute: 5 })
  const guess = (authorization: string) => manage.ask('GET', '/v1/nowhere', undefined, { authorization })
  for (let time = 0; time < 20; time++) assert.equal((await guess('')).status, 401) // no guesses
  for (let time = 0; time < 5; time++) assert.equal((await guess(`Bearer guess${time}`)).status, 401)
  for (let time = 0; time < 3; time++) {
    const { status, body, headers } = await guess(`Bearer guess${time}`)
    assert.deepEqual([status, body.code], [429, 'rate_limited'])
    const retryAfter = Number(headers.get('retry-after'))
    assert.ok(retryAfter >= 1 && retryAfter <= 60, `${retryAfter}`)
  }
  const { status, body } = await manage.ask('GET', '/v1/audit?action=throttleAuthentication')
  assert.deepEqual([status, body.total], [200, 1])
  const { principal, address, detail } = body.audit[0]
  assert.deepEqual([principal, detail], ['anonymous', { reason: 'invalid_token' }])
  assert.match(address, /127\.0\.0\.1$/)
  assert.equal((await guess('')).status, 401)
})

for (const kind of KINDS)
  test(`${kind}: the audit log says who did what, from where; in pages, and by what is asked for`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const { body: made } = await manage.ask(
      'POST',
      '/v1/keys',
      { name: 'ci', access: 'read' },
      { 'x-request-id': 'r1' },
    )
    await manage.ask('DELETE', `/v1/keys/${made.id}`, undefined, { 'x-request-id': 'r2' })
    const { body, headers } = await manage.ask('GET', '/v1/audit?limit=2')
    assert.deepEqual([body.total, body.page, body.limit, body.audit.length], [3, 1, 2, 2])
    assert.match(headers.get('link') ?? '', /\/v1\/audit\?limit=2&page=2>; rel="next"/)
    const [revoked, created] = body.audit
    assert.deepEqual(
      [revoked.action, revoked.subject, revoked.detail, revoked.request_id],
      ['revokeKey', made.id, { name: 'ci' }, 'r2'],
    )
    assert.deepEqual(
      [created.action, created.request_id, created.principal],
      ['createKey', 'r1', revoked.principal],
    )
    assert.match(created.at, /^20..-..-..T..:..:..\.\d{3}Z$/)
    assert.ok(!JSON.stringify(body).includes(made.key))
    const total = async (query: string) => (await manage.ask('GET', `/v1/audit?${query}`)).body.total
    assert.equal(await total('action=createKey'), 2)
    assert.equal(await total('action=createKey&principal=command-line'), 1)
    assert.equal(await total(`since=${encodeURIComponent(revoked.at)}`), 1)
    assert.equal(await total('since=2999-01-01T00:00:00%2B02:00'), 0)
    for (const query of [
      'since=yesterday',
      'action=',
      'acton=x',
      'limit=0',
      'action=%00',
      'since=2026-13-01T00:00:00Z',
    ])
      assert.equal((await manage.ask('GET', `/v1/audit?${query}`)).status, 400, query)
    const reader = {
      authorization: `Bearer ${await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })}`,
    }
    assert.equal((await manage.ask('GET', '/v1/audit', undefined, reader)).status, 403)
    assert.deepEqual(manage.failures, [])
  })

for (const kind of KINDS)
  test(`${kind}: no character makes the database fail`, async (t) => {
    const manage = await TestManagement.start(t, { storeUrl: await freshUrl(kind, t) })
    const names = ['a\u0000b', '\ud800', '💥', "'; drop table api_keys; --", '\u202e\ufeff', 'x'.repeat(100)]
    const statuses = []
    for (const name of names)
      statuses.push((await manage.ask('POST', '/v1/keys', { name, access: 'read' })).status)
    assert.deepEqual(statuses, [400, 201, 201, 201, 201, 201])
    for (const id of ['%00', 'x%00y', '%F0%9F%92%A5', "'"])
      assert.equal((await manage.ask('DELETE', `/v1/keys/${id}`)).status, 404, id)
    assert.deepEqual(manage.failures, [])
  })

test('what is wrong with a whole body is said of the body', async (t) => {
  const manage = await TestManagement.start(t)
  const headers = { authorization: `Bearer ${manage.adminKey}`, 'content-type': 'application/json' }
  for (const [body, detail] of [
    [Buffer.from([0x22, 0xff, 0x22]), /^the body is not UTF-8/],
    ['{', /^the body is not valid JSON/],
  ] as const) {
    const response = await fetch(`${manage.url}/v1/keys`, { method: 'POST', headers, body })
    assert.equal(response.status, 400)
    assert.match(JSON.parse(await response.text()).detail, detail)
  }
})
