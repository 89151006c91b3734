import assert from 'node:assert/strict'
import { test } from 'tap'
import { openApiDocument } from '../../src/manage/api/openapi.ts'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { V1 } from '../../src/manage/api/operations.ts'
import { resolved } from '../../src/manage/http/json-schema.ts'
import { KINDS } from '../store/databases.ts'
import { Caller } from './management-caller.ts'
import { ADMIN_KEY, bodyFor, Estate, tablesOf } from './management-estate.ts'

/** Members that only the server may set. */
const SERVERS: Readonly<Record<string, unknown>> = {
  ...{ id: 'mass-assigned', key_id: 'mass-assigned', client_id: 'mass-assigned', task_id: 'mass-assigned' },
  ...{
    created_at: '2000-01-01T00:00:00.000Z',
    created_at_ms: 1,
    updated_at: 'mass-assigned',
    last_used_at: 1,
  },
  ...{ hash: 'mass-assigned', secret: 'mass-assigned', secret_hash: 'mass-assigned', key: 'mass-assigned' },
  ...{ client_secret: 'mass-assigned', password_hash: 'mass-assigned', callback_secret: 'mass-assigned' },
  ...{
    owner: 'mass-assigned',
    principal: 'mass-assigned',
    submitted_by: 'mass-assigned',
    author: 'mass-assigned',
  },
  ...{
    decided_by: 'mass-assigned',
    origin: 'mass-assigned',
    tenant: 'mass-assigned',
    source: 'mass-assigned',
  },
  ...{ role: 'admin', roles: ['admin'], admin: true, is_admin: true, isAdmin: true, verified: true },
  ...{
    email_verified: true,
    status: 'completed',
    state: 'approved',
    version: 999,
    total: 999,
    disabled_at: null,
  },
  ...{ health: {}, attempts: -1, plan: 'unlimited', scopes: ['admin'], access: 'admin' },
}
/** Members that change the prototype of an object. As text: an object literal would do it. */
const PROTOTYPES = [
  '"__proto__":{"admin":true,"scopes":["admin"]}',
  '"constructor":{"prototype":{"admin":true}}',
  '"prototype":{"admin":true}',
  '"\\u005f_proto__":{"admin":true}',
]

for (const kind of KINDS)
  test(`${kind}: a member that only the server sets is refused, or has no effect`, async (t) => {
    const estate = await Estate.start(t, kind)
    const { manage } = estate
    const caller = new Caller(t, manage.url, { authorization: `Bearer ${ADMIN_KEY}`, 'if-match': '*' })
    const before = await tablesOf(manage.storeUrl)
    let tried = 0
    for (const operation of V1.operations) {
      const body = bodyFor(operation)
      if (body === null) continue
      const own = new Set(membersOf(operation))
      const path = estate.pathFor(operation)
      for (const [name, value] of Object.entries(SERVERS)) {
        if (own.has(name)) continue
        const { status, text } = await caller.ask(
          operation.method,
          path,
          JSON.stringify({ ...body, [name]: value }),
        )
        tried++
        assert.equal(status, 400, `${operation.id} ${name}: ${text}`)
        assert.ok(
          JSON.parse(text).errors.some(({ pointer }: { pointer: string }) => pointer === `/${name}`),
          text,
        )
      }
      for (const member of PROTOTYPES) {
        const sent = `{${JSON.stringify(body).slice(1, -1)},${member}}`
        const { status, text } = await caller.ask(operation.method, path, sent)
        tried++
        assert.equal(status, 400, `${operation.id} ${member}: ${text}`)
      }
    }
    assert.ok(tried > 500, `${tried}`)
    assert.equal(({} as { admin?: unknown }).admin, undefined)
    assert.deepEqual(await tablesOf(manage.storeUrl), before)
    assert.deepEqual(manage.failures, [])
  })

test('who may not give a scope or a plan cannot write it into what registers itself', async (t) => {
  const registration = { registration: 'open' as const, registrationToken: null }
  const { manage } = await Estate.start(t, 'sqlite', {
    oauth: { accessTokenTtlS: 600, keyRotationMs: 90 * 86_400_000, ...registration },
  })
  const anonymous = { authorization: '' }
  const wanted = { redirect_uris: ['https://app.example/callback'], client_name: 'x', scope: 'read admin' }
  const more = { ...SERVERS, client_id: 'mass-assigned', grant_types: ['authorization_code'] }
  const { status, body } = await manage.ask('POST', '/oauth/register', { ...more, ...wanted }, anonymous)
  assert.equal(status, 201, JSON.stringify(body))
  assert.notEqual(body.client_id, 'mass-assigned')
  assert.equal(body.scope, 'read')
  const { clients } = (await manage.ask('GET', '/v1/clients')).body
  const [made] = clients.filter(({ client_id }: { client_id: string }) => client_id === body.client_id)
  assert.deepEqual([made.scopes, made.origin, made.plan === 'unlimited'], [['read'], 'registration', false])
  const tables = await tablesOf(manage.storeUrl)
  for (const [name, rows] of Object.entries(tables)) assert.doesNotMatch(rows, /mass-assigned/, name)
})

/** Everything in the schema of a body, with its alternatives. */
function membersOf({ path, method }: AnyOperation): readonly string[] {
  const { schemas } = DOCUMENT.components
  const schema = DOCUMENT.paths[path]![method.toLowerCase()]!.requestBody!.content['application/json']!.schema
  const whole = resolved(schema, schemas)
  const alternatives = [whole, ...(whole.anyOf ?? whole.oneOf ?? []).map((each) => resolved(each, schemas))]
  return alternatives.flatMap(({ properties = {} }) => Object.keys(properties))
}

const DOCUMENT = openApiDocument(V1, 'https://gate.example')
