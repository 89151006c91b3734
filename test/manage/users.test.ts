import assert from 'node:assert/strict'
import SqliteConnection from 'better-sqlite3'
import { isDeepStrictEqual } from 'node:util'
import { test } from 'tap'
import { setTimeout as wait } from 'node:timers/promises'
import { COMMAND_LINE } from '../../src/manage/http/audit.ts'
import { startCodes } from '../../src/manage/auth/people/make-user.ts'
import { Sealer } from '../../src/manage/auth/sealer.ts'
import { Secret } from '../../src/shared/secret.ts'
import { freshUrl, KINDS, openAt } from '../store/databases.ts'
import { FormBrowser } from './form-browser.ts'
import { TestManagement } from './management.ts'
import { basic, CALLBACK, clientFor, codeUrl, postForm, tokensFor } from './oauth-client.ts'
import { quickHasher } from './quick-hasher.ts'
import { until } from '../until.ts'

for (const kind of KINDS)
  test(`${kind}: users are made, listed and deleted, and nothing shows a password or its hash`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { storeUrl })
    const wanted = { email: ' Anna@Example.COM ', password: PASSWORD, scopes: ['read', 'detect', 'read'] }
    const made = await manage.ask('POST', '/v1/users', wanted, { 'idempotency-key': 'one' })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const { id, created_at } = made.body
    const anna = { id, email: 'anna@example.com', scopes: ['read', 'detect'] }
    const shown = {
      apps: '*',
      ...{ ...anna, has_password: true, has_one_time_codes: false, disabled: false, openid: null },
      created_at,
    }
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
        [other.body.id, { email: 'ben@example.com', scopes: ['admin'], apps: '*' }],
        [id, { email: 'anna@example.com', scopes: ['read', 'detect'], apps: '*' }],
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
  const settings = {
    name: 'Id',
    clientId: 'x',
    clientSecret: null,
    ca: null,
    roles: null,
    allowPrivate: false,
  }
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

for (const kind of KINDS)
  test(`${kind}: a user is changed, and what is out in their name with them`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const encryptionKey = new Secret('x'.repeat(43))
    const manage = await TestManagement.start(t, { storeUrl, encryptionKeys: [encryptionKey] })
    const more = { storeUrl, encryptionKeys: [encryptionKey], publicUrl: manage.url, admin: null }
    const second = await TestManagement.start(t, more)
    const anna = { email: 'anna@example.com', password: PASSWORD }
    const { body: made } = await manage.ask('POST', '/v1/users', { ...anna, scopes: ['read', 'detect'] })
    const path = `/v1/users/${made.id}`
    const got = await manage.ask('GET', path)
    assert.deepEqual([got.status, got.body], [200, made])
    const client = await clientFor(manage, {
      ...{
        grant_types: ['authorization_code'],
        redirect_uris: [CALLBACK],
        scopes: ['read', 'detect', 'write'],
      },
    })
    const browser = new FormBrowser(manage.url)
    const consent = async () => {
      await browser.open(codeUrl(manage, client, 'read detect offline_access'))
      if (/<h1>Sign in</.test(browser.page!.text)) await browser.submit('sign-in', anna)
      await browser.submit('allow')
      return tokensFor(manage, client, browser.away!)
    }
    const { access_token, refresh_token } = await consent()
    const bearer = { authorization: `Bearer ${access_token}` }
    const statuses = async () => [
      (await second.ask('GET', '/v1/agents', undefined, bearer)).status,
      (await second.ask('POST', '/v1/detect', { user_agent: 'x' }, bearer)).status,
    ]
    const refresh = async (token: string) =>
      (
        await postForm(
          manage.url,
          '/oauth/token',
          { grant_type: 'refresh_token', refresh_token: token },
          basic(client),
        )
      ).status
    // There are no signatures to detect by: whoever may is told so.
    assert.deepEqual(await statuses(), [200, 503])
    const change = (body: unknown, headers = {}) => manage.ask('PATCH', path, body, headers)

    const less = await change({ scopes: ['read', 'read'] }, { 'if-match': got.headers.get('etag')! })
    assert.deepEqual([less.status, less.body], [200, { ...made, scopes: ['read'] }])
    await until(async () => isDeepStrictEqual(await statuses(), [200, 403]), 1_000)
    const stale = await change({ scopes: ['admin'] }, { 'if-match': got.headers.get('etag')! })
    assert.deepEqual([stale.status, stale.body.code], [412, 'precondition_failed'])

    assert.equal((await change({ disabled: true })).body.disabled, true)
    await until(async () => isDeepStrictEqual(await statuses(), [401, 401]), 1_000)
    assert.equal(await refresh(refresh_token), 400)
    await browser.open(codeUrl(manage, client, 'read'))
    await browser.submit('sign-in', anna)
    assert.equal(browser.page!.status, 403)
    // Who is there again signs in anew: nothing of before comes back.
    assert.equal((await change({ disabled: false, scopes: ['read', 'detect'] })).body.disabled, false)
    await wait(600)
    assert.deepEqual(await statuses(), [401, 401])
    const again = await consent()
    assert.equal(await refresh(again.refresh_token), 200)

    anna.password = 'another phrase of words'
    assert.equal((await change({ password: anna.password })).status, 200)
    assert.equal(await refresh(again.refresh_token), 400)
    // In the same second, though sessions know whole ones.
    await consent()
    const store = await openAt(t, storeUrl)
    const sealer = new Sealer([encryptionKey], '')
    await startCodes({ store, sealer }, (await store.users.byId(made.id))!, COMMAND_LINE, Date.now())
    assert.equal((await change({ one_time_codes: false })).body.has_one_time_codes, false)

    const { body } = await manage.ask('GET', '/v1/audit?action=updateUser')
    assert.deepEqual(body.audit.map(({ detail }: { detail: unknown }) => detail).reverse(), [
      { email: anna.email, scopes: ['read'] },
      { email: anna.email, disabled: true },
      { email: anna.email, scopes: ['read', 'detect'], disabled: false },
      { email: anna.email, password: 'set' },
      { email: anna.email, one_time_codes: false },
    ])
    assert.equal((await manage.ask('DELETE', path)).status, 204)
    assert.deepEqual(
      [(await change({ disabled: true })).status, (await manage.ask('GET', path)).status],
      [404, 404],
    )
    assert.deepEqual([...manage.failures, ...second.failures], [])
  })

