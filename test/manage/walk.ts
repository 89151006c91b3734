import assert from 'node:assert/strict'
import { test } from 'tap'
import type { AnyOperation } from '../../src/manage/http/operation.ts'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { type Scope, SCOPES } from '../../src/manage/http/access/principal.ts'
import { BOOTSTRAP_KEY, type CredentialMaker } from './credentials.ts'
import { type Answered, TestManagement } from './management.ts'
import { scopeTable } from './scope-table.ts'

/**
 * Each endpoint, asked with credentials of one kind and of each scope: what the manual says of it is what happens. Nothing
 * is done by it: what may be done is asked for of something that is not there, or with a query that nobody knows.
 */
export function walk(kind: string, make: CredentialMaker): void {
  test(`every endpoint with ${kind}, of each scope and of none`, async (t) => {
    const manage = await TestManagement.start(t, {
      adminKey: BOOTSTRAP_KEY,
      allowPrivateFetches: true,
      authFailuresPerMinute: 1_000_000,
    })
    const isUnlimited = kind === 'the bootstrap key'
    const holdings: readonly (readonly Scope[])[] = isUnlimited
      ? [['admin']]
      : [[], ...SCOPES.map((scope) => [scope])]
    const credentials = []
    for (const held of holdings) credentials.push({ held, credential: await make(manage, held, t) })
    for (const { held, credential } of credentials)
      for (const step of steps()) {
        const given = await credential.ask(step.method, step.path)
        const about = `${step.name} with ${kind} of ${held.length === 0 ? 'no scope' : held}`
        assert.deepEqual(told(given), expected(step, held), about)
        assert.ok(given.headers.get('ratelimit') && given.headers.get('ratelimit-policy'), about)
      }
    for (const { method, path, name } of steps()) {
      const given = await credentials.at(-1)!.credential.askSpoiled(method, path)
      assert.deepEqual([given.status, given.body.code], [401, 'invalid_token'], name)
      assert.equal(given.headers.get('ratelimit'), null, name)
    }
    if (isUnlimited) return
    const limits = { 'limits.free_per_day': 1, 'limits.standard_per_hour': 1 }
    assert.equal((await manage.ask('PATCH', '/v1/settings', limits)).status, 200)
    const { credential } = credentials[1]!
    for (const { method, path, name } of steps()) {
      const given = await credential.ask(method, path)
      assert.deepEqual(
        [given.status, given.body.code],
        [429, 'rate_limited'],
        `${name}: before 403, 404, 400`,
      )
      assert.match(given.headers.get('ratelimit')!, /;r=0;/, name)
    }
    assert.deepEqual(manage.failures, [])
  })
}

export interface Step {
  readonly method: string
  readonly path: string
  readonly name: string
  /** Of something that is not there. */
  readonly isOfOne: boolean
  readonly scopes: readonly Scope[]
}

/** An endpoint that the table does not have is told of by the test of the table. */
export function steps(): readonly Step[] {
  return VERSIONS.flatMap(({ prefix, operations }) =>
    operations
      .filter((operation) => TABLE.has(nameOf(operation)))
      .map((operation) => ({
        method: operation.method,
        path: `${prefix}${operation.path.replaceAll(/\{\w+\}/g, 'nothing')}?nonsense=1`,
        name: `${operation.method} ${prefix}${operation.path}`,
        isOfOne: operation.path.includes('{'),
        scopes: TABLE.get(nameOf(operation))!,
      })),
  )
}

function expected({ scopes, isOfOne }: Step, held: readonly Scope[]): readonly unknown[] {
  const may = held.includes('admin') || scopes.some((scope) => held.includes(scope))
  if (!may) return [403, 'insufficient_scope', `this needs the scope ${scopes.join(' or ')}`]
  return isOfOne ? [404, 'not_found', null] : [400, 'invalid_request', null]
}

function told({ status, body }: Answered): readonly unknown[] {
  return [status, body.code, status === 403 ? body.detail : null]
}

export function nameOf({ method, path }: AnyOperation): string {
  return `${method} ${path}`
}

export const TABLE = scopeTable()
