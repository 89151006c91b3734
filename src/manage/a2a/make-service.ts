import type { ApiContext } from '../api/context.ts'
import { TaskWatch } from '../jobs/task-watch.ts'
import type { Tools } from '../jobs/tools.ts'
import { AgentCards } from './agent-card.ts'
import type { A2AService } from './service.ts'

export function makeService(
  management: ApiContext,
  tools: Tools<ApiContext>,
  hasPeople: boolean,
): A2AService {
  return {
    ...{ management, tools },
    cards: new AgentCards(management, tools, hasPeople),
    watch: new TaskWatch(management.store),
  }
}
