import assert from 'node:assert/strict'
import SqliteConnection from 'better-sqlite3'
import { test } from 'tap'
import { freshUrl, KINDS } from '../store/databases.ts'
import { TestManagement } from './management.ts'

for (const kind of KINDS)
  test(`${kind}: users are made, listed and deleted, and nothing shows a password or its hash`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const wanted = { email: ' Anna@Example.COM ', password: PASSWORD, scopes: ['read', 'detect', 'read'] }
    const made = await manage.ask('POST', '/v1/users', wanted, { 'idempotency-key': 'one' })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const { id, created_at } = made.body
    const anna = { id, email: 'anna@example.com', scopes: ['read', 'detect'] }
    const shown = { ...anna, has_password: true, has_one_time_codes: false, openid: null, created_at }
    assert.deepEqual(made.body, shown)
    assert.match(id, /^usr_/)
    const again = await manage.ask('POST', '/v1/users', wanted, { 'idempotency-key': 'one' })
    assert.deepEqual([again.status, again.body], [201, shown])
    const taken = await manage.ask('POST', '/v1/users', { email: 'anna@example.com', scopes: ['read'] })
    assert.deepEqual([taken.status, taken.body.code], [409, 'conflict'])
    const other = await manage.ask('POST', '/v1/users', { email: 'ben@example.com', scopes: ['admin'] })
    assert.deepEqual([other.status, other.body.has_password], [201, false])
    const listed = await manage.ask('GET', '/v1/users?limit=1')
    assert.deepEqual([listed.body.users, listed.body.total], [[other.body], 2])
    const { body: audit } = await manage.ask('GET', '/v1/audit?action=createUser')
    assert.deepEqual(
      audit.audit.map((each: { subject: string; detail: unknown }) => [each.subject, each.detail]),
      [
        [other.body.id, { email: 'ben@example.com', scopes: ['admin'] }],
        [id, { email: 'anna@example.com', scopes: ['read', 'detect'] }],
      ],
    )
    assert.equal((await manage.ask('DELETE', `/v1/users/${id}`)).status, 204)
    assert.equal((await manage.ask('DELETE', `/v1/users/${id}`)).status, 404)
    assert.equal((await manage.ask('GET', '/v1/audit?action=deleteUser')).body.total, 1)
    const all = await manage.ask('GET', '/v1/audit?limit=200')
    const seen = [made, again, taken, other, listed, all].map(({ body }) => JSON.stringify(body)).join('')
    for (const text of [seen, manage.said.join('')])
      assert.ok(!text.includes(PASSWORD) && !text.includes('argon2') && !text.includes('$'))
    assert.deepEqual(manage.failures, [])
  })

test('an administrator says who a user is at the provider elsewhere', async (t) => {
  const settings = { name: 'Id', clientId: 'x', clientSecret: null, ca: null, allowPrivate: false }
  const openid = { issuer: 'https://id.example/', ...settings }
  const manage = await TestManagement.start(t, { openid })
  const make = async (email: string) =>
    (await manage.ask('POST', '/v1/users', { email, scopes: ['read'] })).body.id as string
  const [anna, ben] = [await make('anna@example.com'), await make('ben@example.com')]
  const put = (id: string, body: unknown) => manage.ask('PUT', `/v1/users/${id}/openid`, body)
  const { status, body } = await put(anna, { subject: '248289761001' })
  assert.deepEqual([status, body.openid], [200, { issuer: openid.issuer, subject: '248289761001' }])
  assert.deepEqual((await put(anna, { subject: 'another' })).body.openid.subject, 'another')
  assert.equal((await put(ben, { subject: 'another' })).status, 409)
  assert.equal((await put('usr_9', { subject: 'x' })).status, 404)
  for (const subject of ['', 'a\nb', 'é', 'x'.repeat(256)])
    assert.equal((await put(ben, { subject })).status, 400, subject)
  const { users } = (await manage.ask('GET', '/v1/users')).body
  assert.deepEqual(
    users.map(({ openid }: { openid: unknown }) => openid),
    [null, { issuer: openid.issuer, subject: 'another' }],
  )
  const remove = (id: string) => manage.ask('DELETE', `/v1/users/${id}/openid`)
  assert.deepEqual([(await remove(anna)).status, (await remove('usr_9')).status], [204, 404])
  assert.equal((await put(ben, { subject: 'another' })).status, 200)
  const key = { authorization: `Bearer ${await manage.key({ scopes: ['write'] })}` }
  assert.equal((await manage.ask('DELETE', `/v1/users/${ben}/openid`, undefined, key)).status, 403)
  const { audit } = (await manage.ask('GET', '/v1/audit?action=forgetOpenid')).body
  assert.deepEqual([audit.length, audit[0].subject], [1, anna])
  const without = await TestManagement.start(t)
  const { body: made } = await without.ask('POST', '/v1/users', { email: 'a@b', scopes: ['read'] })
  assert.equal((await without.ask('PUT', `/v1/users/${made.id}/openid`, { subject: 'x' })).status, 409)
  assert.deepEqual(manage.failures, [])
})

