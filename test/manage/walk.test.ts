import assert from 'node:assert/strict'
import { test } from 'tap'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { PLAIN_CREDENTIALS } from './credentials.ts'
import { TestManagement } from './management.ts'
import { nameOf, steps, TABLE, walk } from './walk.ts'

test('the table of scopes in the manual has each endpoint, and no other', async () => {
  for (const { prefix, operations } of VERSIONS) {
    const endpoints = operations.map(nameOf)
    const missing = endpoints.filter((name) => !TABLE.has(name))
    assert.deepEqual(missing, [], `authentication.md, Scopes: these of ${prefix} have no row: ${missing}`)
    const gone = [...TABLE.keys()].filter((name) => !endpoints.includes(name))
    assert.deepEqual(gone, [], `authentication.md, Scopes: ${prefix} has no such endpoints: ${gone}`)
  }
})

test('who sends no credential is told how to, at every endpoint', async (t) => {
  const manage = await TestManagement.start(t)
  for (const { method, path, name } of steps()) {
    const response = await fetch(manage.url + path, { method })
    const { code } = (await response.json()) as { readonly code: string }
    assert.deepEqual([response.status, code], [401, 'missing_token'], name)
    assert.equal(response.headers.get('ratelimit'), null, name)
  }
})

for (const [kind, make] of Object.entries(PLAIN_CREDENTIALS)) walk(kind, make)
