import { insufficientScope, mayDoAll, type Needs } from '../http/access/needed-scopes.ts'
import { checkReach } from '../http/access/reach.ts'
import type { Principal } from '../http/access/principal.ts'
import { neededBy, type Tools } from '../jobs/tools.ts'
import { checkSubscription, resourceAt } from './resources.ts'

/**
 * Refuses a message that needs more scopes than the caller has, before the message runs. The challenge names
 * all scopes of the message, so that clients know what to ask the user for (the MCP specification's step-up).
 * `message` is unchecked: if it is not a valid message, it needs `mcp`.
 */
export function checkScopes(message: unknown, principal: Principal, tools: Tools, publicUrl: string): void {
  const { what, needs: own } = neededFor(message, tools)
  const needs = [MAY, ...own]
  if (!mayDoAll(principal, needs)) throw insufficientScope({ what, needs }, principal, publicUrl, 'mcp')
  for (const resource of resourcesAt(urisIn(message))) checkReach(principal, resource)
  for (const uri of subscribedIn(message)) if (typeof uri === 'string') checkSubscription(uri, principal)
}

function neededFor(message: unknown, tools: Tools): { readonly what: string; readonly needs: Needs } {
  const { method, params } = Object(message) as { method?: unknown; params?: Params | null }
  switch (method) {
    case 'tools/call': {
      const tool = tools.find(String(params?.name))
      return tool === null ? MCP : neededBy(tool, params?.arguments)
    }
    default:
      return neededAt(urisIn(message))
  }
}

/** The resources that a message is about. */
function urisIn(message: unknown): readonly unknown[] {
  const { method, params } = Object(message) as { method?: unknown; params?: Params | null }
  return method === 'resources/read' ? [params?.uri] : subscribedIn(message)
}

/** The resources whose changes the caller wants to hear of. */
function subscribedIn(message: unknown): readonly unknown[] {
  const { method, params } = Object(message) as { method?: unknown; params?: Params | null }
  const uris = method === 'subscriptions/listen' ? params?.notifications?.resourceSubscriptions : []
  return Array.isArray(uris) ? uris : []
}

function resourcesAt(uris: readonly unknown[]) {
  return uris.flatMap((uri) => (typeof uri === 'string' ? (resourceAt(uri)?.resource ?? []) : []))
}

function neededAt(uris: readonly unknown[]) {
  const resources = resourcesAt(uris)
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
