import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { TaskRecord } from '../store/tasks.ts'
import { newId } from './ids.ts'
import type { Management } from './management.ts'
import { type CallbackMessage, type CallbackSecret, whatOf } from './task-callbacks.ts'

/** Where somebody is told the end of a task of theirs; resolves to the secret that what they are told is signed with. */
export async function keepTaskWebhook(
  taskId: string,
  url: string,
  { store, sealer, callbacks, nowMs }: Pick<Management, 'store' | 'sealer' | 'callbacks' | 'nowMs'>,
): Promise<string> {
  const id = newId('cbk')
  const signing = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
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
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(nowMs / 1000)),
    'webhook-signature': new Webhook(signing).sign(id, new Date(nowMs), body),
  }
  return { headers, body }
}

const SECRET_BYTES = 32
/** A task that has just been made has none. */
const CALLBACKS_MAX = 1
