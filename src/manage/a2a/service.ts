import type { TaskRecord } from '../../store/work/task-record.ts'
import type { ApiContext } from '../api/context.ts'
import type { TaskWatch } from '../jobs/task-watch.ts'
import type { ToolCaller, Tools } from '../jobs/tools.ts'
import { A2AError } from './a2a-error.ts'
import type { AgentCards } from './agent-card.ts'

/** The parts that A2A requests use. */
export interface A2AService {
  readonly management: ApiContext
  readonly tools: Tools<ApiContext>
  readonly cards: AgentCards
  readonly watch: TaskWatch
}

/** One A2A request. */
export interface A2ACall {
  readonly caller: ToolCaller
  /** Aborts when the client has disconnected or its access has ended. */
  readonly stop: AbortSignal
  /** Runs slow work and disables the connection's idle timeout meanwhile. */
  waiting<Result>(work: () => Promise<Result>): Promise<Result>
}

/**
 * Throws if the caller has no such task. The error does not reveal that a task of another principal exists.
 */
export async function ownTask(
  id: string,
  { caller }: A2ACall,
  { management }: A2AService,
): Promise<TaskRecord> {
  const task = await management.store.tasks.byId(id)
  if (task !== null && task.principal === caller.principal.id) return task
  throw new A2AError('TASK_NOT_FOUND', `task "${id}" not found`, { metadata: { taskId: id } })
}
