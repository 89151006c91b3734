import type { Management } from '../management.ts'
import { TaskWatch } from '../task-watch.ts'
import type { Tools } from '../tools.ts'
import { AgentCards } from './agent-card.ts'
import { OpenStreams } from './open-streams.ts'
import type { A2AService } from './service.ts'

export function makeService(management: Management, tools: Tools, hasPeople: boolean): A2AService {
  return {
    ...{ management, tools },
    cards: new AgentCards(management, tools, hasPeople),
    watch: new TaskWatch(management.store),
    streams: new OpenStreams(STREAMS_MAX, STREAMS_OF_ONE_MAX),
  }
}

/** Of the thousand connections that the port takes, others need some. */
const STREAMS_MAX = 500
const STREAMS_OF_ONE_MAX = 100
