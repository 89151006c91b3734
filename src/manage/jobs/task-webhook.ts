import { Webhook } from 'standardwebhooks'
import type { TaskRecord } from '../../store/work/tasks.ts'
import { newId } from '../http/ids.ts'
import type { Management } from '../management.ts'
import { type CallbackMessage, type CallbackSecret, whatOf } from './task-callbacks.ts'
import { newSigningSecret, signedHeaders } from './signing.ts'

/** Where somebody is told the end of a task of theirs; resolves to the secret that what they are told is signed with. */
export async function keepTaskWebhook(
  taskId: string,
  url: string,
  { store, sealer, callbacks, nowMs }: Pick<Management, 'store' | 'sealer' | 'callbacks' | 'nowMs'>,
): Promise<string> {
  const id = newId('cbk')
  const signing = newSigningSecret()
  const secret: CallbackSecret = { token: null, scheme: null, credentials: null, signing }
  const sealed = await sealer.seal(JSON.stringify(secret), whatOf(taskId, id))
  await store.taskCallbacks.put({ taskId, id, url, sealed, createdAtMs: nowMs() }, CALLBACKS_MAX)
  callbacks.wake()
  return signing
}

/** What is told, as Standard Webhooks have it, with the same id at every attempt; `null`: the task has not ended. */
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

/** A task that has just been made has none. */
const CALLBACKS_MAX = 1