test('what is wrong with a user is said, and never what the password was', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [body, said] of [
    [
      { email: 'x', password: 'short', scopes: ['read'] },
      ['/email is no email address', '/password has fewer than 12 characters'],
    ],
    [{ email: 'a@b', password: 'x'.repeat(1_025), scopes: ['read'] }, ['/password has more than 1024 bytes']],
    [{ email: 'a b@c', scopes: ['read'] }, ['/email is no email address']],
    [{ email: `${'x'.repeat(250)}@example.com`, scopes: ['read'] }, ['/email is no email address']],
    [{ email: 'a@b\u202e', scopes: ['read'] }, ['/email is no email address']],
    [{ email: 'a@b', password: 'secret'.repeat(3), scopes: ['raed'] }, [/^\/scopes\/0 takes .*"read"/]],
    [
      { email: 'a@b', password: 'secret\u0000'.repeat(3), scopes: ['read'] },
      [/^\/password has the character/],
    ],
    [{ email: 'a@b', password: 123456789012, scopes: [] }, ['/password takes a string', '/scopes is empty']],
  ] as const) {
    const answer = await manage.ask('POST', '/v1/users', body)
    assert.equal(answer.status, 400)
    const errors = answer.body.errors.map(
      (each: { pointer: string; detail: string }) => `${each.pointer} ${each.detail}`,
    )
    assert.equal(errors.length, said.length, errors.join())
    for (const [index, expected] of said.entries())
      if (typeof expected === 'string') assert.equal(errors[index], expected)
      else assert.match(errors[index], expected)
    assert.ok(!/secret|xxxx|1234/.test(JSON.stringify(answer.body).replace(/"instance.*/, '')))
  }
  const key = await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })
  const refused = await manage.ask('GET', '/v1/users', undefined, { authorization: `Bearer ${key}` })
  assert.equal(refused.status, 403)
})

test('of many at once some are told to come again, and none fails', async (t) => {
  const manage = await TestManagement.start(t)
  const answers = await Promise.all(
    Array.from({ length: 56 }, (_, number) =>
      manage.ask('POST', '/v1/users', { email: `${number}@b`, password: PASSWORD, scopes: ['read'] }),
    ),
  )
  const later = answers.filter(({ status }) => status === 503)
  assert.equal(later.length, 4)
  for (const { headers, body } of later)
    assert.deepEqual([headers.get('retry-after'), body.code], ['5', 'unavailable'])
  assert.ok(answers.every(({ status }) => status === 201 || status === 503))
  assert.deepEqual(manage.failures, [])
})

test('what is kept for an Idempotency-Key is no quick way to guess a password', async (t) => {
  const storeUrl = await freshUrl('sqlite', t)
  const manage = await TestManagement.start(t, { storeUrl })
  const body = { email: 'a@b', password: PASSWORD, scopes: ['read'] }
  for (const key of ['one', 'two']) await manage.ask('POST', '/v1/users', body, { 'idempotency-key': key })
  const file = new SqliteConnection(storeUrl.slice('sqlite:'.length), { readonly: true })
  t.teardown(() => file.close())
  const digests = file.prepare('select request_hash from idempotency').pluck().all()
  // Of the same request under another key another one: without the key there is nothing to compare a guess with.
  assert.deepEqual([digests.length, new Set(digests).size], [2, 2])
})

const PASSWORD = 'a phrase of some words'