test('what is wrong with a change is said, and changes nothing', async (t) => {
  const manage = await TestManagement.start(t)
  const { body: made } = await manage.ask('POST', '/v1/users', { email: 'a@b', scopes: ['read'] })
  const path = `/v1/users/${made.id}`
  for (const [body, pointer] of [
    [{}, ''],
    [{ scopes: [] }, '/scopes'],
    [{ scopes: ['raed'] }, '/scopes/0'],
    [{ disabled: true, password: 'short' }, '/password'],
    [{ one_time_codes: true }, '/one_time_codes'],
    [{ email: 'c@d' }, '/email'],
    [{ disabled: 'yes' }, '/disabled'],
  ] as const) {
    const answer = await manage.ask('PATCH', path, body)
    assert.equal(answer.status, 400, JSON.stringify(body))
    assert.equal(answer.body.errors[0].pointer, pointer)
  }
  assert.deepEqual((await manage.ask('GET', path)).body, made)
  const key = await manage.key({ scopes: ['read', 'detect', 'write', 'mcp'] })
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await manage.ask('PATCH', path, { scopes: ['admin'] }, headers)).status, 403)
})

test('what is wrong with a user is said, and never what the password was', async (t) => {
  const manage = await TestManagement.start(t)
  for (const [body, said] of [
    [
      { email: 'x', password: 'short', scopes: ['read'] },
      ['/email is not a valid email address', '/password has fewer than 12 characters'],
    ],
    [{ email: 'a@b', password: 'x'.repeat(1_025), scopes: ['read'] }, ['/password has more than 1024 bytes']],
    [{ email: 'a b@c', scopes: ['read'] }, ['/email is not a valid email address']],
    [{ email: `${'x'.repeat(250)}@example.com`, scopes: ['read'] }, ['/email is not a valid email address']],
    [{ email: 'a@b\u202e', scopes: ['read'] }, ['/email is not a valid email address']],
    [
      { email: 'a@b', password: 'secret'.repeat(3), scopes: ['raed'] },
      [/^\/scopes\/0 must be one of .*"read"/],
    ],
    [
      { email: 'a@b', password: 'secret\u0000'.repeat(3), scopes: ['read'] },
      [/^\/password contains the character/],
    ],
    [
      { email: 'a@b', password: 123456789012, scopes: [] },
      ['/password must be a string', '/scopes is empty'],
    ],
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
  const { promise: areRefused, resolve } = Promise.withResolvers<void>()
  const manage = await TestManagement.start(t, { passwords: quickHasher(areRefused) })
  let refused = 0
  const answers = await Promise.all(
    Array.from({ length: 56 }, async (_, number) => {
      const body = { email: `${number}@b`, password: PASSWORD, scopes: ['read'] }
      const answer = await manage.ask('POST', '/v1/users', body)
      if (answer.status === 503 && ++refused === 4) resolve() // two at work, fifty wait
      return answer
    }),
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
