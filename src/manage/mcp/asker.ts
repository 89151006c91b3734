import type { McpServer, Server } from '@modelcontextprotocol/server'
import type { ApiContext } from '../api/context.ts'
import type { ToolCaller } from '../jobs/tools.ts'
import type { InFlight } from './in-flight.ts'

/** The caller that sent a message, and its connection. */
export interface Asker {
  readonly caller: ToolCaller
  /** `legacy`: a protocol version before 2026-07-28. */
  readonly era: 'modern' | 'legacy'
  /** Aborts when the client itself disconnects. */
  readonly left: AbortSignal
  readonly inFlight: InFlight
}

/** Makes the server that answers one message. */
export type MakeServer = (asker: Asker, management: ApiContext) => Server | McpServer
