import assert from 'node:assert/strict'
import { test } from 'tap'
import { Idempotency } from '../../src/manage/api/idempotency.ts'
import type { Management } from '../../src/manage/management.ts'
import { Refusal } from '../../src/manage/refusal.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { TestManagement } from './management.ts'

const ASKED = {
  principal: 'key_1',
  credential: 'Bearer one',
  method: 'POST',
  target: '/v1/things',
  body: { name: 'x' },
}

test('a key is made once, and shown again to who made it', async (t) => {
  const manage = await TestManagement.start(t)
  const body = { name: 'x', access: 'read' }
  const ask = (key: string, given: object = body, headers = {}) =>
    manage.ask('POST', '/v1/keys', given, { 'idempotency-key': key, ...headers })
  const first = await ask('"abc-1"')
  const again = await ask('"abc-1"')
  assert.deepEqual([again.status, again.body], [201, first.body])
  assert.equal(first.headers.get('idempotency-replayed'), null)
  assert.equal(again.headers.get('idempotency-replayed'), 'true')
  assert.notEqual((await ask('"abc-2"')).body.id, first.body.id)
  const other = await ask('"abc-1"', { ...body, name: 'y' })
  assert.deepEqual([other.status, other.body.code], [409, 'idempotency_conflict'])
  const somebody = `Bearer ${await manage.key({})}`
  assert.equal((await ask('"abc-1"', body, { authorization: somebody })).status, 201)
  assert.equal((await manage.ask('GET', '/v1/keys')).body.total, 5)
  const invalid = await ask('"abc-3"', { name: 'x' })
  assert.equal(invalid.status, 400)
  assert.equal((await ask('"abc-3"', { name: 'x' })).headers.get('idempotency-replayed'), 'true')
  for (const key of ['', 'a b', 'x'.repeat(256), 'é'])
    assert.deepEqual((await ask(key)).body.errors?.[0]?.pointer, '/Idempotency-Key', key)
  assert.equal((await ask('x'.repeat(255))).status, 201)
})

test('of many at once one is done, the others are told to wait', async (t) => {
  const manage = await TestManagement.start(t)
  const headers = { 'idempotency-key': 'same' }
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => manage.ask('POST', '/v1/keys', { name: 'x', access: 'read' }, headers)),
  )
  const ids = new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id))
  assert.equal(ids.size, 1)
  for (const { status, body, headers: got } of answers.filter(({ status }) => status !== 201)) {
    assert.deepEqual([status, body.code], [409, 'idempotency_in_progress'])
    assert.equal(got.get('retry-after'), '1')
  }
  assert.equal((await manage.ask('GET', '/v1/keys')).body.total, 2)
})

for (const kind of KINDS) {
  test(`${kind}: nothing of an answer, a key or a credential lies in the database`, async (t) => {
    const url = await freshUrl(kind, t)
    const store = await openAt(t, url)
    const { once } = idempotency(store)
    await once('order-1', {}, async () => ({ status: 201, headers: {}, body: { secret: 'sesame' } }))
    const again = await once('order-1', {}, () => Promise.reject(new Error('twice')))
    assert.deepEqual(again.body, { secret: 'sesame' })
    const begun = await store.idempotency.begin('key_1', 'none', 'none', 0)
    assert.equal(begun.kind, 'new')
    const kept: string[] = []
    const spy = new Proxy(store.idempotency, {
      get: (target, name) =>
        name === 'finish'
          ? (...given: unknown[]) => {
              kept.push(JSON.stringify(given))
              return true
            }
          : Reflect.get(target, name).bind(target),
    })
    await idempotency({ idempotency: spy } as unknown as Store).once('order-2', {}, async () => ({
      ...{ status: 201, headers: {}, body: { secret: 'sesame' } },
    }))
    assert.equal(kept.length, 1)
    for (const text of ['sesame', 'order', 'Bearer', 'one']) assert.ok(!kept[0]!.includes(text), text)
  })

  test(`${kind}: another credential of the same principal does not get the answer, nor do it again`, async (t) => {
    const { once } = idempotency(await openFresh(kind, t))
    await once('k', {}, async () => ({ status: 201, headers: {}, body: 1 }))
    await assert.rejects(
      once('k', { credential: 'Bearer two' }, () => Promise.reject(new Error('twice'))),
      { code: 'idempotency_conflict' },
    )
  })

  test(`${kind}: a refusal is given again, a failure is forgotten`, async (t) => {
    const { once } = idempotency(await openFresh(kind, t))
    const refusal = new Refusal('conflict', 'there is one', { errors: [{ pointer: '/name', detail: 'x' }] })
    await assert.rejects(
      once('a', {}, () => Promise.reject(refusal)),
      refusal,
    )
    await assert.rejects(
      once('a', {}, async () => ({ status: 201, headers: {}, body: null })),
      {
        ...{ code: 'conflict', message: 'there is one', errors: refusal.errors },
        headers: { 'Idempotency-Replayed': 'true' },
      },
    )
    for (const failure of [new Refusal('unavailable', 'away'), new Error('bug')])
      await assert.rejects(
        once('b', {}, () => Promise.reject(failure)),
        failure,
      )
    assert.equal((await once('b', {}, async () => ({ status: 201, headers: {}, body: 2 }))).body, 2)
  })

  test(`${kind}: after a day it is another request`, async (t) => {
    const { once, at } = idempotency(await openFresh(kind, t))
    await once('k', {}, async () => ({ status: 201, headers: {}, body: 1 }))
    at.nowMs += 86_399_999
    assert.equal((await once('k', {}, async () => ({ status: 201, headers: {}, body: 2 }))).body, 1)
    at.nowMs += 1
    assert.equal((await once('k', {}, async () => ({ status: 201, headers: {}, body: 3 }))).body, 3)
  })
}

function idempotency(store: Store) {
  const at = { nowMs: 1_700_000_000_000 }
  const subject = new Idempotency({ store, nowMs: () => at.nowMs } as unknown as Management)
  const once = (key: string, asked: Partial<typeof ASKED>, run: Parameters<Idempotency['once']>[2]) =>
    subject.once(key, { ...ASKED, ...asked }, run)
  return { once, at }
}
