import { Webhook } from 'standardwebhooks'
import type { TaskRecord } from '../../store/work/task-record.ts'
import { newId } from '../http/ids.ts'
import type { JobsContext } from './context.ts'
import { type CallbackMessage, type CallbackSecret, whatOf } from './task-callbacks.ts'
import { newSigningSecret, signedHeaders } from './signing.ts'

/**
 * Stores the URL that is notified of the end of a task. Resolves to the signing secret of the notification.
 */
export async function keepTaskWebhook(
  taskId: string,
  url: string,
  { store, sealer, callbacks, nowMs }: Pick<JobsContext, 'store' | 'sealer' | 'callbacks' | 'nowMs'>,
): Promise<string> {
  const id = newId('cbk')
  const signing = newSigningSecret()
  const secret: CallbackSecret = { token: null, scheme: null, credentials: null, signing }
  const sealed = await sealer.seal(JSON.stringify(secret), whatOf(taskId, id))
  await store.taskCallbacks.put({ taskId, id, url, sealed, createdAtMs: nowMs() }, CALLBACKS_MAX)
  callbacks.wake()
  return signing
}

/** The notification, as in Standard Webhooks, with one id for all attempts; `null`: the task goes on. */
export function taskWebhook(
  task: TaskRecord,
  shown: unknown,
  { id, signing }: { readonly id: string; readonly signing: string },
  nowMs: number,
): CallbackMessage | null {
  const { status, finishedAtMs } = task
  if (finishedAtMs === null) return null
  const timestamp = new Date(finishedAtMs).toISOString()
  const body = JSON.stringify({ type: `task_${status}`, timestamp, data: shown })
  return { headers: signedHeaders(id, body, [new Webhook(signing)], nowMs), body }
}

/** A new task has no callbacks yet. */
const CALLBACKS_MAX = 1
