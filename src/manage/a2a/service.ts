import type { TaskRecord } from '../../store/work/tasks.ts'
import type { Management } from '../management.ts'
import type { TaskWatch } from '../jobs/task-watch.ts'
import type { ToolCaller, Tools } from '../jobs/tools.ts'
import { A2AError } from './a2a-error.ts'
import type { AgentCards } from './agent-card.ts'

/** What A2A is answered with: all of it is there for others, too. */
export interface A2AService {
  readonly management: Management
  readonly tools: Tools
  readonly cards: AgentCards
  readonly watch: TaskWatch
}

/** One that is asked something. */
export interface A2ACall {
  readonly caller: ToolCaller
  /** Aborted when nobody waits for the answer any more, or should. */
  readonly stop: AbortSignal
  /** Does what takes long, and says nothing meanwhile. */
  waiting<Result>(work: () => Promise<Result>): Promise<Result>
}

/** Throws where there is none of the caller's: whoever may not see it is not told that it is there. */
export async function ownTask(
  id: string,
  { caller }: A2ACall,
  { management }: A2AService,
): Promise<TaskRecord> {
  const task = await management.store.tasks.byId(id)
  if (task !== null && task.principal === caller.principal.id) return task
  throw new A2AError('TASK_NOT_FOUND', 'there is no such task', { metadata: { taskId: id } })
}
