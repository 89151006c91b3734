import { Task } from '@a2a-js/sdk'
import type * as z from 'zod'
import { cursorFor, fromPosition, markOf, positionIn } from '../http/cursor.ts'
import { validated } from '../http/validate.ts'
import { invalid, Refusal } from '../http/refusal.ts'
import { A2AError } from './a2a-error.ts'
import { checkFollowed, followed } from './following.ts'
import { keepPush, pushView, readPush } from './push.ts'
import {
  listParams,
  noParams,
  pushConfig,
  pushListParams,
  pushParams,
  sendParams,
  taskParams,
} from './requests.ts'
import { sendMessage, sendStreamingMessage } from './sending.ts'
import { type A2ACall, type A2AService, ownTask } from './service.ts'
import { RESULTS_LENGTH_MAX, statusWith, taskOf, taskWithResults } from './task-view.ts'

/** A method of A2A for both bindings. It validates its parameters and returns JSON, once or as a stream. */
export type A2AMethod = A2AAnswer | Streaming

export interface A2AAnswer {
  readonly kind: 'answer'
  run(params: unknown, call: A2ACall, service: A2AService): Promise<unknown>
}

export interface Streaming {
  readonly kind: 'stream'
  /** If this rejects, no stream has started. */
  run(params: unknown, call: A2ACall, service: A2AService): Promise<AsyncGenerator<unknown, void, undefined>>
}

function answering<Schema extends z.ZodType>(
  schema: Schema,
  run: (params: z.output<Schema>, call: A2ACall, service: A2AService) => Promise<unknown>,
): A2AAnswer {
  return { kind: 'answer', run: (params, ...rest) => run(validated(schema, params, 'body'), ...rest) }
}

function streaming<Schema extends z.ZodType>(
  schema: Schema,
  run: (
    params: z.output<Schema>,
    call: A2ACall,
    service: A2AService,
  ) => Promise<AsyncGenerator<unknown, void, undefined>>,
): Streaming {
  return { kind: 'stream', run: async (params, ...rest) => run(validated(schema, params, 'body'), ...rest) }
}

const getTask = answering(taskParams, async ({ id }, call, service) => {
  const task = await ownTask(id, call, service)
  return Task.toJSON((await taskWithResults(task, RESULTS_LENGTH_MAX, service.management)).task)
})

const listTasks = answering(listParams, async (params, call, service) => {
  const { store } = service.management
  const principal = call.caller.principal.id
  const limit = params.pageSize ?? PAGE_SIZE
  const state = params.status || 'TASK_STATE_UNSPECIFIED'
  const status = statusWith(state)
  if (status === null && state !== 'TASK_STATE_UNSPECIFIED') return listOf([], '', limit, 0)
  const after = params.statusTimestampAfter
  const changedAfterMs = after == null ? null : Date.parse(after)
  const filter = { contextId: params.contextId, status, changedAfterMs }
  const mark = markOf('ListTasks', filter)
  const token = params.pageToken || undefined
  const { items, next, total } = await fromToken(() =>
    store.tasks.of(principal, filter, { after: positionIn(token, mark), limit }),
  )
  const tasks: unknown[] = []
  let left = RESULTS_LENGTH_MAX
  for (const record of items) {
    if (params.includeArtifacts !== true) {
      tasks.push(Task.toJSON(taskOf(record)))
      continue
    }
    const { task, bytes } = await taskWithResults(record, left, service.management)
    left = Math.max(0, left - bytes)
    tasks.push({ artifacts: [], ...(Task.toJSON(task) as object) })
  }
  return listOf(tasks, next === null ? '' : cursorFor(mark, next), limit, total)
})

/** All members are always present (A2A 1.0 §3.1.4). */
function listOf(tasks: readonly unknown[], nextPageToken: string, pageSize: number, totalSize: number) {
  return { tasks, nextPageToken, pageSize, totalSize }
}

async function fromToken<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await fromPosition(work)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const detail = 'is not valid for this list: use a nextPageToken from it, with the same filters'
    throw invalid([{ pointer: '/pageToken', detail }])
  }
}

const cancelTask = answering(taskParams, async ({ id }, call, service) => {
  const { store, nowMs } = service.management
  await ownTask(id, call, service)
  await store.tasks.cancel(id, nowMs())
  const task = await ownTask(id, call, service)
  // Cancelling a cancelled task again succeeds (A2A 1.0 §3.3.1).
  if (task.status !== 'cancelled')
    throw new A2AError('TASK_NOT_CANCELABLE', 'the task has already ended', { metadata: { taskId: id } })
  return Task.toJSON(taskOf(task))
})

const subscribe = streaming(taskParams, async ({ id }, call, service) => {
  const task = await ownTask(id, call, service)
  checkFollowed(task)
  return followed(task, call, service)
})

const createPush = answering(pushConfig, async ({ taskId, ...config }, call, service) => {
  await ownTask(taskId, call, service)
  const checked = await readPush(config, '', service.management)
  return pushView(await keepPush(taskId, checked, service.management))
})

const getPush = answering(pushParams, async ({ taskId, id }, call, service) => {
  await ownTask(taskId, call, service)
  const configs = await service.management.store.taskCallbacks.of(taskId)
  const found = configs.find((each) => each.id === id)
  if (found === undefined)
    throw new A2AError('TASK_NOT_FOUND', 'push notification configuration not found', {
      metadata: { taskId, id },
    })
  return pushView(found)
})

const listPush = answering(pushListParams, async ({ taskId }, call, service) => {
  await ownTask(taskId, call, service)
  const configs = await service.management.store.taskCallbacks.of(taskId)
  return { configs: configs.map(pushView), nextPageToken: '' }
})

const deletePush = answering(pushParams, async ({ taskId, id }, call, service) => {
  await ownTask(taskId, call, service)
  await service.management.store.taskCallbacks.remove(taskId, id)
  return null
})

const getCard = answering(noParams, (_params, { caller }, { cards }) => cards.extended(caller.principal))

export const METHODS = {
  SendMessage: answering(sendParams, sendMessage),
  SendStreamingMessage: streaming(sendParams, sendStreamingMessage),
  GetTask: getTask,
  ListTasks: listTasks,
  CancelTask: cancelTask,
  SubscribeToTask: subscribe,
  CreateTaskPushNotificationConfig: createPush,
  GetTaskPushNotificationConfig: getPush,
  ListTaskPushNotificationConfigs: listPush,
  DeleteTaskPushNotificationConfig: deletePush,
  GetExtendedAgentCard: getCard,
} as const satisfies Record<string, A2AMethod>

const PAGE_SIZE = 50
