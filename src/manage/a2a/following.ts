import { StreamResponse } from '@a2a-js/sdk'
import type { TaskRecord } from '../../store/work/tasks.ts'
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
 * A task as it is, and then what becomes of it, until it has ended: its results, in pieces that are read from the
 * database when the one before is on its way, and each status.
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

/** To be followed, a task has to be under way (A2A 1.0 §3.1.6). */
export function checkFollowed(task: TaskRecord): void {
  if (!hasEnded(task)) return
  throw new A2AError('UNSUPPORTED_OPERATION', 'the task has ended: GetTask has its results', {
    metadata: { taskId: task.id },
  })
}
