import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { hashOfKey } from '../../src/manage/auth/api-keys.ts'
import { openDatabase } from '../../src/store/engine/open-database.ts'
import { until } from '../until.ts'
import { EventReader } from './event-reader.ts'
import { agentIdentity, boundByDpop, boundByGnap, type CredentialMaker } from './credentials.ts'
import { TestManagement } from './management.ts'

// What proves who asks is good once, and a stream goes on: who has opened it is looked at again without.
const BOUND: Readonly<Record<string, readonly [CredentialMaker, list: string]>> = {
  'an access token bound by DPoP': [boundByDpop, 'clients'],
  'a token of GNAP bound to a key': [boundByGnap, 'trust'],
  'an agent that signs': [agentIdentity, 'trust'],
}

for (const [what, [make, list]] of Object.entries(BOUND))
  test(`${what}: its stream goes on, and ends when it may no more`, async (t) => {
    const manage = await TestManagement.start(t)
    const credential = await make(manage, ['read'], t)
    let isOver = false
    // It is answered when the stream has ended, with what is no JSON.
    const answer = credential.ask('GET', '/v1/events', { accept: 'text/event-stream' })
    const over = answer.then(
      ({ status }) => assert.fail(`answered with ${status}`),
      (error) => {
        assert.ok(error instanceof SyntaxError, String(error))
        isOver = true
      },
    )
    await wait(2_500) // It was looked at twice by then.
    assert.equal(isOver, false)
    const { body } = await manage.ask('GET', `/v1/${list}`)
    for (const { id, client_id } of body[list])
      assert.equal((await manage.ask('DELETE', `/v1/${list}/${client_id ?? id}`)).status, 204)
    await over
    assert.deepEqual(manage.failures, [])
  })

test('a stream ends when its caller loses an app, and goes on when it gets one more', async (t) => {
  const manage = await TestManagement.start(t)
  const key = await manage.key({ scopes: ['read'], apps: ['blog', 'shop'] })
  const { db, close } = await openDatabase(manage.storeUrl, null, async () => undefined)
  t.teardown(() => close())
  const give = (apps: readonly string[]) =>
    db
      .updateTable('api_keys')
      .set({ apps: JSON.stringify(apps) })
      .where('hash', '=', hashOfKey(key))
      .execute()
  const stream = await EventReader.open(`${manage.url}/v1/events`, { key })
  await give(['blog', 'shop', 'wiki'])
  await wait(2_500) // It was looked at twice by then.
  assert.deepEqual([stream.status, stream.hasEnded], [200, false])
  await give(['blog', 'wiki'])
  await until(() => stream.hasEnded)
  assert.deepEqual(manage.failures, [])
})
