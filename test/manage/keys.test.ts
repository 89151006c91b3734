import assert from 'node:assert/strict'
import { test } from 'tap'
import { looksLikeKey } from '../../src/manage/auth/api-keys.ts'
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

test('what is wrong with a request is said all at once, and where', async (t) => {
  const manage = await TestManagement.start(t)
  const body = { name: '', acess: 'read', scopes: ['raed'] }
  const { status, body: problem } = await manage.ask('POST', '/v1/keys', body)
  assert.equal(status, 400)
  assert.deepEqual(
    problem.errors.map((each: { pointer: string; detail: string }) => `${each.pointer} ${each.detail}`),
    [
      '/name is empty',
      '/scopes/0 takes read, detect, write, admin, mcp (did you mean "read"?)',
      '/acess is not known (did you mean "access"?)',
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
  ] as const) {
    const { status, body, headers } = await manage.ask('GET', '/v1/keys', undefined, { authorization })
    assert.deepEqual([status, body.code], [401, code], authorization)
    assert.match(headers.get('www-authenticate') ?? '', /^Bearer .*resource_metadata="http/)
  }
})
