import { challenge } from '../auth/challenge.ts'
import { mayDo, type Principal, SCOPES, type Scope } from '../auth/principal.ts'
import { Refusal } from '../refusal.ts'
import type { Tools } from '../tools.ts'
import { resourceAt } from './resources.ts'

/**
 * Refuses what needs more than the caller may do, before it is begun: with a challenge by which clients know what to ask
 * the user for (the MCP specification's step-up).
 */
export function checkScopes(message: unknown, principal: Principal, tools: Tools, publicUrl: string): void {
  for (const { what, scopes } of neededFor(message, tools)) checkMay(what, scopes, principal, publicUrl)
}

/** `what`: in words. One of `scopes` is enough. */
export function checkMay(
  what: string,
  scopes: readonly Scope[],
  principal: Principal,
  publicUrl: string,
): void {
  if (mayDo(principal, scopes)) return
  const wanted = new Set<Scope>(['mcp', ...principal.scopes, scopes[0]!])
  const asked = SCOPES.filter((scope) => wanted.has(scope))
  throw new Refusal('insufficient_scope', `${what} needs the scope ${scopes.join(' or ')}`, {
    headers: { 'WWW-Authenticate': challenge(publicUrl, 'insufficient_scope', 'mcp', asked) },
  })
}

interface Needed {
  readonly what: string
  readonly scopes: readonly Scope[]
}

function neededFor(message: unknown, tools: Tools): readonly Needed[] {
  const { method, params } = message as { method?: unknown; params?: Params }
  switch (method) {
    case 'tools/call': {
      const tool = tools.find(String(params?.name))
      return tool === null ? [] : [{ what: `the tool ${tool.name}`, scopes: tool.scopes }]
    }
    case 'resources/read':
      return neededAt(params?.uri)
    case 'subscriptions/listen': {
      const uris = params?.notifications?.resourceSubscriptions
      return Array.isArray(uris) ? uris.flatMap(neededAt) : []
    }
    default:
      return []
  }
}

function neededAt(uri: unknown): readonly Needed[] {
  const found = typeof uri === 'string' ? resourceAt(uri) : null
  return found === null
    ? []
    : [{ what: `the resource ${found.resource.name}`, scopes: found.resource.scopes }]
}

/** What a message says that nobody has checked yet. */
interface Params {
  readonly name?: unknown
  readonly uri?: unknown
  readonly notifications?: { readonly resourceSubscriptions?: unknown } | null
}
