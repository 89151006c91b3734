import { StreamResponse } from '@a2a-js/sdk'
import type { TaskRecord } from '../../store/work/tasks.ts'
import type { CallbackMessage } from '../jobs/task-callbacks.ts'
import { REST_TYPE, VERSION } from './protocol.ts'
import { statusUpdate } from './task-view.ts'

/**
 * A push notification for a task (A2A 1.0 §4.3.3). It contains the status; the client fetches the results.
 */
export function pushMessage(task: TaskRecord): CallbackMessage {
  return {
    headers: { 'content-type': REST_TYPE, 'a2a-version': VERSION },
    body: JSON.stringify(StreamResponse.toJSON(statusUpdate(task))),
  }
}
