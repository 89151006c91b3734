import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { Fault } from '../../src/shared/fault.ts'
import { Idempotency } from '../../src/manage/http/idempotency.ts'
import { Refusal } from '../../src/manage/http/refusal.ts'
import type { Store } from '../../src/store/store.ts'
import { freshUrl, KINDS, openAt, openFresh } from '../store/databases.ts'
import { Relay } from '../store/relay.ts'
import { TestManagement } from './management.ts'

const ASKED = {
  principal: 'key_1',
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
  const subject = new Idempotency({ store, nowMs: () => at.nowMs })
  const once = (key: string, asked: Partial<typeof ASKED>, run: Parameters<Idempotency['once']>[2]) =>
    subject.once(key, { ...ASKED, ...asked }, run)
  return { once, at }
}

test('what could not be written down while the database was away is, when it is back', async (t) => {
  const relay = await Relay.before(await freshUrl('postgres', t))
  t.teardown(() => relay.stop())
  const { once } = idempotency(await openAt(t, relay.url))
  const done = { status: 201, headers: {}, body: { id: 'x' } }
  const isAway = (error: Partial<Fault>) => error.code === 'STORE_UNAVAILABLE'
  const cutOff = async () => {
    await relay.stop()
    setTimeout(() => void relay.start(), 700)
  }
  await assert.rejects(
    once('failed', {}, async () => {
      await cutOff()
      throw new Fault('STORE_UNAVAILABLE', 'the work itself has failed')
    }),
    { message: 'the work itself has failed' },
  )
  assert.deepEqual(await eventually(() => once('failed', {}, async () => done)), done)
  await assert.rejects(
    once('done', {}, async () => {
      await cutOff()
      return done
    }),
    isAway,
  )
  const again = await eventually(() => once('done', {}, () => assert.fail('it is done')))
  assert.deepEqual(again, { ...done, headers: { 'Idempotency-Replayed': 'true' } })
})

/** What is not there yet, or being done, is asked for again. */
async function eventually<Result>(ask: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const { code } = error as { readonly code?: string }
      if (code !== 'STORE_UNAVAILABLE' && code !== 'idempotency_in_progress') throw error
      await wait(50)
    }
  }
}
