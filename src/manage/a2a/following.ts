import { StreamResponse } from '@a2a-js/sdk'
import type { TaskRecord } from '../../store/work/task-record.ts'
import { A2AError } from './a2a-error.ts'
import type { A2ACall, A2AService } from './service.ts'
import {
  artifactUpdate,
  hasEnded,
  RESULTS_LENGTH_MAX,
  resultPieces,
  statusUpdate,
  taskOf,
  taskWithResults,
} from './task-view.ts'

/**
 * Yields a task as it is and then its changes until it ends: its results and each new status. The results
 * come in pieces, and each piece is read from the database after the one before was sent.
 */
export async function* followed(
  begun: TaskRecord,
  call: A2ACall,
  service: A2AService,
): AsyncGenerator<unknown, void, undefined> {
  const first = hasEnded(begun)
    ? (await taskWithResults(begun, RESULTS_LENGTH_MAX, service.management)).task
    : taskOf(begun)
  yield StreamResponse.toJSON({ payload: { $case: 'task', value: first } })
  if (hasEnded(begun)) return
  let sent = 0
  for (let task: TaskRecord | null = begun; task !== null; ) {
    for await (const piece of resultPieces(task, sent, service.management)) {
      sent = piece.to
      yield StreamResponse.toJSON(artifactUpdate(task, piece, sent >= task.total))
      if (call.stop.aborted) return
    }
    if (hasEnded(task)) return void (yield StreamResponse.toJSON(statusUpdate(task)))
    const next = await service.watch.changed(task, call.stop)
    const isOther = next !== null && next.status !== task.status
    if (isOther && !hasEnded(next)) yield StreamResponse.toJSON(statusUpdate(next))
    task = next
  }
}

/** Throws if the task has ended. Only a task that is under way can be followed (A2A 1.0 §3.1.6). */
export function checkFollowed(task: TaskRecord): void {
  if (!hasEnded(task)) return
  throw new A2AError('UNSUPPORTED_OPERATION', 'the task has ended: get its results with GetTask', {
    metadata: { taskId: task.id },
  })
}
