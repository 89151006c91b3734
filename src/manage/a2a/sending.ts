import { type Message, SendMessageResponse, StreamResponse } from '@a2a-js/sdk'
import type { TaskRecord } from '../../store/work/task-record.ts'
import { newId } from '../http/ids.ts'
import type { ToolOutcome } from '../jobs/tools.ts'
import { A2AError } from './a2a-error.ts'
import { requestedTool } from './requested-tool.ts'
import { followed } from './following.ts'
import { keepPush, readPush } from './push.ts'
import type { SendParams } from './requests.ts'
import { type A2ACall, type A2AService, ownTask } from './service.ts'
import {
  dataPart,
  hasEnded,
  messageFrom,
  RESULTS_LENGTH_MAX,
  taskWithResults,
  textPart,
} from './task-view.ts'

/** Runs the requested tool. The result is a message, or a task that the client can query again. */
export async function sendMessage(params: SendParams, call: A2ACall, service: A2AService): Promise<unknown> {
  const begun = await begin(params, call, service)
  if (begun.kind === 'message')
    return SendMessageResponse.toJSON({ payload: { $case: 'message', value: begun.message } })
  const { returnImmediately = false } = params.configuration ?? {}
  const task =
    returnImmediately === true ? begun.task : await call.waiting(() => ended(begun.task, call, service))
  const view = await taskWithResults(task, RESULTS_LENGTH_MAX, service.management)
  return SendMessageResponse.toJSON({ payload: { $case: 'task', value: view.task } })
}

/** Like `sendMessage`, but also streams the changes of the task. */
export async function sendStreamingMessage(
  params: SendParams,
  call: A2ACall,
  service: A2AService,
): Promise<AsyncGenerator<unknown, void, undefined>> {
  const begun = await begin(params, call, service)
  return begun.kind === 'message' ? alone(begun.message) : followed(begun.task, call, service)
}

async function* alone(message: Message): AsyncGenerator<unknown, void, undefined> {
  yield StreamResponse.toJSON({ payload: { $case: 'message', value: message } })
}

type SendResult =
  | { readonly kind: 'message'; readonly message: Message }
  | { readonly kind: 'task'; readonly task: TaskRecord }

async function begin(
  { message, configuration }: SendParams,
  call: A2ACall,
  service: A2AService,
): Promise<SendResult> {
  const { management, tools } = service
  if (message.taskId !== null) await refuseMore(message.taskId, message.contextId, call, service)
  const takesData = modeOf(configuration?.acceptedOutputModes ?? []) === 'data'
  const { tool, given, pointer } = requestedTool(message, tools)
  const wanted = configuration?.taskPushNotificationConfig ?? null
  const push = wanted === null ? null : await readPush(wanted, PUSH_AT, management)
  const contextId = message.contextId ?? newId('ctx')
  const startedMs = performance.now()
  const outcome = await tools.call(tool, { given, caller: call.caller, pointer }, management)
  const taskId = tool.name === MAKES_TASKS && !outcome.isError ? taskIdIn(outcome) : null
  if (taskId !== null) {
    await management.store.tasks.setContext(taskId, contextId)
    if (push !== null) await keepPush(taskId, push, management)
    return { kind: 'task', task: await ownTask(taskId, call, service) }
  }
  const { result, isError } = outcome
  const part = takesData ? dataPart(result) : textPart(JSON.stringify(result, null, 2))
  const duration_ms = Math.round((performance.now() - startedMs) * 1000) / 1000
  const metadata = { tool: tool.name, is_error: isError, duration_ms }
  return { kind: 'message', message: messageFrom(newId('msg'), contextId, '', [part], metadata) }
}

/** Refuses a message to an existing task. A task takes all its input when it is created. */
async function refuseMore(
  taskId: string,
  contextId: string | null,
  call: A2ACall,
  service: A2AService,
): Promise<never> {
  const task = await ownTask(taskId, call, service)
  if (contextId !== null && contextId !== (task.contextId ?? task.id))
    throw new A2AError('INVALID_PARAMS', 'the task belongs to another context', {
      errors: [{ pointer: '/message/contextId', detail: 'differs from the context of the task' }],
    })
  throw new A2AError(
    'UNSUPPORTED_OPERATION',
    'tasks do not accept further messages: send a message without taskId',
    {
      metadata: { taskId },
    },
  )
}

function modeOf(accepted: readonly string[]): 'data' | 'text' {
  const types = accepted.map((each) => each.split(';', 1)[0]!.trim().toLowerCase())
  const takes = (...some: readonly string[]) => types.some((type) => some.includes(type))
  if (types.length === 0 || takes('*/*', 'application/*', 'application/json', 'data')) return 'data'
  if (takes('text/*', 'text/plain', 'text')) return 'text'
  throw new A2AError(
    'CONTENT_TYPE_NOT_SUPPORTED',
    'answers are only available as application/json or text/plain',
    {
      errors: [
        {
          pointer: '/configuration/acceptedOutputModes',
          detail: 'contains neither application/json nor text/plain',
        },
      ],
    },
  )
}

/**
 * Waits until the task ends, the wait times out, or the client disconnects. Returns the task as it is then.
 */
async function ended(
  begun: TaskRecord,
  call: A2ACall,
  { watch, management }: A2AService,
): Promise<TaskRecord> {
  if (hasEnded(begun)) return begun
  const close = management.streams.enterIfRoom(call.caller.principal.id)
  if (close === null) return begun // no room for another open wait: the client polls instead
  const stop = AbortSignal.any([call.stop, AbortSignal.timeout(WAIT_MS)])
  try {
    let task = begun
    while (!hasEnded(task)) {
      const changed = await watch.changed(task, stop)
      if (changed === null) break
      task = changed
    }
    return task
  } finally {
    close()
  }
}

function taskIdIn({ result }: ToolOutcome): string {
  return (result as { readonly task_id: string }).task_id
}

const MAKES_TASKS = 'create_task'
const PUSH_AT = '/configuration/taskPushNotificationConfig'
/** Most clients wait five minutes for the response headers. */
const WAIT_MS = 240_000
