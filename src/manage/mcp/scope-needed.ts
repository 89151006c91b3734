import { insufficientScope, mayDoAll, type Needs } from '../http/access/needed-scopes.ts'
import type { Principal } from '../http/access/principal.ts'
import { neededBy, type Tools } from '../jobs/tools.ts'
import { resourceAt } from './resources.ts'

/**
 * Refuses a message that needs more scopes than the caller has, before the message runs. The challenge names
 * all scopes of the message, so that clients know what to ask the user for (the MCP specification's step-up).
 * `message` is unchecked: if it is not a valid message, it needs `mcp`.
 */
export function checkScopes(message: unknown, principal: Principal, tools: Tools, publicUrl: string): void {
  const { what, needs: own } = neededFor(message, tools)
  const needs = [MAY, ...own]
  if (!mayDoAll(principal, needs)) throw insufficientScope({ what, needs }, principal, publicUrl, 'mcp')
}

function neededFor(message: unknown, tools: Tools): { readonly what: string; readonly needs: Needs } {
  const { method, params } = Object(message) as { method?: unknown; params?: Params | null }
  switch (method) {
    case 'tools/call': {
      const tool = tools.find(String(params?.name))
      return tool === null ? MCP : neededBy(tool, params?.arguments)
    }
    case 'resources/read':
      return neededAt([params?.uri])
    case 'subscriptions/listen': {
      const uris = params?.notifications?.resourceSubscriptions
      return Array.isArray(uris) ? neededAt(uris) : MCP
    }
    default:
      return MCP
  }
}

function neededAt(uris: readonly unknown[]) {
  const resources = uris.flatMap((uri) => (typeof uri === 'string' ? (resourceAt(uri)?.resource ?? []) : []))
  if (resources.length === 0) return MCP
  const names = [...new Set(resources.map(({ name }) => name))]
  return {
    what: `the resource ${names.join(', ')}`,
    needs: [...new Set(resources.map(({ scopes }) => scopes))],
  }
}

/** The parameters of a message, not validated yet. */
interface Params {
  readonly name?: unknown
  readonly arguments?: unknown
  readonly uri?: unknown
  readonly notifications?: { readonly resourceSubscriptions?: unknown } | null
}

/** Every request to this endpoint needs `mcp`. */
export const MAY = ['mcp'] as const
const MCP = { what: 'MCP', needs: [] }
