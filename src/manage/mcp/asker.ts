import type { McpServer, Server } from '@modelcontextprotocol/server'
import type { Management } from '../management.ts'
import type { ToolCaller } from '../jobs/tools.ts'
import type { InFlight } from './in-flight.ts'

/** Who has sent a message, and what is known of the way there. */
export interface Asker {
  readonly caller: ToolCaller
  /** `legacy`: before 2026-07-28. */
  readonly era: 'modern' | 'legacy'
  /** Aborts when they have gone by themselves. */
  readonly left: AbortSignal
  readonly inFlight: InFlight
}

/** What answers one message. */
export type MakeServer = (asker: Asker, management: Management) => Server | McpServer
