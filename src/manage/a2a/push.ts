import { StreamResponse, TaskPushNotificationConfig } from '@a2a-js/sdk'
import type { TaskCallback } from '../../store/work/task-callbacks.ts'
import { newId } from '../http/ids.ts'
import type { ApiContext } from '../api/context.ts'
import { invalid } from '../http/refusal.ts'
import { type CallbackMessage, type CallbackSecret, whatOf } from '../jobs/task-callbacks.ts'
import { readWebhookUrl } from '../events/webhooks/webhook-url.ts'
import { A2AError } from './a2a-error.ts'
import type { PushConfig } from './requests.ts'
import type { TaskRecord } from '../../store/work/task-record.ts'
import { REST_TYPE, VERSION } from './protocol.ts'
import { statusUpdate } from './task-view.ts'

/** A push configuration after validation. */
interface CheckedPush {
  readonly id: string
  readonly url: string
  readonly secret: CallbackSecret | null
}

export async function readPush(
  { id, url, token, authentication }: PushConfig,
  pointer: string,
  { allowPrivateWebhooks }: Pick<ApiContext, 'allowPrivateWebhooks'>,
): Promise<CheckedPush> {
  const read = await readWebhookUrl(url, allowPrivateWebhooks)
  if ('refused' in read) throw invalid([{ pointer: `${pointer}/url`, detail: read.refused }])
  const { scheme, credentials } = authentication ?? { scheme: null, credentials: null }
  const isNothing = token === null && scheme === null
  return {
    id: id ?? newId('cbk'),
    url: read.url,
    secret: isNothing ? null : { token, scheme, credentials },
  }
}

/** Stores the configuration. It replaces one with the same id. */
export async function keepPush(
  taskId: string,
  { id, url, secret }: CheckedPush,
  { store, sealer, callbacks, nowMs }: ApiContext,
): Promise<TaskCallback> {
  const sealed = secret === null ? null : await sealer.seal(JSON.stringify(secret), whatOf(taskId, id))
  const callback = { taskId, id, url, sealed, createdAtMs: nowMs() }
  if (!(await store.taskCallbacks.put(callback, CONFIGS_MAX)))
    throw new A2AError(
      'RESOURCE_EXHAUSTED',
      `a task can have at most ${CONFIGS_MAX} push notification configurations: delete one first`,
    )
  callbacks.wake()
  return callback
}

/**
 * Shows a configuration without its secrets. They authenticate us to the receiver, so clients never get them
 * back.
 */
export function pushView({ taskId, id, url }: TaskCallback): unknown {
  const secrets = { tenant: '', token: '', authentication: undefined }
  return TaskPushNotificationConfig.toJSON({ ...secrets, taskId, id, url })
}

/** Configurations per task. Each receives every status change. */
const CONFIGS_MAX = 5

/**
 * A push notification for a task (A2A 1.0 §4.3.3). It contains the status; the client fetches the results.
 */
export function pushMessage(task: TaskRecord): CallbackMessage {
  return {
    headers: { 'content-type': REST_TYPE, 'a2a-version': VERSION },
    body: JSON.stringify(StreamResponse.toJSON(statusUpdate(task))),
  }
}
