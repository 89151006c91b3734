import assert from 'node:assert/strict'
import { TaskPushNotificationConfig } from '@a2a-js/sdk'
import { RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors'
import { test } from 'tap'
import { Store } from '../../src/store/store.ts'
import { asTask, BINDINGS, calling, clientOf } from './a2a-client.ts'
import { Receiver } from './callback-receiver.ts'
import { TestManagement } from './management.ts'

const OWN = ['read', 'detect', 'mcp'] as const
const ITEMS = Array.from({ length: 150 }, () => ({ user_agent: 'GPTBot/1.2' }))

for (const binding of BINDINGS) {
  test(`${binding}: who has asked for it with the message is told when the task has ended`, async (t) => {
    const manage = await TestManagement.start(t, { knows: true, allowPrivateWebhooks: true })
    const receiver = await Receiver.start(t)
    const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), binding)
    const configuration = {
      returnImmediately: true,
      taskPushNotificationConfig: {
        url: `${receiver.url}/hook`,
        token: 'mine',
        authentication: { scheme: 'Bearer', credentials: 'secret' },
      },
    }
    const call = calling('create_task', { type: 'detect', items: ITEMS }, { configuration })
    const { id, contextId } = asTask(await client.sendMessage(call))
    const isOver = () => receiver.received.some(({ body }) => stateIn(body) === 'TASK_STATE_COMPLETED')
    for (let count = 1; !isOver() && count < 5; count++) await receiver.has(count)
    const { path, headers, body } = receiver.received.at(-1)!
    assert.deepEqual([body.statusUpdate.taskId, body.statusUpdate.contextId], [id, contextId])
    assert.equal(stateIn(body), 'TASK_STATE_COMPLETED')
    assert.equal(body.statusUpdate.metadata.completed, ITEMS.length)
    assert.deepEqual(
      [path, headers.authorization, headers['x-a2a-notification-token'], headers['content-type']],
      ['/hook', 'Bearer secret', 'mine', 'application/a2a+json'],
    )
    const { configs } = await client.listTaskPushNotificationConfig(listing(id))
    assert.deepEqual([configs.length, configs[0]!.url, configs[0]!.token], [1, `${receiver.url}/hook`, ''])
    assert.equal(configs[0]!.authentication, undefined)
    // One that was done in the answer is told, too: who has lost the answer knows.
    const small = calling('create_task', { type: 'detect', items: ITEMS.slice(0, 1) }, { configuration })
    const done = asTask(await client.sendMessage(small))
    const before = receiver.received.length
    await receiver.has(before + 1)
    assert.equal(receiver.received.at(-1)!.body.statusUpdate.taskId, done.id)
    assert.doesNotMatch(manage.said.join(), /secret|mine/)
    assert.deepEqual(manage.failures, [])
  })

  test(`${binding}: configurations are made, read, listed, replaced and removed`, async (t) => {
    const manage = await TestManagement.start(t, { allowPrivateWebhooks: true })
    const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), binding)
    const configuration = { returnImmediately: true }
    const call = calling('create_task', { type: 'detect', items: ITEMS }, { configuration })
    const { id: taskId } = asTask(await client.sendMessage(call))
    const make = (more: object) =>
      client.createTaskPushNotificationConfig(
        TaskPushNotificationConfig.fromJSON({ taskId, url: 'https://hooks.example/a', ...more }),
      )
    const named = await make({ id: 'mine', token: 'x' })
    assert.deepEqual([named.id, named.taskId, named.token], ['mine', taskId, ''])
    const unnamed = await make({})
    assert.match(unnamed.id, /^cbk_/)
    await make({ id: 'mine', url: 'https://hooks.example/b' })
    const get = (id: string) => client.getTaskPushNotificationConfig({ taskId, id, tenant: '' })
    assert.equal((await get('mine')).url, 'https://hooks.example/b')
    const ids = async () =>
      (await client.listTaskPushNotificationConfig(listing(taskId))).configs.map(({ id }) => id)
    assert.deepEqual((await ids()).toSorted(), [unnamed.id, 'mine'].toSorted())
    for (const id of ['c', 'd', 'e']) await make({ id })
    await assert.rejects(make({ id: 'f' }), /at most 5/)
    // Twice is as good as once.
    for (const _ of [1, 2]) await client.deleteTaskPushNotificationConfig({ taskId, id: 'mine', tenant: '' })
    await assert.rejects(get('mine'), TaskNotFoundError)
    assert.equal((await ids()).length, 4)
    await assert.rejects(make({ taskId: 'tsk_none' }), TaskNotFoundError)
    for (const wrong of [
      { url: 'file:///etc/passwd' },
      { url: 'https://user:password@hooks.example/' },
      { url: 'nonsense' },
      { token: 'a\r\nHost: b' },
      { authentication: { scheme: 'Bea rer', credentials: 'x' } },
      { authentication: { scheme: 'Bearer', credentials: 'x\ny' } },
      { id: '../x' },
    ])
      await assert.rejects(make(wrong), RequestMalformedError, JSON.stringify(wrong))
    assert.deepEqual(manage.failures, [])
  })
}

test('what is not on the public internet is refused, with the message too, and then nothing is begun', async (t) => {
  const manage = await TestManagement.start(t, { knows: true })
  const client = await clientOf(manage, await manage.key({ scopes: [...OWN] }), 'JSONRPC')
  for (const url of [
    'http://hooks.example/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://169.254.169.254/latest/meta-data/',
    'https://metadata.localhost/',
    'https://10.0.0.1/',
    'https://0x7f000001/',
    'https://2130706433/',
    'https://[::ffff:a9fe:a9fe]/',
  ]) {
    const configuration = { taskPushNotificationConfig: { url } }
    const call = calling('create_task', { type: 'detect', items: ITEMS }, { configuration })
    await assert.rejects(client.sendMessage(call), RequestMalformedError, url)
  }
  const tasks = await manage.ask('GET', '/a2a/v1/tasks', undefined, { 'a2a-version': '1.0' })
  assert.equal(tasks.body.totalSize, 0)
  assert.deepEqual(manage.failures, [])
})

test('what was not told before a stop is told after the start', async (t) => {
  const first = await TestManagement.start(t, { allowPrivateWebhooks: true })
  const key = await first.key({ scopes: [...OWN] })
  const receiver = await Receiver.start(t)
  const client = await clientOf(first, key, 'HTTP+JSON')
  const configuration = {
    returnImmediately: true,
    taskPushNotificationConfig: { url: receiver.url, token: 'kept' },
  }
  const call = calling('create_task', { type: 'detect', items: ITEMS }, { configuration })
  const { id } = asTask(await client.sendMessage(call))
  await first.stop()
  const store = await Store.open(first.storeUrl)
  await store.tasks.cancel(id, Date.now())
  await store.close()
  assert.equal(receiver.received.length, 0)
  const settings = { storeUrl: first.storeUrl, dataFolder: first.folder, admin: null }
  await TestManagement.start(t, { ...settings, allowPrivateWebhooks: true })
  const [told] = await receiver.has(1)
  assert.deepEqual([told?.body.statusUpdate.taskId, stateIn(told?.body)], [id, 'TASK_STATE_CANCELED'])
  assert.equal(told?.headers['x-a2a-notification-token'], 'kept')
})

function listing(taskId: string) {
  return { taskId, tenant: '', pageSize: 0, pageToken: '' }
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
function stateIn(body: any): string {
  return body.statusUpdate.status.state
}
