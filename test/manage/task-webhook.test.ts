import assert from 'node:assert/strict'
import { Webhook } from 'standardwebhooks'
import { test } from 'tap'
import { freshUrl, KINDS } from '../store/databases.ts'
import { Receiver } from './callback-receiver.ts'
import { TestManagement } from './management.ts'

for (const kind of KINDS)
  test(`${kind}: callback_url is told the end of a task, once, signed`, async (t) => {
    const storeUrl = await freshUrl(kind, t)
    const manage = await TestManagement.start(t, { knows: true, allowPrivateWebhooks: true, storeUrl })
    const receiver = await Receiver.start(t, (response, number) =>
      response.writeHead(number === 1 ? 503 : 204).end(),
    )
    const callback_url = `${receiver.url}/tasks?of=mine`
    const create = async (items: readonly unknown[], type = 'detect') => {
      const { status, body } = await manage.ask('POST', '/v1/tasks/create', { type, items, callback_url })
      assert.equal(status, 200, JSON.stringify(body))
      return body
    }
    const small = await create([{ user_agent: 'curl/8.5.0' }])
    assert.equal(small.status, 'completed')
    const [failed, repeated] = await receiver.has(2)
    assert.deepEqual(repeated!.body, failed!.body)
    assert.equal(repeated!.headers['webhook-id'], failed!.headers['webhook-id'])

    const large = await create(Array.from({ length: 1_200 }, () => ({ user_agent: 'curl/8.5.0' })))
    await receiver.has(3)
    const cancelled = await create(
      Array.from({ length: 9_000 }, () => ({ user_agent: 'curl/8.5.0' })),
      'explain',
    )
    await manage.ask('DELETE', `/v1/tasks/${cancelled.task_id}`)
    await receiver.has(4)

    for (const [index, made, type] of [
      [1, small, 'task_completed'],
      [2, large, 'task_completed'],
      [3, cancelled, 'task_cancelled'],
    ] as const) {
      const { path, headers, body } = receiver.received[index]!
      assert.equal(path, '/tasks?of=mine')
      new Webhook(made.callback_secret).verify(JSON.stringify(body), headers as Record<string, string>)
      const shown = (await manage.ask('GET', `/v1/tasks/${made.task_id}?limit=1`)).body
      const { results: _, page: __, limit: ___, ...task } = shown
      assert.deepEqual(body, { type, timestamp: task.finished_at, data: task })
      assert.ok(!JSON.stringify(shown).includes(made.callback_secret))
    }
    assert.equal(receiver.received.length, 4)
    assert.ok(!manage.said.join().includes('whsec_'))
    assert.deepEqual(manage.failures, [])
  })
